//! The differences between the databases, other than the text of statements. They include the URLs,
//! the beginning of transactions, the lookup of the outcome of a commit that got no answer, and the
//! tables by day.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use domain::ids::Shard;
use sqlx::postgres::PgConnection;

use super::chore::Chore;
use super::history::{MessageTables, Partition, Range};
use super::names::with_names;
use super::query::{Conn, Row, query, run};
use super::sql::{Dialect, Sql};
use super::{commit_groups, postgres, sqlite};
use crate::error::{Error, OpenError, Result};

/// The version, the name and the SQL of a migration.
pub type SchemaChange = (i64, &'static str, &'static str);

/// The identifier by which a process looks up a transaction's outcome.
#[derive(Debug)]
pub enum TransactionName {
    /// PostgreSQL's number of the transaction.
    Number {
        id: String,
        /// Two timestamps of the server. A crash of the server changes one of them.
        server: String,
    },
    /// The ID of a row of `commit_groups`, which the transaction stores in a shard of a distributed
    /// database.
    Row { shard: Shard, id: i64 },
}

impl TransactionName {
    /// Looks up the outcome of the transaction.
    pub async fn outcome(&self, conn: Conn<'_>) -> Result<Outcome> {
        match self {
            Self::Number { id, server } => {
                let looking_up = query(Sql::postgres(postgres::OUTCOME), (id, server));
                let read = |row: &Row<'_>| row.get::<Option<String>>("outcome");
                Ok(match looking_up.fetch_one(conn, read).await?.as_deref() {
                    Some("in progress") => Outcome::UnderWay,
                    Some("committed") => Outcome::Committed,
                    Some("forgotten") => Outcome::Forgotten,
                    _ => Outcome::Nothing,
                })
            }
            Self::Row { shard, id } => {
                let answer = commit_groups::answer_or_prevent(conn, *shard, *id).await?;
                Ok(answer.map_or(Outcome::Nothing, |_| Outcome::Committed))
            }
        }
    }

    /// Returns the name of the running transaction, to look up the outcome if its commit gets no
    /// answer. Returns `None` if the transaction wrote nothing.
    pub async fn of(conn: &mut PgConnection) -> Result<Option<Self>> {
        let read = |row: &Row<'_>| {
            let id: Option<String> = row.get("id")?;
            let server = row.get("server")?;
            Ok(id.map(|id| Self::Number { id, server }))
        };
        query(Sql::postgres(postgres::TRANSACTION), ()).fetch_one(conn, read).await
    }

    /// Like [`TransactionName::of`], for a database whose tables are distributed. If the
    /// transaction has a number, this function makes the transaction commit in two phases. A
    /// transaction that wrote only on workers has no number on the coordinator. For such a
    /// transaction, this function stores a row, whose ID is the name. Returns `None` if there is
    /// neither a number nor a shard.
    pub(crate) async fn of_distributed(
        conn: &mut PgConnection,
        shard: Option<Shard>,
    ) -> Result<Option<Self>> {
        if let Some(name) = Self::of(&mut *conn).await? {
            run(conn, postgres::TWO_PHASES).await?;
            return Ok(Some(name));
        }
        let Some(shard) = shard else { return Ok(None) };
        let id = commit_groups::note_transaction(conn, shard).await?;
        Ok(Some(Self::Row { shard, id }))
    }
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    UnderWay,
    Committed,
    /// Nothing was stored.
    Nothing,
    /// The server crashed and may have reused the transaction's number. Only the rows that the
    /// transaction wrote show whether it committed.
    Forgotten,
}

impl Dialect {
    /// Returns the kind of database that a URL names.
    pub fn of_url(url: &str) -> std::result::Result<Self, OpenError> {
        let refuse = |why| Err(OpenError::Url { url: without_password(url), why });
        match url.split_once(':') {
            Some(("sqlite", rest)) if rest.contains(":memory:") => {
                refuse("an in-memory database loses accepted messages; use a file")
            }
            Some(("sqlite", rest)) if !rest.trim_start_matches('/').is_empty() => Ok(Self::Sqlite),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgres),
            _ => refuse("use sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
        }
    }

    /// Returns the path of the database file, or `None` for a server.
    pub fn file(self, url: &str) -> Option<&Path> {
        match self {
            Self::Sqlite => {
                let path = url.strip_prefix("sqlite:")?;
                let path = path.strip_prefix("//").unwrap_or(path);
                Some(Path::new(path.split_once('?').map_or(path, |(path, _)| path)))
            }
            Self::Postgres => None,
        }
    }

    /// Returns whether other processes may serve the same database.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Returns whether messages are in tables by day or week. If so, a statement should cover only
    /// a few days.
    pub const fn is_by_day(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Returns how many transactions of a process can write at the same time, apart from calls of
    /// `run_commit_group`. SQLite has one writer. With PostgreSQL, other transactions write while
    /// one waits for the sync of its commit.
    pub const fn writers(self) -> u32 {
        match self {
            Self::Sqlite => 1,
            Self::Postgres => 4,
        }
    }

    /// Returns whether an existing file is a database of this kind, or is empty and can become one.
    /// Connecting would show that too, but only after seconds of retries.
    pub fn owns(self, file: &Path) -> std::io::Result<bool> {
        match self {
            Self::Sqlite => {
                let mut start = Vec::new();
                let length = sqlite::FILE_START.len() as u64;
                File::open(file)?.take(length).read_to_end(&mut start)?;
                Ok(start.is_empty() || start == sqlite::FILE_START)
            }
            Self::Postgres => Ok(true),
        }
    }

    /// Returns the statement that begins a transaction that writes.
    pub const fn begin(self) -> &'static str {
        match self {
            // After a plain `BEGIN`, a transaction that reads first can fail with a lock error at
            // its first write.
            Self::Sqlite => "BEGIN IMMEDIATE",
            // Transactions that write the same rows wait for each other's locks.
            Self::Postgres => "BEGIN",
        }
    }

    /// Returns the statement that begins the transaction of a verb, which reads, decides and
    /// writes.
    pub(crate) const fn begin_verb(self) -> &'static str {
        match self {
            Self::Sqlite => self.begin(),
            Self::Postgres => postgres::BEGIN_VERB,
        }
    }

    /// Sets up a transaction that recounts whole tables.
    pub async fn prepare_recount(self, conn: Conn<'_>) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres => run(conn, postgres::RECOUNT).await,
        }
    }

    /// Returns how many connections of a process only read.
    pub const fn readers(self) -> u32 {
        match self {
            Self::Sqlite => 4,
            Self::Postgres => 8,
        }
    }

    /// Locks a chore in a shard for this transaction. Returns false if another transaction holds
    /// the lock. With SQLite, which has one writer, always returns true.
    pub async fn try_lock(self, conn: Conn<'_>, chore: Chore, shard: Shard) -> Result<bool> {
        match self {
            Self::Sqlite => Ok(true),
            Self::Postgres => postgres::try_lock(conn, chore.number(shard)).await,
        }
    }

    /// Returns the time of the server's clock in Unix milliseconds, or `None` with SQLite.
    pub async fn server_ms(self, conn: Conn<'_>) -> Result<Option<i64>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres => postgres::clock_ms(conn).await.map(Some),
        }
    }

    /// Returns how long the oldest transaction has been open, in milliseconds, among those that
    /// this database user can see. Returns `None` with SQLite.
    pub async fn oldest_ms(self, conn: Conn<'_>) -> Result<Option<i64>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres => postgres::oldest_ms(conn).await.map(Some),
        }
    }

    /// Creates the tables for the messages of a day, or of its week, and for their events. `day` is
    /// counted from 1970-01-01 UTC. Returns false if there is nothing to create: the tables exist,
    /// the default partition has rows of that day, or the database has no tables by day.
    pub async fn make_day(self, conn: Conn<'_>, day: i64, tables: MessageTables) -> Result<bool> {
        match self {
            Self::Sqlite => Ok(false),
            Self::Postgres => postgres::make_day(conn, day, tables).await,
        }
    }

    /// Returns the tables of a day or of its week, or `None` if the day has no tables.
    pub async fn day_table(self, conn: Conn<'_>, day: i64) -> Result<Option<Partition>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres => postgres::day_table(conn, day).await,
        }
    }

    /// Deletes the rows of `unusual_messages` for this range of message IDs, if the database has
    /// that table.
    pub async fn forget_unusual(self, conn: Conn<'_>, range: Range) -> Result<()> {
        match self {
            // SQLite has an index on `messages` instead of that table.
            Self::Sqlite => Ok(()),
            Self::Postgres => postgres::forget_unusual(conn, range).await,
        }
    }

    /// Raises the time limit of the transaction's statements. Does nothing on SQLite.
    pub async fn take_time(self, conn: Conn<'_>) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres => run(conn, postgres::TAKE_TIME).await,
        }
    }

    /// Lets a transaction commit without waiting for the disk. A server crash shortly afterwards
    /// may undo the transaction, but not if a later transaction survives the crash. SQLite always
    /// waits.
    pub async fn commit_without_waiting(self, conn: Conn<'_>) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres => run(conn, postgres::COMMIT_WITHOUT_WAITING).await,
        }
    }

    /// Drops the tables of a day or a week.
    pub async fn drop_tables(self, conn: Conn<'_>, partition: &Partition) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres => postgres::drop_tables(conn, partition).await,
        }
    }

    /// Returns whether a statement failed because a table doesn't exist.
    pub(crate) fn is_missing_table(self, error: &Error) -> bool {
        // SQLite's code stands for any error in the text of a statement. Tests prepare each of our
        // statements, so a missing table is the only cause left.
        let missing = match self {
            Self::Sqlite => "1",
            Self::Postgres => "42P01",
        };
        error.database_code().is_some_and(|code| code == missing)
    }

    /// Returns all migrations, in the order of their versions.
    pub const fn migrations(self) -> &'static [SchemaChange] {
        const SQLITE: &str =
            with_names!(include_str!("../../../migrations/sqlite/0001_schema.sql"));
        const POSTGRES: &str = with_names!(concat!(
            include_str!("../../../migrations/postgres/0001_schema.sql"),
            include_str!("run_commit_group.sql"),
        ));
        match self {
            Self::Sqlite => &[(1, "schema", SQLITE)],
            Self::Postgres => &[(1, "schema", POSTGRES)],
        }
    }
}

/// Returns the file of a SQLite database, or `None` if the URL names no file.
pub fn file_of_url(url: &str) -> Option<&Path> {
    Dialect::of_url(url).ok()?.file(url)
}

/// Returns a URL that is safe to show: without user and password, and without the query string,
/// which can contain a password too.
pub fn without_password(url: &str) -> String {
    let shown = url.split_once('?').map_or(url, |(shown, _)| shown);
    match (shown.find("://"), shown.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://…{}", &shown[..scheme], &shown[at..])
        }
        _ => shown.to_owned(),
    }
}
