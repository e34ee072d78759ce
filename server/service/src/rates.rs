//! Requests per second and key.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::{ApiKey, KeyKind, Reference, Timestamp};

/// A request in the bucket's unit: what flows in within a second is the limit times this.
const REQUEST: i64 = 1000;

/// What a key may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    /// Requests per second, and at once.
    pub limit: u32,
    /// Requests that may come now.
    pub remaining: u32,
    /// Milliseconds until all of the limit is there again.
    pub reset_ms: i64,
}

/// A bucket for each key: it holds the requests of one second and fills again within one.
pub(crate) struct Rates {
    limit: Option<u32>,
    buckets: Mutex<HashMap<(Reference, KeyKind), Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    level: i64,
    at: Timestamp,
}

impl Rates {
    /// Without a limit nothing is counted.
    pub(crate) fn new(limit: Option<u32>) -> Self {
        Self {
            limit,
            buckets: Mutex::default(),
        }
    }

    /// Takes a request out of a good key's; false when there is none left.
    pub(crate) fn take(&self, reference: Reference, kind: KeyKind, now: Timestamp) -> bool {
        let Some(limit) = self.limit else { return true };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets
            .entry((reference, kind))
            .or_insert_with(|| Bucket::full(limit, now));
        bucket.fill(limit, now);
        let left = bucket.level - REQUEST;
        if left >= 0 {
            bucket.level = left;
        }
        left >= 0
    }

    pub(crate) fn state(&self, key: &ApiKey, now: Timestamp) -> Option<RateState> {
        let limit = self.limit?;
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bucket = buckets
            .get(&(key.reference(), key.kind()))
            .copied()
            .unwrap_or_else(|| Bucket::full(limit, now));
        bucket.fill(limit, now);
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

impl Bucket {
    fn full(limit: u32, now: Timestamp) -> Self {
        let level = i64::from(limit) * REQUEST;
        Self { level, at: now }
    }

    /// Adds what flowed in since; a clock that was set back adds nothing.
    fn fill(&mut self, limit: u32, now: Timestamp) {
        let passed_ms = now.ms_since(self.at).clamp(0, 1000);
        let full = i64::from(limit) * REQUEST;
        // The limit times REQUEST per second is the limit per millisecond, as REQUEST is 1000.
        self.level = (self.level + passed_ms * i64::from(limit)).min(full);
        self.at = now;
    }
}
