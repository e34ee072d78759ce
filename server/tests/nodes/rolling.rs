//! The nodes are restarted one after the other, behind a proxy that checks whether they are ready.
//! Every request succeeds. If `HELIOGRAPH_PREVIOUS_BIN` names the binary of the previous release,
//! the nodes start with it and are upgraded.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use testing::client::bare;
use testing::harness::until;

use crate::cluster::Cluster;
use crate::judging::{judge, until_settled};
use crate::load::{LONG, Outcome, Over, SHORT, Sent, ask, connect, read};
use crate::node::Node;

const NODES: usize = 2;
const CLIENTS: usize = 6;
const ROUNDS: usize = 2;
/// The pause between two checks of a node by the proxy.
const LOOK: Duration = Duration::from_millis(200);
/// The pause between two requests of a client.
const PACE: Duration = Duration::from_millis(10);
/// The number of requests that show that the other nodes still work.
const SOME: usize = 50;
/// Longer than the proxy needs to notice the stop.
const DELAY: [(&str, &str); 1] = [("HELIOGRAPH_STOP_DELAY_SECONDS", "4")];

/// The state of a proxy in front of the nodes.
struct Proxy<'a> {
    nodes: &'a [Node],
    ready: [AtomicBool; NODES],
    over: AtomicBool,
    next_number: AtomicUsize,
    sent: Mutex<Vec<Sent>>,
}

impl<'a> Proxy<'a> {
    fn new(nodes: &'a [Node]) -> Self {
        Self {
            nodes,
            ready: [const { AtomicBool::new(false) }; NODES],
            over: AtomicBool::new(false),
            next_number: AtomicUsize::new(10_000_000),
            sent: Mutex::default(),
        }
    }

    fn is_ready(&self, node: usize) -> bool {
        self.ready[node].load(Ordering::Relaxed)
    }

    /// Checks a node repeatedly.
    fn look(&self, node: usize) {
        let request = bare("GET", "/readyz", &[]);
        while !self.over.load(Ordering::Relaxed) {
            let address = self.nodes[node].ops_address();
            let status = address.and_then(|address| ask(&address, &request, SHORT));
            let ready = status.is_some_and(|(status, _)| status == 200);
            self.ready[node].store(ready, Ordering::Relaxed);
            std::thread::sleep(LOOK);
        }
    }

    /// Sends to the ready nodes in turn, on persistent connections.
    fn send(&self, client: usize, key: &str) {
        let mut connections = BTreeMap::new();
        let mut turn = client;
        while !self.over.load(Ordering::Relaxed) {
            turn += 1;
            let ready = self.is_ready(turn % NODES);
            let Some(address) = self.nodes[turn % NODES].address().filter(|_| ready) else {
                std::thread::sleep(PACE);
                continue;
            };
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            let target = format!("/sms/send/{key}?number={number}&message=Hello");
            let request = bare("GET", &target, &[]);
            let outcome = exchange(&mut connections, &address, &request);
            self.sent.lock().unwrap().push(Sent {
                application: 0,
                numbers: number..number + 1,
                upload: false,
                answers: vec![outcome.clone()],
                outcome,
            });
            std::thread::sleep(PACE);
        }
    }

    fn until_ready(&self, node: usize) {
        until("a node that the proxy finds ready", || self.is_ready(node).then_some(()));
    }

    /// Waits for [`SOME`] more requests.
    fn until_sent(&self) {
        let count = || self.sent.lock().unwrap().len();
        let before = count();
        until("requests", || (count() >= before + SOME).then_some(()));
    }
}

/// Sends a request on the connection to a node, and opens the connection if there is none.
fn exchange(
    connections: &mut BTreeMap<String, TcpStream>,
    address: &str,
    request: &[u8],
) -> Outcome {
    let answer =
        connections.remove(address).or_else(|| connect(address, LONG)).and_then(|mut stream| {
            stream.write_all(request).ok()?;
            let answer = read(&mut stream)?;
            connections.insert(address.to_owned(), stream);
            Some(answer)
        });
    Outcome::of(answer, "transid")
}

#[test]
fn restarting_nodes_one_by_one_refuses_no_send() {
    let cluster = Cluster::new(NODES, "connections = 2\nwindow = 10");
    let keys = cluster.holding();
    let previous = std::env::var_os("HELIOGRAPH_PREVIOUS_BIN");
    let start = |node: &Node, is_upgraded: bool| match &previous {
        Some(binary) if !is_upgraded => node.start_release(binary, &cluster.place, &DELAY),
        _ => node.start(&cluster.place, &DELAY),
    };
    for node in &cluster.nodes {
        start(node, false);
    }
    let proxy = Proxy::new(&cluster.nodes);
    std::thread::scope(|scope| {
        let over = Over(&proxy.over);
        for node in 0..NODES {
            let proxy = &proxy;
            scope.spawn(move || proxy.look(node));
        }
        for client in 0..CLIENTS {
            let (proxy, key) = (&proxy, keys.live.expose());
            scope.spawn(move || proxy.send(client, key));
        }
        for round in 0..ROUNDS * NODES {
            for node in 0..NODES {
                proxy.until_ready(node);
            }
            proxy.until_sent();
            let node = &cluster.nodes[round % NODES];
            node.stop();
            proxy.until_sent();
            // Once all are upgraded, one goes back to the previous release.
            start(node, round != NODES);
        }
        proxy.until_sent();
        drop(over);
    });
    until_settled(&cluster, &[&keys]);
    let sent = proxy.sent.into_inner().unwrap();
    for sent in &sent {
        assert!(matches!(sent.outcome, Outcome::Accepted(_)), "{sent:?}");
    }
    let sent: Vec<&Sent> = sent.iter().collect();
    // A stopping node finishes or releases all the messages it has claimed.
    assert_eq!(judge(&cluster, &keys, &sent, 1).unknown, 0);
    cluster.stop();
}
