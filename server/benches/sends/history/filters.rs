//! First pages of reports with a filter, in ten million messages.

use std::ops::Range;
use std::time::Duration;

use super::fill::{COMMON_NUMBER, NUMBERS, REQUEST_IDS};
use crate::http;
use crate::load::Talker;
use crate::measured::p50_p99;
use crate::requests::{DIGITS, Requests};
use crate::server::Server;
use crate::table::{Figure, Table, Target};

/// Requests per filter, one after the other. Fewer if they take longer than [`TIME`].
const REQUESTS: usize = 100;
const TIME: Duration = Duration::from_secs(3);
/// The highest allowed p50 in milliseconds: [`RARE`] if one of the filters alone matches at most
/// 1,000 messages, [`FREQUENT`] if none does.
const RARE: f64 = 10.0;
const FREQUENT: f64 = 30.0;

struct Filter {
    what: &'static str,
    query: &'static str,
    /// The range of the number or request ID in the query.
    digits: Range<u64>,
    /// The number of messages on the first page.
    found: usize,
    most_ms: f64,
}

/// `{digits}` in a query differs from request to request.
const FILTERS: [Filter; 8] = [
    filter("no filter", "", 100, FREQUENT),
    filter("status, all but 1,001", "status=delivered", 100, FREQUENT),
    filter("number, 100,000", "number=COMMON", 100, FREQUENT),
    filter("number, 10", "number={digits}", 10, RARE),
    Filter { digits: REQUEST_IDS, ..filter("requestid, 1", "requestid=r{digits}", 1, RARE) },
    filter("status, 1,000", "status=rejected", 100, RARE),
    filter("status, 2: the newest and the oldest", "status=expired", 2, RARE),
    filter("status, 1,000, and number, 100,000", "status=rejected&number=COMMON", 100, RARE),
];

const fn filter(what: &'static str, query: &'static str, found: usize, most_ms: f64) -> Filter {
    Filter { what, query, digits: NUMBERS, found, most_ms }
}

pub fn measure(database: &str, server: &Server, table: &mut Table) {
    println!("first pages of reports, one connection; each filter with its number of matches");
    for filter in FILTERS {
        let what = format!("{database}, 10,000,000 stored, first page: {}", filter.what);
        let query = filter.query.replace("COMMON", COMMON_NUMBER);
        let target = format!("/sms/reports/{}?limit=100&{query}", server.key());
        let found = found(server, &target, filter.digits.start + 1);
        if found != filter.found {
            let why = format!("the page has {found} messages instead of {}", filter.found);
            table.not_measured(what, why);
            continue;
        }
        let mut requests = Requests::new([http::get(&target)], filter.digits);
        let mut talker = Talker::connect(server.address());
        let (p50, p99) = p50_p99(talker.ask_all(&mut requests, REQUESTS, TIME));
        let beside = [format!("p50 {p50:.2?} p99 {p99:.2?}")];
        table.add_beside(what, Figure::millis(p50), Target::AtMost(filter.most_ms), &beside);
    }
}

/// Returns the number of messages on the page.
fn found(server: &Server, target: &str, digits: u64) -> usize {
    let target = target.replace(DIGITS, &digits.to_string());
    let page = http::json(&http::fetch(server.address(), &target));
    page["reports"].as_array().unwrap().len()
}
