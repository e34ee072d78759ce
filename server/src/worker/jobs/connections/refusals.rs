//! Logs a carrier's refusals, and counts them for staff.

use std::collections::BTreeMap;
use std::time::Duration;

use service::Service;
use tokio::time::Instant;

use crate::carrier::refused::Refused;
use crate::carrier::smpp::status_words;

/// The shortest time between two log lines. A carrier may refuse thousands of messages in a second.
const INTERVAL: Duration = Duration::from_mins(1);

/// The refusals of a carrier that have been counted, and those that have been logged.
#[derive(Default)]
pub(super) struct ReportedRefusals {
    counted: BTreeMap<String, u64>,
    logged: Refused,
    at: Option<Instant>,
}

impl ReportedRefusals {
    /// Counts the submits that the carrier refused since the last call, and logs how many, with the
    /// reasons.
    pub(super) fn update(&mut self, service: &Service, carrier: &str, all: &Refused) {
        let by_reason = all.with_throttled();
        if by_reason != self.counted {
            let new = difference(&by_reason, &self.counted);
            let new = new.map(|(reason, count)| (described(reason), count)).collect();
            service.delivery().count_refusals(carrier, new);
            self.counted = by_reason;
        }
        let (totals, logged) = (all.totals(), self.logged.totals());
        let lately = self.at.is_some_and(|at| at.elapsed() < INTERVAL);
        if totals == logged || lately {
            return;
        }
        let (refused, deferred) = (totals.0 - logged.0, totals.1 - logged.1);
        let what = if refused > 0 { "refused" } else { "deferred" };
        let reasons = difference(all.counts(), self.logged.counts());
        let reasons: Vec<_> =
            reasons.map(|(reason, count)| format!("{count} {}", described(reason))).collect();
        let reasons = reasons.join("; ");
        tracing::warn!(carrier, refused, deferred, reasons, "a carrier {what} submits");
        (self.logged, self.at) = (all.clone(), Some(Instant::now()));
    }
}

/// Returns the reasons whose counts have grown, and by how much.
fn difference<'a>(
    now: &'a BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> impl Iterator<Item = (&'a str, u64)> {
    now.iter().filter_map(|(reason, count)| {
        let new = count.saturating_sub(before.get(reason).copied().unwrap_or_default());
        (new > 0).then_some((&**reason, new))
    })
}

/// Adds a description to a reason that is a known SMPP status.
fn described(reason: &str) -> String {
    match status_words(reason) {
        Some(words) => format!("{reason} ({words})"),
        None => reason.to_owned(),
    }
}
