//! Attackers' forms cost little: nothing is written above the limits, and nothing is hashed without
//! a valid link.

use crate::client::{Answer, bare, form};
use crate::harness::{Place, TestServer, until};
use crate::portal::Browser;

/// All security events except the sums of throttled attempts, which are stored once a minute.
const EVENTS: &str = "security_events WHERE kind <> 'throttled'";
/// Attempts of one client.
const STORM: usize = 400;
/// The most reset links that one address may request per hour: 5 per email, times 10.
const RESET_LINKS: i64 = 50;
/// The most failed sign-ins of one address in 15 minutes: 10 per email, times 5.
const SIGN_INS: i64 = 50;
/// The most registrations of one address per hour.
const REGISTRATIONS: i64 = 20;
/// The most attempts to use reset links by one address in 15 minutes.
const RESETS: usize = 20;

fn server() -> TestServer {
    TestServer::empty()
}

/// Returns the number of rows of a table.
fn rows(server: &TestServer, table: &str) -> i64 {
    server.place.rows(table)
}

/// Posts a form like a script, so that a refusal is in the answer.
fn post(server: &TestServer, function: &str, pairs: &[(&str, &str)]) -> Answer {
    server.exchange(&request(function, pairs))
}

fn request(function: &str, pairs: &[(&str, &str)]) -> Vec<u8> {
    let body = form(pairs);
    let length = body.len().to_string();
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", length.as_str()),
        ("Origin", "http://test"),
    ];
    let mut bytes = bare("POST", &format!("/fn/{function}"), &headers);
    bytes.extend(body.as_bytes());
    bytes
}

/// Posts [`STORM`] forms from eight connections at the same time. Returns how many were throttled.
fn storm(server: &TestServer, post: impl Fn(&TestServer, usize) -> Answer + Sync) -> usize {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let post = &post;
                scope.spawn(move || {
                    let mine = (client..STORM).step_by(8);
                    mine.filter(|n| {
                        let answer = post(server, *n);
                        assert_ne!(answer.status, 500, "{}", answer.text());
                        answer.text().contains("Throttled")
                    })
                    .count()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    })
}

/// Returns how many passwords the process has hashed.
fn hashes(server: &TestServer) -> u64 {
    let metrics = server.get_ops("/metrics").text();
    let name = "heliograph_password_hashes_total ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().parse().unwrap()
}

#[test]
fn a_storm_of_requests_for_reset_links_is_written_up_to_its_limit() {
    let server = server();
    Browser::registered(&server, "known@example.org");
    let before = server.place.rows(EVENTS);
    let throttled = storm(&server, |server, n| {
        let email = format!("n{n}@example.org");
        post(server, "forgot", &[("email", &email)])
    });
    assert_eq!(throttled, STORM - usize::try_from(RESET_LINKS).unwrap());
    assert_eq!(server.place.rows(EVENTS) - before, RESET_LINKS);
    assert_eq!(server.place.rows("outbox"), 0);
    assert_eq!(hashes(&server), 1);
}

#[test]
fn a_storm_of_sign_ins_and_registrations_is_written_and_hashed_up_to_its_limit() {
    let server = server();
    let throttled = storm(&server, |server, n| {
        let email = format!("n{n}@example.org");
        let fields = [("email", email.as_str()), ("password", "not it"), ("next", "")];
        post(server, "sign-in", &fields)
    });
    assert_eq!(throttled, STORM - usize::try_from(SIGN_INS).unwrap());
    assert_eq!(server.place.rows(EVENTS), SIGN_INS);
    assert_eq!(hashes(&server), u64::try_from(SIGN_INS).unwrap());
    assert_eq!(server.place.rows("sessions"), 0);

    let throttled = storm(&server, |server, n| {
        let email = format!("n{n}@example.org");
        let fields = [("email", email.as_str()), ("new_password", "correct horse"), ("next", "")];
        post(server, "register", &fields)
    });
    assert_eq!(throttled, STORM - usize::try_from(REGISTRATIONS).unwrap());
    assert_eq!(server.place.rows("accounts"), REGISTRATIONS);
    assert_eq!(server.place.rows("sessions"), REGISTRATIONS);
    assert_eq!(hashes(&server), u64::try_from(SIGN_INS + REGISTRATIONS).unwrap());
}

#[test]
fn forms_that_are_posted_and_closed_are_written_up_to_their_limit() {
    let server = server();
    let form = |n: usize| request("forgot", &[("email", &format!("n{n}@example.org"))]);
    for n in 0..STORM {
        server.connect().write(&form(n));
    }
    until("the limit to be reached", || (rows(&server, EVENTS) == RESET_LINKS).then_some(()));
    let last = server.exchange(&form(STORM));
    assert!(last.text().contains("Throttled"), "{}", last.text());
    assert_eq!(rows(&server, EVENTS), RESET_LINKS);
    assert_eq!(hashes(&server), 0);
}

#[test]
fn made_up_reset_links_are_not_hashed_for() {
    let server = server();
    let throttled = storm(&server, |server, n| {
        let token = format!("{n:064x}");
        let fields = [("token", token.as_str()), ("new_password", "correct horse")];
        post(server, "reset", &fields)
    });
    assert_eq!(throttled, STORM - RESETS);
    assert_eq!(hashes(&server), 0);
    assert_eq!(rows(&server, EVENTS), 0);
    assert_eq!(rows(&server, "sessions"), 0);
}

#[test]
fn the_owner_gets_in_where_strangers_used_up_the_limit() {
    let server = TestServer::start(
        Place::new(),
        &[],
        &[("HELIOGRAPH_ALLOW_SANDBOX", "true"), ("HELIOGRAPH_SIGN_IN_FAILURES_MAX", "2")],
    );
    let fields = |password| [("email", "owner@example.org"), ("password", password), ("next", "")];
    let mut owner = Browser::registered(&server, "owner@example.org");
    for _ in 0..3 {
        post(&server, "sign-in", &fields("not the password"));
    }
    let stranger = post(&server, "sign-in", &fields("correct horse battery"));
    assert!(stranger.text().contains("Throttled"), "{}", stranger.text());
    let known = owner.device.clone().unwrap();
    assert!(known.starts_with("heliograph-device="), "{known}");
    owner.cookie = None;
    let answer = owner.post("sign-in", &fields("correct horse battery"));
    assert_eq!(answer.header("location"), Some("/applications"));
    for _ in 0..2 {
        owner.ask("sign-in", &fields("not the password"));
    }
    let answer = owner.ask("sign-in", &fields("correct horse battery"));
    assert!(answer.text().contains("Throttled"), "its own failures do");

    // Another account's cookie doesn't help.
    let mut other = Browser::registered(&server, "other@example.org");
    other.cookie = None;
    let answer = other.ask("sign-in", &fields("correct horse battery"));
    assert!(answer.text().contains("Throttled"), "{}", answer.text());
}
