//! Logs that a carrier refuses messages.

use std::time::Duration;

use tokio::time::Instant;

use crate::carrier::refused::Refused;

/// Shortest time between two log lines: a carrier may refuse thousands in a second.
const INTERVAL: Duration = Duration::from_mins(1);

/// What was logged of a carrier.
#[derive(Default)]
pub(super) struct ReportedRefusals {
    count: u64,
    at: Option<Instant>,
}

impl ReportedRefusals {
    /// Logs how many messages were refused since the last line, but nothing of the messages
    /// themselves.
    pub(super) fn update(&mut self, carrier: &str, refused: &Refused) {
        let total = refused.total();
        let lately = self.at.is_some_and(|at| at.elapsed() < INTERVAL);
        if total == self.count || lately {
            return;
        }
        let count = total - self.count;
        let reason = refused.last().map(|(reason, _)| reason);
        tracing::warn!(carrier, count, reason, "a carrier refused messages");
        (self.count, self.at) = (total, Some(Instant::now()));
    }
}
