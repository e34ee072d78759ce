//! What a verb answers when it doesn't do its work.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use domain::{ApplicationStatus, Reason, SenderStatus};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb didn't do its work. Either way, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rules refuse it; the words are for the person who asked.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database or the machine failed; the details are for the log alone.
    #[error("Something went wrong on our side and nothing was changed. Try again in a moment.")]
    Broken(#[from] Broken),
}

impl Error {
    /// The refusal, unless something is broken.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Broken(_) => None,
        }
    }

    /// Whether what was to be changed may be changed all the same: somebody has to look.
    pub(crate) fn is_open(&self) -> bool {
        self.is_unknown() || matches!(self, Self::Broken(Broken::Forgotten(_)))
    }

    /// Whether it may still be under way, so that looking says nothing when there is nothing.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Broken(Broken::Unknown(_)))
    }

    /// Says which of many orders a refusal is about.
    pub(crate) fn of_request(self, index: usize) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(Refusal::Order {
                index,
                refusal: Box::new(refusal),
            }),
            broken @ Self::Broken(_) => broken,
        }
    }

    /// The words for whoever runs the server, to whom what is broken may be told.
    #[must_use]
    pub fn for_operator(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.to_string(),
            Self::Broken(Broken::Database(error)) if is_busy(error) => {
                format!(
                    "the database was busy for too long, nothing was changed; try again: {error}"
                )
            }
            Self::Broken(broken) => format!("nothing was changed: {broken}"),
        }
    }

    /// The database's own code: PostgreSQL's five characters, or SQLite's extended number.
    pub(crate) fn database_code(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Broken(Broken::Database(sqlx::Error::Database(error))) => error.code(),
            Self::Broken(Broken::Sqlite(rusqlite::Error::SqliteFailure(error, _))) => {
                Some(error.extended_code.to_string().into())
            }
            _ => None,
        }
    }

    /// Whether the rows themselves are at fault: other work of the same transaction may succeed
    /// without them.
    pub(crate) fn is_about_rows(&self) -> bool {
        /// `SQLITE_CONSTRAINT` in the lowest byte of an extended code.
        const CONSTRAINT: i64 = 19;
        match self {
            Self::Broken(
                Broken::Corrupt { .. }
                | Broken::RowCount { .. }
                | Broken::Json(_)
                | Broken::MoneyOverflow,
            ) => true,
            // PostgreSQL's classes: data, integrity constraint.
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

    /// Whether a commit failed because SQLite's log couldn't be synced: its pages may reach the
    /// disk or not.
    pub(crate) fn is_failed_sync(&self) -> bool {
        /// `SQLITE_IOERR_FSYNC` and `SQLITE_IOERR_DIR_FSYNC`.
        const FAILED: [&str; 2] = ["1034", "1290"];
        let code = self.database_code();
        code.is_some_and(|code| FAILED.contains(&code.as_ref()))
    }

    /// Whether the database ended this transaction for the sake of another one: nothing of it is
    /// stored, and it can be tried again at once.
    pub(crate) fn is_conflict(&self) -> bool {
        /// PostgreSQL: serialization failure, deadlock.
        const CODES: [&str; 2] = ["40001", "40P01"];
        let code = self.database_code();
        code.is_some_and(|code| CODES.contains(&code.as_ref()))
    }

    /// What the SMS API answers for it: `unavailable` where waiting helps.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Broken(Broken::Database(error)) if is_busy(error) => Reason::Unavailable,
            Self::Broken(Broken::Sqlite(error)) if is_busy_file(error) => Reason::Unavailable,
            Self::Broken(Broken::Forgotten(_)) => Reason::Unavailable,
            Self::Broken(Broken::Shared(error)) => error.reason(),
            _ => Reason::Internal,
        }
    }
}

/// Whether the database only had no time or isn't there now: no connection became free, another
/// process wrote for long, the server is being restarted. Trying again helps.
fn is_busy(error: &sqlx::Error) -> bool {
    /// SQLITE_BUSY; extended codes carry it in their lowest byte.
    const BUSY: i64 = 5;
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => match error.code().as_deref() {
            // PostgreSQL's codes have five characters.
            Some(code) if code.len() == 5 => is_busy_code(code),
            Some(code) => code.parse::<i64>().is_ok_and(|code| code & 0xff == BUSY),
            None => false,
        },
        _ => is_cut(error),
    }
}

/// Whether another process wrote to the file for too long.
fn is_busy_file(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// PostgreSQL: connection, serialization and deadlock, resources but for a full disk, lock and
/// statement timeouts, the server's end.
fn is_busy_code(code: &str) -> bool {
    const CODES: [&str; 3] = ["55P03", "57014", "25P03"];
    const CLASSES: [&str; 4] = ["08", "40", "53", "57"];
    CODES.contains(&code) || (code != "53100" && CLASSES.contains(&&code[..2]))
}

/// Whether a connection was cut before anything was begun on it.
pub(crate) fn is_cut(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // The server ends, or isn't ready yet.
        sqlx::Error::Database(error) => {
            let code = error.code();
            code.is_some_and(|code| ["57P01", "57P02", "57P03"].contains(&code.as_ref()))
        }
        _ => false,
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Broken(Broken::Database(error))
    }
}

/// A fault of the database or the machine.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    #[error("database: {0}")]
    Sqlite(rusqlite::Error),
    #[error("{table}.{column} holds {value:?}, which can't be read")]
    Corrupt {
        table: &'static str,
        column: &'static str,
        value: String,
    },
    #[error("a write touched {actual} rows of {table} and not {expected}")]
    RowCount {
        table: &'static str,
        expected: usize,
        actual: u64,
    },
    #[error("a commit wasn't answered, and what became of it can't be found out: {0}")]
    Unknown(sqlx::Error),
    #[error("a commit wasn't answered, and the server crashed and doesn't know it any more: {0}")]
    Forgotten(sqlx::Error),
    #[error("{0}")]
    Shared(Arc<Error>),
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("password hash: {0}")]
    PasswordHash(String),
    #[error("a task failed: {0}")]
    Task(String),
    #[error("file: {0}")]
    File(std::io::Error),
    #[error("no reference is free")]
    ReferencesUsedUp,
    #[error("a sum of money is more than can be held")]
    MoneyOverflow,
}

/// What the rules refuse, in words that say what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("An account with this e-mail exists already. Sign in, or reset the password.")]
    EmailTaken,
    #[error("E-mail or password is wrong.")]
    WrongCredentials,
    #[error("The password is wrong.")]
    WrongPassword,
    #[error("Too many attempts. Try again in {} minutes.", (.retry_after_s + 59) / 60)]
    Throttled { retry_after_s: i64 },
    #[error("You already have an application of this category; an account has one of each.")]
    CategoryTaken,
    #[error(
        "You already have an application without a sender name. Request a sender name for it, or give this one a name."
    )]
    SenderlessTaken,
    #[error("This sender name belongs to another customer; choose another one.")]
    SenderNameTaken,
    #[error("This sender name is already in use by the application.")]
    SenderNameUnchanged,
    #[error("There is no such application.")]
    NoSuchApplication,
    #[error("There is no such request for a sender name.")]
    NoSuchSenderRequest,
    #[error("There is no account with this e-mail.")]
    NoSuchAccount,
    #[error("There is no carrier with this name in the settings.")]
    NoSuchCarrier,
    #[error("There is no such device; it may be signed out already.")]
    NoSuchDevice,
    #[error("The application is {status}: it can't be {action}.")]
    StatusConflict {
        status: ApplicationStatus,
        action: &'static str,
    },
    #[error("Activation can be requested for a Pending application; this one is {status}.")]
    ActivationNotPossible { status: ApplicationStatus },
    #[error("This request was decided before: it is {}.", status.as_str())]
    SenderDecided { status: SenderStatus },
    #[error("Say why: the customer sees the reason.")]
    ReasonMissing,
    #[error("The amount must be greater than 0.")]
    InvalidAmount,
    #[error("The bank id must have 1 to 255 characters.")]
    InvalidBankId,
    #[error(
        "The bank id {bank_id} is known with another reference or amount; nothing was credited."
    )]
    BankIdConflict { bank_id: String },
    /// Which of many orders was refused, counted from 0; the others weren't done either.
    #[error("{refusal}")]
    Order { index: usize, refusal: Box<Refusal> },
    #[error("There is no deposit with this bank id.")]
    NoSuchDeposit,
    #[error("This deposit was credited before.")]
    DepositAssigned,
    #[error("The balance would become more than can be held.")]
    BalanceTooLarge,
    #[error("This link is used or too old. Ask for a new one.")]
    ResetLinkInvalid,
    #[error("The file exists already; choose another name.")]
    FileExists,
    #[error("The database is a server: copy it with its own tools, like pg_dump.")]
    NoFileDatabase,
    #[error("The cursor isn't one that was given out.")]
    InvalidCursor,
}

/// Why a service can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database URL {url} can't be used: {why}")]
    Url { url: String, why: &'static str },
    #[error("the database can't be opened: {0}")]
    Database(sqlx::Error),
    #[error(
        "the database server {0} doesn't answer: is it running, and can it be reached from here?"
    )]
    NoAnswer(String),
    #[error("the database server {url} can't be used: {why}: {error}")]
    Server {
        url: String,
        why: &'static str,
        error: sqlx::Error,
    },
    #[error("{} is no SQLite database; is the path right?", .0.display())]
    NotADatabase(PathBuf),
    #[error("the database didn't become free in time, nothing was changed; try again: {0}")]
    Busy(sqlx::Error),
    #[error(
        "the database's user has no right to do this: {0}; it must own the schema, as who creates a database does"
    )]
    NoRight(sqlx::Error),
    #[error(
        "the database is of a newer release than this program: its schema has version {0}; start that release"
    )]
    Newer(i64),
    #[error("the database can't be migrated: {0}")]
    Migrate(sqlx::migrate::MigrateError),
    #[error("the file of the database can't be made or read: {0}")]
    File(std::io::Error),
    #[error("the machine gives no thread: {0}")]
    Thread(std::io::Error),
    #[error("there is no database {}: is the path right? `heliograph migrate` makes a new one", .0.display())]
    Missing(PathBuf),
    #[error(
        "the database is of an older release: run `heliograph migrate`, or start a server of this release first"
    )]
    Older,
    #[error(
        "the database was made by an earlier build of this program, from before its first release, and can't be \
         brought up to date: start with an empty database"
    )]
    EarlierBuild,
    #[error("there is nothing in this database: is the URL right? `heliograph migrate` sets it up")]
    Empty,
    #[error(
        "there were too many processes on this database within the last hour; wait, or end some"
    )]
    TooManyNodes,
    #[error("another process serves {0}; only one can")]
    Served(String),
    #[error("uploads wait in {}, which isn't there: is the data folder right? Make it to give them up", .0.display())]
    SpoolMissing(PathBuf),
    #[error("the currency is {stored}, fixed at first start; the settings say {wanted}")]
    Currency { stored: String, wanted: String },
    #[error(transparent)]
    Broken(Broken),
    #[error(transparent)]
    Refused(Refusal),
}

impl OpenError {
    /// Why a first connection failed, in words that say what to do.
    pub(crate) fn connecting(error: sqlx::Error, url: &str) -> Self {
        let code = match &error {
            sqlx::Error::Database(error) => error.code().map(Cow::into_owned),
            sqlx::Error::Io(_) => Some("io".to_owned()),
            sqlx::Error::Tls(_) => Some("tls".to_owned()),
            sqlx::Error::Configuration(_) => Some("configuration".to_owned()),
            _ => None,
        };
        let why = match code.as_deref() {
            Some("28P01" | "28000") => {
                "user or password is wrong, or the user may not log in from here"
            }
            Some("3D000") => "there is no such database; make it with createdb",
            Some("53300") => {
                "it has no connection free; raise max_connections or run fewer processes"
            }
            Some("57P03") => "it is starting or stopping; try again",
            Some("io") => "no connection; are host and port right, and is it running?",
            Some("tls") => "no secure connection; see sslmode",
            Some("configuration") => "the URL can't be read",
            _ => return Self::from(error),
        };
        let url = url.to_owned();
        Self::Server { url, why, error }
    }
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        if code.as_deref() == Some("42501") {
            Self::NoRight(error)
        } else if is_busy(&error) {
            Self::Busy(error)
        } else {
            Self::Database(error)
        }
    }
}

impl From<sqlx::migrate::MigrateError> for OpenError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError;
        match error {
            MigrateError::Execute(error) => Self::from(error),
            // It was applied, and isn't among ours.
            MigrateError::VersionMissing(version) => Self::Newer(version),
            error => Self::Migrate(error),
        }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        match error {
            Error::Broken(Broken::Database(error)) => Self::from(error),
            Error::Broken(broken) => Self::Broken(broken),
            Error::Refused(refusal) => Self::Refused(refusal),
        }
    }
}
