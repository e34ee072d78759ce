//! Detects traffic pumping by counting messages to similar numbers. Each process counts the
//! messages that it has stored. A process that has counted many also reads how many the other
//! processes stored. Messages to a country are judged by the stored messages of all processes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::home_country::country_code_of;
use domain::pumping::{CountryOutcomes, RecentCount, block_of, neighbourhood_of};
use domain::{AlarmKind, ApplicationId, Guard, Reference, SendLimits, Timestamp};

use crate::Applications;
use crate::applications::alarms::{EXAMPLES_MAX, Noted};
use store::applications;
use store::error::Result;
use store::recipients;

/// The maximum number of blocks of similar numbers. At this number, a process forgets the blocks
/// with at most one recent message. If more than half of the blocks are left, it forgets them all.
const BLOCKS_MAX: usize = 200_000;
/// How long a judgement about a country holds.
const JUDGED_MS: i64 = 30 * 1000;
/// A process that has counted the suspicious number divided by this reads the counts of the other
/// processes. If there are at most this many processes, at least one of them reaches that count.
const PROCESSES: u32 = 4;
/// How long neighbours of refused numbers are refused. Otherwise an attacker could continue with
/// the next block of numbers, and then with the one after it.
const NEIGHBOURS_MS: i64 = 10 * 60 * 1000;

/// The recipient of a message: its application, whether it is of the test key, and its number as
/// carriers get it.
pub(crate) type To<'a> = (ApplicationId, bool, &'a str);

/// The numbers of messages that this process has stored.
#[derive(Default)]
pub(crate) struct Pumping(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    blocks: HashMap<Key, Block>,
    /// When messages to a neighbourhood were last refused because of similar numbers.
    refused: HashMap<Key, Timestamp>,
    countries: HashMap<(ApplicationId, bool, &'static str), Country>,
}

/// The digits that similar numbers share, with the application and the kind of key that sends to
/// them.
type Key = (ApplicationId, bool, String);

/// The messages of an application to similar numbers.
#[derive(Default)]
struct Block {
    count: RecentCount,
    /// The number of messages of other processes, as of the last read. It counts only while this
    /// process has counted enough messages itself to keep reading it.
    others: u32,
}

/// The messages of an application to a country.
struct Country {
    reference: Reference,
    count: RecentCount,
    /// The address that the last request came from.
    address: Option<IpAddr>,
    /// Masked numbers of the last messages, the newest last.
    examples: Vec<String>,
    judged_at: Timestamp,
    /// The outcomes, if they are suspicious.
    suspicious: Option<CountryOutcomes>,
}

impl Pumping {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of recent messages to numbers like this one. `max` are allowed.
    fn similar(&self, (application, test, number): To<'_>, max: u32, now: Timestamp) -> u32 {
        let key = (application, test, block_of(number).to_owned());
        self.lock().blocks.get(&key).map_or(0, |block| block.at(max, now))
    }

    /// Returns whether the other processes' messages to numbers like this one matter.
    pub(crate) fn needs_others(
        &self,
        (application, test, number): To<'_>,
        max: u32,
        now: Timestamp,
    ) -> bool {
        let key = (application, test, block_of(number).to_owned());
        let counts = self.lock();
        counts.blocks.get(&key).is_some_and(|block| is_much(block.count.at(now), max))
    }

    /// Notes how many recent messages to numbers like this one are stored.
    pub(crate) fn set_stored(
        &self,
        (application, test, number): To<'_>,
        stored: u32,
        now: Timestamp,
    ) {
        let key = (application, test, block_of(number).to_owned());
        if let Some(block) = self.lock().blocks.get_mut(&key) {
            block.others = stored.saturating_sub(block.count.at(now));
        }
    }

    /// Returns whether a message to this number is traffic pumping. It is if `max` messages to
    /// similar numbers are stored or, with `more`, about to be stored. For some minutes after such
    /// a refusal, messages to neighbouring numbers are traffic pumping, too. So are all messages to
    /// a suspicious country.
    pub(crate) fn refuses(&self, to: To<'_>, max: u32, more: u32, now: Timestamp) -> bool {
        let (application, test, number) = to;
        let of = |part: &str| (application, test, part.to_owned());
        let mut counts = self.lock();
        let similar = counts.blocks.get(&of(block_of(number)));
        let similar = similar.map_or(0, |block| block.at(max, now));
        if similar.saturating_add(more) >= max {
            counts.refused.insert(of(neighbourhood_of(number)), now);
            return true;
        }
        let is_recent = |at: &Timestamp| (0..NEIGHBOURS_MS).contains(&now.ms_since(*at));
        let is_neighbour = !counts.refused.is_empty()
            && counts.refused.get(&of(neighbourhood_of(number))).is_some_and(is_recent);
        drop(counts);
        is_neighbour || self.suspicious_country(to).is_some()
    }

    /// Returns the outcomes of the messages to the number's country, if they are suspicious.
    fn suspicious_country(&self, (application, test, number): To<'_>) -> Option<CountryOutcomes> {
        let counts = self.lock();
        if counts.countries.is_empty() {
            return None;
        }
        let code = country_code_of(number)?;
        counts.countries.get(&(application, test, code))?.suspicious
    }

    /// Counts a stored message among those to similar numbers.
    fn add(&self, (application, test, number): To<'_>, now: Timestamp) {
        let mut counts = self.lock();
        let blocks = &mut counts.blocks;
        if blocks.len() >= BLOCKS_MAX {
            blocks.retain(|_, block| block.count.at(now) > 1);
            // Otherwise each of the next messages could search all blocks again.
            if blocks.len() > BLOCKS_MAX / 2 {
                blocks.clear();
            }
        }
        let key = (application, test, block_of(number).to_owned());
        blocks.entry(key).or_default().count.add(now);
    }

    /// Counts a stored message among those to its country.
    fn add_to_country(
        &self,
        reference: Reference,
        key: (ApplicationId, bool, &'static str),
        noted: Noted,
        now: Timestamp,
    ) {
        let mut counts = self.lock();
        let country = counts.countries.entry(key).or_insert_with(|| Country::new(reference));
        country.add(noted, now);
    }

    /// Forgets countries without recent messages, and old refusals. Returns the countries that
    /// weren't judged within [`JUDGED_MS`].
    fn due(&self, now: Timestamp) -> Vec<(ApplicationId, bool, &'static str, Reference)> {
        let mut counts = self.lock();
        counts.refused.retain(|_, at| now.ms_since(*at) < NEIGHBOURS_MS);
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

    /// Stores a judgement. If the country wasn't suspicious before and is now, returns what the
    /// alarm says.
    fn judge(
        &self,
        key: (ApplicationId, bool, &'static str),
        suspicious: Option<CountryOutcomes>,
        now: Timestamp,
    ) -> Option<Noted> {
        let mut counts = self.lock();
        let country = counts.countries.get_mut(&key)?;
        country.judged_at = now;
        let before = std::mem::replace(&mut country.suspicious, suspicious);
        let outcomes = suspicious.filter(|_| before.is_none())?;
        Some(Noted {
            count: outcomes.recent,
            examples: country.examples.clone(),
            address: country.address,
            country: Some(key.2),
            outcomes: suspicious,
            ..Noted::default()
        })
    }
}

impl Country {
    fn new(reference: Reference) -> Self {
        Self {
            reference,
            count: RecentCount::default(),
            address: None,
            examples: Vec::new(),
            judged_at: Timestamp::from_unix_ms(0),
            suspicious: None,
        }
    }

    fn add(&mut self, noted: Noted, now: Timestamp) {
        if self.count.at(now) == 0 {
            // An alarm must not show old messages.
            (self.address, self.examples) = (None, Vec::new());
        }
        self.count.add(now);
        self.address = noted.address.or(self.address);
        for example in noted.examples {
            self.examples.retain(|other| *other != example);
            self.examples.push(example);
        }
        let dropped = self.examples.len().saturating_sub(EXAMPLES_MAX);
        self.examples.drain(..dropped);
    }
}

/// Returns whether a process has counted so many messages that those of other processes matter.
const fn is_much(count: u32, max: u32) -> bool {
    count.saturating_mul(PROCESSES) > max
}

impl Block {
    fn at(&self, max: u32, now: Timestamp) -> u32 {
        let own = self.count.at(now);
        if is_much(own, max) { own.saturating_add(self.others) } else { own }
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
        noted: impl Fn() -> Noted,
    ) {
        if limits.traffic_pumping == Guard::Off {
            return;
        }
        let (pumping, now, home) = (&self.inner.pumping, self.now(), self.country_code());
        pumping.add(to, now);
        // Customers send most messages to their home country, where prices are low.
        if let Some(code) = country_code_of(to.2).filter(|code| *code != home) {
            pumping.add_to_country(reference, (to.0, to.1, code), noted(), now);
        }
        let outcomes = pumping.suspicious_country(to);
        let max = limits.traffic_pumping_messages;
        let is_block = pumping.similar(to, max, now) > max;
        if is_block || outcomes.is_some() {
            let noted = Noted { outcomes, ..noted() };
            self.inner.alarms.note(reference, AlarmKind::TrafficPumping, noted);
        }
    }

    /// Judges countries by the stored messages, if this process has counted many messages to them.
    /// Notes an alarm for each country that becomes suspicious.
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
            if is_much(count, max) {
                let outcomes =
                    recipients::to_country(&mut conn, application, test, code, now).await?;
                suspicious = Some(outcomes).filter(|outcomes| outcomes.is_suspicious(max));
            }
            if let Some(noted) = self.inner.pumping.judge(key, suspicious, now) {
                self.inner.alarms.note(reference, AlarmKind::TrafficPumping, noted);
            }
        }
        Ok(())
    }
}
