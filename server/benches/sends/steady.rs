//! Sends at a steady pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::load::Talker;
use crate::server::Server;

/// So many that each has time for a slow answer.
const CONNECTIONS: u32 = 64;

/// Until it is stopped.
pub struct Steady {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Steady {
    pub fn start(server: &Server, per_second: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let pause = Duration::from_secs(1) * CONNECTIONS / per_second;
        let start = |number: u32| {
            let (stop, mut requests) = (Arc::clone(&stop), server.sends(1));
            let mut talker = Talker::connect(server.address());
            let mut next = Instant::now() + pause * number / CONNECTIONS;
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    // Whoever is late catches up: the rate counts, not the moment.
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    talker.ask(requests.next());
                    next += pause;
                }
            })
        };
        let threads = (0..CONNECTIONS).map(start).collect();
        Self { stop, threads }
    }

    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}
