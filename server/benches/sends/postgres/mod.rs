//! PostgreSQL in the place of SQLite, on the same cores; each server has a cluster of its own that
//! syncs every commit to the disk.

pub mod cluster;
pub mod nodes;
pub mod pinned;

use cluster::Cluster;

use crate::sends::Goal;
use crate::server::Server;
use crate::table::{Table, Target};
use crate::{bulk, history, sends, storm};

/// As the parts print it.
const NAME: &str = "PostgreSQL";

const fn goal(connections: usize, ratio: f64) -> Goal {
    Goal {
        connections,
        ratio: Target::AtLeast(ratio),
        p50_ms: None,
        life_us: None,
    }
}

const GOALS: [Goal; 3] = [goal(8, 0.13), goal(64, 0.42), goal(256, 0.70)];

pub fn sends(table: &mut Table) {
    sends::compare(NAME, start(), &GOALS, table);
}

pub fn bulk(table: &mut Table) {
    bulk::alone(NAME, start(), 10.0, table);
}

pub fn storm(table: &mut Table) {
    storm::compare(NAME, &start(), table);
}

pub fn history(table: &mut Table) {
    history::compare(NAME, start, table);
}

fn start() -> Server {
    Server::start_on(Cluster::start())
}
