//! PostgreSQL servers: a single one started by `.make/postgres start`, or those of a Citus cluster
//! started by `.make/citus start`.

use std::path::Path;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};
use testing::citus::OwnCluster;
use testing::postgres::Server;

use crate::machine;
use crate::stored::block_on;
use crate::usage::Work;

/// One or several servers. They are removed on drop.
pub struct Cluster(Kind);

enum Kind {
    Postgres(Server),
    /// The cluster and the names of its servers, the coordinator first.
    Citus(OwnCluster, Vec<String>),
}

impl Cluster {
    /// Starts a single server, and prints the settings that affect its speed.
    pub fn start() -> Self {
        Self(Kind::Postgres(Server::start())).shown()
    }

    /// Starts a Citus cluster of a coordinator and `count` workers.
    pub fn with_workers(count: usize) -> Self {
        let workers = (1..=count).map(|number| format!("worker-{number}"));
        let names = std::iter::once("coordinator".to_owned()).chain(workers);
        let own = OwnCluster::with_workers(count);
        Self(Kind::Citus(own, names.collect())).shown()
    }

    fn shown(self) -> Self {
        for url in self.urls() {
            println!("({})", block_on(durability(&url)));
        }
        self
    }

    pub fn url(&self) -> &str {
        match &self.0 {
            Kind::Postgres(server) => &server.url,
            Kind::Citus(own, _) => &own.url,
        }
    }

    /// Returns the URLs of all servers. The first is the one that the program connects to.
    pub fn urls(&self) -> Vec<String> {
        match &self.0 {
            Kind::Postgres(server) => vec![server.url.clone()],
            Kind::Citus(own, names) => names.iter().map(|name| own.url_of(name)).collect(),
        }
    }

    /// Returns the Citus cluster, whose servers can be killed. `None` if this is a single server.
    pub fn citus(&self) -> Option<&OwnCluster> {
        match &self.0 {
            Kind::Postgres(_) => None,
            Kind::Citus(own, _) => Some(own),
        }
    }

    /// Kills and restarts each server of a Citus cluster. Does nothing for a single server.
    pub fn restart(&self) {
        if let Kind::Citus(own, names) = &self.0 {
            for name in names {
                own.kill(name);
                own.start_again(name);
            }
        }
    }

    /// Returns the line of `heliograph.toml` with the URL.
    pub fn setting(&self) -> String {
        format!("database_url = \"{}\"\n", self.url())
    }

    /// Returns the postmaster process of each server.
    pub fn processes(&self) -> Vec<u32> {
        match &self.0 {
            Kind::Postgres(server) => {
                let file = server.folder().join("data/postmaster.pid");
                let text = std::fs::read_to_string(file).unwrap();
                vec![text.lines().next().unwrap().parse().unwrap()]
            }
            Kind::Citus(own, names) => {
                let process = |name: &String| own.first_process(name).parse().unwrap();
                names.iter().map(process).collect()
            }
        }
    }

    /// Opens a connection without the limits of the program's own connections.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(self.url()).await.unwrap()
    }

    /// Returns the write transactions and the log's fsyncs of all servers.
    pub fn work(&self) -> Work {
        // Reads the next transaction ID without using it up. Only transactions that write get an
        // ID.
        const WORK: &str = "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS \
            BIGINT) AS numbers, \
                                   (SELECT wal_sync FROM pg_stat_wal) AS syncs";
        let [numbers, syncs] = self.sums(WORK, ["numbers", "syncs"]);
        Work { transactions: Some(numbers), fsyncs: Some(syncs) }
    }

    /// Runs a query on all servers and returns the sums of its columns.
    fn sums<const N: usize>(&self, statement: &'static str, names: [&str; N]) -> [u64; N] {
        let counted = self.counts(statement, names);
        std::array::from_fn(|which| counted.iter().map(|counts| counts[which]).sum())
    }

    /// Runs a query on each server and returns its columns per server.
    pub fn counts<const N: usize>(
        &self,
        statement: &'static str,
        names: [&str; N],
    ) -> Vec<[u64; N]> {
        block_on(async {
            let mut counts = Vec::new();
            for url in self.urls() {
                let mut db = PgConnection::connect(&url).await.unwrap();
                let row = sqlx::query(statement).fetch_one(&mut db).await.unwrap();
                counts.push(names.map(|name| row.get::<i64, _>(name).unsigned_abs()));
                db.close().await.unwrap();
            }
            counts
        })
    }
}

/// Returns the settings that affect the speed. Panics if the server could lose commits, because its
/// figures would mean nothing.
async fn durability(url: &str) -> String {
    const SETTINGS: &str = "SELECT current_setting('server_version') AS version, \
        current_setting('fsync') AS fsync, \
         current_setting('synchronous_commit') AS synchronous, \
         current_setting('shared_buffers') AS buffers, \
         (SELECT extversion FROM pg_extension WHERE extname = 'citus') AS citus";
    let mut db = PgConnection::connect(url).await.unwrap();
    let row = sqlx::query(SETTINGS).fetch_one(&mut db).await.unwrap();
    let [version, fsync, synchronous, buffers] =
        ["version", "fsync", "synchronous", "buffers"].map(|name| row.get::<String, _>(name));
    let citus: Option<String> = row.get("citus");
    assert_eq!((fsync.as_str(), synchronous.as_str()), ("on", "on"));
    db.close().await.unwrap();
    let citus = citus.map_or(String::new(), |version| format!(" with Citus {version}"));
    format!(
        "PostgreSQL {version}{citus}, fsync and synchronous_commit on, shared_buffers {buffers}"
    )
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The servers may have been stopped while others were measured, or one may have been
        // killed.
        for process in self.processes() {
            if Path::new(&format!("/proc/{process}")).exists() {
                machine::signal_family(process, "CONT");
            }
        }
    }
}
