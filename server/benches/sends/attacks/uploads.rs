//! Very slow uploads by an application that isn't Active, while another customer uploads.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::tally::Tally;
use super::{Strangers, compare};
use crate::http;
use crate::load::status_in;
use crate::server::Server;
use crate::table::Table;

const DRIPPING: usize = 32;
/// The pause between two bytes.
const PAUSE: Duration = Duration::from_millis(100);
const RUN: Duration = Duration::from_secs(10);
/// The pause between two uploads of the other customer.
const OTHERS_PAUSE: Duration = Duration::from_millis(250);
const BOUNDARY: &str = "divider";

pub fn measure(table: &mut Table) {
    let (server, pending) = Server::start().with_pending_application();
    // Stores an answer for each of their idempotency keys.
    for number in 0..DRIPPING {
        let request = dripped("bulk", &pending, number);
        let answer = http::exchange(server.address(), &request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let other = server.key().to_owned();
    let attack = |strangers: &Strangers| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| others(strangers, &other));
            let mut tally = drip(strangers, &pending);
            tally.add(other.join().unwrap());
            tally
        })
    };
    let what = "32 dripping uploads, a customer's uploads too";
    compare(what, server, RUN, attack, table);
}

/// Uploads small files as the other customer.
fn others(strangers: &Strangers, key: &str) -> Tally {
    let mut tally = Tally::default();
    while Instant::now() < strangers.until {
        let asked = Instant::now();
        let status = upload_numbers(strangers.address, key, 10);
        tally.other(&status, asked.elapsed());
        std::thread::sleep(OTHERS_PAUSE);
    }
    tally
}

/// One upload that is sent byte by byte.
struct Dripping {
    stream: TcpStream,
    rest: std::vec::IntoIter<u8>,
}

/// Keeps [`DRIPPING`] uploads running. In a run with the attack, an upload that was answered or cut
/// off starts again. Uploads to the missing path don't, so that both runs send equally many
/// requests.
fn drip(strangers: &Strangers, key: &str) -> Tally {
    let path = strangers.choose("bulk", "nothing");
    let begin = |number| Dripping::begin(strangers.address, &dripped(path, key, number));
    let mut uploads: Vec<_> = (0..DRIPPING).map(|number| Some(begin(number))).collect();
    let mut tally = Tally::default();
    while Instant::now() < strangers.until {
        std::thread::sleep(PAUSE);
        tally.asked += 1;
        for (number, upload) in uploads.iter_mut().enumerate() {
            if let Some(answer) = upload.as_mut().and_then(Dripping::go_on) {
                tally.note(answer);
                *upload = strangers.choose(true, false).then(|| begin(number));
            }
        }
    }
    tally
}

impl Dripping {
    fn begin(address: &str, request: &[u8]) -> Self {
        let head = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&request[..head]).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self { stream, rest: Vec::from(&request[head..]).into_iter() }
    }

    /// Sends one more byte. Returns how the upload ended, if it has.
    fn go_on(&mut self) -> Option<String> {
        let mut answer = [0; 1024];
        match self.stream.read(&mut answer) {
            Ok(0) => return Some("cut off".to_owned()),
            Ok(read) => return Some(status_in(&answer[..read]).unwrap_or_default().to_string()),
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                return Some("cut off".to_owned());
            }
            Err(_) => {}
        }
        let byte = self.rest.next().unwrap();
        match self.stream.write_all(&[byte]) {
            Ok(()) => None,
            Err(_) => Some("cut off".to_owned()),
        }
    }
}

/// Returns an upload with one of the stored idempotency keys. It is long enough not to end within a
/// run.
fn dripped(path: &str, key: &str, number: usize) -> Vec<u8> {
    let head = format!("Idempotency-Key: known-{number}\r\n");
    request(path, key, &head, &numbers(100))
}

/// Uploads `count` numbers and returns the status of the answer.
pub fn upload_numbers(address: &str, key: &str, count: u64) -> String {
    let answer = http::exchange(address, &request("bulk", key, "", &numbers(count)));
    status_in(answer.as_bytes()).unwrap().to_string()
}

fn numbers(count: u64) -> String {
    let mut rows = String::new();
    for number in 0..count {
        writeln!(rows, "{}", 58_000_000 + number).unwrap();
    }
    rows
}

/// Returns an upload that sends one message to these numbers.
fn request(path: &str, key: &str, head: &str, numbers: &str) -> Vec<u8> {
    let body = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nHello\r\n\
         --{BOUNDARY}\r\nContent-Disposition: form-data; name=\"numbers\"; filename=\"n.csv\"\r\n\
         Content-Type: text/csv\r\n\r\n{numbers}\r\n--{BOUNDARY}--\r\n"
    );
    let request = format!(
        "POST /sms/{path}/{key} HTTP/1.1\r\nHost: bench\r\n{head}Content-Length: {}\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n{body}",
        body.len()
    );
    request.into_bytes()
}
