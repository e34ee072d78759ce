//! The check of a file: what an upload would cost, and which lines are bad. The API's calls upload
//! files; the portal only checks them.

mod export;
mod page;
mod report;

pub use page::{CHECK_FILE_PATH, CheckOutcome, CheckedUpload, FileCheckPage, is_list};
