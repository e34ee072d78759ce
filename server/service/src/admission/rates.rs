//! Rate limits: requests per second and key.
//!
//! If several processes serve, they share the counts in the database. Before a process judges
//! sends, it takes a request from the shared bucket for each send, as long as the key has requests
//! left.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use domain::{ApiKey, KeyKind, Reference, Timestamp};

use crate::Messages;
use store::error::Result;
use store::query::Conn;
use store::shared;

/// The amount that one request takes from a bucket. Each second, a bucket gains the limit times
/// this amount.
const REQUEST: i64 = 1000;

/// The state of a key's rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    /// The maximum number of requests per second, and at once.
    pub limit: u32,
    /// How many requests the key may make now.
    pub remaining: u32,
    /// Milliseconds until the whole limit is available again.
    pub reset_ms: i64,
}

/// A bucket for each key. It holds the requests of one second and refills within a second.
pub(crate) struct Rates {
    limit: Option<u32>,
    /// Whether processes share the counts in the database.
    shared: bool,
    buckets: Mutex<HashMap<RateKey, Bucket>>,
}

/// The API key that requests are counted for.
pub(crate) type RateKey = (Reference, KeyKind);

/// The requests that were taken from the shared buckets for sends that are about to be judged.
#[derive(Clone, Default)]
pub(crate) struct Allowance(BTreeMap<RateKey, i64>);

/// The size and the refill rate of a bucket.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// The number of requests in a full bucket.
    pub(crate) at_once: u32,
    pub(crate) per_second: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Bucket {
    level: i64,
    at: Timestamp,
}

impl Rates {
    /// Creates the buckets. Without a limit, nothing is counted.
    pub(crate) fn new(limit: Option<u32>, shared: bool) -> Self {
        Self { limit, shared: shared && limit.is_some(), buckets: Mutex::default() }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Stores the level of a key's shared bucket, in thousandths of a request.
    fn note(&self, key: RateKey, level: i64, now: Timestamp) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.insert(key, Bucket { level, at: now });
    }

    /// Takes a request out of a valid key's bucket. Returns false if none is left.
    pub(crate) fn take(&self, reference: Reference, kind: KeyKind, now: Timestamp) -> bool {
        let Some(limit) = self.limit else { return true };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket =
            buckets.entry((reference, kind)).or_insert_with(|| Bucket::full(Pace::of(limit), now));
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
            reset_ms: (missing * 1000).div_euclid(i64::from(limit) * REQUEST).max(0),
        })
    }
}

impl Messages<'_> {
    /// Takes a request out of a valid key's bucket, in memory or in the database. Returns false if
    /// none is left.
    pub(crate) async fn take_one(&self, key: RateKey) -> Result<bool> {
        let now = self.now();
        if !self.inner.rates.shared {
            return Ok(self.inner.rates.take(key.0, key.1, now));
        }
        let mut conn = self.store().read().await?;
        Ok(self.take_shared(&mut conn, key, 1, now).await? == 1)
    }

    /// Takes a request for each of these keys, as long as requests are left, and adds them to an
    /// allowance. If this fails midway, the allowance has the requests that were already taken.
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

    /// Returns the unused requests of an allowance to their keys' buckets.
    pub(crate) async fn return_unused(
        &self,
        conn: Conn<'_>,
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
        conn: Conn<'_>,
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
    /// Returns how many requests are left for a key.
    pub(crate) fn left(&self, key: RateKey) -> i64 {
        self.0.get(&key).copied().unwrap_or(0)
    }

    /// Returns the keys that this allowance has too few requests for, once per missing request.
    pub(crate) fn missing(&self, wanted: Vec<RateKey>) -> Vec<RateKey> {
        let mut left = self.clone();
        wanted.into_iter().filter(|key| !left.take(*key)).collect()
    }

    /// Uses one of a key's requests. Returns false if none is left.
    pub(crate) fn take(&mut self, key: RateKey) -> bool {
        let left = self.0.get_mut(&key).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }
}

impl Pace {
    /// Returns the pace of a limit: the bucket holds the requests of one second.
    const fn of(limit: u32) -> Self {
        Self { at_once: limit, per_second: limit }
    }
}

impl Bucket {
    pub(crate) fn full(pace: Pace, now: Timestamp) -> Self {
        let level = i64::from(pace.at_once) * REQUEST;
        Self { level, at: now }
    }

    /// Takes a request. Returns false if none is left.
    pub(crate) fn take(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.fill(pace, now);
        let left = self.level - REQUEST;
        if left >= 0 {
            self.level = left;
        }
        left >= 0
    }

    /// Returns the seconds until the next request is available, rounded up.
    pub(crate) fn wait_s(&self, pace: Pace) -> i64 {
        let flow = i64::from(pace.per_second) * REQUEST;
        ((REQUEST - self.level).max(0) + flow - 1) / flow
    }

    pub(crate) fn is_full(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.fill(pace, now);
        self.level >= i64::from(pace.at_once) * REQUEST
    }

    /// Adds the inflow since the last call. Adds nothing if the clock was set back.
    fn fill(&mut self, pace: Pace, now: Timestamp) {
        let passed_ms = now.ms_since(self.at).max(0);
        let full = i64::from(pace.at_once) * REQUEST;
        // `REQUEST` is 1000 and a second has 1000 milliseconds, so each millisecond adds
        // `per_second` to the level.
        let flow = passed_ms.saturating_mul(i64::from(pace.per_second));
        self.level = self.level.saturating_add(flow).min(full);
        self.at = now;
    }
}
