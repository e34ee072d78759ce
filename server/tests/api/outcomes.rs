//! The sandbox carrier's outcomes for reserved numbers, and what they cost.

use crate::harness::{TestServer, until};

#[test]
fn reserved_numbers_decide() {
    let server = TestServer::demo();
    for key in [server.key(), server.test_key()] {
        for (number, status, error, released) in [
            ("57000001", "delivered", None, "0"),
            ("00000001", "delivered", None, "0"),
            ("00000002", "failed", Some("handset_unavailable"), "0"),
            ("00000003", "expired", Some("validity_expired"), "0"),
            // No carrier accepted it, so the charge is released.
            ("00000004", "rejected", Some("refused_by_carrier"), "0.05"),
        ] {
            let transid = server.accepted(key, number);
            let report = server.final_report(key, &transid);
            assert_eq!(report["status"], status, "{number}: {report}");
            assert_eq!(report["error"].as_str(), error, "{number}: {report}");
            assert_eq!(report["charge"]["released"].to_string(), released, "{number}");
        }
    }
    // 5 sends, one of which was released.
    assert_eq!(server.balance(server.key()), "9.8");
    server.place.check();
}

#[test]
fn a_stopped_server_goes_on_where_it_was() {
    let server = TestServer::start(
        crate::harness::Place::new(),
        &["--demo"],
        &[("HELIOGRAPH_SANDBOX_DELAY_MS", "60000")],
    );
    let key = server.key().to_owned();
    let sent: Vec<String> = (0..5).map(|_| server.accepted(&key, "57000001")).collect();
    let (code, place) = server.stop();
    assert_eq!(code, Some(0));
    place.check();
    let server = TestServer::start(place, &["--demo"], &[]);
    assert_eq!(server.key(), key);
    for transid in &sent {
        assert_eq!(server.final_report(&key, transid)["status"], "delivered");
    }
    server.place.check();
}

#[test]
fn unusual_orders_of_answers_and_receipts_are_simulated() {
    let server = TestServer::demo();
    let key = server.test_key();
    let again = server.accepted(key, "00000006");
    let first = server.accepted(key, "00000007");
    let answering = server.accepted(key, "00000008");
    for transid in [&again, &first, &answering] {
        assert_eq!(server.final_report(key, transid)["status"], "delivered");
    }
    let retried = server.final_report(key, &again)["timeline"].to_string();
    assert!(retried.contains("refuses the first attempt"), "{retried}");
    let answer = until("the answer", || {
        let listed = server.get(&format!("/sms/inbound/{key}")).json();
        listed["inbound"].as_array().unwrap().first().cloned()
    });
    assert_eq!(answer["number"], "26600000008");
    assert_eq!(answer["message"], "This is a test answer.");
    assert_eq!(answer["test"], true);
    let live = server.get(&format!("/sms/inbound/{}", server.key())).json();
    assert_eq!(live["inbound"].as_array().unwrap().len(), 0);
    server.place.check();
}
