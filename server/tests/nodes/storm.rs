//! Processes are killed, processes sleep until after their leases, and the database is restarted,
//! while clients send and schedule, cancel messages and batches, pause and resume batches, and move
//! a test key's clock.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use testing::postgres::End;

use crate::cluster::Cluster;
use crate::events::Listener;
use crate::judging::{
    Judgement, answers, judge_with, refusals_say_that_waiting_helps, until_settled,
};
use crate::jumps::Jumps;
use crate::load::{Load, SHORT, Sent};
use crate::stops::{Stops, resume_all};

const SEED: u64 = 20_261_123;
const NODES: usize = 3;
const CLIENTS: u64 = 6;
const CONNECTIONS: usize = 2;
const WINDOW: usize = 10;
/// The time that the carrier's answers take, so that some messages are in flight at every fault.
const DELAY: Duration = Duration::from_millis(150);
/// The most rows that one process may have claimed.
const CLAIMED_MAX: usize = CONNECTIONS * WINDOW;
/// Longer than the lease, which is 10 s.
const SLEEP_MS: std::ops::Range<u64> = 11_000..14_000;
/// The pause between two events.
const PACE_MS: std::ops::Range<u64> = 500..3000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Kill,
    /// Stops the process for longer than its lease.
    Sleep,
    RestartFast,
    RestartImmediate,
}

const EVENTS: [Event; 4] = [Event::Sleep, Event::Kill, Event::RestartFast, Event::RestartImmediate];

struct Storm<'a> {
    cluster: &'a Cluster,
    random: StdRng,
    counts: BTreeMap<Event, usize>,
}

impl<'a> Storm<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, random: StdRng::seed_from_u64(SEED), counts: BTreeMap::new() }
    }

    /// Causes this many events, and waits until all nodes are awake. At least one node is always
    /// awake.
    fn rage(&mut self, events: usize) {
        let cluster = self.cluster;
        // One entry per node.
        let asleep = Mutex::new([false; NODES]);
        std::thread::scope(|scope| {
            for number in 0..events {
                // Picks each kind once, then at random.
                let mut event = match EVENTS.get(number) {
                    Some(event) => *event,
                    None => EVENTS[self.random.random_range(0..EVENTS.len())],
                };
                let awake: Vec<usize> = {
                    let asleep = asleep.lock().unwrap();
                    (0..NODES).filter(|node| !asleep[*node]).collect()
                };
                if event == Event::Sleep && awake.len() == 1 {
                    event = Event::Kill;
                }
                let node = awake[self.random.random_range(0..awake.len())];
                *self.counts.entry(event).or_default() += 1;
                match event {
                    Event::Kill => {
                        cluster.nodes[node].kill();
                        cluster.nodes[node].start(&cluster.place, &[]);
                    }
                    Event::Sleep => {
                        let time = Duration::from_millis(self.random.random_range(SLEEP_MS));
                        asleep.lock().unwrap()[node] = true;
                        cluster.nodes[node].signal("STOP");
                        let asleep = &asleep;
                        scope.spawn(move || {
                            std::thread::sleep(time);
                            cluster.nodes[node].signal("CONT");
                            asleep.lock().unwrap()[node] = false;
                        });
                    }
                    Event::RestartFast => cluster.database.restart(End::Fast),
                    Event::RestartImmediate => cluster.database.restart(End::Immediate),
                }
                let pace = Duration::from_millis(self.random.random_range(PACE_MS));
                std::thread::sleep(pace);
            }
        });
    }

    fn count(&self, event: Event) -> usize {
        self.counts.get(&event).copied().unwrap_or(0)
    }
}

#[test]
fn storms_lose_no_message_and_send_none_twice_unless_the_application_wants_it() {
    let events = std::env::var("SOAK_STORMS").map_or(8, |text| text.parse().unwrap());
    let begun = Instant::now();
    let cluster = Cluster::new(NODES, &format!("connections = {CONNECTIONS}\nwindow = {WINDOW}"));
    let (holding, resending) = (cluster.holding(), cluster.resending());
    cluster.carrier.delay(DELAY);
    cluster.start_all();
    let load = Load::new(&cluster.nodes, &[&holding, &resending], SHORT).with_schedules();
    let (stops, jumps) = (Stops::default(), Jumps::new(resending.test.expose()));
    let listener = Listener::new(&cluster, &holding);
    let mut storm = Storm::new(&cluster);
    let is_over = AtomicBool::new(false);
    let polled = std::thread::scope(|scope| {
        let polling = scope.spawn(|| listener.poll(&cluster.nodes, &is_over));
        scope.spawn(|| stops.run(&load));
        scope.spawn(|| jumps.run(&load));
        load.beside(CLIENTS, true, || storm.rage(events));
        for node in &cluster.nodes {
            node.until_ready();
        }
        resume_all(&cluster, &[&holding, &resending]);
        until_settled(&cluster, &[&holding, &resending]);
        is_over.store(true, Ordering::Relaxed);
        polling.join().unwrap()
    });
    println!(
        "{:?}: {:?}; {events} events took {:?}",
        storm.counts,
        answers(&load.sent()),
        begun.elapsed()
    );
    listener.judge(&cluster, &holding, &polled);

    let sent = load.sent();
    let of = |application| -> Vec<&Sent> {
        let its = |sent: &&Sent| sent.application == application;
        sent.iter().filter(its).collect()
    };
    let held = judge_with(&cluster, &holding, (&of(0), &stops), 1);
    let resent = judge_with(&cluster, &resending, (&of(1), &stops), 2);
    println!("{stops}");
    println!("held: {held}; sent once more: {resent}; after {:?}", begun.elapsed());
    // A crash of the database may leave the result of a claim unknown.
    let faults = [Event::Kill, Event::Sleep, Event::RestartImmediate];
    let faults = faults.iter().map(|event| storm.count(*event)).sum();
    assert!(bounded(&held, faults) && bounded(&resent, faults));
    assert!(held.cancelled > 0 && resent.cancelled > 0, "the storm cancelled nothing");
    refusals_say_that_waiting_helps(&sent);
    jumps.judge(&cluster);
    cluster.stop();
}

/// Checks that only messages that a process had claimed at a fault are unknown or were submitted
/// twice.
fn bounded(judgement: &Judgement, faults: usize) -> bool {
    judgement.unknown <= CLAIMED_MAX * faults && judgement.twice <= CLAIMED_MAX * faults
}
