//! PostgreSQL servers: one by itself, as `.make/postgres start` makes it, or those of a Citus
//! cluster, as `.make/citus start` does.

use std::path::Path;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};
use testing::citus::OwnCluster;
use testing::postgres::Server;

use crate::machine;
use crate::stored::block_on;
use crate::usage::Work;

/// Removed when dropped.
pub struct Cluster(Kind);

enum Kind {
    Postgres(Server),
    /// With the names of its servers, the coordinator's first.
    Citus(OwnCluster, Vec<String>),
}

impl Cluster {
    /// Starts a server, and prints what its figures depend on.
    pub fn start() -> Self {
        Self(Kind::Postgres(Server::start())).shown()
    }

    /// Starts a coordinator and so many workers.
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

    /// Of all its servers, the one that the program is connected to first.
    pub fn urls(&self) -> Vec<String> {
        match &self.0 {
            Kind::Postgres(server) => vec![server.url.clone()],
            Kind::Citus(own, names) => names.iter().map(|name| own.url_of(name)).collect(),
        }
    }

    /// As a cluster whose servers can be killed.
    pub fn citus(&self) -> Option<&OwnCluster> {
        match &self.0 {
            Kind::Postgres(_) => None,
            Kind::Citus(own, _) => Some(own),
        }
    }

    /// Kills each of its servers, if it is a Citus cluster, and starts it again.
    pub fn restart(&self) {
        if let Kind::Citus(own, names) = &self.0 {
            for name in names {
                own.kill(name);
                own.start_again(name);
            }
        }
    }

    /// The line of `heliograph.toml` that names it.
    pub fn setting(&self) -> String {
        format!("database_url = \"{}\"\n", self.url())
    }

    /// The process of each server that is the parent of those that work.
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

    /// A connection without the limits that the program gives its own.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(self.url()).await.unwrap()
    }

    /// Numbers that transactions took because they wrote, and syncs of its log, over all servers.
    pub fn work(&self) -> Work {
        // The next number is looked at, not taken.
        const WORK: &str = "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS \
            BIGINT) AS numbers, \
                                   (SELECT wal_sync FROM pg_stat_wal) AS syncs";
        let [numbers, syncs] = self.sums(WORK, ["numbers", "syncs"]);
        Work {
            transactions: Some(numbers),
            fsyncs: Some(syncs),
        }
    }

    /// What a statement counts, over all servers.
    fn sums<const N: usize>(&self, statement: &'static str, names: [&str; N]) -> [u64; N] {
        let counted = self.counts(statement, names);
        std::array::from_fn(|which| counted.iter().map(|counts| counts[which]).sum())
    }

    /// What a statement counts, server by server.
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

/// Figures of a server that loses commits say nothing.
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
        // They may have been stopped while others were measured, or one may have been killed.
        for process in self.processes() {
            if Path::new(&format!("/proc/{process}")).exists() {
                machine::signal_family(process, "CONT");
            }
        }
    }
}
