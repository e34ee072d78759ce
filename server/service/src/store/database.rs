//! The database: its connections, and the transactions that are begun on them.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::Reason;
use domain::ids::Shard;
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::{
    Any, AnyConnection, AnyPool, Connection as _, Database, Executor as _, PgPool, Postgres,
    Transaction,
};

use super::chore::Chore;
use super::dialect::without_password;
use super::file::FileConnection;
use super::gate::{Gate, Priority};
use super::halt::Halt;
use super::listening::Listener;
use super::log::LogMover;
use super::postgres::SESSION;
use super::query::{At, Connection, query};
use super::sql::{Dialect, Sql, statements};
use super::sqlite;
use super::tally::{Counter, Tally};
use super::transaction::{OUTCOME_PAUSE, OUTCOME_TIMEOUT, Unanswered, Way, WriteTx};
use crate::error::{Fault, OpenError, Refusal, Result, is_cut};

/// How long to wait for a connection, for other verbs, and for a transaction to begin.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const BEGIN_TIMED_OUT: Fault = Fault::TimedOut("beginning a transaction");

statements! {
    /// Copies the database, consistently, into a file, while others read and write.
    const COPY: Sql = Sql::sqlite("VACUUM INTO $1");
}

/// The database: connections that write (with SQLite only one), and several that read.
pub(crate) struct Store {
    url: String,
    dialect: Dialect,
    /// The slot of this process among the nodes that serve the database.
    node: AtomicI64,
    /// Whether the tables are distributed over the workers of a Citus cluster.
    is_distributed: AtomicBool,
    /// The locked file of a process that serves a SQLite database, which only one process may
    /// serve.
    serving: Mutex<Option<File>>,
    /// Connections that write to a server; the one connection that writes to a SQLite file is in
    /// the gate.
    writers: Option<PgPool>,
    gate: Gate,
    /// Moves the log of a SQLite file.
    mover: Option<Arc<LogMover>>,
    /// Locked by the verb that writes, since one verb writes at a time.
    verbs: Arc<tokio::sync::Mutex<()>>,
    halt: Halt,
    readers: AnyPool,
}

/// What to do when the file of a SQLite database is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Make,
    /// Refuse to open it: a misspelt path must not become an empty database that takes money.
    Refuse,
}

impl Store {
    /// Opens the connections to a database.
    pub(crate) async fn open(url: &str, missing: Missing) -> std::result::Result<Self, OpenError> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::of_url(url)?;
        if let Some(file) = dialect.file(url) {
            find_file(dialect, file, missing)?;
        }
        let (named, url) = (url.to_owned(), dialect.connection_url(url));
        // One connection is tried before the pools: a pool would retry for long and then only
        // report a timeout.
        let first = tokio::time::timeout(ACQUIRE_TIMEOUT, AnyConnection::connect(&url)).await;
        let first = first.map_err(|_| OpenError::NoAnswer(without_password(&named)))?;
        first
            .map_err(|error| OpenError::connecting(error, &without_password(&named)))?
            .close()
            .await?;
        let (writers, places, mover) = if let Some(file) = dialect.file(&named) {
            let file = FileConnection::open(file).map_err(OpenError::from)?;
            let mover = file.mover();
            (None, vec![Some(Box::new(file))], Some(mover))
        } else {
            // One connection more than there are writers: a connection is tested when it is given
            // back, while the next transaction takes another one.
            let writers = options::<Postgres>(dialect)
                .max_connections(dialect.writers() + 1)
                .test_before_acquire(false)
                .after_connect(|conn, _| Box::pin(async { conn.execute(SESSION).await.map(drop) }))
                .connect(&url)
                .await?;
            let places = (0..dialect.writers()).map(|_| None).collect();
            (Some(writers), places, None)
        };
        let readers = options::<Any>(dialect)
            .max_connections(dialect.readers())
            .test_before_acquire(dialect.is_shared())
            .after_connect(move |conn, _| Box::pin(dialect.prepare_reader(conn)))
            .connect(&url)
            .await?;
        Ok(Self {
            url: named,
            dialect,
            node: AtomicI64::new(0),
            is_distributed: AtomicBool::new(false),
            serving: Mutex::new(None),
            writers,
            gate: Gate::new(places),
            mover,
            verbs: Arc::default(),
            halt: Halt::new(),
            readers,
        })
    }

    /// Makes sure that no other process serves this database, where only one process may: two would
    /// send the same messages.
    pub(crate) fn serve_alone(&self) -> std::result::Result<(), OpenError> {
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
    pub(crate) fn set_node(&self, slot: i64) {
        self.node.store(slot, Ordering::Relaxed);
    }

    /// Notes that the tables are distributed over the workers of a Citus cluster.
    pub(crate) fn set_distributed(&self) {
        self.is_distributed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_distributed(&self) -> bool {
        self.is_distributed.load(Ordering::Relaxed)
    }

    /// The URL that a server is connected to with.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// A connection to read with.
    pub(crate) async fn read(&self) -> std::result::Result<PoolConnection<Any>, sqlx::Error> {
        self.readers.acquire().await
    }

    /// A connection to read the rows of a shard with.
    pub(crate) async fn read_at(
        &self,
        shard: Shard,
    ) -> std::result::Result<At<PoolConnection<Any>>, sqlx::Error> {
        let conn = self.read().await?;
        Ok(At { conn, shard })
    }

    /// Begins a transaction that only reads: all its statements see the same snapshot.
    pub(crate) async fn snapshot(
        &self,
    ) -> std::result::Result<Transaction<'static, Any>, sqlx::Error> {
        self.readers.begin_with(self.dialect.begin_snapshot()).await
    }

    /// Begins the transaction of a verb. No other verb runs at the same time.
    pub(crate) async fn begin(&self) -> Result<WriteTx<'_>> {
        // A verb that waits for another verb takes no connection meanwhile.
        let waiting = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.verbs).lock_owned());
        let verb = waiting
            .await
            .map_err(|_| Fault::TimedOut("waiting for other verbs"))?;
        let begin = self.dialect.begin_verb();
        let mut tx = self.enter(Priority::Verb, Counter::Others, begin).await?;
        tx.verb = Some(verb);
        Ok(tx)
    }

    /// Begins a transaction that writes. Others may write at the same time: the transaction locks
    /// the rows that it decides by.
    pub(crate) async fn begin_as(&self, priority: Priority) -> Result<WriteTx<'_>> {
        let counter = match priority {
            Priority::CommitGroup => Counter::Traffic,
            _ => Counter::Others,
        };
        self.enter(priority, counter, self.dialect.begin()).await
    }

    /// Whether a transaction of this process waits to write.
    pub(crate) fn does_somebody_wait(&self) -> bool {
        self.gate.does_somebody_wait()
    }

    /// Begins the transaction of a chore in a shard, which one process at a time does; `None` while
    /// another transaction does the chore there.
    pub(crate) async fn begin_chore(
        &self,
        chore: Chore,
        shard: Shard,
        priority: Priority,
    ) -> Result<Option<WriteTx<'_>>> {
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
    ) -> Result<WriteTx<'_>> {
        let entering = tokio::time::timeout(ACQUIRE_TIMEOUT, self.gate.enter(priority));
        let mut permit = entering
            .await
            .map_err(|_| Fault::TimedOut("waiting for other writers"))?;
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

    fn transaction(&self, way: Way, counter: Counter) -> WriteTx<'_> {
        WriteTx {
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
            // Without a time limit this would wait for ever for a server that vanished.
            let beginning =
                tokio::time::timeout(ACQUIRE_TIMEOUT, Box::pin(writers.begin_with(begin)));
            match beginning.await.map_err(|_| BEGIN_TIMED_OUT)? {
                // A server that was restarted has cut every connection: no transaction was begun on
                // any of them.
                Err(error) if is_cut(&error) && attempts <= self.dialect.writers() + 1 => {}
                started => return Ok(started?),
            }
        }
    }

    /// Ends a move of SQLite's log: moves the pages that were added to the log during the move.
    pub(crate) async fn end_log_move(&self) -> Result<()> {
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

    /// Stops all writing: from now on nothing is written to the database.
    pub(crate) fn fail(&self) {
        self.halt.set();
    }

    /// Repeats a question while the database can't be reached, for at most as long as the outcome
    /// of a commit is asked for.
    pub(crate) async fn insist<T, F: Future<Output = Result<T>>>(
        &self,
        ask: impl Fn() -> F,
    ) -> Result<T> {
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

    /// What became of a transaction whose commit wasn't answered; the server may still be
    /// committing.
    pub(crate) async fn outcome(&self, unanswered: Unanswered) -> Result<()> {
        unanswered.outcome(&self.readers, self.dialect).await
    }

    /// Whether nothing can be written any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.halt.is_set()
    }

    /// Waits until nothing can be written any more.
    pub(crate) async fn failed(&self) {
        self.halt.wait().await;
    }

    /// A connection that belongs to no pool, outside any transaction.
    pub(crate) async fn connect(&self) -> std::result::Result<AnyConnection, sqlx::Error> {
        AnyConnection::connect(&self.dialect.connection_url(&self.url)).await
    }

    /// Copies the database as it is now into a new file, which only its owner may read.
    pub(crate) async fn copy(&self, file: &Path) -> Result<()> {
        sqlite::make_new_file(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => crate::Error::Refused(Refusal::FileExists),
            _ => crate::Error::Failed(Fault::File(error)),
        })?;
        let mut conn = self.connect().await?;
        let name = file.to_string_lossy().into_owned();
        query(COPY, name).execute(&mut conn).await?;
        Ok(conn.close().await?)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.readers.is_closed()
    }

    /// Listens to the notifications of other processes.
    pub(crate) async fn listen(&self) -> std::result::Result<Listener, sqlx::Error> {
        Listener::connect(&self.url).await
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.gate.close().await;
        if let Some(mover) = self.mover.clone() {
            // On a thread that may block: `close` waits until the move of the pages has ended.
            let closed = tokio::task::spawn_blocking(move || mover.close()).await;
            if let Err(error) = closed {
                tracing::warn!(%error, "the database's file isn't closed");
            }
        }
        if let Some(writers) = &self.writers {
            writers.close().await;
        }
        self.serving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

/// What both pools of connections have in common.
fn options<DB: Database>(dialect: Dialect) -> PoolOptions<DB>
where
    DB::Connection: Connection,
{
    PoolOptions::new()
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_release(move |conn, _| Box::pin(dialect.is_reusable(conn)))
}

/// Makes sure that the database's file exists and is a database.
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
