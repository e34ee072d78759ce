//! How much an attack slows down other customers' sends. Sends run at a steady pace during each
//! attack, and during the same number of requests that get a 404.
//!
//! Runs with the attack and with the 404s alternate. Each run begins with a restarted process,
//! whose counters of attempts are empty, so that it begins below the limits. `-- attacks` measures
//! all attacks, `-- attack-forgot` only one.

mod connections;
mod crowd;
mod forms;
mod requests;
mod tally;
mod uploads;

use std::time::{Duration, Instant};

use crate::load::{Answer, Answers};
use crate::measured::{Measured, Runs};
use crate::rounds::rounds;
use crate::server::Server;
use crate::steady::Steady;
use crate::table::{Figure, Table, Target, float};
use crate::{Measure, machine, stored};
use tally::Tally;

/// The argument that selects all attacks.
pub const ALL: &str = "attacks";

pub const ATTACKS: [(&str, Measure); 10] = [
    ("attack-forgot", forms::forgot),
    ("attack-sign-in", forms::sign_in),
    ("attack-register", forms::register),
    ("attack-posted-closed", forms::posted_and_closed),
    ("attack-reset", forms::reset),
    ("attack-uploads", uploads::measure),
    ("attack-drip", connections::drip),
    ("attack-unread", connections::unread),
    ("attack-reports", requests::reports),
    ("attack-receipts", requests::receipts),
];

/// Charged sends per second during every run.
const PER_SECOND: u32 = 200;
/// Sends before each run that aren't counted.
const WARM_UP: Duration = Duration::from_secs(1);
/// The length of a run, unless an attack needs longer runs.
const RUN: Duration = Duration::from_secs(5);
/// The highest allowed ratio of the p99 during an attack to the p99 during 404s.
const RATIO_MAX: f64 = 1.2;

/// The attackers during one run.
struct Strangers<'a> {
    address: &'a str,
    until: Instant,
    /// `None` in a run with the attack. In a run with 404s, the time per request.
    nothing_every: Option<Duration>,
}

impl Strangers<'_> {
    /// Returns the request for this run.
    fn choose<T>(&self, attack: T, nothing: T) -> T {
        match self.nothing_every {
            Some(_) => nothing,
            None => attack,
        }
    }

    /// Returns the time per request, `attack` if this is a run with the attack.
    fn pace(&self, attack: Duration) -> Duration {
        self.nothing_every.unwrap_or(attack)
    }
}

/// The results of all runs of one kind.
#[derive(Default)]
struct Beside {
    sends: Runs,
    tally: Tally,
    /// The highest number in a run.
    rows: u64,
    hashes: u64,
    cpu: Duration,
}

/// Compares sends during an attack with sends during 404s. `attack` sends requests until the run is
/// over.
fn compare(
    what: &str,
    mut server: Server,
    run: Duration,
    attack: impl Fn(&Strangers) -> Tally,
    table: &mut Table,
) {
    let (mut attacked, mut calm) = (Beside::default(), Beside::default());
    for _ in 0..rounds() {
        server = server.start_again(|_| {});
        // The 404s come at the pace that the attack reached, which may be slower than intended.
        let every = attacked.run(&server, run, |address, until| {
            attack(&Strangers { address, until, nothing_every: None })
        });
        server = server.start_again(|_| {});
        calm.run(&server, run, |address, until| {
            attack(&Strangers { address, until, nothing_every: Some(every) })
        });
    }
    let (during, without) = (attacked.sends.median_by_p99(), calm.sends.median_by_p99());
    let ratio = during.p99.as_secs_f64() / without.p99.as_secs_f64();
    let beside = [
        format!("attack: {}; beside 404s: {}", attacked.text(&during), calm.text(&without)),
        format!(
            "written per run at most: {} rows, {} hashes; answers: {}; to the 404 requests: {}",
            attacked.rows, attacked.hashes, attacked.tally, calm.tally
        ),
    ];
    let what = format!("p99 of sends beside {what} : beside 404s");
    table.add_beside(what, Figure::Times(ratio), Target::AtMost(RATIO_MAX), &beside);
    if let Some(refused) = attacked.tally.others_refused() {
        let figure = Figure::Count(float(refused as u64));
        let what = "      requests of the other customer that didn't get a 200";
        table.add(what, figure, Target::AtMost(0.0));
    }
    server.wait_until_final();
    server.check();
}

impl Beside {
    /// Measures one run. Returns the average time per request of the attackers.
    fn run(
        &mut self,
        server: &Server,
        run: Duration,
        strangers: impl Fn(&str, Instant) -> Tally,
    ) -> Duration {
        let steady = Steady::start(server, PER_SECOND);
        std::thread::sleep(WARM_UP);
        let url = server.database_url();
        let rows = stored::strangers_rows(&url);
        let hashes = server.metrics().hashes();
        let cpu = machine::cpu(server.id());
        let from = Instant::now();
        let tally = strangers(server.address(), from + run);
        let until = Instant::now();
        let times = steady.stop();
        self.cpu += machine::cpu(server.id()).saturating_sub(cpu) / per_run();
        self.rows = (self.rows).max(stored::strangers_rows(&url).saturating_sub(rows));
        self.hashes = self.hashes.max(server.metrics().hashes() - hashes);
        self.sends.push(Measured::of(&answers(times).within(from, until)));
        let every = (until - from) / tally.asked.max(1);
        self.tally.add(tally);
        every
    }

    fn text(&self, sends: &Measured) -> String {
        format!("{sends}, {:.1} s of CPU time per run", self.cpu.as_secs_f64())
    }
}

fn per_run() -> u32 {
    u32::try_from(rounds()).unwrap()
}

fn answers(times: Vec<Answer>) -> Answers {
    Answers { count: times.len() as u64, times, duration: Duration::ZERO, cpu: Duration::ZERO }
}
