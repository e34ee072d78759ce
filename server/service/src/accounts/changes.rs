//! How many changes an account may make through the portal: each changing form takes one out of the
//! account's bucket, before anything else is done for it. Each process has buckets of its own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::Timestamp;
use domain::records::AccountRecord;

use crate::admission::rates::{Bucket, Pace};
use crate::error::{Refusal, Result};
use crate::{Limits, Service};

/// How many times as much as a customer a member of staff may change: the desk decides many cases
/// in a row.
const TIMES_FOR_STAFF: u32 = 10;
/// From this many buckets on, those that are full again are dropped.
const BUCKETS_SWEPT: usize = 10_000;

/// A bucket for each account that changed something lately.
pub(crate) struct Changes {
    customers: Pace,
    staff: Pace,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    by_account: HashMap<i64, (Bucket, Pace)>,
    /// How many buckets the last sweep left.
    left: usize,
}

impl Changes {
    pub(crate) fn new(limits: &Limits) -> Self {
        let pace = |times: u32| Pace {
            at_once: limits.changes_at_once.saturating_mul(times),
            per_second: limits.changes_per_second.saturating_mul(times),
        };
        Self {
            customers: pace(1),
            staff: pace(TIMES_FOR_STAFF),
            buckets: Mutex::default(),
        }
    }

    /// Takes a change; how many seconds to wait where none is left.
    fn take(
        &self,
        account_id: i64,
        is_staff: bool,
        now: Timestamp,
    ) -> std::result::Result<(), i64> {
        let pace = if is_staff { self.staff } else { self.customers };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.sweep(now);
        let (bucket, of) = (buckets.by_account)
            .entry(account_id)
            .or_insert_with(|| (Bucket::full(pace, now), pace));
        *of = pace;
        if bucket.take(pace, now) {
            Ok(())
        } else {
            Err(bucket.wait_s(pace))
        }
    }
}

impl Buckets {
    /// Drops full buckets, each time that there are twice as many as the last sweep left.
    fn sweep(&mut self, now: Timestamp) {
        if self.by_account.len() >= BUCKETS_SWEPT.max(2 * self.left) {
            (self.by_account).retain(|_, (bucket, pace)| !bucket.is_full(*pace, now));
            self.left = self.by_account.len();
        }
    }
}

impl Service {
    /// Counts a change that an account asks for through the portal.
    ///
    /// # Errors
    /// `TooManyChanges` when the account has made as many as it may.
    pub fn take_change(&self, account: &AccountRecord) -> Result<()> {
        let taken = (self.inner.changes).take(account.id, account.staff, self.now());
        taken.map_err(|retry_after_s| Refusal::TooManyChanges { retry_after_s }.into())
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::{BUCKETS_SWEPT, Changes};
    use crate::Limits;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(1_000_000_000_000 + ms)
    }

    /// How many changes are let through at this time.
    fn taken(changes: &Changes, (id, is_staff): (i64, bool), ms: i64) -> usize {
        let attempts = 0..1_000;
        attempts
            .filter(|_| changes.take(id, is_staff, at(ms)).is_ok())
            .count()
    }

    #[test]
    fn each_account_has_a_bucket_that_fills_by_the_second() {
        let changes = Changes::new(&Limits::default());
        let (one, other, staff) = ((1, false), (2, false), (3, true));
        assert_eq!(taken(&changes, one, 0), 30);
        assert_eq!(changes.take(1, false, at(0)), Err(1));
        assert_eq!(taken(&changes, one, 999), 0);
        assert_eq!(taken(&changes, one, 2_000), 2);
        assert_eq!(taken(&changes, other, 0), 30);
        assert_eq!(taken(&changes, staff, 0), 300);
        assert_eq!(taken(&changes, staff, 1_000), 10);
        // However long nothing was changed, and whatever the clock does, it holds no more.
        assert_eq!(taken(&changes, one, i64::from(i32::MAX)), 30);
        assert_eq!(taken(&changes, one, 0), 0);
    }

    #[test]
    fn full_buckets_are_forgotten_and_empty_ones_are_not() {
        let changes = Changes::new(&Limits::default());
        assert_eq!(taken(&changes, (0, false), 0), 30);
        for id in 1..BUCKETS_SWEPT {
            changes.take(id.cast_signed() as i64, false, at(0)).unwrap();
        }
        changes.take(-1, false, at(1_500)).unwrap();
        assert_eq!(changes.buckets.lock().unwrap().by_account.len(), 2);
        assert_eq!(taken(&changes, (0, false), 1_500), 1);
    }
}
