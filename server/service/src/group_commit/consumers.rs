//! Consumers: the connections of this process that messages are handed to, and which carriers have
//! messages waiting.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::ids::Shard;
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
/// The most messages of one claim in a group with sends, or twice the group's sends where that is
/// more: with fewer the queue would grow under load.
const CLAIM_BESIDE_SENDS: usize = 128;

/// Messages that a group claimed for a connection.
pub(crate) type Dispatch = (Lease, Vec<Claimed>);

/// A connection that takes messages of a carrier. The connection's credit is how many messages it
/// would take; messages come as soon as their claim is durable. A consumer that is dropped takes no
/// more, and the messages that it hasn't received go back into the queue.
pub struct Consumer {
    credit: Credit,
    received: mpsc::UnboundedReceiver<Dispatch>,
    consumers: Arc<Consumers>,
}

/// Tells how many messages a connection would take. Clones speak for the same connection.
#[derive(Clone)]
pub struct Credit {
    shared: Arc<Shared>,
    inboxes: Inboxes,
}

struct Shared {
    carrier: String,
    places: Mutex<ConnectionPlaces>,
    /// Whether messages of the connection's carrier wait, in each shard.
    waiting: Arc<[AtomicBool]>,
    sender: mpsc::UnboundedSender<Dispatch>,
}

#[derive(Default)]
struct ConnectionPlaces {
    /// How many messages the connection would take, as it last said.
    credit: usize,
    /// How many messages were claimed for the connection and aren't counted in its credit yet.
    handed: usize,
}

impl ConnectionPlaces {
    fn available(&self) -> usize {
        self.credit.saturating_sub(self.handed)
    }
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, ConnectionPlaces> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn available(&self) -> usize {
        self.places().available()
    }

    /// Takes back places that a group had for messages and did not use. A shard may have found no
    /// place meanwhile, and waits to be told: the group's own too, where a call without an answer
    /// still had them.
    fn release(&self, unused: usize, inboxes: &Inboxes) {
        if unused == 0 {
            return;
        }
        let before = {
            let mut places = self.places();
            let before = places.available();
            places.handed = places.handed.saturating_sub(unused);
            before
        };
        self.has_more_places(before, inboxes);
    }

    /// Wakes the groups' threads that sleep and have reason to look for messages now that the
    /// connection has more places than `before`: those of the shards where messages wait; all of
    /// them if the connection had none, since a thread that finds no place anywhere sleeps without
    /// an end.
    fn has_more_places(&self, before: usize, inboxes: &Inboxes) {
        for (shard, inbox) in inboxes.iter().enumerate() {
            if before == 0 || self.waiting[shard].load(Ordering::Acquire) {
                inbox.reconsider();
            }
        }
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
        let (before, after) = {
            let mut places = self.shared.places();
            let before = places.available();
            submit();
            places.handed = places.handed.saturating_sub(received);
            places.credit = free();
            (before, places.available())
        };
        if after > before {
            self.shared.has_more_places(before, &self.inboxes);
        }
    }
}

impl Service {
    /// Adds a connection that takes messages of this carrier.
    pub fn consume(&self, carrier: &str) -> Consumer {
        self.inner.group_commit.consumers.add(carrier)
    }
}

impl Consumer {
    /// The next messages, to be submitted under their lease; pending while there are no messages.
    pub async fn next(&mut self) -> (Lease, Vec<Claimed>) {
        match self.received.recv().await {
            Some(dispatch) => dispatch,
            // The consumer itself keeps the channel open.
            None => std::future::pending().await,
        }
    }

    /// Submits `received` messages, then asks the connection how many more messages it would take.
    pub fn submit(&self, received: usize, submit: impl FnOnce(), free: impl FnOnce() -> usize) {
        self.credit.after(received, submit, free);
    }

    /// Tells how many messages the connection would take.
    pub fn credit(&self) -> Credit {
        self.credit.clone()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let shared = &self.credit.shared;
        self.consumers.remove(shared);
        self.received.close();
        while let Ok(dispatch) = self.received.try_recv() {
            self.consumers.give_back(&shared.carrier, dispatch);
        }
    }
}

/// The inbox of each shard's groups.
pub(super) type Inboxes = Arc<[Arc<Inbox>]>;

/// The connections by carrier.
pub(crate) struct Consumers {
    inboxes: Inboxes,
    carriers: Mutex<HashMap<String, Carrier>>,
}

struct Carrier {
    consumers: Vec<Arc<Shared>>,
    shards: Vec<OfShard>,
    /// Whether messages of any kind wait in each shard, as far as this process knows. The carrier's
    /// consumers share this list.
    waiting: Arc<[AtomicBool]>,
}

/// What this process knows of the messages that wait for a carrier in one shard.
struct OfShard {
    /// Whether single messages are due.
    singles_wait: bool,
    /// When to look whether messages wait.
    look_at: Instant,
    /// Until when not to look at all: a group couldn't be stored, or the carrier is drained.
    paused_until: Instant,
}

/// The place of a shard in a list of all shards.
pub(super) fn place(shard: Shard) -> usize {
    usize::try_from(shard.0 - Shard::FIRST.0).unwrap_or(0)
}

impl Carrier {
    fn new(shards: usize) -> Self {
        let of_shard = || OfShard {
            singles_wait: true,
            look_at: Instant::now(),
            paused_until: Instant::now(),
        };
        Self {
            consumers: Vec::new(),
            shards: (0..shards).map(|_| of_shard()).collect(),
            waiting: (0..shards).map(|_| AtomicBool::new(true)).collect(),
        }
    }

    fn at(&mut self, shard: Shard) -> &mut OfShard {
        &mut self.shards[place(shard)]
    }

    /// When to claim for the carrier next.
    fn claim_at(&self, shard: Shard) -> Instant {
        let of_shard = &self.shards[place(shard)];
        if self.is_waiting(shard) {
            of_shard.paused_until
        } else {
            of_shard.look_at.max(of_shard.paused_until)
        }
    }

    fn available(&self) -> usize {
        self.consumers
            .iter()
            .map(|consumer| consumer.available())
            .sum()
    }

    /// How many places a shard may claim for. While messages wait in several shards, each of these
    /// shards has a share of the places.
    fn share(&self) -> usize {
        let waiting = self
            .waiting
            .iter()
            .filter(|waiting| waiting.load(Ordering::Acquire));
        self.available().div_ceil(waiting.count().max(1))
    }

    fn is_waiting(&self, shard: Shard) -> bool {
        self.waiting[place(shard)].load(Ordering::Acquire)
    }

    fn wait(&mut self, shard: Shard) {
        self.at(shard).singles_wait = true;
        self.waiting[place(shard)].store(true, Ordering::Release);
    }

    fn learn(&mut self, shard: Shard, learned: &Learned, now: Instant) {
        if learned.no_single_waits {
            self.at(shard).singles_wait = false;
        }
        if let Some(after) = learned.look_after {
            self.waiting[place(shard)].store(false, Ordering::Release);
            self.at(shard).look_at = now + after.min(POLL);
        }
    }

    /// Notes that messages of this carrier were queued, to be claimed after this time.
    fn queued(&mut self, shard: Shard, after: Duration, now: Instant) {
        if after.is_zero() {
            self.wait(shard);
        } else {
            let of_shard = self.at(shard);
            of_shard.look_at = of_shard.look_at.min(now + after);
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
    pub(super) fn new(inboxes: Inboxes) -> Self {
        Self {
            inboxes,
            carriers: Mutex::default(),
        }
    }

    fn carriers(&self) -> MutexGuard<'_, HashMap<String, Carrier>> {
        self.carriers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, carrier: &str) -> Consumer {
        let (sender, received) = mpsc::unbounded_channel();
        let mut carriers = self.carriers();
        let known = carriers
            .entry(carrier.to_owned())
            .or_insert_with(|| Carrier::new(self.inboxes.len()));
        let shared = Arc::new(Shared {
            carrier: carrier.to_owned(),
            places: Mutex::default(),
            waiting: Arc::clone(&known.waiting),
            sender,
        });
        known.consumers.push(Arc::clone(&shared));
        let inboxes = Arc::clone(&self.inboxes);
        Consumer {
            credit: Credit { shared, inboxes },
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

    /// Puts messages that no connection took back into the queue.
    fn give_back(&self, carrier: &str, (lease, messages): Dispatch) {
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
        if self.inboxes[place(lease.shard)].push(input).is_err() {
            tracing::warn!(
                carrier,
                "claimed messages can't be released; their claims end by themselves"
            );
        }
    }

    /// Notes that messages may wait for any carrier, in any shard.
    pub(crate) fn expect_any(&self) {
        for carrier in self.carriers().values_mut() {
            for shard in 0..self.inboxes.len() {
                carrier.shards[shard].singles_wait = true;
                carrier.waiting[shard].store(true, Ordering::Release);
            }
        }
    }

    /// When to look at a shard's queue without being told; `None` while no connection would take a
    /// message.
    pub(crate) fn look_at(&self, shard: Shard) -> Option<Instant> {
        let carriers = self.carriers();
        let served = carriers.values().filter(|carrier| carrier.available() > 0);
        served.map(|carrier| carrier.claim_at(shard)).min()
    }

    /// Claims nothing in a shard for a while, after a group that couldn't be stored.
    pub(crate) fn pause(&self, shard: Shard) {
        let until = Instant::now() + PAUSE;
        for carrier in self.carriers().values_mut() {
            carrier.at(shard).paused_until = until;
        }
    }

    /// Begins to share out places in a group.
    pub(crate) fn begin(consumers: &Arc<Self>, shard: Shard) -> Places {
        Places {
            consumers: Arc::clone(consumers),
            shard,
            reserved: Vec::new(),
            drained: Vec::new(),
            dispatches: Vec::new(),
            queued: HashMap::new(),
            learned: HashMap::new(),
        }
    }
}

/// The places that a group shares out. If this is dropped without [`Places::dispatch`], nothing
/// changes.
pub(crate) struct Places {
    consumers: Arc<Consumers>,
    shard: Shard,
    /// Places that messages are claimed for, of each carrier.
    reserved: Vec<(String, Arc<Shared>, usize)>,
    drained: Vec<String>,
    dispatches: Vec<(Arc<Shared>, Vec<Claimed>)>,
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
                carrier.at(self.shard).paused_until = until;
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

    /// A place for a new single message, if its carrier has one and no older message waits for it.
    /// While messages of batches wait, a share of the places is left to them.
    pub(crate) fn take_one(&mut self, carrier: &str) -> Option<Place> {
        if self.queued.contains_key(carrier) || self.is_drained(carrier) {
            return None;
        }
        let consumer = {
            let carriers = self.consumers.carriers();
            let known = carriers.get(carrier)?;
            if known.shards[place(self.shard)].singles_wait {
                return None;
            }
            let available = known.available();
            let for_uploads = if known.is_waiting(self.shard) {
                available / BATCHES_SHARE
            } else {
                0
            };
            let consumer = known.roomiest().filter(|_| available > for_uploads)?;
            consumer.places().handed += 1;
            Arc::clone(consumer)
        };
        Some(Place(self.dispatch_of(consumer)))
    }

    /// Puts a message into its place.
    pub(crate) fn fill(&mut self, place: &Place, message: Claimed) {
        self.dispatches[place.0].1.push(message);
    }

    /// Removes messages that weren't stored from the places that were filled with them.
    pub(crate) fn retain(&mut self, is_stored: impl Fn(&Claimed) -> bool) {
        for (consumer, messages) in &mut self.dispatches {
            let before = messages.len();
            messages.retain(&is_stored);
            let unused = before - messages.len();
            consumer.release(unused, &self.consumers.inboxes);
        }
    }

    /// The carriers that have places and messages waiting.
    pub(crate) fn due(&self) -> Vec<String> {
        let now = Instant::now();
        let carriers = self.consumers.carriers();
        let due = carriers
            .iter()
            .filter(|(_, known)| known.available() > 0 && known.claim_at(self.shard) <= now);
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Reserves places of a carrier to claim messages for, in a group with this many sends; no
    /// other shard claims for these places. Returns how many were reserved: 0 for a drained
    /// carrier. The group's own sends take their places before.
    pub(crate) fn reserve(&mut self, carrier: &str, sends: usize) -> usize {
        if self.is_drained(carrier) {
            return 0;
        }
        let most = match sends {
            0 => CLAIM_MAX,
            sends => CLAIM_BESIDE_SENDS.max(2 * sends),
        };
        let carriers = self.consumers.carriers();
        let Some(known) = carriers.get(carrier) else {
            return 0;
        };
        let wanted = known.share().min(most);
        let mut left = wanted;
        while let Some(consumer) = known.roomiest().filter(|_| left > 0) {
            let count = consumer.available().min(left);
            consumer.places().handed += count;
            left -= count;
            let reserved = (carrier.to_owned(), Arc::clone(consumer), count);
            self.reserved.push(reserved);
        }
        wanted - left
    }

    pub(crate) fn is_drained(&self, carrier: &str) -> bool {
        self.drained.iter().any(|drained| drained == carrier)
    }

    /// Shares claimed messages out among the places that were reserved for them.
    pub(crate) fn fill_all(&mut self, carrier: &str, messages: Vec<Claimed>, learned: Learned) {
        let mut messages = messages.into_iter();
        for place in 0..self.reserved.len() {
            let (of, consumer, count) = &mut self.reserved[place];
            if of != carrier {
                continue;
            }
            let share: Vec<Claimed> = messages.by_ref().take(*count).collect();
            *count -= share.len();
            let consumer = Arc::clone(consumer);
            let dispatch = self.dispatch_of(consumer);
            self.dispatches[dispatch].1.extend(share);
        }
        self.learned.insert(carrier.to_owned(), learned);
    }

    /// Notes that messages were put into the queue, to be claimed after this time.
    pub(crate) fn queued(&mut self, carrier: &str, after: Duration) {
        let known = self.queued.entry(carrier.to_owned()).or_insert(after);
        *known = after.min(*known);
    }

    /// The place of a connection among the dispatches.
    fn dispatch_of(&mut self, consumer: Arc<Shared>) -> usize {
        let known = self
            .dispatches
            .iter()
            .position(|(known, _)| Arc::ptr_eq(known, &consumer));
        known.unwrap_or_else(|| {
            self.dispatches.push((consumer, Vec::new()));
            self.dispatches.len() - 1
        })
    }

    /// Gives the claimed messages to their connections, after the commit.
    pub(crate) fn dispatch(mut self, lease: Lease) {
        let now = Instant::now();
        let (consumers, shard) = (Arc::clone(&self.consumers), self.shard);
        let mut carriers = consumers.carriers();
        let new = || Carrier::new(consumers.inboxes.len());
        for (name, learned) in self.learned.drain() {
            carriers
                .entry(name)
                .or_insert_with(new)
                .learn(shard, &learned, now);
        }
        for (name, after) in self.queued.drain() {
            carriers
                .entry(name)
                .or_insert_with(new)
                .queued(shard, after, now);
        }
        drop(carriers);
        for (consumer, messages) in self.dispatches.drain(..) {
            if !messages.is_empty()
                && let Err(closed) = consumer.sender.send((lease, messages))
            {
                consumers.give_back(&consumer.carrier, closed.0);
            }
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let unused = self
            .dispatches
            .iter()
            .map(|(of, messages)| (of, messages.len()));
        let reserved = self.reserved.iter().map(|(_, of, count)| (of, *count));
        for (consumer, unused) in unused.chain(reserved) {
            consumer.release(unused, &self.consumers.inboxes);
        }
    }
}
