//! The `heliograph` binary as several processes on one PostgreSQL database, or as one process on
//! SQLite, while processes are killed and stopped, the database is restarted, and disks and
//! networks fail. The tests compare the answers that clients got with the reports, the balances and
//! the submits that a carrier received.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

mod bad_starts;
mod carrier;
mod cluster;
mod database;
mod encrypted;
mod events;
mod judging;
mod jumps;
mod keys;
mod load;
mod node;
mod outage;
mod pause;
mod proxies;
mod restores;
mod rolling;
mod stops;
mod storm;
mod test_clocks;
mod trials;
