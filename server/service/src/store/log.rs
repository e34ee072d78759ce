//! Moving the pages of SQLite's log into the database's file.
//!
//! A connection of its own moves most of them, on a thread of its own, while others write. The log begins anew only
//! once all of its pages are moved; so whoever writes moves the few that were added meanwhile.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags};

use crate::error::Result;

/// Moves pages beside those who write.
pub(crate) struct LogMover {
    file: PathBuf,
    state: Mutex<State>,
    moved: Condvar,
}

enum State {
    Idle,
    Moving,
    /// What it came to, for whoever writes next.
    Moved(Result<()>),
}

impl LogMover {
    pub(crate) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            state: Mutex::new(State::Idle),
            moved: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to move what the log has now, unless that is under way or was done just before.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut state = self.state();
        if !matches!(*state, State::Idle) {
            return;
        }
        let mover = Arc::clone(self);
        let thread = std::thread::Builder::new().name("log move".to_owned());
        let started = thread.spawn(move || {
            let result = move_pages(&mover.file);
            *mover.state() = State::Moved(result);
            mover.moved.notify_all();
        });
        *state = match started {
            Ok(_) => State::Moving,
            // Whoever writes next moves all of it.
            Err(_) => State::Moved(Ok(())),
        };
    }

    /// What the last move came to, once; `None` while there is none or it isn't over.
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
}

fn move_pages(file: &Path) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags)?;
    // The pages are on disk before the log is written over.
    conn.execute_batch("PRAGMA synchronous = FULL")?;
    checkpoint(&conn)?;
    Ok(())
}

/// Moves what it can without waiting for anybody; how many pages are left.
pub(crate) fn checkpoint(conn: &Connection) -> Result<i32> {
    let left = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i32>(1)? - row.get::<_, i32>(2)?);
    Ok(conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], left)?)
}
