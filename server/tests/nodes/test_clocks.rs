//! Two nodes that share a test clock, and the attempts at a one-time code.

use std::io::Write as _;

use testing::client::{bare, encode, exchange};
use testing::harness::until;

use crate::cluster::Cluster;
use crate::load::{LONG, connect, read};

const TWO_DAYS: i64 = 172_800;

#[test]
fn a_clock_moved_on_one_node_moves_on_the_others() {
    let cluster = Cluster::new(2, "");
    let keys = cluster.holding();
    for node in &cluster.nodes {
        node.start(&cluster.place, &[("HELIOGRAPH_SANDBOX_DELAY_MS", "3600000")]);
    }
    let test = keys.test.expose();
    let post = |node: usize, target: &str| {
        let address = cluster.nodes[node].address().unwrap();
        let answer = exchange(&address, &bare("POST", target, &[]));
        answer.is(200, 200, "");
        answer.json()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ms = i64::try_from(now.as_millis()).unwrap() + TWO_DAYS * 1000;
    let sendat = encode(&domain::Timestamp::from_unix_ms(ms).to_string());
    let send = |more: &str| {
        let sent = post(1, &format!("/sms/send/{test}?number=57000001&message=Hi{more}"));
        sent["transid"].as_str().unwrap().to_owned()
    };
    let (at_once, scheduled) = (send(""), send(&format!("&sendat={sendat}")));
    let reaches = |transid: &str, status: &str| {
        let target = format!("/sms/reports/{test}/{transid}");
        until(status, || {
            let report = cluster.nodes[0].get(&target).json()["report"].clone();
            (report["status"] == status).then_some(())
        });
    };
    reaches(&at_once, "submitted");
    // The second node submitted it, and its sandbox delivers after an hour. The first node
    // moves the clock.
    post(0, &format!("/sms/test/clock/{test}?advance={}", TWO_DAYS - 3600));
    reaches(&at_once, "delivered");
    reaches(&scheduled, "scheduled");
    post(0, &format!("/sms/test/clock/{test}?advance=3600"));
    reaches(&scheduled, "submitted");
    five_attempts_are_allowed_on_both_nodes(&cluster, test);
    cluster.stop();
}

/// Guesses a code on 64 connections, half of them to each node.
fn five_attempts_are_allowed_on_both_nodes(cluster: &Cluster, key: &str) {
    let addresses: Vec<String> = cluster.nodes.iter().map(|node| node.address().unwrap()).collect();
    let start = format!("/sms/verify/start/{key}?number=57000002");
    let started = exchange(&addresses[0], &bare("POST", &start, &[])).json();
    let id = started["verifyid"].as_str().unwrap();
    let guess = format!("/sms/verify/check/{key}?verifyid={id}&otp=");
    let wrong = bare("POST", &format!("{guess}000000"), &[]);
    // All connections are open before the first guess.
    let mut connections: Vec<_> =
        (0..64).map(|n| connect(&addresses[n % addresses.len()], LONG).unwrap()).collect();
    for connection in &mut connections {
        connection.write_all(&wrong).unwrap();
    }
    let reasons: Vec<String> = connections
        .iter_mut()
        .map(|connection| read(connection).unwrap())
        .map(|(status, body)| format!("{status} {}", body["reason"].as_str().unwrap()))
        .collect();
    let count = |reason: &str| reasons.iter().filter(|it| it.ends_with(reason)).count();
    let counts = [count("200 wrong_code"), count("200 no_tries_left"), count("429 rate_limited")];
    assert_eq!((counts[0], counts.iter().sum::<usize>()), (5, 64), "{reasons:?}");
    // The code of test keys doesn't help any more.
    let right = exchange(&addresses[1], &bare("POST", &format!("{guess}987654"), &[])).json();
    assert_eq!((&right["verified"], &right["reason"]), (&false.into(), &"no_tries_left".into()));
}
