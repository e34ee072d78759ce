//! Faults of the database or the machine.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use super::Error;

/// Why work failed. None of the work was stored.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    #[error("database: {0}")]
    Sqlite(rusqlite::Error),
    #[error("{table}.{column} holds {value:?}, which can't be read")]
    Corrupt { table: &'static str, column: Cow<'static, str>, value: String },
    #[error("a write touched {actual} rows of {table} instead of {expected}")]
    RowCount { table: &'static str, expected: usize, actual: u64 },
    #[error("a row of {0} that must exist is missing")]
    Missing(&'static str),
    #[error("a statement that must return a row returned none: {0}")]
    NoRow(Cow<'static, str>),
    #[error("a statement names a shard, but its connection has none: {0}")]
    NoShard(String),
    #[error("{0} took too long and was given up")]
    TimedOut(&'static str),
    #[error("the service is being stopped")]
    Stopped,
    #[error("too much work is already waiting to be stored")]
    InboxFull,
    #[error("the database did not answer a commit, and did not store it: {0}")]
    NotCommitted(sqlx::Error),
    /// A fault that ended the work of several callers.
    #[error("{}", .0.for_operator())]
    Shared(Arc<Error>),
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("passkeys: {0}")]
    Passkey(String),
    #[error("password hash: {0}")]
    PasswordHash(String),
    #[error(
        "sealed values in the database can't be opened: is secret.key in the data folder the file \
         that they were sealed with?"
    )]
    Sealed,
    #[error("a task failed: {0}")]
    Task(String),
    #[error("file: {0}")]
    File(io::Error),
    #[error("no reference is free")]
    ReferencesUsedUp,
    #[error("a sum of money is too large to be stored")]
    MoneyOverflow,
}

/// Why it isn't known whether work was stored.
#[derive(Debug, thiserror::Error)]
pub enum Uncertain {
    #[error("the database did not answer a commit, and can't be queried for its outcome: {0}")]
    Unanswered(sqlx::Error),
    #[error("the database crashed without answering a commit, and doesn't know the commit: {0}")]
    Forgotten(sqlx::Error),
    #[error("the disk could not be synced at a commit: {0}")]
    Unsynced(rusqlite::Error),
    #[error("the work took too long and was given up; it may have been committed")]
    TimedOut,
    #[error("the task that did the work ended without an answer: {0}")]
    Task(String),
    /// A commit with the work of several callers.
    #[error("{}", .0.for_operator())]
    Shared(Arc<Error>),
}

impl Uncertain {
    /// Whether the database may still be doing the work.
    pub(super) fn may_be_under_way(&self) -> bool {
        match self {
            Self::Forgotten(_) => false,
            Self::Shared(error) => error.may_be_under_way(),
            _ => true,
        }
    }
}

impl Fault {
    /// Whether the database was only busy or unreachable, so that a retry may succeed.
    pub(super) fn is_busy(&self) -> bool {
        match self {
            Self::Database(error) => is_busy(error),
            Self::Sqlite(error) => is_busy_file(error),
            Self::TimedOut(_) | Self::Stopped | Self::InboxFull | Self::NotCommitted(_) => true,
            Self::Shared(error) => error.is_busy(),
            _ => false,
        }
    }
}

/// Whether the database was only busy or unreachable: no connection became free, another process
/// wrote for too long, or the server is restarting. A retry may succeed.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    /// SQLITE_BUSY. Extended codes have it in their lowest byte.
    const BUSY: i64 = 5;
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => true,
        sqlx::Error::AnyDriverError(error) => error.is::<TookTooLong>(),
        sqlx::Error::Database(error) => match error.code().as_deref() {
            // PostgreSQL's codes have five characters.
            Some(code) if code.len() == 5 => is_busy_code(code),
            Some(code) => code.parse::<i64>().is_ok_and(|code| code & 0xff == BUSY),
            None => false,
        },
        _ => is_cut(error),
    }
}

/// An operation that the database didn't finish in time.
#[derive(Debug, thiserror::Error)]
#[error("{0} took too long")]
struct TookTooLong(&'static str);

/// Whether the database didn't finish an operation in time, by its own clock or by that of this
/// process.
pub fn took_too_long(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::AnyDriverError(error) => error.is::<TookTooLong>(),
        // The server canceled the statement.
        sqlx::Error::Database(error) => error.code().as_deref() == Some("57014"),
        _ => false,
    }
}

/// Returns the error for an operation that the database didn't finish in time.
pub(crate) fn timed_out(what: &'static str) -> sqlx::Error {
    sqlx::Error::AnyDriverError(Box::new(TookTooLong(what)))
}

/// Whether another process wrote to the file for too long.
fn is_busy_file(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Whether a PostgreSQL code means a temporary problem: a lost connection, a serialization failure
/// or deadlock, a lack of resources other than disk space, a lock or statement timeout, or a server
/// that is stopping.
fn is_busy_code(code: &str) -> bool {
    const CODES: [&str; 3] = ["55P03", "57014", "25P03"];
    const CLASSES: [&str; 4] = ["08", "40", "53", "57"];
    CODES.contains(&code) || (code != "53100" && CLASSES.contains(&&code[..2]))
}

/// Whether an error means that the connection was cut. If BEGIN returned the error, no transaction
/// was begun.
pub(crate) fn is_cut(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // The server is stopping, or isn't ready yet.
        sqlx::Error::Database(error) => {
            let code = error.code();
            code.is_some_and(|code| ["57P01", "57P02", "57P03"].contains(&code.as_ref()))
        }
        _ => false,
    }
}
