//! Replies to the inputs that a call stored, and sends claimed messages to their connections.

use std::collections::{HashMap, HashSet};

use domain::{ApplicationId, KeyKind, Money, Reason, Timestamp, Transid, VerifyId};

use super::cache::{Cache, flooded, kept_answers, opted_out, stale_codes};
use super::inbox::{Answer, Input};
use super::optimistic::{Decided, OptimisticGroup, OptimisticSend};
use super::sends::watch;
use crate::Service;
use crate::admission::Sent;
use crate::delivery::receipts::{Receipt, ReceiptMatch};
use crate::delivery::{ClaimSearch, Claimed, Learned, Submitted};
use crate::money::test_money::test_money;
use crate::wakeups::Wakeup;
use store::group_call::{ClaimAnswer, CommitGroup, FoundApplication, GroupAnswer};
use store::idempotency::KeptKey;
use store::recipients::Recipient;

/// Inputs that are still to be stored.
#[derive(Default)]
pub(super) struct Left {
    /// Sends and claims to decide again from the rows that the call returned.
    pub(super) again: Vec<Input>,
    /// Results and receipts that a call can't store.
    pub(super) others: Vec<Input>,
}

impl OptimisticSend {
    /// Returns the outcome of the send, or `None` if the call doesn't show it.
    fn outcome(&self, rows: &AnsweredRows<'_>) -> Option<std::result::Result<Sent, Reason>> {
        if let Decided::Known(outcome) = &self.decided {
            return Some(*outcome);
        }
        let id = self.application?;
        let found = rows.applications.get(&id).filter(|found| found.same)?;
        if self.key.as_ref().is_some_and(|key| rows.kept.contains(key)) {
            return None;
        }
        if self.recipient.iter().flatten().any(|it| rows.stopped.contains(it)) {
            return None;
        }
        if self.code.is_some_and(|id| rows.stale_codes.contains(&id)) {
            return None;
        }
        let before = |kind: KeyKind| match kind {
            KeyKind::Live => found.balance,
            KeyKind::Test => test_money(found.test_balance, found.test_day, rows.now),
        };
        let charged = rows.charged.contains(&id);
        match &self.decided {
            Decided::Accepted { kind, sent, total } if charged => {
                let balance = before(*kind).checked_sub(*total)?;
                Some(Ok(Sent { balance, ..*sent }))
            }
            // If the process accepted earlier sends that the call didn't store, the balance is
            // different.
            Decided::DryRun { kind, sent, total } if charged || *total == Money::ZERO => {
                let balance = before(*kind).checked_sub(*total)?;
                let is_enough = balance >= sent.cost;
                let refused = Err(Reason::InsufficientFunds);
                Some(if is_enough { Ok(Sent { balance, ..*sent }) } else { refused })
            }
            Decided::UsedUp(_) if !charged => None,
            Decided::Refused(reason) | Decided::UsedUp(reason) => Some(Err(*reason)),
            _ => None,
        }
    }
}

/// The rows in a call's answer that decide about sends.
struct AnsweredRows<'a> {
    now: Timestamp,
    applications: HashMap<ApplicationId, &'a FoundApplication>,
    charged: HashSet<ApplicationId>,
    kept: HashSet<KeptKey>,
    /// Recipients that have opted out or got too many messages.
    stopped: HashSet<Recipient>,
    /// The verifications whose codes must not be sent.
    stale_codes: HashSet<VerifyId>,
}

impl<'a> AnsweredRows<'a> {
    fn of(call: &CommitGroup, answer: &'a GroupAnswer) -> Self {
        let applications = answer.applications.iter().flatten();
        Self {
            now: call.now,
            applications: applications.map(|found| (found.id, found)).collect(),
            charged: answer.charged.iter().flatten().copied().collect(),
            kept: kept_answers(answer).map(|(key, _)| key).collect(),
            stopped: opted_out(answer)
                .chain(flooded(answer).map(|(recipient, _)| recipient))
                .collect(),
            stale_codes: stale_codes(answer).collect(),
        }
    }
}

impl OptimisticGroup {
    /// Replies to the inputs that are stored, and to those that need nothing stored. Sends claimed
    /// messages to their connections. Returns the remaining inputs.
    pub(super) fn reply(
        self,
        service: &Service,
        cache: &mut Cache,
        answer: GroupAnswer,
        inputs: Vec<Input>,
    ) -> Left {
        let Self { call, sends, mut slots, lease, searches } = self;
        let rows = AnsweredRows::of(&call, &answer);
        slots.retain(|message| rows.charged.contains(&message.application_id));
        let mut outcomes = Vec::with_capacity(sends.len());
        for send in &sends {
            let outcome = send.outcome(&rows);
            if let (Some(_), Some(key)) = (&outcome, send.counted) {
                cache.in_group.use_request(key);
            }
            outcomes.push(outcome);
        }
        drop(rows);
        let mut outcomes = outcomes.into_iter();
        let mut left = Left::default();
        left.others.extend(opted_out_messages(answer.claims.as_deref()));
        let mut claimed = answered_claims(service, &searches, answer.claims, call.now);
        let mut stored =
            StoredOfCarriers::of(&call, answer.missing, answer.done, answer.done_receipts);
        for input in inputs {
            match input {
                Input::Send { .. } => match outcomes.next().flatten() {
                    Some(outcome) => {
                        watch_stored(service, cache, &input, &outcome);
                        input.answer(Answer::Sent(outcome));
                    }
                    None => left.again.push(input),
                },
                Input::Claim { .. } => match claimed.next() {
                    Some((_, claimed, _)) => input.answer(Answer::Claimed(lease, claimed)),
                    None => left.again.push(input),
                },
                other => left.others.extend(stored.reply(other)),
            }
        }
        for (carrier, claimed, learned) in claimed {
            slots.fill_all(&carrier, claimed, learned);
        }
        if slots.has_queued() {
            service.inner.wakeups.notify_others(Wakeup::Queued);
        }
        slots.dispatch(lease);
        left
    }
}

/// Counts a stored send among the messages to similar numbers.
fn watch_stored(
    service: &Service,
    cache: &Cache,
    input: &Input,
    outcome: &std::result::Result<Sent, Reason>,
) {
    if let Some(send) = input.send()
        && let Some(row) = send.application.and_then(|id| cache.application(id))
    {
        watch(service, row, send, outcome);
    }
}

/// Returns the messages to reject that the searches found.
fn opted_out_messages(answers: Option<&[ClaimAnswer]>) -> Option<Input> {
    let answers = answers.unwrap_or_default().iter();
    let ids = answers.flat_map(|answer| answer.opted_out.iter().flatten().copied());
    let ids: Vec<Transid> = ids.map(Transid).collect();
    (!ids.is_empty()).then_some(Input::OptedOut(ids))
}

/// Returns the messages claimed for each search, in the order of the searches. Empty if the call
/// didn't search.
fn answered_claims(
    service: &Service,
    searches: &[ClaimSearch],
    answers: Option<Vec<ClaimAnswer>>,
    now: Timestamp,
) -> std::vec::IntoIter<(String, Vec<Claimed>, Learned)> {
    let answers = answers.unwrap_or_default();
    let claims = searches.iter().zip(answers).map(|(search, answer)| {
        let (claimed, learned) = search.claimed(service, answer, now);
        (search.carrier.clone(), claimed, learned)
    });
    claims.collect::<Vec<_>>().into_iter()
}

/// The results and receipts that a call stored.
struct StoredOfCarriers {
    submitted: HashSet<i64>,
    received: HashSet<i64>,
    /// The indexes of the stored receipts among the receipts from carriers.
    identified: HashSet<i64>,
    /// The index of the next receipt from a carrier.
    next: i64,
}

impl StoredOfCarriers {
    fn of(
        call: &CommitGroup,
        missing: Option<Vec<i64>>,
        done: Option<Vec<i64>>,
        done_receipts: Option<Vec<i64>>,
    ) -> Self {
        let missing: HashSet<i64> = missing.into_iter().flatten().collect();
        let submitted = call.submitted.ids.iter().copied();
        let done: HashSet<i64> = done.into_iter().flatten().collect();
        let received = call.receipts.ids.iter().copied();
        Self {
            submitted: submitted.filter(|id| !missing.contains(id)).collect(),
            received: received.filter(|id| done.contains(id)).collect(),
            identified: done_receipts.into_iter().flatten().collect(),
            next: 0,
        }
    }

    /// Replies to an input that is stored completely. Returns the rest of any other input.
    fn reply(&mut self, input: Input) -> Option<Input> {
        match input {
            Input::Results { carrier, results, mut taken, answer } => {
                let is_stored = |result: &Submitted| self.submitted.remove(&result.id.0);
                let (stored, results): (Vec<_>, _) = results.into_iter().partition(is_stored);
                taken.extend(stored.iter().map(|result| result.id));
                let input = Input::Results { carrier, results, taken, answer };
                input.unless_empty()
            }
            Input::Receipts { receipts, answer } => {
                let is_stored = |receipt: &Receipt| self.received.remove(&receipt.id.0);
                let (_, receipts): (Vec<_>, _) = receipts.into_iter().partition(is_stored);
                Input::Receipts { receipts, answer }.unless_empty()
            }
            Input::CarrierReceipts {
                carrier,
                receipts,
                indexes,
                mut matches,
                matching,
                answer,
            } => {
                let (mut left, mut left_indexes) = (Vec::new(), Vec::new());
                for (index, receipt) in indexes.into_iter().zip(receipts) {
                    if self.identified.contains(&self.next) {
                        matches[index] = ReceiptMatch::Matched(None);
                    } else {
                        left.push(receipt);
                        left_indexes.push(index);
                    }
                    self.next += 1;
                }
                let (receipts, indexes) = (left, left_indexes);
                Input::CarrierReceipts { carrier, receipts, indexes, matches, matching, answer }
                    .unless_empty()
            }
            other => Some(other),
        }
    }
}
