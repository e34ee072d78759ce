//! Events: what they cost sends, and how fast endpoints get them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::http;
use crate::measured::p50_p99;
use crate::rounds::{alternate, repeat};
use crate::sends::RUN;
use crate::server::Server;
use crate::table::{Figure, Table, Target, float};

const CONNECTIONS: usize = 64;
/// Endpoints may be on this machine.
const SETTINGS: &str = "webhook_allow_http = true\nwebhook_networks = \"127.0.0.0/8\"\n";
/// The applications and their endpoints, half of which never answer.
const APPLICATIONS: usize = 100;
const ENDPOINTS_EACH: usize = 10;
/// The longest time in which all deliveries must arrive.
const DEADLINE: Duration = Duration::from_mins(5);

pub fn measure(table: &mut Table) {
    sends(table);
    replay(table);
    many(table);
}

/// Compares sends of an application that nobody asked for events with those of one that is polled
/// and of one that has an endpoint.
fn sends(table: &mut Table) {
    println!("sends, {CONNECTIONS} connections, 1 application, runs of {RUN:?}");
    let receiver = Receiver::start();
    let [plain, polled, hooked] = [(); 3].map(|()| Server::start_set(SETTINGS));
    http::json(&http::fetch(polled.address(), &format!("/sms/events/{}", polled.key())));
    create(&hooked, hooked.key(), &receiver.url());
    let servers = [&plain, &polled, &hooked];
    let mut contenders: Vec<_> =
        servers.iter().map(|server| server.contender(server.sends(1))).collect();
    let runs = alternate(&mut contenders, CONNECTIONS, RUN);
    drop(contenders);
    let medians: Vec<_> = runs.iter().map(super::measured::Runs::median).collect();
    println!("      without events: {}", medians[0]);
    for (name, median) in ["a program that polls", "an endpoint"].iter().zip(&medians[1..]) {
        let ratio = Figure::Times(median.per_second / medians[0].per_second);
        let what = format!("events: sends with {name} : without");
        table.add_beside(what, ratio, Target::AtLeast(0.8), &[median.to_string()]);
    }
}

/// Measures deliveries to one endpoint, and replays while messages are sent.
fn replay(table: &mut Table) {
    const EVENTS: usize = 100_000;
    let receiver = Receiver::start();
    let server = Server::start_set(SETTINGS);
    create(&server, server.key(), &receiver.url());
    let mut requests = server.sends(1);
    let started = Instant::now();
    while receiver.count() < EVENTS {
        assert!(started.elapsed() < DEADLINE * 4, "{} deliveries", receiver.count());
        repeat(server.address(), &mut requests, CONNECTIONS, RUN);
    }
    server.wait_until_final();
    receiver.settle();
    // Events that arrived while messages were sent, and after it.
    let rate = Figure::PerSecond(receiver.rate());
    let what = "events: deliveries to one endpoint, messages sent meanwhile";
    table.add(what, rate, Target::AtLeast(2000.0));
    // A replay skips what the endpoint has taken, so this is a new one.
    let id = create(&server, server.key(), &receiver.url());
    let alone = repeat(server.address(), &mut requests, CONNECTIONS, RUN).median();
    server.wait_until_final();
    receiver.settle();
    receiver.forget();
    let path = format!("/sms/webhooks/{}/{id}", server.key());
    post(&server, &path, "replay_from=2026-01-01T00:00:00Z");
    let beside = repeat(server.address(), &mut requests, CONNECTIONS, RUN).median();
    println!("      alone: {alone}");
    let ratio = Figure::Times(beside.per_second / alone.per_second);
    let what = "events: sends beside a replay : alone".to_owned();
    table.add_beside(what, ratio, Target::AtLeast(0.9), &[beside.to_string()]);
    receiver.settle();
    let rate = Figure::PerSecond(receiver.rate());
    table.add("events: deliveries during and after the replay", rate, Target::AtLeast(2000.0));
}

/// Measures how late deliveries are if half of many endpoints never answer.
fn many(table: &mut Table) {
    println!("{APPLICATIONS} applications with {ENDPOINTS_EACH} endpoints each, half of them dead");
    let receiver = Receiver::start();
    let server = Server::start_set(SETTINGS).with_applications(APPLICATIONS);
    // The kernel accepts connections for it, and nobody answers.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("http://{}/", dead.local_addr().unwrap());
    for key in server.keys() {
        for number in 0..ENDPOINTS_EACH {
            let url = if number % 2 == 0 { receiver.url() } else { dead.clone() };
            create(&server, key, &url);
        }
    }
    let text = http::query_text();
    for _ in 0..5 {
        for key in server.keys() {
            let send = format!("/sms/send/{key}?number=57000001&message={text}");
            http::json(&http::fetch(server.address(), &send));
        }
    }
    server.wait_until_final();
    let expected = 5 * APPLICATIONS * ENDPOINTS_EACH / 2;
    let started = Instant::now();
    while receiver.count() < expected {
        assert!(started.elapsed() < DEADLINE, "{} of {expected}", receiver.count());
        std::thread::sleep(Duration::from_millis(20));
    }
    let (p50, p99) = p50_p99(receiver.delays());
    println!("      p50 of the delay from the event to its delivery: {p50:?}");
    let what = "events: p99 of the delay, half of 1,000 endpoints are dead";
    table.add(what, Figure::millis(p99), Target::AtMost(2000.0));
}

/// Creates an endpoint for delivered messages, and returns its ID.
fn create(server: &Server, key: &str, url: &str) -> String {
    let form = format!("url={url}&events=message.delivered");
    let created = post(server, &format!("/sms/webhooks/{key}"), &form);
    created["webhook"]["webhookid"].as_str().unwrap().to_owned()
}

fn post(server: &Server, path: &str, form: &str) -> Value {
    let request = http::form(path, "Connection: close\r\n", form);
    http::json(&http::exchange(server.address(), &request))
}

/// An endpoint that takes everything at once. It shares this process with the load generator.
struct Receiver {
    address: SocketAddr,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

#[derive(Clone, Copy)]
struct Arrival {
    at: Instant,
    /// The time since the event.
    delay: Duration,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let arrivals = Arc::<Mutex<Vec<Arrival>>>::default();
        let shared = Arc::clone(&arrivals);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let arrivals = Arc::clone(&shared);
                std::thread::spawn(move || receive(&connection, &arrivals));
            }
        });
        Self { address, arrivals }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn count(&self) -> usize {
        self.arrivals.lock().unwrap().len()
    }

    fn delays(&self) -> Vec<Duration> {
        self.arrivals.lock().unwrap().iter().map(|arrival| arrival.delay).collect()
    }

    /// Waits until nothing has arrived for a second.
    fn settle(&self) {
        loop {
            let before = self.count();
            std::thread::sleep(Duration::from_secs(1));
            if self.count() == before {
                return;
            }
        }
    }

    /// Returns the arrivals per second between the first and the last one.
    fn rate(&self) -> f64 {
        let arrivals = self.arrivals.lock().unwrap();
        let (first, last) = (arrivals.first().unwrap(), arrivals.last().unwrap());
        float(arrivals.len() as u64) / (last.at - first.at).as_secs_f64()
    }

    fn forget(&self) {
        self.arrivals.lock().unwrap().clear();
    }
}

/// Answers the requests of a connection. It looks for two fields instead of parsing everything,
/// because it shares the processor with the server.
fn receive(connection: &TcpStream, arrivals: &Mutex<Vec<Arrival>>) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let (mut line, mut body) = (String::new(), Vec::new());
    loop {
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse().ok()?;
            }
        }
        line.clear();
        body.resize(length, 0);
        reader.read_exact(&mut body).ok()?;
        (&*connection).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
        let (_, event) = std::str::from_utf8(&body).ok()?.split_once("\"timestamp\":\"")?;
        let timestamp = domain::Timestamp::parse(event.split('"').next()?)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let event = Duration::from_millis(timestamp.unix_ms().unsigned_abs());
        let arrival = Arrival { at: Instant::now(), delay: now.saturating_sub(event) };
        arrivals.lock().unwrap().push(arrival);
    }
}
