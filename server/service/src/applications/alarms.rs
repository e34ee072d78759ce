//! Alarms about suspicious use of applications, and the counts of what limits refuse. Both are
//! collected in memory and stored every few seconds, so that they don't slow down sends. A process
//! that dies loses those of its last seconds.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::pumping::{RecentCount, block_of};
use domain::records::AlarmRecord;
use domain::timestamp::DAY_MS;
use domain::{
    AlarmKind, ApiKey, ApplicationId, Guard, KeyKind, Leak, Reason, Reference, SendLimits,
    Timestamp, ids,
};

use super::owned;
use crate::admission::Origin;
use crate::application_events::Cause;
use crate::mail::{self, texts};
use crate::money::funds::spend_day;
use crate::transactions::work;
use crate::{Applications, zones};
use store::Chore;
use store::alarms::{self, NewAlarm};
use store::applications::{self, KeyRow};
use store::error::Result;
use store::gate::Priority;

/// A further alarm of the same kind within this time only adds to the count.
const REPEATED_MS: i64 = 60 * 60 * 1000;
/// How long alarms are kept.
const KEPT_MS: i64 = 90 * DAY_MS;
/// The number of days over which refusals are shown.
const SHOWN_DAYS: i64 = 7;
/// The maximum number of alarms on a page.
const SHOWN_MAX: i64 = 20;
/// The maximum number of example numbers in an alarm.
const EXAMPLES_MAX: usize = 3;
/// The number of blocks of similar numbers above which a process forgets those that got few
/// messages.
const BLOCKS_MAX: usize = 200_000;

/// The alarms and refusals that aren't stored yet.
#[derive(Default)]
pub(crate) struct Alarms(Mutex<Unstored>);

#[derive(Default)]
struct Unstored {
    alarms: BTreeMap<(Reference, AlarmKind), Noted>,
    refusals: BTreeMap<(Reference, &'static str), i64>,
}

/// What happened since alarms were last stored.
#[derive(Clone, Default)]
pub(crate) struct Noted {
    pub(crate) count: i64,
    /// Masked numbers.
    pub(crate) examples: Vec<String>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) leak: Option<Leak>,
}

/// The numbers of messages to similar numbers that this process has accepted.
#[derive(Default)]
pub(crate) struct Pumping(Mutex<HashMap<(ApplicationId, bool, String), RecentCount>>);

impl Alarms {
    fn lock(&self) -> MutexGuard<'_, Unstored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a reason for an alarm.
    pub(crate) fn note(&self, reference: Reference, kind: AlarmKind, noted: Noted) {
        self.lock().alarms.entry((reference, kind)).or_default().merge(noted);
    }
}

impl Noted {
    pub(crate) fn of_number(masked: String) -> Self {
        Self { count: 1, examples: vec![masked], ..Self::default() }
    }

    fn merge(&mut self, more: Self) {
        self.count += more.count;
        self.address = more.address.or(self.address);
        self.leak = self.leak.or(more.leak);
        for example in more.examples {
            if self.examples.len() < EXAMPLES_MAX && !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }
}

impl Pumping {
    /// Returns the number of recent messages to numbers like this one, which is as carriers get it.
    pub(crate) fn count(
        &self,
        (application, test, number): (ApplicationId, bool, &str),
        now: Timestamp,
    ) -> u32 {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (application, test, block_of(number).to_owned());
        blocks.get(&key).map_or(0, |count| count.at(now))
    }

    /// Adds a message, and returns the number of recent messages to numbers like this one.
    pub(crate) fn add(
        &self,
        (application, test, number): (ApplicationId, bool, &str),
        now: Timestamp,
    ) -> u32 {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() >= BLOCKS_MAX {
            blocks.retain(|_, count| count.at(now) > 1);
            // The next messages must not search all blocks again.
            if blocks.len() > BLOCKS_MAX / 2 {
                blocks.clear();
            }
        }
        let key = (application, test, block_of(number).to_owned());
        let count = blocks.entry(key).or_default();
        count.add(now);
        count.at(now)
    }
}

impl Applications<'_> {
    /// Notes an accepted message to a number, as carriers get it. More messages to similar numbers
    /// than the limits allow cause an alarm.
    pub(crate) fn watch_pumping(
        &self,
        reference: Reference,
        recipient: (ApplicationId, bool, &str),
        limits: &SendLimits,
        masked: impl FnOnce() -> String,
    ) {
        if limits.traffic_pumping == Guard::Off {
            return;
        }
        let count = self.inner.pumping.add(recipient, self.now());
        if count > limits.traffic_pumping_messages {
            let noted = Noted::of_number(masked());
            self.inner.alarms.note(reference, AlarmKind::TrafficPumping, noted);
        }
    }

    /// Notes a call whose key was valid. `reason` is why it was refused, and `masked` the masked
    /// number of the recipient.
    pub fn note_origin(
        &self,
        key: &ApiKey,
        origin: Origin,
        reason: Option<Reason>,
        masked: Option<&str>,
    ) {
        let (reference, Origin { address, leak }) = (key.reference(), origin);
        if leak.is_some() && key.kind() == KeyKind::Live {
            let noted = Noted { count: 1, address, leak, ..Noted::default() };
            self.inner.alarms.note(reference, AlarmKind::LeakedKey, noted);
        }
        if let Some(reason) = reason.filter(|reason| SendLimits::REASONS.contains(reason)) {
            *self.inner.alarms.lock().refusals.entry((reference, reason.as_str())).or_default() +=
                1;
        }
        if reason == Some(Reason::TrafficPumping) {
            let noted = Noted::of_number(masked.unwrap_or_default().to_owned());
            self.inner.alarms.note(reference, AlarmKind::TrafficPumping, noted);
        }
    }

    /// Stores the alarms and the refusals that were noted since the last time, with their mails and
    /// events.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` if the database can't be written. What isn't stored yet is then
    /// lost, but whatever causes an alarm usually goes on.
    pub async fn store_alarms(&self) -> Result<()> {
        let Unstored { alarms, refusals } = std::mem::take(&mut *self.inner.alarms.lock());
        for ((reference, kind), noted) in alarms {
            self.store_alarm(reference, kind, noted).await?;
        }
        for ((reference, reason), n) in refusals {
            self.in_transaction_of(
                reference,
                work!(|tx, now| {
                    let Some(row) = applications::keys_by_reference(tx, reference).await? else {
                        return Ok(());
                    };
                    alarms::count(tx, row.id, (reason, n), now.day()).await
                }),
            )
            .await?;
        }
        Ok(())
    }

    async fn store_alarm(&self, reference: Reference, kind: AlarmKind, noted: Noted) -> Result<()> {
        let service = self.0.clone();
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let Some(row) = applications::keys_by_reference(tx, reference).await? else {
                    return Ok(());
                };
                if !is_meant(kind, &row, now) {
                    return Ok(());
                }
                let example = noted.examples.join(", ");
                let detail = detail(kind, &row, &noted);
                let alarm = NewAlarm {
                    application_id: row.id,
                    kind,
                    count: noted.count,
                    example: (!example.is_empty()).then_some(&example),
                    detail: Some(&detail),
                };
                let since = ids::compose_id(repeated_since(kind, &row, now).unix_ms(), 0);
                let id = service.next_id(now);
                if !alarms::note(tx, &alarm, id, since).await? {
                    return Ok(());
                }
                let owner = applications::owner(tx, row.id).await?;
                let mail = texts::alarm(reference, kind, &detail, alarm.example);
                let recipient =
                    mail::Recipient { account_id: owner.account_id, email: &owner.email };
                mail::put(tx, recipient, &mail, now).await?;
                let example = noted.examples.first().map(String::as_str);
                let cause = Cause::LimitAlarm { kind, count: noted.count, example, at: now };
                cause.put(tx, row.id, now);
                Ok(())
            }),
        )
        .await
    }

    /// Deletes old alarms, and the counts of refusals that aren't shown any more.
    pub async fn forget_alarms(&self) -> Result<()> {
        self.do_chore(
            Chore::ForgetAlarms,
            Priority::Bulk,
            work!(|tx, now| {
                let below = ids::compose_id(now.plus_ms(-KEPT_MS).unix_ms(), 0);
                alarms::forget(tx, below, now.day() - SHOWN_DAYS).await?;
                Ok(false)
            }),
        )
        .await
    }

    /// Returns the alarms of one of an account's applications that aren't marked as read, newest
    /// first.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn alarms(&self, account_id: i64, reference: Reference) -> Result<Vec<AlarmRecord>> {
        let shard = self.shard_of(reference).await?;
        let mut conn = self.store().read_at(shard).await?;
        let row = owned(&mut conn, account_id, reference).await?;
        alarms::unread(&mut conn, row.id, SHOWN_MAX).await
    }

    /// Marks the alarms of an application up to this ID as read.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn read_alarms(
        &self,
        account_id: i64,
        reference: Reference,
        up_to: i64,
    ) -> Result<()> {
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                alarms::mark_read(tx, row.id, up_to, now).await
            }),
        )
        .await
    }

    /// Returns how many requests and rows the limits of one of an account's applications refused
    /// within the last seven days, by reason.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn limit_refusals(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<(String, i64)>> {
        let shard = self.shard_of(reference).await?;
        let mut conn = self.store().read_at(shard).await?;
        let row = owned(&mut conn, account_id, reference).await?;
        alarms::counts(&mut conn, row.id, self.now().day() - SHOWN_DAYS + 1).await
    }
}

/// Whether the owner wants an alarm of this kind, and its reason still holds.
fn is_meant(kind: AlarmKind, row: &KeyRow, now: Timestamp) -> bool {
    let limits = row.limits();
    match kind {
        AlarmKind::TrafficPumping => limits.traffic_pumping != Guard::Off,
        AlarmKind::LeakedKey => limits.leaked_key != Guard::Off,
        AlarmKind::SpendPerDay => limits.is_nearly_spent(row.spent_on(spend_day(row, now))),
    }
}

/// Returns the time since which an alarm of this kind isn't repeated.
fn repeated_since(kind: AlarmKind, row: &KeyRow, now: Timestamp) -> Timestamp {
    match kind {
        AlarmKind::SpendPerDay => zones::start_of_today(row.limits().zone.as_deref(), now),
        AlarmKind::TrafficPumping | AlarmKind::LeakedKey => now.plus_ms(-REPEATED_MS),
    }
}

/// Describes an alarm for its owner.
fn detail(kind: AlarmKind, row: &KeyRow, noted: &Noted) -> String {
    let limits = row.limits();
    match kind {
        AlarmKind::TrafficPumping => format!(
            "More than {} messages within 10 minutes went to numbers that differ only in their \
             last three digits.",
            limits.traffic_pumping_messages
        ),
        AlarmKind::LeakedKey => {
            let sentence = noted.leak.unwrap_or(Leak::Browser).sentence();
            let from = noted.address.map(|address| format!(" It came from {address}."));
            format!("{sentence}{}", from.unwrap_or_default())
        }
        AlarmKind::SpendPerDay => {
            let max = limits.spend_per_day.unwrap_or_default();
            format!("80 % of the {} that may be spent on a day are spent.", max.shown())
        }
    }
}
