//! Generates IDs. An ID consists of milliseconds, the node, and a count within the millisecond.

use std::sync::{Mutex, PoisonError};

use domain::{Timestamp, ids};

use crate::operations::nodes::SLOTS;

/// A source of IDs that only ever increase, even if the clock is set back.
pub(crate) struct IdSource {
    last: Mutex<i64>,
    /// The last ID of any batch's messages. Batches have node numbers of their own, because a batch
    /// of a million messages uses up the IDs of half a second. Single sends must not get IDs from
    /// the future meanwhile.
    last_of_batches: Mutex<i64>,
}

/// The number of IDs that a node can generate per millisecond.
const IDS_PER_MS: i64 = 1 << 11;

impl IdSource {
    /// Continues after the greatest stored IDs, because the clock may have been set back.
    pub(crate) fn after(last: i64, last_of_batches: i64) -> Self {
        // Skips the rest of that millisecond, because another node may have generated `last`.
        let end = ids::compose_id(ids::id_unix_ms(last) + 1, 0) - 1;
        Self { last: Mutex::new(end), last_of_batches: Mutex::new(last_of_batches) }
    }

    /// Returns the next ID of the process with this slot. Continues with the next millisecond when
    /// the current one has no ID left.
    pub(crate) fn next(&self, now: Timestamp, slot: i64) -> i64 {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let first_of = |ms: i64| ids::compose_id(ms, slot * IDS_PER_MS);
        let last_ms = ids::id_unix_ms(*last);
        let following = (*last + 1).max(first_of(last_ms));
        let following = if following < first_of(last_ms) + IDS_PER_MS {
            following
        } else {
            first_of(last_ms + 1)
        };
        *last = first_of(now.unix_ms()).max(following);
        *last
    }

    /// Reserves `count` IDs and returns the first and the last of them. [`ids::nth_id`] returns the
    /// ones in between.
    pub(crate) fn range(&self, now: Timestamp, count: i64, slot: i64) -> (i64, i64) {
        let mut last = self.last_of_batches.lock().unwrap_or_else(PoisonError::into_inner);
        // Start no lower than the newest message: IDs below the sweep's mark count as final, and
        // the clock may have been set back.
        let newest = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = now.unix_ms().max(ids::id_unix_ms(*last) + 1).max(ids::id_unix_ms(newest));
        let first = ids::compose_id(ms, (SLOTS + slot) * IDS_PER_MS);
        *last = ids::nth_id(first, count - 1);
        (first, *last)
    }
}
