//! The verbs of the service, on a real database, with a clock and randomness of the test's own.

mod accounts;
mod applications;
mod check;
mod devices;
mod dispatch;
mod intake;
mod ledger;
mod model;
mod reports;
mod sender_names;
mod upkeep;
mod world;
