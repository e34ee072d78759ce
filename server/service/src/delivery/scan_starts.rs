//! Scan starts: where claims begin to search the queue. PostgreSQL's index of due rows keeps
//! entries of rows that left the queue as long as an open transaction could still see these rows.
//! Without a scan start, each claim would step over all of these entries.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::Timestamp;
use domain::ids::Shard;

use store::claims::{DueLimits, DueRow, ScanStart};

/// The interval between searches from the beginning. These find rows that another process locked
/// and released, and rows that were stored later than others with the same due time.
const FULL_SCAN: Duration = Duration::from_secs(10);
/// The maximum time between a row's `due_at` and the time when it is stored.
const STORED_WITHIN_MS: i64 = 500;

/// The scan starts by shard and carrier. SQLite's index has no such entries, so on SQLite no scan
/// start is kept and every search begins at the first row.
#[derive(Default)]
pub(crate) struct ScanStarts {
    carriers: Mutex<HashMap<(Shard, String), Known>>,
}

struct Known {
    scan_start: ScanStart,
    scanned_fully_at: Instant,
}

impl ScanStarts {
    /// Returns where the next search for a carrier's due rows begins.
    pub(crate) fn of(&self, shard: Shard, carrier: &str) -> ScanStart {
        let carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = carriers
            .get(&(shard, carrier.to_owned()))
            .filter(|known| known.scanned_fully_at.elapsed() < FULL_SCAN);
        known.map_or_else(ScanStart::default, |known| known.scan_start)
    }

    /// Removes the scan start of a carrier. While a carrier is drained, searches find nothing even
    /// if many rows are due, so they would move the scan start too far.
    pub(crate) fn forget(&self, carrier: &str) {
        let mut carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        carriers.retain(|(_, of), _| of != carrier);
    }

    /// Moves the scan start after a search. All rows that were due before it are claimed, or other
    /// processes have locked them.
    pub(crate) fn learn(
        &self,
        (shard, carrier): (Shard, &str),
        from: ScanStart,
        limits: DueLimits,
        found: &[DueRow],
        now: Timestamp,
    ) {
        let start = |of_batches: bool, limit: i64, from: i64| {
            // The search didn't cover rows of this kind.
            if limit <= 0 {
                return from;
            }
            let rows = || found.iter().filter(|row| row.of_batch == of_batches);
            let reached = i64::try_from(rows().count()).is_ok_and(|count| count >= limit);
            let last = rows().map(|row| row.due_at).max().filter(|_| reached);
            from.max(last.unwrap_or(now.unix_ms()) - STORED_WITHIN_MS)
        };
        let singles = found.iter().filter(|row| !row.of_batch).count();
        let left = limits.all - i64::try_from(singles).unwrap_or(limits.all);
        let scan_start = ScanStart {
            singles: start(false, limits.singles, from.singles),
            of_batches: start(true, left, from.of_batches),
        };
        let mut carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        let full = from.singles == 0;
        let known = carriers
            .entry((shard, carrier.to_owned()))
            .or_insert(Known { scan_start, scanned_fully_at: Instant::now() });
        if full {
            known.scanned_fully_at = Instant::now();
        }
        known.scan_start = scan_start;
    }
}
