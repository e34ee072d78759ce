//! Runs that are compared: in turns, and while one is measured the others stand still.

use std::time::Duration;

use crate::load::{Load, Measured};
use crate::machine;

/// Runs of each kind; the median is taken.
pub const ROUNDS: usize = 5;

/// Somebody who answers.
pub struct Contender<'a> {
    pub address: String,
    pub request: Vec<u8>,
    /// Stopped while others are measured: what was accepted is still being worked off.
    pub processes: Vec<u32>,
    /// Waits for what must be over before the others' turn, given how much was answered.
    pub settle: Box<dyn FnMut(u64) + 'a>,
}

impl Contender<'_> {
    pub fn new(address: &str, request: Vec<u8>, process: u32) -> Self {
        Self {
            address: address.to_owned(),
            request,
            processes: vec![process],
            settle: Box::new(|_| {}),
        }
    }

    fn signal(&self, name: &str) {
        for id in &self.processes {
            machine::signal(*id, name);
        }
    }
}

/// The median run of each, in the same order.
pub fn alternate(
    contenders: &mut [Contender],
    connections: usize,
    duration: Duration,
) -> Vec<Measured> {
    let mut runs = vec![Vec::new(); contenders.len()];
    for contender in &*contenders {
        contender.signal("STOP");
    }
    for _ in 0..ROUNDS {
        for (contender, runs) in contenders.iter_mut().zip(&mut runs) {
            contender.signal("CONT");
            let measured = run(
                &contender.address,
                &contender.request,
                connections,
                duration,
            );
            (contender.settle)(measured.answers);
            contender.signal("STOP");
            runs.push(measured);
        }
    }
    for contender in &*contenders {
        contender.signal("CONT");
    }
    runs.into_iter().map(Measured::median).collect()
}

pub fn run(address: &str, request: &[u8], connections: usize, duration: Duration) -> Measured {
    Load {
        address: address.to_owned(),
        request: request.to_vec(),
        connections,
        duration,
    }
    .run()
}
