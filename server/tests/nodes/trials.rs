//! Test messages and traces of operators, while several processes have connections to the carrier.

use serde_json::Value;
use testing::harness::until;

use crate::cluster::Cluster;

/// The receipt of a test message comes to any process. A trace shows the connections of all.
#[test]
fn operators_test_and_trace_a_carrier_of_several_processes() {
    let cluster = Cluster::new(2, "");
    let keys = cluster.holding();
    cluster.start_all();
    let place = &cluster.place;
    until("both connections", || {
        let carriers = place.json(&["carrier", "list"]);
        let connections = carriers[0]["connections"].as_array().unwrap();
        let up = connections.iter().filter(|connection| connection["state"] == "bound");
        (up.count() == 2).then_some(())
    });
    for _ in 0..3 {
        let tested = place.json(&["carrier", "test", "acme", "57000001", "Hello"]);
        assert_eq!(tested["ok"], true, "{tested}");
    }
    assert_eq!(cluster.carrier.count("57000001"), 3);

    let traced = std::thread::scope(|scope| {
        let trace = ["carrier", "trace", "acme", "--seconds", "2"];
        let tracing = scope.spawn(move || place.json(&trace));
        until("the end of the trace", || {
            for node in &cluster.nodes {
                let key = keys.live.expose();
                node.get(&format!("/sms/send/{key}?number=57000002&message=Hello"));
            }
            tracing.is_finished().then_some(())
        });
        tracing.join().unwrap()
    });
    let pdus = traced.as_array().unwrap();
    let submits = pdus.iter().filter(|pdu| pdu["pdu"].as_str().unwrap().contains("submit_sm "));
    let mut nodes: Vec<&Value> = submits.map(|pdu| &pdu["node"]).collect();
    nodes.sort_by_key(|node| node.as_i64());
    nodes.dedup();
    assert_eq!(nodes.len(), 2, "{traced}");
    cluster.stop();
}
