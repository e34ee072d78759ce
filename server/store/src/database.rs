//! The database: its connections, and the transactions on them.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use domain::ids::Shard;
use domain::{Reason, Timestamp};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, PgPool, Postgres, Transaction};

use super::batches;
use super::chore::Chore;
use super::dialect::without_password;
use super::file::{FileConnection, blocking};
use super::gate::{Gate, Priority, Slot};
use super::halt::Halt;
use super::hold;
use super::listening::Listener;
use super::log::LogMover;
use super::postgres::{self, SESSION};
use super::query::At;
use super::readers::{ACQUIRE_TIMEOUT, FileReaders, Reader, Readers};
use super::sql::Dialect;
use super::sqlite;
use super::tally::{Counter, Tally};
use super::transaction::{OUTCOME_PAUSE, OUTCOME_TIMEOUT, Tx, Unanswered, Way};
use crate::error::{Error, Fault, OpenError, Refusal, Result, is_cut};

const BEGIN_TIMED_OUT: Fault = Fault::TimedOut("beginning a transaction");

/// Copies a snapshot of a SQLite database into a file. Others can read and write meanwhile.
const COPY: &str = "VACUUM INTO ?1";

/// The database, with connections that write (SQLite has only one) and connections that read.
pub struct Store {
    url: String,
    dialect: Dialect,
    /// The slot of this process among the nodes that serve the database.
    node: AtomicI64,
    /// Whether the tables are distributed over the workers of a Citus cluster.
    is_distributed: AtomicBool,
    /// The locked file that keeps other processes from serving a SQLite database. `None` if this
    /// process doesn't serve the database, and for PostgreSQL.
    serving: Mutex<Option<File>>,
    /// The connections that write to PostgreSQL. `None` for SQLite, whose only writing connection
    /// is in the gate.
    writers: Option<PgPool>,
    gate: Gate,
    /// Moves the pages of SQLite's write-ahead log into the database file. `None` for PostgreSQL.
    mover: Option<Arc<LogMover>>,
    /// The running verb holds this lock, so that verbs run one at a time.
    verbs: Arc<tokio::sync::Mutex<()>>,
    halt: Halt,
    readers: Readers,
}

/// What to do if the file of a SQLite database is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Make,
    /// Refuse to open the database. Otherwise a mistyped path would create an empty database, which
    /// accepts deposits.
    Refuse,
}

/// The connections that write to PostgreSQL, the slots of the gate, the mover and the readers.
type Parts = (Option<PgPool>, Vec<Slot>, Option<Arc<LogMover>>, Readers);

impl Store {
    /// Opens a database.
    pub async fn open(url: &str, missing: Missing) -> std::result::Result<Self, OpenError> {
        let dialect = Dialect::of_url(url)?;
        let parts = if let Some(file) = dialect.file(url) {
            find_file(dialect, file, missing)?;
            let readers = FileReaders::new(file, dialect.readers());
            let file = FileConnection::open(file)?;
            let mover = file.mover();
            (None, vec![Some(Box::new(file))], Some(mover), Readers::File(Arc::new(readers)))
        } else {
            // A pool would retry for a long time and then only report a timeout. So a single
            // connection is tried first, whose error says why PostgreSQL can't be reached.
            let shown = without_password(url);
            let first = tokio::time::timeout(ACQUIRE_TIMEOUT, PgConnection::connect(url)).await;
            let first = first.map_err(|_| OpenError::NoAnswer(shown.clone()))?;
            first.map_err(|error| OpenError::connecting(error, &shown))?.close().await?;
            // A connection is tested after its release, while the next transaction already begins.
            // So the pool has one more connection than there may be writers.
            let writers = postgres::pool_options(dialect.writers() + 1, &[SESSION])
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .test_before_acquire(false)
                .connect(url)
                .await?;
            let readers = postgres::pool_options(dialect.readers(), &[SESSION, postgres::READER])
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .connect(url)
                .await?;
            let slots = (0..dialect.writers()).map(|_| None).collect();
            (Some(writers), slots, None, Readers::Postgres(readers))
        };
        Ok(Self::of_parts(url, dialect, parts))
    }

    /// Opens an existing database only to read it. A SQLite file stays unchanged, unlike with
    /// [`Store::open`], which would change the journal of a copied file.
    pub async fn open_to_read(url: &str) -> std::result::Result<Self, OpenError> {
        let dialect = Dialect::of_url(url)?;
        let Some(file) = dialect.file(url) else {
            return Self::open(url, Missing::Refuse).await;
        };
        find_file(dialect, file, Missing::Refuse)?;
        let readers = FileReaders::new(file, dialect.readers());
        let parts = (None, Vec::new(), None, Readers::File(Arc::new(readers)));
        Ok(Self::of_parts(url, dialect, parts))
    }

    fn of_parts(url: &str, dialect: Dialect, (writers, slots, mover, readers): Parts) -> Self {
        Self {
            url: url.to_owned(),
            dialect,
            node: AtomicI64::new(0),
            is_distributed: AtomicBool::new(false),
            serving: Mutex::new(None),
            writers,
            gate: Gate::new(slots),
            mover,
            verbs: Arc::default(),
            halt: Halt::new(),
            readers,
        }
    }

    /// Makes this process the only one that serves a SQLite database. Otherwise two processes could
    /// both send its messages. Does nothing for PostgreSQL.
    pub fn serve_alone(&self) -> std::result::Result<(), OpenError> {
        let Some(file) = self.dialect.file(&self.url) else {
            return Ok(());
        };
        let lock = File::create(file.with_added_extension("lock")).map_err(OpenError::File)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => OpenError::Served(self.url.clone()),
            TryLockError::Error(error) => OpenError::File(error),
        })?;
        *self.serving.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    /// Sets the slot of this process among the nodes.
    pub fn set_node(&self, slot: i64) {
        self.node.store(slot, Ordering::Relaxed);
    }

    /// Records that the tables are distributed over the workers of a Citus cluster.
    pub fn set_distributed(&self) {
        self.is_distributed.store(true, Ordering::Relaxed);
    }

    pub fn is_distributed(&self) -> bool {
        self.is_distributed.load(Ordering::Relaxed)
    }

    /// Returns the URL that was passed to [`Store::open`].
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the file of a SQLite database, or `None` for PostgreSQL.
    pub fn file(&self) -> Option<&Path> {
        self.dialect.file(&self.url)
    }

    /// Returns an identifier of where this database is stored. A copy of the database has another
    /// identifier. By it, a process recognizes a restored backup.
    pub async fn place(&self) -> Result<String> {
        hold::place(self.file(), &mut self.read().await?).await
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns a connection that reads.
    pub async fn read(&self) -> Result<Reader> {
        self.readers.acquire().await
    }

    /// Returns a connection that reads the rows of a shard.
    pub async fn read_at(&self, shard: Shard) -> Result<At<Reader>> {
        Ok(At { conn: self.read().await?, shard })
    }

    /// Begins a read-only transaction. All its statements see the same snapshot.
    pub async fn snapshot(&self) -> Result<Reader> {
        self.readers.snapshot().await
    }

    /// Begins the transaction of a verb. Waits until no other verb runs.
    pub async fn begin(&self) -> Result<Tx<'_>> {
        // The verb waits for the others before it takes a connection, so that others can use it.
        let waiting = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.verbs).lock_owned());
        let verb = waiting.await.map_err(|_| Fault::TimedOut("waiting for other verbs"))?;
        let begin = self.dialect.begin_verb();
        let mut tx = self.enter(Priority::Verb, Counter::Others, begin).await?;
        tx.verb = Some(verb);
        Ok(tx)
    }

    /// Begins a transaction that writes. Other transactions may write at the same time, so the
    /// caller has to lock the rows that its decisions depend on.
    pub async fn begin_as(&self, priority: Priority) -> Result<Tx<'_>> {
        let counter = match priority {
            Priority::CommitGroup => Counter::Traffic,
            _ => Counter::Others,
        };
        self.enter(priority, counter, self.dialect.begin()).await
    }

    /// Like [`Self::begin_as`], for the rows of a shard.
    pub async fn begin_at(&self, shard: Shard, priority: Priority) -> Result<Tx<'_>> {
        let mut tx = self.begin_as(priority).await?;
        tx.at(shard);
        Ok(tx)
    }

    /// Returns whether a transaction of this process is waiting to write.
    pub fn does_somebody_wait(&self) -> bool {
        self.gate.does_somebody_wait()
    }

    /// Begins the transaction of a chore in a shard. Returns `None` if another transaction is
    /// running the chore in this shard.
    ///
    /// Commit the transaction even if it changed nothing. If it is dropped instead, its rollback
    /// ends some time later, and until then the chore can't begin again.
    pub async fn begin_chore(
        &self,
        chore: Chore,
        shard: Shard,
        priority: Priority,
    ) -> Result<Option<Tx<'_>>> {
        let begin = self.dialect.begin();
        let mut tx = self.enter(priority, Counter::Others, begin).await?;
        let mine = self.dialect.try_lock(&mut tx, chore, shard).await?;
        Ok(mine.then_some(tx))
    }

    async fn enter(
        &self,
        priority: Priority,
        counter: Counter,
        begin: &'static str,
    ) -> Result<Tx<'_>> {
        let entering = tokio::time::timeout(ACQUIRE_TIMEOUT, self.gate.enter(priority));
        let mut permit =
            entering.await.map_err(|_| Fault::TimedOut("waiting for other writers"))?;
        if self.has_failed() || self.is_closed() {
            return Err(Fault::Stopped.into());
        }
        let way = if let Some(file) = permit.file() {
            file.begin()?;
            Way::File(permit)
        } else {
            let tx = self.begin_on_server(begin).await?;
            Way::Pool(Some(Box::new(tx)), permit)
        };
        Ok(self.transaction(way, counter))
    }

    fn transaction(&self, way: Way, counter: Counter) -> Tx<'_> {
        Tx {
            way,
            tally: Tally::new(self.node.load(Ordering::Relaxed), counter),
            shard: None,
            client_address: None,
            dialect: self.dialect,
            is_distributed: self.is_distributed(),
            halt: &self.halt,
            readers: &self.readers,
            verb: None,
        }
    }

    async fn begin_on_server(&self, begin: &'static str) -> Result<Transaction<'static, Postgres>> {
        let writers = self.writers.as_ref().ok_or(Fault::Stopped)?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            // Without a timeout, this would wait forever if the database server has vanished.
            let beginning =
                tokio::time::timeout(ACQUIRE_TIMEOUT, Box::pin(writers.begin_with(begin)));
            match beginning.await.map_err(|_| BEGIN_TIMED_OUT)? {
                // After a restart of the database server, every connection in the pool is broken.
                // No transaction has begun on any of them, so the loop can try one after the other.
                Err(error) if is_cut(&error) && attempts <= self.dialect.writers() + 1 => {}
                started => return Ok(started?),
            }
        }
    }

    /// Finishes a checkpoint of SQLite's write-ahead log: moves the pages that commits added to the
    /// log during the checkpoint.
    pub async fn end_log_move(&self) -> Result<()> {
        let is_moved = self.mover.as_ref().is_some_and(|mover| mover.is_moved());
        if !is_moved || self.is_closed() {
            return Ok(());
        }
        let mut permit = self.gate.enter(Priority::Bulk).await;
        permit.file().map_or(Ok(()), |file| {
            let moved = file.end_log_move();
            moved.inspect_err(|error| self.halt.note(error))
        })
    }

    /// Makes all further writes to the database fail.
    pub fn fail(&self) {
        self.halt.set();
    }

    /// Repeats a query while the database can't be reached, but stops after [`OUTCOME_TIMEOUT`].
    pub async fn insist<T, F: Future<Output = Result<T>>>(&self, ask: impl Fn() -> F) -> Result<T> {
        let asked_at = Instant::now();
        loop {
            match ask().await {
                Err(error)
                    if error.reason() == Reason::Unavailable
                        && asked_at.elapsed() < OUTCOME_TIMEOUT =>
                {
                    tokio::time::sleep(OUTCOME_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// Looks up whether a transaction was stored whose commit got no answer. Waits while the
    /// database server is still committing it.
    pub async fn outcome(&self, unanswered: Unanswered) -> Result<()> {
        unanswered.outcome(&self.readers).await
    }

    /// Returns whether all writes fail from now on.
    pub fn has_failed(&self) -> bool {
        self.halt.is_set()
    }

    /// Waits until a fault makes all further writes fail.
    pub async fn failed(&self) {
        self.halt.wait().await;
    }

    /// Opens a connection to PostgreSQL outside the pools.
    pub async fn connect(&self) -> std::result::Result<PgConnection, sqlx::Error> {
        PgConnection::connect(&self.url).await
    }

    /// Copies a snapshot of a SQLite database into a new file, which only its owner may read. Marks
    /// the copy as a backup.
    ///
    /// # Errors
    /// `NoFileDatabase`, `FileExists`.
    pub fn copy(&self, file: &Path, now: Timestamp) -> Result<()> {
        let from = self.file().ok_or(Refusal::NoFileDatabase)?;
        // The file gets its final name once it is complete. If this function fails before that, the
        // file is deleted.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let part = tempfile::Builder::new()
            .prefix("backup-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(Fault::File)?;
        blocking(|| {
            let conn = rusqlite::Connection::open(from)?;
            conn.execute(COPY, [part.path().to_string_lossy()])?;
            let copy = rusqlite::Connection::open(part.path())?;
            copy.execute(hold::MARK, [now.unix_ms()])?;
            Ok(())
        })?;
        part.as_file().sync_all().map_err(Fault::File)?;
        part.persist_noclobber(file).map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Refused(Refusal::FileExists),
            _ => Error::Failed(Fault::File(error.error)),
        })?;
        Ok(())
    }

    /// Returns the names of the spools that the uploads in a copy of a SQLite database need.
    pub fn uploads_of(copy: &Path) -> Result<Vec<String>> {
        blocking(|| {
            let conn = rusqlite::Connection::open(copy)?;
            let mut spools = conn.prepare(batches::select_spools())?;
            let spools = spools.query_map((), |row| row.get(0))?;
            Ok(spools.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Copies a backup to the path of the SQLite database, where no file may exist. Checks the
    /// copy, and marks it as restored, so that the first process that opens it holds all messages.
    /// `uploads` names the spools of the backup.
    pub fn restore(
        url: &str,
        from: &Path,
        uploads: &[String],
    ) -> std::result::Result<(), OpenError> {
        let dialect = Dialect::of_url(url)?;
        let Some(to) = dialect.file(url) else {
            return Err(OpenError::Refused(Refusal::NoFileDatabase));
        };
        if to.exists() {
            return Err(OpenError::DatabaseExists(to.to_owned()));
        }
        find_file(dialect, from, Missing::Refuse)?;
        // The file gets its final name once it is complete. If this function fails before that, the
        // file is deleted.
        let folder = sqlite::make_folder(to).map_err(OpenError::File)?;
        let mut part = tempfile::Builder::new()
            .prefix("restore-")
            .tempfile_in(folder)
            .map_err(OpenError::File)?;
        File::open(from)
            .and_then(|mut from| std::io::copy(&mut from, &mut part))
            .map_err(OpenError::File)?;
        let damaged = |why| OpenError::Damaged(from.to_owned(), why);
        let found = blocking(|| {
            let conn = rusqlite::Connection::open(part.path())?;
            Ok(conn.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?)
        });
        let found: String = found.map_err(|error| damaged(error.for_operator().clone()))?;
        if found != "ok" {
            return Err(damaged(found));
        }
        blocking(|| {
            let conn = rusqlite::Connection::open(part.path())?;
            conn.execute(hold::MARK_RESTORED, ())?;
            Ok(())
        })?;
        let needed = Self::uploads_of(part.path())?;
        if needed.iter().any(|name| !uploads.contains(name)) {
            return Err(OpenError::UploadsMissing(from.with_added_extension("spool")));
        }
        part.as_file().sync_all().map_err(OpenError::File)?;
        part.persist_noclobber(to).map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => OpenError::DatabaseExists(to.to_owned()),
            _ => OpenError::File(error.error),
        })?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(OpenError::File)
    }

    pub fn is_closed(&self) -> bool {
        self.readers.is_closed()
    }

    /// Listens to the notifications of other processes.
    pub async fn listen(&self) -> std::result::Result<Listener, sqlx::Error> {
        Listener::connect(&self.url).await
    }

    pub async fn close(&self) {
        self.readers.close().await;
        self.gate.close().await;
        if let Some(mover) = self.mover.clone() {
            // On a blocking thread, because `close` waits until the checkpoint has ended.
            let closed = tokio::task::spawn_blocking(move || mover.close()).await;
            if let Err(error) = closed {
                tracing::warn!(%error, "closing the database file failed");
            }
        }
        if let Some(writers) = &self.writers {
            writers.close().await;
        }
        self.serving.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Creates the database file if it is missing and may be created. Checks that the file is a
/// database.
fn find_file(
    dialect: Dialect,
    file: &Path,
    missing: Missing,
) -> std::result::Result<(), OpenError> {
    match missing {
        Missing::Make => sqlite::make_file(file).map_err(OpenError::File)?,
        Missing::Refuse if file.exists() => {}
        Missing::Refuse => return Err(OpenError::Missing(file.to_owned())),
    }
    if dialect.owns(file).map_err(OpenError::File)? {
        Ok(())
    } else {
        Err(OpenError::NotADatabase(file.to_owned()))
    }
}
