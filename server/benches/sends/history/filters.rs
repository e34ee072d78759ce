//! Reports of what a filter finds among all that is stored.

use std::ops::Range;
use std::time::Duration;

use super::fill::{COMMON_NUMBER, NUMBERS, REQUEST_IDS};
use crate::http;
use crate::load::Talker;
use crate::measured::p50_p99;
use crate::requests::{DIGITS, Requests};
use crate::server::Server;
use crate::table::{Figure, Table, Target};

/// Requests of a kind, one after the other; less if they take long.
const REQUESTS: usize = 100;
const TIME: Duration = Duration::from_secs(3);
/// Milliseconds that a page may take when one of its filters alone matches 1,000 messages or fewer,
/// and when none does.
const RARE: f64 = 10.0;
const FREQUENT: f64 = 30.0;

struct Filter {
    what: &'static str,
    query: &'static str,
    /// Of a number or request id in the query.
    digits: Range<u64>,
    /// Messages that the first page holds.
    found: usize,
    most_ms: f64,
}

/// A number or request id in a query differs from request to request.
const FILTERS: [Filter; 8] = [
    filter("no filter", "", 100, FREQUENT),
    filter("status, all but 1,001", "status=delivered", 100, FREQUENT),
    filter("number, 100,000", "number=COMMON", 100, FREQUENT),
    filter("number, 10", "number={digits}", 10, RARE),
    Filter {
        digits: REQUEST_IDS,
        ..filter("requestid, 1", "requestid=r{digits}", 1, RARE)
    },
    filter("status, 1,000", "status=rejected", 100, RARE),
    filter(
        "status, 2: the newest and the oldest",
        "status=expired",
        2,
        RARE,
    ),
    filter(
        "status, 1,000, and number, 100,000",
        "status=rejected&number=COMMON",
        100,
        RARE,
    ),
];

const fn filter(what: &'static str, query: &'static str, found: usize, most_ms: f64) -> Filter {
    Filter {
        what,
        query,
        digits: NUMBERS,
        found,
        most_ms,
    }
}

pub fn measure(database: &str, server: &Server, table: &mut Table) {
    println!("first pages of reports, one connection; what the filter matches stands behind it");
    for filter in FILTERS {
        let what = format!("{database}, 10,000,000 stored, first page: {}", filter.what);
        let query = filter.query.replace("COMMON", COMMON_NUMBER);
        let target = format!("/sms/reports/{}?limit=100&{query}", server.key());
        let found = found(server, &target, filter.digits.start + 1);
        if found != filter.found {
            let why = format!("the page has {found} messages of {}", filter.found);
            table.not_measured(what, why);
            continue;
        }
        let mut requests = Requests::new([http::get(&target)], filter.digits);
        let mut talker = Talker::connect(server.address());
        let (p50, p99) = p50_p99(talker.ask_all(&mut requests, REQUESTS, TIME));
        let beside = [format!("p50 {p50:.2?} p99 {p99:.2?}")];
        table.add_beside(
            what,
            Figure::millis(p50),
            Target::AtMost(filter.most_ms),
            &beside,
        );
    }
}

/// How many messages the page has.
fn found(server: &Server, target: &str, digits: u64) -> usize {
    let target = target.replace(DIGITS, &digits.to_string());
    let page = http::json(&http::fetch(server.address(), &target));
    page["reports"].as_array().unwrap().len()
}
