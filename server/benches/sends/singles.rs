//! Single sends beside others who answer.

use std::time::Duration;

use crate::bare::Bare;
use crate::kannel::Kannel;
use crate::rounds::{ROUNDS, alternate};
use crate::server::Server;

/// Connections that send at a time.
pub const CONNECTIONS: [usize; 3] = [8, 64, 256];
/// How long each run takes, after its warm-up.
pub const RUN: Duration = Duration::from_secs(2);

/// Beside Kannel, and a bare JSON handler where one is given.
pub fn compare(server: &Server, bare: Option<&Bare>, kannel_target: &str) {
    println!("\nsingle sends by GET, keep-alive, medians of {ROUNDS} alternating runs of {RUN:?}");
    let mut kannel = Kannel::start();
    if kannel.is_none() {
        println!("(Kannel isn't installed: `.make/setup kannel` unpacks Debian's package)");
    }
    let mut contenders = vec![server.contender(server.send_request())];
    let mut others = Vec::new();
    if let Some(bare) = bare {
        contenders.push(bare.contender());
        others.push(("bare axum handler", "≥ 0.45"));
    }
    if let Some(kannel) = &mut kannel {
        contenders.push(kannel.contender());
        others.push(("Kannel's sendsms", kannel_target));
    }
    println!("connections");
    for connections in CONNECTIONS {
        let runs = alternate(&mut contenders, connections, RUN);
        let ours = runs[0];
        println!("{connections:>11}  heliograph  {ours}");
        for ((name, target), other) in others.iter().zip(&runs[1..]) {
            let target = target_at(connections, target);
            let ratio = ours.per_second / other.per_second;
            println!("{:>11}  {ratio:.2} × {name}, {other}{target}", "");
        }
    }
    drop(contenders);
    if let Some(kannel) = &kannel {
        println!(
            "(all {} messages that Kannel answered came to the fake SMSC)",
            kannel.arrived()
        );
    }
}

/// Targets are for the most connections.
fn target_at(connections: usize, target: &str) -> String {
    if connections == CONNECTIONS[CONNECTIONS.len() - 1] {
        format!("  [{target}]")
    } else {
        String::new()
    }
}
