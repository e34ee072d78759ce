//! Single sends, compared with Kannel. The sandbox delivers all messages meanwhile.

use std::time::Duration;

use crate::bare::Bare;
use crate::kannel::{self, Kannel};
use crate::measured::{Measured, Runs};
use crate::rounds::{Contender, alternate};
use crate::server::Server;
use crate::table::{Figure, Table, Target, float};

/// The length of each run, after its warm-up.
pub const RUN: Duration = Duration::from_secs(2);
/// The numbers of applications that send.
const APPLICATIONS: [usize; 2] = [1, 16];

/// The targets for a number of connections.
pub struct Goal {
    pub connections: usize,
    /// The rate divided by Kannel's.
    pub ratio: Target,
    /// The p50 with one application.
    pub p50_ms: Option<f64>,
    /// The CPU time per message with one application, from the request to the stored receipt, in
    /// µs.
    pub life_us: Option<f64>,
}

const GOALS: [Goal; 4] = [
    Goal { connections: 1, ratio: Target::None, p50_ms: Some(0.6), life_us: None },
    Goal { connections: 8, ratio: Target::AtLeast(1.1), p50_ms: Some(0.9), life_us: Some(100.0) },
    Goal { connections: 64, ratio: Target::AtLeast(1.6), p50_ms: None, life_us: None },
    Goal { connections: 256, ratio: Target::AtLeast(2.3), p50_ms: None, life_us: Some(50.0) },
];

pub fn measure(table: &mut Table) {
    compare("SQLite", Server::start(), &GOALS, table);
}

/// Compares the server with Kannel and a bare handler, with one and with several applications.
pub fn compare(database: &str, server: Server, goals: &[Goal], table: &mut Table) {
    println!("by GET, keep-alive, random numbers, texts of 100 characters, runs of {RUN:?}");
    let server = server.with_applications(APPLICATIONS[1]);
    let bare = Bare::start();
    let mut kannel = Kannel::start();
    let mut contenders: Vec<_> =
        APPLICATIONS.iter().map(|count| server.contender(server.sends(*count))).collect();
    contenders.push(bare.contender());
    contenders.extend(kannel.as_mut().map(Kannel::contender));
    let mut waiting = 0;
    for goal in goals {
        waiting = waiting.max(compare_at(database, &mut contenders, goal, table));
    }
    drop(contenders);
    let what = format!("{database}: most messages still waiting 2 s after a run");
    table.add(what, Figure::Count(float(waiting)), Target::AtMost(0.0));
    if let Some(kannel) = &kannel {
        let arrived = kannel.arrived();
        println!("(all {arrived} messages that Kannel accepted arrived at the fake SMSC)");
    }
    server.check();
}

/// Compares at one number of connections. Returns the most messages that waited after a run.
fn compare_at(database: &str, contenders: &mut [Contender], goal: &Goal, table: &mut Table) -> u64 {
    let connections = counted(goal.connections, "connection");
    let runs = alternate(contenders, goal.connections, RUN);
    let (ours, others) = runs.split_at(APPLICATIONS.len());
    let (bare, kannel) = (others[0].median(), others.get(1).map(Runs::median));
    for (applications, runs) in APPLICATIONS.iter().zip(ours) {
        let applications = counted(*applications, "application");
        let what = format!("{database}: sends, {connections}, {applications} : Kannel");
        let ours = runs.median();
        match &kannel {
            Some(kannel) => {
                let ratio = Figure::Times(ours.per_second / kannel.per_second);
                table.add_beside(what, ratio, goal.ratio, &[ours.to_string()]);
            }
            None => table.not_measured(what, kannel::MISSING),
        }
    }
    if let Some(kannel) = kannel {
        println!("      Kannel: {kannel}");
    }
    let generator = bare.generator_us;
    println!("      a bare axum handler: {bare}; the load generator: {generator:.1} µs/request");
    one_send(database, &connections, &ours[0].median(), goal, table);
    ours.iter().map(Runs::most_waiting).max().unwrap_or(0)
}

/// Adds the time and CPU time of a send, with one application.
fn one_send(database: &str, connections: &str, ours: &Measured, goal: &Goal, table: &mut Table) {
    if let Some(most) = goal.p50_ms {
        let what = format!("{database}: p50 of a send, {connections}");
        table.add(what, Figure::millis(ours.p50), Target::AtMost(most));
    }
    if let (Some(most), Some(cost)) = (goal.life_us, &ours.cost) {
        let what = format!("{database}: CPU time per message until it is final, {connections}");
        table.add(what, Figure::Micros(cost.cpu_us), Target::AtMost(most));
    }
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
