//! A full or broken disk.

use crate::client::{bare, statuses_at_once};
use crate::faults::Disk;
use crate::harness::{Keys, Place, TestServer, until};

/// Starts a server on a disk that can be made to fail, with a funded application.
fn server_on_shim() -> (TestServer, Disk, Keys) {
    let place = Place::new();
    let disk = Disk::new(place.path());
    let [shim, order] = disk.environment();
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true"), shim, order];
    let server = TestServer::start(place, &[], &environment);
    let keys = server.place.funded("one@example.org", "1");
    (server, disk, keys)
}

#[test]
fn a_full_disk_answers_500_and_charges_nothing() {
    let (server, disk, keys) = server_on_shim();
    let key = keys.live.expose();
    let pairs = [("number", "57000001"), ("message", "Hi")];
    assert_eq!(server.send(key, &pairs).status, 200);
    // Waits until the queued message is final, so that nothing else writes while the disk is full.
    until("the message's end", || {
        let reports = server.get(&format!("/sms/reports/{key}")).json();
        (reports["reports"][0]["status"] == "delivered").then_some(())
    });
    disk.fail("write", "-wal");
    let answer = server.send(key, &pairs);
    assert_eq!(answer.status, 500, "{}", answer.text());
    assert_eq!(answer.json()["reason"], "internal");
    assert_eq!(server.get_ops("/healthz").status, 200);
    let ready = server.get_ops("/readyz");
    assert_eq!(ready.status, 503, "{}", ready.text());
    disk.heal();
    assert_eq!(server.get_ops("/readyz").status, 200);
    assert_eq!(server.balance(key), "0.95");
    let answer = server.send(key, &pairs);
    assert_eq!(answer.status, 200, "{} {}", answer.text(), server.log());
    assert_eq!(answer.json()["balance"].to_string(), "0.9");
    server.place.check();
}

#[test]
fn an_upload_that_finds_the_disk_full_leaves_nothing() {
    let (server, disk, keys) = server_on_shim();
    let key = keys.live.expose();
    disk.fail("write", ".rows");
    let parts: [(&str, &[u8]); 1] = [("bulksms", b"57000001,Hi\n")];
    let answer = server.upload(key, &parts);
    assert_eq!(answer.status, 500, "{}", answer.text());
    disk.heal();
    let spool = server.place.path().join("data/spool");
    assert_eq!(std::fs::read_dir(spool).unwrap().count(), 0);
    assert_eq!(server.balance(key), "1");
    assert_eq!(server.upload(key, &parts).status, 200);
    server.place.check();
}

#[test]
fn after_a_failed_sync_nobody_is_answered_and_the_process_stops() {
    let (server, disk, keys) = server_on_shim();
    let key = keys.live.expose().to_owned();
    let target = format!("/sms/send/{key}?number=57000001&message=Hi");
    let connections: Vec<_> = (0..8).map(|_| server.connect()).collect();
    disk.fail("sync", "-wal");
    let statuses = statuses_at_once(connections, &bare("GET", &target, &[]));
    // Sends in the commit group get no answer. Later sends get a 503, which means that nothing was
    // stored.
    assert!(statuses.contains(&None), "{statuses:?}");
    let told = |status: &Option<u16>| matches!(status, None | Some(503));
    assert!(statuses.iter().all(told), "{statuses:?}");
    let (code, place) = server.stop_begun();
    assert_eq!(code, Some(1));

    let unanswered = statuses.iter().filter(|status| status.is_none()).count();
    disk.heal();
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    let server = TestServer::start(place, &[], &environment);
    assert!(server.log().contains("couldn't be synced"), "{}", server.log());
    // Each unanswered send is stored and charged, or neither.
    let reports = server.get(&format!("/sms/reports/{key}")).json();
    let stored = reports["reports"].as_array().unwrap().len();
    assert!(stored <= unanswered);
    server.place.check();
}

#[test]
fn a_failed_sync_of_the_database_after_its_log_was_moved_stops_the_process() {
    let (server, disk, keys) = server_on_shim();
    let key = keys.test.expose();
    disk.fail("sync", "/heliograph.db$");
    // The log is checkpointed at 16 MiB, and these rows are more.
    let rows = "57000001,A text of some length that makes the log long.\n".repeat(20_000);
    let parts: [(&str, &[u8]); 1] = [("bulksms", rows.as_bytes())];
    assert_eq!(server.upload(key, &parts).status, 200);
    let (code, place) = server.stop_begun();
    assert_eq!(code, Some(1));
    disk.heal();
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    let server = TestServer::start(place, &[], &environment);
    assert!(server.log().contains("couldn't be synced"), "{}", server.log());
    until("all rows", || {
        let batches = server.get(&format!("/sms/batches/{key}")).json();
        (batches["batches"][0]["status"] == "done").then_some(())
    });
    server.place.check();
}

#[test]
fn a_process_killed_after_a_commit_and_before_the_submit_loses_nothing() {
    let (server, disk, keys) = server_on_shim();
    let key = keys.live.expose();
    disk.fail("kill", "unmistakable");
    let mut connection = server.connect();
    let target = format!("/sms/send/{key}?number=57000001&message=unmistakable");
    connection.try_write(&bare("GET", &target, &[])).unwrap();
    assert!(connection.read().is_none(), "it was answered");
    let (code, place) = server.stop_begun();
    assert_eq!(code, None, "it wasn't killed");
    disk.heal();
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    let server = TestServer::start(place, &[], &environment);
    let report = until("the message's end", || {
        let reports = server.get(&format!("/sms/reports/{key}")).json();
        let [report] = reports["reports"].as_array().unwrap().as_slice() else {
            panic!("one message was sent: {reports}");
        };
        (report["status"] == "delivered").then(|| report.clone())
    });
    assert!(report["submitted_at"].is_string(), "{report}");
    assert_eq!(server.balance(key), "0.95");
    server.place.check();
}
