//! `make bench`: how fast the real binary is on this machine, beside a bare handler in the same run.
//!
//! Everything runs on one machine and shares its cores: the load generator (this process), the server
//! (the release binary on a database of its own, SQLite at WAL and `synchronous=FULL`), and the bare
//! handler (this executable called again). Runs that are compared alternate, and medians are printed, so
//! that a machine that is busy with something else disturbs both alike.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where something doesn't work"
)]

mod bare;
mod load;
mod machine;
mod server;

use std::time::Duration;

use load::{Load, Measured};
use server::Server;

/// Connections that send at a time.
const CONNECTIONS: [usize; 3] = [8, 64, 256];
/// Runs of each kind, alternating.
const ROUNDS: usize = 5;
/// How long each run takes, after its warm-up.
const RUN: Duration = Duration::from_secs(2);
/// Connections that read pages.
const PAGE_CONNECTIONS: usize = 8;
const STARTS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(bare::ARGUMENT) {
        bare::serve();
        return;
    }
    machine::print();
    starts();
    let server = Server::start();
    println!(
        "RSS after a start with demo data, which hashes passwords: {}",
        machine::rss(server.id())
    );
    pages(&server);
    sends(&server);
    println!("RSS after the sends: {}", machine::rss(server.id()));
    server.check();
    machine::print_wasm();
}

/// Single sends beside a bare JSON handler.
fn sends(server: &Server) {
    let bare = bare::Bare::start();
    println!("\nsingle sends by GET, keep-alive, {ROUNDS} alternating runs of {RUN:?}, medians");
    println!(
        "{:>12}  {:>26}  {:>26}  {:>6}",
        "connections", "heliograph", "bare axum handler", "ratio"
    );
    for connections in CONNECTIONS {
        let mut ours = Vec::new();
        let mut bares = Vec::new();
        for _ in 0..ROUNDS {
            ours.push(run(server.address(), &server.send_request(), connections));
            bares.push(run(bare.address(), &bare::request(), connections));
        }
        let (ours, bares) = (Measured::median(ours), Measured::median(bares));
        let ratio = ours.per_second / bares.per_second;
        println!("{connections:>12}  {ours:>26}  {bares:>26}  {ratio:>6.2}");
    }
}

/// A page of a signed-in customer, rendered by the server.
fn pages(server: &Server) {
    let request = server.page_request("/applications");
    let measured = (0..ROUNDS)
        .map(|_| run(server.address(), &request, PAGE_CONNECTIONS))
        .collect();
    let measured = Measured::median(measured);
    println!("\n/applications, signed in, {PAGE_CONNECTIONS} connections: {measured}");
}

fn run(address: &str, request: &[u8], connections: usize) -> Measured {
    Load {
        address: address.to_owned(),
        request: request.to_vec(),
        connections,
        duration: RUN,
    }
    .run()
}

/// From the start of the process to the line that says it is ready.
fn starts() {
    let (mut times, rss) = server::starts(STARTS);
    times.sort();
    let median = times[times.len() / 2];
    println!(
        "start to ready on a migrated database: {median:.0?} (median of {STARTS}), RSS then {rss}"
    );
}
