//! A carrier that cuts its connections at random bytes, in either direction.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::LostAnswer;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use testing::harness::{Keys, Place, TestServer, money};

const SEED: u64 = 20_261_121;
const BIND_TRANSCEIVER: u32 = 0x09;
const SUBMIT_SM: u32 = 0x04;
const DELIVER_SM: u32 = 0x05;
const UNBIND: u32 = 0x06;
const ENQUIRE_LINK: u32 = 0x15;
const RESPONSE: u32 = 0x8000_0000;
const HEAD_BYTES: usize = 16;
/// The tag of `user_message_reference`.
const REFERENCE_TAG: [u8; 2] = [0x02, 0x04];
/// The most bytes in one direction before a connection is cut: about a dozen submits.
const BYTES_MAX: usize = 1500;
/// The most unanswered receipts on one connection.
const RECEIPTS_MAX: usize = 20;
/// Rows per cut, of both applications together: more than a connection can accept before it is cut.
const ROWS_PER_CUT: usize = 16;
/// The number of uploads per application.
const ROUNDS: usize = 10;
/// The price of a page.
const PAGE_MICROS: u64 = 50_000;
/// The length of a text of three pages and three segments.
const LONG_CHARS: usize = 400;
const DEPOSIT: &str = "1000000";
/// The longest wait without progress.
const DEADLINE: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The state of the carrier.
struct Carrier {
    random: StdRng,
    cuts_left: usize,
    next_id: u64,
    /// How often each part of the message to a number was received completely.
    submits: HashMap<(String, u8), usize>,
    /// Unacknowledged receipts that aren't on a connection.
    owed: VecDeque<Receipt>,
    acknowledged: usize,
}

#[derive(Clone)]
struct Receipt {
    id: String,
    number: String,
    /// The reference of the submit, if the carrier echoes it.
    reference: Option<Vec<u8>>,
}

/// The byte after which a connection is cut.
enum Cut {
    Never,
    Received(usize),
    Sent(usize),
}

struct Connection {
    carrier: Arc<Mutex<Carrier>>,
    stream: TcpStream,
    cut: Cut,
    input: Vec<u8>,
    received: usize,
    output: Vec<u8>,
    sent: usize,
    bound: bool,
    sequence: u32,
    on_the_way: HashMap<u32, Receipt>,
}

/// The connection has ended.
struct Over;

impl Connection {
    fn new(carrier: Arc<Mutex<Carrier>>, stream: TcpStream) -> Self {
        let mut known = carrier.lock().unwrap();
        let bytes = known.random.random_range(1..BYTES_MAX);
        let cut = match (known.cuts_left > 0, known.random.random()) {
            (false, _) => Cut::Never,
            (true, true) => Cut::Received(bytes),
            (true, false) => Cut::Sent(bytes),
        };
        drop(known);
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        Self {
            carrier,
            stream,
            cut,
            input: Vec::new(),
            received: 0,
            output: Vec::new(),
            sent: 0,
            bound: false,
            sequence: 0,
            on_the_way: HashMap::new(),
        }
    }

    fn run(mut self) {
        while self.turn().is_ok() {}
        let cut = !matches!(self.cut, Cut::Never);
        let _ = self.stream.shutdown(Shutdown::Both);
        let mut carrier = self.carrier.lock().unwrap();
        if cut {
            carrier.cuts_left = carrier.cuts_left.saturating_sub(1);
        }
        // Unacknowledged receipts are sent again.
        carrier.owed.extend(self.on_the_way.into_values());
    }

    fn turn(&mut self) -> Result<(), Over> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Err(Over),
            Ok(length) => self.take(&chunk[..length])?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return Err(Over),
        }
        self.flush()?;
        if self.bound {
            self.report();
        }
        self.flush()
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Over> {
        let left = match self.cut {
            Cut::Received(most) => most - self.received,
            _ => usize::MAX,
        };
        let taken = bytes.len().min(left);
        self.received += taken;
        self.input.extend_from_slice(&bytes[..taken]);
        while let Some(length) = frame_length(&self.input).filter(|n| *n <= self.input.len()) {
            let frame: Vec<u8> = self.input.drain(..length).collect();
            self.answer(&frame)?;
        }
        if taken == left { Err(Over) } else { Ok(()) }
    }

    fn answer(&mut self, frame: &[u8]) -> Result<(), Over> {
        let (command, sequence) = (word(frame, 4), word(frame, 12));
        let body = &frame[HEAD_BYTES..];
        match command {
            BIND_TRANSCEIVER => {
                self.bound = true;
                self.put(command | RESPONSE, sequence, b"cutter\0");
            }
            SUBMIT_SM => {
                let id = self.accept(body);
                self.put(command | RESPONSE, sequence, format!("{id}\0").as_bytes());
            }
            UNBIND => {
                self.put(command | RESPONSE, sequence, b"");
                self.flush()?;
                return Err(Over);
            }
            ENQUIRE_LINK => self.put(command | RESPONSE, sequence, b""),
            _ if command == DELIVER_SM | RESPONSE => {
                assert_eq!(word(frame, 8), 0, "a receipt was refused");
                if self.on_the_way.remove(&sequence).is_some() {
                    self.carrier.lock().unwrap().acknowledged += 1;
                }
            }
            _ => panic!("unexpected command {command:#x}"),
        }
        Ok(())
    }

    /// Accepts a complete submit. From here on the carrier has the message.
    fn accept(&self, body: &[u8]) -> String {
        let (number, part) = destination(body);
        let mut carrier = self.carrier.lock().unwrap();
        carrier.next_id += 1;
        let id = format!("c{}", carrier.next_id);
        let key = (number.clone(), part);
        *carrier.submits.entry(key).or_default() += 1;
        // The carrier echoes the reference of half of the submits.
        let echoes: bool = carrier.random.random();
        let reference = reference(body).filter(|_| echoes);
        carrier.owed.push_back(Receipt { id: id.clone(), number, reference });
        id
    }

    fn report(&mut self) {
        while self.on_the_way.len() < RECEIPTS_MAX {
            let Some(receipt) = self.carrier.lock().unwrap().owed.pop_front() else {
                return;
            };
            self.sequence += 1;
            let body = deliver(&receipt);
            self.on_the_way.insert(self.sequence, receipt);
            self.put(DELIVER_SM, self.sequence, &body);
        }
    }

    fn put(&mut self, command: u32, sequence: u32, body: &[u8]) {
        let length = u32::try_from(HEAD_BYTES + body.len()).unwrap();
        for word in [length, command, 0, sequence] {
            self.output.extend_from_slice(&word.to_be_bytes());
        }
        self.output.extend_from_slice(body);
    }

    /// Writes all output at once, so that a cut can lose several answers.
    fn flush(&mut self) -> Result<(), Over> {
        let left = match self.cut {
            Cut::Sent(most) => most - self.sent,
            _ => usize::MAX,
        };
        let put = self.output.len().min(left);
        self.sent += put;
        self.stream.write_all(&self.output[..put]).map_err(|_| Over)?;
        self.output.clear();
        if put == left { Err(Over) } else { Ok(()) }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn frame_length(input: &[u8]) -> Option<usize> {
    (input.len() >= 4).then(|| usize::try_from(word(input, 0)).unwrap())
}

/// Returns the destination of a submit and the number of its part, 0 if it is the only one. The
/// body begins with C-octet strings: service_type, source_addr, destination_addr. Two octets come
/// before each address.
fn destination(body: &[u8]) -> (String, u8) {
    let end = |from: usize| from + body[from..].iter().position(|b| *b == 0).unwrap();
    let source = end(0) + 1 + 2;
    let destination = end(source) + 1 + 2;
    let number = String::from_utf8(body[destination..end(destination)].to_vec()).unwrap();
    let flags = end(destination) + 1;
    // Before the text are protocol_id and priority_flag, two times, four octets and the length. The
    // header at the start of the text ends with the number of the part.
    let validity = end(flags + 3) + 1;
    let text = end(validity) + 1 + 5;
    let part = match body[flags] & 0x40 {
        0 => 0,
        _ => body[text + usize::from(body[text])],
    };
    (number, part)
}

fn reference(body: &[u8]) -> Option<Vec<u8>> {
    let at = body.windows(4).rposition(|w| w[..2] == REFERENCE_TAG && w[2..] == [0, 2])?;
    body.get(at + 4..at + 6).map(<[u8]>::to_vec)
}

fn deliver(receipt: &Receipt) -> Vec<u8> {
    let text = format!("id:{} stat:DELIVRD err:000 text:Hello", receipt.id);
    let mut body = b"\0\x01\x01".to_vec();
    body.extend_from_slice(receipt.number.as_bytes());
    body.extend_from_slice(b"\0\x05\0Heliograph\0");
    // esm_class 4 is a receipt. Unused fields and the text follow.
    body.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend_from_slice(text.as_bytes());
    if let Some(reference) = &receipt.reference {
        body.extend_from_slice(&REFERENCE_TAG);
        body.extend_from_slice(&[0, 2]);
        body.extend_from_slice(reference);
    }
    body
}

fn listen(carrier: &Arc<Mutex<Carrier>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let carrier = Arc::clone(carrier);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = Connection::new(Arc::clone(&carrier), stream.unwrap());
            std::thread::spawn(move || connection.run());
        }
    });
    port
}

/// Waits until `done`, and panics if there is no progress for too long.
fn until_progress<T: PartialEq>(what: &str, progress: impl Fn() -> T, done: impl Fn() -> bool) {
    let (mut seen, mut since) = (progress(), Instant::now());
    while !done() {
        let now = progress();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < DEADLINE, "no progress: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn numbers(first: usize, count: usize) -> Vec<String> {
    (first..first + count).map(|n| n.to_string()).collect()
}

fn report_pages(server: &TestServer, key: &str) -> Vec<Value> {
    let (mut reports, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = server.get(&format!("/sms/reports/{key}?limit=1000{cursor}"));
        let page = answer.json();
        reports.extend(page["reports"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return reports,
        }
    }
}

fn waiting(server: &TestServer) -> String {
    let metrics = server.get_ops("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("heliograph_queue_messages "));
    line.unwrap().to_owned()
}

#[test]
fn cuts_lose_no_message_and_send_none_twice_unless_the_application_wants_it() {
    let cuts = std::env::var("SOAK_CUTS").map_or(150, |text| text.parse().unwrap());
    let carrier = Arc::new(Mutex::new(Carrier {
        random: StdRng::seed_from_u64(SEED),
        cuts_left: cuts,
        next_id: 0,
        submits: HashMap::new(),
        owed: VecDeque::new(),
        acknowledged: 0,
    }));
    let port = listen(&carrier);
    let place = Place::new();
    let holding = place.funded("hold@example.org", DEPOSIT);
    let resending = place.funded("resend@example.org", DEPOSIT);
    place.with_service(async |service| {
        let (account, reference) = (resending.account_id, resending.reference);
        let applications = service.applications();
        let set = applications.set_lost_answer(account, reference, LostAnswer::Resend);
        set.await.unwrap();
    });
    let settings = format!(
        "[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"127.0.0.1:{port}\"\n\
         system_id = \"heliograph\"\npassword = \"secret\"\nconnections = 16\nwindow = 10\n"
    );
    std::fs::write(place.path().join("heliograph.toml"), settings).unwrap();
    let server = TestServer::start(place, &[], &[]);

    let rows = cuts * ROWS_PER_CUT / (2 * ROUNDS);
    let mut batches = Vec::new();
    // The applications upload alternately, so that both get cuts.
    for round in 0..ROUNDS {
        for (keys, first) in [(&holding, 10_000_000), (&resending, 20_000_000)] {
            let numbers = numbers(first + round * rows, rows).join("\n");
            let key = keys.live.expose();
            let text = if round % 2 == 0 { "Hello".to_owned() } else { "a".repeat(LONG_CHARS) };
            let parts = [("numbers", numbers.as_bytes()), ("message", text.as_bytes())];
            let answer = server.upload(key, &parts);
            assert_eq!(answer.status, 200, "{}", answer.text());
            let batch = answer.json()["batchid"].as_str().unwrap().to_owned();
            batches.push((key, batch));
        }
    }
    let none = |statuses: &[&str]| {
        let left = batches.iter().map(|(key, batch)| left(&server, key, batch, statuses));
        left.sum::<u64>() == 0
    };
    let known = |look: &dyn Fn(&Carrier) -> usize| look(&carrier.lock().unwrap());
    let moved = || known(&|c| c.cuts_left + c.submits.len() + c.acknowledged);
    until_progress("the last cut", moved, || {
        // If everything is already sent, no more cuts can happen.
        known(&|c| c.cuts_left) == 0 || none(&["queued", "sending"])
    });
    assert_eq!(known(&|c| c.cuts_left), 0, "some of {cuts} cuts missing");
    until_progress("the end", moved, || {
        none(&["queued", "sending", "submitted"]) && waiting(&server) == "0"
    });
    judge(&server, &holding, rows * ROUNDS, 1, &carrier);
    judge(&server, &resending, rows * ROUNDS, 2, &carrier);
    let (code, place) = server.stop();
    assert_eq!(code, Some(0));
    place.check();
}

/// Returns how many messages of a batch have one of these statuses.
fn left(server: &TestServer, key: &str, batch: &str, statuses: &[&str]) -> u64 {
    let answer = server.get(&format!("/sms/batches/{key}/{batch}"));
    let counts = &answer.json()["batch"]["counts"];
    let count = |status: &&str| counts[*status].as_u64().unwrap();
    statuses.iter().map(count).sum()
}

/// Checks each message of an application: how often the carrier got each part, and whether the
/// status is right.
fn judge(server: &TestServer, keys: &Keys, rows: usize, most: usize, carrier: &Mutex<Carrier>) {
    let key = keys.live.expose();
    let reports = report_pages(server, key);
    assert_eq!(reports.len(), rows);
    let carrier = carrier.lock().unwrap();
    let (mut unknown, mut came_unknown, mut twice) = (0, 0, 0);
    let mut price = 0;
    for report in &reports {
        let number = format!("266{}", report["number"].as_str().unwrap());
        let parts = match report["segments"].as_u64().unwrap() {
            1 => 0..=0,
            all => 1..=u8::try_from(all).unwrap(),
        };
        price += report["pages"].as_u64().unwrap() * PAGE_MICROS;
        let came = |part| carrier.submits.get(&(number.clone(), part)).copied();
        let came: Vec<usize> = parts.map(|part| came(part).unwrap_or(0)).collect();
        assert!(came.iter().all(|n| *n <= most), "{came:?}: {report}");
        twice += usize::from(came.contains(&2));
        match report["status"].as_str().unwrap() {
            "delivered" => assert!(!came.contains(&0), "{came:?}: {report}"),
            "unknown" => {
                unknown += 1;
                came_unknown += usize::from(!came.contains(&0));
            }
            _ => panic!("neither delivered nor unknown: {report}"),
        }
    }
    println!("of {rows} messages {unknown} are unknown ({came_unknown} came), {twice} came twice");
    // The cuts had an effect.
    assert!(unknown > 0 || twice > 0);
    // Each message was charged once, and nothing was released.
    let left = money(DEPOSIT).micros() - i64::try_from(price).unwrap();
    let left = domain::Money::from_micros(left);
    assert_eq!(server.balance(key), left.to_string());
}
