//! The only module that contains rows and SQL. It imports nothing from the modules above it.
//!
//! A function here usually runs one statement on its caller's connection. The statement is declared
//! in the function's file, with one text for both databases or one text for each ([`sql::Sql`]).
//! All other differences between the databases are in [`dialect`].

pub(crate) mod account_notes;
pub(crate) mod accounts;
pub(crate) mod api_calls;
pub(crate) mod api_keys;
pub(crate) mod applications;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod audit_chain;
pub(crate) mod audit_check;
pub(crate) mod balances;
pub(crate) mod batches;
mod binary;
pub(crate) mod carriers;
pub(crate) mod case_viewers;
pub(crate) mod check;
mod chore;
pub(crate) mod claims;
pub(crate) mod commit_groups;
pub(crate) mod confirmations;
pub(crate) mod copy;
mod database;
pub(crate) mod deposits;
pub(crate) mod dialect;
pub(crate) mod distribute;
mod each;
pub(crate) mod events;
mod file;
mod file_row;
pub(crate) mod gate;
pub(crate) mod group_call;
mod halt;
pub(crate) mod history;
pub(crate) mod idempotency;
pub(crate) mod incidents;
pub(crate) mod installation;
pub(crate) mod known_devices;
pub(crate) mod listening;
mod log;
pub(crate) mod margins;
pub(crate) mod messages;
pub(crate) mod nodes;
pub(crate) mod notices;
pub(crate) mod outbox;
pub(crate) mod passkeys;
mod postgres;
#[cfg(test)]
pub(crate) mod prepared;
pub(crate) mod prices;
pub(crate) mod quarters;
pub(crate) mod query;
pub(crate) mod queue;
pub(crate) mod reach;
pub(crate) mod recent;
pub(crate) mod reports;
pub(crate) mod row;
mod schema;
pub(crate) mod second_factors;
pub(crate) mod security_events;
pub(crate) mod segments;
pub(crate) mod senders;
pub(crate) mod sessions;
pub(crate) mod shared;
pub(crate) mod sql;
mod sqlite;
pub(crate) mod staff_lists;
pub(crate) mod statements;
pub(crate) mod submits;
pub(crate) mod tally;
mod transaction;
pub(crate) mod transfers;
pub(crate) mod unmatched_receipts;
pub(crate) mod unpaid;
pub(crate) mod usual_times;

pub(crate) use chore::Chore;
pub(crate) use database::{Missing, Store};
pub(crate) use transaction::{Committed, Unanswered, WriteTx};
