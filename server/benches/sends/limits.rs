//! Limits: what all of them together cost sends.

use domain::LimitField;
use domain::limits::LimitsChange;

use crate::measured::Runs;
use crate::rounds::alternate;
use crate::sends::RUN;
use crate::server::{Server, sends_by};
use crate::stored;
use crate::table::{Figure, Table, Target};

const CONNECTIONS: [usize; 2] = [64, 256];
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Compares sends of an application that has set every limit with those of one that has set none.
pub fn measure(table: &mut Table) {
    println!("sends, 1 application, local numbers, runs of {RUN:?}");
    let without = Server::start().with_applications(2);
    let with = Server::start().with_limited_application(all());
    let mut contenders =
        [&without, &with].map(|server| server.contender(sends_by(&server.keys()[1..])));
    for connections in CONNECTIONS {
        let runs = alternate(&mut contenders, connections, RUN);
        let [without, with] = [&runs[0], &runs[1]].map(Runs::median);
        println!("      without limits: {without}");
        let ratio = Figure::Times(with.per_second / without.per_second);
        let what = format!("limits: sends with all of them : with none, {connections} connections");
        table.add_beside(what, ratio, Target::AtLeast(0.95), &[with.to_string()]);
    }
    drop(contenders);
    with.check();
}

/// Returns all limits, of which none refuses a send or makes it wait.
fn all() -> LimitsChange {
    let hour = |ahead: i64| (stored::now_ms() / HOUR_MS + ahead).rem_euclid(24);
    let quiet_hours = format!("{:02}:00-{:02}:00", hour(6), hour(8));
    let mut limits = LimitsChange::default();
    for (field, text) in [
        (LimitField::Prefixes, "27,49"),
        (LimitField::PerRecipientHour, "1000"),
        (LimitField::PerRecipientDay, "2000"),
        (LimitField::SpendPerDay, "90000000"),
        (LimitField::Addresses, "127.0.0.0/8,192.0.2.0/24"),
        (LimitField::RefuseDoubtful, "1"),
        (LimitField::QuietHours, quiet_hours.as_str()),
        (LimitField::TrafficPumping, "block"),
        (LimitField::TrafficPumpingMessages, "1000"),
        (LimitField::LeakedKey, "block"),
    ] {
        limits.add(field, text).unwrap();
    }
    limits
}
