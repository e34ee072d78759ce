//! The one connection that writes to a SQLite file.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::log::{LogMover, checkpoint};
use super::sqlite;
use crate::error::{Error, Fault, Result};

/// How many statements stay prepared; the commit group has about fifty.
const PREPARED_MAX: usize = 256;

/// How many new pages (of 4 KiB) the log has when it is moved into the file.
const LOG_PAGES: i32 = 4000;
/// With this many pages to be moved, a commit waits for the move: pages are added faster than they
/// are moved.
const LOG_PAGES_MAX: i32 = 4 * LOG_PAGES;

/// The pause before each retry while another process writes to the file, and the most retries.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
const BUSY_ATTEMPTS: i32 = 10_000;

thread_local! {
    /// Pages in the log after the last commit on this thread.
    static PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The connection that writes to a SQLite file, which each writer passes on to the next.
pub(crate) struct FileConnection {
    conn: Connection,
    /// How many pages the log has.
    log_pages: i32,
    /// Pages in the log at the last move; 0 once the log began anew. While a long read needs the
    /// log, the log can't begin anew, and a move at every commit would be in vain.
    seen_pages: i32,
    mover: Arc<LogMover>,
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
        conn.busy_handler(Some(wait_for_others))?;
        // With this setting a statement's plan doesn't depend on the bound values. Without it
        // SQLite compiles a statement anew at each execution when the condition of a partial index
        // might follow from a parameter.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // This replaces SQLite's own hook, which moves pages inside the commit that reaches the
        // limit, and hides errors.
        conn.wal_hook(Some(|_, pages| {
            PAGES.set(pages);
            Ok(())
        }));
        Ok(Self {
            conn,
            log_pages: 0,
            seen_pages: 0,
            mover: Arc::new(LogMover::new(file)?),
        })
    }

    pub(crate) fn conn(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// Begins a transaction that may write at once. A deferred transaction that reads first would
    /// fail with a lock error when it comes to write.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.end();
        blocking(|| {
            self.conn.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
            Ok(())
        })
    }

    /// Commits the transaction: what was written is on disk when this returns.
    pub(crate) fn commit(&mut self) -> Result<()> {
        blocking(|| {
            PAGES.set(self.log_pages);
            self.conn.prepare_cached("COMMIT")?.raw_execute()?;
            self.log_pages = PAGES.get();
            Ok(())
        })
    }

    /// Has a thread of its own move the log's pages into the file, if there are many.
    pub(crate) fn begin_to_move_log(&mut self) -> Result<()> {
        if self.log_pages < self.seen_pages {
            self.seen_pages = 0;
        }
        let ready = self.log_pages - self.seen_pages;
        if ready < LOG_PAGES {
            return Ok(());
        }
        self.mover.start();
        if ready < LOG_PAGES_MAX {
            return Ok(());
        }
        blocking(|| {
            self.mover.wait();
            Ok(())
        })?;
        self.end_log_move()
    }

    /// The mover, which moves the log while others write.
    pub(crate) fn mover(&self) -> Arc<LogMover> {
        Arc::clone(&self.mover)
    }

    /// Moves the pages that were added to the log during a move, so that the log begins anew.
    pub(crate) fn end_log_move(&mut self) -> Result<()> {
        match self.mover.take_result() {
            None => return Ok(()),
            Some(Err(error)) if error.is_failed_sync() => return Err(error),
            Some(Err(error)) => {
                tracing::warn!(
                    detail = ?error,
                    "the log can't be moved by a thread of its own; the writer moves it"
                );
            }
            Some(Ok(())) => {}
        }
        blocking(|| {
            let pages = checkpoint(&self.conn)?;
            self.seen_pages = pages.all;
            self.log_pages = pages.all - pages.moved;
            Ok(())
        })
    }

    /// Bytes of the log that aren't in the file yet.
    pub(crate) fn log_bytes(&self) -> u64 {
        u64::try_from(self.log_pages).unwrap_or(0) * 4096
    }

    /// Rolls back what wasn't committed. Some errors, like a full disk, make SQLite roll back by
    /// itself.
    pub(crate) fn end(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction can't be rolled back");
        }
    }
}

/// Waits for another process that writes to the file, like the command line; false after too many
/// attempts. SQLite's own busy handler waits longer each time, so that other writers would overtake
/// this process again and again.
fn wait_for_others(attempts: i32) -> bool {
    std::thread::sleep(BUSY_PAUSE);
    attempts < BUSY_ATTEMPTS
}

/// Runs work that may block, without blocking the other tasks of this thread.
pub(crate) fn blocking<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let handle = Handle::try_current();
    match handle.map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A thread without a runtime, or a test's only thread.
        _ => work(),
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(Fault::Sqlite(error))
    }
}
