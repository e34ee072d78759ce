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
    count: u64,
    at: Option<Instant>,
}

impl ReportedRefusals {
    /// Logs the number of messages refused since the last line, but no content of a message.
    pub(super) fn update(&mut self, carrier: &str, refused: &Refused) {
        let total = refused.total();
        let lately = self.at.is_some_and(|at| at.elapsed() < INTERVAL);
        if total == self.count || lately {
            return;
        }
        let count = total - self.count;
        let reason = refused.last().map(|(reason, _)| reason);
        let name = reason.and_then(status_name);
        tracing::warn!(carrier, count, reason, name, "a carrier refused messages");
        (self.count, self.at) = (total, Some(Instant::now()));
    }
}
