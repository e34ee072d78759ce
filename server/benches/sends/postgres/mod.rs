//! PostgreSQL instead of SQLite, on the same cores. Each server has a cluster of its own that syncs
//! every commit to the disk.

pub mod cluster;
pub mod nodes;
pub mod pinned;

use cluster::Cluster;

use crate::sends::Goal;
use crate::server::Server;
use crate::table::{Table, Target};
use crate::{bulk, history, sends, storm};

/// The name in the output.
const NAME: &str = "PostgreSQL";

const fn goal(connections: usize, ratio: f64, life_us: Option<f64>) -> Goal {
    Goal { connections, ratio: Target::AtLeast(ratio), p50_ms: None, life_us }
}

const GOALS: [Goal; 3] =
    [goal(8, 0.28, Some(400.0)), goal(64, 1.0, None), goal(256, 1.5, Some(70.0))];

pub fn sends(table: &mut Table) {
    sends::compare(NAME, start(), &GOALS, table);
}

pub fn bulk(table: &mut Table) {
    bulk::alone(NAME, start(), 10.0, table);
}

pub fn storm(table: &mut Table) {
    storm::compare(NAME, start(), table);
}

pub fn history(table: &mut Table) {
    history::compare(NAME, start, table);
}

fn start() -> Server {
    Server::start_on(Cluster::start())
}
