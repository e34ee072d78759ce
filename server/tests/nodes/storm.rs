//! Processes are killed, processes sleep until after their leases, the database is restarted, the
//! networks to the carrier and the database are slow, silent or cut, the disk is full, and clocks
//! jump forwards and back, while clients send and schedule, cancel messages and batches, pause and
//! resume batches, and move a test key's clock.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use testing::postgres::{End, Server};
use testing::proxy::{Network, Proxy};

use crate::cluster::Cluster;
use crate::events::Listener;
use crate::judging::{answers, judge_with, refusals_say_that_waiting_helps, until_settled};
use crate::jumps::Jumps;
use crate::load::{Load, Outcome, Over, SHORT, Sent};
use crate::stops::{Stops, resume_all};

const SEED: u64 = 20_261_123;
const NODES: usize = 3;
const CLIENTS: u64 = 6;
const CARRIER: &str = "connections = 2\nwindow = 10";
/// The time that the carrier's answers take, so that some messages are in flight at every fault.
const DELAY: Duration = Duration::from_millis(150);
/// The most rows that one process may have claimed.
const CLAIMED_MAX: usize = 20;
/// Longer than the lease, which is 10 s.
const SLEEP_MS: std::ops::Range<u64> = 11_000..14_000;
/// The pause between two events.
const PACE_MS: std::ops::Range<u64> = 500..3000;
/// How long a network or a disk fails. Clients wait less than the longest time for their answers.
const FAILS_MS: std::ops::Range<u64> = 500..4000;
/// How far a clock jumps. It is longer than a lease, and than the time after which a node that isn't
/// seen counts as ended.
const JUMP_S: i64 = 35;
/// The delay of a slow network.
const SLOW: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Kill,
    /// Stops the process for longer than its lease.
    Sleep,
    RestartFast,
    RestartImmediate,
    /// The network to the carrier fails.
    Carrier(Failure),
    /// The network to the database fails.
    Database(Failure),
    /// Nothing can be written to files with this part in their path.
    FullDisk(&'static str),
    /// The clock of a node's machine jumps by these seconds, and back. With PostgreSQL, nodes follow
    /// the database's clock, so it must have no effect.
    Clock(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Failure {
    Slow,
    Silent,
    Cut,
}

/// The events with nodes on PostgreSQL.
const ON_POSTGRES: [Event; 13] = [
    Event::FullDisk("/base/"),
    Event::Sleep,
    Event::Clock(JUMP_S),
    Event::Kill,
    Event::RestartFast,
    Event::Clock(-JUMP_S),
    Event::RestartImmediate,
    Event::Carrier(Failure::Cut),
    Event::Database(Failure::Cut),
    Event::Database(Failure::Silent),
    Event::Carrier(Failure::Silent),
    Event::Database(Failure::Slow),
    Event::Carrier(Failure::Slow),
];
/// The events with one node on SQLite.
const ON_SQLITE: [Event; 8] = [
    Event::FullDisk("-wal"),
    Event::Clock(JUMP_S),
    Event::Kill,
    Event::Clock(-JUMP_S),
    Event::FullDisk(".rows"),
    Event::Carrier(Failure::Cut),
    Event::Carrier(Failure::Silent),
    Event::Carrier(Failure::Slow),
];

struct Storm<'a> {
    cluster: &'a Cluster,
    kinds: &'static [Event],
    random: StdRng,
    counts: BTreeMap<Event, usize>,
}

impl<'a> Storm<'a> {
    fn new(cluster: &'a Cluster, kinds: &'static [Event]) -> Self {
        let random = StdRng::seed_from_u64(SEED);
        Self { cluster, kinds, random, counts: BTreeMap::new() }
    }

    /// Causes this many events, and waits until all nodes are awake. At least one node is always
    /// awake.
    fn rage(&mut self, events: usize) {
        let cluster = self.cluster;
        // One entry per node.
        let asleep = Mutex::new(vec![false; cluster.nodes.len()]);
        std::thread::scope(|scope| {
            for number in 0..events {
                // Picks each kind once, then at random.
                let mut event = match self.kinds.get(number) {
                    Some(event) => *event,
                    None => self.kinds[self.random.random_range(0..self.kinds.len())],
                };
                let awake: Vec<usize> = {
                    let asleep = asleep.lock().unwrap();
                    (0..cluster.nodes.len()).filter(|node| !asleep[*node]).collect()
                };
                if event == Event::Sleep && awake.len() == 1 {
                    event = Event::Kill;
                }
                let node = awake[self.random.random_range(0..awake.len())];
                *self.counts.entry(event).or_default() += 1;
                if event == Event::Sleep {
                    let time = Duration::from_millis(self.random.random_range(SLEEP_MS));
                    asleep.lock().unwrap()[node] = true;
                    cluster.nodes[node].signal("STOP");
                    let asleep = &asleep;
                    scope.spawn(move || {
                        std::thread::sleep(time);
                        cluster.nodes[node].signal("CONT");
                        asleep.lock().unwrap()[node] = false;
                    });
                } else {
                    self.cause(event, node);
                }
                let pace = Duration::from_millis(self.random.random_range(PACE_MS));
                std::thread::sleep(pace);
            }
        });
    }

    /// Causes an event, and waits until it is over.
    fn cause(&mut self, event: Event, node: usize) {
        let cluster = self.cluster;
        let time = Duration::from_millis(self.random.random_range(FAILS_MS));
        match event {
            Event::Kill => {
                cluster.nodes[node].kill();
                cluster.start(node);
            }
            Event::RestartFast => cluster.database().restart(End::Fast),
            Event::RestartImmediate => cluster.database().restart(End::Immediate),
            Event::Carrier(failure) => failure.last(&cluster.networks.carrier, time),
            Event::Database(failure) => {
                failure.last(cluster.networks.database.as_ref().unwrap(), time);
            }
            Event::FullDisk(part) => {
                cluster.disk().fail("write", part);
                std::thread::sleep(time);
                cluster.disk().heal();
            }
            Event::Clock(seconds) => {
                cluster.clocks[node].shift(seconds);
                std::thread::sleep(time);
                cluster.clocks[node].heal();
            }
            Event::Sleep => unreachable!("the caller goes on meanwhile"),
        }
    }

    /// Returns the most messages per application that a process may have claimed at a fault.
    fn claimed(&self) -> usize {
        let faults = self.counts.iter().map(|(event, count)| match event {
            // These interrupt the submits of all processes. A crash of the database may leave the
            // result of a claim unknown, and so may a network.
            Event::Carrier(_) | Event::Database(_) => count * self.cluster.nodes.len(),
            Event::Kill | Event::Sleep | Event::RestartImmediate | Event::Clock(_) => *count,
            Event::RestartFast | Event::FullDisk(_) => 0,
        });
        CLAIMED_MAX * faults.sum::<usize>()
    }
}

impl Failure {
    /// Lets a network fail for this time.
    fn last(self, network: &Proxy, time: Duration) {
        network.set(match self {
            Self::Slow => Network::Slow(SLOW),
            Self::Silent => Network::Silent,
            Self::Cut => Network::Cut,
        });
        std::thread::sleep(time);
        network.set(Network::Fast);
    }
}

/// Returns the number of events. Each kind happens at least once.
fn events(kinds: &[Event]) -> usize {
    std::env::var("SOAK_STORMS").map_or(kinds.len(), |text| text.parse().unwrap())
}

#[test]
fn storms_lose_no_message_and_send_none_twice_unless_the_application_wants_it() {
    let sent = weather(Cluster::on(Server::on_failing_disk(), NODES, CARRIER), &ON_POSTGRES);
    refusals_say_that_waiting_helps(&without_full_disk(sent));
}

#[test]
fn full_disks_and_bad_networks_lose_nothing_on_sqlite() {
    without_full_disk(weather(Cluster::on_sqlite(CARRIER), &ON_SQLITE));
}

/// Removes the requests that were answered while the disk was full. There must be some.
fn without_full_disk(mut sent: Vec<Sent>) -> Vec<Sent> {
    let count = sent.len();
    let full = Outcome::Refused(500, 500, "internal".to_owned());
    sent.retain(|sent| !sent.answers.contains(&full));
    assert!(sent.len() < count, "the disk was never full");
    sent
}

/// Lets a storm rage under load, waits until it has no effect any more, and judges the result.
fn weather(cluster: Cluster, kinds: &'static [Event]) -> Vec<Sent> {
    let cluster = cluster.with_clocks();
    let (events, begun) = (events(kinds), Instant::now());
    let (holding, resending) = (cluster.holding(), cluster.resending());
    cluster.carrier.delay(DELAY);
    cluster.start_all();
    let load = Load::new(&cluster.nodes, &[&holding, &resending], SHORT).with_schedules();
    let (stops, jumps) = (Stops::default(), Jumps::new(resending.test.expose()));
    let listener = Listener::new(&cluster, &holding);
    let mut storm = Storm::new(&cluster, kinds);
    let is_over = AtomicBool::new(false);
    let polled = std::thread::scope(|scope| {
        // The polling stops even if the messages never settle.
        let over = Over(&is_over);
        let polling = scope.spawn(|| listener.poll(&cluster.nodes, &is_over));
        scope.spawn(|| stops.run(&load));
        scope.spawn(|| jumps.run(&load));
        load.beside(CLIENTS, true, || storm.rage(events));
        for node in &cluster.nodes {
            node.until_ready();
        }
        resume_all(&cluster, &[&holding, &resending]);
        until_settled(&cluster, &[&holding, &resending]);
        drop(over);
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
    let most = storm.claimed();
    for judgement in [&held, &resent] {
        assert!(judgement.unknown <= most && judgement.twice <= most, "{judgement}");
    }
    assert!(held.cancelled > 0 && resent.cancelled > 0, "the storm cancelled nothing");
    jumps.judge(&cluster);
    if cluster.data_disk.is_some() {
        let log = cluster.nodes[0].log(&cluster.place);
        assert!(log.contains("this machine's clock was set back"), "the clock never jumped");
    }
    cluster.stop();
    sent
}
