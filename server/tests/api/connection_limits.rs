//! Connections are limited per address, per network and in total. A connection whose answers aren't
//! read is closed.

use crate::client::{Connection, bare};
use crate::harness::{Place, TestServer, until};

/// Starts a demo that doesn't trust this machine as a proxy, so that the limits apply to its
/// connections.
fn limited(environment: &[(&str, &str)]) -> TestServer {
    let trusted = [("HELIOGRAPH_TRUSTED_PROXIES", "192.0.2.1")];
    TestServer::start(Place::new(), &["--demo"], &[&trusted, environment].concat())
}

/// Connects from one of the machine's own addresses. Each `127.0.N.0/24` counts as another network.
fn from(server: &TestServer, address: &str) -> Connection {
    Connection::open_from(address, server.address())
}

/// Returns the status of the answer to a request on this connection. `None` if the connection was
/// closed.
fn answered(connection: &mut Connection) -> Option<u16> {
    connection.try_status(&bare("GET", "/sms/balance/x", &[]))
}

/// Returns how many connections this limit refused or closed.
fn limited_by(server: &TestServer, limit: &str) -> usize {
    let text = server.get_ops("/metrics").text();
    let name = format!("heliograph_connections_limited_total{{limit=\"{limit}\"}} ");
    let count = text.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn an_address_has_so_many_connections_and_so_has_a_network() {
    let server = limited(&[("HELIOGRAPH_CONNECTIONS_PER_ADDRESS", "2")]);
    // Some connections send nothing, some send part of a request.
    let mut open: Vec<_> = (0..2).map(|_| from(&server, "127.0.1.1")).collect();
    open[0].write(b"GET / HT");
    assert!(from(&server, "127.0.1.1").ends());
    assert_eq!(limited_by(&server, "address"), 1);
    open.extend((4..10).map(|host| from(&server, &format!("127.0.1.{host}"))));
    assert!(from(&server, "127.0.1.3").ends());
    assert_eq!(limited_by(&server, "network"), 1);
    // Clients in other networks and existing connections still get answers.
    assert_eq!(answered(&mut from(&server, "127.0.2.1")), Some(401));
    assert_eq!(answered(&mut open[7]), Some(401));
    // A closed connection frees its slot.
    drop(open.pop());
    until("a free slot", || answered(&mut from(&server, "127.0.1.3")));
}

#[test]
fn a_trusted_proxy_has_as_many_connections_as_there_are() {
    let environment = [
        ("HELIOGRAPH_TRUSTED_PROXIES", "127.0.1.0/24"),
        ("HELIOGRAPH_CONNECTIONS_PER_ADDRESS", "3"),
    ];
    let server = TestServer::start(Place::new(), &["--demo"], &environment);
    let mut open: Vec<_> = (0..20).map(|_| from(&server, "127.0.1.1")).collect();
    for connection in &mut open {
        assert_eq!(answered(connection), Some(401));
    }
    let _others: Vec<_> = (0..3).map(|_| from(&server, "127.0.2.1")).collect();
    assert!(from(&server, "127.0.2.1").ends());
}

#[test]
fn who_has_the_most_connections_makes_room_for_others() {
    let server = limited(&[("HELIOGRAPH_CONNECTIONS_MAX", "20")]);
    let mut customer = from(&server, "127.0.2.1");
    assert_eq!(answered(&mut customer), Some(401));
    let many: Vec<_> = (0..19).map(|_| from(&server, "127.0.1.1")).collect();
    // All slots are taken. The new connection is refused, because its address has the most.
    assert!(from(&server, "127.0.1.1").ends());
    assert_eq!(limited_by(&server, "all"), 1);
    for network in 3..8 {
        let mut other = from(&server, &format!("127.0.{network}.1"));
        assert_eq!(answered(&mut other), Some(401));
    }
    assert_eq!(answered(&mut customer), Some(401));
    // At least one connection was closed to make room. The others found free slots, because earlier
    // connections had ended.
    let made_room = limited_by(&server, "all") - 1;
    assert!((1..=5).contains(&made_room), "{made_room}");
    drop(many);
}

#[test]
fn an_answer_that_nobody_reads_is_cut() {
    let server = limited(&[]);
    let target = "/openapi.json";
    let length = server.get(target).body.len();
    // More than the system's buffers on both sides can hold.
    let requests = bare("GET", target, &[]).repeat(40_000_000 / length);
    let mut deaf = server.connect();
    deaf.write(&requests);
    until("the end of the answers", || {
        // Other clients get answers meanwhile.
        assert_eq!(server.get("/sms/balance/x").status, 401);
        (limited_by(&server, "unread") == 1).then_some(())
    });
}
