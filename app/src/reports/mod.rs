//! Reports: what became of messages and batches.

mod batch;
mod filter;
mod list;
#[cfg(feature = "ssr")]
mod parts;
mod show;

pub use batch::{BATCH_EVENTS_PATH, LiveBatch};
pub use filter::{CSV_PATH, ReportFilter};
pub use list::ReportsPage;
pub use show::ReportPage;
