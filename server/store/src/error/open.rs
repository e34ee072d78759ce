//! The errors that can occur when a service is opened.

use std::borrow::Cow;
use std::path::PathBuf;

use super::fault::is_busy;
use super::{Error, Fault, Refusal, Uncertain};

/// Why a service can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database URL {url} can't be used: {why}")]
    Url { url: String, why: &'static str },
    #[error("the database can't be opened: {0}")]
    Database(sqlx::Error),
    #[error("the database can't be opened: {0}")]
    Sqlite(rusqlite::Error),
    #[error(
        "the database server {0} doesn't answer: is it running, and can it be reached from here?"
    )]
    NoAnswer(String),
    #[error("the database server {url} can't be used: {why}: {error}")]
    Server { url: String, why: &'static str, error: sqlx::Error },
    #[error("{} isn't a SQLite database; is the path right?", .0.display())]
    NotADatabase(PathBuf),
    #[error("the database didn't become free in time, nothing was changed; try again: {0}")]
    Busy(sqlx::Error),
    #[error(
        "the database's user has no right to do this: {0}; it must own the schema, as the user \
         who creates a database does"
    )]
    NoRight(sqlx::Error),
    #[error(
        "the database is of a newer release than this program can work with: its schema has version \
         {0}; start that release, or restore the backup from before its migration"
    )]
    Newer(i64),
    #[error("the database can't be migrated: {0}")]
    Migrate(sqlx::migrate::MigrateError),
    #[error("the database file can't be created or read: {0}")]
    File(std::io::Error),
    #[error("can't start a thread: {0}")]
    Thread(std::io::Error),
    #[error("there is no database {}: is the path right? `heliograph migrate` makes a new one", .0.display())]
    Missing(PathBuf),
    #[error(
        "the database is of an older release: run `heliograph migrate`, or start a server of this \
         release first"
    )]
    Older,
    #[error(
        "the database was made by an earlier build of this program that isn't a release, and can't \
         be brought up to date: start that build, or start with an empty database"
    )]
    EarlierBuild,
    #[error(
        "the database is half distributed: run `heliograph distribute --shards {0}`, which resumes \
         where it stopped"
    )]
    HalfDistributed(i64),
    #[error("the database server is PostgreSQL {version}: upgrade it to {least} or newer")]
    OldServer { version: String, least: u32 },
    #[error("this database is empty: is the URL right? `heliograph migrate` sets it up")]
    Empty,
    #[error(
        "there were too many processes on this database within the last hour; wait, or end some"
    )]
    TooManyNodes,
    #[error("another process serves {0}; only one can")]
    Served(String),
    #[error("uploads wait in {}, which doesn't exist: is the data folder right? Create it to \
        discard these uploads", .0.display())]
    SpoolMissing(PathBuf),
    #[error("{} exists already: move it away, with its -wal and -shm files, if it is to be \
        replaced", .0.display())]
    DatabaseExists(PathBuf),
    #[error("{} lacks uploads that the backup needs: put the whole folder beside the backup. If it is \
        lost, copy the backup to the path of the database instead", .0.display())]
    UploadsMissing(PathBuf),
    #[error("{} has uploads already: move it away if it is to be replaced", .0.display())]
    SpoolsExist(PathBuf),
    #[error("{} is damaged: {}", .0.display(), .1)]
    Damaged(PathBuf, String),
    #[error("the currency is {stored}, fixed at first start; the settings say {wanted}")]
    Currency { stored: String, wanted: String },
    #[error(transparent)]
    Failed(Fault),
    #[error(transparent)]
    Uncertain(Uncertain),
    #[error(transparent)]
    Refused(Refusal),
}

impl OpenError {
    /// Whether the database server can't be reached or is just starting, so that a later attempt
    /// may succeed.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::NoAnswer(_) => true,
            Self::Server { error, .. } => {
                // PostgreSQL is starting.
                let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
                matches!(error, sqlx::Error::Io(_)) || code.as_deref() == Some("57P03")
            }
            _ => false,
        }
    }

    /// Returns the error for a first connection that failed, with a text that says what to do.
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
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
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
            // This version was applied to the database, but the program doesn't have it.
            MigrateError::VersionMissing(version) => Self::Newer(version),
            error => Self::Migrate(error),
        }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        match error {
            Error::Failed(Fault::Database(error)) => Self::from(error),
            Error::Failed(Fault::Sqlite(error)) => Self::Sqlite(error),
            Error::Failed(fault) => Self::Failed(fault),
            Error::Uncertain(uncertain) => Self::Uncertain(uncertain),
            Error::Refused(refusal) => Self::Refused(refusal),
        }
    }
}
