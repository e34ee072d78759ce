//! Imports a bank statement of 100,000 lines during sends.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::sign_in;
use crate::http;
use crate::measured::Runs;
use crate::rounds::rounds;
use crate::server::Server;
use crate::steady::sends_during;
use crate::stored;
use crate::table::{Figure, Table, Target};

const LINES: usize = 100_000;
/// Sends per second.
const PER_SECOND: u32 = 200;
/// The length of a run without an import.
const RUN: Duration = Duration::from_secs(5);
/// The highest allowed ratio of the p99 during an import to the p99 without one.
const RATIO_MAX: f64 = 1.5;
const BOUNDARY: &str = "----------------bench";

pub fn measure(table: &mut Table) {
    println!("{PER_SECOND} sends a second, and a bank statement of {LINES} lines");
    let server = Server::start();
    let cookie = sign_in(&server);
    let mut without = Runs::default();
    for _ in 0..rounds() {
        without.push(sends_during(&server, PER_SECOND, || std::thread::sleep(RUN)));
    }
    let begun = Instant::now();
    let during = sends_during(&server, PER_SECOND, || import(&server, &cookie));
    let took = begun.elapsed();
    let alone = without.median_by_p99();
    let ratio = during.p99.as_secs_f64() / alone.p99.as_secs_f64();
    let lines = [
        format!("during: {during}; without: {alone}"),
        format!("the import took {took:.0?}, from the upload to the last line"),
    ];
    let what = format!("SQLite, p99 of sends during an import of {LINES} lines : without");
    table.add_beside(what, Figure::Times(ratio), Target::AtMost(RATIO_MAX), &lines);
    server.wait_until_final();
    server.check();
}

/// Uploads a statement, confirms it, and waits until it is credited.
fn import(server: &Server, cookie: &str) {
    let reference = server.reference();
    let mut body = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"bank.csv\"\r\n\
         Content-Type: text/csv\r\n\r\nid;reference;amount\n"
    );
    for line in 0..LINES {
        // Writing to a string never fails.
        let _ = writeln!(body, "bank-{line};{reference};0,01");
    }
    let _ = write!(body, "\r\n--{BOUNDARY}--\r\n");
    let request = format!(
        "POST /support/import/file HTTP/1.1\r\nHost: bench\r\n{}Cookie: {cookie}\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {}\r\n\r\n{body}",
        http::PAGE,
        body.len()
    );
    let answer = http::exchange(server.address(), request.as_bytes());
    let statement =
        answer.lines().find_map(|line| line.strip_prefix("location: /support/import?statement="));
    let statement = statement.unwrap_or_else(|| panic!("{answer}"));
    let head = format!("{}Cookie: {cookie}\r\n", http::PAGE);
    let form = format!("statement={statement}&credential=");
    let confirm = http::form("/fn/confirm-statement", &head, &form);
    let answer = http::exchange(server.address(), &confirm);
    assert!(answer.contains(&format!("statement={statement}")), "{answer}");
    while stored::statements_under_way(&server.database_url()) > 0 {
        std::thread::sleep(Duration::from_millis(50));
    }
}
