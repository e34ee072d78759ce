//! Makes ids: milliseconds, node, count within the millisecond.

use std::sync::{Mutex, PoisonError};

use domain::{Timestamp, ids};

use crate::operations::nodes::SLOTS;

/// A source of ids that only grow, whatever the clock does.
pub(crate) struct IdSource {
    last: Mutex<i64>,
    /// The last id of a batch's messages, which have node numbers of their own: a million ids take
    /// those of half a second, and single sends meanwhile must not be dated into the future.
    last_of_batches: Mutex<i64>,
}

/// How many ids a node has in a millisecond.
const IDS_PER_MS: i64 = 1 << 11;

impl IdSource {
    /// Goes on after the greatest ids that are stored, since the clock may have been set back.
    pub(crate) fn after(last: i64, last_of_batches: i64) -> Self {
        // The rest of that millisecond is left unused, whichever node made the id.
        let end = ids::compose_id(ids::id_unix_ms(last) + 1, 0) - 1;
        Self {
            last: Mutex::new(end),
            last_of_batches: Mutex::new(last_of_batches),
        }
    }

    /// The next id of the process with this slot. When a millisecond's ids are used up, it is an id
    /// of the next millisecond.
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

    /// The first and the last of `count` ids, which follow each other as [`ids::nth_id`] says.
    pub(crate) fn range(&self, now: Timestamp, count: i64, slot: i64) -> (i64, i64) {
        let mut last = self
            .last_of_batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Not before the messages that exist: ids far enough below them count as swept.
        let newest = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = now
            .unix_ms()
            .max(ids::id_unix_ms(*last) + 1)
            .max(ids::id_unix_ms(newest));
        let first = ids::compose_id(ms, (SLOTS + slot) * IDS_PER_MS);
        *last = ids::nth_id(first, count - 1);
        (first, *last)
    }
}
