//! The database of a test.

mod postgres;
mod sqlite;
mod tables;

use std::path::Path;

use service::Service;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

/// The kind of database that a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    /// The kind of database that several processes can share.
    pub const SHARED: Self = Self::Postgres;
}

pub enum Database {
    Sqlite(sqlite::Database),
    Postgres(postgres::Database),
}

impl Database {
    /// SQL that gives a row its shard. The first text goes after the first column of an INSERT, the
    /// second one after the first value. SQLite has no shards.
    pub const fn first_shard(&self) -> [&'static str; 2] {
        match self {
            Self::Sqlite(_) => ["", ""],
            Self::Postgres(_) => [", shard", ", 1"],
        }
    }

    /// Creates a database. A SQLite file goes into `folder`.
    pub async fn make(backend: Backend, folder: &Path) -> Self {
        match backend {
            Backend::Sqlite => Self::Sqlite(sqlite::Database::make(folder)),
            Backend::Postgres => Self::Postgres(postgres::Database::make().await),
        }
    }

    /// Creates a PostgreSQL database without tables.
    pub async fn empty() -> Self {
        Self::Postgres(postgres::Database::empty().await)
    }

    pub async fn back_up(&self, service: &Service, file: &Path) {
        match self {
            Self::Sqlite(_) => service.operations().backup(file).await.unwrap(),
            Self::Postgres(server) => server.dump(file),
        }
    }

    /// Restores a backup of this database into another one. A SQLite file goes into `folder`.
    pub async fn restored(&self, backup: &Path, folder: &Path) -> Self {
        match self {
            Self::Sqlite(_) => {
                let file = sqlite::Database::make(folder);
                Service::restore(&file.url(), &folder.join("data"), backup).unwrap();
                Self::Sqlite(file)
            }
            Self::Postgres(_) => {
                let server = postgres::Database::empty().await;
                server.restore(backup);
                Self::Postgres(server)
            }
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => file.url(),
            Self::Postgres(server) => server.url(),
        }
    }

    /// Opens a connection for statements that the service doesn't have.
    pub async fn connect(&self) -> AnyConnection {
        sqlx::any::install_default_drivers();
        AnyConnection::connect(&self.url()).await.unwrap()
    }

    /// Returns the number that a statement selects.
    pub async fn number(&self, statement: &'static str) -> i64 {
        tables::number(self.connect().await, statement).await
    }

    /// A statement that blocks all other writers until `ROLLBACK`.
    pub const fn hold(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::Postgres(_) => tables::HOLD,
        }
    }

    /// A statement that makes the database refuse messages to a number.
    pub fn refuse_number(&self, number: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(match self {
            Self::Sqlite(_) => format!(
                "CREATE TRIGGER refused BEFORE INSERT ON messages WHEN NEW.number = '{number}' \
                 BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
            ),
            Self::Postgres(_) => tables::refuse_number(number),
        })
    }

    /// Statements that make the audit log writable.
    pub const fn audit_unlocked(&self) -> &'static [&'static str] {
        match self {
            Self::Sqlite(_) => {
                &["DROP TRIGGER audit_never_changes", "DROP TRIGGER audit_never_goes"]
            }
            Self::Postgres(_) => &[
                "DROP TRIGGER audit_never_changes ON audit",
                "GRANT UPDATE, DELETE ON audit TO CURRENT_USER",
            ],
        }
    }

    /// Whether triggers prevent even a superuser from changing the ledger.
    #[expect(clippy::unused_self, reason = "a database of another kind has no triggers")]
    pub const fn has_ledger_triggers(&self) -> bool {
        true
    }

    /// A table with a column `i` that has the numbers from 1 to `last`.
    #[expect(clippy::unused_self, reason = "a database of another kind makes them otherwise")]
    pub fn numbers(&self, last: i64) -> String {
        format!(
            "(WITH RECURSIVE n (i) AS ( \
                 SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
             SELECT i FROM n) AS n"
        )
    }

    /// Whether messages with unusual statuses have their own table, where reports find them by
    /// status.
    pub const fn has_unusual_messages(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// A value with no bytes.
    pub const fn no_bytes(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "x''",
            Self::Postgres(_) => tables::NO_BYTES,
        }
    }

    /// Asserts how many uploads wait for their expansion. Waits until unneeded uploads are deleted.
    pub async fn assert_spools(&self, count: usize) {
        match self {
            Self::Sqlite(file) => assert_eq!(file.spools().len(), count),
            Self::Postgres(_) => tables::assert_spools(&mut self.connect().await, count).await,
        }
    }

    /// Deletes the rows of the only waiting upload.
    pub async fn lose_spool(&self) {
        match self {
            Self::Sqlite(file) => file.lose_spool(),
            Self::Postgres(_) => tables::lose_spool(&mut self.connect().await).await,
        }
    }

    /// Damages the last rows of the only waiting upload.
    pub async fn damage_spool(&self) {
        match self {
            Self::Sqlite(file) => file.damage_spool(),
            Self::Postgres(_) => tables::damage_spool(&mut self.connect().await).await,
        }
    }

    /// Returns everything that the database stores.
    pub async fn contents(&self, service: &Service) -> Vec<u8> {
        match self {
            Self::Sqlite(file) => file.contents(service).await,
            Self::Postgres(_) => tables::contents(&mut self.connect().await).await,
        }
    }
}
