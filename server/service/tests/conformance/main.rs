//! The verbs of the service on SQLite, with a clock and randomness of the test's own. The same
//! cases run on PostgreSQL in `tests/postgres`.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

mod accounts;
mod applications;
mod batches;
mod carriers;
mod check;
mod database;
mod devices;
mod dispatch;
mod files;
mod history;
mod intake;
mod ledger;
mod model;
mod reports;
mod sender_names;
mod turn;
mod upkeep;
mod world;
