//! The alerts and the dashboard in `deploy/` use metrics that exist, and the guide explains them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use domain::carrier_figures::CarrierCounts;
use domain::support::UnpaidUse;
use domain::{Money, Prices};
use service::{Clock, Config, Entropy, Limits, Network};

use super::*;

const ALERTS: &str = include_str!("../../../deploy/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/grafana.json");
const GUIDE: &str = include_str!("../../../docs/OPERATIONS.md");

/// The suffixes of the names that a metric of a type has.
const NAMES: [(&str, &[&str]); 3] =
    [("gauge", &[""]), ("counter", &["_total"]), ("histogram", &["_bucket", "_sum", "_count"])];

/// Returns all metrics of a process, each with a value.
async fn all_metrics() -> String {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::open(Config {
        database_url: format!("sqlite:{}", folder.path().join("test.db").display()),
        prices: Prices::new(Money::from_micros(1), Money::from_micros(2)).unwrap(),
        currency: "USD".to_owned(),
        data_dir: folder.path().join("data"),
        network: Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
        limits: Limits::default(),
        mail: service::MailSettings::default(),
        endpoints: service::EndpointRules::default(),
        opt_outs: service::OptOutSettings::default(),
        clock: Clock::system(),
        entropy: Entropy::system(),
    });
    let service = service.await.unwrap();
    let metrics = Metrics::default();
    metrics.request("GET", "/".into(), 200, Duration::ZERO);
    metrics.connection_limited("all");
    metrics.webhook_attempt(true);
    metrics.set_lost("acme", 1);
    metrics.set_refused("acme", &BTreeMap::from([("refused".to_owned(), 1)]));
    let readings = Readings {
        carrier_counts: BTreeMap::from([("acme".to_owned(), CarrierCounts::default())]),
        broken_ledgers: 0,
        unpaid: Some(UnpaidUse { messages: 0, bytes: 0, bytes_max: 0 }),
        oldest_transaction_ms: Some(0),
        ..readings(&service, &BTreeSet::from([folder.path().to_owned()])).await
    };
    let text = metrics.render(Some(readings));
    service.close().await;
    text
}

/// Returns the names of our metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("heliograph_")).map(str::to_owned).collect()
}

#[tokio::test]
async fn alerts_and_dashboard_use_metrics_that_exist() {
    let mut known = BTreeSet::new();
    for line in all_metrics().await.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffixes = NAMES.iter().find(|(known, _)| *known == kind).unwrap().1;
        known.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    for file in [ALERTS, DASHBOARD] {
        let used = named(file);
        assert!(used.len() > 10, "{used:?}");
        assert_eq!(used.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}

#[test]
fn prometheus_accepts_the_alerts_and_the_guide_explains_each() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/alerts.yaml");
    let checked = Command::new("promtool").args(["check", "rules", path]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let names = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let unexplained: Vec<_> = names.filter(|name| !GUIDE.contains(&format!("`{name}`"))).collect();
    assert_eq!(unexplained, Vec::<&str>::new());
}
