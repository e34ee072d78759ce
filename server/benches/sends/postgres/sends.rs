//! Single sends beside Kannel.

use super::cluster::Cluster;
use crate::server::Server;
use crate::singles;

pub fn measure() {
    println!("\nPostgreSQL: single sends");
    let server = Server::start_on(Cluster::start());
    singles::compare(&server, None, "≥ 1.5");
    server.check();
}
