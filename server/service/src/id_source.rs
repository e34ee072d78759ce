//! Makes ids: milliseconds, node, count within the millisecond.

use std::sync::{Mutex, PoisonError};

use domain::{Timestamp, ids};

/// Ids that only grow, whatever the clock does.
pub(crate) struct IdSource {
    last: Mutex<i64>,
    /// Of a batch's messages, which have a node to themselves: a million ids take half a second's, and
    /// single sends meanwhile must not be dated into the future.
    last_of_batches: Mutex<i64>,
}

/// Ids of one millisecond and one node.
const IDS_PER_MS: i64 = 1 << 11;
/// The one process that serves a SQLite database is node 0.
const NODE: i64 = 0;
/// Where its batches' messages count.
const BATCH_NODE: i64 = IDS_PER_MS;

impl IdSource {
    /// Goes on after the greatest ids that are stored, in case the clock was set back since.
    pub(crate) fn after(last: i64, last_of_batches: i64) -> Self {
        // The millisecond is left alone, whoever made that id.
        let end = ids::compose_id(ids::id_unix_ms(last), NODE) | (IDS_PER_MS - 1);
        Self {
            last: Mutex::new(end),
            last_of_batches: Mutex::new(last_of_batches),
        }
    }

    /// The next id. When a millisecond's ids are used up it takes the next millisecond's.
    pub(crate) fn next(&self, now: Timestamp) -> i64 {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = ids::compose_id(now.unix_ms(), NODE);
        let following = *last + 1;
        let following = if following % IDS_PER_MS == 0 {
            ids::compose_id(ids::id_unix_ms(*last) + 1, NODE)
        } else {
            following
        };
        *last = fresh.max(following);
        *last
    }

    /// The first and the last of so many ids, which follow each other as [`ids::nth_id`] says.
    pub(crate) fn range(&self, now: Timestamp, count: i64) -> (i64, i64) {
        let mut last = self
            .last_of_batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Not before messages that exist: what is far enough below them counts as swept.
        let newest = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = now
            .unix_ms()
            .max(ids::id_unix_ms(*last) + 1)
            .max(ids::id_unix_ms(newest));
        let first = ids::compose_id(ms, BATCH_NODE);
        *last = ids::nth_id(first, count - 1);
        (first, *last)
    }
}
