//! A database with ten million messages compared with an empty one. Sends and reports must not get
//! slower as messages accumulate.

pub mod fill;
mod filters;

use std::time::{Duration, Instant};

use crate::http;
use crate::portal;
use crate::requests::Requests;
use crate::rounds::{Contender, alternate};
use crate::server::Server;
use crate::table::{Figure, Table, Target};

const RUN: Duration = Duration::from_secs(2);
const SENDS: usize = 256;
const READS: usize = 8;

pub fn measure(table: &mut Table) {
    compare("SQLite", Server::start, table);
}

pub fn compare(database: &str, start: impl Fn() -> Server, table: &mut Table) {
    let (stored, started) = (fill::MESSAGES, Instant::now());
    println!("{stored} stored messages beside an empty database, runs of {RUN:?}");
    let full = fill::filled(start());
    println!("      (filled in {:.0?})", started.elapsed());
    let empty = start();
    let mut add = |what: &str, connections, requests: fn(&Server) -> Requests| {
        let mut contenders = [&full, &empty].map(|server| Contender {
            // After reads there is nothing to wait for.
            rest: if connections == SENDS { Duration::from_secs(2) } else { Duration::ZERO },
            ..server.contender(requests(server))
        });
        let runs = alternate(&mut contenders, connections, RUN);
        let (full, empty) = (runs[0].median(), runs[1].median());
        let ratio = Figure::Times(full.per_second / empty.per_second);
        let what = format!("{database}, 10,000,000 stored : none, {what}");
        let beside = [full.to_string(), format!("none: {empty}")];
        table.add_beside(what, ratio, Target::AtLeast(0.9), &beside);
    };
    add("sends", SENDS, |server| server.sends(1));
    // By now the empty database has enough messages to fill a page, because of the sends above.
    add("first page of reports", READS, first_page);
    add("/reports in the portal", READS, |server| {
        portal::page("/reports", &portal::sign_in(server))
    });
    drop(empty);
    filters::measure(database, &full, table);
}

/// Returns a request for a page of a hundred messages.
fn first_page(server: &Server) -> Requests {
    Requests::of(http::get(&format!("/sms/reports/{}?limit=100", server.key())))
}
