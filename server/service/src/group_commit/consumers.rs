//! Consumers: the connections of this process that receive messages. This module also tracks which
//! carriers have waiting messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::ids::Shard;
use store::hold::ALL_CARRIERS;
use tokio::sync::mpsc;

use super::inbox::{Inbox, Input};
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::{BATCHES_SHARE, Claimed, Learned, Lease, Submitted};
use crate::{Delivery, Service};

/// The interval at which a shard's queue is polled for messages that no process announced, for
/// example those that a command-line process queued.
const POLL: Duration = Duration::from_secs(2);
/// How long a shard pauses all claims after a group failed, or the claims for a drained carrier.
const PAUSE: Duration = Duration::from_millis(500);
const CLAIM_MAX: usize = 512;
/// The maximum number of messages per claim in a group with sends, unless the group has more than
/// half as many sends. Then the maximum is twice the number of sends, because the queue would
/// otherwise grow under load.
const CLAIM_BESIDE_SENDS: usize = 128;

/// Messages that a group claimed for a connection, with their lease.
pub(crate) type Dispatch = (Lease, Vec<Claimed>);

/// A connection that receives messages of a carrier. Its credit is the number of messages that it
/// would take. Messages arrive as soon as their claim is durable. When the consumer is dropped, the
/// messages that it hasn't received go back into the queue.
pub struct Consumer {
    credit: Credit,
    received: mpsc::UnboundedReceiver<Dispatch>,
    /// Received, but not returned yet.
    pending: Option<Dispatch>,
    consumers: Arc<Consumers>,
    service: Service,
}

/// A handle that sets how many messages a connection would take. Clones refer to the same
/// connection.
#[derive(Clone)]
pub struct Credit {
    shared: Arc<Shared>,
    inboxes: Inboxes,
}

struct Shared {
    carrier: String,
    slots: Mutex<ConnectionSlots>,
    /// Whether messages of the connection's carrier wait, by shard.
    waiting: Arc<[AtomicBool]>,
    sender: mpsc::UnboundedSender<Dispatch>,
}

#[derive(Default)]
struct ConnectionSlots {
    /// The number of messages that the connection would take, as of the last update.
    credit: usize,
    /// The number of messages that were claimed for the connection and that `credit` doesn't
    /// account for yet.
    claimed: usize,
}

impl ConnectionSlots {
    fn available(&self) -> usize {
        self.credit.saturating_sub(self.claimed)
    }
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, ConnectionSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn available(&self) -> usize {
        self.slots().available()
    }

    /// Releases slots that a group reserved and didn't use. A thread that found no free slot in the
    /// meantime may sleep until it is woken. This can be the thread of the group's own shard, if a
    /// call without an answer held the slots.
    fn release(&self, unused: usize, inboxes: &Inboxes) {
        if unused == 0 {
            return;
        }
        let before = {
            let mut slots = self.slots();
            let before = slots.available();
            slots.claimed = slots.claimed.saturating_sub(unused);
            before
        };
        self.has_more_slots(before, inboxes);
    }

    /// Wakes sleeping threads of shards, because the connection now has more than `before` free
    /// slots. If the connection had no free slot before, wakes all threads, because a thread that
    /// finds no free slot sleeps without a timeout. Otherwise wakes the threads of the shards where
    /// messages wait.
    fn has_more_slots(&self, before: usize, inboxes: &Inboxes) {
        for (shard, inbox) in inboxes.iter().enumerate() {
            if before == 0 || self.waiting[shard].load(Ordering::Acquire) {
                inbox.reconsider();
            }
        }
    }
}

impl Credit {
    /// Sets the credit to the result of `free`. Holds the connection's lock, so no message is
    /// submitted meanwhile.
    pub fn refresh(&self, free: impl FnOnce() -> usize) {
        self.after(0, || (), free);
    }

    /// Calls `submit`, which submits `received` messages, then sets the credit to the result of
    /// `free`. Holds the connection's lock during both calls.
    fn after(&self, received: usize, submit: impl FnOnce(), free: impl FnOnce() -> usize) {
        let (before, after) = {
            let mut slots = self.shared.slots();
            let before = slots.available();
            submit();
            slots.claimed = slots.claimed.saturating_sub(received);
            slots.credit = free();
            (before, slots.available())
        };
        if after > before {
            self.shared.has_more_slots(before, &self.inboxes);
        }
    }
}

impl Delivery<'_> {
    /// Adds a connection that receives messages of this carrier.
    pub fn consume(&self, carrier: &str) -> Consumer {
        self.inner.group_commit.consumers.add(self, carrier)
    }
}

impl Consumer {
    /// Returns the next messages, which must be submitted under their lease. Waits while there are
    /// no messages. No message is lost if the future is dropped.
    pub async fn next(&mut self) -> (Lease, Vec<Claimed>) {
        loop {
            if self.pending.is_none() {
                self.pending = self.received.recv().await;
            }
            let have_codes = |(_, messages): &Dispatch| messages.iter().any(|it| it.code.is_some());
            let secret = if self.pending.as_ref().is_some_and(have_codes) {
                Some(self.service.accounts().code_secret().await)
            } else {
                None
            };
            let Some((lease, mut messages)) = self.pending.take() else {
                // Unreachable: the consumer itself keeps a sender of the channel.
                std::future::pending().await
            };
            match secret {
                None => {}
                Some(Ok(secret)) => messages.iter_mut().for_each(|it| it.reveal_code(&secret)),
                Some(Err(error)) => {
                    tracing::error!(detail = ?error, "one-time codes can't be derived");
                    messages = self.release_codes(lease, messages);
                }
            }
            if !messages.is_empty() {
                return (lease, messages);
            }
        }
    }

    /// Returns messages with codes to the queue, and the others to the caller.
    fn release_codes(&self, lease: Lease, messages: Vec<Claimed>) -> Vec<Claimed> {
        let (codes, others): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|it| it.code.is_some());
        let shared = &self.credit.shared;
        shared.release(codes.len(), &self.consumers.inboxes);
        self.consumers.release_claims(&shared.carrier, (lease, codes));
        others
    }

    /// Calls `submit`, which submits `received` messages, then sets the credit to the result of
    /// `free`.
    pub fn submit(&self, received: usize, submit: impl FnOnce(), free: impl FnOnce() -> usize) {
        self.credit.after(received, submit, free);
    }

    /// Returns a handle that sets the credit of this connection.
    pub fn credit(&self) -> Credit {
        self.credit.clone()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let shared = &self.credit.shared;
        self.consumers.remove(shared);
        self.received.close();
        let pending = self.pending.take();
        for dispatch in
            pending.into_iter().chain(std::iter::from_fn(|| self.received.try_recv().ok()))
        {
            self.consumers.release_claims(&shared.carrier, dispatch);
        }
    }
}

pub(super) type Inboxes = Arc<[Arc<Inbox>]>;

/// The connections of this process, by carrier.
pub(crate) struct Consumers {
    inboxes: Inboxes,
    carriers: Mutex<HashMap<String, Carrier>>,
}

struct Carrier {
    consumers: Vec<Arc<Shared>>,
    shards: Vec<OfShard>,
    /// Whether single messages or messages of batches wait, by shard, as far as this process knows.
    /// Shared with the carrier's consumers.
    waiting: Arc<[AtomicBool]>,
}

/// The state of one carrier's queue in one shard, as far as this process knows.
struct OfShard {
    /// Whether single messages may be due.
    singles_wait: bool,
    /// The time of the next poll of the queue.
    poll_at: Instant,
    /// The shard claims nothing for the carrier before this time, because a group failed or the
    /// carrier is drained.
    paused_until: Instant,
}

/// Returns the index of a shard in a list of all shards.
pub(super) fn index(shard: Shard) -> usize {
    usize::try_from(shard.0 - Shard::FIRST.0).unwrap_or(0)
}

impl Carrier {
    fn new(shards: usize) -> Self {
        let of_shard = || OfShard {
            singles_wait: true,
            poll_at: Instant::now(),
            paused_until: Instant::now(),
        };
        Self {
            consumers: Vec::new(),
            shards: (0..shards).map(|_| of_shard()).collect(),
            waiting: (0..shards).map(|_| AtomicBool::new(true)).collect(),
        }
    }

    fn at(&mut self, shard: Shard) -> &mut OfShard {
        &mut self.shards[index(shard)]
    }

    /// Returns the time of the next claim for the carrier.
    fn claim_at(&self, shard: Shard) -> Instant {
        let of_shard = &self.shards[index(shard)];
        if self.is_waiting(shard) {
            of_shard.paused_until
        } else {
            of_shard.poll_at.max(of_shard.paused_until)
        }
    }

    fn available(&self) -> usize {
        self.consumers.iter().map(|consumer| consumer.available()).sum()
    }

    /// Returns the number of slots for which a shard may claim messages. If messages wait in
    /// several shards, these shards share the slots evenly.
    fn share(&self) -> usize {
        let waiting = self.waiting.iter().filter(|waiting| waiting.load(Ordering::Acquire));
        self.available().div_ceil(waiting.count().max(1))
    }

    fn is_waiting(&self, shard: Shard) -> bool {
        self.waiting[index(shard)].load(Ordering::Acquire)
    }

    fn wait(&mut self, shard: Shard) {
        self.at(shard).singles_wait = true;
        self.waiting[index(shard)].store(true, Ordering::Release);
    }

    fn learn(&mut self, shard: Shard, learned: &Learned, now: Instant) {
        if learned.no_single_waits {
            self.at(shard).singles_wait = false;
        }
        if let Some(after) = learned.poll_after {
            self.waiting[index(shard)].store(false, Ordering::Release);
            self.at(shard).poll_at = now + after.min(POLL);
        }
    }

    /// Notes that a message was queued, to be claimed once `after` has passed.
    fn queued(&mut self, shard: Shard, after: Duration, now: Instant) {
        if after.is_zero() {
            self.wait(shard);
        } else {
            let of_shard = self.at(shard);
            of_shard.poll_at = of_shard.poll_at.min(now + after);
        }
    }

    /// Returns the connection with the most free slots, if any has one.
    fn roomiest(&self) -> Option<&Arc<Shared>> {
        let roomiest = self.consumers.iter().max_by_key(|consumer| consumer.available());
        roomiest.filter(|consumer| consumer.available() > 0)
    }
}

impl Consumers {
    pub(super) fn new(inboxes: Inboxes) -> Self {
        Self { inboxes, carriers: Mutex::default() }
    }

    fn carriers(&self) -> MutexGuard<'_, HashMap<String, Carrier>> {
        self.carriers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, service: &Service, carrier: &str) -> Consumer {
        let (sender, received) = mpsc::unbounded_channel();
        let mut carriers = self.carriers();
        let known =
            carriers.entry(carrier.to_owned()).or_insert_with(|| Carrier::new(self.inboxes.len()));
        let shared = Arc::new(Shared {
            carrier: carrier.to_owned(),
            slots: Mutex::default(),
            waiting: Arc::clone(&known.waiting),
            sender,
        });
        known.consumers.push(Arc::clone(&shared));
        let inboxes = Arc::clone(&self.inboxes);
        Consumer {
            credit: Credit { shared, inboxes },
            received,
            pending: None,
            consumers: Arc::clone(self),
            service: service.clone(),
        }
    }

    fn remove(&self, consumer: &Arc<Shared>) {
        let mut carriers = self.carriers();
        if let Some(carrier) = carriers.get_mut(&consumer.carrier) {
            carrier.consumers.retain(|other| !Arc::ptr_eq(other, consumer));
        }
    }

    /// Returns unsubmitted messages of a connection to the queue.
    fn release_claims(&self, carrier: &str, (lease, messages): Dispatch) {
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
        if self.inboxes[index(lease.shard)].push(input).is_err() {
            tracing::warn!(
                carrier,
                "couldn't put claimed messages back into the queue; their lease will end"
            );
        }
    }

    /// Notes that messages may wait for any carrier in any shard.
    pub(crate) fn expect_any(&self) {
        for carrier in self.carriers().values_mut() {
            for shard in 0..self.inboxes.len() {
                carrier.shards[shard].singles_wait = true;
                carrier.waiting[shard].store(true, Ordering::Release);
            }
        }
    }

    /// Returns when to poll a shard's queue unless something wakes the thread earlier. `None` while
    /// no connection has a free slot.
    pub(crate) fn poll_at(&self, shard: Shard) -> Option<Instant> {
        let carriers = self.carriers();
        let served = carriers.values().filter(|carrier| carrier.available() > 0);
        served.map(|carrier| carrier.claim_at(shard)).min()
    }

    /// Pauses the claims for all carriers in a shard after a group failed.
    pub(crate) fn pause(&self, shard: Shard) {
        let until = Instant::now() + PAUSE;
        for carrier in self.carriers().values_mut() {
            carrier.at(shard).paused_until = until;
        }
    }

    /// Begins to assign slots to the messages of a group.
    pub(crate) fn begin(consumers: &Arc<Self>, shard: Shard) -> Slots {
        Slots {
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

/// The slots that a group assigns to messages. Dropping this without [`Slots::dispatch`] releases
/// all of them.
pub(crate) struct Slots {
    consumers: Arc<Consumers>,
    shard: Shard,
    /// Slots that are reserved for claims and not filled yet, by carrier and connection.
    reserved: Vec<(String, Arc<Shared>, usize)>,
    drained: Vec<String>,
    dispatches: Vec<(Arc<Shared>, Vec<Claimed>)>,
    queued: HashMap<String, Duration>,
    learned: HashMap<String, Learned>,
}

/// Whether a carrier is drained. While messages are held, all carriers count as drained.
fn is_among(drained: &[String], carrier: &str) -> bool {
    drained.iter().any(|drained| drained == carrier || drained == ALL_CARRIERS)
}

/// A slot of a connection for one message.
pub(crate) struct Slot(usize);

impl Slots {
    /// Sets which carriers are drained, and pauses the claims for them. A drained carrier gets no
    /// messages.
    pub(crate) fn close(&mut self, drained: Vec<String>) {
        let until = Instant::now() + PAUSE;
        let mut carriers = self.consumers.carriers();
        for (name, carrier) in carriers.iter_mut() {
            if is_among(&drained, name) {
                carrier.at(self.shard).paused_until = until;
            }
        }
        drop(carriers);
        self.drained = drained;
    }

    /// Returns whether the group queued messages that it assigned to no connection of this process.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Reserves a slot for a new single message. `None` if the carrier is drained or has no free
    /// slot, or if older single messages may wait for the carrier. While messages of batches wait,
    /// leaves a share of the slots to them.
    pub(crate) fn take_one(&mut self, carrier: &str) -> Option<Slot> {
        if self.queued.contains_key(carrier) || self.is_drained(carrier) {
            return None;
        }
        let consumer = {
            let carriers = self.consumers.carriers();
            let known = carriers.get(carrier)?;
            if known.shards[index(self.shard)].singles_wait {
                return None;
            }
            let available = known.available();
            let for_uploads =
                if known.is_waiting(self.shard) { available / BATCHES_SHARE } else { 0 };
            let consumer = known.roomiest().filter(|_| available > for_uploads)?;
            consumer.slots().claimed += 1;
            Arc::clone(consumer)
        };
        Some(Slot(self.dispatch_of(consumer)))
    }

    /// Assigns a message to its slot.
    pub(crate) fn fill(&mut self, slot: &Slot, message: Claimed) {
        self.dispatches[slot.0].1.push(message);
    }

    /// Removes the messages that weren't stored, and releases their slots.
    pub(crate) fn retain(&mut self, is_stored: impl Fn(&Claimed) -> bool) {
        for (consumer, messages) in &mut self.dispatches {
            let before = messages.len();
            messages.retain(&is_stored);
            let unused = before - messages.len();
            consumer.release(unused, &self.consumers.inboxes);
        }
    }

    /// Returns the carriers that have free slots and for which it is time to claim.
    pub(crate) fn due(&self) -> Vec<String> {
        let now = Instant::now();
        let carriers = self.consumers.carriers();
        let due = carriers
            .iter()
            .filter(|(_, known)| known.available() > 0 && known.claim_at(self.shard) <= now);
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Reserves a carrier's slots for a claim, in a group with this many sends. No other shard
    /// claims for these slots. Returns the number of reserved slots, which is 0 for a drained
    /// carrier. The group's own sends must have reserved their slots before.
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
            consumer.slots().claimed += count;
            left -= count;
            let reserved = (carrier.to_owned(), Arc::clone(consumer), count);
            self.reserved.push(reserved);
        }
        wanted - left
    }

    pub(crate) fn is_drained(&self, carrier: &str) -> bool {
        is_among(&self.drained, carrier)
    }

    /// Distributes claimed messages among the slots that were reserved for them.
    pub(crate) fn fill_all(&mut self, carrier: &str, messages: Vec<Claimed>, learned: Learned) {
        let mut messages = messages.into_iter();
        for index in 0..self.reserved.len() {
            let (of, consumer, count) = &mut self.reserved[index];
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

    /// Notes that a message was queued, to be claimed once `after` has passed.
    pub(crate) fn queued(&mut self, carrier: &str, after: Duration) {
        let known = self.queued.entry(carrier.to_owned()).or_insert(after);
        *known = after.min(*known);
    }

    /// Returns the index of a connection in `dispatches`.
    fn dispatch_of(&mut self, consumer: Arc<Shared>) -> usize {
        let known = self.dispatches.iter().position(|(known, _)| Arc::ptr_eq(known, &consumer));
        known.unwrap_or_else(|| {
            self.dispatches.push((consumer, Vec::new()));
            self.dispatches.len() - 1
        })
    }

    /// Sends the claimed messages to their connections, and updates what this process knows about
    /// the carriers' queues. Must be called after the commit.
    pub(crate) fn dispatch(mut self, lease: Lease) {
        let now = Instant::now();
        let (consumers, shard) = (Arc::clone(&self.consumers), self.shard);
        let mut carriers = consumers.carriers();
        let new = || Carrier::new(consumers.inboxes.len());
        for (name, learned) in self.learned.drain() {
            carriers.entry(name).or_insert_with(new).learn(shard, &learned, now);
        }
        for (name, after) in self.queued.drain() {
            carriers.entry(name).or_insert_with(new).queued(shard, after, now);
        }
        drop(carriers);
        for (consumer, messages) in self.dispatches.drain(..) {
            if !messages.is_empty()
                && let Err(closed) = consumer.sender.send((lease, messages))
            {
                consumers.release_claims(&consumer.carrier, closed.0);
            }
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let unused = self.dispatches.iter().map(|(of, messages)| (of, messages.len()));
        let reserved = self.reserved.iter().map(|(_, of, count)| (of, *count));
        for (consumer, unused) in unused.chain(reserved) {
            consumer.release(unused, &self.consumers.inboxes);
        }
    }
}
