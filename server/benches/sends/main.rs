//! `make bench`: how fast the real binary is on this machine, beside Kannel and a bare handler in
//! the same run.
//!
//! Everything runs on one machine and shares its cores: the load generator (this process), the
//! server (the release binary on a database of its own, SQLite at WAL and `synchronous=FULL`, or
//! PostgreSQL or Citus with `fsync` and `synchronous_commit`), Kannel where it is installed, and the
//! bare handler (this executable called again). Runs that are compared alternate, and medians are
//! printed, so that a machine that is busy with something else disturbs both alike. `cargo bench -p
//! server --bench sends -- bulk` measures one part; `attacks` are parts that aren't measured unless
//! they are asked for. docs/BENCHMARKS.md says what the figures mean.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where something doesn't work"
)]

mod applications;
mod attacks;
mod bare;
mod bulk;
mod citus;
mod desk;
mod history;
mod http;
mod kannel;
mod load;
mod machine;
mod measured;
mod metrics;
mod portal;
mod postgres;
mod requests;
mod rounds;
mod sends;
mod server;
mod sizes;
mod smpp;
mod steady;
mod stored;
mod storm;
mod table;
mod usage;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use attacks::{ALL, ATTACKS};
use table::{Figure, Table, Target};

type Measure = fn(&mut Table);

const PARTS: [(&str, Measure); 19] = [
    ("sizes", sizes::measure),
    ("sends", sends::measure),
    ("smpp", smpp::measure),
    ("bulk", bulk::measure),
    ("storm", storm::measure),
    ("portal", portal::measure),
    ("history", history::measure),
    ("desk", desk::measure),
    ("desk-search", desk::search::measure),
    ("desk-import", desk::import::measure),
    ("postgres-sends", postgres::sends),
    ("postgres-nodes", postgres::nodes::measure),
    ("postgres-bulk", postgres::bulk),
    ("postgres-storm", postgres::storm),
    ("postgres-history", postgres::history),
    ("postgres-pinned", postgres::pinned::measure),
    ("citus-sends", citus::sends),
    ("citus-workers", citus::workers::measure),
    ("citus-outage", citus::outage::measure),
];

fn main() -> ExitCode {
    // Cargo adds an option of its own.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if wanted == [bare::ARGUMENT] {
        bare::serve();
        return ExitCode::SUCCESS;
    }
    let Some(parts) = parts(&wanted) else {
        let known = PARTS.iter().chain(&ATTACKS).map(|(name, _)| *name);
        let known: Vec<_> = known.collect();
        println!("The parts are {}, and {ALL}.", known.join(", "));
        return ExitCode::FAILURE;
    };
    let mut table = Table::default();
    machine::print();
    println!(
        "medians of {} runs; those that are compared alternate",
        rounds::rounds()
    );
    let sync = Figure::millis(machine::sync_time());
    table.add("fsync of 4 KiB at the start", sync, Target::None);
    let mut failed = false;
    for (name, measure) in parts {
        failed |= !run(name, measure, &mut table);
    }
    table.print();
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Those that were asked for; `None` when there is no such part. Attacks are only measured when they
/// are asked for.
fn parts(wanted: &[String]) -> Option<Vec<(&'static str, Measure)>> {
    if wanted.is_empty() {
        return Some(PARTS.to_vec());
    }
    let mut parts = Vec::new();
    for wanted in wanted {
        if wanted == ALL {
            parts.extend(ATTACKS);
        } else {
            let known = PARTS.iter().chain(&ATTACKS);
            parts.push(*known.into_iter().find(|(name, _)| name == wanted)?);
        }
    }
    Some(parts)
}

/// One part; whether it came to its end. The others' figures aren't lost with it.
fn run(name: &str, measure: Measure, table: &mut Table) -> bool {
    println!("\n== {name} (fsync {:.2?})", machine::sync_time());
    let started = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| measure(table)));
    if let Err(panic) = &result {
        table.not_measured(format!("{name}: the rest"), message(panic.as_ref()));
    }
    println!("({name} took {:.0?})", started.elapsed());
    result.is_ok()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("it panicked");
    text.lines().next().unwrap_or_default().to_owned()
}
