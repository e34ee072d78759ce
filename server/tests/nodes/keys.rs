//! A key that is replaced on one node stops working on the others.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testing::client::{Answer, bare, exchange, form};
use testing::harness::until;

use crate::cluster::Cluster;
use crate::database;
use crate::load::Over;

/// The password of test accounts.
const PASSWORD: &str = "correct horse battery";
const CLIENTS: usize = 4;
/// The number of requests to wait for, before and after the key is replaced.
const SOME: usize = 200;

/// Calls one of the portal's server functions, like a browser without JavaScript.
fn post(address: &str, function: &str, cookie: &str, pairs: &[(&str, &str)]) -> Answer {
    let body = form(pairs);
    let length = body.len().to_string();
    let headers = [
        ("Accept", "text/html"),
        ("Origin", "http://test"),
        ("Referer", "http://test/applications"),
        ("Cookie", cookie),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", length.as_str()),
    ];
    let mut request = bare("POST", &format!("/fn/{function}"), &headers);
    request.extend(body.as_bytes());
    let answer = exchange(address, &request);
    assert_eq!(answer.status, 302, "{}", answer.text());
    answer
}

#[test]
fn a_key_replaced_on_one_node_charges_nothing_on_another() {
    let cluster = Cluster::new(2, "");
    let keys = cluster.holding();
    cluster.start_all();
    let [portal, other] = [0, 1].map(|node| cluster.nodes[node].address().unwrap());
    let reference = keys.reference.to_string();
    let (replaced, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (accepted, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let send = || {
        while !over.load(Ordering::Relaxed) {
            // Read before the request, because a request during the replacement may succeed or
            // fail.
            let dead = replaced.load(Ordering::SeqCst);
            let target = format!("/sms/send/{}?number=10000000&message=Hello", keys.live.expose());
            let answer = exchange(&other, &bare("GET", &target, &[]));
            if answer.status == 200 {
                assert!(!dead, "a replaced key was charged: {}", answer.text());
                accepted.fetch_add(1, Ordering::Relaxed);
            } else {
                answer.is(401, 504, "api_invalid");
                refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let ends = Over(&over);
        for _ in 0..CLIENTS {
            scope.spawn(send);
        }
        let signed_in = post(
            &portal,
            "sign-in",
            "",
            &[("email", "hold@example.org"), ("password", PASSWORD), ("next", "")],
        );
        let cookie = signed_in.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let count = |counter: &AtomicUsize, least: usize| {
            until("requests", || (counter.load(Ordering::Relaxed) >= least).then_some(()));
        };
        count(&accepted, SOME);
        let fields = [("reference", reference.as_str()), ("kind", "live"), ("password", PASSWORD)];
        let answer = post(&portal, "replace-key", cookie, &fields);
        let mut cookies = answer.headers("set-cookie");
        assert!(!cookies.any(|cookie| cookie.starts_with("heliograph-form=")));
        replaced.store(true, Ordering::SeqCst);
        count(&refused, SOME);
        drop(ends);
    });
    let stored = database::number(cluster.database(), "SELECT COUNT(*) FROM messages");
    assert_eq!(usize::try_from(stored).unwrap(), accepted.into_inner());
    cluster.stop();
}
