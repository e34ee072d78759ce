//! Health and metrics are served only on the operator's address.

use crate::harness::{TestServer, until};
use crate::portal::Browser;

#[test]
fn health_and_metrics_answer_on_their_own_address() {
    let server = TestServer::demo();
    let key = server.key();
    assert_eq!(server.get_ops("/healthz").status, 200);
    assert_eq!(server.get_ops("/readyz").status, 200);
    server.accepted(key, "57000001");
    server.get("/sms/balance/wrong");
    let metrics = server.get_ops("/metrics").text();
    assert!(metrics.contains("heliograph_sends_accepted_total 1\n"), "{metrics}");
    let labels = "method=\"GET\",route=\"/sms/balance/{key}\",status=\"401\"";
    assert!(
        metrics.contains(&format!("heliograph_request_seconds_count{{{labels}}} 1\n")),
        "{metrics}"
    );
    assert!(metrics.contains("heliograph_queue_messages "), "{metrics}");
    assert!(metrics.contains("heliograph_mails_waiting "), "{metrics}");
    assert!(metrics.contains("heliograph_mails_failed 0"), "{metrics}");
    assert!(!metrics.contains(key));
    let version = String::from_utf8(server.place.run(&["--version"]).stdout).unwrap();
    let version = version.trim().strip_prefix("heliograph ").unwrap();
    assert!(metrics.contains(&format!("{{version=\"{version}\"}} 1\n")), "{metrics}");
    let shown = format!("Heliograph {version}");
    assert!(Browser::of_staff(&server).get("/support").text().contains(&shown));
    assert!(!Browser::of_customer(&server).get("/applications").text().contains(&shown));
    assert!(!server.get("/login").text().contains(&shown));
    for path in ["/healthz", "/readyz", "/metrics"] {
        let public = server.get(path);
        assert_eq!(public.status, 404, "{path}");
        assert!(!public.text().contains("heliograph_sends"), "{path}");
    }
}

/// Returns a carrier's metric. `None` if it is missing.
fn figure(server: &TestServer, carrier: &str, name: &str) -> Option<f64> {
    let metrics = server.get_ops("/metrics").text();
    let beginning = format!("heliograph_carrier_{name}{{carrier=\"{carrier}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&beginning))?;
    Some(value.parse().unwrap())
}

/// Sends until a message waits for a drained carrier, because the running server notices the change
/// only after a while. Returns the transaction ID.
pub fn kept_waiting(server: &TestServer, carrier: &str) -> String {
    until("a message that waits", || {
        let transid = server.accepted(server.key(), "57000001");
        let age = figure(server, carrier, "oldest_waiting_seconds")?;
        // A carrier that isn't drained accepts a message at once.
        (age > 0.5).then_some(transid)
    })
}

#[test]
fn metrics_tell_how_each_carrier_is() {
    let server = TestServer::demo();
    let reads = |name: &str, value: f64| {
        until(name, || (figure(&server, "sandbox", name) == Some(value)).then_some(()));
    };
    reads("up", 1.0);
    for name in [
        "drained",
        "waiting_messages",
        "oldest_waiting_seconds",
        "in_flight",
        "throttled_total",
        "receipts_unmatched_total",
        "unknown_states_total",
        "receipts_matched_total",
    ] {
        reads(name, 0.0);
    }

    server.place.json(&["carrier", "drain", "sandbox", "--yes"]);
    reads("drained", 1.0);
    reads("up", 1.0);
    kept_waiting(&server, "sandbox");
    assert!(figure(&server, "sandbox", "waiting_messages") >= Some(1.0));
    server.place.json(&["carrier", "resume", "sandbox"]);
    reads("drained", 0.0);
    reads("waiting_messages", 0.0);
}
