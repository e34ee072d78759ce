//! Helpers for the tests and benchmarks of several crates. Only a dev-dependency, never part of the
//! product:
//!
//! - an HTTP client that sends exactly the given bytes
//! - the `heliograph` binary in its own folder
//! - a disk and a clock that fail on demand
//! - power cuts, which leave only what was synced
//! - a network that is slow, silent or cut
//! - a scripted SMSC
//! - a passkey authenticator
//! - the events of peers in other processes
//! - PostgreSQL servers and Citus clusters that a test can stop

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

pub mod authenticator;
pub mod citus;
pub mod client;
pub mod events;
pub mod faults;
pub mod harness;
pub mod postgres;
pub mod power;
pub mod proxy;
pub mod receiver;
pub mod smsc;
