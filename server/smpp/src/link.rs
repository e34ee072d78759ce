//! A link: one socket, from its bind to its end.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::backoff::AttemptOutcome;
use crate::encode::{self, Role};
use crate::guard::guarded;
use crate::pace::Pace;
use crate::shared::Shared;
use crate::socket::{Socket, is_end};
use crate::stream::Stream;
use crate::throttle::Throttle;
use crate::trace::hide_text;
use crate::window::Window;
use crate::{
    DeliveryHandle, Event, Fault, FaultKind, Outcome, State, Submit, UNACKNOWLEDGED_LIMIT,
    UnknownCause,
};

/// While fewer bytes than this are waiting to be written, the link encodes more submits.
const OUTBOX_FULL: usize = 64 * 1024;
/// While at least this many bytes are waiting to be written, the link stops reading. The peer isn't
/// reading our responses, and each further request would add another response.
const OUTBOX_LIMIT: usize = 256 * 1024;
/// How many of our latest responses the link remembers.
const RESPONSES_KEPT: usize = 1000;
/// The time limit for shutting down a link.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for the response to the bind.
    Binding { sequence: u32, until: Instant },
    /// In use.
    Bound,
    /// Waiting for the response to our unbind, or for the last write.
    ShuttingDown { until: Instant },
}

/// How a link ended.
pub(crate) struct Ended {
    pub(crate) error: Fault,
    pub(crate) attempt: AttemptOutcome,
    /// Whether the peer accepted the bind.
    pub(crate) bound: bool,
}

impl Ended {
    /// An end that counts as a failed attempt.
    pub(crate) fn failed(error: Fault) -> Self {
        Self { error, attempt: AttemptOutcome::Failed, bound: false }
    }
}

/// Returns why a socket failed in this phase.
fn lost(phase: Phase, error: &io::Error) -> Fault {
    let fault = if is_end(error) { Fault::new(FaultKind::Closed, "") } else { Fault::lost(error) };
    match (phase, fault.kind) {
        (Phase::Binding { .. }, FaultKind::Closed | FaultKind::ConnectionLost) => {
            Fault { kind: FaultKind::BindClosed, ..fault }
        }
        _ => fault,
    }
}

/// The state of one link.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) role: Role,
    /// The number of this bind among all binds of the connection. 0 until the link is bound.
    pub(crate) bind: u64,
    pub(crate) socket: Socket,
    pub(crate) phase: Phase,
    bound_at: Option<Instant>,
    /// Whether the peer accepted a submit or sent a delivery. Refusals don't count.
    pub(crate) worked: bool,
    /// When the peer last answered a submit.
    pub(crate) answered_at: Option<Instant>,
    /// Whether the link ends because the peer no longer answers submits.
    pub(crate) unresponsive: bool,
    /// Whether a written submit got no answer since the last `publish`: the link ended before the
    /// answer, or gave up the submit and the peer has answered none since the submit was written.
    pub(crate) unanswered: bool,
    /// Why we are shutting down the link. The link ends when the pending bytes are written. They
    /// include the rest of a partly written submit.
    pub(crate) shutdown_fault: Option<Fault>,
    /// Why the link ended.
    pub(crate) end: Option<Fault>,
    pub(crate) window: Window,
    pub(crate) pace: Pace,
    pub(crate) throttle: Throttle,
    /// The time of each of our latest responses, and the sequence number of the peer's request.
    pub(crate) responses: VecDeque<(Instant, u32)>,
    /// The serial numbers of unacknowledged deliveries.
    pub(crate) unacknowledged: HashSet<u64>,
    pub(crate) deliveries: u64,
    /// Whether the peer refuses all submits. A refusal that concerns all submits sets this to true,
    /// an acceptance sets it to false. `None` if neither came since the last `publish`.
    pub(crate) held: Option<bool>,
    /// Events since the last `publish`.
    pub(crate) events: Vec<Event>,
    /// The number of submits that the peer answered since the last `publish`.
    pub(crate) answered: u64,
    /// How many of those answers asked us to slow down.
    pub(crate) throttled: u64,
    /// The number of submits that left the window since the last `publish`.
    pub(crate) finished: usize,
    /// While the connection is traced: copies of the submits that the socket hasn't accepted in
    /// full, by sequence number.
    pub(crate) traced: HashMap<u32, Vec<u8>>,
    /// When we sent the enquire_link that the peer hasn't reacted to yet.
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
            shutdown_fault: None,
            end: None,
            window,
            pace: Pace::new(shared.settings.rate, now),
            throttle: Throttle::new(),
            responses: VecDeque::new(),
            unacknowledged: HashSet::new(),
            deliveries: 0,
            held: None,
            events: Vec::new(),
            answered: 0,
            throttled: 0,
            finished: 0,
            traced: HashMap::new(),
            enquired: None,
            shared: Arc::clone(shared),
        }
    }

    /// Serves until the link ends. A panic also ends the link, but even then each of its submits
    /// gets an outcome.
    pub(crate) async fn run(mut self) -> Ended {
        if guarded(self.serve()).await.is_none() {
            self.end = Some(Fault::new(FaultKind::Panic, "the link panicked"));
            // Parsing the remaining bytes could panic again.
            self.socket.incoming.clear();
        }
        self.finish()
    }

    async fn serve(&mut self) {
        match encode::bind(&self.shared.settings, self.role) {
            Ok(pdu) => {
                if let Phase::Binding { sequence, .. } = self.phase {
                    self.shared.await_answer(self.index, FaultKind::BindUnanswered);
                    self.put(0, sequence, pdu);
                }
            }
            Err(error) => self.end = Some(Fault::new(FaultKind::Setting, error)),
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
                let reason = self.shutdown_fault.take();
                let lost = || reason.unwrap_or_else(|| lost(self.phase, &error));
                self.end.get_or_insert_with(lost);
            }
        }
    }

    /// Starts the answer timeout of each submit that the socket accepted in full. Reports the
    /// outcome of submits that the socket removed because their deadline had passed.
    fn note_written(&mut self) {
        let due = Instant::now() + self.shared.settings.timers.answer;
        while let Some(sequence) = self.socket.outbox.next_written() {
            self.window.written(sequence, due);
            if !self.traced.is_empty()
                && let Some(octets) = self.traced.remove(&sequence)
            {
                self.shared.taps.copy(self.index, true, &octets);
            }
        }
        let overdue = std::mem::take(&mut self.socket.overdue);
        self.finish_unwritten(overdue);
    }

    /// Records that the peer accepted the bind.
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

    /// Begins to shut down the link. The link handles no more PDUs and begins no more submits. It
    /// only finishes a partly written submit.
    pub(crate) fn shut_down(&mut self, reason: Fault) {
        self.phase = Phase::ShuttingDown { until: Instant::now() + SHUTDOWN_TIMEOUT };
        self.shutdown_fault = Some(reason);
        self.take_back(|_| true);
        self.shared.link_down(self.index);
    }

    /// Responds to the peer's PDU with this sequence number.
    pub(crate) fn respond(&mut self, status: u32, sequence: u32, pdu: rusmpp::Pdu) {
        if self.responses.len() == RESPONSES_KEPT {
            self.responses.pop_front();
        }
        self.responses.push_back((Instant::now(), sequence));
        self.put(status, sequence, pdu);
    }

    /// Sends a request that isn't a submit.
    pub(crate) fn request(&mut self, pdu: rusmpp::Pdu) {
        let sequence = self.window.next_sequence();
        self.put(0, sequence, pdu);
    }

    fn put(&mut self, status: u32, sequence: u32, pdu: rusmpp::Pdu) {
        let (taps, index) = (&self.shared.taps, self.index);
        self.socket.outbox.append(|out| {
            taps.copy_put(index, out, |out| encode::put(out, status, sequence, pdu));
        });
    }

    /// Reports the outcome of a submit that has left the window.
    pub(crate) fn finish_submit(&mut self, tag: u64, outcome: Outcome) {
        self.finished += 1;
        self.events.push(Event::Answer { tag, outcome });
    }

    /// Returns whether the link may read PDUs now.
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

    /// Moves submits that may be sent now into the outbox. Returns whether there may be more.
    fn take_submits(&mut self, now: Instant) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut inner = shared.lock();
        inner.drop_queued(|submit| submit.not_after < now);
        // `publish` reports the queued submits as not sent, so none of them may be sent now.
        if self.held == Some(true) {
            return false;
        }
        let mut submits = Vec::new();
        let mut waiting = self.socket.outbox.len();
        while waiting < OUTBOX_FULL
            && !inner.queue.is_empty()
            && self.throttle.until(now).is_none()
            && self.pace.let_out(now, shared.settings.shared_pace.as_deref())
            && let Some(submit) = inner.queue.pop_front()
        {
            waiting += encode::size(&submit);
            // The submit is added to the window right away, because every submit in the window gets
            // an outcome, even if the link ends.
            let sequence = self.window.next_sequence();
            self.window.insert(sequence, submit.tag);
            submits.push((sequence, submit));
        }
        inner.begin(submits.len(), now);
        drop(inner);
        let some = !submits.is_empty();
        for (sequence, submit) in submits {
            self.encode_submit(sequence, submit);
        }
        some
    }

    fn acknowledge(&mut self, handle: DeliveryHandle, status: u32) {
        if handle.bind == self.bind && self.unacknowledged.remove(&handle.serial) {
            self.respond(status, handle.sequence, encode::delivered(handle.data));
        }
    }

    fn encode_submit(&mut self, sequence: u32, submit: Submit) {
        let (tag, not_after, secret) = (submit.tag, submit.not_after, submit.is_secret);
        match encode::submit(submit) {
            Ok(pdu) => {
                let (taps, traced) = (&self.shared.taps, &mut self.traced);
                self.socket.outbox.append_submit(sequence, not_after, |out| {
                    let start = out.len();
                    encode::put(out, 0, sequence, pdu);
                    if taps.is_open() {
                        let mut octets = out[start..].to_vec();
                        if secret {
                            hide_text(&mut octets);
                        }
                        traced.insert(sequence, octets);
                    }
                });
            }
            Err(status) => {
                self.window.remove(sequence);
                self.finish_submit(tag, Outcome::Unsendable { status });
            }
        }
    }

    /// Moves the events and counts since the last call into the shared state.
    fn publish(&mut self) {
        if self.held == Some(true) {
            self.take_back(|_| true);
        }
        let shared = Arc::clone(&self.shared);
        let mut inner = shared.lock();
        match self.held.take() {
            Some(true) => {
                inner.held = true;
                inner.hold.refused(Instant::now());
                inner.drop_queued(|_| true);
            }
            Some(false) => {
                inner.held = false;
                inner.hold.accepted();
            }
            None => {}
        }
        inner.end(self.finished, self.answered, Instant::now());
        // The link gave up a submit only after it had counted these answers. So `unanswered`
        // overrides them.
        inner.probing = (inner.probing && self.answered == 0) || self.unanswered;
        inner.settle_limit(Instant::now());
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
        shared.announce(inner);
    }

    /// Reports the outcome of all remaining submits, and why the link ended.
    fn finish(mut self) -> Ended {
        self.read_left_answers();
        let cause = if self.shared.is_closing() {
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
        let error = self.end.unwrap_or_else(|| Fault::new(FaultKind::Closed, ""));
        // Even after a long bind, the next one may be just as useless. So the link counts as a
        // failed attempt, and the backoff before the next bind grows.
        if self.unresponsive {
            return Ended { bound: true, ..Ended::failed(error) };
        }
        let longest = self.shared.settings.timers.backoff_max;
        let held = self.bound_at.is_some_and(|at| at.elapsed() >= longest);
        let attempt = match (held, self.worked) {
            (true, _) => AttemptOutcome::Held,
            (false, true) => AttemptOutcome::Worked,
            (false, false) => AttemptOutcome::Failed,
        };
        Ended { error, attempt, bound: self.bound_at.is_some() }
    }
}
