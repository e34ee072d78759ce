//! `make bench`: measures how fast the release binary is on this machine, compared with Kannel and
//! a bare handler in the same run.
//!
//! These processes share one machine and its cores:
//!
//! - the load generator, which is this process,
//! - servers, each with its own database: SQLite with WAL and `synchronous=FULL`, or PostgreSQL or
//!   Citus with `fsync` and `synchronous_commit`,
//! - Kannel, if it is installed,
//! - the bare handler, which is this executable with an argument.
//!
//! Systems that are compared run in turns, and the medians count, so that other load on the machine
//! affects all of them alike. `cargo bench -p server --bench sends -- bulk` measures one part. The
//! `attacks` run only if they are named. docs/BENCHMARKS.md explains the figures.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints its results, and panics on errors"
)]

mod applications;
mod attacks;
mod bare;
mod bulk;
mod cancels;
mod carriers;
mod citus;
mod codes;
mod desk;
mod events;
mod history;
mod http;
mod inbound;
mod kannel;
mod limits;
mod load;
mod machine;
mod measured;
mod metrics;
mod opt_outs;
mod portal;
mod postgres;
mod requests;
mod rounds;
mod schedules;
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

const PARTS: [(&str, Measure); 27] = [
    ("sizes", sizes::measure),
    ("sends", sends::measure),
    ("smpp", smpp::measure),
    ("carriers", carriers::measure),
    ("bulk", bulk::measure),
    ("storm", storm::measure),
    ("events", events::measure),
    ("inbound", inbound::measure),
    ("opt-outs", opt_outs::measure),
    ("limits", limits::measure),
    ("schedules", schedules::measure),
    ("cancels", cancels::measure),
    ("codes", codes::measure),
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
    // Cargo passes `--bench`.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if wanted == [bare::ARGUMENT] {
        bare::serve();
        return ExitCode::SUCCESS;
    }
    let Some(parts) = parts(&wanted) else {
        let known = PARTS.iter().chain(&ATTACKS).map(|(name, _)| *name);
        let known: Vec<_> = known.collect();
        println!("The parts are {} and {ALL}.", known.join(", "));
        return ExitCode::FAILURE;
    };
    let mut table = Table::default();
    machine::print();
    println!("medians of {} runs; compared systems run in turns", rounds::rounds());
    let sync = Figure::millis(machine::sync_time());
    table.add("fsync of 4 KiB at the start", sync, Target::None);
    let mut failed = false;
    for (name, measure) in parts {
        failed |= !run(name, measure, &mut table);
    }
    table.print();
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns the named parts, or all parts except attacks if none is named. `None` if a name is
/// unknown.
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

/// Runs one part and returns whether it finished. If it panics, the other parts still run.
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
