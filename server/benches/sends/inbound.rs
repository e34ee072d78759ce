//! Inbound messages: how many the server stores and acknowledges over SMPP.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::http;
use crate::sends::RUN;
use crate::server::Server;
use crate::smpp::frame::{
    BIND_RECEIVER, BIND_TRANSCEIVER, DELIVER_SM_RESP, ENQUIRE_LINK, Frame, write_message,
};
use crate::table::{Figure, Table, Target};

/// Unanswered messages.
const WINDOW: u32 = 800;
const NUMBER: &str = "26650000009";

/// Measures one connection, with the number of an application that is polled for events.
pub fn measure(table: &mut Table) {
    println!("inbound messages, 1 connection, {WINDOW} unanswered, {RUN:?}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start_set(&format!(
        "[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"{}\"\n\
         system_id = \"bench\"\npassword = \"secret\"\n",
        listener.local_addr().unwrap()
    ));
    server.call(&["number", "add", NUMBER, "--application", &server.reference()]);
    http::json(&http::fetch(server.address(), &format!("/sms/events/{}", server.key())));
    let (stream, _) = listener.accept().unwrap();
    let (acknowledged, took) = deliver(stream);
    let rate = Figure::PerSecond(f64::from(acknowledged) / took.as_secs_f64());
    table.add("inbound: stored and acknowledged over SMPP", rate, Target::AtLeast(5000.0));
    let list = format!("/sms/inbound/{}?limit=1", server.key());
    let newest = http::json(&http::fetch(server.address(), &list));
    let newest = newest["inbound"][0]["message"].as_str().unwrap().to_owned();
    let number: u32 = newest.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(number >= acknowledged, "{number} of {acknowledged} acknowledged messages are stored");
    server.check();
}

/// Delivers messages for [`RUN`]. Returns how many were acknowledged, and the time that it took.
fn deliver(mut stream: TcpStream) -> (u32, Duration) {
    stream.set_nodelay(true).unwrap();
    let (mut sent, mut acknowledged, mut started) = (0, 0, None);
    let (mut unread, mut buffer) = (Vec::new(), vec![0; 256 * 1024]);
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the server closed the connection");
        unread.extend_from_slice(&buffer[..count]);
        let mut out = Vec::new();
        while let Some(frame) = Frame::first(&unread) {
            match frame.command() {
                BIND_TRANSCEIVER | BIND_RECEIVER => {
                    frame.answer(&mut out, b"bench\0");
                    started = Some(Instant::now());
                }
                ENQUIRE_LINK => frame.answer(&mut out, &[]),
                DELIVER_SM_RESP => acknowledged += 1,
                _ => {}
            }
            let length = frame.length();
            unread.drain(..length);
        }
        if let Some(started) = started {
            if started.elapsed() >= RUN {
                return (acknowledged, started.elapsed());
            }
            while sent < acknowledged + WINDOW {
                sent += 1;
                write_message(&mut out, sent, NUMBER);
            }
        }
        stream.write_all(&out).unwrap();
    }
}
