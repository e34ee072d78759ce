//! Nodes with their database, their carrier, and the networks to both.

use std::path::Path;

use domain::LostAnswer;
use serde_json::Value;
use testing::faults::{Clock, Disk};
use testing::harness::{Keys, Place};
use testing::postgres::{BaseBackup, Server};
use testing::proxy::Proxy;

use crate::carrier::Carrier;
use crate::database;
use crate::node::Node;

/// The deposit of each application.
pub const DEPOSIT: &str = "1000000";
const SETTINGS: &str = "heliograph.toml";

/// The fields are dropped in this order: the nodes end before the database.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub carrier: Carrier,
    pub networks: Networks,
    /// With SQLite, the disk of the data folder.
    pub data_disk: Option<Disk>,
    /// The clock of each node's machine, if they can be wrong.
    pub clocks: Vec<Clock>,
    pub place: Place,
    /// PostgreSQL. `None` for SQLite.
    database: Option<Server>,
}

/// The networks between the nodes and their peers.
pub struct Networks {
    pub carrier: Proxy,
    /// `None` for SQLite.
    pub database: Option<Proxy>,
    /// The database's URL for the nodes.
    url: Option<String>,
}

impl Cluster {
    /// Creates a cluster with this many nodes, which aren't started yet. `more` is added to the
    /// carrier's settings.
    pub fn new(nodes: usize, more: &str) -> Self {
        Self::on(Server::start(), nodes, more)
    }

    /// The same on a database server of the caller.
    pub fn on(database: Server, nodes: usize, more: &str) -> Self {
        let place = Place::on(&database.url);
        let nodes = (1..=nodes).map(|n| Node::new(&n.to_string())).collect();
        Self::with(nodes, place, Some(database), more)
    }

    /// Creates a cluster with one node on SQLite.
    pub fn on_sqlite(more: &str) -> Self {
        Self::with(vec![Node::new("1")], Place::new(), None, more)
    }

    fn with(nodes: Vec<Node>, place: Place, database: Option<Server>, more: &str) -> Self {
        let carrier = Carrier::start();
        let networks = Networks::new(&carrier, database.as_ref());
        let settings = format!(
            "webhook_allow_http = true\nwebhook_networks = \"127.0.0.0/8\"\n\
             [[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"{}\"\n\
             system_id = \"heliograph\"\npassword = \"secret\"\n{more}\n",
            networks.carrier.address
        );
        std::fs::write(place.path().join(SETTINGS), settings).unwrap();
        let data_disk = database.is_none().then(|| Disk::new(place.path()));
        Self { nodes, carrier, networks, data_disk, clocks: Vec::new(), place, database }
    }

    /// Lets the clock of each node's machine be set wrong.
    pub fn with_clocks(self) -> Self {
        let clock = Clock::new(self.place.path());
        let clocks = (0..self.nodes.len()).map(|node| clock.another(&node.to_string())).collect();
        Self { clocks, ..self }
    }

    pub fn database(&self) -> &Server {
        self.database.as_ref().unwrap()
    }

    /// Returns the disk of the database.
    pub fn disk(&self) -> &Disk {
        self.data_disk.as_ref().unwrap_or_else(|| self.database().disk())
    }

    /// Starts a node behind the proxies, on the disk and with the clock that can fail.
    pub fn start(&self, node: usize) {
        let disk = self.data_disk.as_ref().map(Disk::environment);
        let clock = self.clocks.get(node).map(Clock::environment);
        let shims = disk.into_iter().chain(clock);
        let (libraries, orders): (Vec<_>, Vec<_>) =
            shims.map(|[library, order]| (library.1, order)).unzip();
        let libraries = libraries.join(":");
        let preload = (!libraries.is_empty()).then_some(("LD_PRELOAD", libraries.as_str()));
        let url = self.networks.url.as_deref().map(|url| ("HELIOGRAPH_DATABASE_URL", url));
        let environment: Vec<_> = orders.into_iter().chain(preload).chain(url).collect();
        self.nodes[node].start(&self.place, &environment);
    }

    pub fn start_all(&self) {
        for node in 0..self.nodes.len() {
            self.start(node);
        }
    }

    /// Restores a backup in another folder, and on PostgreSQL in another database. The nodes
    /// start there from now on. What was in the old folder is lost.
    pub fn restore(&mut self, backup: &Path) {
        let place = match &self.database {
            Some(server) => {
                database::execute(server, &["CREATE DATABASE restored"]);
                Place::on(&restored(&server.url))
            }
            None => Place::new(),
        };
        std::fs::copy(self.place.path().join(SETTINGS), place.path().join(SETTINGS)).unwrap();
        place.json(&["restore", backup.to_str().unwrap()]);
        self.networks.url = self.networks.url.as_deref().map(restored);
        self.data_disk = self.database.is_none().then(|| Disk::new(place.path()));
        self.place = place;
    }

    /// Restores a base backup of PostgreSQL. What was in the database is lost. The node's data folder
    /// stays.
    pub fn restore_base(&mut self, backup: BaseBackup) {
        let lost = self.database.take().unwrap();
        self.database = Some(backup.replace(lost));
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

/// Returns the URL of the database that [`Cluster::restore`] creates.
fn restored(url: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/restored")
}

impl Networks {
    fn new(carrier: &Carrier, database: Option<&Server>) -> Self {
        let carrier = Proxy::start(&carrier.address);
        let Some(server) = database else {
            return Self { carrier, database: None, url: None };
        };
        // The URL is `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
        let (user, rest) = server.url.rsplit_once('@').unwrap();
        let (address, name) = rest.split_once('/').unwrap();
        let database = Proxy::start(address);
        let url = format!("{user}@{}/{name}", database.address);
        Self { carrier, database: Some(database), url: Some(url) }
    }
}
