//! What the domain promises, checked from outside: tables where the contract names the values,
//! properties where it names a rule. Every run draws the same cases.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in test functions, and helpers of tests fail no other way"
)]

mod accounts;
mod admission;
mod applications;
mod bulk_files;
mod ids;
mod keys;
mod messages;
mod moments;
mod money;
mod numbers;
mod parts;
mod reasons;
mod records;
mod routes;
mod statuses;

use proptest::test_runner::{Config, RngSeed};

/// The same cases in every run and nothing written beside the sources: a failure is repeated by
/// running the test again.
fn seeded(cases: u32) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(0x4845_4c49_4f47_5248),
        failure_persistence: None,
        ..Config::default()
    }
}
