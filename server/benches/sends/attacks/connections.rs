//! One client that opens as many connections as the machine allows, up to ten thousand.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::time::{sleep, sleep_until, timeout};

use super::tally::Tally;
use super::{Strangers, compare};
use crate::http;
use crate::load::status_in;
use crate::server::Server;
use crate::table::Table;

const CONNECTIONS: usize = 10_000;
/// File descriptors that this process and the server need for everything else.
const OTHER_FILES: usize = 1_000;
/// The attacker's address, in a different network than the senders'. Loopback addresses are trusted
/// proxies by default, and connection limits don't apply to those, so [`SETTINGS`] trusts another
/// address.
const SOURCE: &str = "127.0.9.1:0";
const SETTINGS: &str = "trusted_proxies = \"192.0.2.1/32\"\n";
/// The connections opened per second, so that opening them takes only part of a run.
const OPENED_PER_SECOND: u32 = 1_000;
const RUN: Duration = Duration::from_secs(20);
/// The pause between two bytes.
const PAUSE: Duration = Duration::from_secs(10);
/// The pause before a closed connection is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// The receive buffer of a client that makes the server wait.
const RECEIVE_BUFFER: u32 = 4096;
/// The number of requests whose responses are never read, more than the buffers hold.
const UNREAD: usize = 16;
/// The pause between two sends of the other customer, and the time that a send may take.
const OTHERS_PAUSE: Duration = Duration::from_millis(100);
const OTHERS_PATIENCE: Duration = Duration::from_secs(2);

/// What the attacker does with its connections.
#[derive(Clone, Copy)]
enum Manner {
    /// Sends the body of a form at one byte per ten seconds.
    Drip,
    /// Requests large responses and reads nothing.
    Unread,
}

pub fn drip(table: &mut Table) {
    measure("that send a byte per 10 s", Manner::Drip, table);
}

pub fn unread(table: &mut Table) {
    measure("that read nothing", Manner::Unread, table);
}

fn measure(what: &str, manner: Manner, table: &mut Table) {
    let connections = CONNECTIONS.min(files_max().saturating_sub(OTHER_FILES));
    let server = Server::start_set(SETTINGS);
    let key = server.key().to_owned();
    let attack = |strangers: &Strangers| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| others(strangers, &key));
            let mut tally = open(strangers, connections, manner);
            tally.add(other.join().unwrap());
            tally
        })
    };
    let what = format!("{connections} connections {what}");
    compare(&what, server, RUN, attack, table);
}

/// Returns how many files this process may have open.
fn files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.unwrap().split_whitespace().nth(3).unwrap();
    soft.parse().unwrap_or(CONNECTIONS + OTHER_FILES)
}

/// Sends charged messages as another customer, each on a new connection.
fn others(strangers: &Strangers, key: &str) -> Tally {
    let mut tally = Tally::default();
    let send = format!("/sms/send/{key}?number=58000001&message=Hello");
    let request = format!("GET {send} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    let address: SocketAddr = strangers.address.parse().unwrap();
    while Instant::now() < strangers.until {
        let asked = Instant::now();
        let status = exchange(&address, request.as_bytes());
        let word = status.map_or("nothing".to_owned(), |status| status.to_string());
        tally.other(&word, asked.elapsed());
        std::thread::sleep(OTHERS_PAUSE);
    }
    tally
}

fn exchange(address: &SocketAddr, request: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(address, OTHERS_PATIENCE).ok()?;
    stream.set_read_timeout(Some(OTHERS_PATIENCE)).ok()?;
    stream.write_all(request).ok()?;
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).ok()?;
    status_in(&answer[..read])
}

/// Opens the connections at a fixed pace, keeps them open, and counts how they end.
fn open(strangers: &Strangers, connections: usize, manner: Manner) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tally = Rc::new(RefCell::new(Tally::default()));
    let address = strangers.address.parse().unwrap();
    let nothing = strangers.nothing_every.is_some();
    let until = strangers.until.into();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let begun = tokio::time::Instant::now();
        for number in 0..u32::try_from(connections).unwrap() {
            let tally = Rc::clone(&tally);
            tokio::task::spawn_local(async move {
                sleep_until(begun + Duration::from_secs(1) * number / OPENED_PER_SECOND).await;
                loop {
                    let became = one(address, manner, nothing).await;
                    tally.borrow_mut().note(became.to_owned());
                    if nothing {
                        return;
                    }
                    sleep(AGAIN).await;
                }
            });
        }
        sleep_until(until).await;
    });
    // This also closes the connections.
    drop(runtime);
    let mut tally = Rc::into_inner(tally).map(RefCell::into_inner).unwrap();
    tally.asked = 1;
    tally
}

/// Runs one connection until it ends. Returns how it ended.
async fn one(address: SocketAddr, manner: Manner, nothing: bool) -> &'static str {
    let Some(mut stream) = connect(address, manner).await else {
        return "not opened";
    };
    let request = match manner {
        _ if nothing => http::get("/fn/nothing"),
        Manner::Drip => b"POST /fn/forgot HTTP/1.1\r\nHost: bench\r\nContent-Length: 60\r\n\
            Content-Type: application/x-www-form-urlencoded\r\n\r\n"
            .to_vec(),
        Manner::Unread => http::get("/openapi.json").repeat(UNREAD),
    };
    if stream.write_all(&request).await.is_err() {
        return "closed";
    }
    if nothing {
        let read = stream.read(&mut [0; 1024]).await;
        return if read.is_ok_and(|read| read > 0) { "404" } else { "closed" };
    }
    loop {
        sleep(PAUSE).await;
        if stream.write_all(b"e").await.is_err() {
            return "closed";
        }
    }
}

async fn connect(address: SocketAddr, manner: Manner) -> Option<tokio::net::TcpStream> {
    let socket = TcpSocket::new_v4().ok()?;
    if let Manner::Unread = manner {
        socket.set_recv_buffer_size(RECEIVE_BUFFER).ok()?;
    }
    socket.bind(SOURCE.parse().ok()?).ok()?;
    timeout(PAUSE, socket.connect(address)).await.ok()?.ok()
}
