//! The carrier message IDs of unmatched receipts that this process stored. If a response has such
//! an ID, a receipt already waits for it. A background job matches the receipts that other
//! processes stored.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The maximum number of IDs. When it is reached, all are dropped, and the job matches their
/// receipts.
const NAMES_MAX: usize = 65_536;

/// The IDs, each with its carrier.
#[derive(Default)]
pub(crate) struct UnmatchedNames(Mutex<HashSet<(String, String)>>);

impl UnmatchedNames {
    pub(crate) fn add(&self, carrier: &str, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        names.insert((carrier.to_owned(), name.to_owned()));
    }

    pub(crate) fn has(&self, carrier: &str, name: &str) -> bool {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !names.is_empty() && names.contains(&(carrier.to_owned(), name.to_owned()))
    }
}
