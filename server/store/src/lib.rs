//! The database of Heliograph: connections, transactions, the schema and all SQL. The operations
//! that use it are in the crate `service`, which calls them verbs.
//!
//! A function here usually runs one statement on its caller's connection. The statement is declared
//! in the function's file, with one text for both databases or one text for each ([`sql::Sql`]).
//! All other differences between the databases are in [`dialect`].

pub mod account_notes;
pub mod accounts;
pub mod alarms;
pub mod api_calls;
pub mod api_keys;
pub mod applications;
pub mod approvals;
pub mod audit;
pub mod audit_chain;
pub mod audit_check;
pub mod balances;
pub mod batches;
pub mod billing;
mod binary;
pub mod carrier_commands;
pub mod carrier_figures;
pub mod carriers;
pub mod case_viewers;
pub mod check;
mod chore;
pub mod claims;
pub mod commit_groups;
pub mod confirmations;
pub mod copy;
mod database;
pub mod deposits;
pub mod dialect;
pub mod distribute;
mod each;
pub mod erasure;
pub mod error;
pub mod events;
mod file;
mod file_row;
pub mod gate;
pub mod group_call;
mod halt;
pub mod history;
pub mod hold;
pub mod idempotency;
pub mod inbound;
pub mod inbound_numbers;
pub mod incidents;
pub mod installation;
pub mod known_devices;
pub mod listening;
mod log;
pub mod margins;
pub mod messages;
mod names;
pub mod nodes;
pub mod notices;
pub mod opt_outs;
pub mod outbox;
pub mod passkeys;
pub mod planted;
mod postgres;
#[cfg(test)]
pub mod prepared;
pub mod prices;
pub mod quarters;
pub mod query;
pub mod queue;
pub mod raw_receipts;
pub mod reach;
mod readers;
pub mod recent;
pub mod recipients;
pub mod recount;
pub mod reports;
pub mod row;
mod schema;
pub mod second_factors;
pub mod security_events;
pub mod segments;
pub mod senders;
pub mod sessions;
pub mod shared;
pub mod sql;
mod sqlite;
pub mod staff_lists;
pub mod statements;
#[cfg(test)]
mod statements_on_citus;
pub mod submits;
pub mod tally;
pub mod test_clocks;
pub mod timeline;
mod transaction;
pub mod transfers;
pub mod unmatched_receipts;
pub mod unpaid;
pub mod usual_times;
pub mod verifications;
pub mod webhooks;

pub use chore::Chore;
pub use database::{Missing, Store};
pub use readers::Reader;
pub use sqlx::Error as DatabaseError;
pub use sqlx::postgres::PgConnection;
pub use transaction::{Committed, Unanswered, WriteTx};
