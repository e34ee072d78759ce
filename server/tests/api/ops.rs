//! Health and metrics: on the operator's address alone.

use crate::harness::TestServer;

#[test]
fn health_and_metrics_answer_on_their_own_address() {
    let server = TestServer::demo();
    let key = server.key();
    assert_eq!(server.get_ops("/healthz").status, 200);
    assert_eq!(server.get_ops("/readyz").status, 200);
    server.accepted(key, "57000001");
    server.get("/sms/balance/wrong");
    let metrics = server.get_ops("/metrics").text();
    assert!(
        metrics.contains("heliograph_sends_accepted_total 1\n"),
        "{metrics}"
    );
    let labels = "method=\"GET\",route=\"/sms/balance/{key}\",status=\"401\"";
    assert!(
        metrics.contains(&format!("heliograph_request_seconds_count{{{labels}}} 1\n")),
        "{metrics}"
    );
    assert!(metrics.contains("heliograph_queue_messages "), "{metrics}");
    assert!(!metrics.contains(key));
    for path in ["/healthz", "/readyz", "/metrics"] {
        let public = server.get(path);
        assert_eq!(public.status, 404, "{path}");
        assert!(!public.text().contains("heliograph_sends"), "{path}");
    }
}
