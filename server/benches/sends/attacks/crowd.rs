//! Attackers that all send a request at once, wait for the answers, and repeat this at a fixed
//! pace.

use std::time::{Duration, Instant};

use super::Strangers;
use super::tally::Tally;
use crate::load::Talker;
use crate::requests::Requests;

/// Each of `connections` sends one request per `every`.
pub struct Crowd {
    pub connections: usize,
    pub every: Duration,
}

impl Crowd {
    pub fn ask(&self, strangers: &Strangers, mut requests: Requests) -> Tally {
        let connect = || Talker::connect(strangers.address);
        let mut talkers: Vec<_> = (0..self.connections).map(|_| connect()).collect();
        let mut tally = Tally::default();
        let mut next = Instant::now();
        while next < strangers.until {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let written: Vec<_> =
                talkers.iter_mut().map(|talker| talker.try_write(requests.next())).collect();
            for (talker, written) in talkers.iter_mut().zip(written) {
                let status = written.and_then(|()| talker.status());
                tally.answer(status.map(|_| talker.answer()));
                if status.is_none() {
                    *talker = connect();
                }
            }
            tally.asked += 1;
            // Missed rounds aren't made up for.
            next = (next + strangers.pace(self.every)).max(Instant::now());
        }
        tally
    }
}
