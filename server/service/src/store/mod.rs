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
pub(crate) mod deposits;
pub(crate) mod dialect;
pub(crate) mod gate;
pub(crate) mod idempotency;
pub(crate) mod installation;
pub(crate) mod messages;
#[cfg(test)]
mod prepared;
pub(crate) mod queue;
pub(crate) mod reports;
pub(crate) mod row;
pub(crate) mod segments;
pub(crate) mod senders;
pub(crate) mod sessions;
pub(crate) mod settlement;
mod sqlite;
pub(crate) mod tally;
pub(crate) mod throttles;
pub(crate) mod transfers;
#[cfg(test)]
mod upgrade;

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, SqlStr, Transaction};
use tokio::sync::watch;

use crate::error::{Broken, OpenError, Refusal};
use dialect::Dialect;
use gate::{Gate, Permit, Priority};

/// Connections that only read.
const READERS_MAX: u32 = 4;
/// How long a verb waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Names SQL statements, and lists them so that a test can prepare each.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* const $name: &str = $sql;)*
        #[cfg(test)]
        pub(crate) const STATEMENTS: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}
pub(crate) use statements;

/// The database: one connection that writes, several that read.
pub(crate) struct Store {
    url: String,
    dialect: Dialect,
    /// Held by a process that serves a database which only one may serve.
    serving: Mutex<Option<File>>,
    writer: AnyPool,
    gate: Gate,
    /// Set when what was written may not be on disk: nothing is written any more.
    fault: watch::Sender<bool>,
    readers: AnyPool,
}

/// A transaction that writes; it rolls back when dropped.
pub(crate) struct WriteTx<'a> {
    tx: Transaction<'static, Any>,
    fault: &'a watch::Sender<bool>,
    // Last, so that the connection is given back before the next one is let in.
    _permit: Permit,
}

impl WriteTx<'_> {
    /// Commits. After a failed sync the commit may be on disk or not, and nobody can tell: the store takes
    /// no more writes, and the process should stop.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        let committed = self.tx.commit().await;
        if let Err(error) = &committed
            && sqlite::is_failed_sync(error)
        {
            tracing::error!(%error, "the database can't be synced to disk: nothing is written any more");
            self.fault.send_replace(true);
        }
        committed
    }
}

impl Deref for WriteTx<'_> {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        &self.tx
    }
}

impl DerefMut for WriteTx<'_> {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.tx
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
    pub(crate) async fn open(url: &str, missing: Missing) -> Result<Self, OpenError> {
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
        let options = || {
            AnyPoolOptions::new()
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .test_before_acquire(false)
                .idle_timeout(None)
                .max_lifetime(None)
        };
        // One connection writes: SQLite has one writer at a time anyway, and waiting in the pool's queue
        // is fair where waiting for SQLite's lock is not.
        let writer = options()
            .max_connections(1)
            .after_connect(move |conn, _| Box::pin(dialect.prepare_writer(conn)))
            .connect(&url)
            .await?;
        let readers = options()
            .max_connections(READERS_MAX)
            .after_connect(move |conn, _| Box::pin(dialect.prepare_reader(conn)))
            .connect(&url)
            .await?;
        Ok(Self {
            url: named,
            dialect,
            serving: Mutex::new(None),
            writer,
            gate: Gate::default(),
            fault: watch::Sender::new(false),
            readers,
        })
    }

    /// Makes sure that no other process serves this database, where only one may: it would take up
    /// what this one is about to send.
    pub(crate) fn serve_alone(&self) -> Result<(), OpenError> {
        let Some(file) = self.dialect.file(&self.url) else {
            return Ok(());
        };
        let lock = File::create(file.with_added_extension("lock")).map_err(OpenError::File)?;
        lock.try_lock()
            .map_err(|_| OpenError::Served(self.url.clone()))?;
        *self.serving.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Brings the schema up to date; refuses one that is newer than this program.
    pub(crate) async fn migrate(&self) -> Result<(), OpenError> {
        self.migrate_to(i64::MAX).await
    }

    /// Brings the schema to a version.
    async fn migrate_to(&self, version: i64) -> Result<(), OpenError> {
        let migrations = self
            .dialect
            .migrations()
            .iter()
            .filter(|(known, ..)| *known <= version)
            .map(|&(version, name, sql)| {
                Migration::new(
                    version,
                    name.into(),
                    MigrationType::Simple,
                    SqlStr::from_static(sql),
                    false,
                )
            })
            .collect();
        Ok(Migrator::with_migrations(migrations)
            .run(&self.writer)
            .await?)
    }

    /// A connection to read with.
    pub(crate) async fn read(&self) -> Result<PoolConnection<Any>, sqlx::Error> {
        self.readers.acquire().await
    }

    /// Begins a transaction that only reads: all its statements see one moment.
    pub(crate) async fn snapshot(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        self.readers.begin().await
    }

    /// Begins a transaction that writes, for somebody who waits for it.
    pub(crate) async fn begin(&self) -> Result<WriteTx<'_>, sqlx::Error> {
        self.begin_as(Priority::Interactive).await
    }

    /// Begins a transaction that writes.
    pub(crate) async fn begin_as(&self, priority: Priority) -> Result<WriteTx<'_>, sqlx::Error> {
        let entering = tokio::time::timeout(ACQUIRE_TIMEOUT, self.gate.enter(priority));
        let permit = entering.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        if self.has_failed() {
            return Err(sqlx::Error::PoolClosed);
        }
        let begun = self.writer.begin_with(self.dialect.begin()).await;
        let tx = match begun {
            // A full disk makes SQLite end a transaction by itself, and sqlx goes on to believe that it is
            // open: such a connection is replaced.
            Err(sqlx::Error::InvalidSavePointStatement) => {
                self.writer.acquire().await?.detach().close_hard().await?;
                self.writer.begin_with(self.dialect.begin()).await?
            }
            begun => begun?,
        };
        Ok(WriteTx {
            tx,
            fault: &self.fault,
            _permit: permit,
        })
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

    /// The connection that writes, outside a transaction.
    pub(crate) async fn exclusive(&self) -> Result<PoolConnection<Any>, sqlx::Error> {
        self.writer.acquire().await
    }

    /// Copies the database as it is now into a new file, its owner's alone.
    pub(crate) async fn copy(&self, file: &Path) -> Result<(), crate::Error> {
        make_new_file(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => crate::Error::Refused(Refusal::FileExists),
            _ => crate::Error::Broken(Broken::File(error)),
        })?;
        let mut conn = self.exclusive().await?;
        let text = file.to_string_lossy().into_owned();
        sqlx::query(self.dialect.batch().copy)
            .bind(text)
            .execute(&mut *conn)
            .await?;
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
        self.serving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
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
