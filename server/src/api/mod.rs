//! The SMS API: an axum router for everything under `/sms`.
//!
//! Except for CSV reports and the OpenAPI document, every response is JSON with a code. That
//! includes the responses of extractors and fallbacks, which refuse a request before it reaches a
//! handler.

mod address;
pub mod answer;
mod balance;
mod batches;
pub mod body;
mod bulk;
mod csv_report;
pub mod event;
mod events;
pub mod form;
pub mod frames;
mod inbound;
mod json_body;
mod listing;
mod multipart;
mod opt_outs;
mod parameters;
mod prices;
mod question;
mod rate;
pub mod record;
mod reports;
mod send;
mod shared_parameters;
mod state;
mod test_inbound;
pub mod upload;
