//! The one connection that writes to a SQLite file.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::log::{LogMover, checkpoint};
use super::sqlite;
use crate::error::{Error, Fault, Result};
use crate::planted::is_planted;

/// The number of statements that stay prepared. A commit group has about fifty.
const PREPARED_MAX: usize = 256;

/// The number of new pages (of 4 KiB) in the write-ahead log at which a checkpoint begins.
const LOG_PAGES: i32 = 4000;
/// At this number of pages, a commit waits for the checkpoint, because pages are added faster than
/// the checkpoint moves them.
const LOG_PAGES_MAX: i32 = 4 * LOG_PAGES;

/// The pause before each retry while another process writes to the file, and the maximum number of
/// retries.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
const BUSY_ATTEMPTS: i32 = 10_000;

/// SQLite calls the progress handler each time its virtual machine has done this many steps. The
/// handler interrupts a short read at its [`SHORT_READ`]th call: 5,000 steps take about 0.2 ms.
const STEPS: i32 = 1000;
const SHORT_READ: u32 = 5;

thread_local! {
    /// The number of pages in the log after the last commit on this thread.
    static PAGES: Cell<i32> = const { Cell::new(0) };
    /// How often the progress handler may still be called before it interrupts this thread's short
    /// read. `None` if no short read is running.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The connection that writes to a SQLite file. Each writer passes it on to the next one.
pub struct FileConnection {
    conn: Connection,
    /// The number of pages in the log. After a checkpoint, only those that aren't in the file yet.
    log_pages: i32,
    /// The number of pages in the log at the last checkpoint. 0 if the log has restarted since.
    /// While a long read needs the log, the log can't restart, and a checkpoint at every commit
    /// would achieve nothing.
    seen_pages: i32,
    mover: Arc<LogMover>,
}

impl FileConnection {
    pub fn open(file: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(file, flags)?;
        conn.set_prepared_statement_cache_capacity(PREPARED_MAX);
        conn.execute_batch(sqlite::WRITER)?;
        if is_planted("commits-not-synced") {
            conn.execute_batch("PRAGMA synchronous = NORMAL")?;
        }
        conn.busy_handler(Some(wait_for_others))?;
        limit_short_reads(&conn)?;
        // With this setting, a statement's plan doesn't depend on the bound values. Without it,
        // SQLite recompiles a statement at each execution if the condition of a partial index might
        // follow from a parameter.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // Replaces SQLite's own hook, which runs a checkpoint inside the commit that reaches the
        // limit, and hides errors.
        conn.wal_hook(Some(|_, pages| {
            PAGES.set(pages);
            Ok(())
        }));
        Ok(Self { conn, log_pages: 0, seen_pages: 0, mover: Arc::new(LogMover::new(file)?) })
    }

    pub fn conn(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// Begins a transaction that takes the write lock at once. A deferred transaction that reads
    /// first would fail with a lock error at its first write.
    pub fn begin(&mut self) -> Result<()> {
        self.end();
        blocking(|| {
            self.conn.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
            Ok(())
        })
    }

    /// Commits the transaction. Its changes are on disk when this returns.
    pub fn commit(&mut self) -> Result<()> {
        blocking(|| {
            PAGES.set(self.log_pages);
            self.conn.prepare_cached("COMMIT")?.raw_execute()?;
            self.log_pages = PAGES.get();
            Ok(())
        })
    }

    /// Starts a checkpoint on a separate thread if the log has many new pages. Waits for the
    /// checkpoint if the log has too many.
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

    /// Returns the mover, which runs checkpoints while others write.
    pub(crate) fn mover(&self) -> Arc<LogMover> {
        Arc::clone(&self.mover)
    }

    /// Finishes a checkpoint by moving the pages that were added during it, so that the log can
    /// restart.
    pub fn end_log_move(&mut self) -> Result<()> {
        match self.mover.take_result() {
            None => return Ok(()),
            Some(Err(error)) if error.is_failed_sync() => return Err(error),
            Some(Err(error)) => {
                tracing::warn!(
                    detail = ?error,
                    "the checkpoint thread failed; the writer runs the checkpoint instead"
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

    /// Returns the bytes of the log that aren't in the file yet.
    pub fn log_bytes(&self) -> u64 {
        u64::try_from(self.log_pages).unwrap_or(0) * 4096
    }

    /// Rolls back the open transaction, if any. Some errors, such as a full disk, make SQLite roll
    /// back on its own.
    pub fn end(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction can't be rolled back");
        }
    }
}

/// Waits for another process that writes to the file, such as the command line. Returns false after
/// too many attempts. SQLite's own busy handler waits longer each time, so that other writers would
/// overtake this process again and again.
fn wait_for_others(attempts: i32) -> bool {
    std::thread::sleep(BUSY_PAUSE);
    attempts < BUSY_ATTEMPTS
}

/// Ends short reads of this connection when they take too many steps.
pub fn limit_short_reads(conn: &Connection) -> Result<()> {
    let is_too_long = || {
        let left = LEFT.get();
        LEFT.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    };
    Ok(conn.progress_handler(STEPS, Some(is_too_long))?)
}

/// Runs a read on this thread. If it turns out to be long, runs it again without blocking the other
/// tasks of this thread. Most reads are short: to move the other tasks to another thread would take
/// longer than the read.
pub fn reading<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    struct Short;
    impl Drop for Short {
        fn drop(&mut self) {
            LEFT.set(None);
        }
    }
    LEFT.set(Some(SHORT_READ));
    let short = Short;
    let done = read();
    drop(short);
    match done {
        Err(Error::Failed(Fault::Sqlite(error)))
            if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) =>
        {
            blocking(read)
        }
        done => done,
    }
}

/// Runs work that may block, without blocking the other tasks of this thread.
pub fn blocking<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let handle = Handle::try_current();
    match handle.map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A thread without a runtime, or the only thread of a test.
        _ => work(),
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(Fault::Sqlite(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_read_runs_again() {
        let conn = Connection::open_in_memory().unwrap();
        limit_short_reads(&conn).unwrap();
        let count = |rows: i64| -> Result<i64> {
            let sql = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT $1)
                       SELECT count(*) FROM n";
            Ok(conn.query_row(sql, [rows], |row| row.get(0))?)
        };
        for (rows, runs) in [(10, 1), (100_000, 2), (10, 1)] {
            let mut run = 0;
            let counted = reading(|| {
                run += 1;
                count(rows)
            });
            assert_eq!((counted.unwrap(), run), (rows, runs));
        }
        assert_eq!(count(100_000).unwrap(), 100_000);
    }
}
