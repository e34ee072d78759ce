//! The names of segments that receipts of this process were kept as unmatched for: an answer with
//! such a name has a receipt to be matched with. Receipts that other processes keep as unmatched
//! are matched by a job.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The most names that are remembered; with more, all are forgotten, and the job matches them.
const NAMES_MAX: usize = 65_536;

/// The names, each with its carrier.
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
