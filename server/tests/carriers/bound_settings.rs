//! Settings of a carrier that reach its connections: what the bind says, when submits are sent, and
//! how long an answer may take.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testing::harness::until;
use testing::smsc::{
    BIND_RECEIVER, BIND_TRANSCEIVER, BIND_TRANSMITTER, ENQUIRE_LINK, Pdu, RESPONSE, SUBMIT_SM,
    c_string, pdu, split,
};

use crate::acme::{accept, settings};
use crate::routes::carriers;
use crate::scripted::Scripted;
use crate::started::Started;

/// An SMSC that records every PDU and accepts every submit. It listens until the process ends.
pub struct Recorder {
    pub address: String,
    shared: Arc<Mutex<State>>,
}

/// A PDU that the SMSC received.
#[derive(Clone)]
pub struct Received {
    at: Instant,
    pdu: Pdu,
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    /// The connections that weren't cut.
    streams: Vec<TcpStream>,
    /// The `command_status` of the answers to binds.
    bind_status: u32,
}

impl Recorder {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::<Mutex<State>>::default();
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.lock().unwrap().streams.push(stream.try_clone().unwrap());
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// Returns the received PDUs with this command ID, in the order of their arrival.
    pub fn received(&self, command: u32) -> Vec<Received> {
        let state = self.shared.lock().unwrap();
        let found = state.received.iter().filter(|received| received.pdu.command == command);
        found.cloned().collect()
    }

    /// Waits for this many PDUs with this command ID, and returns all of them so far.
    pub fn until_received(&self, command: u32, count: usize) -> Vec<Received> {
        until(&format!("{count} PDUs with the command ID {command:#x}"), || {
            let found = self.received(command);
            (found.len() >= count).then_some(found)
        })
    }

    /// Cuts all connections, and refuses binds with this `command_status` from now on.
    pub fn refuse_binds(&self, status: u32) {
        let mut state = self.shared.lock().unwrap();
        state.bind_status = status;
        for stream in state.streams.drain(..) {
            // Fails if the connection has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Accepts binds again.
    pub fn accept_binds(&self) {
        self.shared.lock().unwrap().bind_status = 0;
    }

    /// Returns the command IDs of all binds.
    fn binds(&self) -> Vec<u32> {
        let state = self.shared.lock().unwrap();
        let commands = state.received.iter().map(|received| received.pdu.command);
        commands.filter(|command| is_bind(*command)).collect()
    }
}

const fn is_bind(command: u32) -> bool {
    matches!(command, BIND_RECEIVER | BIND_TRANSMITTER | BIND_TRANSCEIVER)
}

/// Serves a connection until it ends.
fn serve(mut stream: &TcpStream, shared: &Mutex<State>) {
    let (mut incoming, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut chunk) {
        incoming.extend_from_slice(&chunk[..length]);
        while let Some((request, length)) = split(&incoming) {
            incoming.drain(..length);
            // Fails if the connection has ended. The next read then ends the loop.
            let _ = stream.write_all(&answer(request, shared));
        }
    }
    // `State` has a copy of the stream, so dropping this one doesn't close the connection.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Records a PDU and returns the answer to it, which is empty for a PDU that needs none.
fn answer(request: Pdu, shared: &Mutex<State>) -> Vec<u8> {
    let mut state = shared.lock().unwrap();
    let (command, sequence) = (request.command, request.sequence);
    state.received.push(Received { at: Instant::now(), pdu: request });
    let (status, body) = match command {
        SUBMIT_SM => (0, c_string(&state.received.len().to_string())),
        _ if is_bind(command) && state.bind_status == 0 => (0, c_string("smsc")),
        _ if is_bind(command) => (state.bind_status, Vec::new()),
        _ if command & RESPONSE == 0 => (0, Vec::new()),
        _ => return Vec::new(),
    };
    pdu(command | RESPONSE, status, sequence, &body)
}

#[test]
fn a_transmitter_submits_and_binds_no_receiver() {
    let smsc = Recorder::start();
    let settings = carriers(&[("acme", &smsc.address)]) + "bind = \"transmitter\"\n";
    let started = Started::start(&settings);
    smsc.until_received(BIND_TRANSMITTER, 1);
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    assert_eq!(smsc.received(SUBMIT_SM).len(), 1);
    started.until_up("acme");
    started.stop();
    assert_eq!(smsc.binds(), [BIND_TRANSMITTER]);
}

#[test]
fn a_bind_and_a_submit_have_the_types_and_addresses_of_the_settings() {
    let smsc = Recorder::start();
    let settings = carriers(&[("acme", &smsc.address)])
        + "system_type = \"VMA\"\naddress_range = \"^266.*\"\n\
           source_ton = 6\nsource_npi = 9\ndestination_ton = 2\ndestination_npi = 3\n\
           enquire_link = 1\n";
    let started = Started::start(&settings);
    let binds = smsc.until_received(BIND_TRANSCEIVER, 1);
    // After the system_type come the version 3.4, addr_ton and addr_npi.
    let parameters = b"heliograph\0secret\0VMA\0\x34\0\0^266.*\0";
    assert_eq!(binds[0].pdu.body, parameters, "{:X?}", binds[0].pdu);
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    let submits = smsc.received(SUBMIT_SM);
    assert_eq!(submits.len(), 1);
    let body = &submits[0].pdu.body;
    // The service_type is empty. TON and NPI come before each address.
    let addresses =
        [&b"\0\x06\x09"[..], &c_string("Heliograph"), &[2, 3], &c_string("26657000001")].concat();
    assert!(body.starts_with(&addresses), "{body:X?}");
    // The connection is idle now. The second enquire_link shows that the answer to the one before
    // was enough.
    let before = smsc.received(ENQUIRE_LINK).len();
    smsc.until_received(ENQUIRE_LINK, before + 2);
    assert_eq!(smsc.binds(), [BIND_TRANSCEIVER]);
    started.stop();
}

/// Takes 1 s, which is the time for an answer. The lease would last for ten minutes, and without
/// the setting the carrier would have 30 s.
#[test]
fn a_submit_without_an_answer_in_time_is_unknown_long_before_its_lease_ends() {
    let smsc = Scripted::start(|_| Vec::new());
    let settings = format!("lease_seconds = 600\n{}", settings(&smsc, "answer_timeout = 1"));
    let started = Started::start(&settings);
    smsc.until_bound();
    let begun = Instant::now();
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "unknown");
    let took = begun.elapsed();
    assert!((1..25).contains(&took.as_secs()), "{took:?}");
    assert_eq!(smsc.count("26657000001"), 1);
    assert_eq!(started.balance(), "99.95");
    started.stop();
}

#[test]
fn a_password_longer_than_smpp_allows_is_sent_whole_with_one_warning() {
    const PASSWORD: &str = "twelve-chars";
    const WARNING: &str = "the password is longer than the 8 characters";
    let smsc = Recorder::start();
    let settings = carriers(&[("acme", &smsc.address)]).replace("secret", PASSWORD);
    let started = Started::start(&settings);
    let binds = smsc.until_received(BIND_TRANSCEIVER, 1);
    let parameters = b"heliograph\0twelve-chars\0\0\x34\0\0\0";
    assert_eq!(binds[0].pdu.body, parameters, "{:X?}", binds[0].pdu);
    until("the warning", || started.server.log().contains(WARNING).then_some(()));
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    let log = started.server.log();
    assert_eq!(log.matches(WARNING).count(), 1, "{log}");
    assert!(!log.contains(PASSWORD), "{log}");
    started.stop();
}

/// Takes 2.5 s, which is the time for 50 messages at this rate.
#[test]
fn two_connections_share_the_rate_of_their_carrier() {
    const MESSAGES: u32 = 50;
    const INTERVAL: Duration = Duration::from_millis(50);
    /// The pace catches up on 20 ms.
    const TOLERANCE: Duration = Duration::from_millis(100);
    let smsc = Recorder::start();
    let settings = carriers(&[("acme", &smsc.address)]) + "connections = 2\ncarrier_rate = 20\n";
    let started = Started::start(&settings);
    until("two bound connections", || {
        let carrier = started.carrier("acme");
        let connections = carrier["connections"].as_array()?.iter();
        let bound = connections.filter(|connection| connection["is_bound"] == true);
        (bound.count() == 2).then_some(())
    });
    let numbers: Vec<_> =
        (57_000_000..57_000_000 + MESSAGES).map(|number| number.to_string()).collect();
    let begun = Instant::now();
    let batchid = started.server.accepted_batch(started.key(), &numbers.join("\n"));
    until("all to be submitted", || {
        let counts = started.server.batch(started.key(), &batchid)["counts"].clone();
        (counts["submitted"] == MESSAGES).then_some(())
    });
    let submits = smsc.received(SUBMIT_SM);
    assert_eq!(submits.len(), MESSAGES as usize);
    // Whatever delays a submit, it arrives no earlier than the rate allows. The last one comes
    // after 2.35 s. If each connection had the whole rate, it could come after 1.2 s.
    for (before, submit) in (0_u32..).zip(&submits) {
        let (arrived, earliest) = (submit.at - begun, INTERVAL * before);
        assert!(arrived + TOLERANCE >= earliest, "submit {before} after {arrived:?}");
    }
    started.stop();
}

/// SIGUSR1 and SIGUSR2 end a process that doesn't handle them.
#[test]
fn ignored_signals_lose_no_message_in_flight() {
    let smsc =
        Scripted::start(|submit| if submit.before < 5 { Vec::new() } else { accept(submit) });
    let started = Started::start(&settings(&smsc, ""));
    smsc.until_bound();
    let sent = started.send_to(57_000_001..57_000_006);
    smsc.until_submits(5);
    for name in ["USR1", "USR2"] {
        started.server.signal(name);
    }
    until("the lines about signals", || {
        let ignored = started.server.log().matches("ignored a signal").count();
        (ignored == 2).then_some(())
    });
    for before in 0..5 {
        smsc.accept_late(before, &format!("late-{before}"));
    }
    started.until_all(&sent, "submitted");
    let next = started.send("57000006", "Hello");
    started.until(&next, "submitted");
    assert_eq!((smsc.submits().len(), smsc.binds()), (6, 1));
    assert_eq!(started.balance(), "99.7");
    started.stop();
}
