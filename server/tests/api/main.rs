//! Tests of the `heliograph` binary through its public interface: real sockets, a real database in
//! a folder of its own, the real command line.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

use testing::{client, faults, harness, power};

mod bad_input;
mod bad_uploads;
mod batches;
mod bulk;
mod call_log;
mod canary;
mod changes;
mod clients;
mod codes;
mod commands;
mod concurrency;
mod confirmations;
mod connection_limits;
mod connections;
mod costs;
mod crash;
mod crash_bulk;
mod demo;
mod docs;
mod doctor;
mod dry_run;
mod follow;
mod group_panic;
mod idempotency;
mod inbound;
mod key_limits;
mod limits;
mod mails;
mod methods;
mod noise;
mod openapi;
mod ops;
mod opt_outs;
mod outcomes;
mod passkeys;
mod portal;
mod power_cuts;
mod prices;
mod report_pages;
mod reports;
mod schedules;
mod sends;
mod settings;
mod staff_commands;
mod storage;
mod storms;
mod supervised;
mod test_clock;
mod time_zones;
mod tls;
mod two_factor;
mod upload_bodies;
mod verifications;
mod webhooks;
