//! Rows and SQL: the only place of either.
//!
//! One SQL body serves both databases through sqlx's `Any`; what must differ stands in [`dialect`].
//! A function here runs one statement on a connection that a verb lends it.

pub(crate) mod accounts;
pub(crate) mod applications;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod deposits;
pub(crate) mod dialect;
pub(crate) mod installation;
pub(crate) mod messages;
#[cfg(test)]
mod prepared;
pub(crate) mod queue;
pub(crate) mod reports;
pub(crate) mod row;
pub(crate) mod senders;
pub(crate) mod sessions;
pub(crate) mod settlement;
mod sqlite;
pub(crate) mod throttles;
pub(crate) mod transfers;

use std::path::Path;
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyPool, SqlStr, Transaction};

use crate::error::OpenError;
use dialect::Dialect;

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
    dialect: Dialect,
    writer: AnyPool,
    readers: AnyPool,
}

impl Store {
    /// Connects; makes a SQLite file and its folder when they are missing.
    pub(crate) async fn open(url: &str) -> Result<Self, OpenError> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::of_url(url)?;
        if let Some(folder) = dialect.file(url).and_then(|file| Path::new(file).parent()) {
            make_folder(folder).map_err(OpenError::Folder)?;
        }
        let url = dialect.connection_url(url);
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
            dialect,
            writer,
            readers,
        })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Brings the schema up to date; refuses one that is newer than this program.
    pub(crate) async fn migrate(&self) -> Result<(), OpenError> {
        let migrations = self
            .dialect
            .migrations()
            .iter()
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

    /// Begins a transaction that writes; it rolls back when dropped.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        self.writer.begin_with(self.dialect.begin()).await
    }

    /// The connection that writes, outside a transaction.
    pub(crate) async fn exclusive(&self) -> Result<PoolConnection<Any>, sqlx::Error> {
        self.writer.acquire().await
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Numbers, texts and password hashes are inside: a folder made here is its owner's alone.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
