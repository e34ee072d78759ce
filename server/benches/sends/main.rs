//! `make bench`: how fast the real binary is on this machine, beside Kannel and a bare handler in the same run.
//!
//! Everything runs on one machine and shares its cores: the load generator (this process), the server
//! (the release binary on a database of its own, SQLite at WAL and `synchronous=FULL`, or PostgreSQL with `fsync` and
//! `synchronous_commit`), Kannel where it is installed, and the bare handler (this executable called again). Runs that are compared alternate, and
//! medians are printed, so that a machine that is busy with something else disturbs both alike.
//! `cargo bench -p server --bench sends -- bulk` measures one part.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where something doesn't work"
)]

mod bare;
mod bulk;
mod history;
mod http;
mod kannel;
mod load;
mod machine;
mod postgres;
mod rounds;
mod server;
mod singles;
mod smpp;

use std::time::Duration;

use bare::Bare;
use load::Measured;
use rounds::{ROUNDS, run};
use server::Server;

const PAGE_RUN: Duration = Duration::from_secs(1);
/// Connections that read pages.
const PAGE_CONNECTIONS: usize = 8;
const STARTS: usize = 5;

const PARTS: [(&str, fn()); 10] = [
    ("sizes", sizes),
    ("sends", one_server),
    ("smpp", smpp::measure),
    ("bulk", bulk::measure),
    ("history", history::measure),
    ("postgres-sends", postgres::sends::measure),
    ("postgres-claims", postgres::claims::measure),
    ("postgres-bulk", postgres::bulk::measure),
    ("postgres-nodes", postgres::nodes::measure),
    ("postgres-pinned", postgres::pinned::measure),
];

fn main() {
    // Cargo adds an option of its own.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if wanted == [bare::ARGUMENT] {
        bare::serve();
        return;
    }
    machine::print();
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            measure();
        }
    }
}

/// A figure, and what it is to be.
fn row(what: &str, figure: impl AsRef<str>, target: &str) {
    let figure = figure.as_ref();
    let target = match target {
        "" => String::new(),
        target => format!("  [{target}]"),
    };
    println!("{what:<52} {figure}{target}");
}

/// What is there before anything is sent; and the time from the start of the process to the line that says it
/// is ready.
fn sizes() {
    machine::print_wasm();
    let (mut times, rss) = server::starts(STARTS);
    times.sort();
    let median = times[times.len() / 2];
    let what = format!("start to ready, migrated database, median of {STARTS}");
    row(&what, format!("{median:.0?}"), "≤ 300 ms");
    row("RSS then", machine::mib(rss), "≤ 40 MiB");
}

fn one_server() {
    let server = Server::start();
    let rss = machine::mib(machine::rss_kib(server.id()));
    row("RSS with demo data, whose passwords were hashed", rss, "");
    singles::compare(&server, Some(&Bare::start()), "≥ 3");
    pages(&server);
    let rss = machine::mib(machine::rss_kib(server.id()));
    row("RSS after sends and pages", rss, "");
    server.check();
}

/// Pages of a signed-in customer who has sent a lot, rendered by the server.
fn pages(server: &Server) {
    println!(
        "\nportal, signed in, {PAGE_CONNECTIONS} connections, medians of {ROUNDS} runs of {PAGE_RUN:?}"
    );
    let paths = [
        "/applications".to_owned(),
        format!("/applications/{}", server.reference()),
        "/reports".to_owned(),
    ];
    for (path, request) in paths.iter().zip(server.page_requests(&paths)) {
        let measured = (0..ROUNDS)
            .map(|_| run(server.address(), &request, PAGE_CONNECTIONS, PAGE_RUN))
            .collect();
        let measured = Measured::median(measured);
        row(path, measured.to_string(), "≥ 2000/s, p50 ≤ 5 ms");
    }
}
