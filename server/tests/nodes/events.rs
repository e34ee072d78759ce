//! A program that polls events, and an endpoint that gets them, while nodes are killed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use testing::client::{bare, exchange, form, posted};
use testing::harness::{Keys, until};
use testing::receiver::Receiver;

use crate::cluster::Cluster;
use crate::load::{Answered, SHORT, ask};
use crate::node::Node;

/// The pause between two polls.
const PACE: Duration = Duration::from_millis(50);

/// The events of an application, as a program and an endpoint get them.
pub struct Listener<'a> {
    key: &'a str,
    receiver: Receiver,
}

impl<'a> Listener<'a> {
    /// Creates an endpoint.
    pub fn new(cluster: &Cluster, keys: &'a Keys) -> Self {
        let receiver = Receiver::start(|_, _| 200);
        let key = keys.live.expose();
        let body = form(&[("url", &receiver.url())]);
        let kind = "application/x-www-form-urlencoded";
        let request = posted(&format!("/sms/webhooks/{key}"), kind, body.as_bytes());
        let created = exchange(&cluster.nodes[0].address().unwrap(), &request);
        assert_eq!(created.status, 200, "{}", created.text());
        Self { key, receiver }
    }

    /// Polls until the token is set and there are no more events. Returns the IDs of the events.
    /// A node that doesn't answer is asked again later.
    pub fn poll(&self, nodes: &[Node], is_over: &AtomicBool) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        for node in nodes.iter().cycle() {
            let ended = is_over.load(Ordering::Relaxed);
            if let Some((200, page)) = self.page(node, &cursor) {
                let events = page["events"].as_array().unwrap();
                ids.extend(events.iter().map(|event| event["id"].as_str().unwrap().to_owned()));
                cursor = format!("&cursor={}", page["next"].as_str().unwrap());
                if ended && events.is_empty() {
                    break;
                }
            }
            std::thread::sleep(PACE);
        }
        ids
    }

    fn page(&self, node: &Node, cursor: &str) -> Option<Answered> {
        let target = format!("/sms/events/{}?limit=100{cursor}", self.key);
        ask(&node.address()?, &bare("GET", &target, &[]), SHORT)
    }

    /// Checks that the polled events are all events, that each message has one final event, and
    /// that the endpoint gets them.
    pub fn judge(&self, cluster: &Cluster, keys: &Keys, polled: &[String]) {
        let listed = self.listed(&cluster.nodes[0]);
        let ids: Vec<&str> = listed.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids, polled, "a program that polls missed or repeated events");
        let of_type = |kind: &str| -> Vec<&Value> {
            listed.iter().filter(|event| event["type"] == kind).collect()
        };
        let delivered = of_type("message.delivered");
        let transids = delivered.iter().map(|event| event["data"]["transid"].as_str().unwrap());
        let transids: HashSet<&str> = transids.collect();
        let reports = cluster.reports(keys);
        let expected = reports.iter().filter(|report| report["status"] == "delivered");
        let expected: HashSet<&str> =
            expected.map(|report| report["transid"].as_str().unwrap()).collect();
        assert_eq!(transids, expected);
        assert_eq!(delivered.len(), expected.len(), "a message has two final events");
        // The application was activated before it had the endpoint.
        let wanted = ["message.delivered", "batch.done"].map(of_type).into_iter().flatten();
        let wanted: HashSet<&str> = wanted.map(|event| event["id"].as_str().unwrap()).collect();
        until("all events at the endpoint", || {
            let received = self.receiver.received();
            let received: HashSet<&str> =
                received.iter().map(|delivery| delivery.header("webhook-id")).collect();
            wanted.is_subset(&received).then_some(())
        });
        println!("{} events, {} deliveries", ids.len(), self.receiver.received().len());
    }

    fn listed(&self, node: &Node) -> Vec<Value> {
        let (mut events, mut cursor) = (Vec::new(), String::new());
        loop {
            let (status, page) = self.page(node, &cursor).unwrap();
            assert_eq!(status, 200, "{page}");
            let found = page["events"].as_array().unwrap();
            if found.is_empty() {
                return events;
            }
            events.extend(found.iter().cloned());
            cursor = format!("&cursor={}", page["next"].as_str().unwrap());
        }
    }
}
