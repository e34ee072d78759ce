//! What strangers' load costs those who pay: sends at a steady pace beside each attack, and beside
//! as many requests that are answered 404.
//!
//! Attack and 404s alternate, each on a process that was just started: it has forgotten all
//! attempts, so that every run begins below the limits. `-- attacks` measures all of them, `--
//! attack-forgot` one.

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

/// What selects all of them.
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

/// Paid sends in a second, beside everything.
const PER_SECOND: u32 = 200;
/// Sends that aren't counted, before each run.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long a run takes where nothing needs longer.
const RUN: Duration = Duration::from_secs(5);
/// What the slow sends beside an attack may take, in those beside 404s.
const RATIO_MAX: f64 = 1.2;

/// One run of strangers.
struct Strangers<'a> {
    address: &'a str,
    until: Instant,
    /// `None` for the attack; else they ask for what isn't there, once in this time.
    nothing_every: Option<Duration>,
}

impl Strangers<'_> {
    /// Which of two requests they ask.
    fn choose<T>(&self, attack: T, nothing: T) -> T {
        match self.nothing_every {
            Some(_) => nothing,
            None => attack,
        }
    }

    /// How often they ask.
    fn pace(&self, attack: Duration) -> Duration {
        self.nothing_every.unwrap_or(attack)
    }
}

/// What was found beside strangers of one kind.
#[derive(Default)]
struct Beside {
    sends: Runs,
    tally: Tally,
    /// The most of a run.
    rows: u64,
    hashes: u64,
    cpu: Duration,
}

/// Sends beside an attack and beside 404s; `attack` asks until its time is over.
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
        // The attack's own pace, where it is slower than it would be.
        let every = attacked.run(&server, run, |address, until| {
            attack(&Strangers {
                address,
                until,
                nothing_every: None,
            })
        });
        server = server.start_again(|_| {});
        calm.run(&server, run, |address, until| {
            attack(&Strangers {
                address,
                until,
                nothing_every: Some(every),
            })
        });
    }
    let (during, without) = (attacked.sends.median_by_p99(), calm.sends.median_by_p99());
    let ratio = during.p99.as_secs_f64() / without.p99.as_secs_f64();
    let beside = [
        format!(
            "attack: {}; beside 404s: {}",
            attacked.text(&during),
            calm.text(&without)
        ),
        format!(
            "written in a run at most: {} rows, {} hashes; answers: {}; the 404s: {}",
            attacked.rows, attacked.hashes, attacked.tally, calm.tally
        ),
    ];
    let what = format!("p99 of sends beside {what} : beside 404s");
    table.add_beside(
        what,
        Figure::Times(ratio),
        Target::AtMost(RATIO_MAX),
        &beside,
    );
    if let Some(refused) = attacked.tally.others_refused() {
        let figure = Figure::Count(float(refused as u64));
        let what = "      the other's requests that weren't answered 200";
        table.add(what, figure, Target::AtMost(0.0));
    }
    server.wait_until_final();
    server.check();
}

impl Beside {
    /// One run; in what time the strangers asked once.
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
        self.sends
            .push(Measured::of(&answers(times).within(from, until)));
        let every = (until - from) / tally.asked.max(1);
        self.tally.add(tally);
        every
    }

    fn text(&self, sends: &Measured) -> String {
        format!(
            "{sends}, {:.1} s of processor time a run",
            self.cpu.as_secs_f64()
        )
    }
}

fn per_run() -> u32 {
    u32::try_from(rounds()).unwrap()
}

fn answers(times: Vec<Answer>) -> Answers {
    Answers {
        count: times.len() as u64,
        times,
        duration: Duration::ZERO,
        cpu: Duration::ZERO,
    }
}
