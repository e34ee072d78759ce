//! Logs a carrier's refusals.

use std::time::Duration;

use tokio::time::Instant;

use crate::carrier::refused::Refused;
use crate::carrier::smpp::status_name;

/// The shortest time between two log lines. A carrier may refuse thousands of messages in a second.
const INTERVAL: Duration = Duration::from_mins(1);

/// The refusals of a carrier that have been logged.
#[derive(Default)]
pub(super) struct ReportedRefusals {
    totals: (u64, u64),
    at: Option<Instant>,
}

impl ReportedRefusals {
    /// Logs the numbers of submits refused since the last line, but no content of a message.
    pub(super) fn update(&mut self, carrier: &str, all: &Refused) {
        let totals = all.totals();
        let lately = self.at.is_some_and(|at| at.elapsed() < INTERVAL);
        if totals == self.totals || lately {
            return;
        }
        let (refused, deferred) = (totals.0 - self.totals.0, totals.1 - self.totals.1);
        let what = if refused > 0 { "refused" } else { "deferred" };
        let reason = all.last().map(|(reason, _)| reason);
        let name = reason.and_then(status_name);
        tracing::warn!(carrier, refused, deferred, reason, name, "a carrier {what} submits");
        (self.totals, self.at) = (totals, Some(Instant::now()));
    }
}
