//! What a supervisor gets: systemd's notices, and log lines as JSON.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Place, TestServer, until};

#[test]
fn systemd_is_told_when_the_server_is_ready_and_when_it_stops() {
    let place = Place::new();
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let read = || {
        let mut notice = [0; 64];
        let length = socket.recv(&mut notice).unwrap();
        String::from_utf8(notice[..length].to_vec()).unwrap()
    };
    let path = path.to_str().unwrap().to_owned();
    let server = TestServer::start(place, &["--demo"], &[("NOTIFY_SOCKET", &path)]);
    assert_eq!(read(), "READY=1");
    assert_eq!(server.stop().0, Some(0));
    assert_eq!(read(), "STOPPING=1");
}

#[test]
fn log_lines_can_be_json() {
    let place = Place::new();
    // Nobody listens at this address.
    let settings = "[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"127.0.0.1:1\"\n\
                    system_id = \"heliograph\"\npassword = \"hidden\"\n";
    std::fs::write(place.path().join("heliograph.toml"), settings).unwrap();
    let server = TestServer::start(place, &[], &[("HELIOGRAPH_LOG_FORMAT", "json")]);
    let line = until("a line about the carrier", || {
        let log = server.log();
        let (lines, _) = log.rsplit_once('\n')?;
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.into_iter().find(|line| line["carrier"] == "acme")
    });
    assert_eq!(line["message"], "SMPP link down", "{line}");
    assert_eq!(line["level"], "WARN", "{line}");
    assert_eq!(line["fault"], "nobody_listens", "{line}");
    assert_eq!(line["connection.number"], 1, "{line}");
    assert!(line["error"].as_str().unwrap().contains("Check host and port"), "{line}");
    assert_eq!(server.stop().0, Some(0));
}
