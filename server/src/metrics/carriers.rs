//! How the carriers are: read from the database for each answer, not counted by the process. And
//! what they refused this process, which it counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use domain::Timestamp;
use domain::records::{CarrierRecord, ConnectionState};

/// A figure of each carrier: name, kind and help, and how it is read.
type Figure = (
    &'static str,
    &'static str,
    &'static str,
    fn(&CarrierRecord, Timestamp) -> String,
);

const FIGURES: [Figure; 8] = [
    (
        "up",
        "gauge",
        "1 while a connection to the carrier is bound and answers what it is handed.",
        |carrier, _| u8::from(is_bound(carrier)).to_string(),
    ),
    (
        "drained",
        "gauge",
        "1 while the carrier is drained.",
        |carrier, _| u8::from(carrier.drained_at.is_some()).to_string(),
    ),
    (
        "waiting_messages",
        "gauge",
        "Messages that wait for the carrier.",
        |carrier, _| carrier.waiting.to_string(),
    ),
    (
        "oldest_waiting_seconds",
        "gauge",
        "Age of the oldest of them; 0 when none waits.",
        |carrier, now| {
            let oldest = carrier.oldest_waiting_at;
            let ms = oldest.map_or(0, |oldest| now.ms_since(oldest).max(0));
            format!("{}.{:03}", ms / 1000, ms % 1000)
        },
    ),
    (
        "in_flight",
        "gauge",
        "Submits that wait for the carrier's answer.",
        |carrier, _| sum(carrier.connections.iter().map(|c| c.in_flight)),
    ),
    (
        "throttled_total",
        "counter",
        "The carrier's answers that asked for a slower pace.",
        |carrier, _| sum(carrier.connections.iter().map(|c| c.throttled)),
    ),
    (
        "receipts_parked_total",
        "counter",
        "Receipts that named no message that was known.",
        |carrier, _| carrier.receipts_parked.to_string(),
    ),
    (
        "receipts_matched_total",
        "counter",
        "Parked receipts that were matched later.",
        |carrier, _| carrier.receipts_matched.to_string(),
    ),
];

/// Submits that carriers refused since the start, by carrier and reason.
#[derive(Default)]
pub struct Refusals(Mutex<BTreeMap<String, BTreeMap<String, u64>>>);

impl Refusals {
    /// A carrier's counts by now.
    pub fn set(&self, carrier: &str, counts: BTreeMap<String, u64>) {
        let mut carriers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        carriers.insert(carrier.to_owned(), counts);
    }

    /// In Prometheus' text format.
    pub fn render(&self) -> String {
        let mut text = "# HELP heliograph_carrier_refused_total Submits of this process that the carrier refused, for \
                        good or for now; those that asked for a slower pace are throttled_total.\n\
                        # TYPE heliograph_carrier_refused_total counter\n"
            .to_owned();
        let carriers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (carrier, counts) in carriers.iter() {
            for (reason, count) in counts {
                // Writing to a String can't fail.
                let _ = writeln!(
                    text,
                    "heliograph_carrier_refused_total{{carrier=\"{carrier}\",reason=\"{reason}\"}} {count}"
                );
            }
        }
        text
    }
}

fn is_bound(carrier: &CarrierRecord) -> bool {
    let bound = |state| state == ConnectionState::Bound;
    carrier.connections.iter().any(|c| bound(c.state))
}

fn sum(figures: impl Iterator<Item = i64>) -> String {
    figures.fold(0, i64::saturating_add).to_string()
}

/// The carriers in Prometheus' text format. Their names need no escaping: the settings allow none
/// that would.
pub fn render(carriers: &[CarrierRecord], now: Timestamp) -> String {
    let mut text = String::new();
    for (name, kind, help, read) in FIGURES {
        // Writing to a String can't fail.
        let _ = writeln!(text, "# HELP heliograph_carrier_{name} {help}");
        let _ = writeln!(text, "# TYPE heliograph_carrier_{name} {kind}");
        for carrier in carriers {
            let (carrier_name, value) = (&carrier.name, read(carrier, now));
            let _ = writeln!(
                text,
                "heliograph_carrier_{name}{{carrier=\"{carrier_name}\"}} {value}"
            );
        }
    }
    text
}
