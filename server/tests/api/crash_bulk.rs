//! Kills while files are uploaded, accepted and expanded.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Connection, MULTIPART, bare, encode, multipart, posted};
use crate::crash::send_until_gone;
use crate::harness::{Place, TestServer, money};

const SEED: u64 = 20_261_122;
const CLIENTS: usize = 4;
pub const DEPOSIT: &str = "10000000";
/// The first file is this many times larger than the later ones.
const SMALLER: usize = 50;
/// The bytes that an upload writes at a time.
const CHUNK: usize = 64 * 1024;
/// The longest wait for something to happen.
const DEADLINE: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Returns the length of a test. `make soak` sets larger values.
pub fn length(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// When the process is killed.
#[derive(Clone, Copy, Debug)]
enum Time {
    /// Once this many bytes of the upload are written.
    Uploading { bytes: usize },
    /// This many sends after the upload's last byte, whether or not it was answered by then.
    Deciding { sends: usize },
    /// This many sends after the upload's answer.
    Expanding { sends: usize },
}

impl Time {
    /// Picks each kind once, then at random.
    fn draw(random: &mut StdRng, round: usize, length: usize) -> Self {
        let kind = if round < 3 { round } else { random.random_range(0..3) };
        match kind {
            0 => Self::Uploading { bytes: random.random_range(0..length) },
            1 => Self::Deciding { sends: random.random_range(0..8) },
            _ => Self::Expanding { sends: random.random_range(0..400) },
        }
    }

    fn has_come(self, seen: &Seen) -> bool {
        let after =
            |mark: Option<usize>, sends| mark.is_some_and(|mark| seen.sends >= mark + sends);
        match self {
            Self::Uploading { bytes } => seen.bytes >= bytes,
            Self::Deciding { sends } => after(seen.sends_at_end, sends),
            Self::Expanding { sends } => after(seen.sends_at_answer, sends),
        }
    }
}

/// What clients have seen since the process started.
#[derive(Default)]
struct Seen {
    sends: usize,
    bytes: usize,
    /// The number of sends when the upload's last byte was written, and when the upload was
    /// answered.
    sends_at_end: Option<usize>,
    sends_at_answer: Option<usize>,
}

#[derive(Default)]
struct Progress {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Progress {
    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait_until(&self, has_come: impl Fn(&Seen) -> bool) {
        let seen = self.seen.lock().unwrap();
        let waited =
            self.changed.wait_timeout_while(seen, DEADLINE, |seen| !has_come(seen)).unwrap();
        assert!(!waited.1.timed_out(), "waited too long for clients");
    }
}

/// A file whose rows have different numbers, and its result.
struct Upload {
    requestid: String,
    rows: usize,
    /// `None` if the connection was cut before the answer.
    batchid: Option<String>,
}

impl Upload {
    fn body(&self) -> Vec<u8> {
        let mut file = String::new();
        for row in 0..self.rows {
            writeln!(file, "{},Row {row}", number(row)).unwrap();
        }
        let parts = [("bulksms", file.as_bytes()), ("requestid", self.requestid.as_bytes())];
        multipart(&parts)
    }
}

const fn number(row: usize) -> usize {
    57_000_000 + row
}

/// Uploads until there is an answer or the server is gone. Returns the batch ID.
fn upload(address: &str, request: &[u8], progress: &Progress) -> Option<String> {
    let mut connection = Connection::open(address);
    for chunk in request.chunks(CHUNK) {
        connection.try_write(chunk).ok()?;
        progress.note(|seen| seen.bytes += chunk.len());
    }
    progress.note(|seen| seen.sends_at_end = Some(seen.sends));
    let answer = connection.read()?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    progress.note(|seen| seen.sends_at_answer = Some(seen.sends));
    Some(answer.json()["batchid"].as_str().unwrap().to_owned())
}

#[test]
fn answered_uploads_are_whole_after_kills() {
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    let mut server = TestServer::start(Place::new(), &[], &environment);
    let keys = server.place.funded("steady@example.org", DEPOSIT);
    let key = keys.live.expose();
    let mut history = History::new(length("SOAK_ROWS", 20_000), SEED);
    for _ in 0..length("SOAK_KILLS", 4) {
        let place = history.until_killed(server, key);
        server = TestServer::start(place, &[], &environment);
    }
    history.judge(&server, key);
}

/// Uploads and sends, while the process is killed.
pub struct History {
    /// The rows of the first file.
    rows: usize,
    random: StdRng,
    /// One per kill.
    uploads: Vec<Upload>,
    /// The transaction IDs of the accepted sends.
    answered: Vec<String>,
}

impl History {
    pub fn new(rows: usize, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self { rows, random, uploads: Vec::new(), answered: Vec::new() }
    }

    /// Uploads and sends until the process is killed at a random time.
    pub fn until_killed(&mut self, server: TestServer, key: &str) -> Place {
        let round = self.uploads.len();
        let large = self.uploads.iter().all(|upload| upload.batchid.is_none());
        let mut next = Upload {
            requestid: format!("upload {round}"),
            rows: if large { self.rows } else { self.rows / SMALLER },
            batchid: None,
        };
        let request = posted(&format!("/sms/bulk/{key}"), MULTIPART, &next.body());
        let sends_before = self.random.random_range(0..400);
        let time = Time::draw(&mut self.random, round, request.len());
        let progress = Progress::default();
        let address = server.address().to_owned();
        let count = || progress.note(|seen| seen.sends += 1);
        let (place, sent, batchid) = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| scope.spawn(|| send_until_gone(&address, key, count)))
                .collect();
            let uploading = scope.spawn(|| {
                // Meanwhile, the files of earlier rounds keep expanding.
                progress.wait_until(|seen| seen.sends >= sends_before);
                upload(&address, &request, &progress)
            });
            progress.wait_until(|seen| time.has_come(seen));
            let place = server.kill();
            let sent = clients.into_iter().flat_map(|client| client.join().unwrap());
            (place, sent.collect::<Vec<_>>(), uploading.join().unwrap())
        });
        println!(
            "kill {round}: {time:?}, {} rows, {} sends, answer {batchid:?}",
            next.rows,
            sent.len()
        );
        self.answered.extend(sent);
        next.batchid = batchid;
        self.uploads.push(next);
        place
    }

    /// Checks that all answers are true, and that each message was charged once.
    pub fn judge(&self, server: &TestServer, key: &str) {
        let stored = Stored::of(server, key);
        let lost = self.lost(&stored);
        assert!(lost.is_empty(), "lost: {lost:?}");
        let whole = |upload| stored.assert_whole(upload, server, key);
        let rows: usize = self.uploads.iter().map(whole).sum();
        // Only sends in flight at a kill may be stored without an answer.
        let singles = stored.singles.len();
        assert!(singles <= self.answered.len() + self.uploads.len() * CLIENTS, "{singles}");
        let spent = money("0.05").checked_times(rows + singles).unwrap();
        let left = money(DEPOSIT).checked_sub(spent).unwrap();
        assert_eq!(server.balance(key), left.to_string());
        assert_eq!(server.place.spooled(), Vec::<String>::new());
        server.place.check();
    }

    /// Returns the IDs of accepted messages and uploads that aren't stored.
    pub fn lost(&self, stored: &Stored) -> Vec<&String> {
        let sends = self.answered.iter().filter(|transid| !stored.singles.contains(*transid));
        let uploads = self.uploads.iter().filter_map(|upload| upload.batchid.as_ref());
        let uploads = uploads.filter(|batchid| !stored.numbers.contains_key(*batchid));
        sends.chain(uploads).collect()
    }
}

/// All messages once all uploads are done: the single sends, and the numbers of each upload.
#[derive(Default)]
pub struct Stored {
    singles: HashSet<String>,
    numbers: BTreeMap<String, Vec<usize>>,
}

#[derive(Deserialize)]
struct Page {
    reports: Vec<Message>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    transid: String,
    batchid: Option<String>,
    number: String,
    status: String,
}

impl Stored {
    pub fn of(server: &TestServer, key: &str) -> Self {
        wait_until_done(server, key);
        let mut stored = Self::default();
        let mut connection = server.connect();
        let mut cursor = String::new();
        loop {
            let target = format!("/sms/reports/{key}?limit=1000{cursor}");
            connection.write(&bare("GET", &target, &[]));
            let answer = connection.read().unwrap();
            let page: Page = serde_json::from_slice(&answer.body).unwrap();
            for message in page.reports {
                match message.batchid {
                    None => {
                        // The receipts of the last messages may not have arrived yet.
                        if message.status != "delivered" {
                            let report = server.final_report(key, &message.transid);
                            assert_eq!(report["status"], "delivered", "{report}");
                        }
                        assert!(stored.singles.insert(message.transid));
                    }
                    Some(batchid) => {
                        let numbers = stored.numbers.entry(batchid).or_default();
                        numbers.push(message.number.parse().unwrap());
                    }
                }
            }
            match page.next {
                Some(next) => cursor = format!("&cursor={}", encode(&next)),
                None => return stored,
            }
        }
    }

    /// Checks that an answered upload is stored once, with each of its rows, and that any other one
    /// is stored either completely or not at all. Returns the number of its stored rows.
    fn assert_whole(&self, upload: &Upload, server: &TestServer, key: &str) -> usize {
        let query = format!("requestid={}", encode(&upload.requestid));
        let found = server.batches(key, &query);
        let ids: Vec<_> = found.iter().map(|batch| batch["batchid"].as_str().unwrap()).collect();
        match &upload.batchid {
            Some(batchid) => assert_eq!(ids, [batchid]),
            None if ids.is_empty() => return 0,
            None => assert_eq!(ids.len(), 1, "{}", upload.requestid),
        }
        let (batch, rows) = (&found[0], upload.rows);
        assert_eq!(batch["rows"], rows, "{batch}");
        assert_eq!(batch["counts"]["delivered"], rows, "{batch}");
        let mut numbers = self.numbers[ids[0]].clone();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq((0..rows).map(number)), "{batch}");
        rows
    }
}

/// Waits for all uploads to finish, as long as messages keep becoming final.
fn wait_until_done(server: &TestServer, key: &str) {
    let mut latest = (u64::MAX, Instant::now());
    loop {
        let batches = server.batches(key, "limit=1000");
        let delivered = |batch: &Value| batch["counts"]["delivered"].as_u64().unwrap();
        let open = |batch: &Value| batch["rows"].as_u64().unwrap() - delivered(batch);
        let open = batches.iter().map(open).sum();
        if batches.iter().all(|batch| batch["status"] == "done") {
            return;
        }
        if open != latest.0 {
            latest = (open, Instant::now());
        }
        assert!(latest.1.elapsed() < DEADLINE, "{open} messages wait for ever");
        std::thread::sleep(LOOK_AGAIN);
    }
}
