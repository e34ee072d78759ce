//! The carrier message IDs of unmatched receipts that this process stored. If a response has such
//! an ID, its receipt has already come. A background job matches the receipts that other processes
//! stored.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The maximum number of IDs. When it is reached, all are dropped, and the job matches their
/// receipts.
const IDS_MAX: usize = 65_536;

/// The IDs, each with its carrier.
#[derive(Default)]
pub(crate) struct UnmatchedIds(Mutex<HashSet<(String, String)>>);

impl UnmatchedIds {
    pub(crate) fn add(&self, carrier: &str, id: &str) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= IDS_MAX {
            ids.clear();
        }
        ids.insert((carrier.to_owned(), id.to_owned()));
    }

    pub(crate) fn has(&self, carrier: &str, id: &str) -> bool {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !ids.is_empty() && ids.contains(&(carrier.to_owned(), id.to_owned()))
    }
}
