//! What watching carriers costs, and how fast a carrier that turns bad loses its messages.

use std::time::{Duration, Instant};

use crate::machine;
use crate::server::Server;
use crate::smpp::sink::{Conduct, Sink};
use crate::smpp::until;
use crate::steady::Steady;
use crate::table::{Figure, Table, Target, float};

/// Carriers that are watched while nothing is sent.
const WATCHED: u32 = 10;
const IDLE: Duration = Duration::from_secs(20);
/// Messages per second to a carrier that turns bad.
const RATE: u32 = 100;
/// How long the carrier is good, and how long it is bad.
const GOOD: Duration = Duration::from_secs(8);
const BAD: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// A carrier has lost its messages once it gets no more than these in a second, which are probes.
const PROBES_MAX: u64 = 3;

pub fn measure(table: &mut Table) {
    watching(table);
    for (what, conduct) in [
        ("refuses everything", Conduct::Refuses),
        ("throttles everything", Conduct::Throttles),
        ("answers nothing", Conduct::Silent),
        ("delivers nothing", Conduct::DeliversNothing),
    ] {
        turns_bad(what, conduct, table);
    }
}

fn carrier(name: &str, sink: &Sink) -> String {
    format!(
        "[[carrier]]\nname = \"{name}\"\nkind = \"smpp\"\naddress = \"127.0.0.1:{}\"\n\
         system_id = \"bench\"\npassword = \"bench\"\n\n",
        sink.port()
    )
}

fn route(carrier: &str, priority: u32) -> String {
    format!("[[route]]\ncarrier = \"{carrier}\"\npriority = {priority}\n\n")
}

/// Measures the CPU time per second of a process that sends nothing. It includes everything else
/// that an idle process does, so watching carriers costs less.
fn watching(table: &mut Table) {
    let sink = Sink::opened();
    let names: Vec<_> = (0..WATCHED).map(|number| format!("carrier{number}")).collect();
    let carriers = names.iter().map(|name| carrier(name, &sink));
    let routes = (1..).zip(&names).map(|(priority, name)| route(name, priority));
    let server = Server::start_set(&carriers.chain(routes).collect::<String>());
    std::thread::sleep(GOOD);
    let before = machine::cpu(server.id());
    std::thread::sleep(IDLE);
    let spent = machine::cpu(server.id()).saturating_sub(before);
    let what = format!("CPU time per second of an idle process with {WATCHED} SMPP carriers");
    let each = Figure::millis(spent.div_f64(IDLE.as_secs_f64()));
    table.add(what, each, Target::AtMost(20.0));
}

/// Sends at a steady rate over two routes, the first of which leads to a carrier that turns bad.
fn turns_bad(what: &str, conduct: Conduct, table: &mut Table) {
    let (bad, good) = (Sink::opened(), Sink::opened());
    for sink in [&bad, &good] {
        sink.send_receipts(true);
    }
    let settings = carrier("bad", &bad) + &carrier("good", &good) + &route("bad", 1);
    let server = Server::start_set(&(settings + &route("good", 2)));
    let steady = Steady::start(&server, RATE);
    std::thread::sleep(GOOD);
    assert!(bad.submits() > 0 && good.submits() == 0, "the first route is used");
    bad.turn(conduct);
    let (turned, before) = (Instant::now(), bad.submits());
    let mut seen = vec![(Duration::ZERO, before)];
    while turned.elapsed() < BAD {
        std::thread::sleep(LOOK_AGAIN);
        seen.push((turned.elapsed(), bad.submits()));
    }
    let sent = steady.stop().len();
    let lost_after = lost_after(&seen);
    let got = bad.submits() - before;
    let what = format!("a carrier {what} at {RATE}/s: ");
    table.add(what.clone() + "loses its messages after", lost_after, Target::AtMost(30.0));
    let beside = [format!("the other carrier got {} of {sent}", good.submits())];
    let got = Figure::Count(float(got));
    table.add_beside(what + "submits to it meanwhile", got, Target::AtMost(200.0), &beside);
    bad.turn(Conduct::Good);
    until("the last messages to be submitted", || server.metrics().waiting() == 0);
    server.check();
}

/// Returns the time after which the carrier got only probes. `seen` has its submits by time.
fn lost_after(seen: &[(Duration, u64)]) -> Figure {
    let second = usize::try_from(1000 / LOOK_AGAIN.as_millis()).unwrap();
    let busy = |from: &usize| {
        let until = (from + second).min(seen.len() - 1);
        seen[until].1 - seen[*from].1 > PROBES_MAX
    };
    let last = (0..seen.len() - 1).rev().find(busy);
    Figure::Seconds(last.map_or(Duration::ZERO, |last| seen[last + 1].0).as_secs_f64())
}
