//! Opt-outs: what a long list costs sends, and how long it takes to import it.

use std::fmt::Write as _;
use std::time::Instant;

use crate::http;
use crate::measured::Runs;
use crate::rounds::alternate;
use crate::sends::RUN;
use crate::server::Server;
use crate::table::{Figure, Table, Target};

const NUMBERS: u64 = 1_000_000;
/// None of the numbers from here on gets a message.
const FIRST: u64 = 491_510_000_000;
const CONNECTIONS: usize = 64;

/// Compares sends of an application without opt-outs with those of one that has a million.
pub fn measure(table: &mut Table) {
    println!("sends, {CONNECTIONS} connections, {NUMBERS} opt-outs, runs of {RUN:?}");
    let [without, with] = [(); 2].map(|()| Server::start());
    let started = Instant::now();
    import(&with);
    let took = Figure::Seconds(started.elapsed().as_secs_f64());
    table.add("opt-outs: the import of a million numbers", took, Target::None);
    let mut contenders = [&without, &with].map(|server| server.contender(server.sends(1)));
    let runs = alternate(&mut contenders, CONNECTIONS, RUN);
    drop(contenders);
    let [without, with] = [&runs[0], &runs[1]].map(Runs::median);
    println!("      without opt-outs: {without}");
    let ratio = Figure::Times(with.per_second / without.per_second);
    let beside = [with.to_string()];
    table.add_beside("opt-outs: sends with a million : without", ratio, Target::None, &beside);
    if let (Some(with), Some(without)) = (with.cost, without.cost) {
        let more = Figure::Micros(with.cpu_us - without.cpu_us);
        table.add("opt-outs: CPU that a million add to a send", more, Target::AtMost(20.0));
    }
}

fn import(server: &Server) {
    let mut file = String::new();
    for number in FIRST..FIRST + NUMBERS {
        writeln!(file, "{number}").unwrap();
    }
    let [head, tail] = http::around(&format!("/sms/optouts/{}", server.key()), "numbers", &file);
    let request = [head, file, tail].concat();
    let answer = http::json(&http::exchange(server.address(), request.as_bytes()));
    assert_eq!(answer["added"], NUMBERS, "{answer}");
}
