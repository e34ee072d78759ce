//! Metrics for operators, in the OpenMetrics text format.
//!
//! The process counts some of them itself ([`Metrics`]). The others are read for each response
//! ([`Readings`]).

mod carriers;
mod commit_groups;
mod requests;
mod striped;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::Timestamp;
use domain::carrier_figures::CarrierCounts;
use domain::records::CarrierRecord;
use domain::support::UnpaidUse;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use service::{GroupFigures, MailCounts, QueueState};

use requests::Requests;
use values::{ByLabels, age_s, seconds};

/// The media type of the text that [`Metrics::render`] returns.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counts of this process since its start.
#[derive(Default)]
pub struct Metrics {
    requests: Requests,
    sends_accepted: Counter,
    /// Updated twice a second, so lock contention doesn't matter.
    refused: Family<[(&'static str, String); 2], Counter>,
    connections_lost: Family<[(&'static str, String); 1], Counter>,
    connections_limited: Family<[(&'static str, &'static str); 1], Counter>,
    webhook_attempts: Family<[(&'static str, &'static str); 1], Counter>,
}

/// The values that are read for one response. A value from the database is `None` if the database
/// can't be queried.
pub struct Readings {
    pub now: Timestamp,
    pub commit_groups: GroupFigures,
    /// How often work skipped a shard because its database couldn't be reached.
    pub shards_skipped: u64,
    /// The inbound messages of this process, by outcome.
    pub inbound: [(&'static str, u64); 4],
    pub password_hashes: u64,
    /// The number of kinds of attempts, such as sign-ins, that are over the limit of all clients
    /// together.
    pub strained_limits: usize,
    pub queue: Option<QueueState>,
    pub carriers: Option<Vec<CarrierRecord>>,
    /// The counts of this process, by carrier.
    pub carrier_counts: BTreeMap<String, CarrierCounts>,
    pub mails: Option<MailCounts>,
    /// The age of the oldest open transaction in the database. `None` on SQLite, too.
    pub oldest_transaction_ms: Option<i64>,
    /// Whether all messages are held, because a backup was restored.
    pub is_held: Option<bool>,
    pub backup_age_ms: Option<i64>,
    /// `None` until it is measured.
    pub unpaid: Option<UnpaidUse>,
    /// The number of applications whose ledger was broken at this process's last recount.
    pub broken_ledgers: usize,
    /// The free bytes of the disks with the folders that grow.
    pub disk_free_bytes: Vec<(String, u64)>,
}

impl Metrics {
    /// Counts a request. The status is 0 if the connection was closed without a response.
    pub fn request(
        &self,
        method: &'static str,
        route: Cow<'static, str>,
        status: u16,
        latency: Duration,
    ) {
        self.requests.count(method, route, status, latency);
    }

    /// Counts a send with a 200 response.
    pub fn send_accepted(&self) {
        self.sends_accepted.inc();
    }

    /// Counts a client's connection that was closed because of a limit.
    pub fn connection_limited(&self, limit: &'static str) {
        let counter = self.connections_limited.get_or_create(&[("limit", limit)]);
        counter.inc();
    }

    /// Counts an attempt to deliver an event to an endpoint.
    pub fn webhook_attempt(&self, delivered: bool) {
        let outcome = if delivered { "delivered" } else { "failed" };
        self.webhook_attempts.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Sets the numbers of submits of this process that a carrier refused, by reason.
    pub fn set_refused(&self, carrier: &str, counts: &BTreeMap<String, u64>) {
        for (reason, count) in counts {
            let labels = [("carrier", carrier.to_owned()), ("reason", reason.clone())];
            let counter = self.refused.get_or_create_owned(&labels);
            counter.inner().store(*count, Ordering::Relaxed);
        }
    }

    /// Sets how often this process lost its connections to a carrier.
    pub fn set_lost(&self, carrier: &str, count: u64) {
        let counter = self.connections_lost.get_or_create_owned(&[("carrier", carrier.to_owned())]);
        counter.inner().store(count, Ordering::Relaxed);
    }

    /// Returns all counts and readings as text.
    pub fn render(&self, readings: Option<Readings>) -> String {
        let mut registry = Registry::with_prefix("heliograph");
        registry.register(
            "sends_accepted",
            "Single sends answered with 200",
            self.sends_accepted.clone(),
        );
        registry.register(
            "request_seconds",
            "Time to respond to a request; status 0: closed without a response",
            self.requests.read(),
        );
        registry.register(
            "carrier_connections_lost",
            "Bound connections to the carrier that this process lost",
            self.connections_lost.clone(),
        );
        registry.register(
            "carrier_refused",
            "Submits of this process that the carrier refused, permanently or temporarily; \
             heliograph_carrier_throttled_total counts responses that asked for a slower pace",
            self.refused.clone(),
        );
        registry.register(
            "connections_limited",
            "Client connections that were closed because of a limit: of connections per address, \
             per network or in total, or of the time that a response may stay unread",
            self.connections_limited.clone(),
        );
        registry.register(
            "webhook_attempts",
            "Attempts of this process to deliver an event to an endpoint, by outcome",
            self.webhook_attempts.clone(),
        );
        if let Some(readings) = readings {
            readings.register(&mut registry);
        }
        let mut text = String::new();
        // Writing to a `String` can't fail.
        let _ = text::encode(&mut text, &registry);
        text
    }
}

impl Readings {
    fn register(self, registry: &mut Registry) {
        commit_groups::register(registry, &self.commit_groups);
        registry.register(
            "shards_skipped",
            "How often work over all applications skipped a shard that couldn't be reached",
            ConstCounter::new(self.shards_skipped),
        );
        let inbound = self
            .inbound
            .map(|(outcome, count)| ([("outcome", outcome.to_owned())], ConstCounter::new(count)));
        registry.register(
            "inbound_messages",
            "Messages of handsets: stored for an application, unassigned, or repeated by the \
             carrier; and replies to their commands",
            ByLabels(Vec::from(inbound)),
        );
        registry.register(
            "password_hashes",
            "Password hashes requested of this process, to set or to verify passwords",
            ConstCounter::new(self.password_hashes),
        );
        registry.register(
            "strained_limits",
            "Kinds of attempts (sign-ins, registrations, reset links) that are over the limit of \
             all clients together at this process; each network then has only a small share",
            ConstGauge::new(i64::try_from(self.strained_limits).unwrap_or(i64::MAX)),
        );
        if let Some(queue) = self.queue {
            registry.register(
                "queue_messages",
                "Messages that wait for a carrier",
                ConstGauge::new(queue.waiting),
            );
            registry.register(
                "queue_oldest_seconds",
                "Age of the oldest message that waits for a carrier; 0 when none waits",
                ConstGauge::new(age_s(queue.oldest, self.now)),
            );
        }
        carriers::register_counts(registry, &self.carrier_counts);
        if let Some(carriers) = self.carriers {
            carriers::register(registry, &carriers, self.now);
        }
        if let Some(mails) = self.mails {
            register_mails(registry, mails);
        }
        if let Some(unpaid) = self.unpaid {
            registry.register(
                "unpaid_bytes",
                "Approximate size of test messages of accounts without a deposit, measured hourly",
                ConstGauge::new(unpaid.bytes),
            );
            registry.register(
                "unpaid_bytes_max",
                "Size of such messages above which staff are warned",
                ConstGauge::new(unpaid.bytes_max),
            );
        }
        registry.register(
            "build",
            "Always 1; the label has the version of the program",
            ByLabels(vec![([("version", crate::VERSION.to_owned())], ConstGauge::new(1_i64))]),
        );
        registry.register(
            "broken_ledgers",
            "Applications whose balance doesn't fit their transfers; they are suspended",
            ConstGauge::new(i64::try_from(self.broken_ledgers).unwrap_or(i64::MAX)),
        );
        let disks = self.disk_free_bytes.into_iter();
        let disks = disks.map(|(folder, free)| ([("folder", folder)], ConstGauge::new(free)));
        registry.register(
            "disk_free_bytes",
            "Free bytes of the disk with the folder; a server whose disk is full refuses sends",
            ByLabels(disks.collect()),
        );
        if let Some(is_held) = self.is_held {
            registry.register(
                "messages_held",
                "1 while nothing is submitted, because a backup was restored; otherwise 0",
                ConstGauge::new(i64::from(is_held)),
            );
        }
        if let Some(age_ms) = self.backup_age_ms {
            registry.register(
                "backup_age_seconds",
                "Time since the last `heliograph backup`, or since the first start without any",
                ConstGauge::new(seconds(age_ms)),
            );
        }
        if let Some(age_ms) = self.oldest_transaction_ms {
            registry.register(
                "database_oldest_transaction_seconds",
                "Age of the oldest transaction open in the database",
                ConstGauge::new(seconds(age_ms)),
            );
        }
    }
}

fn register_mails(registry: &mut Registry, mails: MailCounts) {
    registry.register("mails_waiting", "Mails that are to be sent", ConstGauge::new(mails.waiting));
    registry.register(
        "mails_failed",
        "Mails that failed, until they are deleted or retried",
        ConstGauge::new(mails.failed),
    );
}
