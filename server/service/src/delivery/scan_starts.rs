//! Where claims begin to look. With PostgreSQL the index of what is due keeps what left it for as
//! long as some transaction is open that could still see it: each claim would step over all of
//! that.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::Timestamp;

use crate::store::claims::{DueLimits, DueRow, ScanStart};

/// How often to look from the beginning, for rows that were locked by somebody who gave them back,
/// or that were stored later than others of the same moment.
const FULL_LOOK: Duration = Duration::from_secs(10);
/// How much later a row may be stored than its moment says.
const STORED_WITHIN_MS: i64 = 500;

/// What is remembered of each carrier.
pub(crate) struct ScanStarts {
    /// Not where one process writes: its index is clean.
    kept: bool,
    carriers: Mutex<HashMap<String, Known>>,
}

struct Known {
    scan_start: ScanStart,
    looked_fully_at: Instant,
}

impl ScanStarts {
    pub(crate) fn new(kept: bool) -> Self {
        Self {
            kept,
            carriers: Mutex::default(),
        }
    }

    /// Where the next look begins.
    pub(crate) fn of(&self, carrier: &str) -> ScanStart {
        let carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = carriers
            .get(carrier)
            .filter(|known| known.looked_fully_at.elapsed() < FULL_LOOK);
        known.map_or_else(ScanStart::default, |known| known.scan_start)
    }

    /// Forgets what looks at a carrier found: while it is drained they find nothing, though much
    /// may be due.
    pub(crate) fn forget(&self, carrier: &str) {
        let mut carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        carriers.remove(carrier);
    }

    /// Remembers what a look found: all that was due before is claimed, or was locked by others.
    pub(crate) fn learn(
        &self,
        carrier: &str,
        from: ScanStart,
        limits: DueLimits,
        found: &[DueRow],
        now: Timestamp,
    ) {
        if !self.kept {
            return;
        }
        let start = |of_batches: bool, limit: i64, from: i64| {
            // Nothing was looked at.
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
        let known = carriers.entry(carrier.to_owned()).or_insert(Known {
            scan_start,
            looked_fully_at: Instant::now(),
        });
        if full {
            known.looked_fully_at = Instant::now();
        }
        known.scan_start = scan_start;
    }
}
