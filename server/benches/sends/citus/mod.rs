//! A Citus cluster instead of one PostgreSQL server. All its servers share the same cores, so the
//! results show the cost of Citus, not the gain from more machines.

pub mod outage;
pub mod workers;

use testing::citus::is_built;

use crate::postgres::cluster::Cluster;
use crate::rounds::alternate;
use crate::sends::RUN;
use crate::server::Server;
use crate::table::{Figure, Table, Target, float};

/// Why nothing was measured.
const MISSING: &str = "Citus isn't built (CITUS_SOURCE=... .make/setup citus)";
/// The number of applications that send.
const APPLICATIONS: usize = 16;
const SHARDS: usize = 4;
const WORKERS: usize = 2;

const GOALS: [(usize, Target); 3] =
    [(8, Target::None), (64, Target::AtLeast(0.6)), (256, Target::None)];

/// Compares Citus with one PostgreSQL server.
pub fn sends(table: &mut Table) {
    if !is_built() {
        return table.not_measured("Citus: sends : plain PostgreSQL", MISSING);
    }
    println!(
        "{SHARDS} shards over {WORKERS} workers, {APPLICATIONS} applications, runs of {RUN:?}"
    );
    let citus = start(Cluster::with_workers(WORKERS), SHARDS);
    let plain = Server::start_on(Cluster::start()).with_applications(APPLICATIONS);
    let mut contenders =
        [&citus, &plain].map(|server| server.contender(server.sends(APPLICATIONS)));
    let mut waiting = 0;
    for (connections, target) in GOALS {
        let runs = alternate(&mut contenders, connections, RUN);
        let (citus, plain) = (runs[0].median(), runs[1].median());
        let what = format!(
            "Citus : plain PostgreSQL, sends, {connections} connections, {APPLICATIONS} \
             applications"
        );
        let ratio = Figure::Times(citus.per_second / plain.per_second);
        let beside = [format!("Citus: {citus}"), format!("plain: {plain}")];
        table.add_beside(what, ratio, target, &beside);
        waiting = waiting.max(runs[0].most_waiting());
    }
    drop(contenders);
    let what = "Citus: most messages still waiting 2 s after a run";
    table.add(what, Figure::Count(float(waiting)), Target::AtMost(0.0));
    citus.check();
    plain.check();
}

/// Starts a distributed server with applications in all shards.
fn start(cluster: Cluster, shards: usize) -> Server {
    Server::start_distributed(cluster, shards).with_applications(APPLICATIONS)
}
