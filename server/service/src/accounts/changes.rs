//! Limits how many changes an account may make through the portal. Each form that changes something
//! takes a token from the account's bucket before it does any other work. Each process has its own
//! buckets.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::Timestamp;
use domain::records::AccountRecord;

use crate::admission::rates::{Bucket, Pace};
use crate::{Accounts, Limits};
use store::error::{Refusal, Result};

/// The limit of a staff member, as a multiple of a customer's: staff decide many cases in a row.
const TIMES_FOR_STAFF: u32 = 10;
/// [`Buckets::sweep`] drops full buckets once there are this many.
const BUCKETS_SWEPT: usize = 10_000;

/// The buckets of the accounts that changed something recently.
pub(crate) struct Changes {
    customers: Pace,
    staff: Pace,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    by_account: HashMap<i64, (Bucket, Pace)>,
    /// The number of buckets after the last sweep.
    left: usize,
}

impl Changes {
    pub(crate) fn new(limits: &Limits) -> Self {
        // A customer's bucket gains one change per second.
        let pace = |times: u32| Pace {
            at_once: limits.changes_at_once.saturating_mul(times),
            per_second: times,
        };
        Self { customers: pace(1), staff: pace(TIMES_FOR_STAFF), buckets: Mutex::default() }
    }

    /// Takes a token. Fails with the number of seconds to wait if none is left.
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
        if bucket.take(pace, now) { Ok(()) } else { Err(bucket.wait_s(pace)) }
    }
}

impl Buckets {
    /// Drops full buckets whenever there are twice as many buckets as after the last sweep.
    fn sweep(&mut self, now: Timestamp) {
        if self.by_account.len() >= BUCKETS_SWEPT.max(2 * self.left) {
            (self.by_account).retain(|_, (bucket, pace)| !bucket.is_full(*pace, now));
            self.left = self.by_account.len();
        }
    }
}

impl Accounts<'_> {
    /// Counts a change that an account makes through the portal.
    ///
    /// # Errors
    /// `TooManyChanges` if the account's bucket is empty.
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

    /// Returns how many changes are accepted at this time.
    fn taken(changes: &Changes, (id, is_staff): (i64, bool), ms: i64) -> usize {
        let attempts = 0..1_000;
        attempts.filter(|_| changes.take(id, is_staff, at(ms)).is_ok()).count()
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
        // A bucket never holds more than its maximum, even after a long pause. It gains nothing
        // when the clock is set back.
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
