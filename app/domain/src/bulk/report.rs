//! The report on a file that was only checked.

use serde::{Deserialize, Serialize};

use super::FileFinding;
use crate::{Money, NumberWarning};

/// The number of lines that [`Lines`] lists.
const LINES_MAX: usize = 5;

/// The results of a check. All prices and counts except `rows` are those of the good rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// All rows, good and bad.
    pub rows: u64,
    pub local: PartReport,
    pub international: PartReport,
    /// The price of the rows to numbers that have opted out. It is reserved with the rest, and
    /// released when these rows are rejected.
    pub released: Money,
    pub doubtful: Vec<(NumberWarning, Lines)>,
    /// Rows whose recipient is in an earlier row too.
    pub repeated: Lines,
    /// Rows whose recipient has opted out.
    pub opted_out: Lines,
    /// The first bad rows, each with its line and what is wrong.
    pub errors: Vec<(u64, String)>,
    /// The number of all bad rows.
    pub error_count: u64,
    pub findings: Vec<FileFinding>,
    /// The first lines of a file with bad rows, as they were read.
    pub first_lines: Vec<String>,
}

impl FileReport {
    pub const fn pages(&self) -> u64 {
        self.local.pages.saturating_add(self.international.pages)
    }

    /// Returns the price of all good rows, or `None` on overflow.
    pub const fn cost(&self) -> Option<Money> {
        self.local.cost.checked_add(self.international.cost)
    }
}

/// The good rows to local or to international numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReport {
    pub rows: u64,
    pub pages: u64,
    pub cost: Money,
}

/// Some rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    pub count: u64,
    /// The physical lines where the first of them start.
    pub first: Vec<u64>,
}

impl Lines {
    pub fn add(&mut self, line: u64) {
        self.count += 1;
        if self.first.len() < LINES_MAX {
            self.first.push(line);
        }
    }
}
