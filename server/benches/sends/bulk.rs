//! Uploads of the largest file, with one message per row.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use serde_json::Value;

use crate::load::Load;
use crate::measured::Measured;
use crate::server::Server;
use crate::table::{Figure, Table, Target};
use crate::{http, machine, requests};

pub const ROWS: usize = 1_000_000;
/// The connections that send single messages while the file expands.
const CONNECTIONS: usize = 64;
const BESIDE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
pub const DEADLINE: Duration = Duration::from_mins(3);

pub fn measure(table: &mut Table) {
    alone("SQLite", Server::start(), 5.0, table);
    beside_sends(table);
}

/// Measures an upload without other load. The application is suspended as soon as the file is
/// accepted, so that nothing is sent meanwhile.
pub fn alone(database: &str, server: Server, queued_within_s: f64, table: &mut Table) {
    println!("an upload of {ROWS} rows with random numbers and texts of 100 characters");
    // Restarts the server: the memory that hashing the demo's passwords took would hide the growth.
    let server = server.start_again(|_| {});
    let before = machine::rss_kib(server.id());
    machine::forget_peak(server.id());
    let upload = Upload::of(&file(), &server, server.key());
    let reference = server.reference();
    let reason = ["--reason", "benchmark"];
    server.call(&["application", "suspend", &reference, reason[0], reason[1]]);
    let deadline = upload.written + DEADLINE;
    let queued = upload.watch(&server, deadline).join().unwrap();
    assert!(queued < deadline, "the rows weren't queued in time");
    let queued = queued - upload.written;
    let peak = machine::peak_kib(server.id());
    println!("      writing the file took {:.1?}", upload.writing);
    let mut add = |what: &str, figure, most| {
        table.add(format!("{database}: a million rows, {what}"), figure, Target::AtMost(most));
    };
    let answer = Figure::Seconds(upload.answer.as_secs_f64());
    add("answer after the last byte", answer, 1.0);
    let queued = Figure::Seconds(queued.as_secs_f64());
    add("all rows queued, without other load", queued, queued_within_s);
    let growth = Figure::mebibytes_of(peak.saturating_sub(before));
    add("growth of the server's RSS", growth, 64.0);
    server.check();
}

/// Measures single sends while the rows of a file become messages and are sent.
fn beside_sends(table: &mut Table) {
    let server = Server::start();
    let (file, mut sends) = (file(), server.sends(1));
    let upload = Upload::of(&file, &server, server.key());
    let started = Instant::now();
    let watching = upload.watch(&server, started + BESIDE);
    let load = Load {
        addresses: &[server.address().to_owned()],
        requests: &mut sends,
        connections: CONNECTIONS,
        duration: BESIDE,
    };
    let answers = load.run().within(started, watching.join().unwrap());
    let measured = Measured::of(&answers);
    let what =
        format!("SQLite: p99 of sends, {CONNECTIONS} connections, while a million rows expand");
    let beside = format!("{measured}, during {:.1?}", answers.duration);
    table.add_beside(what, Figure::millis(measured.p99), Target::AtMost(12.0), &[beside]);
}

/// An accepted file.
pub struct Upload {
    /// The key of its application.
    key: String,
    pub batchid: String,
    /// The time from the first byte to the last.
    writing: Duration,
    /// When the last byte was written.
    written: Instant,
    /// The time from the last byte to the answer.
    answer: Duration,
}

impl Upload {
    pub fn of(file: &str, server: &Server, key: &str) -> Self {
        let [head, tail] = http::around(&format!("/sms/bulk/{key}"), "bulksms", file);
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let started = Instant::now();
        for part in [&head, file, &tail] {
            stream.write_all(part.as_bytes()).unwrap();
        }
        let written = Instant::now();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answered = written.elapsed();
        Self {
            key: key.to_owned(),
            batchid: text(&http::json(&answer), "/batchid"),
            writing: written - started,
            written,
            answer: answered,
        }
    }

    /// Polls the batch until all rows are queued, at most until `until`. Returns when it stopped.
    pub fn watch(&self, server: &Server, until: Instant) -> JoinHandle<Instant> {
        let target = format!("/sms/batches/{}/{}", self.key, self.batchid);
        let address = server.address().to_owned();
        let expanding = move || {
            let batch = http::json(&http::fetch(&address, &target));
            text(&batch, "/batch/status") == "expanding"
        };
        std::thread::spawn(move || {
            while Instant::now() < until && expanding() {
                std::thread::sleep(LOOK_AGAIN);
            }
            Instant::now()
        })
    }
}

fn text(value: &Value, pointer: &str) -> String {
    let word = value.pointer(pointer).and_then(Value::as_str);
    word.unwrap().to_owned()
}

pub fn file() -> String {
    let (mut file, mut random, text) = (String::new(), rand::rng(), http::TEXT);
    for _ in 0..ROWS {
        let number = random.random_range(requests::NUMBERS);
        writeln!(file, "{number},\"{text}\"").unwrap();
    }
    file
}
