//! Runs that are compared: in turns, and while one is measured the others stand still.

use std::time::Duration;

use crate::load::{Load, Measured};
use crate::machine;

/// Runs of each kind; the median is taken.
pub const ROUNDS: usize = 5;

/// Somebody who answers.
pub struct Contender<'a> {
    /// Several when it is several processes: the connections are spread over them.
    pub addresses: Vec<String>,
    pub request: Vec<u8>,
    /// Stopped while others are measured, with their children.
    pub processes: Vec<u32>,
    /// Waits until all that was accepted, so much of it in this turn, was handed on.
    pub settle: Box<dyn FnMut(u64) + 'a>,
}

impl Contender<'_> {
    /// Processor time of its processes so far.
    fn cpu(&self) -> Duration {
        self.processes.iter().map(|id| machine::cpu(*id)).sum()
    }

    fn signal(&self, name: &str) {
        for id in &self.processes {
            machine::signal_family(*id, name);
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
            let before = contender.cpu();
            let addresses = contender.addresses.clone();
            let mut measured = spread(addresses, &contender.request, connections, duration);
            (contender.settle)(measured.answers);
            let answers = u32::try_from(measured.answers).unwrap();
            measured.cpu = Some(contender.cpu().saturating_sub(before) / answers);
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
    spread(vec![address.to_owned()], request, connections, duration)
}

fn spread(
    addresses: Vec<String>,
    request: &[u8],
    connections: usize,
    duration: Duration,
) -> Measured {
    Load {
        addresses,
        request: request.to_vec(),
        connections,
        duration,
    }
    .run()
}
