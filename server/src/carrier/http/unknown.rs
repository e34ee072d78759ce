//! Statuses in receipts that the settings don't list.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two log lines about a carrier.
const INTERVAL: Duration = Duration::from_mins(1);
/// The maximum number of characters of a status that the log quotes.
const QUOTED_CHARS_MAX: usize = 60;

/// The receipts of this process whose status is unknown, by carrier.
#[derive(Default)]
pub(super) struct UnknownStatuses(Mutex<BTreeMap<String, Counted>>);

#[derive(Default)]
struct Counted {
    count: u64,
    /// The part of the count that has been logged.
    logged: u64,
    logged_at: Option<Instant>,
}

impl UnknownStatuses {
    /// Counts a receipt. Logs it unless a receipt of the carrier was logged within a minute.
    pub(super) fn count(&self, carrier: &str, message_id: &str, status: &str) {
        let mut carriers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = carriers.entry(carrier.to_owned()).or_default();
        counted.count += 1;
        if counted.logged_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        let count = counted.count - counted.logged;
        let quoted: String =
            status.chars().filter(|c| !c.is_control()).take(QUOTED_CHARS_MAX).collect();
        tracing::warn!(
            carrier,
            message_id,
            status = quoted,
            count,
            "receipts have an unknown status; add it to delivered, failed, expired or enroute in \
             the carrier's settings"
        );
        (counted.logged, counted.logged_at) = (counted.count, Some(Instant::now()));
    }
}
