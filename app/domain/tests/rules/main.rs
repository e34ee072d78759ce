//! Tests of the domain's public interface: tables for the values in the contract, and properties
//! for its rules. Every run tests the same cases.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in test functions, and helpers of tests fail no other way"
)]

mod accounts;
mod admission;
mod applications;
mod bulk_files;
mod delivery_errors;
mod events;
mod first_steps;
mod foreign_files;
mod ids;
mod inbound;
mod keys;
mod keywords;
mod limits;
mod messages;
mod money;
mod numbers;
mod opt_outs;
mod parts;
mod passwords;
mod prices;
mod printables;
mod readiness;
mod reasons;
mod records;
mod refusals;
mod routes;
mod schedules;
mod spending;
mod statuses;
mod submissions;
mod support_hours;
mod test_clocks;
mod test_numbers;
mod timestamps;
mod verifications;
mod zones;

use proptest::test_runner::{Config, RngSeed};

/// Uses the same cases in every run and writes no files for failed cases. Running the test again
/// repeats a failure.
fn seeded(cases: u32) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(0x4845_4c49_4f47_5248),
        failure_persistence: None,
        ..Config::default()
    }
}
