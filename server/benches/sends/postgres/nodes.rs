//! Two nodes compared with one, for one application. Adding a node must not make sends much slower.

use super::start;
use crate::rounds::alternate;
use crate::sends::RUN;
use crate::table::{Figure, Table, Target};

const CONNECTIONS: [usize; 3] = [8, 64, 256];

/// Each contender has a cluster of its own, so that its database can be stopped too while the other
/// one is measured.
pub fn measure(table: &mut Table) {
    println!("sends by one application, the same number of connections in total, runs of {RUN:?}");
    let (alone, first) = (start(), start());
    let second = first.start_beside();
    let mut both = first.contender(first.sends(1));
    both.addresses.push(second.address().to_owned());
    both.processes.push(second.id());
    let mut contenders = vec![both, alone.contender(alone.sends(1))];
    for connections in CONNECTIONS {
        let runs = alternate(&mut contenders, connections, RUN);
        let (two, one) = (runs[0].median(), runs[1].median());
        let what = format!("PostgreSQL: sends, {connections} connections, two nodes : one");
        let ratio = Figure::Times(two.per_second / one.per_second);
        let beside = [format!("two: {two}"), format!("one: {one}")];
        table.add_beside(what, ratio, Target::AtLeast(0.9), &beside);
    }
    drop(contenders);
    first.check();
    alone.check();
}
