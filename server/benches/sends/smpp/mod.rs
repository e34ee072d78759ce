//! Sends through SMPP, compared with Kannel. Each side submits to a sink of its own over one
//! transceiver with the same window.
//!
//! Kannel keeps messages and the data for matching receipts in memory. It reports to an HTTP server
//! (`dlr-url`) that a message was submitted and that it was delivered. Heliograph stores both.

mod calls;
pub mod frame;
mod raw;
mod side;
pub mod sink;

use std::fmt;
use std::time::{Duration, Instant};

use side::Side;

use crate::kannel;
use crate::measured::Measured;
use crate::rounds::rounds;
use crate::table::{Figure, Table, Target};
use crate::usage::{Cost, Usage};

/// The minimum number of messages that wait when the sink opens.
const BACKLOG: u64 = 100_000;
/// Connections that send.
const CONNECTIONS: usize = 256;
const RUN: Duration = Duration::from_secs(2);
/// The time in which all accepted messages must arrive, and in which their receipts must be
/// answered.
const DEADLINE: Duration = Duration::from_mins(3);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

struct Way {
    what: &'static str,
    run: fn(&mut Side) -> Run,
    /// The targets for the rate, and for the rate divided by Kannel's.
    rate: Target,
    ratio: Target,
}

/// A backlog in a wide window. The other ways use the default window.
const WIDE: (usize, &[Way]) = (
    500,
    &[Way {
        what: "a backlog",
        run: backlog,
        rate: Target::AtLeast(40_000.0),
        ratio: Target::AtLeast(0.8),
    }],
);
const DEFAULT: (usize, &[Way]) = (
    100,
    &[
        Way { what: "a backlog", run: backlog, rate: Target::None, ratio: Target::None },
        Way {
            what: "accepting and sending together",
            run: together,
            rate: Target::None,
            ratio: Target::AtLeast(2.0),
        },
        Way {
            what: "the same with receipts",
            run: receipted,
            rate: Target::None,
            ratio: Target::AtLeast(4.0),
        },
    ],
);

pub fn measure(table: &mut Table) {
    println!("one transceiver to a sink; {CONNECTIONS} connections send, runs of {RUN:?}");
    for (window, ways) in [WIDE, DEFAULT] {
        measure_in(window, ways, table);
    }
}

fn measure_in(window: usize, ways: &[Way], table: &mut Table) {
    let alone = raw::submits_per_second(window);
    println!("window {window}: the sink alone takes {alone:.0}/s of prebuilt submits");
    let mut sides = vec![Side::heliograph(window)];
    sides.extend(Side::kannel(window));
    for way in ways {
        let what = format!("SMPP, window {window}: {}", way.what);
        let runs = alternate(&mut sides, way.run);
        let ours = &runs[0];
        let beside = [ours.to_string()];
        table.add_beside(&what, Figure::PerSecond(ours.per_second), way.rate, &beside);
        let what = what + " : Kannel";
        match runs.get(1) {
            Some(kannel) => {
                let ratio = Figure::Times(ours.per_second / kannel.per_second);
                table.add_beside(what, ratio, way.ratio, &[format!("Kannel: {kannel}")]);
            }
            None => table.not_measured(what, kannel::MISSING),
        }
    }
    for side in &sides {
        side.check();
    }
}

/// The result of a run.
#[derive(Clone)]
struct Run {
    /// Messages per second.
    per_second: f64,
    /// The p99 of the sends during the run.
    p99: Option<Duration>,
    cost: Cost,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}/s", self.per_second)?;
        if let Some(p99) = self.p99 {
            write!(f, ", p99 of sends {:.2} ms", p99.as_secs_f64() * 1000.0)?;
        }
        write!(f, "; {}", self.cost)
    }
}

/// Returns the median run of each side by rate. The sides run in turns, and the other one is
/// stopped meanwhile.
fn alternate(sides: &mut [Side], way: fn(&mut Side) -> Run) -> Vec<Run> {
    let mut runs = vec![Vec::new(); sides.len()];
    for side in &*sides {
        side.signal("STOP");
    }
    for _ in 0..rounds() {
        for (side, runs) in sides.iter_mut().zip(&mut runs) {
            side.signal("CONT");
            runs.push(way(side));
            side.signal("STOP");
        }
    }
    for side in &*sides {
        side.signal("CONT");
    }
    let median = |mut runs: Vec<Run>| {
        runs.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        runs.swap_remove(runs.len() / 2)
    };
    runs.into_iter().map(median).collect()
}

/// Messages accumulate while the sink is closed. Measures the time from the first to the last
/// submit after the sink opens.
fn backlog(side: &mut Side) -> Run {
    side.sink.close();
    let before = side.sink.submits();
    let mut messages = 0;
    while messages < BACKLOG {
        messages += side.send(CONNECTIONS, RUN).count;
    }
    assert_eq!(side.sink.submits(), before, "the sink was away");
    side.sink.forget_times();
    let usage = side.usage();
    side.sink.open();
    until("the backlog to arrive", || side.sink.submits() >= before + messages);
    finish(side, &usage, messages, side.sink.span(), None)
}

/// Measures the time from the first send until all accepted messages have arrived.
fn together(side: &mut Side) -> Run {
    let (before, usage, started) = (side.sink.submits(), side.usage(), Instant::now());
    let answers = side.send(CONNECTIONS, RUN);
    until("all messages to arrive", || side.sink.submits() >= before + answers.count);
    let took = side.sink.last() - started;
    let p99 = Measured::of(&answers).p99;
    finish(side, &usage, answers.count, took, Some(p99))
}

/// Measures the time from the first send until every receipt is processed.
fn receipted(side: &mut Side) -> Run {
    side.sink.send_receipts(true);
    let (acknowledged, delivered) = (side.sink.acknowledged(), side.delivered());
    let (usage, started) = (side.usage(), Instant::now());
    let answers = side.send_reported(CONNECTIONS, RUN);
    until("all receipts to be answered", || {
        side.sink.acknowledged() >= acknowledged + answers.count
    });
    until("all deliveries to be known", || side.delivered() >= delivered + answers.count);
    let took = started.elapsed();
    side.sink.send_receipts(false);
    let p99 = Measured::of(&answers).p99;
    finish(side, &usage, answers.count, took, Some(p99))
}

/// Waits until the results are stored, and returns the result of the run.
fn finish(
    side: &Side,
    before: &Usage,
    messages: u64,
    took: Duration,
    p99: Option<Duration>,
) -> Run {
    side.settle();
    Run {
        per_second: crate::table::float(messages) / took.as_secs_f64(),
        p99,
        cost: side.usage().each_since(before, messages),
    }
}

pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    let started = Instant::now();
    while !look() {
        assert!(started.elapsed() < DEADLINE, "waited too long for {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}
