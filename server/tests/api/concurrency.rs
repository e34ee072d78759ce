//! Many clients at the same time.

use std::sync::{Barrier, Mutex};

use domain::Money;

use crate::client::{Answer, bare, form};
use crate::harness::{TestServer, money};

/// Returns the balance in an answer, with all its digits.
fn balance(answer: &Answer) -> Money {
    let text = answer.text();
    let (_, after) = text.split_once("\"balance\":").expect(&text);
    money(&after[..after.find([',', '}']).unwrap()])
}

#[test]
fn sends_at_once_never_overdraw() {
    let server = TestServer::empty();
    let keys = server.place.funded("busy@example.org", "1.23");
    let key = keys.live.expose();
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let answer = server.send(key, &[("number", "57000001"), ("message", "Hi")]);
                    answers.lock().unwrap().push(answer);
                }
            });
        }
    });
    let answers = answers.into_inner().unwrap();
    // 1.23 pays for 24 of the 80 sends, in any order.
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 24);
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 402)));
    assert_eq!(server.balance(key), "0.03");
    assert_eq!(server.count(key), 24);
    server.place.check();
}

#[test]
fn balances_of_sends_at_once_form_one_chain() {
    const SENDERS: usize = 64;
    const EACH: usize = 5;
    let server = TestServer::empty();
    let keys = server.place.funded("choir@example.org", "20");
    let key = keys.live.expose();
    let request = bare("GET", &format!("/sms/send/{key}?number=57000001&message=Hi"), &[]);
    let ready = Barrier::new(SENDERS);
    let balances = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                let mut connection = server.connect();
                ready.wait();
                for _ in 0..EACH {
                    connection.write(&request);
                    let answer = connection.read().unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    balances.lock().unwrap().push(balance(&answer));
                }
            });
        }
    });
    // Each answer has the balance after its own charge, so each balance occurs exactly once.
    let mut balances = balances.into_inner().unwrap();
    balances.sort_unstable();
    balances.reverse();
    let spent = |sends| money("0.05").checked_times(sends).unwrap();
    let chain: Vec<_> =
        (1..=SENDERS * EACH).map(|sends| money("20").checked_sub(spent(sends)).unwrap()).collect();
    assert_eq!(balances, chain);
    server.place.check();
}

#[test]
fn deposits_and_sends_mix() {
    let server = TestServer::empty();
    let keys = server.place.funded("mixed@example.org", "5");
    let key = keys.live.expose();
    let reference = keys.reference.to_string();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    server.accepted(key, "57000001");
                }
            });
        }
        scope.spawn(|| {
            for number in 0..4 {
                let bank_id = format!("mixed-{number}");
                server.place.json(&["deposit", "add", &reference, "2.5", "--bank-id", &bank_id]);
            }
        });
    });
    assert_eq!(server.balance(key), "11");
    server.place.check();
}

#[test]
fn clients_that_leave_change_nothing_by_half() {
    let server = TestServer::empty();
    let keys = server.place.funded("hasty@example.org", "100");
    let key = keys.live.expose();
    let body = form(&[("number", "57000001"), ("message", "Hi")]);
    let get = format!("GET /sms/send/{key}?{body} HTTP/1.1\r\nHost: test\r\n\r\n");
    let post = format!(
        "POST /sms/send/{key} HTTP/1.1\r\nHost: test\r\nContent-Type: \
         application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let whole = [get.as_str(), post.as_str()];
    std::thread::scope(|scope| {
        for request in whole {
            for cut in 0..3 {
                let server = &server;
                scope.spawn(move || {
                    for length in (1 + cut..=request.len()).step_by(3) {
                        let mut connection = server.connect();
                        connection.write(&request.as_bytes()[..length]);
                        // The connection is closed here, before any answer.
                    }
                });
            }
        }
    });
    // The server still works, and each of the cut requests was sent wholly or not at all.
    server.accepted(key, "57000001");
    let count = server.count(key);
    let (code, place) = server.stop();
    assert_eq!(code, Some(0));
    place.check();
    let server = TestServer::start(place, &[], &[("HELIOGRAPH_ALLOW_SANDBOX", "true")]);
    let count = count.max(server.count(key));
    let spent = domain::Money::from_micros(50_000 * i64::try_from(count).unwrap());
    let left = crate::harness::money("100").checked_sub(spent).unwrap();
    assert_eq!(server.balance(key), left.to_string());
    // Only complete requests can have been sent: at most one of each kind and the last one.
    assert!((1..=3).contains(&count), "{count}");
}
