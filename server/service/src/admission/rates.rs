//! Requests per second and key. Where several processes serve, they count requests together, in the
//! database: before sends are judged, a request is taken for each send, as far as its key has
//! requests left.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use domain::{ApiKey, KeyKind, Reference, Timestamp};

use crate::Service;
use crate::error::Result;
use crate::store::query::Connection;
use crate::store::shared;

/// One request in the unit of a bucket: what flows in within a second is the limit times this.
const REQUEST: i64 = 1000;

/// How many requests a key may still make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    /// The most requests per second, and at once.
    pub limit: u32,
    /// How many requests may come now.
    pub remaining: u32,
    /// Milliseconds until the whole limit is there again.
    pub reset_ms: i64,
}

/// A bucket for each key, which holds the requests of one second and fills again within a second.
pub(crate) struct Rates {
    limit: Option<u32>,
    /// Whether requests are counted together with other processes.
    shared: bool,
    buckets: Mutex<HashMap<RateKey, Bucket>>,
}

/// The key that requests are counted for.
pub(crate) type RateKey = (Reference, KeyKind);

/// Requests that were taken for keys whose sends are about to be judged.
#[derive(Clone, Default)]
pub(crate) struct Allowance(BTreeMap<RateKey, i64>);

/// How many requests a bucket lets through.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// The most at once: what a full bucket holds.
    pub(crate) at_once: u32,
    pub(crate) per_second: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Bucket {
    level: i64,
    at: Timestamp,
}

impl Rates {
    /// Makes the buckets; without a limit nothing is counted.
    pub(crate) fn new(limit: Option<u32>, shared: bool) -> Self {
        Self {
            limit,
            shared: shared && limit.is_some(),
            buckets: Mutex::default(),
        }
    }

    /// Whether processes count requests together.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Stores what all processes together have left of a key's requests, in thousandths of a
    /// request.
    fn note(&self, key: RateKey, level: i64, now: Timestamp) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.insert(key, Bucket { level, at: now });
    }

    /// Takes a request out of a valid key's bucket; false when none is left.
    pub(crate) fn take(&self, reference: Reference, kind: KeyKind, now: Timestamp) -> bool {
        let Some(limit) = self.limit else { return true };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets
            .entry((reference, kind))
            .or_insert_with(|| Bucket::full(Pace::of(limit), now));
        bucket.take(Pace::of(limit), now)
    }

    pub(crate) fn state(&self, key: &ApiKey, now: Timestamp) -> Option<RateState> {
        let limit = self.limit?;
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bucket = buckets
            .get(&(key.reference(), key.kind()))
            .copied()
            .unwrap_or_else(|| Bucket::full(Pace::of(limit), now));
        bucket.fill(Pace::of(limit), now);
        let missing = i64::from(limit) * REQUEST - bucket.level;
        Some(RateState {
            limit,
            remaining: u32::try_from(bucket.level / REQUEST).unwrap_or(0),
            reset_ms: (missing * 1000)
                .div_euclid(i64::from(limit) * REQUEST)
                .max(0),
        })
    }
}

impl Service {
    /// Takes a request out of a valid key's bucket, here or in the database; false when none is
    /// left.
    pub(crate) async fn take_one(&self, key: RateKey) -> Result<bool> {
        let now = self.now();
        if !self.inner.rates.shared {
            return Ok(self.inner.rates.take(key.0, key.1, now));
        }
        let mut conn = self.store().read().await?;
        Ok(self.take_shared(&mut conn, key, 1, now).await? == 1)
    }

    /// Takes a request for each of these keys, as far as requests are left, and adds it to an
    /// allowance. The allowance has what was taken even when this fails midway.
    pub(crate) async fn take_for(
        &self,
        keys: Vec<RateKey>,
        allowance: &mut Allowance,
    ) -> Result<()> {
        let mut wanted: BTreeMap<RateKey, i64> = BTreeMap::new();
        for key in keys {
            *wanted.entry(key).or_default() += 1;
        }
        let mut conn = self.store().read().await?;
        for (key, count) in wanted {
            let taken = self.take_shared(&mut conn, key, count, self.now()).await?;
            *allowance.0.entry(key).or_default() += taken;
        }
        Ok(())
    }

    /// Gives the requests of an allowance that weren't used back to their keys.
    pub(crate) async fn give_back(
        &self,
        conn: &mut dyn Connection,
        allowance: Allowance,
        now: Timestamp,
    ) -> Result<()> {
        for (key, left) in allowance.0.into_iter().filter(|(_, left)| *left > 0) {
            self.take_shared(conn, key, -left, now).await?;
        }
        Ok(())
    }

    async fn take_shared(
        &self,
        conn: &mut dyn Connection,
        key: RateKey,
        wanted: i64,
        now: Timestamp,
    ) -> Result<i64> {
        let limit = self.inner.rates.limit.unwrap_or(u32::MAX);
        let requests = shared::take_requests(conn, key, wanted, limit, now).await?;
        self.inner.rates.note(key, requests.level, now);
        Ok(requests.taken)
    }
}

impl Allowance {
    /// How many of a key's requests are left.
    pub(crate) fn left(&self, key: RateKey) -> i64 {
        self.0.get(&key).copied().unwrap_or(0)
    }

    /// The keys that these requests would be too few for, once for each request that is missing.
    pub(crate) fn missing(&self, wanted: Vec<RateKey>) -> Vec<RateKey> {
        let mut left = self.clone();
        wanted.into_iter().filter(|key| !left.take(*key)).collect()
    }

    /// Uses one of a key's requests; false when none is left.
    pub(crate) fn take(&mut self, key: RateKey) -> bool {
        let left = self.0.get_mut(&key).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }
}

impl Pace {
    /// A second's requests at once.
    const fn of(limit: u32) -> Self {
        Self {
            at_once: limit,
            per_second: limit,
        }
    }
}

impl Bucket {
    pub(crate) fn full(pace: Pace, now: Timestamp) -> Self {
        let level = i64::from(pace.at_once) * REQUEST;
        Self { level, at: now }
    }

    /// Takes a request; false when none is left.
    pub(crate) fn take(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.fill(pace, now);
        let left = self.level - REQUEST;
        if left >= 0 {
            self.level = left;
        }
        left >= 0
    }

    /// Whole seconds until the next request may come, rounded up.
    pub(crate) fn wait_s(&self, pace: Pace) -> i64 {
        let flow = i64::from(pace.per_second) * REQUEST;
        ((REQUEST - self.level).max(0) + flow - 1) / flow
    }

    pub(crate) fn is_full(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.fill(pace, now);
        self.level >= i64::from(pace.at_once) * REQUEST
    }

    /// Adds what flowed in since the last time; a clock that was set back adds nothing.
    fn fill(&mut self, pace: Pace, now: Timestamp) {
        let passed_ms = now.ms_since(self.at).max(0);
        let full = i64::from(pace.at_once) * REQUEST;
        // The limit times REQUEST per second is the limit per millisecond, as REQUEST is 1000.
        let flow = passed_ms.saturating_mul(i64::from(pace.per_second));
        self.level = self.level.saturating_add(flow).min(full);
        self.at = now;
    }
}
