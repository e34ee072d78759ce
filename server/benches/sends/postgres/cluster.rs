//! A PostgreSQL by itself, as `.make/postgres start` makes it.

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};
use testing::postgres::Server;

use crate::machine;
use crate::stored::block_on;
use crate::usage::Work;

/// Removed when dropped.
pub struct Cluster(Server);

impl Cluster {
    /// Starts one, and prints what its figures depend on.
    pub fn start() -> Self {
        let cluster = Self(Server::start());
        println!("({})", block_on(cluster.durability()));
        cluster
    }

    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The line of `heliograph.toml` that names it.
    pub fn setting(&self) -> String {
        format!("database_url = \"{}\"\n", self.0.url)
    }

    /// The server's process, which is the parent of those that work.
    pub fn process(&self) -> u32 {
        let file = self.0.folder().join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().next().unwrap().parse().unwrap()
    }

    /// A connection without the limits that the program gives its own.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.0.url).await.unwrap()
    }

    /// Numbers that transactions took because they wrote, and syncs of its log.
    pub fn work(&self) -> Work {
        // The next number is looked at, not taken.
        const WORK: &str = "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT) AS numbers, \
                                   (SELECT wal_sync FROM pg_stat_wal) AS syncs";
        block_on(async {
            let mut db = self.connect().await;
            let row = sqlx::query(WORK).fetch_one(&mut db).await.unwrap();
            let [numbers, syncs] = ["numbers", "syncs"].map(|name| row.get::<i64, _>(name));
            db.close().await.unwrap();
            Work {
                transactions: Some(numbers.unsigned_abs()),
                fsyncs: Some(syncs.unsigned_abs()),
            }
        })
    }

    /// Figures of a server that loses commits say nothing.
    async fn durability(&self) -> String {
        const SETTINGS: &str = "SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync, \
             current_setting('synchronous_commit') AS synchronous, current_setting('shared_buffers') AS buffers";
        let mut db = self.connect().await;
        let row = sqlx::query(SETTINGS).fetch_one(&mut db).await.unwrap();
        let [version, fsync, synchronous, buffers] =
            ["version", "fsync", "synchronous", "buffers"].map(|name| row.get::<String, _>(name));
        assert_eq!((fsync.as_str(), synchronous.as_str()), ("on", "on"));
        db.close().await.unwrap();
        format!("PostgreSQL {version}, fsync and synchronous_commit on, shared_buffers {buffers}")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have been stopped while others were measured.
        machine::signal_family(self.process(), "CONT");
    }
}
