//! Opt-outs: the numbers that an application may not send to.

mod file;
mod list;
mod manage;
mod query;

pub use file::{FILE_PATH, FileOutcome, file_outcome_entry};
pub use list::{OPT_OUTS_CSV_PATH, OptOutsPage};
pub use query::OptOutsQuery;
