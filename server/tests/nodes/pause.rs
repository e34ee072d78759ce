//! A process that sleeps until after its lease has expired, and then continues.

use serde_json::Value;
use testing::client::form;
use testing::harness::{Keys, until};

use crate::cluster::Cluster;
use crate::judging::text;

/// The slots of the one connection. Each part of a message takes one.
const WINDOW: usize = 10;
/// The length of a text with three parts.
const THREE_PARTS: usize = 400;
/// The length of a text with eleven parts.
const ELEVEN_PARTS: usize = 1600;

/// Returns the statuses of an application's messages, newest first.
fn statuses(cluster: &Cluster, node: usize, keys: &Keys) -> Vec<String> {
    let target = format!("/sms/reports/{}?limit=1000", keys.live.expose());
    let reports = cluster.nodes[node].get(&target).json();
    let reports: &[Value] = reports["reports"].as_array().unwrap();
    let status = |report| text(report, "status").to_owned();
    reports.iter().map(status).collect()
}

fn until_statuses(cluster: &Cluster, node: usize, keys: &Keys, wanted: &[&str]) {
    until(&format!("{wanted:?}"), || (statuses(cluster, node, keys) == wanted).then_some(()));
}

fn send(cluster: &Cluster, node: usize, keys: &Keys, number: &str, chars: usize) {
    let message = "a".repeat(chars);
    let pairs = form(&[("number", number), ("message", &message)]);
    let target = format!("/sms/send/{}?{pairs}", keys.live.expose());
    let answer = cluster.nodes[node].get(&target);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn a_node_that_slept_through_its_lease_submits_nothing_again() {
    let cluster = Cluster::new(2, &format!("window = {WINDOW}"));
    let keys = cluster.holding();
    let (sleeper, other) = (&cluster.nodes[0], &cluster.nodes[1]);
    sleeper.start(&cluster.place, &[]);
    cluster.carrier.withhold(1);
    send(&cluster, 0, &keys, "10000000", 1);
    until_statuses(&cluster, 0, &keys, &["submitted"]);
    // Nine parts wait for answers, and one of the eleven parts takes the last slot. The other ten
    // find none.
    for number in ["10000001", "10000002", "10000003"] {
        send(&cluster, 0, &keys, number, THREE_PARTS);
    }
    until("nine parts more", || (cluster.carrier.taken() == WINDOW).then_some(()));
    send(&cluster, 0, &keys, "10000004", ELEVEN_PARTS);
    until("a full window", || (cluster.carrier.taken() == 1 + WINDOW).then_some(()));
    sleeper.signal("STOP");

    other.start(&cluster.place, &[]);
    let lost = ["unknown", "unknown", "unknown", "unknown", "submitted"];
    until_statuses(&cluster, 1, &keys, &lost);
    // If the other node sent any of these messages again, it would do so before this one.
    send(&cluster, 1, &keys, "20000000", 1);
    until("a message by the other node", || (cluster.carrier.count("20000000") == 1).then_some(()));
    assert_eq!(cluster.carrier.taken(), 2 + WINDOW);

    // From here on only the node that slept sends. It would first continue its old messages.
    cluster.carrier.answer_all();
    other.stop();
    sleeper.signal("CONT");
    sleeper.until_ready();
    send(&cluster, 0, &keys, "30000000", 1);
    until("a message by the node that slept", || {
        (statuses(&cluster, 0, &keys)[0] == "submitted").then_some(())
    });
    // The carrier's late answers settle the messages whose parts were all submitted, if they are
    // read before the connection is given up.
    for (status, before) in statuses(&cluster, 0, &keys)[2..].iter().zip(lost) {
        let settled = before == "unknown" && status == "submitted";
        assert!(status == before || settled, "{status}");
    }
    let late = cluster.carrier.taken() - (3 + WINDOW);
    println!("{late} came after the lease");
    assert!(late <= 1, "{late} came after the lease");
    cluster.stop();
}
