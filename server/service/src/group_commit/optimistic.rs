//! Optimistic decisions. The process decides the inputs of a group from cached rows. One call of
//! `run_commit_group` stores the decisions whose rows haven't changed since.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::ids::Shard;
use domain::{ApplicationId, KeyKind, Money, Reason, Reference, Timestamp, VerifyId};

use super::cache::Cache;
use super::consumers::Slots;
use super::inbox::Input;
use super::sends::{Accepted, AdmittedSends, Decision, kept_key, listed_as, tallies};
use crate::admission::idempotency::kept_since;
use crate::admission::rates::RateKey;
use crate::admission::{PreparedSend, Sent};
use crate::delivery::expiry::first_unexpired;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::receipts::{CarrierReceipt, Receipt};
use crate::delivery::{ClaimSearch, Lease, Submitted};
use crate::money::funds::{Funds, spend_day};
use crate::money::test_money::test_money_max;
use crate::{Delivery, Service};
use store::error::Result;
use store::group_call::{
    ApplicationRows, ClaimRows, CodeRows, CommitGroup, IdentifiedReceiptRows, KeyRows, LimitedRows,
    ReceiptRows, RecipientRows, SegmentRows, SendRows, SubmittedRows,
};
use store::idempotency::KeptKey;
use store::opt_outs::OptedOut;
use store::recipients::local_digits;

pub(super) fn group_id(service: &Service) -> i64 {
    (service.entropy().number() >> 1).cast_signed()
}

/// The decisions about a group's inputs, and the call that stores them.
pub(super) struct OptimisticGroup {
    pub(super) call: CommitGroup,
    /// The decisions about the sends, in the order of the inputs.
    pub(super) sends: Vec<OptimisticSend>,
    pub(super) slots: Slots,
    pub(super) lease: Lease,
    pub(super) searches: Vec<ClaimSearch>,
}

/// The decision about a send.
pub(super) struct OptimisticSend {
    pub(super) application: Option<ApplicationId>,
    /// The idempotency key, if the call must look up whether an answer is stored for it.
    pub(super) key: Option<KeptKey>,
    /// The API key whose rate limit the send counts against. `None` if it counts against none.
    pub(super) counted: Option<RateKey>,
    /// Both forms of an opt-out of the recipient, if the call must look them up.
    pub(super) recipient: Option<[OptedOut; 2]>,
    /// The verification whose code the send contains, if the call must look up whether the code may
    /// be sent.
    pub(super) code: Option<VerifyId>,
    pub(super) decided: Decided,
}

pub(super) enum Decided {
    /// The outcome of the send, decided from rows that were read in this group.
    Known(std::result::Result<Sent, Reason>),
    /// A refusal. The refusal holds if the application is as cached and no answer is stored for the
    /// key.
    Refused(Reason),
    /// A refusal because something is used up, possibly by earlier sends of this group: the
    /// balance, the spend per day, or a maximum number of messages. The refusal holds if the call
    /// also charges these earlier sends.
    UsedUp(Reason),
    /// A dry run. The answer holds if the application is as cached and the call also charges the
    /// earlier sends, which cost `total`.
    DryRun { kind: KeyKind, sent: Sent, total: Money },
    /// An accepted send. The send is stored if the call charges the application. `total` is the
    /// cost of the application's sends with the same key up to and including this send.
    Accepted { kind: KeyKind, sent: Sent, total: Money },
    /// No decision. The send is decided after the call.
    NotYet,
}

/// The cost and the number of an application's accepted sends in this group.
#[derive(Default)]
struct Spent {
    live: Money,
    test: Money,
    transfers: i64,
    /// The number of sends with the test key.
    tests: i64,
}

impl OptimisticGroup {
    /// Decides all inputs that a call can store. A message whose carrier has a free slot is stored
    /// as claimed under the lease.
    ///
    /// # Errors
    /// `Failed` if an answer can't be written as JSON.
    pub(super) fn of(
        service: &Service,
        shard: Shard,
        cache: &mut Cache,
        mut slots: Slots,
        lease: Lease,
        inputs: &[Input],
    ) -> Result<Self> {
        let now = service.now();
        let mut call = CommitGroup {
            shard,
            id: group_id(service),
            now,
            node: service.inner.node.slot(),
            least_id: first_unexpired(now),
            submitted: SubmittedRows::default(),
            segments: SegmentRows::default(),
            receipts: ReceiptRows::default(),
            identified_receipts: IdentifiedReceiptRows::default(),
            price: cache.prices.history.version(),
            drained: cache.drained.clone(),
            test_money_max: test_money_max(),
            kept_since: kept_since(now),
            test_max: service.limits().unpaid_test_messages,
            applications: ApplicationRows::default(),
            keys: KeyRows::default(),
            recipients: RecipientRows::default(),
            limited: LimitedRows::default(),
            sends: SendRows::default(),
            codes: CodeRows::default(),
            claims: ClaimRows::default(),
            lease_token: lease.token,
            lease_until: lease.until,
            country_code: service.inner.router.country_code.clone(),
        };
        add_of_carriers(service, &mut call, inputs);
        let sends: Vec<&PreparedSend> = inputs.iter().filter_map(Input::send).collect();
        let due = slots.due();
        slots.close(cache.drained.clone());
        let deciding = Deciding {
            service,
            cache,
            call: &mut call,
            slots: &mut slots,
            lease,
            spent: BTreeMap::new(),
            new_keys: HashSet::new(),
        };
        let decided_sends = deciding.decide_all(&sends)?;
        let mut searches = Vec::new();
        // For a drained carrier, the call searches for 0 messages, so that it returns the drained
        // carriers if they have changed.
        for input in inputs {
            if let Input::Claim { carrier, limit, .. } = input {
                let limit = if slots.is_drained(carrier) { 0 } else { *limit };
                searches.push(ClaimSearch::new(service, shard, carrier, limit));
            }
        }
        for carrier in due {
            let limit = slots.reserve(&carrier, sends.len());
            if limit > 0 || slots.is_drained(&carrier) {
                searches.push(ClaimSearch::new(service, shard, &carrier, limit));
            }
        }
        for search in &searches {
            push_claim(&mut call.claims, search);
        }
        Ok(Self { call, sends: decided_sends, slots, lease, searches })
    }

    /// Returns whether the call has anything to store or to read.
    pub(super) fn needs_call(&self) -> bool {
        let call = &self.call;
        !call.submitted.ids.is_empty()
            || !call.receipts.ids.is_empty()
            || !call.identified_receipts.receipts.is_empty()
            || !call.applications.ids.is_empty()
            || !call.claims.carriers.is_empty()
    }
}

/// Adds the results and receipts that a call may be able to store. Statements store the others, for
/// example results of messages that the carrier didn't accept completely at the first submit, and
/// receipts for messages of several segments.
fn add_of_carriers(service: &Service, call: &mut CommitGroup, inputs: &[Input]) {
    let (mut submitted, mut received, mut identified) = (HashSet::new(), HashSet::new(), 0);
    for input in inputs {
        match input {
            Input::Results { carrier, results, .. } => {
                for result in results {
                    if submitted.insert(result.id) && service.delivery().is_simple(carrier, result)
                    {
                        add_submitted(service, call, carrier, result);
                    }
                }
            }
            Input::Receipts { receipts, .. } => {
                for receipt in receipts {
                    if received.insert(receipt.id) {
                        push_receipt(&mut call.receipts, receipt);
                    }
                }
            }
            Input::CarrierReceipts { carrier, receipts, .. } => {
                for receipt in receipts {
                    push_identified(&mut call.identified_receipts, carrier, receipt, identified);
                    identified += 1;
                }
            }
            Input::Send { .. } | Input::OptedOut(_) | Input::Claim { .. } | Input::Check { .. } => {
            }
        }
    }
}

impl Delivery<'_> {
    /// Returns whether a call can store a result: the whole message was submitted at once and
    /// accepted, and no unmatched receipt waits for one of its segments.
    fn is_simple(&self, carrier: &str, result: &Submitted) -> bool {
        result.outcomes.len() == usize::from(result.segments)
            && result.outcomes.iter().all(|(_, outcome)| match outcome {
                SubmitOutcome::Accepted { carrier_message_id } => carrier_message_id
                    .as_ref()
                    .is_none_or(|id| !self.inner.unmatched_ids.has(carrier, id)),
                _ => false,
            })
    }
}

fn add_submitted(service: &Service, call: &mut CommitGroup, carrier: &str, result: &Submitted) {
    let network = service.inner.router.network();
    let noted = !network.is_sandbox(carrier);
    let counted = noted && !network.takes_whole(carrier);
    let rows = &mut call.submitted;
    rows.ids.push(result.id.0);
    rows.tokens.push(result.lease.token);
    rows.carriers.push(carrier.to_owned());
    rows.segment_counts.push(counted.then_some(i64::from(result.segments)));
    if !noted {
        return;
    }
    let rows = &mut call.segments;
    for (number, outcome) in &result.outcomes {
        let SubmitOutcome::Accepted { carrier_message_id } = outcome else {
            continue;
        };
        rows.ids.push(result.id.0);
        rows.numbers.push(i64::from(*number));
        rows.segment_counts.push(i64::from(result.segments));
        rows.applications.push(result.application_id.0);
        rows.carriers.push(carrier.to_owned());
        rows.message_ids.push(carrier_message_id.clone());
    }
}

fn push_receipt(rows: &mut ReceiptRows, receipt: &Receipt) {
    rows.ids.push(receipt.id.0);
    rows.statuses.push(receipt.status.code());
    rows.errors.push(receipt.error.clone());
}

fn push_identified(
    rows: &mut IdentifiedReceiptRows,
    carrier: &str,
    receipt: &CarrierReceipt,
    number: i64,
) {
    for id in &receipt.message_ids {
        rows.receipts.push(number);
        rows.carriers.push(carrier.to_owned());
        rows.message_ids.push(id.clone());
        rows.statuses.push(receipt.status.code());
        rows.errors.push(receipt.error.clone());
    }
}

fn push_claim(rows: &mut ClaimRows, search: &ClaimSearch) {
    rows.carriers.push(search.carrier.clone());
    rows.all_max.push(search.limits.all);
    rows.singles_max.push(search.limits.singles);
    rows.singles_from.push(search.from.singles);
    rows.batches_from.push(search.from.of_batches);
}

/// The state while the sends of a group are being decided.
struct Deciding<'g> {
    service: &'g Service,
    cache: &'g mut Cache,
    call: &'g mut CommitGroup,
    slots: &'g mut Slots,
    lease: Lease,
    spent: BTreeMap<ApplicationId, Spent>,
    /// The idempotency keys of the accepted sends.
    new_keys: HashSet<KeptKey>,
}

impl Deciding<'_> {
    fn decide_all(mut self, sends: &[&PreparedSend]) -> Result<Vec<OptimisticSend>> {
        let Some(prices) = self.cache.prices.at(self.call.now) else {
            let unknown = sends.iter().map(|send| OptimisticSend::not_yet(send.application));
            let unknown: Vec<OptimisticSend> = unknown.collect();
            self.add_applications(&unknown);
            return Ok(unknown);
        };
        let mut admitted = AdmittedSends {
            now: self.call.now,
            prices,
            allowance: self.cache.in_group.allowance.clone(),
            applications: self.cached_funds(sends),
            kept: self.cache.in_group.kept.clone(),
            opted_out: self.cache.in_group.opted_out.clone(),
            recent: tallies(self.cache.in_group.recent.clone()),
            pumped: HashMap::new(),
            stale_codes: self.cache.in_group.stale_codes.clone(),
            got_codes: self.cache.in_group.got_codes.clone(),
            accepted: Vec::new(),
        };
        let mut decided_sends = Vec::with_capacity(sends.len());
        for send in sends {
            decided_sends.push(self.decide(&mut admitted, send)?);
        }
        self.add_applications(&decided_sends);
        Ok(decided_sends)
    }

    fn cached_funds(&self, sends: &[&PreparedSend]) -> HashMap<Reference, Funds> {
        let mut found = HashMap::new();
        for send in sends {
            let row = send.application.and_then(|id| self.cache.application(id));
            if let Some(row) = row {
                let funds = || self.service.messages().funds(row.clone(), self.call.now);
                found.entry(send.request.key.reference()).or_insert_with(funds);
            }
        }
        found
    }

    fn decide(
        &mut self,
        admitted: &mut AdmittedSends,
        send: &PreparedSend,
    ) -> Result<OptimisticSend> {
        let Some(id) = send.application else {
            return Ok(OptimisticSend::known(None, Err(Reason::ApiInvalid)));
        };
        let has_read = self.cache.in_group.has_read(id);
        let (reference, kind) = (send.request.key.reference(), send.request.key.kind());
        let Some(funds) = admitted.applications.get(&reference) else {
            return Ok(if has_read {
                let is_there = self.cache.in_group.unreadable.contains(&id);
                let reason = if is_there { Reason::Internal } else { Reason::ApiInvalid };
                OptimisticSend::known(Some(id), Err(reason))
            } else {
                OptimisticSend::not_yet(Some(id))
            });
        };
        let key = kept_key(send, funds).filter(|_| send.opens(&funds.row));
        if key.as_ref().is_some_and(|key| self.new_keys.contains(key)) {
            return Ok(OptimisticSend::not_yet(Some(id)));
        }
        let of_limit = (reference, kind);
        let left = admitted.allowance.as_ref().map(|allowance| allowance.left(of_limit));
        let decision = admitted.decide(self.service, send)?;
        let used = admitted.allowance.as_ref().map(|allowance| allowance.left(of_limit)) != left;
        let may_send = (admitted.applications.get(&reference))
            .is_none_or(|application| application.may_send(kind, 1));
        let is_used_up = |reason| match reason {
            Reason::InsufficientFunds
            | Reason::SpendCapReached
            | Reason::RecipientFlooded
            | Reason::TrafficPumping => true,
            Reason::RateLimited => !may_send || send.code.is_some(),
            _ => false,
        };
        let is_looked_up = |key: &KeptKey| self.cache.in_group.has_looked_up(key);
        let is_known = has_read && key.as_ref().is_none_or(is_looked_up);
        let asked = key.filter(|key| !is_looked_up(key));
        let decided = match decision {
            Ok(Decision::Accepted(accepted)) => self.accept(kind, id, *accepted)?,
            Ok(Decision::Answered(answer)) if answer.replayed => Decided::Known(Ok(answer)),
            Ok(Decision::Answered(answer)) => {
                let total = self.spent.entry(id).or_default().of(kind);
                Decided::DryRun { kind, sent: answer, total }
            }
            // A refusal because something is used up needs rows that this group has read.
            Err(reason) if !has_read && is_used_up(reason) => Decided::NotYet,
            // If the group accepted earlier sends of the application, only the call shows whether
            // they are charged.
            Err(reason) if is_known && !self.spent.contains_key(&id) => Decided::Known(Err(reason)),
            Err(reason) if is_used_up(reason) => Decided::UsedUp(reason),
            Err(reason) => Decided::Refused(reason),
        };
        let sends = matches!(decided, Decided::DryRun { .. } | Decided::Accepted { .. });
        let recipient = sends.then(|| listed_as(id, send));
        if let Some(numbers) = &recipient {
            let rows = &mut self.call.recipients;
            for (_, test, number) in numbers {
                rows.applications.push(id.0);
                rows.tests.push(i64::from(*test));
                rows.numbers.push(number.clone());
            }
            let is_accepted = matches!(decided, Decided::Accepted { .. });
            self.limit_recipient(admitted, send, id, is_accepted);
        }
        if !matches!(decided, Decided::Known(_) | Decided::Accepted { .. })
            && let Some(key) = &asked
        {
            self.call.keys.push(key);
        }
        Ok(OptimisticSend {
            application: Some(id),
            key: asked,
            counted: used.then_some(of_limit),
            recipient,
            code: send.code.as_ref().map(|code| code.row.id),
            decided,
        })
    }

    /// Lets the call look up how many messages the recipient of a send got, if its application
    /// limits that. `is_accepted` is false for a dry run.
    fn limit_recipient(
        &mut self,
        admitted: &AdmittedSends,
        send: &PreparedSend,
        id: ApplicationId,
        is_accepted: bool,
    ) {
        let application = admitted.applications.get(&send.request.key.reference());
        let limits = application.map(|application| application.row.limits());
        let Some(limits) = limits.filter(|limits| limits.limits_recipients()) else {
            return;
        };
        let (test, number) = (send.is_test(), &send.recipient);
        let tally = admitted.recent.get(&(id, test, number.clone()));
        let added = tally.map_or(0, |tally| tally.added) + i64::from(!is_accepted);
        let max = limits.recipient_max().and(-added);
        let rows = &mut self.call.limited;
        let local = local_digits(number, &self.call.country_code);
        rows.local_numbers.push(local.map(str::to_owned));
        rows.applications.push(id.0);
        rows.tests.push(i64::from(test));
        rows.numbers.push(number.clone());
        rows.hour_maxes.push(max.hour);
        rows.day_maxes.push(max.day);
    }

    /// Adds an accepted send to the call.
    fn accept(
        &mut self,
        kind: KeyKind,
        id: ApplicationId,
        mut accepted: Accepted,
    ) -> Result<Decided> {
        let so_far = self.spent.entry(id).or_default();
        so_far.add(kind, accepted.sent.cost);
        let (sent, total, transfers) = (accepted.sent, so_far.of(kind), so_far.transfers);
        let row = accepted.queue(self.service, self.slots, self.lease, self.call.now);
        let message = accepted.message;
        if let Some(code) = &accepted.code {
            self.call.codes.push(code);
        }
        if let Some((key, digest)) = accepted.kept {
            self.call.keys.push_answer(&key, &digest, store::row::json(&sent)?, total);
            self.new_keys.insert(key);
        }
        let rows = &mut self.call.sends;
        rows.ids.push(message.id.0);
        rows.applications.push(id.0);
        rows.tests.push(i64::from(message.test));
        rows.numbers.push(message.number.digits().to_owned());
        rows.kinds.push(message.number.kind().as_str().to_owned());
        rows.senders.push(message.sender);
        rows.bodies.push(message.body.as_str().to_owned());
        rows.verifications.push(message.verification.map(|id| id.0));
        rows.requestids.push(message.requestid);
        rows.pages.push(message.pages.cast_signed() as i64);
        rows.segment_counts.push(message.segments.cast_signed() as i64);
        rows.unit_prices.push(message.unit_price.micros());
        rows.costs.push(message.cost.micros());
        rows.spent.push(total.micros());
        rows.transfers.push(transfers);
        rows.created_ats.push(domain::ids::id_unix_ms(message.id.0));
        rows.sending_ats.push(message.sending_at.map(Timestamp::unix_ms));
        rows.send_ats.push(message.send_at.map(Timestamp::unix_ms));
        rows.carriers.push(row.carrier);
        rows.due_ats.push(row.due_at);
        rows.tokens.push(row.lease_token);
        rows.expires_ats.push(row.expires_at.map(Timestamp::unix_ms));
        Ok(Decided::Accepted { kind, sent, total })
    }

    /// Adds the applications of all sends that aren't [`Decided::Known`] to the call, in the order
    /// of their IDs.
    fn add_applications(&mut self, decided_sends: &[OptimisticSend]) {
        let open = decided_sends.iter().filter(|group| !matches!(group.decided, Decided::Known(_)));
        let ids: BTreeSet<ApplicationId> = open.filter_map(|group| group.application).collect();
        for id in ids {
            let row = self.cache.application(id);
            let spent = self.spent.remove(&id).unwrap_or_default();
            let rows = &mut self.call.applications;
            rows.ids.push(id.0);
            rows.statuses.push(row.map(|row| row.status.as_str().to_owned()));
            rows.live_hashes.push(row.map(|row| row.live_hash.clone()));
            rows.test_hashes.push(row.map(|row| row.test_hash.clone()));
            rows.sender_states.push(row.map(|row| row.sender_state.as_str().to_owned()));
            rows.sender_names.push(row.and_then(|row| row.sender_name.clone()));
            rows.totals.push(spent.live.micros());
            rows.test_totals.push(spent.test.micros());
            rows.transfers.push(spent.transfers);
            rows.tests.push(spent.tests);
            let limits = row.and_then(|row| row.limits.as_deref());
            rows.limits.push(limits.map(|stored| stored.text.clone()));
            rows.spend_days.push(row.map_or(0, |row| spend_day(row, self.call.now)));
            let spend_max = limits.and_then(|stored| stored.limits.spend_per_day);
            rows.spend_maxes.push(spend_max.map(Money::micros));
        }
    }
}

impl Spent {
    const fn of(&self, kind: KeyKind) -> Money {
        match kind {
            KeyKind::Live => self.live,
            KeyKind::Test => self.test,
        }
    }

    /// Adds the cost of an accepted send.
    fn add(&mut self, kind: KeyKind, cost: Money) {
        let sum = |spent: Money| spent.checked_add(cost).unwrap_or(spent);
        match kind {
            KeyKind::Live => {
                self.live = sum(self.live);
                self.transfers += 1;
            }
            KeyKind::Test => {
                self.test = sum(self.test);
                self.tests += 1;
            }
        }
    }
}

impl OptimisticSend {
    fn known(
        application: Option<ApplicationId>,
        outcome: std::result::Result<Sent, Reason>,
    ) -> Self {
        Self { decided: Decided::Known(outcome), ..Self::not_yet(application) }
    }

    const fn not_yet(application: Option<ApplicationId>) -> Self {
        Self {
            application,
            key: None,
            counted: None,
            recipient: None,
            code: None,
            decided: Decided::NotYet,
        }
    }
}
