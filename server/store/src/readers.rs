//! Read-only connections and snapshots.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::OpenFlags;
use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::file::{blocking, limit_short_reads};
use super::query::{Backend, Connection, run};
use super::{postgres, sqlite};
use crate::error::{Fault, Result};

/// The timeout for each wait before a transaction: for a connection, for other verbs, at the gate,
/// and for the transaction to begin.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of statements that a connection to a SQLite file keeps prepared.
const PREPARED_MAX: usize = 100;

/// A pool of read-only connections.
#[derive(Clone)]
pub(crate) enum Readers {
    File(Arc<FileReaders>),
    Postgres(PgPool),
}

/// A read-only connection. Dropping it returns it to its pool.
pub enum Reader {
    File(FileReader),
    Postgres(PoolConnection<Postgres>),
    /// A PostgreSQL connection in a read-only transaction, whose statements see one snapshot.
    Snapshot(Transaction<'static, Postgres>),
}

impl Readers {
    /// Returns a connection that isn't in a transaction.
    pub(crate) async fn acquire(&self) -> Result<Reader> {
        Ok(match self {
            Self::File(readers) => Reader::File(readers.acquire().await?),
            Self::Postgres(pool) => Reader::Postgres(Box::pin(pool.acquire()).await?),
        })
    }

    /// Begins a read-only transaction.
    pub(crate) async fn snapshot(&self) -> Result<Reader> {
        Ok(match self {
            Self::File(readers) => {
                let mut reader = Reader::File(readers.acquire().await?);
                run(&mut reader, "BEGIN").await?;
                reader
            }
            Self::Postgres(pool) => {
                let begun = Box::pin(pool.begin_with(postgres::BEGIN_SNAPSHOT));
                Reader::Snapshot(begun.await?)
            }
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::File(readers) => readers.slots.is_closed(),
            Self::Postgres(pool) => pool.is_closed(),
        }
    }

    /// Waits until all connections are back, and closes them.
    pub(crate) async fn close(&self) {
        match self {
            Self::File(readers) => readers.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Connection for Reader {
    fn backend(&mut self) -> Backend<'_> {
        match self {
            Self::File(reader) => Backend::File(reader.conn.as_mut()),
            Self::Postgres(conn) => Backend::Postgres(conn),
            Self::Snapshot(tx) => Backend::Postgres(tx),
        }
    }
}

/// The connections that read a SQLite file.
pub(crate) struct FileReaders {
    file: PathBuf,
    count: u32,
    slots: Arc<Semaphore>,
    /// The open connections that are not in use.
    free: Mutex<Vec<rusqlite::Connection>>,
}

/// A connection that reads a SQLite file.
pub struct FileReader {
    /// `None` only while this reader is being dropped.
    conn: Option<rusqlite::Connection>,
    readers: Arc<FileReaders>,
    #[expect(dead_code, reason = "held until the connection is back in its pool")]
    permit: OwnedSemaphorePermit,
}

impl FileReaders {
    /// Makes a pool of at most `count` connections, which are opened when they are needed.
    pub(crate) fn new(file: &Path, count: u32) -> Self {
        let slots = Arc::new(Semaphore::new(count as usize));
        Self { file: file.to_owned(), count, slots, free: Mutex::default() }
    }

    fn free(&self) -> MutexGuard<'_, Vec<rusqlite::Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn acquire(self: &Arc<Self>) -> Result<FileReader> {
        let waiting = Arc::clone(&self.slots).acquire_owned();
        let permit = tokio::time::timeout(ACQUIRE_TIMEOUT, waiting).await;
        let permit = permit.map_err(|_| Fault::TimedOut("waiting for a read-only connection"))?;
        let permit = permit.map_err(|_| Fault::Stopped)?;
        let free = self.free().pop();
        let conn = free.map_or_else(|| blocking(|| self.open()), Ok)?;
        Ok(FileReader { conn: Some(conn), readers: Arc::clone(self), permit })
    }

    fn open(&self) -> Result<rusqlite::Connection> {
        // SQLite writes the index of its write-ahead log (the -shm file) even for readers.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = rusqlite::Connection::open_with_flags(&self.file, flags)?;
        conn.set_prepared_statement_cache_capacity(PREPARED_MAX);
        conn.execute_batch(sqlite::READER)?;
        limit_short_reads(&conn)?;
        Ok(conn)
    }

    async fn close(&self) {
        // Fails if the pool is already closed.
        let all = self.slots.acquire_many(self.count).await;
        self.slots.close();
        drop(all);
        self.free().clear();
    }
}

impl Drop for FileReader {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        // If the transaction can't be rolled back, dropping the connection closes it.
        if conn.is_autocommit() || conn.execute_batch("ROLLBACK").is_ok() {
            self.readers.free().push(conn);
        }
    }
}
