//! Makes message ids: milliseconds, node, count within the millisecond.

use std::sync::{Mutex, PoisonError};

use domain::{Timestamp, ids};

/// Ids that only grow, whatever the clock does.
pub(crate) struct IdSource {
    last: Mutex<i64>,
}

/// Ids of one millisecond and one node.
const IDS_PER_MS: i64 = 1 << 11;
/// The one process that serves a SQLite database is node 0.
const NODE: i64 = 0;

impl IdSource {
    /// Goes on after the greatest id that is stored, in case the clock was set back since.
    pub(crate) fn after(last: i64) -> Self {
        Self {
            last: Mutex::new(last),
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
}
