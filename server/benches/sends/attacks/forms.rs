//! Forms that anybody may post. One client posts them, each with another email or token.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::crowd::Crowd;
use super::tally::Tally;
use super::{RUN, Strangers, compare};
use crate::http;
use crate::requests::{DIGITS, NUMBERS, Requests};
use crate::server::Server;
use crate::table::Table;

const NOTHING: &str = "/fn/nothing";
/// 100 sign-ins or registrations at once.
const STORM: Crowd = Crowd { connections: 100, every: Duration::from_millis(500) };

pub fn forgot(table: &mut Table) {
    let crowd = Crowd { connections: 400, every: Duration::from_secs(1) };
    let form = format!("email=n{DIGITS}%40example.org");
    storm("400 POST /fn/forgot at once", &crowd, "/fn/forgot", &form, table);
}

pub fn sign_in(table: &mut Table) {
    let form = format!("email=n{DIGITS}%40example.org&password=not+it&next=");
    storm("200 sign-ins a second", &STORM, "/fn/sign-in", &form, table);
}

pub fn register(table: &mut Table) {
    let form = format!("email=n{DIGITS}%40example.org&new_password=correct+horse&next=");
    let what = "200 registrations a second";
    storm(what, &STORM, "/fn/register", &form, table);
}

pub fn reset(table: &mut Table) {
    let crowd = Crowd { connections: 5, every: Duration::from_millis(100) };
    let form = format!("token={}{DIGITS}&new_password=correct+horse", "0".repeat(56));
    let what = "50 made-up reset tokens a second";
    storm(what, &crowd, "/fn/reset", &form, table);
}

fn storm(what: &str, crowd: &Crowd, target: &str, form: &str, table: &mut Table) {
    let ask = |strangers: &Strangers| {
        let target = strangers.choose(target, NOTHING);
        crowd.ask(strangers, requests(target, form))
    };
    compare(what, Server::start(), RUN, ask, table);
}

pub fn posted_and_closed(table: &mut Table) {
    const EVERY: Duration = Duration::from_millis(5);
    let form = format!("email=n{DIGITS}%40example.org");
    let post = |strangers: &Strangers| {
        let target = strangers.choose("/fn/forgot", NOTHING);
        let mut requests = requests(target, &form);
        let (mut tally, mut next) = (Tally::default(), Instant::now());
        while next < strangers.until {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let mut stream = TcpStream::connect(strangers.address).unwrap();
            stream.write_all(requests.next()).unwrap();
            tally.note("not read".to_owned());
            tally.asked += 1;
            next += strangers.pace(EVERY);
        }
        tally
    };
    let what = "200 POST /fn/forgot a second, closed unread";
    compare(what, Server::start(), RUN, post, table);
}

fn requests(target: &str, form: &str) -> Requests {
    // `DIGITS` is as long as the digits that replace it, so Content-Length is right.
    Requests::new([http::form(target, "", form)], NUMBERS)
}
