//! Uploads of the largest file, one message per row.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::Server;
use crate::{http, machine, rounds, row};

pub const ROWS: usize = 1_000_000;
/// Single sends beside a file that becomes messages.
const CONNECTIONS: usize = 64;
const BESIDE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const DEADLINE: Duration = Duration::from_mins(3);
const BOUNDARY: &str = "divider";

pub fn measure() {
    println!("\nuploads of {ROWS} rows, one to one");
    let file = file();
    alone(Server::start(), &file, "≤ 8 s");
    beside_sends(&file);
}

/// Nothing else goes on: the application is suspended as soon as the file is accepted, so that nothing is
/// sent meanwhile.
pub fn alone(server: Server, file: &str, queued_target: &str) {
    // Anew, since what hashing the demo's passwords took would hide what the upload takes.
    let server = server.start_again(|_| {});
    let before = machine::rss_kib(server.id());
    machine::forget_peak(server.id());
    let upload = Upload::of(file, &server);
    let reference = server.reference();
    server.call(&[
        "application",
        "suspend",
        &reference,
        "--reason",
        "benchmark",
    ]);
    wait_until_queued(&server, &upload.batchid);
    let queued = upload.written.elapsed();
    let peak = machine::peak_kib(server.id());
    row("the file on its way", format!("{:.2?}", upload.writing), "");
    row(
        "answer after the last byte",
        format!("{:.0?}", upload.answer),
        "≤ 1 s",
    );
    let queued = format!("{queued:.2?}");
    row("all rows queued after it", queued, queued_target);
    row(
        "growth of the server's RSS",
        format!(
            "{} (from {} to {})",
            machine::mib(peak - before),
            machine::mib(before),
            machine::mib(peak)
        ),
        "≤ 64 MiB",
    );
    server.check();
}

/// Single sends while the rows of a file become messages and are sent.
fn beside_sends(file: &str) {
    let server = Server::start();
    let upload = Upload::of(file, &server);
    let request = server.send_request();
    let sends = rounds::run(server.address(), &request, CONNECTIONS, BESIDE);
    let during = status(&server, &upload.batchid);
    let what = format!("p99 of single sends, {CONNECTIONS} connections, meanwhile");
    row(&what, format!("{:.1?} ({sends})", sends.p99), "≤ 50 ms");
    if during != "expanding" {
        println!("(for part of this time all rows were queued already)");
    }
}

/// A file that was accepted.
struct Upload {
    batchid: String,
    /// From the first byte to the last.
    writing: Duration,
    /// When the last byte was handed over.
    written: Instant,
    /// From then to the answer.
    answer: Duration,
}

impl Upload {
    fn of(file: &str, server: &Server) -> Self {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"bulksms\"; filename=\"rows.csv\"\r\n\
             Content-Type: text/csv\r\n\r\n"
        );
        let tail = format!("\r\n--{BOUNDARY}--\r\n");
        let request = format!(
            "POST /sms/bulk/{} HTTP/1.1\r\nHost: bench\r\nContent-Length: {}\r\n\
             Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n",
            server.key(),
            head.len() + file.len() + tail.len()
        );
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let started = Instant::now();
        for part in [&request, &head, file, &tail] {
            stream.write_all(part.as_bytes()).unwrap();
        }
        let written = Instant::now();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answered = written.elapsed();
        Self {
            batchid: text(&http::json(&answer), "/batchid"),
            writing: written - started,
            written,
            answer: answered,
        }
    }
}

fn wait_until_queued(server: &Server, batchid: &str) {
    let started = Instant::now();
    while status(server, batchid) == "expanding" {
        assert!(started.elapsed() < DEADLINE, "the rows don't get queued");
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn status(server: &Server, batchid: &str) -> String {
    let target = format!("/sms/batches/{}/{batchid}", server.key());
    let answer = http::fetch(server.address(), &target);
    text(&http::json(&answer), "/batch/status")
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap()
        .to_owned()
}

/// So many rows, each with a number of its own.
pub fn file() -> String {
    let mut file = String::new();
    for n in 0..ROWS {
        let number = 57_000_000 + n;
        writeln!(file, "{number},Hello, your code is {n:06}").unwrap();
    }
    file
}
