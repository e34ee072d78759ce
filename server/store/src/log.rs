//! Checkpoints: moving pages from SQLite's write-ahead log into the database file.
//!
//! A second connection moves most pages, in its own thread, while commit groups continue to write.
//! SQLite restarts the log only after all its pages have been moved, so the writer itself moves the
//! few pages that were added in the meantime.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags, ffi};

use crate::error::{Error, Fault, Result};

/// Moves pages of the log while others write.
pub struct LogMover {
    path: PathBuf,
    /// The database file, to sync it. It may be closed only after all connections of the store:
    /// closing a file drops all locks that this process holds on it (POSIX). [`Drop`] doesn't know
    /// whether the connections are closed, so it leaks the file.
    file: Mutex<Option<File>>,
    state: Mutex<State>,
    moved: Condvar,
}

enum State {
    Idle,
    Moving,
    /// A move has ended. The next writer takes its result.
    Moved(Result<()>),
}

impl LogMover {
    /// # Errors
    /// When the file can't be opened.
    pub fn new(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::Failed(Fault::File(error)))?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(Some(file)),
            state: Mutex::new(State::Idle),
            moved: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts moving the pages that are in the log now. Does nothing if a move is in progress or
    /// its result hasn't been taken yet.
    pub fn start(self: &Arc<Self>) {
        let mut state = self.state();
        if !matches!(*state, State::Idle) {
            return;
        }
        let mover = Arc::clone(self);
        let thread = std::thread::Builder::new().name("log move".to_owned());
        let started = thread.spawn(move || {
            let moving = std::panic::catch_unwind(AssertUnwindSafe(|| mover.move_pages()));
            // After a panic the next writer moves all pages itself.
            *mover.state() = State::Moved(moving.unwrap_or(Ok(())));
            mover.moved.notify_all();
        });
        *state = match started {
            Ok(_) => State::Moving,
            // Without a thread the next writer moves all pages itself.
            Err(error) => State::Moved(Err(Fault::Task(error.to_string()).into())),
        };
    }

    /// Returns whether the last move has ended and its result hasn't been taken yet.
    pub(crate) fn is_moved(&self) -> bool {
        matches!(*self.state(), State::Moved(_))
    }

    /// Takes the result of the last move. Returns `None` if a move is in progress, or if there is
    /// no result to take.
    pub(crate) fn take_result(&self) -> Option<Result<()>> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Idle) {
            State::Moved(result) => Some(result),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Waits for the current move to end.
    pub fn wait(&self) {
        let mut state = self.state();
        while matches!(*state, State::Moving) {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Closes the file after the current move. The caller must have closed all SQLite connections.
    pub fn close(&self) {
        self.wait();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.take();
    }

    fn move_pages(&self) -> Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.execute_batch("PRAGMA synchronous = FULL")?;
        checkpoint(&conn)?;
        // If pages were added to the log during this move, SQLite hasn't synced the file: it leaves
        // the sync to the move that empties the log.
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let synced = file.as_ref().map_or(Ok(()), File::sync_data);
        synced.map_err(|error| {
            let code = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
            rusqlite::Error::SqliteFailure(code, Some(error.to_string())).into()
        })
    }
}

impl Drop for LogMover {
    fn drop(&mut self) {
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::forget(file.take());
    }
}

pub struct LogPages {
    pub all: i32,
    /// The number of pages that are in the database file too.
    pub moved: i32,
}

/// Moves as many pages as possible without waiting for readers or the writer.
pub(crate) fn checkpoint(conn: &Connection) -> Result<LogPages> {
    let pages = |row: &rusqlite::Row<'_>| Ok(LogPages { all: row.get(1)?, moved: row.get(2)? });
    Ok(conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages)?)
}
