//! A carrier that remembers every submit, and repeats a receipt on whatever connection there is
//! until it is acknowledged.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use testing::smsc::{
    BIND_RECEIVER, BIND_TRANSCEIVER, BIND_TRANSMITTER, DELIVER_SM, DELIVER_SM_RESP, Pdu, Peer,
    RESPONSE, SUBMIT_SM, Smsc, UNBIND, c_string, pdu, split, tlv,
};
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval};

/// `user_message_reference`.
const REFERENCE_TAG: u16 = 0x0204;
/// Receipts that wait for an answer on one connection.
const RECEIPTS_MAX: usize = 20;
/// How often a connection looks for what is to be written.
const TURN: Duration = Duration::from_millis(10);

/// Dropping it closes it and its connections.
pub struct Carrier {
    pub address: String,
    state: Arc<Mutex<State>>,
    _runtime: Runtime,
}

struct State {
    /// How often a message to a number came.
    submits: HashMap<String, usize>,
    taken: usize,
    /// Submits that are still answered; the others wait.
    answers_left: usize,
    /// How long an answer takes.
    delay: Duration,
    /// Whether it sends receipts.
    receipts: bool,
    /// Receipts that aren't acknowledged, and aren't on a connection.
    owed: VecDeque<Receipt>,
    /// Receipts that aren't acknowledged.
    open: usize,
}

#[derive(Clone)]
struct Receipt {
    id: String,
    number: String,
    /// What the submit had, where the carrier echoes it.
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
        Self {
            address,
            state,
            _runtime: runtime,
        }
    }

    /// How often a message to a local number came.
    pub fn count(&self, number: &str) -> usize {
        let number = format!("266{number}");
        self.state().submits.get(&number).copied().unwrap_or(0)
    }

    /// How many submits came.
    pub fn taken(&self) -> usize {
        self.state().taken
    }

    /// Receipts that nobody acknowledged yet.
    pub fn open_receipts(&self) -> usize {
        self.state().open
    }

    /// From now on its answers take so long.
    pub fn delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// From now on it sends no receipts, and answers so many submits; the others wait for
    /// [`Carrier::answer_all`].
    pub fn withhold(&self, answers: usize) {
        let mut state = self.state();
        state.receipts = false;
        state.answers_left = answers;
    }

    /// Answers what waits, and what comes.
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
    /// Answers that wait, and until when at least.
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
        // What wasn't acknowledged comes again.
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
                self.withheld
                    .push_back((Instant::now() + state.delay, answer));
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

    /// Puts into the output what may be said now.
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
    /// A submit came whole: from here on the carrier has the message; its id.
    fn accept(&mut self, body: &[u8]) -> String {
        let number = destination(body);
        self.taken += 1;
        let id = format!("c{}", self.taken);
        *self.submits.entry(number.clone()).or_default() += 1;
        if self.receipts {
            // Half of the carriers echo it.
            let reference = reference(body).filter(|_| self.taken.is_multiple_of(2));
            self.open += 1;
            self.owed.push_back(Receipt {
                id: id.clone(),
                number,
                reference,
            });
        }
        id
    }
}

/// Whom a submit is for. Fields that end with a zero come first: service type, source, destination;
/// two octets stand before an address.
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
    // esm_class: a receipt. Then everything that isn't used, and the text.
    body.extend([4, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend(text.bytes());
    if let Some(reference) = &receipt.reference {
        body.extend(tlv(REFERENCE_TAG, reference));
    }
    body
}
