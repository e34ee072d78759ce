//! Consumers: the connections of this process that messages are handed to, and which carriers have
//! messages waiting.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::inbox::{Inbox, Input};
use crate::Service;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::{BATCHES_SHARE, Claimed, Learned, Lease, Submitted};

/// How often to look for messages that no process announced, such as those of a command beside this
/// process.
const POLL: Duration = Duration::from_secs(2);
/// How long nothing is claimed for a carrier that can't be handed messages.
const PAUSE: Duration = Duration::from_millis(500);
/// The most messages of one claim.
const CLAIM_MAX: usize = 512;
/// The most messages of one claim in a turn with sends, or twice the turn's sends where that is
/// more: with fewer the queue would grow under load.
const CLAIM_BESIDE_SENDS: usize = 128;

/// Messages that a turn claimed for a connection.
pub(crate) type Handover = (Lease, Vec<Claimed>);

/// A connection that takes messages of a carrier. The connection's credit is how many messages it
/// would take; messages come as soon as their claim is durable. A consumer that is dropped takes no
/// more, and the messages that it hasn't received go back into the queue.
pub struct Consumer {
    credit: Credit,
    received: mpsc::UnboundedReceiver<Handover>,
    consumers: Arc<Consumers>,
}

/// Tells how many messages a connection would take. Clones speak for the same connection.
#[derive(Clone)]
pub struct Credit {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
}

struct Shared {
    carrier: String,
    places: Mutex<ConnectionPlaces>,
    /// Whether messages of the connection's carrier wait.
    waiting: Arc<AtomicBool>,
    sender: mpsc::UnboundedSender<Handover>,
}

#[derive(Default)]
struct ConnectionPlaces {
    /// How many messages the connection would take, as it last said.
    credit: usize,
    /// How many messages were claimed for the connection and aren't counted in its credit yet.
    handed: usize,
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, ConnectionPlaces> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn available(&self) -> usize {
        let places = self.places();
        places.credit.saturating_sub(places.handed)
    }
}

impl Credit {
    /// Asks the connection how many messages it would take now, while no message is submitted to
    /// it.
    pub fn refresh(&self, free: impl FnOnce() -> usize) {
        self.after(0, || (), free);
    }

    /// Submits received messages, then asks the connection how many messages it would take now.
    fn after(&self, received: usize, submit: impl FnOnce(), free: impl FnOnce() -> usize) {
        let more = {
            let mut places = self.shared.places();
            let before = places.credit.saturating_sub(places.handed);
            submit();
            places.handed = places.handed.saturating_sub(received);
            places.credit = free();
            places.credit.saturating_sub(places.handed) > before
        };
        if more && self.shared.waiting.load(Ordering::Acquire) {
            self.inbox.look();
        }
    }
}

impl Service {
    /// Adds a connection that takes messages of this carrier.
    #[must_use]
    pub fn consume(&self, carrier: &str) -> Consumer {
        let inbox = Arc::clone(&self.inner.turn.inbox);
        self.inner.turn.consumers.add(carrier, inbox)
    }
}

impl Consumer {
    /// The next messages, to be submitted under their lease; pending while there are no messages.
    pub async fn next(&mut self) -> (Lease, Vec<Claimed>) {
        match self.received.recv().await {
            Some(handover) => handover,
            // The consumer itself keeps the channel open.
            None => std::future::pending().await,
        }
    }

    /// Submits `received` messages, then asks the connection how many more messages it would take.
    pub fn submit(&self, received: usize, submit: impl FnOnce(), free: impl FnOnce() -> usize) {
        self.credit.after(received, submit, free);
    }

    /// Tells how many messages the connection would take.
    #[must_use]
    pub fn credit(&self) -> Credit {
        self.credit.clone()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let Credit { shared, inbox } = &self.credit;
        self.consumers.remove(shared);
        self.received.close();
        while let Ok(handover) = self.received.try_recv() {
            give_back(inbox, &shared.carrier, handover);
        }
    }
}

/// Puts messages that no connection took back into the queue.
fn give_back(inbox: &Inbox, carrier: &str, (lease, messages): Handover) {
    let results = messages.into_iter().map(|message| Submitted {
        id: message.id,
        application_id: message.application_id,
        lease,
        segments: 1,
        outcomes: vec![(1, SubmitOutcome::NotSent)],
    });
    let input = Input::Results {
        carrier: carrier.to_owned(),
        results: results.collect(),
        taken: Vec::new(),
        answer: None,
    };
    if inbox.push(input).is_err() {
        tracing::warn!(
            carrier,
            "claimed messages can't be given back; their claims end by themselves"
        );
    }
}

/// The connections by carrier.
#[derive(Default)]
pub(crate) struct Consumers {
    carriers: Mutex<HashMap<String, Carrier>>,
}

struct Carrier {
    consumers: Vec<Arc<Shared>>,
    /// Whether single messages are due, as far as this process knows.
    singles_wait: bool,
    /// Whether messages of any kind wait, as far as this process knows; the carrier's consumers
    /// read this.
    waiting: Arc<AtomicBool>,
    /// When to look whether messages wait.
    look_at: Instant,
    /// Until when not to look at all: a turn couldn't be stored, or the carrier is drained.
    paused_until: Instant,
}

impl Carrier {
    fn new() -> Self {
        Self {
            consumers: Vec::new(),
            singles_wait: true,
            waiting: Arc::new(AtomicBool::new(true)),
            look_at: Instant::now(),
            paused_until: Instant::now(),
        }
    }

    /// When to claim for the carrier next.
    fn claim_at(&self) -> Instant {
        if self.is_waiting() {
            self.paused_until
        } else {
            self.look_at.max(self.paused_until)
        }
    }

    fn available(&self) -> usize {
        self.consumers
            .iter()
            .map(|consumer| consumer.available())
            .sum()
    }

    fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    fn wait(&mut self) {
        self.singles_wait = true;
        self.waiting.store(true, Ordering::Release);
    }

    fn learn(&mut self, learned: &Learned, now: Instant) {
        if learned.no_single_waits {
            self.singles_wait = false;
        }
        if let Some(after) = learned.look_after {
            self.waiting.store(false, Ordering::Release);
            self.look_at = now + after.min(POLL);
        }
    }

    /// Notes that messages of this carrier were queued, to be claimed after this time.
    fn queued(&mut self, after: Duration, now: Instant) {
        if after.is_zero() {
            self.wait();
        } else {
            self.look_at = self.look_at.min(now + after);
        }
    }

    /// The connection with the most places, if it has any.
    fn roomiest(&self) -> Option<&Arc<Shared>> {
        let roomiest = self
            .consumers
            .iter()
            .max_by_key(|consumer| consumer.available());
        roomiest.filter(|consumer| consumer.available() > 0)
    }
}

impl Consumers {
    fn carriers(&self) -> MutexGuard<'_, HashMap<String, Carrier>> {
        self.carriers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, carrier: &str, inbox: Arc<Inbox>) -> Consumer {
        let (sender, received) = mpsc::unbounded_channel();
        let mut carriers = self.carriers();
        let known = carriers
            .entry(carrier.to_owned())
            .or_insert_with(Carrier::new);
        let shared = Arc::new(Shared {
            carrier: carrier.to_owned(),
            places: Mutex::default(),
            waiting: Arc::clone(&known.waiting),
            sender,
        });
        known.consumers.push(Arc::clone(&shared));
        Consumer {
            credit: Credit { shared, inbox },
            received,
            consumers: Arc::clone(self),
        }
    }

    fn remove(&self, consumer: &Arc<Shared>) {
        let mut carriers = self.carriers();
        if let Some(carrier) = carriers.get_mut(&consumer.carrier) {
            carrier
                .consumers
                .retain(|other| !Arc::ptr_eq(other, consumer));
        }
    }

    /// Notes that messages may wait for any carrier.
    pub(crate) fn expect_any(&self) {
        for carrier in self.carriers().values_mut() {
            carrier.wait();
        }
    }

    /// When to look at the queue without being told; `None` while no connection would take a
    /// message.
    pub(crate) fn look_at(&self) -> Option<Instant> {
        let carriers = self.carriers();
        let served = carriers.values().filter(|carrier| carrier.available() > 0);
        served.map(Carrier::claim_at).min()
    }

    /// Claims nothing for a while, after a turn that couldn't be stored.
    pub(crate) fn pause(&self) {
        let until = Instant::now() + PAUSE;
        for carrier in self.carriers().values_mut() {
            carrier.paused_until = until;
        }
    }

    /// Begins to share out places in a turn.
    pub(crate) fn begin(consumers: &Arc<Self>) -> Places {
        Places {
            consumers: Arc::clone(consumers),
            drained: Vec::new(),
            handovers: Vec::new(),
            queued: HashMap::new(),
            learned: HashMap::new(),
        }
    }
}

/// The places that a turn shares out. If this is dropped without [`Places::hand_over`], nothing
/// changes.
pub(crate) struct Places {
    consumers: Arc<Consumers>,
    drained: Vec<String>,
    handovers: Vec<(Arc<Shared>, Vec<Claimed>)>,
    queued: HashMap<String, Duration>,
    learned: HashMap<String, Learned>,
}

/// A place of a connection for one message.
pub(crate) struct Place(usize);

impl Places {
    /// Notes which carriers are drained: drained carriers are handed nothing.
    pub(crate) fn close(&mut self, drained: Vec<String>) {
        let until = Instant::now() + PAUSE;
        let mut carriers = self.consumers.carriers();
        for name in &drained {
            if let Some(carrier) = carriers.get_mut(name) {
                carrier.paused_until = until;
            }
        }
        drop(carriers);
        self.drained = drained;
    }

    /// Whether messages were put into the queue without being handed to a connection of this
    /// process.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// A message that was claimed, if there is one.
    pub(crate) fn first_claimed(&self) -> Option<&Claimed> {
        self.handovers
            .iter()
            .find_map(|(_, messages)| messages.first())
    }

    /// A place for a new single message, if its carrier has one and no older message waits for it.
    /// While messages of batches wait, a share of the places is left to them.
    pub(crate) fn take_one(&mut self, carrier: &str) -> Option<Place> {
        if self.queued.contains_key(carrier) || self.is_drained(carrier) {
            return None;
        }
        let consumer = {
            let carriers = self.consumers.carriers();
            let known = carriers.get(carrier).filter(|known| !known.singles_wait)?;
            let available = known.available();
            let for_uploads = if known.is_waiting() {
                available / BATCHES_SHARE
            } else {
                0
            };
            Arc::clone(known.roomiest().filter(|_| available > for_uploads)?)
        };
        Some(Place(self.reserve(consumer, 1)))
    }

    /// Puts a message into its place.
    pub(crate) fn fill(&mut self, place: &Place, message: Claimed) {
        self.handovers[place.0].1.push(message);
    }

    /// Takes messages that weren't stored out of their places.
    pub(crate) fn retain(&mut self, is_stored: impl Fn(&Claimed) -> bool) {
        for (consumer, messages) in &mut self.handovers {
            let before = messages.len();
            messages.retain(&is_stored);
            let mut places = consumer.places();
            places.handed = places.handed.saturating_sub(before - messages.len());
        }
    }

    /// The carriers that have places and messages waiting, with the number of messages to claim in
    /// a turn with this many sends.
    pub(crate) fn claimable(&self, sends: usize) -> Vec<(String, usize)> {
        let most = match sends {
            0 => CLAIM_MAX,
            sends => CLAIM_BESIDE_SENDS.max(2 * sends),
        };
        let now = Instant::now();
        let carriers = self.consumers.carriers();
        let open = carriers
            .iter()
            .filter(|(_, known)| known.claim_at() <= now)
            .map(|(name, known)| (name.clone(), known.available().min(most)));
        open.filter(|(name, places)| *places > 0 && !self.is_drained(name))
            .collect()
    }

    fn is_drained(&self, carrier: &str) -> bool {
        self.drained.iter().any(|drained| drained == carrier)
    }

    /// Shares claimed messages out among the connections of a carrier; messages without a place go
    /// to one of the connections all the same.
    pub(crate) fn fill_all(&mut self, carrier: &str, messages: Vec<Claimed>, learned: Learned) {
        let mut messages = messages.into_iter().peekable();
        while messages.peek().is_some() {
            let consumer = {
                let carriers = self.consumers.carriers();
                let known = carriers.get(carrier);
                known.and_then(|known| known.roomiest().or(known.consumers.first()).cloned())
            };
            // The last connection has closed meanwhile: the claims end with their lease.
            let Some(consumer) = consumer else { break };
            let count = consumer.available().max(1);
            let share: Vec<Claimed> = messages.by_ref().take(count).collect();
            let place = self.reserve(consumer, share.len());
            self.handovers[place].1.extend(share);
        }
        self.learned.insert(carrier.to_owned(), learned);
    }

    /// Notes that messages were put into the queue, to be claimed after this time.
    pub(crate) fn queued(&mut self, carrier: &str, after: Duration) {
        let known = self.queued.entry(carrier.to_owned()).or_insert(after);
        *known = after.min(*known);
    }

    fn reserve(&mut self, consumer: Arc<Shared>, count: usize) -> usize {
        consumer.places().handed += count;
        let known = self
            .handovers
            .iter()
            .position(|(known, _)| Arc::ptr_eq(known, &consumer));
        known.unwrap_or_else(|| {
            self.handovers.push((consumer, Vec::new()));
            self.handovers.len() - 1
        })
    }

    /// Hands over the claimed messages, after the commit.
    pub(crate) fn hand_over(mut self, lease: Lease, inbox: &Inbox) {
        let now = Instant::now();
        let mut carriers = self.consumers.carriers();
        for (name, learned) in self.learned.drain() {
            let known = carriers.entry(name).or_insert_with(Carrier::new);
            known.learn(&learned, now);
        }
        for (name, after) in self.queued.drain() {
            let known = carriers.entry(name).or_insert_with(Carrier::new);
            known.queued(after, now);
        }
        drop(carriers);
        for (consumer, messages) in self.handovers.drain(..) {
            if !messages.is_empty()
                && let Err(closed) = consumer.sender.send((lease, messages))
            {
                give_back(inbox, &consumer.carrier, closed.0);
            }
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for (consumer, messages) in &self.handovers {
            let mut places = consumer.places();
            places.handed = places.handed.saturating_sub(messages.len());
        }
    }
}
