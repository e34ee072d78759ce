//! Nodes with their database and carrier.

use domain::LostAnswer;
use serde_json::Value;
use testing::harness::{Keys, Place};
use testing::postgres::Server;

use crate::carrier::Carrier;
use crate::node::Node;

/// The deposit of each application.
pub const DEPOSIT: &str = "1000000";

/// The fields are dropped in this order: the nodes end before the database.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub carrier: Carrier,
    pub place: Place,
    pub database: Server,
}

impl Cluster {
    /// Creates a cluster with this many nodes, which aren't started yet. `more` is added to the
    /// carrier's settings.
    pub fn new(nodes: usize, more: &str) -> Self {
        let database = Server::start();
        let place = Place::on(&database.url);
        let carrier = Carrier::start();
        let settings = format!(
            "webhook_allow_http = true\nwebhook_networks = \"127.0.0.0/8\"\n\
             [[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"{}\"\n\
             system_id = \"heliograph\"\npassword = \"secret\"\n{more}\n",
            carrier.address
        );
        std::fs::write(place.path().join("heliograph.toml"), settings).unwrap();
        Self {
            nodes: (1..=nodes).map(|n| Node::new(&n.to_string())).collect(),
            carrier,
            place,
            database,
        }
    }

    pub fn start_all(&self) {
        for node in &self.nodes {
            node.start(&self.place, &[]);
        }
    }

    /// Creates an application whose messages aren't sent again if the carrier's answer is lost.
    pub fn holding(&self) -> Keys {
        self.place.funded("hold@example.org", DEPOSIT)
    }

    /// Creates an application whose messages are sent again if the carrier's answer is lost.
    pub fn resending(&self) -> Keys {
        let keys = self.place.funded("resend@example.org", DEPOSIT);
        self.place.with_service(async |service| {
            let policy = LostAnswer::Resend;
            let applications = service.applications();
            let set = applications.set_lost_answer(keys.account_id, keys.reference, policy);
            set.await.unwrap();
        });
        keys
    }

    /// Returns all messages of an application, as the first node reports them.
    pub fn reports(&self, keys: &Keys) -> Vec<Value> {
        let key = keys.live.expose();
        let (mut reports, mut cursor) = (Vec::new(), String::new());
        loop {
            let target = format!("/sms/reports/{key}?limit=1000{cursor}");
            let answer = self.nodes[0].get(&target);
            assert_eq!(answer.status, 200, "{}", answer.text());
            let page = answer.json();
            reports.extend(page["reports"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return reports,
            }
        }
    }

    /// Returns the newest batches of an application, at most 1,000.
    pub fn batches(&self, keys: &Keys) -> Vec<Value> {
        let target = format!("/sms/batches/{}?limit=1000", keys.live.expose());
        let answer = self.nodes[0].get(&target);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["batches"].as_array().unwrap().clone()
    }

    /// Returns an application's balance with all its digits.
    pub fn balance(&self, keys: &Keys) -> String {
        let target = format!("/sms/balance/{}", keys.live.expose());
        let text = self.nodes[0].get(&target).text();
        let (_, after) = text.split_once("\"balance\":").unwrap();
        after[..after.find([',', '}']).unwrap()].to_owned()
    }

    /// Returns the number of messages in the queue, including those being submitted.
    pub fn queued(&self) -> u64 {
        let metrics = self.nodes[0].get_ops("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("heliograph_queue_messages "));
        line.unwrap().parse().unwrap()
    }

    /// Stops the running nodes. Checks that nothing panicked and that every invariant holds.
    pub fn stop(self) {
        for node in &self.nodes {
            if node.address().is_some() {
                node.stop();
            }
            let log = node.log(&self.place);
            assert!(!log.contains("panic"), "a node panicked:\n{log}");
        }
        self.place.check();
    }
}
