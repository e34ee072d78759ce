//! One socket from its bind to its end.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, sleep_until};
use tokio_util::io::poll_read_buf;

use crate::encode::{self, Role};
use crate::outbox::Outbox;
use crate::pace::Pace;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::throttle::Throttle;
use crate::window::Window;
use crate::{DeliveryHandle, Event, Outcome, State, Submit, UNACKNOWLEDGED_LIMIT, UnknownCause};

/// Submits are encoded while less than this waits to be written.
const OUTBOX_FULL: usize = 64 * 1024;
/// Nothing is read while more than this waits to be written: a peer that asks and doesn't read.
const OUTBOX_LIMIT: usize = 256 * 1024;
/// What is read at once.
const READ: usize = 64 * 1024;
/// How long the last words of a link may take.
const FAREWELL: Duration = Duration::from_secs(1);

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

/// One socket.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) role: Role,
    /// Counts the connection's binds; set once bound.
    pub(crate) bind: u64,
    stream: Box<dyn Stream>,
    pub(crate) phase: Phase,
    bound_at: Option<Instant>,
    /// Why the link is given up: it ends once what is being written is.
    parting: Option<String>,
    /// Why the link ended.
    pub(crate) end: Option<String>,
    pub(crate) incoming: BytesMut,
    pub(crate) outbox: Outbox,
    pub(crate) window: Window,
    pace: Pace,
    pub(crate) throttle: Throttle,
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
    /// When something was last read.
    heard: Instant,
    /// An enquire_link is unanswered since.
    enquired: Option<Instant>,
    /// Nothing was left to read at the last try: only then is silence the peer's.
    caught_up: bool,
    /// What waits to be written has waited since.
    stalled: Option<Instant>,
    unflushed: bool,
    write_error: Option<io::Error>,
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
            stream,
            phase,
            bound_at: None,
            parting: None,
            end: None,
            incoming: BytesMut::new(),
            outbox: Outbox::default(),
            window,
            pace: Pace::new(shared.settings.rate, now),
            throttle: Throttle::new(),
            unacknowledged: HashSet::new(),
            deliveries: 0,
            events: Vec::new(),
            answered: 0,
            throttled: 0,
            finished: 0,
            heard: now,
            enquired: None,
            caught_up: false,
            stalled: None,
            unflushed: false,
            write_error: None,
            shared: Arc::clone(shared),
        }
    }

    /// Serves until the link ends: why, and how long it was bound.
    pub(crate) async fn run(mut self) -> (String, Duration) {
        match encode::bind(&self.shared.settings, self.role) {
            Ok(pdu) => {
                if let Phase::Binding { sequence, .. } = self.phase {
                    self.outbox.append(|out| encode::put(out, 0, sequence, pdu));
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
            let progress = tokio::select! {
                biased;
                progress = std::future::poll_fn(|context| self.poll_socket(context)) => progress,
                () = wake.notified() => Ok(()),
                () = sleep_until(next) => Ok(()),
            };
            if let Err(error) = progress {
                self.read_frames();
                self.end.get_or_insert_with(|| error.to_string());
            }
        }
        self.finish()
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
    }

    pub(crate) fn parting(&self) -> bool {
        self.parting.is_some()
    }

    pub(crate) fn respond(&mut self, status: u32, sequence: u32, pdu: rusmpp::Pdu) {
        self.outbox
            .append(|out| encode::put(out, status, sequence, pdu));
    }

    /// A submit is answered for good.
    pub(crate) fn finish_submit(&mut self, tag: u64, outcome: Outcome) {
        self.finished += 1;
        self.events.push(Event::Answer { tag, outcome });
    }

    /// Whether PDUs may be taken in.
    pub(crate) fn may_read(&self) -> bool {
        self.unacknowledged.len() < UNACKNOWLEDGED_LIMIT && self.outbox.len() < OUTBOX_LIMIT
    }

    /// Moves acknowledgements and submits into the outbox.
    fn take_work(&mut self, now: Instant) {
        let Phase::Bound = self.phase else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let mut inner = shared.lock();
        let acknowledgements = std::mem::take(&mut inner.links[self.index].acknowledgements);
        let mut submits = Vec::new();
        if self.index == 0 {
            self.expire_queue(&mut inner, now);
            // Roughly: a submit is mostly shorter than this, and one too many does no harm.
            let room = OUTBOX_FULL.saturating_sub(self.outbox.len()) / 256;
            while submits.len() < room
                && !inner.queue.is_empty()
                && self.throttle.until(now).is_none()
                && self.pace.let_out(now)
            {
                submits.extend(inner.queue.pop_front());
            }
            inner.in_flight += submits.len();
        }
        drop(inner);
        for (handle, status) in acknowledgements {
            self.acknowledge(handle, status);
        }
        for submit in submits {
            self.encode_submit(submit);
        }
    }

    fn expire_queue(&mut self, inner: &mut crate::shared::Inner, now: Instant) {
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

    fn encode_submit(&mut self, submit: Submit) {
        let (tag, not_after) = (submit.tag, submit.not_after);
        match encode::submit(submit) {
            Ok(pdu) => {
                let sequence = self.window.next_sequence();
                self.window.insert(sequence, tag);
                self.outbox.append_submit(sequence, not_after, |out| {
                    encode::put(out, 0, sequence, pdu)
                });
            }
            Err(status) => self.finish_submit(tag, Outcome::Refused { status }),
        }
    }

    /// What is due by now.
    fn check_time(&mut self, now: Instant) {
        let timers = self.shared.settings.timers;
        self.take_back(|not_after| not_after < now);
        if self.caught_up && self.may_read() {
            while let Some(tag) = self.window.overdue(now) {
                let cause = UnknownCause::NoAnswer;
                self.finish_submit(tag, Outcome::Unknown { cause });
            }
            self.check_silence(now);
            if let Some(error) = self.write_error.take() {
                self.end = Some(format!("write: {error}"));
            }
        }
        if self.outbox.len() == 0 {
            self.stalled = None;
            if !self.unflushed && self.parting.is_some() {
                self.end = self.parting.take();
            }
        }
        if self
            .stalled
            .is_some_and(|since| since + timers.answer <= now)
        {
            self.end = Some("the peer takes no more bytes".to_owned());
        }
        match self.phase {
            Phase::Binding { until, .. } if until <= now => {
                self.end = Some("no answer to the bind in time".to_owned());
            }
            Phase::Leaving { until } if until <= now => {
                let parting = self.parting.take();
                self.end = Some(parting.unwrap_or_else(|| "unbound".to_owned()));
            }
            _ => {}
        }
        self.check_close(now);
    }

    /// Answers submits NotSent of which nothing was written and whose time `over` calls over.
    fn take_back(&mut self, over: impl Fn(Instant) -> bool) {
        for sequence in self.outbox.remove(over) {
            if let Some(tag) = self.window.remove(sequence) {
                self.finish_submit(tag, Outcome::NotSent);
            }
        }
    }

    fn check_silence(&mut self, now: Instant) {
        let timers = self.shared.settings.timers;
        let Phase::Bound = self.phase else {
            return;
        };
        match self.enquired {
            Some(since) if since + timers.answer <= now => {
                self.end = Some("no answer to an enquire_link in time".to_owned());
            }
            None if self.heard + timers.enquire_link <= now => {
                self.enquired = Some(now);
                let sequence = self.window.next_sequence();
                self.respond(0, sequence, rusmpp::Pdu::EnquireLink);
            }
            _ => {}
        }
    }

    /// Once the connection closes: answers are waited for, then the link is unbound.
    fn check_close(&mut self, now: Instant) {
        let Some(until) = self.shared.lock().closing else {
            return;
        };
        match self.phase {
            Phase::Binding { .. } => self.end = Some("closed".to_owned()),
            Phase::Bound => {
                self.take_back(|_| true);
                if self.window.is_empty() || until <= now {
                    let sequence = self.window.next_sequence();
                    self.respond(0, sequence, rusmpp::Pdu::Unbind);
                    let until = now + FAREWELL;
                    self.phase = Phase::Leaving { until };
                }
            }
            Phase::Leaving { .. } => {}
        }
    }

    /// When to look again though nothing happens.
    fn next_time(&mut self, now: Instant) -> Instant {
        let timers = self.shared.settings.timers;
        let mut next = now + timers.enquire_link.max(Duration::from_secs(1));
        let mut at = |time: Option<Instant>| next = next.min(time.unwrap_or(next));
        if self.may_read() {
            at(self.window.next_due());
        }
        match self.phase {
            Phase::Binding { until, .. } | Phase::Leaving { until } => at(Some(until)),
            Phase::Bound if self.may_read() => at(Some(match self.enquired {
                Some(since) => since + timers.answer,
                None => self.heard + timers.enquire_link,
            })),
            Phase::Bound => {}
        }
        at(self.stalled.map(|since| since + timers.answer));
        at(self.outbox.not_after().map(just_after));
        at(self.throttle.until(now));
        let inner = self.shared.lock();
        at(inner.closing.filter(|until| *until > now));
        if self.index == 0 && !inner.queue.is_empty() {
            at(inner
                .queue
                .iter()
                .map(|submit| just_after(submit.not_after))
                .min());
            at(Some(self.pace.next()).filter(|next| *next > now));
        }
        next
    }

    /// Reads once and writes all that the socket takes; pending when neither went on.
    fn poll_socket(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut progress = false;
        if !self.may_read() {
            self.caught_up = false;
        } else {
            self.incoming.reserve(READ);
            match poll_read_buf(Pin::new(&mut self.stream), context, &mut self.incoming) {
                Poll::Ready(Ok(0)) => {
                    let error = self.write_error.take();
                    let closed = || io::Error::other("the peer closed the connection");
                    return Poll::Ready(Err(error.unwrap_or_else(closed)));
                }
                Poll::Ready(Ok(_)) => {
                    self.heard = Instant::now();
                    self.enquired = None;
                    self.caught_up = false;
                    progress = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // The first time, so that what only waited for this is looked at.
                    progress |= !self.caught_up;
                    self.caught_up = true;
                }
            }
        }
        progress |= self.poll_write(context).is_ready();
        if progress {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Writes until the socket takes no more; ready when it took something.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut took = false;
        while self.write_error.is_none() && self.outbox.len() > 0 {
            let stream = Pin::new(&mut self.stream);
            match stream.poll_write(context, self.outbox.offer()) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.took(count);
                    took = true;
                }
                Poll::Ready(result) => {
                    self.write_failed(result.err());
                    took = true;
                }
                Poll::Pending => {
                    self.stalled.get_or_insert_with(Instant::now);
                    break;
                }
            }
        }
        if self.unflushed && self.write_error.is_none() {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => {
                    self.write_failed(Some(error));
                    took = true;
                }
                Poll::Pending => {}
            }
        }
        if took { Poll::Ready(()) } else { Poll::Pending }
    }

    fn took(&mut self, count: usize) {
        self.unflushed = true;
        self.stalled = None;
        self.outbox.took(count);
        let due = Instant::now() + self.shared.settings.timers.answer;
        while let Some(sequence) = self.outbox.next_written() {
            self.window.written(sequence, due);
        }
    }

    /// What was written before may have been answered, so reading goes on until nothing is left.
    fn write_failed(&mut self, error: Option<io::Error>) {
        // TLS takes bytes in and may send a part of them before it fails: all of them may be gone.
        if self.shared.settings.tls.is_some() {
            self.took(self.outbox.len());
        }
        let error = error.unwrap_or_else(|| io::ErrorKind::WriteZero.into());
        self.write_error = Some(error);
        self.caught_up = false;
    }

    /// Hands over what happened since the last time.
    fn publish(&mut self) {
        let mut inner = self.shared.lock();
        inner.in_flight -= self.finished;
        inner.answered += self.answered;
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
        self.shared.announce(inner);
    }

    /// Answers all that is left.
    fn finish(mut self) -> (String, Duration) {
        let closing = self.shared.lock().closing.is_some();
        let cause = if closing {
            UnknownCause::Closed
        } else {
            UnknownCause::ConnectionLost
        };
        for (tag, written) in self.window.drain().collect::<Vec<_>>() {
            let unknown = Outcome::Unknown { cause };
            self.finish_submit(tag, if written { unknown } else { Outcome::NotSent });
        }
        self.unacknowledged.clear();
        self.throttle = Throttle::new();
        self.shared.link_down(self.index);
        self.publish();
        let held = self
            .bound_at
            .map_or(Duration::ZERO, |since| since.elapsed());
        (self.end.unwrap_or_default(), held)
    }
}

/// `not_after` itself is still in time.
fn just_after(time: Instant) -> Instant {
    time + Duration::from_millis(1)
}
