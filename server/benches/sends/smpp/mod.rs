//! Messages on their way through SMPP, beside Kannel's: each side sends to a sink of its own, by one transceiver
//! with the same window.
//!
//! Kannel keeps messages and what their receipts are matched by in memory, and tells an HTTP server (`dlr-url`) that
//! a message was handed over and that it was delivered. Heliograph stores both.

mod calls;
mod frame;
mod raw;
mod side;
mod sink;

use std::fmt;
use std::time::{Duration, Instant};

use side::Side;

use crate::rounds::{ROUNDS, run};
use crate::row;

/// Submits that wait for their answer, on both sides.
const WINDOW: usize = 100;
/// At least so many messages wait when the sink opens.
const BACKLOG: u64 = 100_000;
/// Connections that send.
const CONNECTIONS: usize = 256;
const RUN: Duration = Duration::from_secs(2);
/// By when all that was accepted must have arrived, or been receipted.
const DEADLINE: Duration = Duration::from_mins(3);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

struct Way {
    what: &'static str,
    run: fn(&mut Side) -> Run,
    /// What the ratio to Kannel is to be.
    target: &'static str,
}

const WAYS: [Way; 3] = [
    Way {
        what: "a backlog",
        run: backlog,
        target: "≥ 1",
    },
    Way {
        what: "accepting and sending",
        run: together,
        target: "≥ 1",
    },
    Way {
        what: "with receipts",
        run: receipted,
        target: "≥ 2",
    },
];

pub fn measure() {
    println!(
        "\nmessages by SMPP to a sink, window {WINDOW}; {CONNECTIONS} connections send; \
         medians of {ROUNDS} alternating runs"
    );
    let alone = format!("{:.0}/s", raw::submits_per_second(WINDOW));
    row(
        "the sink by itself, frames made beforehand",
        alone,
        "≥ 60000/s",
    );
    let mut sides = vec![Side::heliograph()];
    match Side::kannel() {
        Some(kannel) => sides.push(kannel),
        None => {
            println!("(Kannel isn't installed: `.make/setup kannel` unpacks Debian's package)");
        }
    }
    for Way { what, run, target } in WAYS {
        let runs = alternate(&mut sides, run);
        println!("{what:>22}  {}  {}", sides[0].name(), runs[0]);
        for (side, run) in sides.iter().zip(&runs).skip(1) {
            let ratio = runs[0].per_second / run.per_second;
            println!(
                "{:>22}  {ratio:.2} × {}, {run}  [{target}]",
                "",
                side.name()
            );
        }
    }
    for side in &sides {
        side.check();
    }
}

/// What a run gave.
#[derive(Clone, Copy)]
struct Run {
    /// Messages.
    per_second: f64,
    /// Of the sends meanwhile.
    p99: Option<Duration>,
    /// Processor time of a message.
    cpu: Duration,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}/s", self.per_second)?;
        if let Some(p99) = self.p99 {
            write!(f, " p99 of sends {:.2} ms", p99.as_secs_f64() * 1000.0)?;
        }
        write!(f, " cpu {} µs", self.cpu.as_micros())
    }
}

/// The median run of each side by rate; while one is measured the others stand still.
fn alternate(sides: &mut [Side], way: fn(&mut Side) -> Run) -> Vec<Run> {
    let mut runs = vec![Vec::new(); sides.len()];
    for side in &*sides {
        side.signal("STOP");
    }
    for _ in 0..ROUNDS {
        for (side, runs) in sides.iter_mut().zip(&mut runs) {
            side.signal("CONT");
            runs.push(way(side));
            side.settle();
            side.signal("STOP");
        }
    }
    for side in &*sides {
        side.signal("CONT");
    }
    let median = |mut runs: Vec<Run>| {
        runs.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        runs[runs.len() / 2]
    };
    runs.into_iter().map(median).collect()
}

/// Messages gather while the sink is away; the time counts from the first of them that it sees to the last.
fn backlog(side: &mut Side) -> Run {
    side.sink.close();
    let before = side.sink.submits();
    let mut messages = 0;
    while messages < BACKLOG {
        messages += run(side.address(), &side.request(), CONNECTIONS, RUN).answers;
    }
    assert_eq!(side.sink.submits(), before, "the sink was away");
    side.sink.forget_times();
    let cpu = side.cpu();
    side.sink.open();
    until("the backlog to arrive", || {
        side.sink.submits() >= before + messages
    });
    side.run(messages, side.sink.span(), None, cpu)
}

/// The time counts from the first send until all that was accepted has arrived.
fn together(side: &mut Side) -> Run {
    let (before, cpu, started) = (side.sink.submits(), side.cpu(), Instant::now());
    let sends = run(side.address(), &side.request(), CONNECTIONS, RUN);
    until("all messages to arrive", || {
        side.sink.submits() >= before + sends.answers
    });
    let took = side.sink.last() - started;
    side.run(sends.answers, took, Some(sends.p99), cpu)
}

/// The time counts from the first send until every receipt was dealt with.
fn receipted(side: &mut Side) -> Run {
    side.sink.send_receipts(true);
    let (acknowledged, delivered) = (side.sink.acknowledged(), side.delivered());
    let (cpu, started) = (side.cpu(), Instant::now());
    let sends = run(side.address(), &side.reported_request(), CONNECTIONS, RUN);
    until("all receipts to be answered", || {
        side.sink.acknowledged() >= acknowledged + sends.answers
    });
    until("all deliveries to be known", || {
        side.delivered() >= delivered + sends.answers
    });
    let took = started.elapsed();
    side.sink.send_receipts(false);
    side.run(sends.answers, took, Some(sends.p99), cpu)
}

fn until(what: &str, mut look: impl FnMut() -> bool) {
    let started = Instant::now();
    while !look() {
        assert!(started.elapsed() < DEADLINE, "waited too long for {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}
