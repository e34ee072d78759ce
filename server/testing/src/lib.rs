//! What the tests and benchmarks of several crates share: an HTTP client that sends exactly the
//! bytes it is given, the `heliograph` binary in a folder of its own, a disk that fails on demand,
//! a scripted SMSC, an authenticator, the events of peers in other processes, and PostgreSQL servers
//! and Citus clusters that can be stopped. A dev-dependency only: nothing of it is part of the
//! product.

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
pub mod smsc;
