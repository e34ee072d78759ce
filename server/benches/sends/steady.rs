//! Sends at a steady rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::load::{Answer, Answers, Talker};
use crate::measured::Measured;
use crate::server::Server;

/// Enough connections to keep the rate while some answers are slow.
const CONNECTIONS: u32 = 64;
/// Sends before each run that aren't counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// Sends until [`Steady::stop`].
pub struct Steady {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Answer>>>,
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
                let mut answers = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    // A late connection catches up, so that the rate stays the same.
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    let asked = Instant::now();
                    talker.ask(requests.next());
                    let took = asked.elapsed();
                    answers.push(Answer { asked, took });
                    next += pause;
                }
                answers
            })
        };
        let threads = (0..CONNECTIONS).map(start).collect();
        Self { stop, threads }
    }

    /// Stops the sends and returns all answers.
    pub fn stop(self) -> Vec<Answer> {
        self.stop.store(true, Ordering::SeqCst);
        let threads = self.threads.into_iter();
        threads.flat_map(|thread| thread.join().unwrap()).collect()
    }
}

/// Measures the sends while `work` runs.
pub fn sends_during(server: &Server, per_second: u32, work: impl FnOnce()) -> Measured {
    let steady = Steady::start(server, per_second);
    std::thread::sleep(WARM_UP);
    let from = Instant::now();
    work();
    let until = Instant::now();
    let times = steady.stop();
    let answers =
        Answers { count: times.len() as u64, times, duration: Duration::ZERO, cpu: Duration::ZERO };
    Measured::of(&answers.within(from, until))
}
