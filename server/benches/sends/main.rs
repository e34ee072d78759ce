//! `make bench`: how fast the real binary is on this machine, beside Kannel and a bare handler in the same run.
//!
//! Everything runs on one machine and shares its cores: the load generator (this process), the server
//! (the release binary on a database of its own, SQLite at WAL and `synchronous=FULL`), Kannel where it is
//! installed, and the bare handler (this executable called again). Runs that are compared alternate, and
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
mod rounds;
mod server;
mod smpp;

use std::time::Duration;

use bare::Bare;
use kannel::Kannel;
use load::Measured;
use rounds::{ROUNDS, alternate, run};
use server::Server;

/// Connections that send at a time.
const CONNECTIONS: [usize; 3] = [8, 64, 256];
/// How long each run takes, after its warm-up.
const RUN: Duration = Duration::from_secs(2);
const PAGE_RUN: Duration = Duration::from_secs(1);
/// Connections that read pages.
const PAGE_CONNECTIONS: usize = 8;
const STARTS: usize = 5;

const PARTS: [(&str, fn()); 5] = [
    ("sizes", sizes),
    ("sends", one_server),
    ("smpp", smpp::measure),
    ("bulk", bulk::measure),
    ("history", history::measure),
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
    sends(&server);
    pages(&server);
    let rss = machine::mib(machine::rss_kib(server.id()));
    row("RSS after sends and pages", rss, "");
    server.check();
}

/// Single sends beside Kannel and a bare JSON handler.
fn sends(server: &Server) {
    println!("\nsingle sends by GET, keep-alive, medians of {ROUNDS} alternating runs of {RUN:?}");
    let bare = Bare::start();
    let mut kannel = Kannel::start();
    if kannel.is_none() {
        println!("(Kannel isn't installed: `.make/setup kannel` unpacks Debian's package)");
    }
    println!("connections");
    for connections in CONNECTIONS {
        let mut contenders = vec![server.contender(server.send_request()), bare.contender()];
        contenders.extend(kannel.as_mut().map(Kannel::contender));
        let runs = alternate(&mut contenders, connections, RUN);
        let ours = runs[0];
        println!("{connections:>11}  heliograph  {ours}");
        let names = ["bare axum handler", "Kannel's sendsms"];
        for ((name, other), target) in names.iter().zip(&runs[1..]).zip(["≥ 0.45", "≥ 3"]) {
            // Targets are for the most connections.
            let target = if connections == 256 {
                format!("  [{target}]")
            } else {
                String::new()
            };
            let ratio = ours.per_second / other.per_second;
            println!("{:>11}  {ratio:.2} × {name}, {other}{target}", "");
        }
    }
    if let Some(kannel) = &kannel {
        println!(
            "(all {} messages that Kannel answered came to the fake SMSC)",
            kannel.arrived()
        );
    }
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
