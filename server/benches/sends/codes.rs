//! One-time codes: how many are sent and checked, compared with sends.

use std::thread;

use serde_json::Value;

use crate::http;
use crate::load::Talker;
use crate::measured::Runs;
use crate::requests::{DIGITS, NUMBERS, Requests};
use crate::rounds::alternate;
use crate::sends::RUN;
use crate::server::Server;
use crate::table::{Figure, Table, Target};

const CONNECTIONS: usize = 64;
/// The codes that are checked. Each can be checked five times.
const CODES: usize = 100_000;
/// The connections that send these codes.
const STARTING: usize = 32;
/// The numbers that each of these connections may use.
const NUMBERS_EACH: u64 = 1_000_000;

/// Compares sends with the calls that send a code, and with those that check one.
pub fn measure(table: &mut Table) {
    println!("{CONNECTIONS} connections, 1 application, runs of {RUN:?}; checks of wrong codes");
    let [sending, starting, checking] = [(); 3].map(|()| Server::start());
    let requests = [
        sending.sends(1),
        Requests::each_once(start(&starting), 0),
        Requests::new(checks(&checking), NUMBERS),
    ];
    let servers = [&sending, &starting, &checking];
    let mut contenders: Vec<_> =
        servers.iter().zip(requests).map(|(server, requests)| server.contender(requests)).collect();
    let runs = alternate(&mut contenders, CONNECTIONS, RUN);
    drop(contenders);
    let medians: Vec<_> = runs.iter().map(Runs::median).collect();
    let [sends, starts, checks] = [0, 1, 2].map(|index: usize| medians[index].per_second);
    println!("      sends: {}", medians[0]);
    for (name, median) in ["starts", "checks"].iter().zip(&medians[1..]) {
        let ratio = Figure::Times(median.per_second / sends);
        let what = format!("codes: {name} : sends");
        table.add_beside(what, ratio, Target::None, &[median.to_string()]);
    }
    let both = 2.0 / (1.0 / starts + 1.0 / checks);
    let what = "codes: requests that start and check verifications : sends";
    table.add(what, Figure::Times(both / sends), Target::AtLeast(0.8));
    starting.check();
    checking.check();
}

/// Returns a call that sends a code.
fn start(server: &Server) -> Vec<u8> {
    http::form(&format!("/sms/verify/start/{}", server.key()), "", &format!("number={DIGITS}"))
}

/// Sends codes, and returns a call for each that checks a wrong code.
fn checks(server: &Server) -> Vec<Vec<u8>> {
    let threads: Vec<_> = (0..STARTING as u64)
        .map(|thread| {
            let mut talker = Talker::connect(server.address());
            let mut requests = Requests::each_once(start(server), thread * NUMBERS_EACH);
            let target = format!("/sms/verify/check/{}", server.key());
            thread::spawn(move || {
                let calls = (0..CODES / STARTING).map(|_| {
                    talker.ask(requests.next());
                    let id = started(talker.answer());
                    http::form(&target, "", &format!("verifyid={id}&otp=000000"))
                });
                calls.collect::<Vec<_>>()
            })
        })
        .collect();
    let calls = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    server.wait_until_final();
    calls
}

/// Returns the ID of the verification in an answer.
fn started(answer: &[u8]) -> String {
    let answer: Value = http::json(std::str::from_utf8(answer).unwrap());
    answer["verifyid"].as_str().unwrap().to_owned()
}
