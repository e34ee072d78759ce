//! Errors: what a verb answers when it doesn't do its work.

mod fault;
mod open;

use std::borrow::Cow;
use std::sync::Arc;

use domain::Reason;
pub use domain::refusal::Refusal;
use domain::refusal::{FAILED, UNCERTAIN};

pub use fault::{Fault, Uncertain};
pub(crate) use fault::{is_cut, timed_out, took_too_long};
pub use open::OpenError;

pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb didn't do its work. Every verb that reads may answer `Failed`, and every verb that
/// writes `Uncertain` too; the `# Errors` of a verb name its refusals.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rules refuse the request, and nothing was changed; the words are for the person who
    /// asked.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database or the machine failed, and nothing was changed; the details are for the log
    /// alone.
    #[error("{FAILED}")]
    Failed(#[from] Fault),
    /// Whether anything was changed isn't known; the details are for the log alone.
    #[error("{UNCERTAIN}")]
    Uncertain(#[from] Uncertain),
}

impl Error {
    /// The refusal; `None` when something failed.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) | Self::Uncertain(_) => None,
        }
    }

    /// Whether the work may still be under way in the database: then finding no row of it proves
    /// nothing.
    pub(crate) fn may_be_under_way(&self) -> bool {
        matches!(self, Self::Uncertain(uncertain) if uncertain.may_be_under_way())
    }

    /// Adds to a refusal which of many requests it is about.
    pub(crate) fn of_request(self, index: usize) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(Refusal::Order {
                index,
                refusal: Box::new(refusal),
            }),
            other => other,
        }
    }

    /// The same error for each of several callers whose work failed at once.
    pub(crate) fn shared(error: &Arc<Self>) -> Self {
        match error.as_ref() {
            Self::Refused(refusal) => Self::Refused(refusal.clone()),
            Self::Failed(_) => Self::Failed(Fault::Shared(Arc::clone(error))),
            Self::Uncertain(_) => Self::Uncertain(Uncertain::Shared(Arc::clone(error))),
        }
    }

    /// The message for whoever runs the server, who may see the fault.
    pub fn for_operator(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.to_string(),
            Self::Failed(fault) if fault.is_busy() => {
                format!(
                    "the database was busy for too long, nothing was changed; try again: {fault}"
                )
            }
            Self::Failed(fault) => format!("nothing was changed: {fault}"),
            Self::Uncertain(uncertain) => format!(
                "whether anything was changed isn't known, look before you try again: {uncertain}"
            ),
        }
    }

    /// The database's own code: PostgreSQL's five characters, or SQLite's extended number.
    pub(crate) fn database_code(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Failed(Fault::Database(sqlx::Error::Database(error))) => error.code(),
            Self::Failed(Fault::Sqlite(rusqlite::Error::SqliteFailure(error, _))) => {
                Some(error.extended_code.to_string().into())
            }
            _ => None,
        }
    }

    /// Whether the rows themselves are at fault: other work of the same transaction may succeed
    /// without these rows.
    pub(crate) fn is_about_rows(&self) -> bool {
        /// `SQLITE_CONSTRAINT` in the lowest byte of an extended code.
        const CONSTRAINT: i64 = 19;
        match self {
            Self::Failed(
                Fault::Corrupt { .. }
                | Fault::RowCount { .. }
                | Fault::Json(_)
                | Fault::MoneyOverflow,
            ) => true,
            // PostgreSQL's classes of codes: data exception, integrity constraint violation.
            _ => self
                .database_code()
                .is_some_and(|code| match code.as_ref() {
                    code if code.len() == 5 => code.starts_with("22") || code.starts_with("23"),
                    code => code
                        .parse::<i64>()
                        .is_ok_and(|code| code & 0xff == CONSTRAINT),
                }),
        }
    }

    /// Whether a commit failed because SQLite's log couldn't be synced: the pages of the commit may
    /// or may not reach the disk.
    pub(crate) fn is_failed_sync(&self) -> bool {
        /// `SQLITE_IOERR_FSYNC` and `SQLITE_IOERR_DIR_FSYNC`.
        const FAILED: [&str; 2] = ["1034", "1290"];
        let code = self.database_code();
        code.is_some_and(|code| FAILED.contains(&code.as_ref()))
    }

    /// What an error of SQLite's at a commit means.
    pub(crate) fn of_commit(self) -> Self {
        let is_failed_sync = self.is_failed_sync();
        match self {
            Self::Failed(Fault::Sqlite(error)) if is_failed_sync => {
                Uncertain::Unsynced(error).into()
            }
            other => other,
        }
    }

    /// Whether the database ended this transaction in favour of another one: nothing of the
    /// transaction is stored, and it can be tried again at once.
    pub(crate) fn is_conflict(&self) -> bool {
        /// PostgreSQL's codes for a serialization failure and a deadlock.
        const CODES: [&str; 2] = ["40001", "40P01"];
        let code = self.database_code();
        code.is_some_and(|code| CODES.contains(&code.as_ref()))
    }

    /// Whether waiting helps: the database has no time, or can't be reached now.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Failed(fault) => fault.is_busy(),
            // The server has crashed and can be reached again.
            Self::Uncertain(uncertain) => !uncertain.may_be_under_way(),
        }
    }

    /// The reason that the SMS API answers when nothing was changed: `unavailable` where waiting
    /// helps.
    pub fn reason(&self) -> Reason {
        if self.is_busy() {
            Reason::Unavailable
        } else {
            Reason::Internal
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(Fault::Database(error))
    }
}
