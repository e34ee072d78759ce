//! Runs that are compared: in turns, and while one is measured the others stand still.

use std::time::Duration;

use crate::load::Load;
use crate::machine;
use crate::measured::{Measured, Runs};
use crate::requests::Requests;
use crate::usage::{Usage, Work};

/// Runs of each kind, where they aren't five.
const ROUNDS: &str = "BENCH_ROUNDS";

/// Runs of each kind; the median is taken.
pub fn rounds() -> usize {
    std::env::var(ROUNDS).map_or(5, |rounds| rounds.parse().unwrap())
}

/// Somebody who answers.
pub struct Contender<'a> {
    /// Several when it is several processes: the connections are spread over them.
    pub addresses: Vec<String>,
    pub requests: Requests,
    /// Stopped while others are measured, with their children.
    pub processes: Vec<u32>,
    /// What it counts of its work.
    pub work: Box<dyn Fn() -> Work + 'a>,
    /// How long it has for what follows from its answers.
    pub rest: Duration,
    /// After that: waits until all that follows from so many answers is done. `None` if it was;
    /// else how many messages waited for a carrier.
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

    /// One run, until all that follows from it is done.
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

/// The runs of each, in the same order.
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

/// Runs of one alone.
pub fn repeat(
    address: &str,
    requests: &mut Requests,
    connections: usize,
    duration: Duration,
) -> Runs {
    let mut runs = Runs::default();
    for _ in 0..rounds() {
        let load = Load {
            addresses: &[address.to_owned()],
            requests,
            connections,
            duration,
        };
        runs.push(Measured::of(&load.run()));
    }
    runs
}
