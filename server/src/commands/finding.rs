//! The result of a check of `heliograph doctor`.

use serde::Serialize;

use super::output::Column;

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Ok,
    /// Something will go wrong later, or couldn't be checked.
    Warning,
    /// Something doesn't work.
    Fault,
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub result: Verdict,
    check: String,
    /// The facts, and the next step unless they are right.
    text: String,
}

impl Finding {
    pub fn new(result: Verdict, check: &str, text: impl Into<String>) -> Self {
        Self { result, check: check.to_owned(), text: text.into() }
    }

    pub fn ok(check: &str, text: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, check, text)
    }

    pub fn warning(check: &str, text: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, check, text)
    }

    pub fn fault(check: &str, text: impl Into<String>) -> Self {
        Self::new(Verdict::Fault, check, text)
    }
}

pub const COLUMNS: [Column<Finding>; 3] = [
    ("RESULT", |finding| {
        let word = match finding.result {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Fault => "fault",
        };
        word.to_owned()
    }),
    ("CHECK", |finding| finding.check.clone()),
    ("FOUND", |finding| finding.text.clone()),
];
