//! Sends during many simultaneous writes in the portal, compared with sends alone.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::http;
use crate::load::{Answers, Load};
use crate::measured::{Measured, Runs};
use crate::rounds::rounds;
use crate::server::Server;
use crate::table::{Figure, Table, Target};

/// Simultaneous requests, each on a connection of its own.
const PEOPLE: usize = 400;
/// Connections that send.
const CONNECTIONS: usize = 8;
const RUN: Duration = Duration::from_secs(2);
/// The time from the start of a run, including its warm-up, to the storm.
const STORM_AFTER: Duration = Duration::from_millis(800);

pub fn measure(table: &mut Table) {
    compare("SQLite", Server::start(), table);
}

/// Each round begins with a restarted process, whose counters of attempts are empty.
pub fn compare(database: &str, mut server: Server, table: &mut Table) {
    println!(
        "POST /fn/forgot, each with another email; {CONNECTIONS} connections send; medians by p99"
    );
    let (mut calm, mut storm) = (Runs::default(), Runs::default());
    for round in 0..rounds() {
        server = server.start_again(|_| {});
        calm.push(Measured::of(&send(&server)));
        server.wait_until_sent();
        let people = People::connect(&server, round);
        let raging = people.ask_after(STORM_AFTER);
        let answers = send(&server);
        let (from, until) = raging.join().unwrap();
        // Only the sends during the storm count.
        storm.push(Measured::of(&answers.within(from, until)));
        println!("      the storm of round {} took {:.0?}", round + 1, until - from);
        server.wait_until_sent();
    }
    let (calm, storm) = (calm.median_by_p99(), storm.median_by_p99());
    let ratio = storm.p99.as_secs_f64() / calm.p99.as_secs_f64();
    let what = format!("{database}: p99 of sends during {PEOPLE} portal writes : without");
    let beside = [format!("during: {storm}"), format!("without: {calm}")];
    table.add_beside(what, Figure::Times(ratio), Target::AtMost(1.5), &beside);
    server.check();
}

fn send(server: &Server) -> Answers {
    let load = Load {
        addresses: &[server.address().to_owned()],
        requests: &mut server.sends(1),
        connections: CONNECTIONS,
        duration: RUN,
    };
    load.run()
}

/// People with open connections, and the request of each.
struct People(Vec<(TcpStream, Vec<u8>)>);

impl People {
    fn connect(server: &Server, round: usize) -> Self {
        let person = |number: usize| {
            let form = format!("email=person{number}of{round}%40example.org");
            // Each person has a network of their own, because the server trusts this header from
            // 127.0.0.1.
            let (high, low) = (number / 256, number % 256);
            let head = format!("{}X-Forwarded-For: 10.{high}.{low}.1\r\n", http::PAGE);
            let request = http::form("/fn/forgot", &head, &form);
            (TcpStream::connect(server.address()).unwrap(), request)
        };
        Self((0..PEOPLE).map(person).collect())
    }

    /// Sends all requests after a pause. Returns the times of the first request and of the last
    /// answer.
    fn ask_after(mut self, pause: Duration) -> JoinHandle<(Instant, Instant)> {
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            let from = Instant::now();
            for (stream, request) in &mut self.0 {
                stream.write_all(request).unwrap();
            }
            for (stream, _) in &mut self.0 {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                // The page says that a mail was sent, whether or not an account has the email.
                assert!(answer.contains("location: /forgot?sent=1"), "{answer}");
            }
            (from, Instant::now())
        })
    }
}
