//! Two processes beside one, on one application: whoever adds a node must not get less than before.

use super::cluster::Cluster;
use crate::rounds::{ROUNDS, alternate};
use crate::row;
use crate::server::Server;
use crate::singles::{CONNECTIONS, RUN};

/// Each side has a cluster of its own, so that all of it can stand still while the other one is measured.
pub fn measure() {
    println!(
        "\nPostgreSQL: single sends to two nodes beside one, to one application, the same connections in all, \
         medians of {ROUNDS} alternating runs of {RUN:?}"
    );
    let alone = Server::start_on(Cluster::start());
    let first = Server::start_on(Cluster::start());
    let second = first.start_beside();
    let request = first.send_request();
    let mut both = first.contender(request);
    both.addresses.push(second.address().to_owned());
    both.processes.push(second.id());
    let mut contenders = vec![both, alone.contender(alone.send_request())];
    for connections in CONNECTIONS {
        let runs = alternate(&mut contenders, connections, RUN);
        let (two, one) = (runs[0], runs[1]);
        let ratio = two.per_second / one.per_second;
        let what = format!("{connections} connections, two nodes : one");
        row(&what, format!("{ratio:.2} × ({two} : {one})"), "≥ 1");
    }
    drop(contenders);
    first.check();
    alone.check();
}
