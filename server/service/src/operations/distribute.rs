//! Distributes a PostgreSQL database with the extension citus over the servers of its cluster.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::operations::nodes::{self, follow_server};
use crate::operations::upkeep::install;
use crate::{Config, Service};
use store::distribute::{self, Address, Distribution, REFERENCE_TABLES, TESTED_CITUS};
use store::error::{Error, Fault, OpenError};
use store::sql::Dialect;
use store::{Missing, PgConnection, Store};

type Result<T> = std::result::Result<T, DistributeError>;

/// The plan of a distribution. The caller receives it before anything is changed.
#[derive(Clone, Debug)]
pub struct DistributionPlan {
    pub shards: i64,
    pub workers: usize,
    /// The number of Citus shards of each distributed table.
    pub citus_shards: usize,
    /// The tables of which every server gets a copy.
    pub copied: Vec<String>,
    /// The tables that are distributed.
    pub distributed: Vec<String>,
    /// The number of applications that move to another shard.
    pub applications: i64,
}

/// A step of a distribution, which is reported to the caller.
#[derive(Clone, Debug)]
pub enum DistributionStep {
    Planned(DistributionPlan),
    Done(String),
}

/// A distributed database.
#[derive(Clone, Debug)]
pub struct Distributed {
    pub shards: i64,
    /// The shards of each worker, by the worker's host and port.
    pub workers: BTreeMap<String, Vec<i64>>,
}

/// Why a database wasn't distributed.
#[derive(Debug, thiserror::Error)]
pub enum DistributeError {
    #[error("an installation has at least one shard")]
    NoShard,
    #[error(
        "a SQLite database can't be distributed: move it to PostgreSQL with `heliograph copy` first"
    )]
    File,
    #[error(
        "the database has no extension citus: run CREATE EXTENSION citus in it on every server of \
         a Citus cluster"
    )]
    NoCitus,
    #[error("this server is a worker of its cluster: name the coordinator")]
    NotCoordinator,
    #[error("the cluster has no worker: add one on the coordinator with citus_add_node")]
    NoWorker,
    #[error("another `heliograph distribute` is running on this database")]
    UnderWay,
    #[error(
        "a process serves the database, or was killed within the last 30 seconds: stop it, or \
         wait, and try again"
    )]
    Served,
    #[error(
        "the tables are distributed by {0} shards, which can't be changed any more: copy the rows \
         into a new database, as docs/SCALING.md says, and distribute that"
    )]
    ShardsFixed(i64),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{}", .0.for_operator())]
    Failed(#[from] Error),
}

impl Service {
    /// Distributes a database over the workers of its cluster, or continues a distribution that was
    /// interrupted. No process may serve the database meanwhile. Calls `notify` with the plan
    /// before anything is changed, then with each step.
    ///
    /// # Errors
    /// Fails if the database can't be distributed. Completed steps stay, and no process can serve
    /// the database until a later call completes the rest.
    pub async fn distribute(
        config: &Config,
        shards: i64,
        notify: &(dyn Fn(DistributionStep) + Sync),
    ) -> Result<Distributed> {
        if shards < 1 {
            return Err(DistributeError::NoShard);
        }
        if Dialect::of_url(&config.database_url)? == Dialect::Sqlite {
            return Err(DistributeError::File);
        }
        let store = Store::open(&config.database_url, Missing::Refuse).await?;
        let distributed = distribute_in(&store, config, shards, notify).await;
        store.close().await;
        distributed
    }
}

async fn distribute_in(
    store: &Store,
    config: &Config,
    shards: i64,
    notify: &(dyn Fn(DistributionStep) + Sync),
) -> Result<Distributed> {
    let mut conn = store.connect().await.map_err(Error::from)?;
    let workers = workers(&mut conn).await?;
    if !distribute::lock(&mut conn).await? {
        return Err(DistributeError::UnderWay);
    }
    match store.must_be_of_this_release().await {
        Err(OpenError::Empty) => store.migrate().await?,
        of_this_release => of_this_release?,
    }
    follow_server(store, &config.clock).await?;
    install(store, config, true, config.clock.now()).await?;
    if distribute::state(&mut conn).await? != (shards, Distribution::Done) {
        begin(store, &mut conn, config, (shards, workers), notify).await?;
        let done_step = |step: String| notify(DistributionStep::Done(step));
        move_rows(&mut conn, &done_step).await?;
        distribute_tables(&mut conn, (shards, workers), &done_step).await?;
        if distribute::distribute_commit_groups(&mut conn).await? {
            done_step("commit groups now run on the server that has their shard".to_owned());
        }
        distribute::end(&mut conn, shards).await?;
    }
    let mut workers: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for shard in distribute::places(&mut conn, shards).await? {
        let (host, port) = shard.worker;
        let shards = workers.entry(format!("{host}:{port}")).or_default();
        shards.push(shard.shard);
    }
    Ok(Distributed { shards, workers })
}

/// Returns the number of workers in the cluster.
async fn workers(conn: &mut PgConnection) -> Result<usize> {
    let citus = distribute::citus(&mut *conn).await?;
    warn_if_untested(&citus.ok_or(DistributeError::NoCitus)?);
    if !distribute::is_coordinator(&mut *conn).await? {
        return Err(DistributeError::NotCoordinator);
    }
    match distribute::workers(conn).await?.len() {
        0 => Err(DistributeError::NoWorker),
        workers => Ok(workers),
    }
}

/// Reports the plan and assigns shards to accounts. From then on, no process can serve the database
/// until the distribution is complete.
async fn begin(
    store: &Store,
    conn: &mut PgConnection,
    config: &Config,
    (shards, workers): (i64, usize),
    notify: &(dyn Fn(DistributionStep) + Sync),
) -> Result<()> {
    // A node takes its slot in a verb's transaction, and this is a verb's transaction too. Verbs
    // run one after the other, so either this verb sees the node, or the node sees the
    // distribution.
    let mut tx = store.begin().await?;
    if nodes::is_served(&mut tx, config.clock.now()).await? {
        return Err(DistributeError::Served);
    }
    let done = distribute::distributed(&mut *conn).await?;
    let tables = distribute::tables(&mut *conn).await?;
    let (before, _) = distribute::state(&mut tx).await?;
    let is_fixed = are_shards_fixed(&done);
    if is_fixed && before != shards {
        return Err(DistributeError::ShardsFixed(before));
    }
    let left = |tables: Vec<String>| {
        let left = tables.into_iter().filter(|table| !done.contains(table));
        left.collect()
    };
    notify(DistributionStep::Planned(DistributionPlan {
        shards,
        workers,
        citus_shards: distribute::citus_shards(workers),
        copied: left(REFERENCE_TABLES.map(str::to_owned).to_vec()),
        distributed: left(tables),
        applications: if is_fixed {
            0
        } else {
            distribute::applications_elsewhere(&mut tx, shards).await?
        },
    }));
    if !is_fixed {
        distribute::begin(&mut tx, shards).await?;
    }
    Ok(tx.commit().await?)
}

/// Whether all rows are in their shards, so that the number of shards can't change any more. This
/// is so once the first table is distributed.
fn are_shards_fixed(distributed: &[String]) -> bool {
    distributed.iter().any(|table| table == REFERENCE_TABLES[0])
}

/// Moves rows to the shard of their account, unless a table is already distributed.
async fn move_rows(conn: &mut PgConnection, notify: &(dyn Fn(String) + Sync)) -> Result<()> {
    if are_shards_fixed(&distribute::distributed(&mut *conn).await?) {
        return Ok(());
    }
    let mut tables = distribute::tables(&mut *conn).await?;
    // These tables come first, because they determine the shards of other tables' rows.
    tables.retain(|table| table != "applications" && table != "batches");
    for table in ["applications", "reference_shards", "batches"]
        .into_iter()
        .chain(tables.iter().map(String::as_str))
    {
        for part in distribute::parts(&mut *conn, table).await? {
            let moved = distribute::move_rows(conn, table, &part).await?;
            if moved > 0 {
                notify(format!("{part}: {moved} rows moved to their shard"));
            }
        }
    }
    Ok(())
}

async fn distribute_tables(
    conn: &mut PgConnection,
    (shards, workers): (i64, usize),
    notify: &(dyn Fn(String) + Sync),
) -> Result<()> {
    let done = distribute::distributed(&mut *conn).await?;
    for table in REFERENCE_TABLES {
        if !done.iter().any(|name| name == table) {
            distribute::copy_to_all(&mut *conn, table).await?;
            notify(format!("{table}: every server has a copy"));
        }
        distribute::remove_kept(&mut *conn, table).await?;
    }
    for table in distribute::tables(&mut *conn).await? {
        if !done.contains(&table) {
            distribute::distribute(&mut *conn, &table, distribute::citus_shards(workers)).await?;
            notify(format!("{table}: distributed"));
        }
        distribute::remove_kept(&mut *conn, &table).await?;
        if table == "applications" {
            spread_shards(conn, shards).await?;
        }
    }
    Ok(())
}

/// Gives all workers about the same number of shards. Citus gives each worker the same number of
/// Citus shards, but some Citus shards have several shards and some have none. Citus places the
/// Citus shards of later tables with those of `applications`.
async fn spread_shards(conn: &mut PgConnection, shards: i64) -> Result<()> {
    let mut citus_shards: BTreeMap<i64, (usize, Address)> = BTreeMap::new();
    for shard in distribute::places(&mut *conn, shards).await? {
        let (shards, _) = citus_shards.entry(shard.citus_shard).or_insert((0, shard.worker));
        *shards += 1;
    }
    let mut citus_shards: Vec<_> = citus_shards.into_iter().collect();
    citus_shards.sort_by_key(|(_, (shards, _))| Reverse(*shards));
    let workers = distribute::workers(&mut *conn).await?;
    let mut shards_of: Vec<(usize, Address)> = workers.into_iter().map(|at| (0, at)).collect();
    for (citus_shard, (shards, from)) in citus_shards {
        let fewest = shards_of.iter_mut().min_by_key(|(shards, at)| (*shards, *at != from));
        let Some((has, to)) = fewest else { break };
        *has += shards;
        if *to != from {
            distribute::move_citus_shard(&mut *conn, citus_shard, &from, to).await?;
        }
    }
    Ok(())
}

/// Checks whether the database is distributed. Refuses a database that is half distributed, and
/// warns if this version of Citus wasn't tested.
pub(crate) async fn check(store: &Store) -> std::result::Result<(), OpenError> {
    if store.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let mut conn = store.read().await?;
    match distribute::state(&mut conn).await? {
        (_, Distribution::None) => {}
        (shards, Distribution::Begun) => return Err(OpenError::HalfDistributed(shards)),
        (_, Distribution::Done) => {
            let citus = distribute::citus(&mut conn).await?;
            let missing = OpenError::Failed(Fault::Missing("pg_extension for citus"));
            warn_if_untested(&citus.ok_or(missing)?);
            store.set_distributed();
        }
    }
    Ok(())
}

fn warn_if_untested(citus: &str) {
    if citus != TESTED_CITUS {
        tracing::warn!(
            "the database has Citus {citus}, and this release is tested with Citus {TESTED_CITUS}"
        );
    }
}
