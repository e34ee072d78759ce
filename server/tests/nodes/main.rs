//! The `heliograph` binary as several processes on one PostgreSQL, while processes are killed and
//! stopped and the database is restarted. What clients were answered is compared with the reports,
//! the money and what a carrier saw.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

mod bad_starts;
mod carrier;
mod cluster;
mod database;
mod judging;
mod keys;
mod load;
mod node;
mod outage;
mod pause;
mod proxies;
mod rolling;
mod storm;
