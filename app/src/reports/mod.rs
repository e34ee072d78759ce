//! Reports: what became of messages and batches.

mod axis;
mod batch;
mod batches;
mod chart;
mod days;
mod explained;
mod filter;
mod filters;
mod list;
mod message;
mod messages;
mod progress;
mod show;

pub use batch::BATCH_EVENTS_PATH;
pub use filter::{CSV_PATH, ReportFilter};
pub use list::ReportsPage;
pub use message::{Charge, MessageFacts, Timeline};
pub use messages::messages_section;
pub use show::ReportPage;

/// A count with its noun.
fn counted(count: i64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}
