//! Clients that record the answers they got.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use testing::client::{MULTIPART, bare, form, multipart, posted};
use testing::harness::Keys;

use crate::node::Node;

/// The time that clients wait if an answer may not come, for example from a sleeping node.
pub const SHORT: Duration = Duration::from_secs(3);
/// The time that clients wait if they need to know the result. It is longer than a node waits for
/// its database.
pub const LONG: Duration = Duration::from_secs(40);
/// How long a client avoids a node that didn't answer.
const SHUNNED: Duration = Duration::from_secs(10);
/// The pause between two requests of a client. The nodes and the tests share two cores.
const PACE: Duration = Duration::from_millis(15);
/// The pause between two uploads.
const UPLOADS_PACE: Duration = Duration::from_millis(500);
const ROWS: usize = 50;
/// The newest accepted messages and uploads, among which [`Load::recent`] chooses.
const NEWEST: usize = 500;
const NEWEST_UPLOADS: usize = 10;
/// How long after its request a scheduled message is due.
const AHEAD_MS: std::ops::Range<i64> = 2000..15_000;
const FIRST_NUMBER: usize = 10_000_000;
/// The most requests that repeat a lost answer, including the first.
pub const REPEATS: usize = 20;

/// The result of a request, as far as its client knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Status 200, with the transaction ID or batch ID.
    Accepted(String),
    /// HTTP status, code and reason.
    Refused(u16, u64, String),
    /// No answer: the connection was closed or timed out. The request may have been executed or
    /// not.
    Lost,
}

impl Outcome {
    /// Converts an answer. `id` is the field with the ID of an accepted request.
    pub fn of(answer: Option<Answered>, id: &str) -> Self {
        let Some((status, body)) = answer else {
            return Self::Lost;
        };
        match body[id].as_str() {
            Some(id) if status == 200 => Self::Accepted(id.to_owned()),
            _ => Self::Refused(
                status,
                body["code"].as_u64().unwrap_or_default(),
                body["reason"].as_str().unwrap_or_default().to_owned(),
            ),
        }
    }
}

/// A request and its result. No other request has its numbers.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The index of the application.
    pub application: usize,
    pub numbers: std::ops::Range<usize>,
    pub upload: bool,
    /// The answers, including those to repeats.
    pub answers: Vec<Outcome>,
    pub outcome: Outcome,
}

/// The clients, and the requests they sent.
pub struct Load<'a> {
    nodes: &'a [Node],
    /// Live keys.
    keys: Vec<&'a str>,
    patience: Duration,
    /// Whether some messages and uploads are scheduled for later.
    schedules: bool,
    over: AtomicBool,
    next_number: AtomicUsize,
    sent: Mutex<Vec<Sent>>,
}

impl<'a> Load<'a> {
    pub fn new(nodes: &'a [Node], applications: &[&'a Keys], patience: Duration) -> Self {
        Self {
            nodes,
            patience,
            schedules: false,
            keys: applications.iter().map(|k| k.live.expose()).collect(),
            over: AtomicBool::new(false),
            next_number: AtomicUsize::new(FIRST_NUMBER),
            sent: Mutex::default(),
        }
    }

    /// Lets one in four messages, and one in four uploads, be scheduled for some seconds later.
    pub fn with_schedules(self) -> Self {
        Self { schedules: true, ..self }
    }

    /// Runs clients until `work` is done.
    pub fn beside(&self, clients: u64, uploads: bool, work: impl FnOnce()) {
        let over = Over(&self.over);
        std::thread::scope(|scope| {
            for seed in 0..clients {
                scope.spawn(move || self.send(seed));
            }
            if uploads {
                scope.spawn(|| self.upload());
            }
            // The clients stop even if `work` panics.
            let _over = over;
            work();
        });
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// Returns the number of requests answered with 200 so far.
    pub fn accepted(&self) -> usize {
        let sent = self.sent.lock().unwrap();
        let accepted = |sent: &&Sent| matches!(sent.outcome, Outcome::Accepted(_));
        sent.iter().filter(accepted).count()
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns the live key of an application.
    pub fn key(&self, application: usize) -> &'a str {
        self.keys[application]
    }

    /// Returns one of the newest accepted messages or uploads, with its ID.
    pub fn recent(&self, random: &mut StdRng, upload: bool) -> Option<(usize, String)> {
        let sent = self.sent.lock().unwrap();
        let of_kind = sent.iter().rev().filter(|sent| sent.upload == upload);
        let accepted = of_kind.filter_map(|sent| match &sent.outcome {
            Outcome::Accepted(id) => Some((sent.application, id.clone())),
            _ => None,
        });
        let newest = if upload { NEWEST_UPLOADS } else { NEWEST };
        accepted.take(random.random_range(1..=newest)).last()
    }

    /// Returns the time to schedule the next request for, or `None` to send at once.
    fn send_at(&self, random: &mut StdRng) -> Option<String> {
        if !self.schedules || random.random_range(0..4) != 0 {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let ahead = random.random_range(AHEAD_MS);
        let at = Timestamp::from_unix_ms(i64::try_from(now).unwrap() + ahead);
        Some(at.to_string())
    }

    fn numbers(&self, count: usize) -> std::ops::Range<usize> {
        let first = self.next_number.fetch_add(count, Ordering::Relaxed);
        first..first + count
    }

    fn send(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut asking = Asking::new(self, seed);
        while !self.is_over() {
            let application = random.random_range(0..self.keys.len());
            let numbers = self.numbers(1);
            let number = numbers.start.to_string();
            let send_at = self.send_at(&mut random);
            let pairs = [("number", number.as_str()), ("message", "Hello")].into_iter();
            let pairs: Vec<_> = pairs.chain(send_at.as_deref().map(|at| ("sendat", at))).collect();
            let target = format!("/sms/send/{}?{}", self.keys[application], form(&pairs));
            // One in four has an idempotency key, so that it can be repeated safely.
            let keyed = random.random_range(0..4) == 0;
            let key = format!("key of {number}");
            let headers: &[(&str, &str)] = if keyed {
                &[("Connection", "close"), ("Idempotency-Key", &key)]
            } else {
                &[("Connection", "close")]
            };
            let request = bare("GET", &target, headers);
            let mut answers = vec![asking.ask(&request, "transid")];
            while keyed && answers.last() == Some(&Outcome::Lost) && answers.len() < REPEATS {
                answers.push(asking.ask(&request, "transid"));
            }
            // A client may also repeat a request that was answered, for example after a crash.
            if keyed && random.random_range(0..4) == 0 {
                let again = asking.ask(&request, "transid");
                answers.extend(Some(again).filter(|again| matches!(again, Outcome::Accepted(_))));
            }
            self.note(application, numbers, false, answers);
            std::thread::sleep(PACE);
        }
    }

    fn upload(&self) {
        let mut random = StdRng::seed_from_u64(u64::MAX);
        let mut asking = Asking::new(self, u64::MAX);
        while !self.is_over() {
            let application = random.random_range(0..self.keys.len());
            let numbers = self.numbers(ROWS);
            let rows: Vec<String> = numbers.clone().map(|n| n.to_string()).collect();
            let rows = rows.join("\n");
            let send_at = self.send_at(&mut random);
            let parts = [("numbers", rows.as_bytes()), ("message", b"Hello".as_slice())];
            let send_at = send_at.as_deref().map(|at| ("sendat", at.as_bytes()));
            let parts: Vec<_> = parts.into_iter().chain(send_at).collect();
            let target = format!("/sms/bulk/{}", self.keys[application]);
            let request = posted(&target, MULTIPART, &multipart(&parts));
            let answers = vec![asking.ask(&request, "batchid")];
            self.note(application, numbers, true, answers);
            std::thread::sleep(UPLOADS_PACE);
        }
    }

    fn note(
        &self,
        application: usize,
        numbers: std::ops::Range<usize>,
        upload: bool,
        answers: Vec<Outcome>,
    ) {
        let last = answers.last().unwrap().clone();
        // If a repeat is refused, the result of the lost attempts is still unknown.
        let outcome = match last {
            Outcome::Refused(..) if answers.contains(&Outcome::Lost) => Outcome::Lost,
            last => last,
        };
        self.sent.lock().unwrap().push(Sent { application, numbers, upload, answers, outcome });
    }
}

/// A client's choice of nodes.
pub struct Asking<'a> {
    load: &'a Load<'a>,
    random: StdRng,
    shunned: Option<(String, Instant)>,
}

impl<'a> Asking<'a> {
    pub fn new(load: &'a Load<'a>, seed: u64) -> Self {
        Self { load, random: StdRng::seed_from_u64(seed), shunned: None }
    }

    /// Sends a request to a random running node. `id` is the field with the ID of an accepted
    /// request.
    fn ask(&mut self, request: &[u8], id: &str) -> Outcome {
        Outcome::of(self.exchange(request), id)
    }

    /// Sends a request to a random running node. Returns the answer, if there was one.
    pub fn exchange(&mut self, request: &[u8]) -> Option<Answered> {
        let mut addresses: Vec<String> = self.load.nodes.iter().filter_map(Node::address).collect();
        if let Some((shunned, since)) = &self.shunned
            && since.elapsed() < SHUNNED
            && addresses.len() > 1
        {
            addresses.retain(|address| address != shunned);
        }
        if addresses.is_empty() {
            return None;
        }
        let place = self.random.random_range(0..addresses.len());
        let address = addresses.swap_remove(place);
        let answer = ask(&address, request, self.load.patience);
        if answer.is_none() {
            self.shunned = Some((address, Instant::now()));
        }
        answer
    }
}

/// Sets the flag on drop.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The status and body of a complete response. The body is null if it isn't JSON.
pub type Answered = (u16, Value);

/// Sends a request on a connection of its own.
pub fn ask(address: &str, request: &[u8], patience: Duration) -> Option<Answered> {
    let mut stream = connect(address, patience)?;
    stream.write_all(request).ok()?;
    read(&mut stream)
}

pub fn connect(address: &str, patience: Duration) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address.parse().unwrap(), patience).ok()?;
    stream.set_read_timeout(Some(patience)).unwrap();
    stream.set_write_timeout(Some(patience)).unwrap();
    Some(stream)
}

/// Reads one response. `None` if it is incomplete.
pub fn read(stream: &mut TcpStream) -> Option<Answered> {
    let (mut answer, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(found) = whole(&answer) {
            return Some(found);
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(length) => answer.extend_from_slice(&chunk[..length]),
        }
    }
}

fn whole(answer: &[u8]) -> Option<Answered> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let length = name.eq_ignore_ascii_case("content-length");
        length.then(|| value.trim().parse::<usize>().unwrap())
    })?;
    let body = body.get(..length)?;
    Some((status, serde_json::from_str(body).unwrap_or_default()))
}
