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

/// The kind of database that a test runs on. Most tests also run on other kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Citus,
}

impl Backend {
    /// The database that several processes can share.
    pub const SHARED: Self = Self::Citus;
}

/// The number of shards in a database.
pub const SHARDS: i64 = 4;

static TEMPLATE: OnceCell<(Cluster, String)> = OnceCell::const_new();

pub struct Database {
    cluster: Cluster,
    name: String,
    /// The cluster, if it has no other database. It is removed with this one.
    alone: Option<OwnCluster>,
}

impl Database {
    pub async fn make(backend: Backend, _: &Path) -> Self {
        assert_eq!(backend, Backend::Citus);
        // Copying a distributed database is faster than distributing each one.
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
        Self { cluster, name, alone: None }
    }

    /// Creates a database on its own cluster.
    pub async fn alone(own: OwnCluster) -> Self {
        let (cluster, name) = (Cluster::with(own.url.clone()).await, new_name());
        cluster.make(&name).await;
        distribute(&cluster.urls(&name)[0]).await;
        Self { cluster, name, alone: Some(own) }
    }

    /// Returns the cluster of a database that is alone on it.
    pub fn own(&self) -> &OwnCluster {
        self.alone.as_ref().unwrap()
    }

    pub fn url(&self) -> String {
        self.servers()[0].clone()
    }

    /// Returns the URLs of the servers, the coordinator's first.
    pub fn servers(&self) -> Vec<String> {
        self.cluster.urls(&self.name)
    }

    /// Opens a connection for statements that the service doesn't have.
    pub async fn connect(&self) -> AnyConnection {
        AnyConnection::connect(&self.url()).await.unwrap()
    }

    /// Returns the number that a statement selects.
    pub async fn number(&self, statement: &'static str) -> i64 {
        tables::number(self.connect().await, statement).await
    }

    /// The first account's ID is 1, so its shard is 2.
    pub const fn first_shard(&self) -> [&'static str; 2] {
        [", shard", ", 2"]
    }

    pub const fn audit_unlocked(&self) -> &'static [&'static str] {
        &[
            "DROP TRIGGER audit_never_changes ON audit",
            "GRANT UPDATE, DELETE ON audit TO CURRENT_USER",
        ]
    }

    /// Distributed tables have no triggers. Only the lack of superuser rights prevents changes to
    /// the ledger.
    pub const fn has_ledger_triggers(&self) -> bool {
        false
    }

    /// A table with a column `i` that has the numbers from 1 to `last`.
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

/// Creates the tables of a database, and distributes them over its servers.
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
        endpoints: service::EndpointRules::default(),
        opt_outs: service::OptOutSettings::default(),
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
