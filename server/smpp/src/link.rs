//! One socket from its bind to its end.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::encode::{self, Role};
use crate::guard::guarded;
use crate::pace::Pace;
use crate::shared::{Inner, Shared};
use crate::socket::Socket;
use crate::stream::Stream;
use crate::throttle::Throttle;
use crate::window::Window;
use crate::{DeliveryHandle, Event, Outcome, State, Submit, UNACKNOWLEDGED_LIMIT, UnknownCause};

/// Submits are encoded while less than this waits to be written.
const OUTBOX_FULL: usize = 64 * 1024;
/// Nothing is read while more than this waits to be written: a peer that asks and doesn't read.
const OUTBOX_LIMIT: usize = 256 * 1024;
/// Of how many of the peer's PDUs it is remembered that they were answered.
const RESPONSES_REMEMBERED: usize = 1000;
/// How long the last words of a link may take.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// How far the link has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The bind waits for its response.
    Binding { sequence: u32, until: Instant },
    /// In use.
    Bound,
    /// We asked to unbind, or give the link up and say so.
    Leaving { until: Instant },
}

/// What is left of a link.
pub(crate) struct Ended {
    pub(crate) error: String,
    /// How long it was bound.
    pub(crate) held: Duration,
    /// The peer accepted a submit or delivered something: refusals alone are good for nothing.
    pub(crate) worked: bool,
}

impl Ended {
    /// Without a bind, or with one that was good for nothing.
    pub(crate) fn failed(error: String) -> Self {
        Self {
            error,
            held: Duration::ZERO,
            worked: false,
        }
    }
}

/// One socket.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) role: Role,
    /// Counts the connection's binds; set once bound.
    pub(crate) bind: u64,
    pub(crate) socket: Socket,
    pub(crate) phase: Phase,
    bound_at: Option<Instant>,
    /// The peer accepted or delivered something.
    pub(crate) worked: bool,
    /// When the peer last answered a submit.
    pub(crate) answered_at: Option<Instant>,
    /// The peer has ceased to answer submits.
    pub(crate) unresponsive: bool,
    /// Submits were given up since the lock was last held, and no others answered meanwhile.
    pub(crate) unanswered: bool,
    /// Why the link is given up: it ends once what is being written is.
    pub(crate) parting: Option<String>,
    /// Why the link ended.
    pub(crate) end: Option<String>,
    pub(crate) window: Window,
    pub(crate) pace: Pace,
    pub(crate) throttle: Throttle,
    /// When the peer's latest PDUs were answered, and their sequence numbers.
    pub(crate) responses: VecDeque<(Instant, u32)>,
    /// Deliveries not acknowledged, by serial number.
    pub(crate) unacknowledged: HashSet<u64>,
    pub(crate) deliveries: u64,
    /// Events since the lock was last held.
    pub(crate) events: Vec<Event>,
    /// Answers of the peer since then.
    pub(crate) answered: u64,
    /// Answers since then that said to slow down.
    pub(crate) throttled: u64,
    /// Submits that left the window since then.
    pub(crate) finished: usize,
    /// An enquire_link was sent then, and nothing heard since.
    pub(crate) enquired: Option<Instant>,
}

impl Link {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        index: usize,
        role: Role,
        stream: Box<dyn Stream>,
    ) -> Self {
        let now = Instant::now();
        let mut window = Window::new(0);
        let phase = Phase::Binding {
            sequence: window.next_sequence(),
            until: now + shared.settings.timers.answer,
        };
        Self {
            index,
            role,
            bind: 0,
            socket: Socket::new(stream, shared.settings.tls.is_some()),
            phase,
            bound_at: None,
            worked: false,
            answered_at: None,
            unresponsive: false,
            unanswered: false,
            parting: None,
            end: None,
            window,
            pace: Pace::new(shared.settings.rate, now),
            throttle: Throttle::new(),
            responses: VecDeque::new(),
            unacknowledged: HashSet::new(),
            deliveries: 0,
            events: Vec::new(),
            answered: 0,
            throttled: 0,
            finished: 0,
            enquired: None,
            shared: Arc::clone(shared),
        }
    }

    /// Serves until the link ends. A panic ends it as well: what is under way comes to an answer.
    pub(crate) async fn run(mut self) -> Ended {
        if guarded(self.serve()).await.is_none() {
            self.end = Some("the link panicked".to_owned());
            // It may be what is left of this that it panics at.
            self.socket.incoming.clear();
        }
        self.finish()
    }

    async fn serve(&mut self) {
        match encode::bind(&self.shared.settings, self.role) {
            Ok(pdu) => {
                if let Phase::Binding { sequence, .. } = self.phase {
                    self.socket
                        .outbox
                        .append(|out| encode::put(out, 0, sequence, pdu));
                }
            }
            Err(error) => self.end = Some(error.to_owned()),
        }
        let shared = Arc::clone(&self.shared);
        let wake = &shared.wake[self.index];
        while self.end.is_none() {
            self.read_frames();
            let now = Instant::now();
            self.take_work(now);
            self.check_time(now);
            self.publish();
            if self.end.is_some() {
                break;
            }
            let next = self.next_time(now);
            let may_read = self.may_read();
            let progress = tokio::select! {
                biased;
                progress = poll_fn(|context| self.socket.poll(context, may_read)) => progress,
                () = wake.notified() => Ok(()),
                () = sleep_until(next) => Ok(()),
            };
            self.note_written();
            if let Err(error) = progress {
                self.read_frames();
                let reason = self.parting.take();
                self.end
                    .get_or_insert_with(|| reason.unwrap_or_else(|| error.to_string()));
            }
        }
    }

    /// The answers of submits of which the socket took the last byte are due from now on; those
    /// that were too late for it have theirs.
    fn note_written(&mut self) {
        let due = Instant::now() + self.shared.settings.timers.answer;
        while let Some(sequence) = self.socket.outbox.next_written() {
            self.window.written(sequence, due);
        }
        let overdue = std::mem::take(&mut self.socket.overdue);
        self.finish_unwritten(overdue);
    }

    /// The peer accepted the bind.
    pub(crate) fn bound(&mut self) {
        let now = Instant::now();
        self.phase = Phase::Bound;
        self.bound_at = Some(now);
        let mut inner = self.shared.lock();
        inner.binds += 1;
        self.bind = inner.binds;
        drop(inner);
        self.shared.enter(self.index, State::Bound, None);
    }

    /// Gives the link up; nothing more is read, and of what isn't written only what has begun.
    pub(crate) fn part(&mut self, reason: String) {
        self.phase = Phase::Leaving {
            until: Instant::now() + FAREWELL,
        };
        self.parting = Some(reason);
        self.take_back(|_| true);
        self.shared.link_down(self.index);
    }

    /// Answers the peer's PDU of that sequence number.
    pub(crate) fn respond(&mut self, status: u32, sequence: u32, pdu: rusmpp::Pdu) {
        if self.responses.len() == RESPONSES_REMEMBERED {
            self.responses.pop_front();
        }
        self.responses.push_back((Instant::now(), sequence));
        self.put(status, sequence, pdu);
    }

    /// Asks the peer something.
    pub(crate) fn request(&mut self, pdu: rusmpp::Pdu) {
        let sequence = self.window.next_sequence();
        self.put(0, sequence, pdu);
    }

    fn put(&mut self, status: u32, sequence: u32, pdu: rusmpp::Pdu) {
        self.socket
            .outbox
            .append(|out| encode::put(out, status, sequence, pdu));
    }

    /// A submit is answered for good.
    pub(crate) fn finish_submit(&mut self, tag: u64, outcome: Outcome) {
        self.finished += 1;
        self.events.push(Event::Answer { tag, outcome });
    }

    /// Whether PDUs may be taken in.
    pub(crate) fn may_read(&self) -> bool {
        self.unacknowledged.len() < UNACKNOWLEDGED_LIMIT && self.socket.outbox.len() < OUTBOX_LIMIT
    }

    /// Moves acknowledgements and submits into the outbox.
    fn take_work(&mut self, now: Instant) {
        let Phase::Bound = self.phase else {
            return;
        };
        let mut inner = self.shared.lock();
        let acknowledgements = std::mem::take(&mut inner.links[self.index].acknowledgements);
        drop(inner);
        for (handle, status) in acknowledgements {
            self.acknowledge(handle, status);
        }
        if self.index == 0 {
            while self.take_submits(now) {}
        }
    }

    /// Moves what may leave now; whether there may be more.
    fn take_submits(&mut self, now: Instant) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut inner = shared.lock();
        self.expire_queue(&mut inner, now);
        let mut submits = Vec::new();
        let mut waiting = self.socket.outbox.len();
        while waiting < OUTBOX_FULL
            && !inner.queue.is_empty()
            && self.throttle.until(now).is_none()
            && self.pace.let_out(now)
            && let Some(submit) = inner.queue.pop_front()
        {
            waiting += encode::size(&submit);
            // In the window at once: whatever happens from here on, there is an answer.
            let sequence = self.window.next_sequence();
            self.window.insert(sequence, submit.tag);
            submits.push((sequence, submit));
        }
        inner.in_flight += submits.len();
        drop(inner);
        let some = !submits.is_empty();
        for (sequence, submit) in submits {
            self.encode_submit(sequence, submit);
        }
        some
    }

    fn expire_queue(&mut self, inner: &mut Inner, now: Instant) {
        if inner.queue.iter().all(|submit| submit.not_after >= now) {
            return;
        }
        let events = &mut self.events;
        inner.queue.retain(|submit| {
            let keep = submit.not_after >= now;
            if !keep {
                events.push(Event::Answer {
                    tag: submit.tag,
                    outcome: Outcome::NotSent,
                });
            }
            keep
        });
    }

    fn acknowledge(&mut self, handle: DeliveryHandle, status: u32) {
        if handle.bind == self.bind && self.unacknowledged.remove(&handle.serial) {
            self.respond(status, handle.sequence, encode::delivered(handle.data));
        }
    }

    fn encode_submit(&mut self, sequence: u32, submit: Submit) {
        let (tag, not_after) = (submit.tag, submit.not_after);
        match encode::submit(submit) {
            Ok(pdu) => {
                self.socket
                    .outbox
                    .append_submit(sequence, not_after, |out| {
                        encode::put(out, 0, sequence, pdu);
                    });
            }
            Err(status) => {
                self.window.remove(sequence);
                self.finish_submit(tag, Outcome::Refused { status });
            }
        }
    }

    /// Hands over what happened since the last time.
    fn publish(&mut self) {
        let mut inner = self.shared.lock();
        inner.in_flight = inner.in_flight.saturating_sub(self.finished);
        inner.answered += self.answered;
        // What was given up was given up after the answers that came.
        inner.probing = (inner.probing && self.answered == 0) || self.unanswered;
        inner.throttled += self.throttled;
        if self.index == 0 {
            inner.throttled_until = self.throttle.until(Instant::now());
        }
        inner.links[self.index].unacknowledged = self.unacknowledged.len();
        for event in self.events.drain(..) {
            inner.delivered += u64::from(matches!(event, Event::Deliver(_)));
            inner.push(event);
        }
        (self.finished, self.answered, self.throttled) = (0, 0, 0);
        self.unanswered = false;
        self.shared.announce(inner);
    }

    /// Answers all that is left.
    fn finish(mut self) -> Ended {
        self.read_left_answers();
        let closing = self.shared.lock().closing.is_some();
        let cause = if closing {
            UnknownCause::Closed
        } else {
            UnknownCause::ConnectionLost
        };
        for (tag, written) in self.window.drain().collect::<Vec<_>>() {
            self.unanswered |= written;
            let unknown = Outcome::Unknown { cause };
            self.finish_submit(tag, if written { unknown } else { Outcome::NotSent });
        }
        self.unacknowledged.clear();
        self.throttle = Throttle::new();
        self.shared.link_down(self.index);
        self.publish();
        let error = self.end.unwrap_or_default();
        // However long it was bound and whatever it took before, the next bind promises nothing.
        if self.unresponsive {
            return Ended::failed(error);
        }
        let held = self.bound_at.map(|since| since.elapsed());
        Ended {
            error,
            held: held.unwrap_or_default(),
            worked: self.worked,
        }
    }
}
