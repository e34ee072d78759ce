//! Moving the pages of SQLite's log into the database's file.
//!
//! A second connection moves most pages, on a thread of its own, while commit groups go on. SQLite
//! begins the log anew only when all of its pages are moved; so the writer moves the few pages that
//! were added meanwhile.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags, ffi};

use crate::error::{Error, Fault, Result};

/// Moves the log's pages while others write.
pub(crate) struct LogMover {
    path: PathBuf,
    /// The database's file, to be synced. The file is closed after all of the store's connections,
    /// and never where that isn't known: closing a file drops the locks that all connections of
    /// this process hold on it (POSIX).
    file: Mutex<Option<File>>,
    state: Mutex<State>,
    moved: Condvar,
}

enum State {
    Idle,
    Moving,
    /// A move is over; the next writer takes its result.
    Moved(Result<()>),
}

impl LogMover {
    /// # Errors
    /// When the file can't be opened.
    pub(crate) fn new(path: &Path) -> Result<Self> {
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

    /// Begins to move the pages that the log has now, unless a move is under way or its result
    /// isn't taken yet.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut state = self.state();
        if !matches!(*state, State::Idle) {
            return;
        }
        let mover = Arc::clone(self);
        let thread = std::thread::Builder::new().name("log move".to_owned());
        let started = thread.spawn(move || {
            let moving = std::panic::catch_unwind(AssertUnwindSafe(|| mover.move_pages()));
            // After a panic the next writer moves all pages.
            *mover.state() = State::Moved(moving.unwrap_or(Ok(())));
            mover.moved.notify_all();
        });
        *state = match started {
            Ok(_) => State::Moving,
            // Without a thread the next writer moves all pages.
            Err(error) => State::Moved(Err(Fault::Task(error.to_string()).into())),
        };
    }

    /// Whether a move is over whose result nobody has taken yet.
    pub(crate) fn is_moved(&self) -> bool {
        matches!(*self.state(), State::Moved(_))
    }

    /// Takes the result of the last move; `None` if no move is over, or its result was taken
    /// before.
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

    /// Waits until nothing is being moved.
    pub(crate) fn wait(&self) {
        let mut state = self.state();
        while matches!(*state, State::Moving) {
            state = self
                .moved
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Closes the file, once nothing is being moved. The caller has closed SQLite's connections.
    pub(crate) fn close(&self) {
        self.wait();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.take();
    }

    fn move_pages(&self) -> Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.execute_batch("PRAGMA synchronous = FULL")?;
        checkpoint(&conn)?;
        // SQLite leaves the sync to the move that ends the log, where pages were added meanwhile.
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

/// How many pages a log has.
pub(crate) struct LogPages {
    pub(crate) all: i32,
    /// The pages that are in the database's file too.
    pub(crate) moved: i32,
}

/// Moves the pages that no reader needs in the log, without waiting for anybody.
pub(crate) fn checkpoint(conn: &Connection) -> Result<LogPages> {
    let pages = |row: &rusqlite::Row<'_>| {
        Ok(LogPages {
            all: row.get(1)?,
            moved: row.get(2)?,
        })
    };
    Ok(conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages)?)
}
