//! What a supervisor gets: systemd's notices.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::harness::{Place, TestServer};

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
