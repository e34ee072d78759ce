//! Rows and SQL: the only place of either.
//!
//! One SQL body serves both databases through sqlx's `Any`; what must differ stands in [`dialect`].
//! A function here runs one statement on a connection that a verb lends it.

pub(crate) mod accounts;
pub(crate) mod applications;
pub(crate) mod audit;
pub(crate) mod batches;
pub(crate) mod carriers;
pub(crate) mod check;
pub(crate) mod copy;
pub(crate) mod deposits;
pub(crate) mod dialect;
mod file;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod idempotency;
pub(crate) mod installation;
pub(crate) mod listening;
mod log;
pub(crate) mod messages;
pub(crate) mod nodes;
mod postgres;
#[cfg(test)]
mod prepared;
pub(crate) mod query;
pub(crate) mod queue;
pub(crate) mod reports;
pub(crate) mod row;
pub(crate) mod segments;
pub(crate) mod senders;
pub(crate) mod sessions;
pub(crate) mod settlement;
pub(crate) mod shared;
mod sqlite;
pub(crate) mod tally;
pub(crate) mod throttles;
pub(crate) mod transfers;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::Reason;

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, Executor as _, SqlStr, Transaction};
use tokio::sync::watch;

use crate::error::{Fault, OpenError, Refusal, Result, Uncertain, is_cut};
use dialect::{Batch, Dialect, Outcome, TransactionName};
use file::FileConnection;
use gate::{Gate, Permit, Priority};
use log::LogMover;
use query::{Conn, Connection, query};
use tally::{Counter, Tally};

/// How long a verb waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a commit may take before its connection counts as lost.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to ask what became of a commit whose connection was lost.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(40);
/// How long to wait before asking again.
const OUTCOME_PAUSE: Duration = Duration::from_millis(100);

/// Names SQL statements, and lists them so that a test can prepare each.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* const $name: &str = $sql;)*
        #[cfg(test)]
        pub(crate) const STATEMENTS: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}
pub(crate) use statements;

/// The database: some connections that write (one, with SQLite), several that read.
pub(crate) struct Store {
    url: String,
    dialect: Dialect,
    /// Slot of this process among those that serve the database.
    node: AtomicI64,
    /// Held by a process that serves a database which only one may serve.
    serving: Mutex<Option<File>>,
    /// With PostgreSQL.
    writers: Option<AnyPool>,
    gate: Gate,
    /// Moves the log of a SQLite file.
    mover: Option<Arc<LogMover>>,
    /// Held by the one verb that writes.
    verbs: Arc<tokio::sync::Mutex<()>>,
    /// Set when what was written may not be on disk: nothing is written any more.
    fault: watch::Sender<bool>,
    readers: AnyPool,
}

/// A transaction that writes; it rolls back when dropped.
pub(crate) struct WriteTx<'a> {
    way: Way<'a>,
    /// What it changes in the counts, to be written at its end.
    pub(crate) tally: Tally,
    /// Whose rows it is about; every statement over them names these.
    applications: BTreeSet<i64>,
    store: &'a Store,
    /// Lets the next verb in when it is dropped.
    verb: Option<tokio::sync::OwnedMutexGuard<()>>,
}

/// How a transaction reaches the database.
enum Way<'a> {
    /// With the connection of a SQLite file, which comes with the permit.
    File(Permit),
    /// With a connection of the pool. The permit is last, so that the connection is given back
    /// before the next transaction is let in.
    Pool(
        Option<Box<Transaction<'static, Any>>>,
        #[expect(dead_code, reason = "held until it is dropped")] Permit,
    ),
    /// With the turn's own connection.
    Own(&'a mut OwnConnection),
}

/// What a commit came to.
pub(crate) enum Committed {
    Yes,
    /// The commit wasn't answered: what became of it has to be asked.
    Unanswered(Unanswered),
}

/// A transaction whose commit wasn't answered.
pub(crate) struct Unanswered {
    transaction: TransactionName,
    error: sqlx::Error,
}

impl WriteTx<'_> {
    pub(crate) const fn batch(&self) -> &'static Batch {
        self.store.dialect.batch()
    }

    /// Says whose messages it is about, before any of them is looked up.
    pub(crate) fn concerns(&mut self, applications: impl Iterator<Item = i64>) {
        self.applications.extend(applications);
    }

    /// The applications that it is about, as a parameter: an array in PostgreSQL's words.
    pub(crate) fn named(&self) -> String {
        debug_assert!(
            !self.applications.is_empty(),
            "a statement over messages would find none"
        );
        let ids: Vec<String> = self.applications.iter().map(i64::to_string).collect();
        format!("{{{}}}", ids.join(","))
    }

    /// Writes what the transaction changes in the counts.
    pub(crate) async fn write_counts(&mut self) -> Result<()> {
        let tally = self.tally.take();
        tally.write(self).await
    }

    /// Commits.
    ///
    /// # Errors
    /// `Failed` when nothing was stored, and `Uncertain`. After a failed sync of SQLite's log the
    /// commit may be on disk or not, and nobody can tell: the store takes no more writes, and the
    /// process should stop.
    pub(crate) async fn commit(self) -> Result<()> {
        let store = self.store;
        match self.try_commit().await? {
            Committed::Yes => Ok(()),
            Committed::Unanswered(unanswered) => store.outcome(unanswered).await,
        }
    }

    /// Like [`WriteTx::commit`], but doesn't ask what became of a commit that wasn't answered.
    pub(crate) async fn try_commit(mut self) -> Result<Committed> {
        self.write_counts().await?;
        let store = self.store;
        match &mut self.way {
            Way::File(permit) => {
                let Some(file) = permit.file() else {
                    return Err(sqlx::Error::PoolClosed.into());
                };
                let committed = file.commit();
                committed.map_err(|error| {
                    store.note_failed_sync(&error);
                    error.of_commit()
                })?;
                // What fails from here on changes nothing of the commit.
                if let Err(error) = file.begin_to_move_log() {
                    store.note_failed_sync(&error);
                    tracing::error!(detail = ?error, "the log can't be moved into the database's file");
                }
                Ok(Committed::Yes)
            }
            Way::Pool(tx, _) => {
                let mut tx = tx.take().ok_or(sqlx::Error::PoolClosed)?;
                let known_as = store.name(&mut tx).await?;
                let committed = tokio::time::timeout(COMMIT_TIMEOUT, tx.commit()).await;
                committed_on_server(
                    committed.unwrap_or(Err(sqlx::Error::PoolTimedOut)),
                    known_as,
                )
            }
            Way::Own(own) => {
                let conn = own.conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
                let known_as = own.transaction.take();
                let committed = tokio::time::timeout(COMMIT_TIMEOUT, conn.execute("COMMIT")).await;
                let committed = committed.unwrap_or(Err(sqlx::Error::PoolTimedOut));
                let committed = committed_on_server(committed.map(drop), known_as)?;
                // Whether the transaction is over isn't known otherwise: the next one finds out.
                own.open = !matches!(committed, Committed::Yes);
                Ok(committed)
            }
        }
    }

    /// Bytes of SQLite's log that aren't in the file yet; 0 with PostgreSQL.
    pub(crate) fn log_bytes(&mut self) -> u64 {
        match &mut self.way {
            Way::File(permit) => permit.file().map_or(0, |file| file.log_bytes()),
            _ => 0,
        }
    }
}

impl Drop for WriteTx<'_> {
    fn drop(&mut self) {
        if let Way::File(permit) = &mut self.way
            && let Some(file) = permit.file()
        {
            file.end();
        }
    }
}

impl Connection for WriteTx<'_> {
    fn conn(&mut self) -> Conn<'_> {
        match &mut self.way {
            Way::File(permit) => Conn::File(permit.file().map(FileConnection::conn)),
            Way::Pool(tx, _) => tx
                .as_deref_mut()
                .map_or(Conn::File(None), |tx| Conn::Sqlx(tx)),
            Way::Own(own) => own.conn.as_mut().map_or(Conn::File(None), Conn::Sqlx),
        }
    }
}

/// The turn's own connection to a PostgreSQL server; it belongs to the turn's thread, which nothing
/// else waits on.
#[derive(Default)]
pub(crate) struct OwnConnection {
    conn: Option<AnyConnection>,
    /// A transaction may be open on it.
    open: bool,
    /// How the server knows it.
    transaction: Option<TransactionName>,
}

/// Work that several processes would only do twice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chore {
    Expire,
    ForgetSegments,
    ForgetAnswers,
    DropHistory,
    WatchNodes,
    MatchCrossed,
    FoldDays,
    /// Of one upload, by its batch's id.
    Expand(i64),
}

impl Chore {
    /// A number of its own; batches' ids are positive.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Expire => -1,
            Self::ForgetSegments => -2,
            Self::ForgetAnswers => -3,
            Self::DropHistory => -4,
            Self::WatchNodes => -5,
            Self::MatchCrossed => -6,
            Self::FoldDays => -7,
            Self::Expand(id) => id,
        }
    }
}

/// What to do when a database that is a file isn't there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Make,
    /// A misspelt path must not become an empty database that takes money.
    Refuse,
}

impl Store {
    /// Connects.
    pub(crate) async fn open(url: &str, missing: Missing) -> std::result::Result<Self, OpenError> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::of_url(url)?;
        if let Some(file) = dialect.file(url) {
            match missing {
                Missing::Make => make_file(file).map_err(OpenError::File)?,
                Missing::Refuse if file.exists() => {}
                Missing::Refuse => return Err(OpenError::Missing(file.to_owned())),
            }
            if !dialect.owns(file).map_err(OpenError::File)? {
                return Err(OpenError::NotADatabase(file.to_owned()));
            }
        }
        let (named, url) = (url.to_owned(), dialect.connection_url(url));
        // A pool would try for long and then say only that it took too long.
        let first = tokio::time::timeout(ACQUIRE_TIMEOUT, AnyConnection::connect(&url)).await;
        let first = first.map_err(|_| OpenError::NoAnswer(dialect::without_password(&named)))?;
        first
            .map_err(|error| OpenError::connecting(error, &dialect::without_password(&named)))?
            .close()
            .await?;
        let options = || {
            AnyPoolOptions::new()
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .idle_timeout(None)
                .max_lifetime(None)
                .after_release(move |conn, _| Box::pin(dialect.is_reusable(conn)))
        };
        let (writers, places, mover) = if let Some(file) = dialect.file(&named) {
            let file = FileConnection::open(file).map_err(OpenError::from)?;
            let mover = file.mover();
            (None, vec![Some(Box::new(file))], Some(mover))
        } else {
            // A connection that is given back is looked at first, while the next one is taken.
            let writers = options()
                .max_connections(dialect.writers() + 1)
                .test_before_acquire(false)
                .after_connect(move |conn, _| Box::pin(dialect.prepare_writer(conn)))
                .connect(&url)
                .await?;
            let places = (0..dialect.writers()).map(|_| None).collect();
            (Some(writers), places, None)
        };
        let readers = options()
            .max_connections(dialect.readers())
            .test_before_acquire(dialect.is_shared())
            .after_connect(move |conn, _| Box::pin(dialect.prepare_reader(conn)))
            .connect(&url)
            .await?;
        Ok(Self {
            url: named,
            dialect,
            node: AtomicI64::new(0),
            serving: Mutex::new(None),
            writers,
            gate: Gate::new(places),
            mover,
            verbs: Arc::default(),
            fault: watch::Sender::new(false),
            readers,
        })
    }

    /// Makes sure that no other process serves this database, where only one may: it would take up
    /// what this one is about to send.
    pub(crate) fn serve_alone(&self) -> std::result::Result<(), OpenError> {
        let Some(file) = self.dialect.file(&self.url) else {
            return Ok(());
        };
        let lock = File::create(file.with_added_extension("lock")).map_err(OpenError::File)?;
        lock.try_lock()
            .map_err(|_| OpenError::Served(self.url.clone()))?;
        *self.serving.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    /// Says which of the processes that serve the database this one is.
    pub(crate) fn set_node(&self, slot: i64) {
        self.node.store(slot, Ordering::Relaxed);
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Refuses a database without a schema, and one of another release.
    pub(crate) async fn must_be_of_this_release(&self) -> std::result::Result<(), OpenError> {
        let applied = self.applied().await?;
        self.refuse_earlier_build(&applied)?;
        let newest = applied.last().map(|(version, _)| *version);
        let ours = self.migrations().last().map(|ours| ours.version);
        match (newest, ours) {
            (None, _) => Err(OpenError::Empty),
            (Some(version), Some(ours)) if version > ours => Err(OpenError::Newer(version)),
            (version, ours) if version < ours => Err(OpenError::Older),
            _ => Ok(()),
        }
    }

    /// Refuses a database whose schema was made from another text than that of this program: before
    /// the first release that text was replaced, and no way leads from one to the other.
    fn refuse_earlier_build(
        &self,
        applied: &[(i64, Vec<u8>)],
    ) -> std::result::Result<(), OpenError> {
        let differs = |(version, checksum): &(i64, Vec<u8>)| {
            let ours = self.migrations();
            let ours = ours.iter().find(|ours| ours.version == *version);
            ours.is_some_and(|ours| *ours.checksum != **checksum)
        };
        if applied.iter().any(differs) {
            return Err(OpenError::EarlierBuild);
        }
        Ok(())
    }

    /// The versions that the schema went through, in their order, with their checksums; none
    /// without a schema.
    async fn applied(&self) -> Result<Vec<(i64, Vec<u8>)>> {
        let mut conn = self.read().await?;
        let applied = "SELECT version, checksum FROM _sqlx_migrations ORDER BY version";
        let rows = match query(applied).fetch_all(&mut conn).await {
            Err(error) if self.dialect.is_missing_table(&error) => return Ok(Vec::new()),
            rows => rows?,
        };
        let applied = |row| Ok((row::int(row, "version")?, row::bytes(row, "checksum")?));
        rows.iter().map(applied).collect()
    }

    /// Brings the schema up to date; refuses one that is newer than this program.
    pub(crate) async fn migrate(&self) -> std::result::Result<(), OpenError> {
        self.refuse_earlier_build(&self.applied().await?)?;
        // A connection of its own: several processes may start at once, and wait until one of them
        // has migrated.
        let mut conn = self.connect().await?;
        self.dialect.prepare_migration(&mut conn).await?;
        Migrator::with_migrations(self.migrations())
            .run(&mut conn)
            .await?;
        Ok(conn.close().await?)
    }

    fn migrations(&self) -> Vec<Migration> {
        let migration = |&(version, name, sql): &(i64, &'static str, &'static str)| {
            let sql = SqlStr::from_static(sql);
            Migration::new(version, name.into(), MigrationType::Simple, sql, false)
        };
        self.dialect.migrations().iter().map(migration).collect()
    }

    /// A connection to read with.
    pub(crate) async fn read(&self) -> std::result::Result<PoolConnection<Any>, sqlx::Error> {
        self.readers.acquire().await
    }

    /// Begins a transaction that only reads: all its statements see one moment.
    pub(crate) async fn snapshot(
        &self,
    ) -> std::result::Result<Transaction<'static, Any>, sqlx::Error> {
        self.readers.begin_with(self.dialect.begin_snapshot()).await
    }

    /// Begins the transaction of a verb that people call: no other one runs at the same time.
    pub(crate) async fn begin(&self) -> Result<WriteTx<'_>> {
        // One at a time anyway: they don't take up connections while they wait for each other.
        let waiting = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.verbs).lock_owned());
        let verb = waiting.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let begin = self.dialect.begin_verb();
        let mut tx = self.enter(Priority::Verb, Counter::Others, begin).await?;
        tx.verb = Some(verb);
        Ok(tx)
    }

    /// Begins a transaction that writes. Others may write at the same time: it locks what it
    /// decides by.
    pub(crate) async fn begin_as(&self, priority: Priority) -> Result<WriteTx<'_>> {
        let counter = match priority {
            Priority::Turn => Counter::Traffic,
            _ => Counter::Others,
        };
        self.enter(priority, counter, self.dialect.begin()).await
    }

    /// Whether somebody in this process waits to write.
    pub(crate) fn does_somebody_wait(&self) -> bool {
        self.gate.does_somebody_wait()
    }

    /// Begins the transaction of a chore that one process at a time does; `None` while another one
    /// is at it.
    pub(crate) async fn begin_chore(
        &self,
        chore: Chore,
        priority: Priority,
    ) -> Result<Option<WriteTx<'_>>> {
        let begin = self.dialect.begin();
        let mut tx = self.enter(priority, Counter::Others, begin).await?;
        let mine = self.dialect.try_lock(&mut tx, chore).await?;
        Ok(mine.then_some(tx))
    }

    async fn enter(
        &self,
        priority: Priority,
        counter: Counter,
        begin: &'static str,
    ) -> Result<WriteTx<'_>> {
        let entering = tokio::time::timeout(ACQUIRE_TIMEOUT, self.gate.enter(priority));
        let mut permit = entering.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        if self.has_failed() || self.is_closed() {
            return Err(sqlx::Error::PoolClosed.into());
        }
        let way = if let Some(file) = permit.file() {
            file.begin()?;
            Way::File(permit)
        } else {
            let tx = self.begin_on_server(begin).await?;
            Way::Pool(Some(Box::new(tx)), permit)
        };
        Ok(WriteTx {
            way,
            tally: Tally::new(self.node.load(Ordering::Relaxed), counter),
            applications: BTreeSet::new(),
            store: self,
            verb: None,
        })
    }

    async fn begin_on_server(&self, begin: &'static str) -> Result<Transaction<'static, Any>> {
        let writers = self.writers.as_ref().ok_or(sqlx::Error::PoolClosed)?;
        let mut tries = 0;
        loop {
            tries += 1;
            // A server that vanished without a word would be waited for.
            let beginning = tokio::time::timeout(ACQUIRE_TIMEOUT, writers.begin_with(begin));
            match beginning.await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
                // A server that was restarted has cut every connection: nothing was begun on any of
                // them.
                Err(error) if is_cut(&error) && tries <= self.dialect.writers() + 1 => {}
                started => return Ok(started?),
            }
        }
    }

    /// Begins a turn's transaction, on the gate's connection to a SQLite file or on the turn's own
    /// to a server.
    pub(crate) async fn begin_turn<'a>(
        &'a self,
        own: &'a mut OwnConnection,
    ) -> Result<WriteTx<'a>> {
        if !self.dialect.is_shared() {
            return self.begin_as(Priority::Turn).await;
        }
        if self.has_failed() || self.is_closed() {
            return Err(sqlx::Error::PoolClosed.into());
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let beginning = tokio::time::timeout(ACQUIRE_TIMEOUT, self.begin_own(own)).await;
            match beginning.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
                Ok(()) => break,
                Err(error) => {
                    own.conn = None;
                    // A server that was restarted has cut the connection: nothing was begun on it.
                    if !is_cut(&error) || tries > 1 {
                        return Err(error.into());
                    }
                }
            }
        }
        Ok(WriteTx {
            way: Way::Own(own),
            tally: Tally::new(self.node.load(Ordering::Relaxed), Counter::Traffic),
            applications: BTreeSet::new(),
            store: self,
            verb: None,
        })
    }

    async fn begin_own(&self, own: &mut OwnConnection) -> std::result::Result<(), sqlx::Error> {
        if own.conn.is_none() {
            let mut conn = self.connect().await?;
            self.dialect.prepare_writer(&mut conn).await?;
            *own = OwnConnection {
                conn: Some(conn),
                ..OwnConnection::default()
            };
        }
        if let Some(conn) = &mut own.conn {
            if std::mem::replace(&mut own.open, true) {
                conn.execute("ROLLBACK").await?;
            }
            own.transaction = self.dialect.begin_named(conn).await?;
        }
        Ok(())
    }

    /// How the server knows a transaction that is about to be committed.
    async fn name(&self, conn: &mut AnyConnection) -> Result<Option<TransactionName>> {
        let naming = self.dialect.name_transaction(conn);
        let named = tokio::time::timeout(COMMIT_TIMEOUT, naming).await;
        Ok(named.unwrap_or(Err(sqlx::Error::PoolTimedOut))?)
    }

    /// Ends a move of SQLite's log: moves the pages that were added while most were moved.
    pub(crate) async fn end_log_move(&self) -> Result<()> {
        let is_moved = self.mover.as_ref().is_some_and(|mover| mover.is_moved());
        if !is_moved || self.is_closed() {
            return Ok(());
        }
        let mut permit = self.gate.enter(Priority::Bulk).await;
        permit.file().map_or(Ok(()), |file| {
            let moved = file.end_log_move();
            moved.inspect_err(|error| self.note_failed_sync(error))
        })
    }

    /// Lets nothing be written any more when the disk couldn't be synced.
    fn note_failed_sync(&self, error: &crate::Error) {
        if error.is_failed_sync() {
            tracing::error!(%error, detail = ?error, "the database can't be synced to disk");
            self.fail();
        }
    }

    /// Lets nothing be written any more.
    pub(crate) fn fail(&self) {
        self.fault.send_replace(true);
    }

    /// Asks again and again while the database isn't there, for as long as it is asked what became
    /// of a commit.
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

    /// What became of a transaction whose commit wasn't answered. The server may still be at it.
    pub(crate) async fn outcome(&self, unanswered: Unanswered) -> Result<()> {
        let Unanswered { transaction, error } = unanswered;
        let asked = tokio::time::timeout(OUTCOME_TIMEOUT, async {
            loop {
                if let Ok(mut conn) = self.readers.acquire().await
                    && let Ok(outcome) = self.dialect.outcome(&mut conn, &transaction).await
                    && outcome != Outcome::UnderWay
                {
                    return outcome;
                }
                tokio::time::sleep(OUTCOME_PAUSE).await;
            }
        });
        match asked.await {
            Ok(Outcome::Committed) => Ok(()),
            Ok(Outcome::Nothing) => Err(Fault::NotCommitted(error).into()),
            Ok(Outcome::Forgotten) => Err(Uncertain::Forgotten(error).into()),
            Ok(Outcome::UnderWay) | Err(_) => Err(Uncertain::Unanswered(error).into()),
        }
    }

    /// Whether nothing can be written any more.
    pub(crate) fn has_failed(&self) -> bool {
        *self.fault.borrow()
    }

    /// Waits until nothing can be written any more.
    pub(crate) async fn failed(&self) {
        // The sender lives as long as the store.
        let _ = self.fault.subscribe().wait_for(|fault| *fault).await;
    }

    /// A connection of its own, outside any transaction.
    pub(crate) async fn connect(&self) -> std::result::Result<AnyConnection, sqlx::Error> {
        AnyConnection::connect(&self.dialect.connection_url(&self.url)).await
    }

    /// Copies the database as it is now into a new file, its owner's alone.
    pub(crate) async fn copy(&self, file: &Path) -> Result<()> {
        make_new_file(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => crate::Error::Refused(Refusal::FileExists),
            _ => crate::Error::Failed(Fault::File(error)),
        })?;
        let mut conn = self.connect().await?;
        let name = file.to_string_lossy().into_owned();
        query(sqlite::COPY).bind(name).execute(&mut conn).await?;
        Ok(conn.close().await?)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.readers.is_closed()
    }

    /// Hears other processes.
    pub(crate) async fn listen(&self) -> std::result::Result<listening::Listener, sqlx::Error> {
        listening::Listener::connect(&self.url).await
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.gate.close().await;
        if let Some(writers) = &self.writers {
            writers.close().await;
        }
        self.serving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

/// What a server's answer to a commit says.
fn committed_on_server(
    committed: std::result::Result<(), sqlx::Error>,
    known_as: Option<TransactionName>,
) -> Result<Committed> {
    match (committed, known_as) {
        (Ok(()), _) => Ok(Committed::Yes),
        // The server itself said no, and didn't only end the connection.
        (Err(error @ sqlx::Error::Database(_)), Some(_)) if !is_cut(&error) => Err(error.into()),
        (Err(error), Some(transaction)) => {
            tracing::warn!(%error, ?transaction, "a commit wasn't answered");
            Ok(Committed::Unanswered(Unanswered { transaction, error }))
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// Makes the database's file and its folder, unless they exist. Numbers, texts and password hashes
/// are inside: both are their owner's alone, and so are the files that SQLite makes beside.
fn make_file(file: &Path) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    match make_new_file(file) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn make_new_file(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}
