//! Alarms about suspicious use of applications, and counts of the requests that limits refuse. Both
//! are collected in memory and stored every few seconds, so that they don't slow down sends. If the
//! database can't be written, they are stored later. A process that dies loses what it noted in its
//! last seconds.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::home_country::{HomeCountry, country_code_of};
use domain::pumping::CountryOutcomes;
use domain::records::AlarmRecord;
use domain::timestamp::DAY_MS;
use domain::{
    AlarmKind, ApiKey, Guard, KeyKind, Leak, Reason, Reference, SendLimits, Timestamp, ids,
};

use super::owned;
use crate::admission::Origin;
use crate::application_events::Cause;
use crate::mail::{self, texts};
use crate::money::funds::spend_day;
use crate::transactions::work;
use crate::{Applications, Service, zones};
use store::alarms::{self, NewAlarm};
use store::applications::{self, KeyRow};
use store::error::Result;
use store::gate::Priority;
use store::{Chore, Tx};

/// A further alarm of the same kind within this time only raises the alarm's count.
const REPEATED_MS: i64 = 60 * 60 * 1000;
/// How long alarms are kept.
const KEPT_MS: i64 = 90 * DAY_MS;
/// The number of days over which refusals are shown.
const SHOWN_DAYS: i64 = 7;
/// The maximum number of alarms on a page.
pub(crate) const SHOWN_MAX: i64 = 20;
/// The maximum number of example numbers in an alarm.
pub(super) const EXAMPLES_MAX: usize = 3;
/// After this many days without an international message, the next one raises an alarm.
const INTERNATIONAL_DAYS: i64 = 30;

/// The alarms and refusals that aren't stored yet.
#[derive(Default)]
pub(crate) struct Alarms {
    unstored: Mutex<Unstored>,
    /// The UTC day of the last international message of each application, as far as this process
    /// knows.
    international: Mutex<HashMap<Reference, i64>>,
}

#[derive(Default)]
struct Unstored {
    alarms: BTreeMap<(Reference, AlarmKind), Noted>,
    refusals: BTreeMap<(Reference, &'static str), i64>,
}

/// The reasons for an alarm that were noted since alarms were last stored.
#[derive(Clone, Default)]
pub(crate) struct Noted {
    pub(crate) count: i64,
    /// Masked numbers.
    pub(crate) examples: Vec<String>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) leak: Option<Leak>,
    /// The code of the recipients' country.
    pub(crate) country: Option<&'static str>,
    /// Set if the alarm is about all messages to the country.
    pub(crate) outcomes: Option<CountryOutcomes>,
}

impl Alarms {
    fn lock(&self) -> MutexGuard<'_, Unstored> {
        self.unstored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a reason for an alarm.
    pub(crate) fn note(&self, reference: Reference, kind: AlarmKind, noted: Noted) {
        self.lock().alarms.entry((reference, kind)).or_default().merge(noted);
    }

    /// Notes a send from `address` that is a reason for an alarm. Calls `noted` only while the
    /// alarm needs examples, because commit groups note thousands of sends.
    pub(crate) fn note_send(
        &self,
        (reference, kind): (Reference, AlarmKind),
        address: Option<IpAddr>,
        noted: impl FnOnce() -> Noted,
    ) {
        let mut unstored = self.lock();
        let alarm = unstored.alarms.entry((reference, kind)).or_default();
        alarm.merge(if alarm.examples.len() < EXAMPLES_MAX {
            noted()
        } else {
            Noted { count: 1, address, ..Noted::default() }
        });
    }

    fn count(&self, reference: Reference, reason: &'static str, n: i64) {
        *self.lock().refusals.entry((reference, reason)).or_default() += n;
    }

    /// Notes a stored live message to an international number. Only the first one of a day can be
    /// the first one in a long time.
    pub(crate) fn note_international(
        &self,
        reference: Reference,
        day: i64,
        noted: impl FnOnce() -> Noted,
    ) {
        let mut days = self.international.lock().unwrap_or_else(PoisonError::into_inner);
        if days.insert(reference, day).is_none_or(|last| last < day) {
            drop(days);
            self.note(reference, AlarmKind::FirstInternational, noted());
        }
    }
}

impl Noted {
    /// `masked` is a masked number, and `number` the whole one as carriers get it.
    pub(crate) fn of_number(masked: String, number: &str, address: Option<IpAddr>) -> Self {
        let country = country_code_of(number);
        Self { count: 1, examples: vec![masked], address, country, ..Self::default() }
    }

    fn merge(&mut self, more: Self) {
        self.count += more.count;
        self.address = more.address.or(self.address);
        self.leak = self.leak.or(more.leak);
        self.country = self.country.or(more.country);
        self.outcomes = self.outcomes.or(more.outcomes);
        for example in more.examples {
            if self.examples.len() < EXAMPLES_MAX && !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }
}

impl Applications<'_> {
    /// Notes a call whose key was valid. `reason` is why it was refused.
    pub fn note_origin(&self, key: &ApiKey, origin: Origin, reason: Option<Reason>) {
        let (reference, Origin { address, leak }) = (key.reference(), origin);
        if leak.is_some() && key.kind() == KeyKind::Live {
            let noted = Noted { count: 1, address, leak, ..Noted::default() };
            self.inner.alarms.note(reference, AlarmKind::LeakedKey, noted);
        }
        if let Some(reason) = reason.filter(|reason| SendLimits::REASONS.contains(reason)) {
            self.inner.alarms.count(reference, reason.as_str(), 1);
        }
    }

    /// Stores the alarms and the refusals that were noted since the last time, with their mails and
    /// events.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` if the database can't be written. Alarms that weren't stored are
    /// attempted again the next time. So are refusals, except those that may have been counted.
    pub async fn store_alarms(&self) -> Result<()> {
        let judged = self.judge_countries().await;
        let Unstored { alarms, refusals } = std::mem::take(&mut *self.inner.alarms.lock());
        let mut done = judged;
        for ((reference, kind), noted) in alarms {
            if let Err(error) = self.store_alarm(reference, kind, noted.clone()).await {
                self.inner.alarms.note(reference, kind, noted);
                done = done.and(Err(error));
            }
        }
        for ((reference, reason), n) in refusals {
            if let Err(error) = self.count_refusals(reference, reason, n).await {
                if !error.may_be_under_way() {
                    self.inner.alarms.count(reference, reason, n);
                }
                done = done.and(Err(error));
            }
        }
        done
    }

    async fn count_refusals(
        &self,
        reference: Reference,
        reason: &'static str,
        n: i64,
    ) -> Result<()> {
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let Some(row) = applications::keys_by_reference(tx, reference).await? else {
                    return Ok(());
                };
                alarms::count(tx, row.id, (reason, n), now.day()).await
            }),
        )
        .await
    }

    async fn store_alarm(&self, reference: Reference, kind: AlarmKind, noted: Noted) -> Result<()> {
        let service = self.0.clone();
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let Some(row) = applications::keys_by_reference(tx, reference).await? else {
                    return Ok(());
                };
                if !is_meant(tx, kind, &row, now).await? {
                    return Ok(());
                }
                let example = noted.examples.join(", ");
                let detail = detail(&service, kind, &row, &noted);
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
                let mail = texts::alarm(reference, &alarm, now);
                let recipient = mail::Recipient::of_account(owner.account_id, &owner.email);
                mail::put(tx, recipient, &mail, now).await?;
                let example = noted.examples.first().map(String::as_str);
                let (count, detail) = (noted.count, detail.as_str());
                let cause = Cause::LimitAlarm { kind, count, example, detail, at: now };
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
        let mut conn = self.read_of(reference).await?;
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
        let mut conn = self.read_of(reference).await?;
        let row = owned(&mut conn, account_id, reference).await?;
        alarms::counts(&mut conn, row.id, self.now().day() - SHOWN_DAYS + 1).await
    }
}

/// Whether the owner wants an alarm of this kind, and its reason still holds.
async fn is_meant(tx: &mut Tx<'_>, kind: AlarmKind, row: &KeyRow, now: Timestamp) -> Result<bool> {
    let limits = row.limits();
    Ok(match kind {
        AlarmKind::FirstInternational => {
            alarms::is_first_international(tx, row.id, now.day(), INTERNATIONAL_DAYS).await?
        }
        AlarmKind::TrafficPumping => limits.traffic_pumping != Guard::Off,
        AlarmKind::LeakedKey => limits.leaked_key != Guard::Off,
        AlarmKind::SpendPerDay => limits.is_nearly_spent(row.spent_on(spend_day(row, now))),
    })
}

/// If an alarm of this kind was stored at or after the returned time, a further one only raises its
/// count.
fn repeated_since(kind: AlarmKind, row: &KeyRow, now: Timestamp) -> Timestamp {
    match kind {
        AlarmKind::SpendPerDay => zones::start_of_today(row.limits().zone.as_deref(), now),
        AlarmKind::TrafficPumping | AlarmKind::LeakedKey | AlarmKind::FirstInternational => {
            now.plus_ms(-REPEATED_MS)
        }
    }
}

/// Describes an alarm for its owner.
fn detail(service: &Service, kind: AlarmKind, row: &KeyRow, noted: &Noted) -> String {
    let limits = row.limits();
    let seen = match kind {
        AlarmKind::TrafficPumping => pumping_detail(limits.traffic_pumping_messages, noted),
        AlarmKind::LeakedKey => noted.leak.unwrap_or(Leak::Browser).sentence().to_owned(),
        AlarmKind::SpendPerDay => {
            let max = limits.spend_per_day.unwrap_or_default().shown();
            let what = match noted.country {
                Some(_) => format!("A message to {}", country(noted)),
                None => "A file".to_owned(),
            };
            format!("{what} reached 80 % of the {max} that may be spent on a day.")
        }
        AlarmKind::FirstInternational => format!(
            "The first message in at least {INTERNATIONAL_DAYS} days to a number outside {} went \
             to {}.",
            HomeCountry::of_code(service.country_code()),
            country(noted)
        ),
    };
    let from = match (kind, noted.address) {
        (_, None) => String::new(),
        (AlarmKind::LeakedKey, Some(address)) => format!(" It came from {address}."),
        (_, Some(address)) => format!(" The last request came from {address}."),
    };
    format!("{seen}{from}")
}

fn pumping_detail(max: u32, noted: &Noted) -> String {
    let within = format!("More than {max} messages within 10 minutes went to");
    match noted.outcomes {
        Some(CountryOutcomes { ended, delivered, .. }) => format!(
            "{within} {}, where only {delivered} of the {ended} messages that ended within the \
             last hour were delivered.",
            country(noted)
        ),
        None => format!(
            "{within} numbers in {} that differ only in their last three digits.",
            country(noted)
        ),
    }
}

/// Returns the name of the recipients' country.
fn country(noted: &Noted) -> String {
    let name = |code| HomeCountry::of_code(code).to_string();
    noted.country.map_or_else(|| "an unknown country".to_owned(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_describes_no_more_sends_than_it_shows() {
        let (alarms, mut described) = (Alarms::default(), 0);
        let noted_for = (Reference::parse("012345").unwrap(), AlarmKind::SpendPerDay);
        for last in 1..=9 {
            let address = Some(IpAddr::from([192, 0, 2, last]));
            alarms.note_send(noted_for, address, || {
                described += 1;
                Noted::of_number(format!("+266 …{last}"), "26657000001", address)
            });
        }
        let noted = alarms.lock().alarms[&noted_for].clone();
        assert_eq!((described, noted.examples.len(), noted.count), (3, 3, 9));
        assert_eq!(noted.address, Some(IpAddr::from([192, 0, 2, 9])));
    }
}
