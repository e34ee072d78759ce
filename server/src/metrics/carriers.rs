//! The states of the carriers in the database.

use std::fmt::Debug;

use domain::Timestamp;
use domain::records::{CarrierRecord, ConnectionRecord, ConnectionState};
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::values::{ByLabels, age_s};

pub(super) fn register(registry: &mut Registry, carriers: &[CarrierRecord], now: Timestamp) {
    let mut carriers = Carriers { registry, carriers };
    carriers.register(
        "carrier_up",
        "1 while a connection to the carrier is bound and answers submits",
        |carrier| gauge(carrier.connections.iter().any(is_bound).into()),
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

fn is_bound(connection: &ConnectionRecord) -> bool {
    connection.state == ConnectionState::Bound
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
