//! The sandbox: a carrier that sends to nobody and answers as the number says.
//!
//! It keeps nothing that a restart could lose: when a receipt is due, and what it says, follows from the
//! message's number and the moment of its submit, both of which are stored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::{Kind, MessageStatus, Number, Timestamp, Transid};
use service::{Claimed, Clock, Outstanding, Receipt, SANDBOX_CARRIER, SubmitOutcome, Submitted};
use tokio::sync::Notify;

use super::Carrier;

/// How long the slow reserved number takes.
const SLOW_MS: i64 = 30_000;
/// Receipts that are reported at once.
const RECEIPTS_MAX: usize = 500;

/// What the sandbox does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Delivered,
    DeliveredSlowly,
    HandsetUnavailable,
    ValidityOver,
    Refused,
}

/// The reserved local numbers decide; everything else is delivered.
fn fate(number: &Number) -> Fate {
    match (number.kind(), number.digits()) {
        (Kind::Local, "00000002") => Fate::HandsetUnavailable,
        (Kind::Local, "00000003") => Fate::ValidityOver,
        (Kind::Local, "00000004") => Fate::Refused,
        (Kind::Local, "00000005") => Fate::DeliveredSlowly,
        _ => Fate::Delivered,
    }
}

/// When a receipt is due and for which message; what it says follows from the fate.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Timestamp,
    id: Transid,
    application_id: i64,
    fate: Fate,
}

/// A carrier that sends to nobody.
pub struct Sandbox {
    clock: Clock,
    delay_ms: i64,
    due: Mutex<BinaryHeap<Reverse<Due>>>,
    added: Notify,
}

impl Sandbox {
    /// `delay_ms` is how long a delivery takes.
    pub fn new(clock: Clock, delay_ms: u64) -> Self {
        Self {
            clock,
            delay_ms: i64::try_from(delay_ms).unwrap_or(i64::MAX),
            due: Mutex::new(BinaryHeap::new()),
            added: Notify::new(),
        }
    }

    fn due(&self, message: &Outstanding) -> Due {
        let fate = fate(&message.number);
        let delay_ms = if fate == Fate::DeliveredSlowly {
            SLOW_MS
        } else {
            self.delay_ms
        };
        Due {
            at: message.submitted_at.plus_ms(delay_ms),
            id: message.id,
            application_id: message.application_id,
            fate,
        }
    }

    /// The receipts that are due, and how long the next one takes.
    fn take_due(&self) -> (Vec<Receipt>, Option<Duration>) {
        let now = self.clock.now();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let mut receipts = Vec::new();
        while receipts.len() < RECEIPTS_MAX {
            match due.pop() {
                Some(Reverse(next)) if next.at <= now => receipts.push(next.into_receipt()),
                Some(later) => {
                    due.push(later);
                    break;
                }
                None => break,
            }
        }
        let wait = due.peek().map(|Reverse(next)| next.at.ms_since(now).max(0));
        (
            receipts,
            wait.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        )
    }
}

impl Due {
    fn into_receipt(self) -> Receipt {
        let (status, error) = match self.fate {
            Fate::HandsetUnavailable => (MessageStatus::Failed, Some("handset_unavailable")),
            Fate::ValidityOver => (MessageStatus::Expired, Some("validity_expired")),
            // A refused message is never taken, so that none of them awaits a receipt.
            Fate::Delivered | Fate::DeliveredSlowly | Fate::Refused => {
                (MessageStatus::Delivered, None)
            }
        };
        Receipt {
            id: self.id,
            application_id: self.application_id,
            status,
            error: error.map(str::to_owned),
        }
    }
}

impl Carrier for Sandbox {
    fn name(&self) -> &'static str {
        SANDBOX_CARRIER
    }

    async fn submit(&self, messages: &[Claimed]) -> Vec<Submitted> {
        messages
            .iter()
            .map(|message| Submitted {
                id: message.id,
                application_id: message.application_id,
                outcome: match fate(&message.number) {
                    Fate::Refused => SubmitOutcome::Refused {
                        error: "refused_by_carrier".to_owned(),
                    },
                    _ => SubmitOutcome::Accepted {
                        carrier_message_id: message.id.to_string(),
                    },
                },
            })
            .collect()
    }

    fn expect_receipts(&self, messages: Vec<Outstanding>) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.extend(messages.iter().map(|message| Reverse(self.due(message))));
        drop(due);
        self.added.notify_one();
    }

    async fn receipts(&self) -> Vec<Receipt> {
        loop {
            let (receipts, wait) = self.take_due();
            if !receipts.is_empty() {
                return receipts;
            }
            match wait {
                Some(wait) => {
                    let _ = tokio::time::timeout(wait, self.added.notified()).await;
                }
                None => self.added.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use domain::MessageText;

    use super::*;

    const START_MS: i64 = 1_800_000_000_000;
    const DELAY_MS: i64 = 500;

    /// What became of a message to this number: when the sandbox reported it, after its submit, and how.
    fn receipt(number: &str) -> (i64, MessageStatus, Option<String>) {
        let now = Arc::new(AtomicI64::new(START_MS));
        let sandbox = Sandbox::new(Clock::fixed(Arc::clone(&now)), DELAY_MS.unsigned_abs());
        sandbox.expect_receipts(vec![Outstanding {
            id: Transid(1),
            application_id: 1,
            number: Number::parse(number).unwrap(),
            submitted_at: Timestamp::from_unix_ms(START_MS),
        }]);
        let (receipts, wait) = sandbox.take_due();
        assert!(receipts.is_empty(), "{number}: nothing is due at once");
        let wait_ms = i64::try_from(wait.unwrap().as_millis()).unwrap();
        now.store(START_MS + wait_ms - 1, Ordering::Relaxed);
        assert!(sandbox.take_due().0.is_empty(), "{number}: not before");
        now.store(START_MS + wait_ms, Ordering::Relaxed);
        let (mut receipts, wait) = sandbox.take_due();
        assert_eq!((receipts.len(), wait), (1, None), "{number}");
        let receipt = receipts.remove(0);
        (wait_ms, receipt.status, receipt.error)
    }

    #[test]
    fn receipts_come_as_the_number_says() {
        for (number, after_ms, status, error) in [
            ("57000001", DELAY_MS, MessageStatus::Delivered, None),
            ("00000001", DELAY_MS, MessageStatus::Delivered, None),
            (
                "00000002",
                DELAY_MS,
                MessageStatus::Failed,
                Some("handset_unavailable"),
            ),
            (
                "00000003",
                DELAY_MS,
                MessageStatus::Expired,
                Some("validity_expired"),
            ),
            ("00000005", 30_000, MessageStatus::Delivered, None),
            // Only local numbers are reserved.
            ("+00000002", DELAY_MS, MessageStatus::Delivered, None),
        ] {
            let expected = (after_ms, status, error.map(str::to_owned));
            assert_eq!(receipt(number), expected, "{number}");
        }
    }

    #[tokio::test]
    async fn one_reserved_number_is_refused() {
        let sandbox = Sandbox::new(Clock::system(), 0);
        for (number, refused) in [
            ("00000004", true),
            ("+00000004", false),
            ("00000005", false),
        ] {
            let message = Claimed {
                id: Transid(1),
                application_id: 1,
                number: Number::parse(number).unwrap(),
                sender: None,
                message: MessageText::parse("Hello".to_owned(), 1).unwrap(),
                attempts: 0,
                expires_at: Timestamp::from_unix_ms(START_MS),
            };
            let submitted = sandbox.submit(&[message]).await;
            let outcome = &submitted[0].outcome;
            let seen = matches!(outcome, SubmitOutcome::Refused { .. });
            assert_eq!(seen, refused, "{number}: {outcome:?}");
        }
    }
}
