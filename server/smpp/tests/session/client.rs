//! The ESME side of the tests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use smpp::{
    Address, BindMode, Connection, Delivery, Event, Events, FaultKind, Outcome, Reaction, Settings,
    Submit, Timers, status_code,
};
use testing::smsc::{Peer, Smsc};
use tokio::time::{Instant, timeout};

/// Long enough for anything that should happen at all.
pub const LONG: Duration = Duration::from_secs(20);

/// A connection whose events are read one by one.
pub struct Client {
    pub connection: Connection,
    events: Events,
    batch: VecDeque<Event>,
}

/// Settings with backoffs that are short enough for a test, and with no other limit that a test
/// could reach.
pub fn settings(smsc: &Smsc) -> Settings {
    settings_at(smsc.address())
}

/// The same settings, for an SMSC of which only the address is known.
pub fn settings_at(address: String) -> Settings {
    Settings {
        address,
        backup: None,
        tls: None,
        system_id: "heliograph".to_owned(),
        password: "secret".to_owned(),
        system_type: String::new(),
        address_range: String::new(),
        bind: BindMode::Transceiver,
        window: 10,
        rate: 0,
        shared_pace: None,
        reaction: Arc::new(reaction),
        timers: Timers {
            connect: LONG,
            answer: LONG,
            silent: None,
            enquire_link: LONG,
            backoff_min: Duration::from_millis(1),
            backoff_max: Duration::from_millis(5),
            hold_min: Duration::from_millis(50),
            hold_max: Duration::from_millis(200),
            close: LONG,
        },
    }
}

/// The status with which the tests' peers refuse all submits of an account.
pub const NO_CREDIT: u32 = 0x0401;

fn reaction(status: u32) -> Reaction {
    match status {
        status_code::THROTTLED | status_code::QUEUE_FULL => Reaction::Throttle,
        NO_CREDIT => Reaction::Hold,
        _ => Reaction::None,
    }
}

pub fn submit(tag: u64) -> Submit {
    Submit {
        tag,
        not_after: Instant::now() + LONG,
        is_secret: false,
        service_type: String::new(),
        source: Address { ton: 5, npi: 0, digits: "Heliograph".to_owned() },
        destination: Address { ton: 1, npi: 1, digits: "491701234567".to_owned() },
        esm_class: 0,
        validity_period: None,
        registered_delivery: 1,
        data_coding: 0,
        short_message: tag.to_string().into_bytes(),
        sar_msg_ref_num: None,
        sar_total_segments: None,
        sar_segment_seqnum: None,
        message_payload: None,
        user_message_reference: None,
        tlvs: Vec::new(),
    }
}

pub fn submits(tags: std::ops::Range<u64>) -> Vec<Submit> {
    tags.map(submit).collect()
}

/// Submits with a payload of `size` octets each. Many of them fill a socket's buffers.
pub fn long_submits(count: u64, size: usize) -> Vec<Submit> {
    let long = |tag| Submit { message_payload: Some(vec![b'x'; size]), ..submit(tag) };
    (0..count).map(long).collect()
}

pub fn accepted(id: &str) -> Outcome {
    Outcome::Accepted { message_id: Some(id.to_owned()) }
}

impl Client {
    pub fn open(settings: Settings) -> Self {
        let (connection, events) = Connection::open(settings, 1);
        Self { connection, events, batch: VecDeque::new() }
    }

    /// Opens a connection and waits until it is bound at `smsc`.
    pub async fn bound(smsc: &Smsc, settings: Settings) -> (Self, Peer) {
        let client = Self::open(settings);
        let peer = smsc.bound().await;
        client.until_free().await;
        (client, peer)
    }

    pub async fn until_free(&self) {
        let free = timeout(LONG, self.connection.until_free()).await;
        free.unwrap_or_else(|_| panic!("not free: {:?}", self.connection.status()));
    }

    /// Returns the next event, or `None` once the connection is closed.
    pub async fn event(&mut self) -> Option<Event> {
        while self.batch.is_empty() {
            let batch = timeout(LONG, self.events.next()).await;
            let batch = batch.unwrap_or_else(|_| panic!("{:?}", self.connection.status()));
            self.batch = batch?.into();
        }
        self.batch.pop_front()
    }

    pub async fn answer(&mut self) -> (u64, Outcome) {
        match self.event().await {
            Some(Event::Answer { tag, outcome }) => (tag, outcome),
            other => panic!("{other:?}"),
        }
    }

    /// Waits for `count` answers and returns them, sorted by tag.
    pub async fn answers(&mut self, count: usize) -> Vec<(u64, Outcome)> {
        let mut answers = Vec::new();
        while answers.len() < count {
            answers.push(self.answer().await);
        }
        answers.sort_by_key(|(tag, _)| *tag);
        answers
    }

    pub async fn delivery(&mut self) -> Delivery {
        match self.event().await {
            Some(Event::Deliver(delivery)) => delivery,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until `wanted` returns true for the status.
    pub async fn until(&self, wanted: impl Fn(&smpp::Status) -> bool) -> smpp::Status {
        let began = Instant::now();
        loop {
            let status = self.connection.status();
            if wanted(&status) {
                return status;
            }
            assert!(began.elapsed() < LONG, "{status:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until the last error is of this kind, and returns it as operators read it.
    pub async fn until_fault(&self, kind: FaultKind) -> String {
        let is = |status: &smpp::Status| {
            status.last_error.as_ref().is_some_and(|error| error.fault.kind == kind)
        };
        let status = self.until(is).await;
        status.last_error.map(|error| error.fault.to_string()).unwrap_or_default()
    }

    /// Waits until the sockets' buffers are full and the queue no longer shrinks. Returns how many
    /// submits are left in the queue.
    pub async fn until_stuck(&self) -> usize {
        let mut before = usize::MAX;
        loop {
            let queued = self.connection.status().queued;
            if queued == before {
                assert!(queued > 0, "the buffers took all of it");
                return queued;
            }
            before = queued;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Closes the connection and returns the remaining events.
    pub async fn close(mut self) -> Vec<Event> {
        timeout(LONG, self.connection.close()).await.unwrap();
        let mut rest = Vec::new();
        while let Some(event) = self.event().await {
            rest.push(event);
        }
        rest
    }
}
