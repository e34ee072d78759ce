//! A distributed database of a test's own.

#[path = "../conformance/database/tables.rs"]
mod tables;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use service::{Clock, Config, Entropy, Limits, Network, Service};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row as _};
use testing::citus::{Cluster, OwnCluster};
use tokio::sync::OnceCell;

use crate::world::{START_MS, prices};

/// What a test runs on: the tests are those of other databases, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Citus,
}

impl Backend {
    /// What several processes can serve.
    pub const SHARED: Self = Self::Citus;
}

/// Over how many homes applications are spread.
pub const HOMES: i64 = 4;

static TEMPLATE: OnceCell<(Cluster, String)> = OnceCell::const_new();
static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Database {
    cluster: Cluster,
    name: String,
    /// The cluster that the database is removed with, if it is alone there.
    alone: Option<OwnCluster>,
}

pub fn new_name() -> String {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{count}", std::process::id())
}

impl Database {
    pub async fn make(backend: Backend, _: &Path) -> Self {
        assert_eq!(backend, Backend::Citus);
        // Copying one that is distributed is quicker than distributing each.
        let template = TEMPLATE.get_or_init(|| async {
            let (cluster, name) = (Cluster::given().await, new_name());
            cluster.make(&name).await;
            distribute(&cluster.urls(&name)[0]).await;
            cluster.freeze(&name).await;
            (cluster, name)
        });
        let (cluster, template) = template.await.clone();
        let name = new_name();
        cluster.copy(&template, &name).await;
        Self {
            cluster,
            name,
            alone: None,
        }
    }

    /// One on a cluster of its own.
    pub async fn alone(own: OwnCluster) -> Self {
        let (cluster, name) = (Cluster::with(own.url.clone()).await, new_name());
        cluster.make(&name).await;
        distribute(&cluster.urls(&name)[0]).await;
        Self {
            cluster,
            name,
            alone: Some(own),
        }
    }

    /// Its cluster, if it is alone there.
    pub fn own(&self) -> &OwnCluster {
        self.alone.as_ref().unwrap()
    }

    pub fn url(&self) -> String {
        self.servers()[0].clone()
    }

    /// The URLs of its servers, the coordinator's first.
    pub fn servers(&self) -> Vec<String> {
        self.cluster.urls(&self.name)
    }

    /// A connection that may do what no verb does.
    pub async fn connect(&self) -> AnyConnection {
        AnyConnection::connect(&self.url()).await.unwrap()
    }

    /// The number that a statement gives.
    pub async fn number(&self, statement: &'static str) -> i64 {
        let mut conn = self.connect().await;
        let row = sqlx::query(statement).fetch_one(&mut conn).await.unwrap();
        row.get(0)
    }

    /// The first account's id is 1, which gives it home 2.
    pub const fn first_home(&self) -> [&'static str; 2] {
        [", home", ", 2"]
    }

    pub const fn has_unusual_messages(&self) -> bool {
        true
    }

    pub const fn hold(&self) -> &'static str {
        tables::HOLD
    }

    pub fn refuse_number(&self, number: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(tables::refuse_number(number))
    }

    pub const fn no_bytes(&self) -> &'static str {
        tables::NO_BYTES
    }

    pub async fn assert_spools(&self, count: usize) {
        tables::assert_spools(&mut self.connect().await, count).await;
    }

    pub async fn lose_spool(&self) {
        tables::lose_spool(&mut self.connect().await).await;
    }

    pub async fn damage_spool(&self) {
        tables::damage_spool(&mut self.connect().await).await;
    }

    pub async fn contents(&self, _: &Service) -> Vec<u8> {
        tables::contents(&mut self.connect().await).await
    }
}

/// Makes the tables of a database, and spreads them over its servers.
pub async fn distribute(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        database_url: url.to_owned(),
        prices: prices("0.05", "0.25"),
        currency: "USD".to_owned(),
        data_dir: folder.path().join("data"),
        network: Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
        limits: Limits::default(),
        clock: Clock::fixed(Arc::new(AtomicI64::new(START_MS))),
        entropy: Entropy::seeded(9_000_000),
    };
    Service::distribute(&config, HOMES, &|_| ()).await.unwrap();
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.alone.is_some() {
            return;
        }
        let (cluster, name) = (self.cluster.clone(), self.name.clone());
        // A runtime of its own: this one may be about to end.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(cluster.remove(&name));
        });
        assert!(dropping.join().is_ok() || std::thread::panicking());
    }
}
