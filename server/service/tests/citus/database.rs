//! The database of a test, distributed over the servers of a cluster.

#[path = "../conformance/database/tables.rs"]
mod tables;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use service::{Clock, Config, Entropy, Limits, Network, Service};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};
use testing::citus::{Cluster, OwnCluster};
use tokio::sync::OnceCell;

pub use self::tables::new_name;
use crate::world::{START_MS, prices};

/// What a test runs on. Most tests run on other databases too, and ask for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Citus,
}

impl Backend {
    /// What several processes can serve.
    pub const SHARED: Self = Self::Citus;
}

/// How many shards a database has.
pub const SHARDS: i64 = 4;

static TEMPLATE: OnceCell<(Cluster, String)> = OnceCell::const_new();

pub struct Database {
    cluster: Cluster,
    name: String,
    /// The cluster, if it has no other database: it is removed with this one.
    alone: Option<OwnCluster>,
}

impl Database {
    pub async fn make(backend: Backend, _: &Path) -> Self {
        assert_eq!(backend, Backend::Citus);
        // To copy a distributed database is quicker than to distribute each.
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

    /// A database on a cluster of its own.
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

    /// The cluster of a database that is alone on it.
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
        tables::number(self.connect().await, statement).await
    }

    /// The first account's id is 1, which gives it shard 2.
    pub const fn first_shard(&self) -> [&'static str; 2] {
        [", shard", ", 2"]
    }

    pub const fn audit_unlocked(&self) -> &'static [&'static str] {
        &[
            "DROP TRIGGER audit_never_changes ON audit",
            "GRANT UPDATE, DELETE ON audit TO CURRENT_USER",
        ]
    }

    /// Distributed tables have no triggers: only who isn't a superuser can't change the ledger.
    pub const fn has_ledger_triggers(&self) -> bool {
        false
    }

    /// A table with a column `i` of the numbers from 1 to this one.
    pub fn numbers(&self, last: i64) -> String {
        format!("(SELECT generate_series(1::bigint, {last}) AS i) AS n")
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
        mail: service::MailSettings::default(),
        clock: Clock::fixed(Arc::new(AtomicI64::new(START_MS))),
        entropy: Entropy::seeded(9_000_000),
    };
    Service::distribute(&config, SHARDS, &|_| ()).await.unwrap();
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.alone.is_some() {
            return;
        }
        let (cluster, name) = (self.cluster.clone(), self.name.clone());
        tables::remove_by(async move { cluster.remove(&name).await });
    }
}
