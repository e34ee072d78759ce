//! Reports: what became of the messages.

mod filter;
mod list;
mod show;

pub use filter::{CSV_PATH, ReportFilter};
pub use list::ReportsPage;
pub use show::ReportPage;
