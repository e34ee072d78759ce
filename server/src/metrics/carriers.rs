//! The states of the carriers in the database.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use domain::Timestamp;
use domain::carrier_figures::{CarrierCounts, CarrierEvent, RECEIPT_TIMES_S};
use domain::records::{CarrierRecord, CarrierState, ConnectionRecord};
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::values::{ByLabels, ConstHistogram, age_s};

pub(super) fn register(registry: &mut Registry, carriers: &[CarrierRecord], now: Timestamp) {
    let mut carriers = Carriers { registry, carriers };
    carriers.register("carrier_up", "1 while a connection to the carrier is bound", |carrier| {
        gauge(carrier.connections.iter().any(|it| it.state.is_bound()).into())
    });
    carriers.register(
        "carrier_degraded",
        "1 while the carrier is bound, but answers nothing, or refuses or fails to deliver too \
         many messages",
        |carrier| gauge((carrier.state == CarrierState::Degraded).into()),
    );
    carriers.register("carrier_drained", "1 while the carrier is drained", |carrier| {
        gauge(carrier.drained_at.is_some().into())
    });
    carriers.register(
        "carrier_waiting_messages",
        "Messages that wait for the carrier",
        |carrier| gauge(carrier.waiting),
    );
    carriers.register(
        "carrier_oldest_waiting_seconds",
        "Age of the oldest message that waits for the carrier; 0 when none waits",
        |carrier| ConstGauge::new(age_s(carrier.oldest_waiting_at, now)),
    );
    carriers.register(
        "carrier_in_flight",
        "Submits that wait for the carrier's response",
        |carrier| gauge(sum(carrier, |connection| connection.in_flight)),
    );
    carriers.register(
        "carrier_window",
        "The most submits that may wait for the carrier's response",
        |carrier| gauge(sum(carrier, |connection| connection.window)),
    );
    carriers.register(
        "carrier_throttled",
        "Responses of the carrier that asked for a slower pace",
        |carrier| counter(sum(carrier, |connection| connection.throttled)),
    );
    carriers.register(
        "carrier_receipts_unmatched",
        "Receipts that matched no known message",
        |carrier| counter(carrier.receipts_unmatched),
    );
    carriers.register(
        "carrier_receipts_matched",
        "Unmatched receipts that were matched later",
        |carrier| counter(carrier.receipts_matched),
    );
    carriers.register("carrier_unknown_states", "Receipts whose state isn't known", |carrier| {
        counter(carrier.receipts_unknown_state)
    });
}

struct Carriers<'a> {
    registry: &'a mut Registry,
    carriers: &'a [CarrierRecord],
}

impl Carriers<'_> {
    /// Registers a metric with a value for each carrier.
    fn register<M>(&mut self, name: &str, help: &str, read: impl Fn(&CarrierRecord) -> M)
    where
        M: EncodeMetric + TypedMetric + Debug + Send + Sync + 'static,
    {
        let values = self.carriers.iter();
        let values = values.map(|carrier| ([("carrier", carrier.name.clone())], read(carrier)));
        self.registry.register(name, help, ByLabels(values.collect()));
    }
}

/// Registers the counts of this process since its start.
pub(super) fn register_counts(registry: &mut Registry, carriers: &BTreeMap<String, CarrierCounts>) {
    use CarrierEvent::{Accepted, Deferred, Delivered, Expired, Failed};
    use CarrierEvent::{Refused, Throttled, Unanswered};
    let mut register = |name: &str, help: &str, label: &'static str, events: &[CarrierEvent]| {
        let values = carriers.iter().flat_map(|(carrier, counts)| {
            events.iter().map(move |event| {
                let labels = [("carrier", carrier.clone()), (label, event.to_string())];
                (labels, ConstCounter::new(counts.get(*event)))
            })
        });
        registry.register(name, help, ByLabels(values.collect()));
    };
    register(
        "carrier_answers",
        "Submits of this process, by the carrier's answer; deferred are temporary refusals",
        "answer",
        &[Accepted, Refused, Deferred, Throttled, Unanswered],
    );
    register(
        "carrier_receipts",
        "Final receipts that this process got, by status",
        "status",
        &[Delivered, Failed, Expired],
    );
    let times = carriers.iter().map(|(carrier, counts)| {
        let bounds = RECEIPT_TIMES_S.iter().map(|bound| f64::from(*bound)).chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(counts.receipt_times().iter().copied()).collect();
        let histogram = ConstHistogram {
            sum: Duration::from_secs(counts.receipt_seconds()).as_secs_f64(),
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        };
        ([("carrier", carrier.clone())], histogram)
    });
    registry.register(
        "carrier_receipt_seconds",
        "Time from the carrier's answer to its receipt, for a sample of the messages",
        ByLabels(times.collect()),
    );
}

fn sum(carrier: &CarrierRecord, read: impl Fn(&ConnectionRecord) -> i64) -> i64 {
    let values = carrier.connections.iter().map(read);
    values.fold(0, i64::saturating_add)
}

fn gauge(value: i64) -> ConstGauge<i64> {
    ConstGauge::new(value)
}

fn counter(count: i64) -> ConstCounter<u64> {
    ConstCounter::new(count.max(0).unsigned_abs())
}
