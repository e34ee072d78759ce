//! The one connection that writes to a SQLite file.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::sqlite;
use crate::error::{Broken, Error, Result};

/// Statements that stay prepared; the turn has about fifty.
const PREPARED_MAX: usize = 256;

/// The connection that writes to a SQLite file, on its way between those who write.
pub(crate) struct FileConnection {
    conn: Connection,
    log: PathBuf,
}

impl FileConnection {
    /// Opens a file that exists.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(file, flags)?;
        conn.set_prepared_statement_cache_capacity(PREPARED_MAX);
        conn.execute_batch(sqlite::WRITER)?;
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        Ok(Self {
            conn,
            log: log.into(),
        })
    }

    pub(crate) fn conn(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// Begins a transaction. A deferred one that reads first would fail with a lock error when it comes to write.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.end();
        blocking(|| Ok(self.conn.execute_batch("BEGIN IMMEDIATE")?))
    }

    /// Commits: what was written is on disk when this returns.
    pub(crate) fn commit(&mut self) -> Result<()> {
        blocking(|| Ok(self.conn.execute_batch("COMMIT")?))
    }

    /// Rolls back what wasn't committed. Some errors, like that of a full disk, make SQLite do so by itself.
    pub(crate) fn end(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction can't be rolled back");
        }
    }

    /// Bytes of the log, which grows with each commit until its pages are moved into the file.
    pub(crate) fn log_bytes(&self) -> u64 {
        std::fs::metadata(&self.log).map_or(0, |file| file.len())
    }
}

/// Runs what may take its time without keeping other tasks of this thread waiting.
pub(crate) fn blocking<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let handle = Handle::try_current();
    match handle.map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A thread of its own, or a test's only thread.
        _ => work(),
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(Broken::Sqlite(error))
    }
}
