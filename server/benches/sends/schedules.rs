//! A million scheduled messages: what they cost sends, and how late due ones are submitted.

use std::time::Duration;

use domain::Timestamp;

use crate::http;
use crate::load::{Load, Talker};
use crate::measured::{Runs, p50_p99};
use crate::requests::{DIGITS, Requests};
use crate::rounds::alternate;
use crate::sends::RUN;
use crate::server::Server;
use crate::stored;
use crate::table::{Figure, Table, Target};

const SCHEDULED: u64 = 1_000_000;
/// The connections that fill the databases.
const FILLING: usize = 256;
const CONNECTIONS: usize = 64;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The messages that become due, one per millisecond.
const DUE: usize = 10_000;
const DUE_CONNECTIONS: usize = 10;
/// The time in which they are scheduled, before the first one is due.
const AHEAD: Duration = Duration::from_secs(12);
/// The time after the last one is due until which they are watched.
const AFTER: Duration = Duration::from_secs(3);

/// Compares sends beside a million scheduled messages with sends beside a million delivered ones,
/// because the entries of their numbers cost sends the same. Also compares both with an empty
/// database.
pub fn measure(table: &mut Table) {
    println!("{SCHEDULED} messages scheduled for 30 days later; runs of {RUN:?}");
    let [empty, delivered, with] = [(); 3].map(|()| Server::start());
    fill(&delivered, delivered.sends(1));
    delivered.wait_until_final();
    fill(&with, Requests::of(send_at(&with, stored::now_ms() + 30 * DAY_MS)));
    let mut contenders =
        [&empty, &delivered, &with].map(|server| server.contender(server.sends(1)));
    let runs = alternate(&mut contenders, CONNECTIONS, RUN);
    drop(contenders);
    drop((empty, delivered));
    let [empty, delivered, full] = [&runs[0], &runs[1], &runs[2]].map(Runs::median);
    let part = delivered.per_second / empty.per_second;
    println!("      empty database: {empty}");
    println!("      a million delivered messages: {delivered}, {part:.2} of that");
    let ratio = Figure::Times(full.per_second / delivered.per_second);
    let what = format!("schedules: a million scheduled : delivered, {CONNECTIONS} connections");
    table.add_beside(what, ratio, Target::AtLeast(0.98), &[full.to_string()]);
    due(&with, table);
    with.check();
}

/// Sends as many messages as are scheduled.
fn fill(server: &Server, mut requests: Requests) {
    let mut sent = 0;
    while sent < SCHEDULED {
        let load = Load {
            addresses: &[server.address().to_owned()],
            requests: &mut requests,
            connections: FILLING,
            duration: RUN,
        };
        sent += load.run().count;
    }
}

/// Measures how late messages are submitted of which one becomes due per millisecond.
fn due(server: &Server, table: &mut Table) {
    let from = stored::now_ms() + i64::try_from(AHEAD.as_millis()).unwrap();
    let until = from + i64::try_from(DUE).unwrap();
    let threads: Vec<_> = (0..DUE_CONNECTIONS)
        .map(|first| {
            let times = (from..until).skip(first).step_by(DUE_CONNECTIONS);
            let requests: Vec<_> = times.map(|at| send_at(server, at)).collect();
            let mut talker = Talker::connect(server.address());
            std::thread::spawn(move || {
                for request in requests {
                    talker.ask(Requests::of(request).next());
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let ahead = from - stored::now_ms();
    assert!(ahead > 0, "the first message became due {ahead} ms before the last was scheduled");
    let left = (until - stored::now_ms()).unsigned_abs();
    std::thread::sleep(Duration::from_millis(left) + AFTER);
    let late = stored::late(&server.database_url(), from..until);
    assert_eq!(late.len(), DUE);
    let most = late.iter().max().copied().unwrap();
    let (p50, p99) = p50_p99(late);
    println!("      p50 {p50:?}, p99 {p99:?}");
    let what = "schedules: the latest submit after its time, 1,000 due per second";
    table.add(what, Figure::millis(most), Target::AtMost(1000.0));
}

/// Returns a send that is scheduled for a time.
fn send_at(server: &Server, at_ms: i64) -> Vec<u8> {
    let (key, text, at) = (server.key(), http::query_text(), Timestamp::from_unix_ms(at_ms));
    http::get(&format!("/sms/send/{key}?number={DIGITS}&message={text}&sendat={at}"))
}
