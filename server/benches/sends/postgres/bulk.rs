//! The largest upload.

use super::cluster::Cluster;
use crate::bulk::{ROWS, alone, file};
use crate::server::Server;

pub fn measure() {
    println!("\nPostgreSQL: an upload of {ROWS} rows, one to one, and nothing else");
    let server = Server::start_on(Cluster::start());
    alone(server, &file(), "≤ 15 s");
}
