//! Runs of systems that are compared. They run in turns, and the others are stopped while one is
//! measured.

use std::time::Duration;

use crate::load::Load;
use crate::machine;
use crate::measured::{Measured, Runs};
use crate::requests::Requests;
use crate::usage::{Usage, Work};

/// The variable with the number of runs; five if it isn't set.
const ROUNDS: &str = "BENCH_ROUNDS";

/// Returns the number of runs. The median counts.
pub fn rounds() -> usize {
    std::env::var(ROUNDS).map_or(5, |rounds| rounds.parse().unwrap())
}

/// A system that is compared with others.
pub struct Contender<'a> {
    /// One address per process. The connections are spread over them.
    pub addresses: Vec<String>,
    pub requests: Requests,
    /// The processes that are stopped, with their children, while others are measured.
    pub processes: Vec<u32>,
    /// Returns the system's own counts of its work.
    pub work: Box<dyn Fn() -> Work + 'a>,
    /// The pause after a run in which the system finishes work that its answers caused.
    pub rest: Duration,
    /// Called after the pause with the number of answers. Waits until all work is done. Returns
    /// `None` if it was already done, else how many messages were still waiting for a carrier.
    pub settle: Box<dyn FnMut(u64) -> Option<u64> + 'a>,
}

impl Contender<'_> {
    fn usage(&self) -> Usage {
        let work = (self.work)();
        Usage::now(&self.processes, work)
    }

    fn signal(&self, name: &str) {
        for id in &self.processes {
            machine::signal_family(*id, name);
        }
    }

    /// Measures one run, including the work that its answers caused.
    fn run(&mut self, connections: usize, duration: Duration) -> Measured {
        let sync = machine::sync_time();
        let before = self.usage();
        let load = Load {
            addresses: &self.addresses,
            requests: &mut self.requests,
            connections,
            duration,
        };
        let answers = load.run();
        std::thread::sleep(self.rest);
        let mut after = self.usage();
        let late = (self.settle)(answers.count);
        if late.is_some() {
            after = self.usage();
        }
        let mut measured = Measured::of(&answers);
        measured.cost = Some(after.each_since(&before, answers.count));
        measured.waiting = late.unwrap_or(0);
        measured.sync = Some(sync);
        measured
    }
}

/// Runs the contenders in turns and returns the runs of each, in the same order.
pub fn alternate(
    contenders: &mut [Contender],
    connections: usize,
    duration: Duration,
) -> Vec<Runs> {
    let mut runs = vec![Runs::default(); contenders.len()];
    for contender in &*contenders {
        contender.signal("STOP");
    }
    for _ in 0..rounds() {
        for (contender, runs) in contenders.iter_mut().zip(&mut runs) {
            contender.signal("CONT");
            runs.push(contender.run(connections, duration));
            contender.signal("STOP");
        }
    }
    for contender in &*contenders {
        contender.signal("CONT");
    }
    runs
}

/// Runs one server without others.
pub fn repeat(
    address: &str,
    requests: &mut Requests,
    connections: usize,
    duration: Duration,
) -> Runs {
    let mut runs = Runs::default();
    for _ in 0..rounds() {
        let load = Load { addresses: &[address.to_owned()], requests, connections, duration };
        runs.push(Measured::of(&load.run()));
    }
    runs
}
