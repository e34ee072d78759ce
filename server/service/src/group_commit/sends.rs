//! Decides the sends of a commit group in the order of their arrival. On SQLite, the group's
//! transaction reads the rows that the decisions need, and writes the accepted sends. On
//! PostgreSQL, the rows come from the cache, and an SQL function writes ([`super::optimistic`]).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use domain::admission::{Admission, SendAttempt, admit, reserved_outcome};
use domain::ledger::{LedgerAccount, TransferKind};
use domain::limits::RecentMessages;
use domain::pumping::block_of;
use domain::reason::Reason;
use domain::{
    AlarmKind, ApiKey, ApplicationId, Guard, KeyKind, Kind, Money, PricesInForce, Reference,
    Timestamp, Transid, VerifyId,
};

use super::consumers::Slots;
use crate::admission::idempotency::{earlier, kept_since, recall};
use crate::admission::rates::Allowance;
use crate::admission::{PreparedSend, Sent, due};
use crate::applications::alarms::Noted;
use crate::applications::pumping::To;
use crate::delivery::routing::Message;
use crate::delivery::{Claimed, ClaimedCode, Lease};
use crate::money::funds::Funds;
use crate::{MESSAGE_LIFETIME_MS, SANDBOX_CARRIER, Service};
use store::applications::KeyRow;
use store::error::Result;
use store::idempotency::{self, KeptAnswer, KeptKey};
use store::messages::{self, NewMessage};
use store::opt_outs::{self, OptedOut};
use store::planted::is_planted;
use store::queue::{self, QueuedAs, QueuedRow};
use store::recipients::{self, Recipient};
use store::transfers::{self, MessageTransfer, Subject};
use store::verifications::{self, CodeRow};
use store::{Tx, applications};

/// An accepted send and the rows to store for it.
pub(super) struct Accepted {
    reference: Reference,
    pub(super) sent: Sent,
    pub(super) message: NewMessage,
    /// The application's balance after the send, which the transfer of the charge records. `None`
    /// for a test key, whose sends have no transfers.
    balance_after: Option<Money>,
    /// The time from which the message may no longer be submitted. `None` if this is 48 hours after
    /// the acceptance.
    pub(super) expires_at: Option<Timestamp>,
    /// How far the test key's clock is ahead, in milliseconds. 0 for a live key.
    clock_ms: i64,
    /// The idempotency key under which the answer is stored, and the digest of the request.
    pub(super) kept: Option<(KeptKey, String)>,
    /// The verification whose code the message contains.
    pub(super) code: Option<CodeRow>,
}

/// The decision about a send that isn't refused.
pub(super) enum Decision {
    /// The send is accepted and must be stored.
    Accepted(Box<Accepted>),
    /// There is nothing to store, because the send repeats a request or is a dry run.
    Answered(Sent),
}

/// The rows that decide about the sends of a group, and the decisions so far.
pub(super) struct AdmittedSends {
    pub(super) now: Timestamp,
    pub(super) prices: Arc<PricesInForce>,
    /// The requests that this process has taken from the keys' rate limits in the database. `None`
    /// if no other process counts requests. The limits are then in memory.
    pub(super) allowance: Option<Allowance>,
    pub(super) applications: HashMap<Reference, Funds>,
    /// The answers stored for the idempotency keys of the sends, including those of this group.
    pub(super) kept: HashMap<KeptKey, KeptAnswer>,
    /// Recipients that have opted out.
    pub(super) opted_out: HashSet<OptedOut>,
    /// How many messages each recipient got. Only for applications that limit this number.
    pub(super) recent: HashMap<Recipient, RecipientTally>,
    /// How many accepted sends of this group go to each block of similar numbers. Only for
    /// applications that refuse traffic pumping.
    pub(super) pumped: HashMap<Recipient, u32>,
    /// The verifications whose codes must not be sent, because the number got another code within
    /// the cool-down, the code was sent again meanwhile, or the verification has ended.
    pub(super) stale_codes: HashSet<VerifyId>,
    /// The recipients of codes that this group accepted.
    pub(super) got_codes: HashSet<Recipient>,
    pub(super) accepted: Vec<Accepted>,
}

/// How many messages a recipient got.
#[derive(Clone, Copy, Default)]
pub(super) struct RecipientTally {
    /// The messages that were stored before this group.
    pub(super) stored: RecentMessages,
    /// The number of accepted sends of this group.
    pub(super) added: i64,
}

/// The applications of a group's sends, by reference.
pub(super) type SendingRows = HashMap<Reference, KeyRow>;

/// Decides sends and writes the accepted ones, on SQLite. Returns the answers in the order of the
/// sends, and the applications of the sends. If a message's carrier has a free slot, the message is
/// stored as claimed under the lease.
pub(super) async fn admit_all(
    service: &Service,
    tx: &mut Tx<'_>,
    sends: &[&PreparedSend],
    prices: Option<Arc<PricesInForce>>,
    slots: &mut Slots,
    lease: Lease,
) -> Result<(Vec<std::result::Result<Sent, Reason>>, SendingRows)> {
    // Every installation has prices from its first start, so missing prices are a fault.
    let Some(prices) = prices.filter(|_| !sends.is_empty()) else {
        let answers = sends.iter().map(|_| Err(Reason::Internal)).collect();
        return Ok((answers, SendingRows::new()));
    };
    let mut admitted = AdmittedSends::read(service, tx, prices, sends).await?;
    let mut answers = Vec::with_capacity(sends.len());
    for send in sends {
        answers.push(match admitted.decide(service, send)? {
            Ok(Decision::Accepted(accepted)) => {
                let sent = accepted.sent;
                admitted.accepted.push(*accepted);
                Ok(sent)
            }
            Ok(Decision::Answered(sent)) => Ok(sent),
            Err(reason) => Err(reason),
        });
    }
    let applications = admitted.applications.iter();
    let rows = applications.map(|(reference, funds)| (*reference, funds.row.clone())).collect();
    admitted.write(service, tx, slots, lease).await?;
    Ok((answers, rows))
}

impl AdmittedSends {
    async fn read(
        service: &Service,
        tx: &mut Tx<'_>,
        prices: Arc<PricesInForce>,
        sends: &[&PreparedSend],
    ) -> Result<Self> {
        let now = service.now();
        let keys = sends.iter().map(|send| &send.request.key);
        let references: Vec<Reference> = keys.map(ApiKey::reference).collect();
        let applications: HashMap<Reference, Funds> =
            applications::keys_by_references(tx, &references)
                .await?
                .into_iter()
                .map(|(reference, row)| (reference, service.messages().funds(row, now)))
                .collect();
        let keys: Vec<KeptKey> = sends
            .iter()
            .filter_map(|send| kept_key(send, applications.get(&send.request.key.reference())?))
            .filter(|_| !is_planted("repeat-not-recognized"))
            .collect();
        let kept = idempotency::find(tx, &keys, kept_since(now)).await?;
        let recipients = sends.iter().filter_map(|send| {
            let application = applications.get(&send.request.key.reference())?;
            let of = |number| (application.row.id, send.is_test(), number);
            Some([of(send.recipient.as_str()), of(send.erased.as_str())])
        });
        let opted_out = opt_outs::among(tx, recipients.flatten()).await?;
        let limited = sends.iter().filter_map(|send| {
            let application = applications.get(&send.request.key.reference())?;
            let is_limited = application.row.limits().limits_recipients();
            is_limited.then(|| recipient(application, send))
        });
        let limited: Vec<Recipient> = limited.collect();
        let country_code = &service.inner.router.country_code;
        let recent = recipients::recent(tx, &limited, country_code, now).await?;
        let codes = sends.iter().filter_map(|send| Some(&send.code.as_ref()?.row));
        let codes: Vec<&CodeRow> = codes.collect();
        let stale_codes = verifications::stale(tx, &codes, now).await?;
        Ok(Self {
            now,
            prices,
            allowance: None,
            applications,
            kept: kept.into_iter().collect(),
            opted_out: opted_out.into_iter().collect(),
            recent: tallies(recent),
            pumped: HashMap::new(),
            stale_codes: stale_codes.into_iter().collect(),
            got_codes: HashSet::new(),
            accepted: Vec::new(),
        })
    }

    pub(super) fn decide(
        &mut self,
        service: &Service,
        send: &PreparedSend,
    ) -> Result<std::result::Result<Decision, Reason>> {
        let request = &send.request;
        let (reference, kind) = (request.key.reference(), request.key.kind());
        let application = self.applications.get(&reference);
        let application = application.filter(|found| send.opens(&found.row));
        let key = application.and_then(|application| kept_key(send, application));
        let kept = key.as_ref().and_then(|key| self.kept.get(key));
        let digest = send.digest.as_deref().unwrap_or_default();
        let refused_origin = application
            .and_then(|application| request.origin.refused(application.row.limits(), kind));
        let admission = admit(&SendAttempt {
            application: application.map(|application| application.row.sending()),
            key: kind,
            refused_origin,
            earlier: earlier(kept, digest),
            reserved_outcome: reserved_outcome(&request.number, kind),
            is_opted_out: self.has_opted_out(application, send),
            limited: application.and_then(|found| self.limited(service, found, send)),
        });
        match (admission, kept) {
            (Err(reason), _) => return Ok(Err(reason)),
            (Ok(Admission::Repeated), Some(kept)) => return Ok(repeated(kept)),
            (Ok(_), _) => {}
        }
        if let Some(reason) = self.refused_code(application, send) {
            return Ok(Err(reason));
        }
        let mut decision = self.charge(service, send);
        if let (Ok(Decision::Accepted(accepted)), Some(key)) = (&mut decision, key) {
            accepted.kept = Some((key, digest.to_owned()));
            self.kept.extend(accepted.kept_answer()?);
        }
        Ok(decision)
    }

    /// Returns why the one-time code in a send must not be sent. `None` if it may be sent, or if
    /// the send has no code.
    fn refused_code(&self, application: Option<&Funds>, send: &PreparedSend) -> Option<Reason> {
        let (code, application) = (send.code.as_ref()?, application?);
        let is_stale = || {
            self.stale_codes.contains(&code.row.id)
                || self.got_codes.contains(&recipient(application, send))
        };
        code.refused.or_else(|| is_stale().then_some(Reason::RateLimited))
    }

    fn has_opted_out(&self, application: Option<&Funds>, send: &PreparedSend) -> bool {
        let Some(application) = application.filter(|_| !self.opted_out.is_empty()) else {
            return false;
        };
        listed_as(application.row.id, send).iter().any(|number| self.opted_out.contains(number))
    }

    /// Returns why the application's limits refuse the recipient. `None` if they don't.
    fn limited(
        &self,
        service: &Service,
        application: &Funds,
        send: &PreparedSend,
    ) -> Option<Reason> {
        let limits = application.row.limits();
        let country_code = &service.inner.router.country_code;
        let refused = limits.refuse_number(&send.request.number, country_code);
        if refused.is_some() {
            return refused;
        }
        if limits.limits_recipients() {
            let tally = self.recent.get(&recipient(application, send));
            let recent = tally.map_or_else(RecentMessages::default, RecipientTally::total);
            if !limits.admits_recipient(recent) {
                return Some(Reason::RecipientFlooded);
            }
        }
        if limits.traffic_pumping != Guard::Block {
            return None;
        }
        let of_group = self.pumped.get(&block(application, send)).copied().unwrap_or_default();
        let (pumping, max) = (&service.inner.pumping, limits.traffic_pumping_messages);
        let is_pumping =
            pumping.refuses(pumping_recipient(&application.row, send), max, of_group, self.now);
        is_pumping.then_some(Reason::TrafficPumping)
    }

    /// Counts a send against the rate limit of its key, and subtracts its price from the
    /// application's balance. The balance no longer has the prices of this group's earlier sends. A
    /// dry run counts against the rate limit, too, but subtracts nothing.
    fn charge(
        &mut self,
        service: &Service,
        prepared: &PreparedSend,
    ) -> std::result::Result<Decision, Reason> {
        let request = &prepared.request;
        let (reference, kind) = (request.key.reference(), request.key.kind());
        let application = self.applications.get_mut(&reference).ok_or(Reason::ApiInvalid)?;
        let clock_ms = prepared.clock_ms;
        let now = self.now.plus_ms(clock_ms);
        // A person waits for a code even in quiet hours, so quiet hours don't delay it.
        let due = match prepared.code {
            Some(_) => request.schedule.due(now, |_| None),
            None => due(request.schedule, application.row.limits(), now),
        };
        let due = due.ok_or(Reason::InvalidParameter)?;
        let allowed = match &mut self.allowance {
            Some(allowance) => allowance.take((reference, kind)),
            None => service.inner.rates.take(reference, kind, self.now),
        };
        if !allowed || !application.may_send(kind, 1) {
            return Err(Reason::RateLimited);
        }
        let (text, pages, segments) = prepared.text(application.row.limits());
        let cost = self.prices.cost(&request.number, pages);
        let cost = cost.ok_or(Reason::InsufficientFunds)?;
        if !application.may_spend(kind, cost) {
            return Err(Reason::SpendCapReached);
        }
        let mut sent = Sent {
            transid: None,
            pages,
            cost,
            balance: application.of(kind),
            send_at: due.send_at,
            code: prepared.code.as_ref().map(|code| code.sent(clock_ms)),
            replayed: false,
        };
        if request.dry_run {
            let left = application.left(kind, cost);
            return left.map(|_| Decision::Answered(sent)).ok_or(Reason::InsufficientFunds);
        }
        sent.balance = application.spend(kind, cost, 1).ok_or(Reason::InsufficientFunds)?;
        if application.row.limits().traffic_pumping == Guard::Block {
            *self.pumped.entry(block(application, prepared)).or_default() += 1;
        }
        if kind == KeyKind::Live && application.is_nearly_spent() {
            note_alarm(service, AlarmKind::SpendPerDay, prepared);
        }
        if application.row.limits().limits_recipients() {
            self.recent.entry(recipient(application, prepared)).or_default().added += 1;
        }
        let code = prepared.code.as_ref().map(|code| code.row.clone());
        if code.is_some() {
            self.got_codes.insert(recipient(application, prepared));
        }
        let id = Transid(service.inner.ids.next(self.now, service.inner.node.slot()));
        sent.transid = Some(id);
        let message = NewMessage {
            id,
            application_id: application.row.id,
            test: kind == KeyKind::Test,
            number: request.number.clone(),
            sender: application.row.sender_name.clone(),
            body: text.clone(),
            verification: sent.code.map(|code| code.id),
            requestid: request.requestid.as_ref().map(|id| id.as_str().to_owned()),
            pages,
            segments,
            unit_price: (self.prices).per_page(request.number.kind(), request.number.digits()),
            cost,
            send_at: due.send_at,
            sending_at: None,
        };
        Ok(Decision::Accepted(Box::new(Accepted {
            reference,
            sent,
            message,
            balance_after: (kind == KeyKind::Live).then_some(sent.balance),
            // The code is useless after its verification has expired, so the message expires at
            // that time.
            expires_at: sent
                .code
                .map(|code| code.expires_at)
                .or(due.expires_at)
                .map(|at| at.plus_ms(-clock_ms)),
            clock_ms,
            kept: None,
            code,
        })))
    }

    async fn write(
        mut self,
        service: &Service,
        tx: &mut Tx<'_>,
        slots: &mut Slots,
        lease: Lease,
    ) -> Result<()> {
        if self.accepted.is_empty() {
            return Ok(());
        }
        let now = service.now();
        let changed: Vec<_> = std::mem::take(&mut self.applications)
            .into_values()
            .filter_map(|application| application.changed(self.now))
            .collect();
        applications::charge(tx, &changed).await?;
        let mut queued = Vec::with_capacity(self.accepted.len());
        for accepted in &mut self.accepted {
            queued.push(accepted.queue(service, slots, lease, now));
            let message = &accepted.message;
            let whose = (message.application_id, message.test);
            (tx.tally).add_new(whose, message.id, message.status(), message.cost);
        }
        let stored: Vec<_> = self.accepted.iter().map(|a| &a.message).collect();
        messages::insert(tx, &stored).await?;
        let codes: Vec<_> = self.accepted.iter().filter_map(|a| a.code.as_ref()).collect();
        verifications::put(tx, &codes, now).await?;
        let charges: Vec<_> = self.accepted.iter().filter_map(Accepted::charge).collect();
        if !is_planted("charge-not-stored") {
            transfers::insert_of_messages(tx, &charges, now).await?;
        }
        let to_keep = self.accepted.iter().map(Accepted::kept_answer);
        let to_keep = to_keep.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        idempotency::keep(tx, &to_keep, now).await?;
        queue::insert(tx, &queued, QueuedAs::default()).await
    }
}

impl RecipientTally {
    const fn total(&self) -> RecentMessages {
        self.stored.and(self.added)
    }
}

/// Turns stored counts of messages into the tallies that a group starts with.
pub(super) fn tallies(
    recent: impl IntoIterator<Item = (Recipient, RecentMessages)>,
) -> HashMap<Recipient, RecipientTally> {
    let tally = |(recipient, stored)| (recipient, RecipientTally { stored, added: 0 });
    recent.into_iter().map(tally).collect()
}

/// Returns the block of similar numbers that contains the recipient.
fn block(application: &Funds, send: &PreparedSend) -> Recipient {
    (application.row.id, send.is_test(), block_of(&send.recipient).to_owned())
}

/// Returns the recipient of a send, as the detection of traffic pumping takes it.
pub(super) fn pumping_recipient<'a>(row: &KeyRow, send: &'a PreparedSend) -> To<'a> {
    (row.id, send.is_test(), &send.recipient)
}

/// Describes a send that is a reason for an alarm.
fn alarm_reason(send: &PreparedSend) -> Noted {
    let request = &send.request;
    Noted::of_number(request.number.masked(), &send.recipient, request.origin.address)
}

/// Notes that a send is a reason for an alarm.
fn note_alarm(service: &Service, kind: AlarmKind, send: &PreparedSend) {
    let (key, address) = (&send.request.key, send.request.origin.address);
    service.inner.alarms.note_send((key.reference(), kind), address, || alarm_reason(send));
}

/// Passes a stored send to the checks that can raise an alarm for its application. Of the refused
/// sends, only one that was refused as traffic pumping is a reason for an alarm.
pub(super) fn watch(
    service: &Service,
    row: &KeyRow,
    send: &PreparedSend,
    outcome: &std::result::Result<Sent, Reason>,
) {
    let (request, reference) = (&send.request, send.request.key.reference());
    if *outcome == Err(Reason::TrafficPumping) {
        note_alarm(service, AlarmKind::TrafficPumping, send);
    }
    if !outcome.as_ref().is_ok_and(|sent| sent.transid.is_some() && !sent.replayed) {
        return;
    }
    let noted = || alarm_reason(send);
    service.applications().watch_pumping(
        reference,
        pumping_recipient(row, send),
        row.limits(),
        noted,
    );
    if !send.is_test() && request.number.kind() == Kind::International {
        service.inner.alarms.note_international(reference, service.now().day(), noted);
    }
}

/// Returns both forms that an opt-out of the recipient can have: the number, and the hash that is
/// stored instead after the number was erased.
pub(super) fn listed_as(id: ApplicationId, send: &PreparedSend) -> [OptedOut; 2] {
    [&send.recipient, &send.erased].map(|number| (id, send.is_test(), number.clone()))
}

fn recipient(application: &Funds, send: &PreparedSend) -> Recipient {
    (application.row.id, send.is_test(), send.recipient.clone())
}

impl Accepted {
    /// Returns the message's row in the queue. If the message is due and its carrier has a free
    /// slot, the row is claimed at once.
    pub(super) fn queue(
        &mut self,
        service: &Service,
        slots: &mut Slots,
        lease: Lease,
        now: Timestamp,
    ) -> QueuedRow {
        let carrier = self.carrier(service);
        let message = &mut self.message;
        let mut row = QueuedRow {
            message_id: message.id,
            application_id: message.application_id,
            due_at: now.unix_ms(),
            lease_token: 0,
            expires_at: self.expires_at,
            carrier,
        };
        if let Some(at) = message.send_at {
            let at = at.plus_ms(-self.clock_ms);
            row.due_at = at.unix_ms();
            let after = Duration::from_millis(at.ms_since(now).max(0).unsigned_abs());
            slots.queued(&row.carrier, after);
        } else if let Some(slot) = slots.take_one(&row.carrier) {
            message.sending_at = Some(now);
            row.due_at = lease.until.unix_ms();
            row.lease_token = lease.token;
            let code = self.code.as_ref();
            let claimed = claimed(message, self.reference, code, &row, service);
            slots.fill(&slot, claimed);
        } else {
            slots.queued(&row.carrier, Duration::ZERO);
        }
        row
    }

    /// Returns the carrier of the message. Test messages go only to the sandbox.
    fn carrier(&self, service: &Service) -> String {
        let message = &self.message;
        if message.test {
            return SANDBOX_CARRIER.to_owned();
        }
        let facts = Message {
            number: message.number.digits(),
            kind: message.number.kind(),
            sender: message.sender.as_deref(),
            application: Some(self.reference),
            segments: message.segments,
        };
        let router = &service.inner.router;
        router.carrier(&facts, service.entropy().number(), &[])
    }

    /// Returns the answer to store for the send's idempotency key.
    fn kept_answer(&self) -> Result<Option<(KeptKey, KeptAnswer)>> {
        let Some((key, digest)) = self.kept.clone() else {
            return Ok(None);
        };
        let answer = store::row::json(&self.sent)?;
        Ok(Some((key, KeptAnswer { digest, answer })))
    }

    fn charge(&self) -> Option<MessageTransfer> {
        let application = self.message.application_id;
        Some(MessageTransfer {
            debit: application.into(),
            credit: LedgerAccount::REVENUE,
            amount: self.sent.cost,
            kind: TransferKind::Charge,
            subject: Subject::Message(self.message.id),
            application: Some((application, self.balance_after?)),
        })
    }
}

/// Returns the claimed message for the connection that submits it.
fn claimed(
    message: &NewMessage,
    reference: Reference,
    code: Option<&CodeRow>,
    row: &QueuedRow,
    service: &Service,
) -> Claimed {
    let created_at = Timestamp::from_unix_ms(domain::ids::id_unix_ms(message.id.0));
    let router = &service.inner.router;
    let (address, sender) =
        router.written(&row.carrier, &message.number, message.sender.as_deref());
    Claimed {
        id: message.id,
        application_id: message.application_id,
        reference: Some(reference),
        test: message.test,
        address,
        number: message.number.clone(),
        sender,
        message: message.body.clone(),
        code: code.map(|code| ClaimedCode {
            test: code.test,
            id: code.id,
            nonce: code.nonce,
            digits: code.digits,
        }),
        submitted_segments: Vec::new(),
        expires_at: row.expires_at.unwrap_or_else(|| created_at.plus_ms(MESSAGE_LIFETIME_MS)),
    }
}

/// Returns the stored answer to a repeated request.
fn repeated(kept: &KeptAnswer) -> std::result::Result<Decision, Reason> {
    match recall::<Sent>(kept) {
        Ok(sent) => Ok(Decision::Answered(Sent { replayed: true, ..sent })),
        // An error would fail the whole group, so only this send is refused.
        Err(error) => {
            tracing::error!(detail = ?error, "the stored answer for an idempotency key can't be read");
            Err(Reason::Internal)
        }
    }
}

/// Returns the idempotency key under which the answer to this request is stored. `None` if the
/// request has no such key or is a dry run.
pub(super) fn kept_key(send: &PreparedSend, application: &Funds) -> Option<KeptKey> {
    let request = &send.request;
    let key = request.idempotency.as_ref().filter(|_| !request.dry_run)?;
    Some(KeptKey {
        application_id: application.row.id,
        test: request.key.kind() == KeyKind::Test,
        key: key.as_str().to_owned(),
    })
}
