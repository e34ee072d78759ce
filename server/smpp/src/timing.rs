//! The deadlines and timeouts of a link.

use std::time::Duration;

use tokio::time::Instant;

use crate::link::{Link, Phase, SHUTDOWN_TIMEOUT};
use crate::{Fault, FaultKind, Outcome, UnknownCause};

/// How long the rest of a submit may take after its deadline, if the submit was begun in time.
/// Without this limit, a peer that accepts a byte now and then could get the rest at any time.
const OVERTIME: Duration = Duration::from_secs(5);

impl Link {
    /// Does everything that is due by `now`.
    pub(crate) fn check_time(&mut self, now: Instant) {
        let timers = self.shared.settings.timers;
        self.take_back(|not_after| not_after < now);
        if self.socket.caught_up && self.may_read() {
            self.give_up_overdue(now);
            self.check_silence(now);
        }
        if (self.socket.caught_up || !self.may_read())
            && let Some(error) = &self.socket.write_error
        {
            self.end = Some(Fault::lost(error));
        }
        if self.socket.all_written() && self.shutdown_fault.is_some() {
            self.end = self.shutdown_fault.take();
        }
        let stalled = self.socket.stalled();
        if stalled.is_some_and(|since| since + timers.answer <= now) {
            self.end = Some(Fault::new(FaultKind::NotReading, "it accepted no bytes in time"));
        }
        let begun = self.socket.outbox.begun_not_after();
        if begun.is_some_and(|not_after| not_after + OVERTIME <= now) {
            self.end = Some(Fault::new(FaultKind::NotReading, "it accepted a submit too slowly"));
        }
        match self.phase {
            Phase::Binding { until, .. } if until <= now => {
                self.end = Some(Fault::new(FaultKind::BindUnanswered, self.role.command()));
            }
            Phase::ShuttingDown { until } if until <= now => {
                let shutdown_fault = self.shutdown_fault.take();
                self.end =
                    Some(shutdown_fault.unwrap_or_else(|| Fault::new(FaultKind::Unbound, "")));
            }
            _ => {}
        }
        self.check_close(now);
    }

    /// Removes the submits that aren't begun and whose deadline satisfies `over`. Answers them with
    /// [`Outcome::NotSent`].
    pub(crate) fn take_back(&mut self, over: impl Fn(Instant) -> bool) {
        let removed = self.socket.take_back(over);
        self.finish_unwritten(removed);
    }

    /// Answers submits that were removed from the outbox before their write began.
    pub(crate) fn finish_unwritten(&mut self, sequences: Vec<u32>) {
        for sequence in sequences {
            self.traced.remove(&sequence);
            if let Some(tag) = self.window.remove(sequence) {
                self.finish_submit(tag, Outcome::NotSent);
            }
        }
    }

    /// Gives up submits whose answers are overdue. If the peer has answered no submit since one of
    /// them was written, the link ends: the peer accepts submits without answering them, however
    /// well it answers enquire_links.
    fn give_up_overdue(&mut self, now: Instant) {
        let answer = self.shared.settings.timers.answer;
        while let Some((tag, due)) = self.window.overdue(now) {
            let cause = UnknownCause::NoAnswer;
            self.finish_submit(tag, Outcome::Unknown { cause });
            let answered = self.answered_at.is_some_and(|at| at + answer >= due);
            self.unanswered |= !answered;
            if !answered && matches!(self.phase, Phase::Bound) {
                self.unresponsive = true;
                let detail = format!("no answer for {} s", answer.as_secs());
                self.end = Some(Fault::new(FaultKind::SubmitsUnanswered, detail));
            }
        }
    }

    fn check_silence(&mut self, now: Instant) {
        let timers = self.shared.settings.timers;
        let Phase::Bound = self.phase else {
            return;
        };
        self.enquired = self.enquired.filter(|since| *since > self.socket.heard);
        match self.enquired {
            Some(since) if since + timers.answer <= now => {
                self.end = Some(Fault::new(FaultKind::Silent, "no answer to enquire_link"));
            }
            None if self.socket.heard + timers.enquire_link <= now => {
                self.enquired = Some(now);
                self.request(rusmpp::Pdu::EnquireLink);
            }
            _ => {}
        }
    }

    /// Unbinds the link of a closing connection once every submit is answered or the time limit is
    /// over.
    fn check_close(&mut self, now: Instant) {
        let Some(until) = self.shared.lock().closing else {
            return;
        };
        match self.phase {
            Phase::Binding { .. } => self.end = Some(Fault::new(FaultKind::Closed, "")),
            Phase::Bound => {
                self.take_back(|_| true);
                if self.window.is_empty() || until <= now {
                    self.request(rusmpp::Pdu::Unbind);
                    let until = now + SHUTDOWN_TIMEOUT;
                    self.phase = Phase::ShuttingDown { until };
                }
            }
            Phase::ShuttingDown { .. } => {}
        }
    }

    /// Returns when to check again if nothing happens before.
    pub(crate) fn next_time(&mut self, now: Instant) -> Instant {
        let timers = self.shared.settings.timers;
        let mut next = now + timers.enquire_link.max(Duration::from_secs(1));
        let mut at = |time: Option<Instant>| next = next.min(time.unwrap_or(next));
        if self.may_read() {
            at(self.window.next_due());
        }
        match self.phase {
            Phase::Binding { until, .. } | Phase::ShuttingDown { until } => at(Some(until)),
            Phase::Bound if self.may_read() => at(Some(match self.enquired {
                Some(since) => since + timers.answer,
                None => self.socket.heard + timers.enquire_link,
            })),
            Phase::Bound => {}
        }
        at(self.socket.stalled().map(|since| since + timers.answer));
        at(self.socket.outbox.not_after().map(just_after));
        let begun = self.socket.outbox.begun_not_after();
        at(begun.map(|not_after| not_after + OVERTIME));
        at(self.throttle.until(now));
        let inner = self.shared.lock();
        at(inner.hold.until(now).filter(|_| inner.held));
        at(inner.closing.filter(|until| *until > now));
        // Only the first link takes submits from the queue, and only while it is bound. In any
        // other case, the deadlines of queued submits could lie in the past, and the link would
        // wake without end.
        let takes = self.index == 0 && matches!(self.phase, Phase::Bound);
        if takes && !inner.queue.is_empty() {
            at(inner.queue.iter().map(|submit| just_after(submit.not_after)).min());
            let shared = self.shared.settings.shared_pace.as_deref();
            at(Some(self.pace.next(shared)).filter(|next| *next > now));
        }
        next
    }
}

/// Returns the first time after a deadline. The deadline itself is still in time.
fn just_after(time: Instant) -> Instant {
    time + Duration::from_millis(1)
}
