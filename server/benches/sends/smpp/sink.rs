//! The SMSC that each side connects to. It answers every `submit_sm` at once with an ID, sends the
//! requested receipts if it is set to, and counts. It can turn bad.
//!
//! It parses little more than the headers and writes once per read, so that it uses little CPU time
//! itself.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::frame::{self, Frame};
use crate::kannel::free_ports;

/// Unanswered receipts per connection.
const RECEIPT_WINDOW: usize = 100;
const BUFFER: usize = 256 * 1024;
/// SMPP's ESME_RSUBMITFAIL and ESME_RTHROTTLED.
const SUBMIT_FAILED: u32 = 0x45;
const THROTTLED: u32 = 0x58;

/// How the sink treats submits.
#[derive(Clone, Copy, Debug)]
pub enum Conduct {
    Good,
    /// It refuses everything.
    Refuses,
    /// It throttles everything.
    Throttles,
    /// It answers no submit.
    Silent,
    /// Every receipt says that the message couldn't be delivered.
    DeliversNothing,
}

impl Conduct {
    const ALL: [Self; 5] =
        [Self::Good, Self::Refuses, Self::Throttles, Self::Silent, Self::DeliversNothing];
}

/// A port that accepts connections from [`Sink::open`] to [`Sink::close`].
pub struct Sink {
    port: u16,
    counts: Arc<Counts>,
    open: Option<Open>,
}

struct Open {
    accepting: JoinHandle<()>,
    closing: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

/// Counts so far. Times are in nanoseconds since `start`.
struct Counts {
    start: Instant,
    receipts: AtomicBool,
    /// The index in [`Conduct::ALL`].
    conduct: AtomicU8,
    submits: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    acknowledged: AtomicU64,
}

impl Sink {
    /// Creates a closed sink.
    fn new() -> Self {
        let [port] = free_ports();
        Self {
            port,
            counts: Arc::new(Counts {
                start: Instant::now(),
                receipts: AtomicBool::new(false),
                conduct: AtomicU8::new(0),
                submits: AtomicU64::new(0),
                first_ns: AtomicU64::new(u64::MAX),
                last_ns: AtomicU64::new(0),
                acknowledged: AtomicU64::new(0),
            }),
            open: None,
        }
    }

    pub fn opened() -> Self {
        let mut sink = Self::new();
        sink.open();
        sink
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn open(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        let closing = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let accepting = {
            let (closing, streams) = (Arc::clone(&closing), Arc::clone(&streams));
            let counts = Arc::clone(&self.counts);
            std::thread::spawn(move || accept(&listener, &closing, &streams, &counts))
        };
        self.open = Some(Open { accepting, closing, streams });
    }

    /// Closes the listener and all connections.
    pub fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        open.closing.store(true, Ordering::SeqCst);
        // Ends the wait in `accept`.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        open.accepting.join().unwrap();
        let streams = open.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in &*streams {
            // This fails if the other side has already closed the connection.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Sets whether later submits get receipts.
    pub fn send_receipts(&self, receipts: bool) {
        self.counts.receipts.store(receipts, Ordering::SeqCst);
    }

    /// Sets how later submits are treated.
    pub fn turn(&self, conduct: Conduct) {
        self.counts.conduct.store(conduct as u8, Ordering::SeqCst);
    }

    /// Resets the times of the first and the last submit.
    pub fn forget_times(&self) {
        self.counts.first_ns.store(u64::MAX, Ordering::SeqCst);
        self.counts.last_ns.store(0, Ordering::SeqCst);
    }

    pub fn submits(&self) -> u64 {
        self.counts.submits.load(Ordering::SeqCst)
    }

    /// The number of answered receipts.
    pub fn acknowledged(&self) -> u64 {
        self.counts.acknowledged.load(Ordering::SeqCst)
    }

    /// When the last submit came.
    pub fn last(&self) -> Instant {
        self.counts.start + Duration::from_nanos(self.counts.last_ns.load(Ordering::SeqCst))
    }

    /// The time from the first submit to the last.
    pub fn span(&self) -> Duration {
        let first = self.counts.first_ns.load(Ordering::SeqCst);
        Duration::from_nanos(self.counts.last_ns.load(Ordering::SeqCst) - first)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.close();
    }
}

impl Counts {
    fn conduct(&self) -> Conduct {
        Conduct::ALL[usize::from(self.conduct.load(Ordering::Relaxed))]
    }

    fn submitted(&self, count: u64) {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap();
        self.first_ns.fetch_min(now, Ordering::SeqCst);
        self.last_ns.fetch_max(now, Ordering::SeqCst);
        self.submits.fetch_add(count, Ordering::SeqCst);
    }
}

fn accept(
    listener: &TcpListener,
    closing: &AtomicBool,
    streams: &Mutex<Vec<TcpStream>>,
    counts: &Arc<Counts>,
) {
    for stream in listener.incoming() {
        if closing.load(Ordering::SeqCst) {
            return;
        }
        let stream = stream.unwrap();
        stream.set_nodelay(true).unwrap();
        let handle = stream.try_clone().unwrap();
        streams.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        let counts = Arc::clone(counts);
        std::thread::spawn(move || Session::new(counts).run(stream));
    }
}

/// One connection.
struct Session {
    counts: Arc<Counts>,
    out: Vec<u8>,
    /// IDs and addresses of messages whose receipts haven't been sent yet.
    due: VecDeque<(u64, frame::Addresses)>,
    unanswered: usize,
    sequence: u32,
    next_id: u64,
}

impl Session {
    fn new(counts: Arc<Counts>) -> Self {
        Self {
            // IDs are never reused, not even after a reconnection.
            next_id: u64::try_from(counts.start.elapsed().as_micros()).unwrap() * 1000,
            counts,
            out: Vec::with_capacity(BUFFER),
            due: VecDeque::new(),
            unanswered: 0,
            sequence: 0,
        }
    }

    /// Runs until the other side unbinds or disconnects.
    fn run(mut self, mut stream: TcpStream) {
        let mut buffer = vec![0; BUFFER];
        let mut filled = 0;
        while let Ok(read @ 1..) = stream.read(&mut buffer[filled..]) {
            filled += read;
            let Some(used) = self.take(&buffer[..filled]) else {
                let _ = stream.write_all(&self.out);
                return;
            };
            buffer.copy_within(used..filled, 0);
            filled -= used;
            self.write_receipts();
            if stream.write_all(&self.out).is_err() {
                return;
            }
            self.out.clear();
        }
    }

    /// Answers all complete frames. Returns how many bytes they have, or `None` after an unbind.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let (mut used, mut submits, mut acknowledged) = (0, 0, 0);
        let mut unbound = false;
        while let Some(frame) = Frame::first(&bytes[used..]) {
            used += frame.length();
            match frame.command() {
                frame::BIND_RECEIVER | frame::BIND_TRANSMITTER | frame::BIND_TRANSCEIVER => {
                    frame.answer(&mut self.out, b"sink\0");
                }
                frame::SUBMIT_SM => {
                    submits += 1;
                    self.submitted(&frame);
                }
                frame::DELIVER_SM_RESP => {
                    acknowledged += 1;
                    self.unanswered -= 1;
                }
                frame::ENQUIRE_LINK => frame.answer(&mut self.out, b""),
                frame::UNBIND => {
                    frame.answer(&mut self.out, b"");
                    unbound = true;
                }
                other => assert!(other & frame::ANSWER != 0, "command {other:#x}"),
            }
        }
        if submits > 0 {
            self.counts.submitted(submits);
        }
        self.counts.acknowledged.fetch_add(acknowledged, Ordering::SeqCst);
        (!unbound).then_some(used)
    }

    fn submitted(&mut self, frame: &Frame) {
        match self.counts.conduct() {
            Conduct::Good | Conduct::DeliversNothing => self.accept(frame),
            Conduct::Refuses => frame.refuse(&mut self.out, SUBMIT_FAILED),
            Conduct::Throttles => frame.refuse(&mut self.out, THROTTLED),
            Conduct::Silent => {}
        }
    }

    fn accept(&mut self, frame: &Frame) {
        self.next_id += 1;
        let id = self.next_id;
        frame.answer(&mut self.out, format!("{id}\0").as_bytes());
        if self.counts.receipts.load(Ordering::Relaxed) {
            let (addresses, wanted) = frame.submit_sm();
            if wanted {
                self.due.push_back((id, addresses));
            }
        }
    }

    fn write_receipts(&mut self) {
        while self.unanswered < RECEIPT_WINDOW
            && let Some((id, addresses)) = self.due.pop_front()
        {
            self.sequence += 1;
            self.unanswered += 1;
            let delivered = !matches!(self.counts.conduct(), Conduct::DeliversNothing);
            frame::write_receipt(&mut self.out, self.sequence, id, &addresses, delivered);
        }
    }
}
