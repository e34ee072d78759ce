//! The verbs of the service on PostgreSQL: the cases of `tests/conformance`, and what several
//! processes on one database do.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows them in test functions, and helpers of tests fail no other way"
)]

#[path = "../conformance/accounts.rs"]
mod accounts;
#[path = "../conformance/applications.rs"]
mod applications;
#[path = "../conformance/batches.rs"]
mod batches;
#[path = "../conformance/carriers.rs"]
mod carriers;
#[path = "../conformance/check.rs"]
mod check;
mod clocks;
mod copy;
mod cuts;
mod database;
#[path = "../conformance/devices.rs"]
mod devices;
#[path = "../conformance/dispatch.rs"]
mod dispatch;
mod guard;
#[path = "../conformance/history.rs"]
mod history;
#[path = "../conformance/intake.rs"]
mod intake;
#[path = "../conformance/ledger.rs"]
mod ledger;
#[path = "../conformance/model.rs"]
mod model;
mod nodes;
#[path = "../conformance/reports.rs"]
mod reports;
mod schema;
#[path = "../conformance/sender_names.rs"]
mod sender_names;
#[path = "../conformance/turn.rs"]
mod turn;
mod unusual;
#[path = "../conformance/upkeep.rs"]
mod upkeep;
#[path = "../conformance/world.rs"]
mod world;
