//! A process that is suspended until the deadline of its submits has passed, and then continues.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use smpp::{Event, Outcome, Tls};
use testing::smsc::{Peer, SUBMIT_SM, Smsc, split};
use tokio::time::{Instant, timeout};

use crate::client::{Client, long_submits, settings_at};

const COUNT: usize = 4000;
/// The size of each payload in octets. All payloads together exceed the sockets' buffers.
const SIZE: usize = 6000;
/// If no byte arrives for this long, everything in the sockets' buffers has arrived.
const SILENCE: Duration = Duration::from_millis(300);

/// The bytes that arrived while we were suspended, and those that arrived after that.
struct Arrived {
    before: Vec<u8>,
    after: Vec<u8>,
}

/// A peer in its own thread. It reads only after we are suspended.
struct Aside {
    stopped: Sender<()>,
    drained: Receiver<()>,
    arrived: JoinHandle<Arrived>,
}

impl Aside {
    /// Returns the address, the certificate's PEM for TLS, and the peer.
    fn start(tls: bool) -> (String, String, Self) {
        let (tell_where, hear_where) = channel();
        let (stopped, until_stopped) = channel();
        let (tell_drained, drained) = channel();
        let arrived = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let (smsc, pem) = if tls {
                    Smsc::start_tls().await
                } else {
                    (Smsc::start().await, String::new())
                };
                tell_where.send((smsc.address(), pem)).unwrap();
                let mut peer = smsc.bound().await;
                until_stopped.recv().unwrap();
                let before = drain(&mut peer).await;
                tell_drained.send(()).unwrap();
                let after = rest(&mut peer).await;
                Arrived { before, after }
            })
        });
        let (address, pem) = hear_where.recv().unwrap();
        let aside = Self { stopped, drained, arrived };
        (address, pem, aside)
    }
}

async fn drain(peer: &mut Peer) -> Vec<u8> {
    let mut all = Vec::new();
    while let Ok(bytes) = timeout(SILENCE, peer.read_some(1024 * 1024)).await {
        assert!(!bytes.is_empty(), "the ESME closed");
        all.extend(bytes);
    }
    all
}

async fn rest(peer: &mut Peer) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match peer.read_some(1024 * 1024).await {
            bytes if bytes.is_empty() => return all,
            bytes => all.extend(bytes),
        }
    }
}

/// Returns how many whole submits the bytes contain, and whether a part of another PDU follows.
fn submits_in(bytes: &[u8]) -> (usize, bool) {
    let (mut at, mut count) = (0, 0);
    while let Some((pdu, length)) = split(&bytes[at..]) {
        at += length;
        count += usize::from(pdu.command == SUBMIT_SM);
    }
    (count, at < bytes.len())
}

/// Fills the sockets' buffers and our own, sleeps until the submits' deadline has passed, and
/// continues. Returns how many submits arrived in full, and how many at most had been begun before
/// the sleep.
async fn pause(tls: bool) -> (usize, usize) {
    let (address, pem, aside) = Aside::start(tls);
    let mut ca_file = tempfile::NamedTempFile::new().unwrap();
    ca_file.write_all(pem.as_bytes()).unwrap();
    let mut settings = settings_at(address);
    settings.tls = tls.then(|| Tls {
        ca_file: Some(ca_file.path().to_owned()),
        server_name: "localhost".to_owned(),
        client: None,
    });
    settings.window = COUNT;
    settings.timers.close = Duration::ZERO;
    let client = Client::open(settings);
    client.until_free().await;
    let not_after = Instant::now() + Duration::from_secs(1);
    let mut submits = long_submits(COUNT as u64, SIZE);
    for submit in &mut submits {
        submit.not_after = not_after;
    }
    client.connection.submit(submits);
    client.until_stuck().await;
    // From here on, none of our tasks runs, because the only thread sleeps.
    aside.stopped.send(()).unwrap();
    aside.drained.recv().unwrap();
    std::thread::sleep(not_after + Duration::from_millis(1) - Instant::now());
    client.until(|status| status.queued == 0).await;
    let not_sent = client.close().await.into_iter().filter(|event| {
        let outcome = Outcome::NotSent;
        matches!(event, Event::Answer { outcome: told, .. } if *told == outcome)
    });
    let not_sent = not_sent.count();
    let Arrived { before, after } = aside.arrived.join().unwrap();
    let (whole, begun) = submits_in(&before);
    let (arrived, _) = submits_in(&[before, after].concat());
    assert_eq!(not_sent, COUNT - arrived, "the outcomes don't match what arrived");
    (arrived, whole + usize::from(begun))
}

#[tokio::test]
async fn after_a_pause_of_the_process_only_submits_begun_before_it_are_sent() {
    let (arrived, begun) = pause(false).await;
    assert!(begun > 0 && arrived <= begun, "{arrived}, {begun}");
}

/// The peer can't see a part of a TLS record, so it may not have seen the last submit that was
/// begun.
#[tokio::test]
async fn over_tls_only_submits_begun_before_a_pause_are_sent_after_it() {
    let (arrived, begun) = pause(true).await;
    assert!(begun > 0 && arrived <= begun + 1, "{arrived}, {begun}");
}
