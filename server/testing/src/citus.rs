//! Citus clusters: the shared one that the test command starts, and those of single tests, which
//! can kill the servers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _, Row as _};
use tempfile::TempDir;

/// The environment variable with the coordinator's URL.
const COORDINATOR: &str = "HELIOGRAPH_TEST_CITUS";

/// Databases of the same name, one on each server.
#[derive(Clone)]
pub struct Cluster {
    /// The URLs of the servers' own databases, the coordinator's first.
    servers: Vec<String>,
}

impl Cluster {
    /// Returns the cluster that the test command starts.
    pub async fn given() -> Self {
        let coordinator = std::env::var(COORDINATOR).unwrap_or_else(|_| {
            panic!(
                "{COORDINATOR} is not set: these tests need Citus, which `make test-citus` starts \
                 for them"
            )
        });
        Self::with(coordinator).await
    }

    /// Returns the cluster of this coordinator.
    pub async fn with(coordinator: String) -> Self {
        sqlx::any::install_default_drivers();
        let mut conn = AnyConnection::connect(&coordinator).await.unwrap();
        let ports = "SELECT nodeport::bigint FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeport";
        let rows = conn.fetch_all(ports).await.unwrap();
        let (start, end) = coordinator.rsplit_once(':').unwrap();
        let (_, database) = end.split_once('/').unwrap();
        let workers = rows.iter().map(|row| {
            let port: i64 = row.get(0);
            format!("{start}:{port}/{database}")
        });
        let servers = std::iter::once(coordinator.clone()).chain(workers);
        Self { servers: servers.collect() }
    }

    /// Returns the URLs of a database, the coordinator's first.
    pub fn urls(&self, name: &str) -> Vec<String> {
        let url = |server: &String| {
            let (start, options) = server.split_once('?').unwrap_or((server, ""));
            let (start, _) = start.rsplit_once('/').unwrap();
            format!("{start}/{name}?{options}")
        };
        self.servers.iter().map(url).collect()
    }

    /// Creates a database on each server, and makes the servers known to each other.
    pub async fn make(&self, name: &str) {
        self.on_each(&format!("CREATE DATABASE {name}")).await;
        let urls = self.urls(name);
        join_all(urls.iter().map(|url| run(url, "CREATE EXTENSION citus"))).await;
        let port = |url: &str| {
            let (_, end) = url.rsplit_once(':').unwrap();
            end.split_once('/').unwrap().0.to_owned()
        };
        let known = format!("SELECT citus_set_coordinator_host('127.0.0.1', {})", port(&urls[0]));
        run(&urls[0], &known).await;
        for worker in &urls[1..] {
            let known = format!("SELECT citus_add_node('127.0.0.1', {})", port(worker));
            run(&urls[0], &known).await;
        }
    }

    /// Closes a database to all connections, so that it can be copied. Citus itself is connected to
    /// each of its databases.
    pub async fn freeze(&self, name: &str) {
        let freeze = format!(
            "SET citus.enable_ddl_propagation = off; \
             ALTER DATABASE {name} ALLOW_CONNECTIONS false; \
             SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'"
        );
        self.on_each(&freeze).await;
    }

    pub async fn copy(&self, template: &str, name: &str) {
        let copy = format!("CREATE DATABASE {name} TEMPLATE {template}");
        self.on_each(&copy).await;
    }

    pub async fn remove(&self, name: &str) {
        let remove = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        self.on_each(&remove).await;
    }

    /// Runs statements on all servers in parallel.
    async fn on_each(&self, statements: &str) {
        join_all(self.servers.iter().map(|server| run(server, statements))).await;
    }
}

async fn run(url: &str, statements: &str) {
    let mut conn = AnyConnection::connect(url).await.unwrap();
    let statements = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
    conn.execute(statements).await.unwrap();
    conn.close().await.unwrap();
}

/// A cluster that is removed when this is dropped.
pub struct OwnCluster {
    /// The coordinator's URL for its superuser.
    pub url: String,
    folder: PathBuf,
    _within: TempDir,
}

impl OwnCluster {
    /// Starts a coordinator and two workers.
    pub fn start() -> Self {
        Self::with_workers(2)
    }

    pub fn with_workers(count: usize) -> Self {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("citus");
        let started = script("start", &folder, &[&count.to_string()])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(started.status.success(), "Citus doesn't start");
        Self {
            url: String::from_utf8(started.stdout).unwrap().trim().to_owned(),
            folder,
            _within: within,
        }
    }

    /// Kills all processes of a server at once, as if its machine was lost.
    pub fn kill(&self, server: &str) {
        self.must("kill", server);
    }

    /// Starts a server that was killed.
    pub fn start_again(&self, server: &str) {
        self.must("start", server);
    }

    /// Stops all processes of a server. Its machine accepts connections but doesn't respond.
    pub fn freeze(&self, server: &str) {
        let first = self.first_process(server);
        signal("STOP", std::slice::from_ref(&first));
        signal("STOP", &children(&first));
    }

    pub fn thaw(&self, server: &str) {
        let first = self.first_process(server);
        signal("CONT", &children(&first));
        signal("CONT", &[first]);
    }

    pub fn url_of(&self, server: &str) -> String {
        std::fs::read_to_string(self.folder.join(server).join("url")).unwrap()
    }

    /// Returns the process ID of a server's main process.
    pub fn first_process(&self, server: &str) -> String {
        let file = self.folder.join(server).join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().next().unwrap().to_owned()
    }

    fn must(&self, verb: &str, server: &str) {
        let done = script(verb, &self.folder, &[server]).stdout(Stdio::null()).status().unwrap();
        assert!(done.success(), "{verb} of {server} failed");
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        // Nothing can be done about a failure here.
        let _ = script("remove", &self.folder, &[]).status();
    }
}

/// Whether Citus is installed.
pub fn is_built() -> bool {
    root().join(".tools/citus/bin/postgres").exists()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn children(process: &str) -> Vec<String> {
    let file = format!("/proc/{process}/task/{process}/children");
    let text = std::fs::read_to_string(file).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

fn signal(name: &str, processes: &[String]) {
    // Fails for processes that have ended meanwhile.
    let _ = Command::new("kill").args(["-s", name]).args(processes).stderr(Stdio::null()).status();
}

fn script(verb: &str, folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(root().join(".make/citus"));
    command.arg(verb).arg(folder).args(more);
    command
}
