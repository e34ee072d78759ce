//! Delivery: claims messages under a lease for submission to carriers, and records the outcome of
//! each submit.

mod by_shard;
pub(crate) mod carriers;
pub(crate) mod commands;
pub(crate) mod ended_leases;
pub(crate) mod expiry;
pub(crate) mod figures;
mod incidents;
mod late_answers;
mod named_states;
pub(crate) mod opted_out;
pub(crate) mod outcomes;
pub(crate) mod raw_receipts;
pub(crate) mod receipts;
pub(crate) mod results;
pub(crate) mod route_trial;
pub(crate) mod routing;
pub(crate) mod scan_starts;
pub(crate) mod test_messages;
pub(crate) mod unmatched_ids;
pub(crate) mod waiting_receipts;

pub(crate) use by_shard::SegmentShards;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use domain::ids::Shard;
use domain::verify::{SECRET_BYTES, unmasked};
use domain::{
    ApplicationId, MessageText, Number, Reference, Submission, Timestamp, Transid, VerifyId,
};

use crate::delivery::expiry::{final_below, first_unexpired, least_queued};
use crate::delivery::opted_out::reject;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::routing::Router;
use crate::money::releases::settle;
use crate::verify::code_of;
use crate::wakeups::Wakeup;
use crate::{Delivery, MESSAGE_LIFETIME_MS, Service, run_detached_with_attempts};
use store::claims::{self, DueLimits, DueRow, Leased, ScanStart, StartedMessage};
use store::error::Result;
use store::gate::Priority;
use store::group_call::ClaimAnswer;
use store::queue::{self, QueueState};
use store::segments::{self, Segment};
use store::submits::{self, Outstanding};
use store::{Tx, opt_outs};

/// Safety margin: no submit starts in the last sixth of a lease (10 s of 60). The last results are
/// stored in that time. The margin also covers the difference between the clocks of two nodes.
const LEASE_PARTS: i64 = 6;
/// The share of batches in a claim: one in this many messages is from a batch, even if many single
/// messages wait.
pub const BATCHES_SHARE: usize = 8;
/// The maximum number of searches per claim while all rows found are deferred.
const ROUNDS_MAX: usize = 2;
/// How soon to search again if due rows were locked.
const LOCKED_MS: i64 = 100;
/// The number of IDs in an hour.
const OUTSTANDING_SLICE: i64 = domain::ids::compose_id(domain::ids::id_unix_ms(0) + 3_600_000, 0);
/// The maximum number of messages that one transaction resumes, which takes a few milliseconds.
const RESUME_CHUNK: i64 = 1000;

/// The lease of a claim. A result counts only while the message's row has the lease's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub token: i64,
    pub shard: Shard,
    /// When the lease ends, by the wall clock. The clocks of the nodes agree only roughly.
    pub until: Timestamp,
    /// No submit of the claim may start after this time, because other processes may claim the
    /// messages soon. Uses the monotonic clock, which goes on while the process is stopped, so a
    /// process that continues later sees that the time has passed. If the whole machine is
    /// suspended, this clock may stop too.
    pub not_after: Instant,
}

/// A claimed message.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub id: Transid,
    pub application_id: ApplicationId,
    /// The application's reference. `None` for a test by staff.
    pub reference: Option<Reference>,
    /// Whether a test key sent it.
    pub test: bool,
    pub number: Number,
    /// The number in the carrier's format: with country code and without `+`, unless the settings
    /// have another form.
    pub address: String,
    /// The accepted sender name, or the default if the application has none. The settings can
    /// replace it.
    pub sender: String,
    /// The text. A one-time code in it is masked until the connection gets the message.
    pub message: MessageText,
    /// The code in the message.
    pub code: Option<ClaimedCode>,
    /// The numbers of the segments, from 1, that must not be submitted because the carrier has them
    /// or may have them.
    pub submitted_segments: Vec<u16>,
    /// When the message expires. The remaining time is the validity period that the carrier gets.
    pub expires_at: Timestamp,
}

/// The facts from which the code of a message is derived.
#[derive(Clone, Copy, Debug)]
pub struct ClaimedCode {
    pub(crate) test: bool,
    pub(crate) id: VerifyId,
    pub(crate) nonce: i64,
    pub(crate) digits: usize,
}

/// A message and the outcome of its submit.
#[derive(Clone, Debug)]
pub struct Submitted {
    pub id: Transid,
    pub application_id: ApplicationId,
    /// The lease of the claim under which the message was submitted.
    pub lease: Lease,
    /// The number of segments in which the message was submitted.
    pub segments: u16,
    /// The number and the outcome of each segment that was to be submitted now.
    pub outcomes: Vec<(u16, SubmitOutcome)>,
}

/// What a claim found out about the messages that are left in the queue.
pub(crate) struct Learned {
    /// Whether fewer single messages were due than the claim asked for.
    pub(crate) no_single_waits: bool,
    /// When to search again if fewer messages were due than the claim asked for. `None` while more
    /// may wait.
    pub(crate) poll_after: Option<Duration>,
}

impl Submitted {
    /// Whether the carrier accepted everything that was submitted.
    pub(crate) fn is_taken(&self) -> bool {
        let mut outcomes = self.outcomes.iter();
        outcomes.all(|(_, outcome)| matches!(outcome, SubmitOutcome::Accepted { .. }))
    }
}

impl Lease {
    /// Begins a lease now. `asked` is a time before the first database query, because the duration
    /// of the queries counts against the lease.
    pub(crate) fn begin(service: &Service, shard: Shard, asked: Instant, now: Timestamp) -> Self {
        // Any number but 0, which means that the row is unclaimed.
        let token = (service.entropy().number() >> 1).cast_signed().max(1);
        let lease_ms = service.limits().lease_ms;
        let held_ms = (lease_ms - lease_ms / LEASE_PARTS).unsigned_abs();
        Self {
            token,
            shard,
            until: now.plus_ms(lease_ms),
            not_after: asked + Duration::from_millis(held_ms),
        }
    }
}

impl Claimed {
    /// Converts the row of a claimed message.
    fn of(row: StartedMessage, carrier: &str, router: &Router) -> Self {
        let created_at = Timestamp::from_unix_ms(row.message.created_at);
        let number = Number::from_stored(row.number, row.kind);
        let (address, sender) = router.written(carrier, &number, row.sender.as_deref());
        Self {
            id: row.message.id,
            application_id: row.message.application_id,
            reference: Some(row.reference),
            test: row.message.test == 1,
            address,
            number,
            sender,
            message: MessageText::from_stored(row.body),
            code: row.verification_id.zip(row.nonce).zip(row.digits).map(
                |((id, nonce), digits)| ClaimedCode {
                    test: row.message.test == 1,
                    id: VerifyId(id),
                    nonce,
                    digits,
                },
            ),
            submitted_segments: Vec::new(),
            expires_at: created_at.plus_ms(MESSAGE_LIFETIME_MS),
        }
    }
}

impl Claimed {
    /// Puts the code into the text.
    pub(crate) fn reveal_code(&mut self, secret: &[u8; SECRET_BYTES]) {
        if let Some(ClaimedCode { test, id, nonce, digits }) = self.code {
            let code = code_of(secret, test, (id, nonce, digits));
            self.message = MessageText::from_stored(unmasked(self.message.as_str(), &code));
        }
    }
}

impl Lease {
    /// The row of a message with the token that it must have.
    const fn of(self, id: Transid) -> Leased {
        Leased { message_id: id, token: self.token }
    }
}

/// A search for due messages of a carrier.
pub(crate) struct ClaimSearch {
    shard: Shard,
    pub(crate) carrier: String,
    pub(crate) limits: DueLimits,
    pub(crate) from: ScanStart,
}

impl ClaimSearch {
    pub(crate) fn new(service: &Service, shard: Shard, carrier: &str, limit: usize) -> Self {
        let all = i64::try_from(limit).unwrap_or(i64::MAX);
        Self {
            shard,
            carrier: carrier.to_owned(),
            limits: DueLimits {
                // Single messages go first, but messages of batches keep a share.
                singles: all - all / BATCHES_SHARE.cast_signed() as i64,
                all,
            },
            from: service.inner.scan_starts.of(shard, carrier),
        }
    }

    /// Converts the answer of a call: the claimed messages, and the facts about those that are left
    /// in the queue.
    pub(crate) fn claimed(
        &self,
        service: &Service,
        answer: ClaimAnswer,
        now: Timestamp,
    ) -> (Vec<Claimed>, Learned) {
        let found = answer.found.unwrap_or_default();
        let scan_starts = &service.inner.scan_starts;
        let of = (self.shard, self.carrier.as_str());
        scan_starts.learn(of, self.from, self.limits, &found, now);
        let learned = self.learn(&found, answer.next_due.map(Timestamp::from_unix_ms), now);
        let router = &service.inner.router;
        let started = [answer.started, answer.started_scheduled, answer.started_before];
        let started = started
            .into_iter()
            .flatten()
            .flatten()
            .map(|row| Claimed::of(row, &self.carrier, router));
        let mut claimed: Vec<Claimed> = started.collect();
        set_expiries(&found, &mut claimed);
        let segments = answer.submitted_segments.unwrap_or_default();
        skip_submitted(&begun(&found), segments, &mut claimed);
        (claimed, learned)
    }

    /// Whether a search that found these rows found all due rows.
    fn is_exhausted(&self, found: &[DueRow]) -> bool {
        count(found.len()) < self.limits.all && singles(found) < self.limits.singles
    }

    /// Returns what a search shows about the messages that are left in the queue. The first of them
    /// is due at `next_due`.
    fn learn(&self, found: &[DueRow], next_due: Option<Timestamp>, now: Timestamp) -> Learned {
        let poll_after = self.is_exhausted(found).then(|| {
            // Another process has briefly locked the due rows that weren't found.
            let after = next_due.map_or(i64::MAX, |due| due.ms_since(now).max(LOCKED_MS));
            Duration::from_millis(after.unsigned_abs())
        });
        Learned { no_single_waits: singles(found) < self.limits.singles, poll_after }
    }
}

fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

fn singles(found: &[DueRow]) -> i64 {
    count(found.iter().filter(|row| !row.of_batch).count())
}

/// Returns the found messages of which a carrier has, or may have, some segments.
fn begun(found: &[DueRow]) -> HashMap<Transid, Submission> {
    let due = found.iter().filter(|row| row.deferred == 0);
    let begun = due.filter(|row| row.submission != Submission::None);
    begun.map(|row| (row.id, row.submission)).collect()
}

/// Claims due messages of a carrier in a commit group. Claims nothing if the carrier is drained.
pub(crate) async fn claim_due(
    service: &Service,
    tx: &mut Tx<'_>,
    carrier: &str,
    limit: usize,
    lease: Lease,
) -> Result<(Vec<Claimed>, Learned)> {
    let now = service.now();
    let mut rounds = 0;
    loop {
        rounds += 1;
        let search = ClaimSearch::new(service, lease.shard, carrier, limit);
        let (limits, least_id) = (search.limits, first_unexpired(now));
        let found = claims::due(tx, carrier, limits, search.from, least_id, now).await?;
        let claimed = claim_found(service, tx, (carrier, &found), lease, now).await?;
        let next_due = if search.is_exhausted(&found) {
            claims::next_due(tx, carrier, search.from, least_id, now).await?
        } else {
            None
        };
        // If all found rows were deferred, more rows may be due. After the last round the next
        // commit group searches for them.
        if !claimed.is_empty() || found.is_empty() || rounds == ROUNDS_MAX {
            return Ok((claimed, search.learn(&found, next_due, now)));
        }
    }
}

/// Claims the rows that were found. Defers rows of suspended applications and of stopped batches,
/// and rejects messages whose recipients have opted out.
async fn claim_found(
    service: &Service,
    tx: &mut Tx<'_>,
    (carrier, found): (&str, &[DueRow]),
    lease: Lease,
    now: Timestamp,
) -> Result<Vec<Claimed>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let (deferred, due): (Vec<_>, Vec<_>) = found.iter().partition(|row| row.deferred != 0);
    if !deferred.is_empty() {
        queue::defer(tx, deferred.into_iter().map(|row| (row.id, row.deferred))).await?;
    }
    let router = &service.inner.router;
    let new = due.iter().filter(|row| row.submission == Submission::None);
    let new: Vec<Transid> = new.map(|row| row.id).collect();
    let stopped = opt_outs::of_messages(tx, &new, &router.country_code).await?;
    let rejected = reject(tx, &stopped, now).await?;
    settle(tx, &rejected, now).await?;
    let ids = due.iter().map(|row| row.id).filter(|id| !stopped.contains(id));
    let ids: Vec<Transid> = ids.collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    claims::claim(tx, &ids, lease.token, lease.until).await?;
    let started = claims::start(tx, &ids, now).await?;
    let claimed = started.into_iter();
    let mut claimed: Vec<_> = claimed.map(|row| Claimed::of(row, carrier, router)).collect();
    set_expiries(found, &mut claimed);
    let begun = begun(found);
    if !begun.is_empty() {
        let ids: Vec<Transid> = begun.keys().copied().collect();
        let segments = segments::of(tx, &ids).await?;
        skip_submitted(&begun, segments, &mut claimed);
    }
    Ok(claimed)
}

impl Delivery<'_> {
    /// Resumes messages that were deferred because their application was suspended or its account
    /// disabled, once that is over.
    pub async fn resume_deferred(&self) -> Result<()> {
        let resumed = self.in_each_shard(|shard| self.resume_at(shard));
        if resumed.await?.into_iter().any(|resumed| resumed > 0) {
            self.inner.wake(Wakeup::Queued);
        }
        Ok(())
    }

    async fn resume_at(&self, shard: Shard) -> Result<u64> {
        let applications =
            queue::deferred_without_suspension(&mut self.store().read_at(shard).await?).await?;
        let mut resumed = 0;
        for application_id in applications {
            loop {
                let some = self.resume_some(shard, application_id).await?;
                resumed += some;
                if some < RESUME_CHUNK.unsigned_abs() {
                    break;
                }
            }
        }
        Ok(resumed)
    }

    async fn resume_some(&self, shard: Shard, application_id: ApplicationId) -> Result<u64> {
        run_detached_with_attempts(self, move |service| async move {
            let mut tx = service.store().begin_at(shard, Priority::Bulk).await?;
            let resumed =
                queue::resume(&mut tx, application_id, RESUME_CHUNK, service.now()).await?;
            tx.commit().await?;
            Ok(resumed)
        })
        .await
    }

    pub async fn queue_state(&self) -> Result<QueueState> {
        let states = self.in_each_shard(|shard| async move {
            queue::state(&mut self.store().read_at(shard).await?, self.now()).await
        });
        let states = states.await?;
        Ok(QueueState {
            waiting: states.iter().map(|state| state.waiting).sum(),
            oldest: states.iter().filter_map(|state| state.oldest).min(),
        })
    }

    /// Returns messages that a carrier accepted before `submitted_before` and that aren't final,
    /// with an ID above `after`, in the order of their IDs.
    pub async fn outstanding(
        &self,
        carrier: &str,
        submitted_before: Timestamp,
        after: Option<Transid>,
        limit: i64,
    ) -> Result<Vec<Outstanding>> {
        let mut after = if let Some(id) = after {
            id.0
        } else {
            let lows = self.in_each_shard(|shard| async move {
                final_below(&mut self.store().read_at(shard).await?, self.now()).await
            });
            let low = lows.await?.into_iter().min().unwrap_or(0) - 1;
            low.max(least_queued(submitted_before))
        };
        let end = domain::ids::compose_id(submitted_before.unix_ms() + 1, 0);
        // Reads one hour of IDs at a time. If the carrier has few messages, a single query would
        // read all messages.
        loop {
            let below = after.saturating_add(OUTSTANDING_SLICE).min(end);
            let found = self.in_each_shard(|shard| async move {
                let mut conn = self.store().read_at(shard).await?;
                submits::outstanding(&mut conn, after, below, carrier, submitted_before, limit)
                    .await
            });
            let mut found: Vec<_> = found.await?.into_iter().flatten().collect();
            found.sort_unstable_by_key(|message| message.id);
            found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            if !found.is_empty() || below >= end {
                return Ok(found);
            }
            after = below - 1;
        }
    }
}

/// Sets the expiry of the messages that have one of their own.
fn set_expiries(found: &[DueRow], claimed: &mut [Claimed]) {
    let own = found.iter().filter_map(|row| Some((row.id, row.expires_at?)));
    let own: HashMap<Transid, i64> = own.collect();
    for message in claimed.iter_mut().filter(|_| !own.is_empty()) {
        if let Some(at) = own.get(&message.id) {
            message.expires_at = Timestamp::from_unix_ms(*at);
        }
    }
}

/// Sets, for messages that were submitted in part, which segments the carrier has or may have.
fn skip_submitted(
    begun: &HashMap<Transid, Submission>,
    segments: Vec<Segment>,
    claimed: &mut [Claimed],
) {
    let mut skipped: HashMap<Transid, Vec<u16>> = HashMap::new();
    for segment in segments {
        let submission = begun.get(&segment.message_id);
        let repeats =
            submission.is_some_and(|it| it.repeats_segment(segment.is_taken(), segment.submits));
        if !repeats {
            let numbers = skipped.entry(segment.message_id).or_default();
            numbers.push(segment.segment);
        }
    }
    for message in claimed {
        message.submitted_segments = skipped.remove(&message.id).unwrap_or_default();
    }
}
