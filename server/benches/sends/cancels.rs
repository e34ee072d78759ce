//! Cancels a batch of a million messages while others are sent.

use std::time::{Duration, Instant};

use crate::bulk::{self, Upload};
use crate::http;
use crate::measured::Runs;
use crate::rounds::rounds;
use crate::server::Server;
use crate::steady::sends_during;
use crate::stored;
use crate::table::{Figure, Table, Target};

/// Sends per second of another application.
const PER_SECOND: u32 = 1000;
/// The length of a run without a cancellation.
const RUN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The application of the batch is suspended, so that none of its rows is sent before.
pub fn measure(table: &mut Table) {
    println!("a batch of {} rows; another application sends {PER_SECOND}/s", bulk::ROWS);
    let server = Server::start().with_applications(2);
    let key = server.keys()[1].clone();
    let upload = Upload::of(&bulk::file(), &server, &key);
    server.call(&["application", "suspend", &key[..6], "--reason", "benchmark"]);
    let deadline = Instant::now() + bulk::DEADLINE;
    assert!(upload.watch(&server, deadline).join().unwrap() < deadline, "the rows aren't queued");
    let mut without = Runs::default();
    for _ in 0..rounds() {
        without.push(sends_during(&server, PER_SECOND, || std::thread::sleep(RUN)));
    }
    let (mut answered, mut took) = (Duration::ZERO, Duration::ZERO);
    let during = sends_during(&server, PER_SECOND, || {
        (answered, took) = cancel(&server, &key, &upload.batchid);
    });
    let alone = without.median_by_p99();
    let took = Figure::Seconds(took.as_secs_f64());
    let lines = [format!("the answer with the counts came after {answered:.1?}")];
    table.add_beside("cancels: a million messages", took, Target::AtMost(30.0), &lines);
    let ratio = during.p99.as_secs_f64() / alone.p99.as_secs_f64();
    let lines = [format!("during: {during}; without: {alone}")];
    let what = "cancels: p99 of sends meanwhile : without";
    table.add_beside(what, Figure::Times(ratio), Target::AtMost(1.5), &lines);
    server.wait_until_final();
    server.check();
}

/// Cancels a batch. Returns the times until the answer, and until all rows are cancelled.
fn cancel(server: &Server, key: &str, batchid: &str) -> (Duration, Duration) {
    let request = http::form(
        &format!("/sms/cancel/{key}"),
        "Connection: close\r\n",
        &format!("batchid={batchid}"),
    );
    let begun = Instant::now();
    let answer = http::json(&http::exchange(server.address(), &request));
    let answered = begun.elapsed();
    let rows = answer["cancelled"].as_u64().unwrap();
    let url = server.database_url();
    while stored::cancelled(&url) < rows {
        assert!(begun.elapsed() < bulk::DEADLINE, "{} are cancelled", stored::cancelled(&url));
        std::thread::sleep(LOOK_AGAIN);
    }
    println!("      {rows} rows");
    (answered, begun.elapsed())
}
