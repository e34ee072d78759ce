//! The errors of verbs.

mod fault;
mod open;

use std::borrow::Cow;
use std::sync::Arc;

use domain::Reason;
pub use domain::refusal::Refusal;
use domain::refusal::{FAILED, UNCERTAIN};

pub use fault::took_too_long;
pub use fault::{Fault, Uncertain};
pub(crate) use fault::{is_cut, timed_out};
pub use open::OpenError;

pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb didn't do its work. Every verb that reads may return `Failed`, and every verb that
/// writes may also return `Uncertain`. A verb's `# Errors` section names its refusals.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rules refuse the request, and nothing was changed. The text is for the person who made
    /// the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database or the machine failed, and nothing was changed. The details are only for the
    /// log.
    #[error("{FAILED}")]
    Failed(#[from] Fault),
    /// It isn't known whether anything was changed. The details are only for the log.
    #[error("{UNCERTAIN}")]
    Uncertain(#[from] Uncertain),
}

impl Error {
    /// Returns the refusal, or `None` if something failed.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) | Self::Uncertain(_) => None,
        }
    }

    /// Whether the database may still be doing the work. If so, a missing row proves nothing.
    pub fn may_be_under_way(&self) -> bool {
        matches!(self, Self::Uncertain(uncertain) if uncertain.may_be_under_way())
    }

    /// Returns the same error for each of several callers whose work failed together.
    pub fn shared(error: &Arc<Self>) -> Self {
        match error.as_ref() {
            Self::Refused(refusal) => Self::Refused(refusal.clone()),
            Self::Failed(_) => Self::Failed(Fault::Shared(Arc::clone(error))),
            Self::Uncertain(_) => Self::Uncertain(Uncertain::Shared(Arc::clone(error))),
        }
    }

    /// Returns the message for the operator, who may see the fault.
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
                "it isn't known whether anything was changed; check before you retry: {uncertain}"
            ),
        }
    }

    /// Returns the database's own code: five characters from PostgreSQL, or an extended number from
    /// SQLite.
    pub(crate) fn database_code(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Failed(Fault::Database(sqlx::Error::Database(error))) => error.code(),
            Self::Failed(Fault::Sqlite(rusqlite::Error::SqliteFailure(error, _))) => {
                Some(error.extended_code.to_string().into())
            }
            _ => None,
        }
    }

    /// Whether particular rows caused the error. Other work in the same transaction may succeed
    /// without them.
    pub fn is_about_rows(&self) -> bool {
        /// `SQLITE_CONSTRAINT`, the lowest byte of an extended code.
        const CONSTRAINT: i64 = 19;
        match self {
            Self::Failed(
                Fault::Corrupt { .. }
                | Fault::RowCount { .. }
                | Fault::Json(_)
                | Fault::MoneyOverflow,
            ) => true,
            // PostgreSQL's classes of data exceptions and integrity constraint violations.
            _ => self.database_code().is_some_and(|code| match code.as_ref() {
                code if code.len() == 5 => code.starts_with("22") || code.starts_with("23"),
                code => code.parse::<i64>().is_ok_and(|code| code & 0xff == CONSTRAINT),
            }),
        }
    }

    /// Whether a commit failed because SQLite's log couldn't be synced. The commit's pages may or
    /// may not reach the disk.
    pub(crate) fn is_failed_sync(&self) -> bool {
        /// `SQLITE_IOERR_FSYNC` and `SQLITE_IOERR_DIR_FSYNC`.
        const FAILED: [&str; 2] = ["1034", "1290"];
        let code = self.database_code();
        code.is_some_and(|code| FAILED.contains(&code.as_ref()))
    }

    /// Converts a failed sync at a SQLite commit into [`Uncertain::Unsynced`]. Returns other errors
    /// unchanged.
    pub(crate) fn of_commit(self) -> Self {
        let is_failed_sync = self.is_failed_sync();
        match self {
            Self::Failed(Fault::Sqlite(error)) if is_failed_sync => {
                Uncertain::Unsynced(error).into()
            }
            other => other,
        }
    }

    /// Whether the database ended this transaction in favour of another one. Nothing of the
    /// transaction is stored, and it can be retried at once.
    pub fn is_conflict(&self) -> bool {
        /// PostgreSQL's codes for a serialization failure and a deadlock.
        const CODES: [&str; 2] = ["40001", "40P01"];
        let code = self.database_code();
        code.is_some_and(|code| CODES.contains(&code.as_ref()))
    }

    /// Whether a later retry may succeed, because the database was only busy or unreachable.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Failed(fault) => fault.is_busy(),
            // If the work isn't under way any more, the server has crashed and can be reached
            // again.
            Self::Uncertain(uncertain) => !uncertain.may_be_under_way(),
        }
    }

    /// Returns the reason for the SMS API's answer if nothing was changed: `Unavailable` if a later
    /// retry may succeed, and otherwise `Internal`.
    pub fn reason(&self) -> Reason {
        if self.is_busy() { Reason::Unavailable } else { Reason::Internal }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(Fault::Database(error))
    }
}
