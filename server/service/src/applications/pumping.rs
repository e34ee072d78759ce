//! Counts of messages by which traffic pumping is recognised. Each process counts the messages that
//! it has stored. Messages to a country are judged by the stored messages of all processes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::home_country::country_code_of;
use domain::pumping::{CountryOutcomes, RecentCount, block_of};
use domain::{AlarmKind, ApplicationId, Guard, Reference, SendLimits, Timestamp};

use crate::Applications;
use crate::applications::alarms::Noted;
use store::applications;
use store::error::Result;
use store::recipients;

/// The number of blocks of similar numbers above which a process forgets those that got few
/// messages.
const BLOCKS_MAX: usize = 200_000;
/// How long a judgement about a country holds.
const JUDGED_MS: i64 = 30 * 1000;
/// A process has a country judged from this part of the suspicious number of messages on. So up to
/// this many processes can share the messages evenly, and still one of them notices.
const PROCESSES: u32 = 4;

/// The recipient of a message: its application, whether it is of the test key, and its number as
/// carriers get it.
pub(crate) type To<'a> = (ApplicationId, bool, &'a str);

/// The numbers of messages that this process has stored.
#[derive(Default)]
pub(crate) struct Pumping(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    blocks: HashMap<(ApplicationId, bool, String), RecentCount>,
    countries: HashMap<(ApplicationId, bool, &'static str), Country>,
}

/// The messages of an application to a country.
struct Country {
    reference: Reference,
    count: RecentCount,
    judged_at: Timestamp,
    /// The outcomes, if they are suspicious.
    suspicious: Option<CountryOutcomes>,
}

impl Pumping {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of recent messages to numbers like this one.
    pub(crate) fn similar(&self, (application, test, number): To<'_>, now: Timestamp) -> u32 {
        let key = (application, test, block_of(number).to_owned());
        self.lock().blocks.get(&key).map_or(0, |count| count.at(now))
    }

    /// Returns the outcomes of the messages to the number's country, if they are suspicious.
    pub(crate) fn suspicious_country(
        &self,
        (application, test, number): To<'_>,
    ) -> Option<CountryOutcomes> {
        let counts = self.lock();
        if counts.countries.is_empty() {
            return None;
        }
        let code = country_code_of(number)?;
        counts.countries.get(&(application, test, code))?.suspicious
    }

    /// Adds a stored message. `abroad` is the code of its number's country, unless that is the home
    /// country.
    fn add(
        &self,
        reference: Reference,
        (application, test, number): To<'_>,
        abroad: Option<&'static str>,
        now: Timestamp,
    ) {
        let mut counts = self.lock();
        let Counts { blocks, countries } = &mut *counts;
        if blocks.len() >= BLOCKS_MAX {
            blocks.retain(|_, count| count.at(now) > 1);
            // The next messages must not search all blocks again.
            if blocks.len() > BLOCKS_MAX / 2 {
                blocks.clear();
            }
        }
        let key = (application, test, block_of(number).to_owned());
        blocks.entry(key).or_default().add(now);
        if let Some(code) = abroad {
            let new = || Country {
                reference,
                count: RecentCount::default(),
                judged_at: Timestamp::from_unix_ms(0),
                suspicious: None,
            };
            countries.entry((application, test, code)).or_insert_with(new).count.add(now);
        }
    }

    /// Forgets countries without recent messages. Returns those with many, which must be judged.
    fn due(&self, now: Timestamp) -> Vec<(ApplicationId, bool, &'static str, Reference)> {
        let mut counts = self.lock();
        counts.countries.retain(|_, country| country.count.at(now) > 0);
        let countries = counts.countries.iter();
        let due = countries.filter(|(_, country)| now.ms_since(country.judged_at) >= JUDGED_MS);
        due.map(|((application, test, code), it)| (*application, *test, *code, it.reference))
            .collect()
    }

    /// Returns this process's number of recent messages to a country.
    fn to_country(&self, key: (ApplicationId, bool, &'static str), now: Timestamp) -> u32 {
        self.lock().countries.get(&key).map_or(0, |country| country.count.at(now))
    }

    /// Stores a judgement. Returns true if the country wasn't suspicious before, and is now.
    fn judge(
        &self,
        key: (ApplicationId, bool, &'static str),
        suspicious: Option<CountryOutcomes>,
        now: Timestamp,
    ) -> bool {
        self.lock().countries.get_mut(&key).is_some_and(|country| {
            country.judged_at = now;
            let before = std::mem::replace(&mut country.suspicious, suspicious);
            before.is_none() && suspicious.is_some()
        })
    }
}

impl Applications<'_> {
    /// Notes a stored message to a number. More messages to similar numbers than the limits allow,
    /// and messages to a suspicious country, cause an alarm. `noted` describes the message.
    pub(crate) fn watch_pumping(
        &self,
        reference: Reference,
        to: To<'_>,
        limits: &SendLimits,
        noted: impl FnOnce() -> Noted,
    ) {
        if limits.traffic_pumping == Guard::Off {
            return;
        }
        let (now, home) = (self.now(), self.country_code());
        // Customers send most messages to their home country, where prices are low.
        let abroad = country_code_of(to.2).filter(|code| *code != home);
        self.inner.pumping.add(reference, to, abroad, now);
        let outcomes = self.inner.pumping.suspicious_country(to);
        let is_block = self.inner.pumping.similar(to, now) > limits.traffic_pumping_messages;
        if is_block || outcomes.is_some() {
            let noted = Noted { outcomes, ..noted() };
            self.inner.alarms.note(reference, AlarmKind::TrafficPumping, noted);
        }
    }

    /// Judges the countries that got many messages by the stored messages, and notes an alarm for
    /// those that become suspicious.
    pub(crate) async fn judge_countries(&self) -> Result<()> {
        let now = self.now();
        for (application, test, code, reference) in self.inner.pumping.due(now) {
            let key = (application, test, code);
            let count = self.inner.pumping.to_country(key, now);
            let mut conn = self.store().read_at(self.shard_of(reference).await?).await?;
            let row = applications::keys_by_reference(&mut conn, reference).await?;
            let limits = row.as_ref().map(applications::KeyRow::limits);
            let max = limits.map_or(u32::MAX, |limits| limits.traffic_pumping_messages);
            let mut suspicious = None;
            if count.saturating_mul(PROCESSES) > max {
                let outcomes =
                    recipients::to_country(&mut conn, application, test, code, now).await?;
                suspicious = Some(outcomes).filter(|outcomes| outcomes.is_suspicious(max));
            }
            if self.inner.pumping.judge(key, suspicious, now)
                && let Some(outcomes) = suspicious
            {
                let noted = Noted {
                    count: outcomes.recent,
                    country: Some(code),
                    outcomes: suspicious,
                    ..Noted::default()
                };
                self.inner.alarms.note(reference, AlarmKind::TrafficPumping, noted);
            }
        }
        Ok(())
    }
}
