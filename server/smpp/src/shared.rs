//! The state that a connection's handles, events and links share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::throttle::Throttle;
use crate::trace::Taps;
use crate::{
    DeliveryHandle, Event, Fault, FaultKind, LastError, Outcome, Settings, SharedPace, State,
    Status, Submit,
};

/// How far ahead of the rate limit the connection accepts submits.
const AHEAD: Duration = Duration::from_millis(200);
/// A peer usually answers submits within this time, however many it gets.
const ANSWER_USUAL: Duration = Duration::from_secs(1);
/// The window of a peer that takes longer. If the peer has stopped working, a smaller window leaves
/// fewer messages with an unknown outcome.
const SLOW_WINDOW: usize = 100;
/// Each step towards a bind usually takes less than this. A longer step is shown as a fault, long
/// before the link gives it up.
const STEP_USUAL: Duration = Duration::from_secs(1);
/// The same for the DNS lookup and the TLS handshake. Their faults ask for another setting, so they
/// mustn't appear after a mere delay.
const STEP_SLOW: Duration = Duration::from_secs(5);

/// The shared state of a connection. Links work on their own state, and lock this only a few times
/// per wakeup.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    inner: Mutex<Inner>,
    /// Wakes each link when there is work for it.
    pub(crate) wake: Vec<Notify>,
    /// Notified when `free()` may have become more than 0.
    pub(crate) freed: Notify,
    /// Notified when there are events, or when no more will come.
    pub(crate) ready: Notify,
    /// Notified when the last link has ended.
    pub(crate) ended: Notify,
    pub(crate) taps: Taps,
}

/// The state behind the lock.
pub(crate) struct Inner {
    pub(crate) window: usize,
    /// Whether the peer left submits unanswered and has answered none since.
    pub(crate) probing: bool,
    /// Whether the peer refused submits for a reason that concerns all submits, and has accepted
    /// none since.
    pub(crate) held: bool,
    /// Since when `probing` or `held` is true.
    limited_since: Option<Instant>,
    /// The pauses while `held`.
    pub(crate) hold: Throttle,
    own_rate: u32,
    shared_pace: Option<Arc<SharedPace>>,
    silent_after: Option<Duration>,
    /// Since when the peer has answered no submit although some are unanswered.
    unanswered_since: Option<Instant>,
    pub(crate) queue: VecDeque<Submit>,
    pub(crate) in_flight: usize,
    pub(crate) throttled_until: Option<Instant>,
    pub(crate) throttled: u64,
    pub(crate) answered: u64,
    pub(crate) delivered: u64,
    pub(crate) binds: u64,
    lost: u64,
    pub(crate) last_error: Option<LastError>,
    /// The deadline for answers. Set once the connection is closing.
    pub(crate) closing: Option<Instant>,
    pub(crate) links: Vec<LinkFace>,
    state: State,
    since: Instant,
    events: VecDeque<Event>,
}

/// The part of a link's state that handles use.
pub(crate) struct LinkFace {
    pub(crate) state: State,
    /// The fault if the peer's next answer doesn't come, and since when the link waits for that
    /// answer.
    awaited: Option<(FaultKind, Instant)>,
    pub(crate) acknowledgements: Vec<(DeliveryHandle, u32)>,
    pub(crate) unacknowledged: usize,
}

impl Shared {
    pub(crate) fn new(settings: Settings) -> Self {
        let links = settings.bind.roles().len();
        Self {
            inner: Mutex::new(Inner::new(&settings, links)),
            wake: (0..links).map(|_| Notify::new()).collect(),
            freed: Notify::new(),
            ready: Notify::new(),
            ended: Notify::new(),
            taps: Taps::default(),
            settings,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing.is_some()
    }

    /// Notifies the callers that wait for free slots or for events. Called after a change.
    pub(crate) fn announce(&self, inner: MutexGuard<'_, Inner>) {
        let freed = inner.free(Instant::now()) > 0;
        let ready = !inner.events.is_empty() || inner.state == State::Closed;
        drop(inner);
        if freed {
            self.freed.notify_waiters();
        }
        if ready {
            self.ready.notify_one();
        }
    }

    /// Takes up to `max` events. Also returns whether the connection is closed. If it is, no new
    /// events will come.
    pub(crate) fn take_events(&self, max: usize) -> (Vec<Event>, bool) {
        let mut inner = self.lock();
        let count = inner.events.len().min(max);
        let closed = inner.state == State::Closed;
        (inner.events.drain(..count).collect(), closed)
    }

    /// Begins to close the connection, and wakes all links.
    pub(crate) fn begin_close(&self, now: Instant) {
        let mut inner = self.lock();
        if inner.closing.is_none() {
            inner.closing = Some(now + self.settings.timers.close);
            inner.drop_queued(|_| true);
        }
        self.announce(inner);
        for wake in &self.wake {
            wake.notify_one();
        }
    }

    /// Records that a link has ended or is about to end. The connection accepts no submits until
    /// the link is bound again.
    pub(crate) fn link_down(&self, link: usize) {
        let mut inner = self.lock();
        inner.links[link].acknowledgements.clear();
        inner.links[link].state = State::Connecting;
        inner.settle(Instant::now());
        if link == 0 {
            inner.drop_queued(|_| true);
        }
        self.announce(inner);
    }

    /// Records that a link waits for the peer's next answer while it connects and binds.
    pub(crate) fn await_answer(&self, link: usize, fault: FaultKind) {
        self.lock().links[link].awaited = Some((fault, Instant::now()));
    }

    /// Sets the state of a link, and the connection's last error if there is one.
    pub(crate) fn enter(&self, link: usize, state: State, error: Option<Fault>) {
        let mut inner = self.lock();
        if let Some(fault) = error {
            inner.last_error = Some(LastError { fault, at: Instant::now() });
        }
        inner.links[link].state = state;
        inner.links[link].awaited = None;
        inner.settle(Instant::now());
        let closed = inner.state == State::Closed;
        self.announce(inner);
        if closed {
            self.ended.notify_waiters();
        }
    }
}

impl Inner {
    fn new(settings: &Settings, links: usize) -> Self {
        Self {
            window: settings.window.max(1),
            probing: false,
            held: false,
            limited_since: None,
            hold: Throttle::between(settings.timers.hold_min, settings.timers.hold_max),
            own_rate: settings.rate,
            shared_pace: settings.shared_pace.clone(),
            silent_after: settings.timers.silent,
            unanswered_since: None,
            queue: VecDeque::new(),
            in_flight: 0,
            throttled_until: None,
            throttled: 0,
            answered: 0,
            delivered: 0,
            binds: 0,
            lost: 0,
            last_error: None,
            closing: None,
            links: (0..links)
                .map(|_| LinkFace {
                    state: State::Connecting,
                    awaited: None,
                    acknowledgements: Vec::new(),
                    unacknowledged: 0,
                })
                .collect(),
            state: State::Connecting,
            since: Instant::now(),
            events: VecDeque::new(),
        }
    }

    /// Returns how many submits the connection can accept now.
    pub(crate) fn free(&self, now: Instant) -> usize {
        let throttled = self.throttled_until.is_some_and(|until| until > now);
        let pauses = throttled || self.held && self.hold.until(now).is_some();
        if self.closing.is_some() || self.state != State::Bound || pauses {
            return 0;
        }
        let window = self.window(now).saturating_sub(self.in_flight + self.queue.len());
        let rate = self.rate();
        if rate == 0 {
            return window;
        }
        let ahead = u128::from(rate) * AHEAD.as_millis() / 1000;
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX).max(1);
        window.min(ahead.saturating_sub(self.queue.len()))
    }

    /// Returns how many submits may be unanswered now.
    fn window(&self, now: Instant) -> usize {
        let unanswered = self.unanswered_since.map_or(Duration::ZERO, |since| now - since);
        if self.probing || self.held || self.is_silent(now) {
            1
        } else if unanswered > ANSWER_USUAL {
            self.window.min(SLOW_WINDOW)
        } else {
            self.window
        }
    }

    fn is_silent(&self, now: Instant) -> bool {
        let since = self.unanswered_since.zip(self.silent_after);
        since.is_some_and(|(since, after)| now - since >= after)
    }

    /// Adds submits that the link has taken to write.
    pub(crate) fn begin(&mut self, count: usize, now: Instant) {
        self.in_flight += count;
        if count > 0 {
            self.unanswered_since.get_or_insert(now);
        }
    }

    /// Removes submits that have left the link's window. `answered` is the number of submits that
    /// the peer has answered.
    pub(crate) fn end(&mut self, finished: usize, answered: u64, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(finished);
        self.answered += answered;
        if self.in_flight == 0 {
            self.unanswered_since = None;
        } else if answered > 0 {
            self.unanswered_since = Some(now);
        }
    }

    /// Returns the lower of the connection's own rate and the shared one. 0 means no limit.
    fn rate(&self) -> u32 {
        let shared = self.shared_pace.as_ref().map_or(0, |shared| shared.rate());
        let limits = [self.own_rate, shared].into_iter().filter(|rate| *rate > 0);
        limits.min().unwrap_or(0)
    }

    /// Derives the connection's state from the states of its links.
    fn settle(&mut self, now: Instant) {
        let any = |state| self.links.iter().any(|link| link.state == state);
        let state = if self.links.iter().all(|link| link.state == State::Closed) {
            State::Closed
        } else if self.links.iter().all(|link| link.state == State::Bound) {
            State::Bound
        } else if any(State::Waiting) {
            State::Waiting
        } else {
            State::Connecting
        };
        if self.state == State::Bound && state != State::Bound && self.closing.is_none() {
            self.lost += 1;
        }
        // A connection that is lost alternates between connecting and waiting.
        let is_down = |state| matches!(state, State::Connecting | State::Waiting);
        if state != self.state && !(is_down(state) && is_down(self.state)) {
            self.since = now;
        }
        self.state = state;
    }

    /// Records since when the connection accepts only one submit at a time, or that it no longer
    /// does so.
    pub(crate) fn settle_limit(&mut self, now: Instant) {
        if self.probing || self.held {
            self.limited_since.get_or_insert(now);
        } else if self.limited_since.take().is_some() && self.state == State::Bound {
            self.since = now;
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(crate) fn answer(&mut self, tag: u64, outcome: Outcome) {
        self.push(Event::Answer { tag, outcome });
    }

    /// Removes the queued submits that satisfy `drop`. Answers them with [`Outcome::NotSent`].
    pub(crate) fn drop_queued(&mut self, drop: impl Fn(&Submit) -> bool) {
        if !self.queue.iter().any(&drop) {
            return;
        }
        for submit in std::mem::take(&mut self.queue) {
            if drop(&submit) {
                self.answer(submit.tag, Outcome::NotSent);
            } else {
                self.queue.push_back(submit);
            }
        }
    }

    /// Returns the fault of a link that has waited for an answer for longer than usual while it
    /// connects and binds. The link gives up its attempt much later.
    fn awaited(&self, now: Instant) -> Option<LastError> {
        let awaited = self.links.iter().filter_map(|link| link.awaited);
        let (kind, since) = awaited.min_by_key(|(_, since)| *since)?;
        let waited = now - since;
        // A slow resolver or handshake alone doesn't mean that the address is wrong.
        let usual = match kind {
            FaultKind::NameUnknown | FaultKind::TlsNotSpoken => STEP_SLOW,
            _ => STEP_USUAL,
        };
        (waited >= usual).then(|| {
            let seconds = waited.as_secs();
            let detail = match kind {
                FaultKind::BindUnanswered => {
                    format!("connected; no answer to the bind for {seconds} s")
                }
                _ => format!("no answer for {seconds} s"),
            };
            LastError { fault: Fault::new(kind, detail), at: now }
        })
    }

    pub(crate) fn status(&self, now: Instant) -> Status {
        let is_bound = self.state == State::Bound;
        Status {
            state: self.state,
            since: self.limited_since.filter(|_| is_bound).unwrap_or(self.since),
            in_flight: self.in_flight,
            window: self.window,
            probing: self.probing,
            held: self.held,
            held_until: self.hold.until(now).filter(|_| self.held),
            unanswered_since: self.unanswered_since,
            silent: self.is_silent(now),
            queued: self.queue.len(),
            throttled: self.throttled,
            throttled_until: self.throttled_until.filter(|until| *until > now),
            answered: self.answered,
            delivered: self.delivered,
            binds: self.binds,
            lost: self.lost,
            last_error: self.awaited(now).or_else(|| self.last_error.clone()),
            unacknowledged: self.links.iter().map(|link| link.unacknowledged).sum(),
        }
    }
}
