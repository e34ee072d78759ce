//! The database stops under load and comes back.

use std::time::Duration;

use testing::client::{bare, exchange};
use testing::harness::until;
use testing::postgres::End;

use crate::cluster::Cluster;
use crate::judging::{answers, judge, refusals_say_that_waiting_helps, until_settled};
use crate::load::{LONG, Load, Sent};

const NODES: usize = 2;
const CONNECTIONS: usize = 2;
const WINDOW: usize = 10;
/// The most rows that all processes together may have claimed.
const CLAIMED_MAX: usize = NODES * CONNECTIONS * WINDOW;
const CLIENTS: u64 = 6;
/// The time that the carrier's answers take.
const DELAY: Duration = Duration::from_millis(50);
/// The number of sends that show that nodes work again.
const SOME: usize = 50;

/// Waits for [`SOME`] more answers with 200.
fn until_accepted(load: &Load) {
    let before = load.accepted();
    until("sends that are accepted", || (load.accepted() >= before + SOME).then_some(()));
}

/// Requests a page while the session can't be read. The server must not treat the session as ended.
fn says_when_to_try_again(address: &str) {
    let session = ("Cookie", "heliograph=AAAAAAAAAAAAAAAAAAAAAA");
    let page = exchange(address, &bare("GET", "/applications", &[session]));
    assert_eq!(page.status, 503, "{}", page.text());
    assert!(page.header("retry-after").is_some());
}

#[test]
fn nodes_recover_by_themselves_when_the_database_comes_back() {
    let more = format!("connections = {CONNECTIONS}\nwindow = {WINDOW}");
    let cluster = Cluster::new(NODES, &more);
    let (holding, resending) = (cluster.holding(), cluster.resending());
    cluster.carrier.delay(DELAY);
    cluster.start_all();
    let load = Load::new(&cluster.nodes, &[&holding, &resending], LONG);
    load.beside(CLIENTS, true, || {
        for end in [End::Fast, End::Immediate] {
            until_accepted(&load);
            cluster.database().stop(end);
            for node in &cluster.nodes {
                until("a node that isn't ready", || {
                    (node.get_ops("/readyz").status == 503).then_some(())
                });
            }
            cluster.database().start_again();
            for node in &cluster.nodes {
                node.until_ready();
            }
            until_accepted(&load);
            let taken = cluster.carrier.taken();
            until("messages that go on", || {
                (cluster.carrier.taken() >= taken + SOME).then_some(())
            });
        }
    });
    until_settled(&cluster, &[&holding, &resending]);
    let sent = load.sent();
    println!("{:?}", answers(&sent));
    for (application, keys) in [&holding, &resending].into_iter().enumerate() {
        let its = |sent: &&Sent| sent.application == application;
        let its: Vec<&Sent> = sent.iter().filter(its).collect();
        let judgement = judge(&cluster, keys, &its, 1);
        println!("{judgement}");
        // No process lost any of its work. Only a crash of the database may leave claims whose
        // result is unknown.
        assert!(judgement.unknown <= CLAIMED_MAX, "{judgement}");
    }
    refusals_say_that_waiting_helps(&sent);
    cluster.database().stop(End::Fast);
    says_when_to_try_again(&cluster.nodes[0].address().unwrap());
    cluster.database().start_again();
    for node in &cluster.nodes {
        node.until_ready();
    }
    cluster.stop();
}
