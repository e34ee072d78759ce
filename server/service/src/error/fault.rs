//! Faults of the database or the machine.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use super::Error;

/// Why work failed so that nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    #[error("database: {0}")]
    Sqlite(rusqlite::Error),
    #[error("{table}.{column} holds {value:?}, which can't be read")]
    Corrupt {
        table: &'static str,
        column: Cow<'static, str>,
        value: String,
    },
    #[error("a write touched {actual} rows of {table} and not {expected}")]
    RowCount {
        table: &'static str,
        expected: usize,
        actual: u64,
    },
    #[error("there is no row of {0}, where there always is one")]
    Missing(&'static str),
    #[error("a statement that always finds a row found none: {0}")]
    NoRow(Cow<'static, str>),
    #[error("a statement names a shard on a connection for none: {0}")]
    NoShard(String),
    #[error("{0} took too long and was given up")]
    TimedOut(&'static str),
    #[error("the service is being stopped")]
    Stopped,
    #[error("too much waits already to be stored")]
    InboxFull,
    #[error("the database did not answer a commit, and did not store it: {0}")]
    NotCommitted(sqlx::Error),
    /// A fault that ended the work of several callers.
    #[error("{}", .0.for_operator())]
    Shared(Arc<Error>),
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("passkeys: {0}")]
    Passkey(#[from] webauthn_rs::prelude::WebauthnError),
    #[error("password hash: {0}")]
    PasswordHash(String),
    #[error(
        "what is sealed in the database can't be opened: is secret.key in the data folder the file \
         that it was sealed with?"
    )]
    Sealed,
    #[error("a task failed: {0}")]
    Task(String),
    #[error("file: {0}")]
    File(io::Error),
    #[error("no reference is free")]
    ReferencesUsedUp,
    #[error("a sum of money is more than can be held")]
    MoneyOverflow,
}

/// Why it isn't known whether work was stored.
#[derive(Debug, thiserror::Error)]
pub enum Uncertain {
    #[error("the database did not answer a commit, and can't be asked whether it stored it: {0}")]
    Unanswered(sqlx::Error),
    #[error("the database did not answer a commit, crashed, and doesn't know the commit: {0}")]
    Forgotten(sqlx::Error),
    #[error("the disk could not be synced at a commit: {0}")]
    Unsynced(rusqlite::Error),
    #[error("the work took too long and was given up; it may have been at its commit")]
    TimedOut,
    #[error("the task that did the work ended without an answer: {0}")]
    Task(String),
    /// A commit that carried the work of several callers.
    #[error("{}", .0.for_operator())]
    Shared(Arc<Error>),
}

impl Uncertain {
    /// Whether the work may still be under way in the database.
    pub(super) fn may_be_under_way(&self) -> bool {
        match self {
            Self::Forgotten(_) => false,
            Self::Shared(error) => error.may_be_under_way(),
            _ => true,
        }
    }
}

impl Fault {
    /// Whether the database only had no time or can't be reached now, so that trying again helps.
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

/// Whether the database only had no time or can't be reached now: no connection became free,
/// another process wrote for long, the server is being restarted. Trying again helps.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    /// The code of SQLITE_BUSY, which extended codes carry in their lowest byte.
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

/// What the database didn't do in time.
#[derive(Debug, thiserror::Error)]
#[error("{0} took too long")]
struct TookTooLong(&'static str);

/// Whether the database didn't do something in time: by its own clock, or by that of this process.
pub(crate) fn took_too_long(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::AnyDriverError(error) => error.is::<TookTooLong>(),
        // The server canceled the statement.
        sqlx::Error::Database(error) => error.code().as_deref() == Some("57014"),
        _ => false,
    }
}

/// The error for work that the database didn't do in time.
pub(crate) fn timed_out(what: &'static str) -> sqlx::Error {
    sqlx::Error::AnyDriverError(Box::new(TookTooLong(what)))
}

/// Whether another process wrote to the file for too long.
fn is_busy_file(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Whether a code of PostgreSQL's stands for: connection, serialization and deadlock, resources
/// except a full disk, lock and statement timeouts, or the server's end.
fn is_busy_code(code: &str) -> bool {
    const CODES: [&str; 3] = ["55P03", "57014", "25P03"];
    const CLASSES: [&str; 4] = ["08", "40", "53", "57"];
    CODES.contains(&code) || (code != "53100" && CLASSES.contains(&&code[..2]))
}

/// Whether an error means that the connection was cut: if it came from a begin, nothing was begun.
pub(crate) fn is_cut(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // The server is ending, or isn't ready yet.
        sqlx::Error::Database(error) => {
            let code = error.code();
            code.is_some_and(|code| ["57P01", "57P02", "57P03"].contains(&code.as_ref()))
        }
        _ => false,
    }
}
