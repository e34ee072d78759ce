//! A database of a test's own.

mod postgres;
mod sqlite;
mod tables;

use std::path::Path;

use service::Service;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

/// What a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    /// What several processes can serve.
    pub const SHARED: Self = Self::Postgres;
}

pub enum Database {
    Sqlite(sqlite::Database),
    Postgres(postgres::Database),
}

impl Database {
    /// The texts that give a row its shard: the first one stands after the first column of an
    /// INSERT, the second one after the first value. SQLite has no shards.
    pub const fn first_shard(&self) -> [&'static str; 2] {
        match self {
            Self::Sqlite(_) => ["", ""],
            Self::Postgres(_) => [", shard", ", 1"],
        }
    }

    /// `folder` is where a file may lie.
    pub async fn make(backend: Backend, folder: &Path) -> Self {
        match backend {
            Backend::Sqlite => Self::Sqlite(sqlite::Database::make(folder)),
            Backend::Postgres => Self::Postgres(postgres::Database::make().await),
        }
    }

    /// One on PostgreSQL without any table.
    pub async fn empty() -> Self {
        Self::Postgres(postgres::Database::empty().await)
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => file.url(),
            Self::Postgres(server) => server.url(),
        }
    }

    /// A connection that may do what no verb does.
    pub async fn connect(&self) -> AnyConnection {
        AnyConnection::connect(&self.url()).await.unwrap()
    }

    /// The number that a statement gives.
    pub async fn number(&self, statement: &'static str) -> i64 {
        tables::number(self.connect().await, statement).await
    }

    /// A statement that keeps everybody else from writing until `ROLLBACK`.
    pub const fn hold(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::Postgres(_) => tables::HOLD,
        }
    }

    /// A statement after which messages to a number can't be stored.
    pub fn refuse_number(&self, number: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(match self {
            Self::Sqlite(_) => format!(
                "CREATE TRIGGER refused BEFORE INSERT ON messages WHEN NEW.number = '{number}' \
                 BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
            ),
            Self::Postgres(_) => tables::refuse_number(number),
        })
    }

    /// What makes the audit log one that can be changed.
    pub const fn audit_unlocked(&self) -> &'static [&'static str] {
        match self {
            Self::Sqlite(_) => &[
                "DROP TRIGGER audit_never_changes",
                "DROP TRIGGER audit_never_goes",
            ],
            Self::Postgres(_) => &[
                "DROP TRIGGER audit_never_changes ON audit",
                "GRANT UPDATE, DELETE ON audit TO CURRENT_USER",
            ],
        }
    }

    /// Whether even a superuser can't change the ledger.
    #[expect(
        clippy::unused_self,
        reason = "a database of another kind has no triggers"
    )]
    pub const fn has_ledger_triggers(&self) -> bool {
        true
    }

    /// A table with a column `i` of the numbers from 1 to this one.
    #[expect(
        clippy::unused_self,
        reason = "a database of another kind makes them otherwise"
    )]
    pub fn numbers(&self, last: i64) -> String {
        format!(
            "(WITH RECURSIVE n (i) AS ( \
                 SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
             SELECT i FROM n) AS n"
        )
    }

    /// Whether the messages that reports find by their status are in a table of their own.
    pub const fn has_unusual_messages(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// A value of no bytes.
    pub const fn no_bytes(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "x''",
            Self::Postgres(_) => tables::NO_BYTES,
        }
    }

    /// So many uploads wait to become messages, as soon as those are gone that aren't needed.
    pub async fn assert_spools(&self, count: usize) {
        match self {
            Self::Sqlite(file) => assert_eq!(file.spools().len(), count),
            Self::Postgres(_) => tables::assert_spools(&mut self.connect().await, count).await,
        }
    }

    /// Loses the rows of the only upload that waits.
    pub async fn lose_spool(&self) {
        match self {
            Self::Sqlite(file) => file.lose_spool(),
            Self::Postgres(_) => tables::lose_spool(&mut self.connect().await).await,
        }
    }

    /// Damages the last rows of the only upload that waits.
    pub async fn damage_spool(&self) {
        match self {
            Self::Sqlite(file) => file.damage_spool(),
            Self::Postgres(_) => tables::damage_spool(&mut self.connect().await).await,
        }
    }

    /// All that is stored.
    pub async fn contents(&self, service: &Service) -> Vec<u8> {
        match self {
            Self::Sqlite(file) => file.contents(service).await,
            Self::Postgres(_) => tables::contents(&mut self.connect().await).await,
        }
    }
}
