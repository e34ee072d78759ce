//! The sandbox: a carrier that delivers to nobody. Its answers depend on the number.
//!
//! A restart loses nothing: the due time and the status of a receipt follow from the message's
//! number and submit time, and both are stored.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use domain::records::ConnectionState;
use domain::test_number::SLOW_DELIVERY_MS;
use domain::{
    ApplicationId, DeliveryError, MessageStatus, Number, TestClock, TestNumber, Timestamp, Transid,
};
use parking_lot::Mutex;
use service::{Claimed, Clock, Lease, Outstanding, Receipt, SubmitOutcome, Submitted};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::refused::Refused;
use super::{CarrierConnection, CarrierReport, ConnectionStatus};

/// The maximum number of messages whose answers aren't stored yet.
const WINDOW: usize = 1024;
/// The maximum number of receipts in one report.
const RECEIPTS_MAX: usize = 500;

/// Returns the outcome for a number. Reserved local numbers have outcomes of their own; messages to
/// other numbers are delivered. For some reserved numbers, the API answers a test key with an
/// error. A message to such a number that gets here anyway is delivered.
fn outcome(number: &Number) -> TestNumber {
    match TestNumber::of(number) {
        None | Some(TestNumber::Answers(_)) => TestNumber::Delivered,
        Some(reserved) => reserved,
    }
}

/// A receipt, and when it is due.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Timestamp,
    id: Transid,
    application_id: ApplicationId,
    outcome: TestNumber,
    /// Whether the message is due by the clock of its application's test key.
    test: bool,
    submitted_at: Timestamp,
    delay_ms: i64,
}

/// A carrier that delivers to nobody.
pub struct Sandbox {
    clock: Clock,
    delay_ms: u64,
    since: Instant,
    inner: Mutex<Inner>,
    added: Notify,
    freed: Notify,
}

#[derive(Default)]
struct Inner {
    /// Answers that aren't stored yet.
    answered: Vec<Submitted>,
    /// The messages of those answers, until they are stored.
    submitted: HashMap<Transid, Claimed>,
    due: BinaryHeap<Reverse<Due>>,
    /// Messages whose first attempt was refused. After a restart, the next attempt is refused, too.
    attempted: HashSet<Transid>,
    /// Answers that follow the receipts of their messages.
    after_receipt: HashMap<Transid, Submitted>,
    /// The clocks of test keys that don't show real time.
    clocks: HashMap<ApplicationId, TestClock>,
    answers: u64,
    closed: bool,
}

impl Sandbox {
    /// `delay_ms` is how long a delivery takes.
    pub fn new(clock: Clock, delay_ms: u64) -> Self {
        Self {
            clock,
            delay_ms,
            since: Instant::now(),
            inner: Mutex::default(),
            added: Notify::new(),
            freed: Notify::new(),
        }
    }

    /// Returns how long a delivery takes.
    pub fn delay_ms(&self) -> u64 {
        self.delay_ms
    }

    /// Adds messages that an earlier process stored as accepted and whose receipts are still due.
    pub fn expect_receipts(&self, messages: &[Outstanding]) {
        let mut inner = self.inner.lock();
        for message in messages {
            let due = self.due(message);
            inner.expect(due);
        }
        drop(inner);
        self.added.notify_one();
    }

    /// Sets the clocks of test keys that don't show real time. The receipts of test messages are
    /// due by them.
    pub fn follow(&self, clocks: &HashMap<ApplicationId, TestClock>) {
        let mut inner = self.inner.lock();
        inner.clocks.clone_from(clocks);
        for Reverse(due) in std::mem::take(&mut inner.due) {
            inner.expect(due);
        }
        drop(inner);
        self.added.notify_one();
    }

    fn due(&self, message: &Outstanding) -> Due {
        let outcome = outcome(&message.number);
        let delay_ms = if outcome == TestNumber::DeliveredSlowly {
            SLOW_DELIVERY_MS
        } else {
            self.delay_ms.cast_signed()
        };
        Due {
            at: message.submitted_at.plus_ms(delay_ms),
            id: message.id,
            application_id: message.application_id,
            outcome,
            test: message.test,
            submitted_at: message.submitted_at,
            delay_ms,
        }
    }

    /// Returns the next report, or the time until there is one.
    fn take(&self) -> NextReport {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        let mut report = CarrierReport {
            submitted: std::mem::take(&mut inner.answered),
            ..CarrierReport::default()
        };
        while report.receipts.len() + report.answered.len() < RECEIPTS_MAX
            && inner.due.peek().is_some_and(|Reverse(next)| next.at <= now)
        {
            let Some(Reverse(due)) = inner.due.pop() else { break };
            let is_answered = due.outcome == TestNumber::Answering;
            // The answer is in the next report, so that the receipt is stored first.
            let answer = inner.after_receipt.remove(&due.id);
            inner.answered.extend(answer);
            let receipts = if is_answered { &mut report.answered } else { &mut report.receipts };
            receipts.push(due.into_receipt());
        }
        let receipts = report.receipts.len() + report.answered.len();
        if !report.submitted.is_empty() || receipts > 0 {
            return NextReport::Report(report);
        }
        if inner.closed {
            return NextReport::End;
        }
        let next = inner.due.peek();
        NextReport::Wait(next.map(|Reverse(next)| {
            Duration::from_millis(next.at.ms_since(now).max(0).unsigned_abs())
        }))
    }
}

fn outstanding(message: &Claimed, submitted_at: Timestamp) -> Outstanding {
    Outstanding {
        id: message.id,
        application_id: message.application_id,
        test: message.test,
        number: message.number.clone(),
        submitted_at,
    }
}

enum NextReport {
    Report(CarrierReport),
    /// The time until the next receipt is due, if there is one.
    Wait(Option<Duration>),
    End,
}

impl Due {
    fn into_receipt(self) -> Receipt {
        let (status, error) = match self.outcome {
            TestNumber::HandsetUnavailable => {
                (MessageStatus::Failed, Some(DeliveryError::HandsetUnavailable))
            }
            TestNumber::Expired => (MessageStatus::Expired, Some(DeliveryError::ValidityExpired)),
            // A refused message is never accepted, so it has no receipt.
            TestNumber::Delivered
            | TestNumber::DeliveredSlowly
            | TestNumber::SecondAttempt
            | TestNumber::ReceiptFirst
            | TestNumber::Answering
            | TestNumber::Refused
            | TestNumber::Answers(_) => (MessageStatus::Delivered, None),
        };
        Receipt {
            id: self.id,
            application_id: self.application_id,
            status,
            error: error.map(|error| error.as_str().to_owned()),
        }
    }
}

impl Inner {
    /// Adds a receipt. If it is for a test message, it is due by the clock of the test key.
    fn expect(&mut self, mut due: Due) {
        let real = TestClock::default();
        let clock = self.clocks.get(&due.application_id).filter(|_| due.test).unwrap_or(&real);
        due.at = clock.runs_until(due.submitted_at, due.delay_ms);
        self.due.push(Reverse(due));
    }

    fn answer(&mut self, message: &Claimed, lease: Lease) -> Submitted {
        let over = Instant::now() > Instant::from_std(lease.not_after);
        let outcome = match outcome(&message.number) {
            _ if over => SubmitOutcome::NotSent,
            TestNumber::Refused => {
                SubmitOutcome::Refused { error: "refused_by_carrier".to_owned() }
            }
            TestNumber::SecondAttempt if self.is_first_attempt(message.id) => {
                let error = "the sandbox refuses the first attempt".to_owned();
                SubmitOutcome::Temporary { error }
            }
            _ => SubmitOutcome::Accepted { carrier_message_id: None },
        };
        Submitted {
            id: message.id,
            application_id: message.application_id,
            lease,
            segments: 1,
            outcomes: vec![(1, outcome)],
        }
    }

    /// Returns whether this process sees the message for the first time.
    fn is_first_attempt(&mut self, id: Transid) -> bool {
        let was_attempted = self.attempted.remove(&id);
        if !was_attempted {
            self.attempted.insert(id);
        }
        !was_attempted
    }
}

#[async_trait]
impl CarrierConnection for Sandbox {
    fn free(&self) -> usize {
        WINDOW.saturating_sub(self.inner.lock().submitted.len())
    }

    async fn until_free(&self) {
        loop {
            let freed = self.freed.notified();
            if self.free() > 0 {
                return;
            }
            freed.await;
        }
    }

    fn submit(&self, lease: Lease, messages: Vec<Claimed>) {
        let mut inner = self.inner.lock();
        inner.answers += messages.len() as u64;
        for message in messages {
            let answer = inner.answer(&message, lease);
            let is_accepted = matches!(answer.outcomes[..], [(_, SubmitOutcome::Accepted { .. })]);
            let outcome = outcome(&message.number);
            if outcome == TestNumber::ReceiptFirst && is_accepted {
                let due = Due { delay_ms: 0, ..self.due(&outstanding(&message, self.clock.now())) };
                inner.expect(due);
                inner.after_receipt.insert(message.id, answer);
            } else {
                inner.answered.push(answer);
            }
            inner.submitted.insert(message.id, message);
        }
        drop(inner);
        self.added.notify_one();
    }

    async fn report(&self) -> Option<CarrierReport> {
        loop {
            match self.take() {
                NextReport::Report(report) => return Some(report),
                NextReport::End => return None,
                NextReport::Wait(Some(wait)) => {
                    let _ = tokio::time::timeout(wait, self.added.notified()).await;
                }
                NextReport::Wait(None) => self.added.notified().await,
            }
        }
    }

    fn stored(&self, report: CarrierReport, taken: &[Transid]) {
        let submitted_at = self.clock.now();
        let mut inner = self.inner.lock();
        for id in taken {
            let Some(message) = inner.submitted.remove(id) else { continue };
            // Otherwise, the receipt came before the answer.
            if outcome(&message.number) != TestNumber::ReceiptFirst {
                inner.expect(self.due(&outstanding(&message, submitted_at)));
            }
        }
        for result in report.submitted {
            inner.submitted.remove(&result.id);
        }
        drop(inner);
        self.added.notify_one();
        self.freed.notify_waiters();
    }

    fn acknowledge(&self, _deliveries: Vec<::smpp::DeliveryHandle>) {}

    fn state(&self) -> ConnectionStatus {
        let inner = self.inner.lock();
        ConnectionStatus {
            state: ConnectionState::Bound,
            since: self.since,
            in_flight: inner.submitted.len(),
            window: WINDOW,
            unanswered_since: None,
            answered: inner.answers,
            throttled: 0,
            throttled_until: None,
            takes_probe: false,
            lost: 0,
            refused: Refused::default(),
            last_error: None,
            last_error_at: None,
            held: None,
        }
    }

    async fn close(&self) {
        self.inner.lock().closed = true;
        self.added.notify_one();
    }
}

#[cfg(test)]
mod tests;
