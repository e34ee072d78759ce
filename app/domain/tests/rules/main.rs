//! The domain's public interface: tables where the contract names values, properties where it names
//! a rule. Every run has the same cases.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in test functions, and helpers of tests fail no other way"
)]

mod accounts;
mod admission;
mod applications;
mod bulk_files;
mod delivery_errors;
mod first_steps;
mod ids;
mod keys;
mod messages;
mod money;
mod numbers;
mod parts;
mod passwords;
mod prices;
mod printables;
mod readiness;
mod reasons;
mod records;
mod refusals;
mod routes;
mod spending;
mod statuses;
mod submissions;
mod test_numbers;
mod timestamps;
mod zones;

use proptest::test_runner::{Config, RngSeed};

/// The same cases in every run, and no files of failed cases beside the sources: running the test
/// again repeats a failure.
fn seeded(cases: u32) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(0x4845_4c49_4f47_5248),
        failure_persistence: None,
        ..Config::default()
    }
}
