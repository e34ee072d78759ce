//! A carrier that counts every submit. It repeats a receipt on any connection until the receipt is
//! acknowledged.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use testing::smsc::{
    BIND_RECEIVER, BIND_TRANSCEIVER, BIND_TRANSMITTER, DELIVER_SM, DELIVER_SM_RESP, Pdu, Peer,
    RESPONSE, SUBMIT_SM, Smsc, UNBIND, c_string, pdu, split, tlv,
};
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval};

/// The tag of `user_message_reference`.
const REFERENCE_TAG: u16 = 0x0204;
/// The most unanswered receipts on one connection.
const RECEIPTS_MAX: usize = 20;
/// How often a connection checks for output.
const TURN: Duration = Duration::from_millis(10);

/// Stops listening and closes its connections on drop.
pub struct Carrier {
    pub address: String,
    state: Arc<Mutex<State>>,
    _runtime: Runtime,
}

struct State {
    /// The number of submits per destination.
    submits: HashMap<String, usize>,
    taken: usize,
    /// The number of submits that are still answered. Later ones wait.
    answers_left: usize,
    /// The time that an answer takes.
    delay: Duration,
    /// Whether the carrier sends receipts.
    receipts: bool,
    /// Unacknowledged receipts that aren't on a connection.
    owed: VecDeque<Receipt>,
    /// The number of unacknowledged receipts.
    open: usize,
}

#[derive(Clone)]
struct Receipt {
    id: String,
    number: String,
    /// The reference of the submit, if the carrier echoes it.
    reference: Option<Vec<u8>>,
}

impl Carrier {
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let smsc = runtime.block_on(Smsc::start());
        let address = smsc.address();
        let state = Arc::new(Mutex::new(State {
            submits: HashMap::new(),
            taken: 0,
            answers_left: usize::MAX,
            delay: Duration::ZERO,
            receipts: true,
            owed: VecDeque::new(),
            open: 0,
        }));
        let serving = Arc::clone(&state);
        runtime.spawn(async move {
            loop {
                let connection = Connection::new(smsc.accept().await, Arc::clone(&serving));
                tokio::spawn(connection.run());
            }
        });
        Self { address, state, _runtime: runtime }
    }

    /// Returns how often a message to a local number was submitted.
    pub fn count(&self, number: &str) -> usize {
        let number = format!("266{number}");
        self.state().submits.get(&number).copied().unwrap_or(0)
    }

    /// Returns the carrier's own list of the messages that it got, as CSV.
    pub fn list(&self) -> String {
        let state = self.state();
        let lines: Vec<&str> = state.submits.keys().map(String::as_str).collect();
        format!("number\n{}\n", lines.join("\n"))
    }

    /// Returns the number of submits.
    pub fn taken(&self) -> usize {
        self.state().taken
    }

    /// Returns the number of unacknowledged receipts.
    pub fn open_receipts(&self) -> usize {
        self.state().open
    }

    /// Sets the time that an answer takes.
    pub fn delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Stops sending receipts, and answers only this many more submits. The others wait for
    /// [`Carrier::answer_all`].
    pub fn withhold(&self, answers: usize) {
        let mut state = self.state();
        state.receipts = false;
        state.answers_left = answers;
    }

    /// Answers all submits, including the waiting ones.
    pub fn answer_all(&self) {
        self.state().answers_left = usize::MAX;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

struct Connection {
    peer: Peer,
    state: Arc<Mutex<State>>,
    input: Vec<u8>,
    output: Vec<u8>,
    bound: bool,
    sequence: u32,
    on_the_way: HashMap<u32, Receipt>,
    /// Answers that wait, each with the earliest time to send it.
    withheld: VecDeque<(Instant, Vec<u8>)>,
}

impl Connection {
    fn new(peer: Peer, state: Arc<Mutex<State>>) -> Self {
        Self {
            peer,
            state,
            input: Vec::new(),
            output: Vec::new(),
            bound: false,
            sequence: 0,
            on_the_way: HashMap::new(),
            withheld: VecDeque::new(),
        }
    }

    async fn run(mut self) {
        let mut turns = interval(TURN);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let bytes = tokio::select! {
                bytes = self.peer.read_some(64 * 1024) => Some(bytes),
                _ = turns.tick() => None,
            };
            let closed = bytes.as_ref().is_some_and(Vec::is_empty);
            self.input.extend(bytes.unwrap_or_default());
            let mut leaves = closed;
            while let Some((request, length)) = split(&self.input) {
                self.input.drain(..length);
                leaves |= request.command == UNBIND;
                self.take(&request);
            }
            self.report();
            let output = std::mem::take(&mut self.output);
            if !output.is_empty() {
                self.peer.try_write(&output).await;
            }
            if leaves {
                break;
            }
        }
        // Unacknowledged receipts are sent again.
        let again = self.on_the_way.into_values();
        self.state.lock().unwrap().owed.extend(again);
    }

    fn take(&mut self, request: &Pdu) {
        let answer = |body: &[u8]| pdu(request.command | RESPONSE, 0, request.sequence, body);
        match request.command {
            BIND_RECEIVER | BIND_TRANSMITTER | BIND_TRANSCEIVER => {
                self.bound = true;
                self.output.extend(answer(&c_string("smsc")));
            }
            SUBMIT_SM => {
                let mut state = self.state.lock().unwrap();
                let answer = answer(&c_string(&state.accept(&request.body)));
                self.withheld.push_back((Instant::now() + state.delay, answer));
            }
            DELIVER_SM_RESP => {
                assert_eq!(request.status, 0, "a receipt was refused");
                if self.on_the_way.remove(&request.sequence).is_some() {
                    self.state.lock().unwrap().open -= 1;
                }
            }
            command if command & RESPONSE == 0 => self.output.extend(answer(&[])),
            _ => {}
        }
    }

    /// Writes the answers and receipts that are due.
    fn report(&mut self) {
        let mut state = self.state.lock().unwrap();
        let now = Instant::now();
        while state.answers_left > 0
            && let Some((_, answer)) = self.withheld.pop_front_if(|(due, _)| *due <= now)
        {
            state.answers_left -= 1;
            self.output.extend(answer);
        }
        while self.bound
            && self.on_the_way.len() < RECEIPTS_MAX
            && let Some(receipt) = state.owed.pop_front()
        {
            self.sequence += 1;
            let body = deliver(&receipt);
            self.output.extend(pdu(DELIVER_SM, 0, self.sequence, &body));
            self.on_the_way.insert(self.sequence, receipt);
        }
    }
}

impl State {
    /// Accepts a complete submit and returns its ID. From here on the carrier has the message.
    fn accept(&mut self, body: &[u8]) -> String {
        let number = destination(body);
        self.taken += 1;
        let id = format!("c{}", self.taken);
        *self.submits.entry(number.clone()).or_default() += 1;
        if self.receipts {
            // The carrier echoes the reference of half of the submits.
            let reference = reference(body).filter(|_| self.taken.is_multiple_of(2));
            self.open += 1;
            self.owed.push_back(Receipt { id: id.clone(), number, reference });
        }
        id
    }
}

/// Returns the destination of a submit. The body begins with C-octet strings: service_type,
/// source_addr, destination_addr. Two octets come before each address.
fn destination(body: &[u8]) -> String {
    let end = |from: usize| from + body[from..].iter().position(|b| *b == 0).unwrap();
    let source = end(0) + 1 + 2;
    let destination = end(source) + 1 + 2;
    String::from_utf8(body[destination..end(destination)].to_vec()).unwrap()
}

fn reference(body: &[u8]) -> Option<Vec<u8>> {
    let head = tlv(REFERENCE_TAG, &[0; 2]);
    let at = body.windows(4).rposition(|found| *found == head[..4])?;
    body.get(at + 4..at + 6).map(<[u8]>::to_vec)
}

fn deliver(receipt: &Receipt) -> Vec<u8> {
    let text = format!("id:{} stat:DELIVRD err:000 text:Hello", receipt.id);
    let mut body = vec![0, 1, 1];
    body.extend(c_string(&receipt.number));
    body.extend([5, 0]);
    body.extend(c_string("Heliograph"));
    // esm_class 4 is a receipt. Unused fields and the text follow.
    body.extend([4, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend(text.bytes());
    if let Some(reference) = &receipt.reference {
        body.extend(tlv(REFERENCE_TAG, reference));
    }
    body
}
