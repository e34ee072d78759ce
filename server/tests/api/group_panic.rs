//! A panic of the group commit thread.

use crate::client::{bare, statuses_at_once};
use crate::faults::Clock;
use crate::harness::{Place, TestServer};

const SANDBOX: (&str, &str) = ("HELIOGRAPH_ALLOW_SANDBOX", "true");

#[test]
fn after_a_panic_of_the_group_commit_thread_no_send_is_answered_200_and_the_process_exits_with_1() {
    let place = Place::new();
    let clock = Clock::new(place.path());
    let [shim, order] = clock.environment();
    let server = TestServer::start(place, &[], &[SANDBOX, shim, order]);
    let keys = server.place.funded("one@example.org", "1");
    let key = keys.live.expose().to_owned();
    let target = format!("/sms/send/{key}?number=57000001&message=Hi");
    let connections: Vec<_> = (0..8).map(|_| server.connect()).collect();
    clock.make_panic("group-commit");
    let statuses = statuses_at_once(connections, &bare("GET", &target, &[]));
    // Sends in the commit group get no answer. Later sends get a 503, which means that nothing was
    // stored.
    assert!(statuses.contains(&None), "{statuses:?}");
    let told = |status: &Option<u16>| matches!(status, None | Some(503));
    assert!(statuses.iter().all(told), "{statuses:?}");

    let (code, log, place) = server.end_by_panic();
    assert_eq!(code, Some(1), "{log}");
    let error = |line: &&str| line.contains("ERROR") && line.contains("the group commit thread");
    assert_eq!(log.lines().filter(error).count(), 1, "{log}");

    // Each unanswered send is stored and charged, or neither.
    let unanswered = statuses.iter().filter(|status| status.is_none()).count();
    let server = TestServer::start(place, &[], &[SANDBOX]);
    assert!(server.count(&key) <= unanswered);
    server.place.check();
    server.accepted(&key, "57000001");
}
