//! The work per send on one, two and four workers. More workers must not make a send more
//! expensive.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use testing::citus::is_built;

use super::{APPLICATIONS, MISSING, start};
use crate::postgres::cluster::Cluster;
use crate::rounds::repeat;
use crate::sends::RUN;
use crate::server::Server;
use crate::stored::{self, block_on};
use crate::table::{Figure, Table, Target, float};

const WORKERS: [usize; 3] = [1, 2, 4];
/// The same number for all clusters, because each shard has commit groups of its own. Only the
/// workers differ.
const SHARDS: usize = 8;
const CONNECTIONS: usize = 64;

pub fn measure(table: &mut Table) {
    if !is_built() {
        return table.not_measured("Citus: statements and commits of a send", MISSING);
    }
    println!(
        "{SHARDS} shards, {APPLICATIONS} applications, {CONNECTIONS} connections, runs of {RUN:?}"
    );
    let counted = WORKERS.map(|workers| {
        let counted = Counted::on(workers);
        println!("      {workers} workers: {}", counted.text);
        counted
    });
    let [one, _, four] = &counted;
    for (what, ratio) in [
        ("statements of a send", four.statements / one.statements),
        ("commits of a send", four.commits / one.commits),
        (
            "statements of a commit group",
            four.statements / four.groups * one.groups / one.statements,
        ),
        ("commits of a commit group", four.commits / four.groups * one.groups / one.commits),
    ] {
        let what = format!("Citus: {what}, 4 workers : 1");
        table.add(what, Figure::Times(ratio), Target::AtMost(1.1));
    }
    let prepared = counted.iter().map(|counted| counted.prepared).sum();
    let what = "Citus: PREPARE TRANSACTION during sends, on 1, 2 and 4 workers";
    table.add(what, Figure::Count(float(prepared)), Target::AtMost(0.0));
}

/// Counts per message, from the request to the stored receipt.
struct Counted {
    statements: f64,
    /// Transactions that wrote.
    commits: f64,
    /// A commit group serves several sends. The faster a group commits, the more groups there are.
    groups: f64,
    /// `PREPARE TRANSACTION` statements, in total.
    prepared: u64,
    text: String,
}

impl Counted {
    fn on(workers: usize) -> Self {
        let cluster = Cluster::with_workers(workers);
        count_statements(&cluster);
        let server = start(cluster, SHARDS);
        let before = Counts::of(&server);
        let mut sends = server.sends(APPLICATIONS);
        let runs = repeat(server.address(), &mut sends, CONNECTIONS, RUN);
        server.wait_until_final();
        let counted = Self::between(&before, &Counts::of(&server), &runs.median().to_string());
        server.check();
        counted
    }

    fn between(before: &Counts, after: &Counts, rate: &str) -> Self {
        let messages = float(after.messages - before.messages);
        let each = |now: u64, before: u64| float(now - before) / messages;
        let [coordinator, workers] =
            [0, 1].map(|which| each(after.statements[which], before.statements[which]));
        let commits = each(after.commits, before.commits);
        let syncs = each(after.syncs, before.syncs);
        let groups = each(after.groups, before.groups);
        let text = format!(
            "{coordinator:.3} statements on the coordinator, {workers:.3} on the workers, \
             {commits:.3} commits, {syncs:.3} fsyncs, {groups:.3} groups each; {rate}"
        );
        Self {
            statements: coordinator + workers,
            commits,
            groups,
            prepared: after.prepared - before.prepared,
            text,
        }
    }
}

/// Counts so far.
struct Counts {
    messages: u64,
    /// The statements on the coordinator, and on its workers. They include those sent by other
    /// servers, not those that ran inside functions.
    statements: [u64; 2],
    prepared: u64,
    commits: u64,
    syncs: u64,
    groups: u64,
}

impl Counts {
    fn of(server: &Server) -> Self {
        const CALLS: &str = "SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT) AS calls, \
                CAST(COALESCE(SUM(calls) FILTER (WHERE query ILIKE 'PREPARE TRANSACTION%'), 0) AS BIGINT) \
                    AS prepared \
            FROM pg_stat_statements";
        let cluster = server.cluster().unwrap();
        let counts = cluster.counts(CALLS, ["calls", "prepared"]);
        let work = cluster.work();
        Self {
            messages: stored::messages(cluster.url()),
            statements: [counts[0][0], counts[1..].iter().map(|[calls, _]| calls).sum()],
            prepared: counts.iter().map(|[_, prepared]| prepared).sum(),
            commits: work.transactions.unwrap(),
            syncs: work.fsyncs.unwrap(),
            groups: server.commit_groups(),
        }
    }
}

/// Restarts each server with `pg_stat_statements`, which counts its statements.
fn count_statements(cluster: &Cluster) {
    const LOAD: &str = "ALTER SYSTEM SET shared_preload_libraries = citus, pg_stat_statements";
    // Citus would otherwise propagate this from the coordinator to the workers.
    const MAKE: &str =
        "SET citus.enable_ddl_propagation = off; CREATE EXTENSION pg_stat_statements";
    for url in cluster.urls() {
        block_on(run(&url, LOAD));
    }
    cluster.restart();
    for url in cluster.urls() {
        block_on(run(&url, MAKE));
    }
}

async fn run(url: &str, statements: &'static str) {
    let mut db = PgConnection::connect(url).await.unwrap();
    let statements = sqlx::raw_sql(AssertSqlSafe(statements));
    db.execute(statements).await.unwrap();
    db.close().await.unwrap();
}
