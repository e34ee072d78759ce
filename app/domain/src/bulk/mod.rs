//! Uploaded files: many numbers, or many numbers with a message each.
//!
//! A file is UTF-8 text with a row per line, ended by LF or CRLF. In a one-to-one file everything
//! after the first comma is the message; in a one-to-many file the whole line is the number. The
//! `csv` crate can't read this dialect: commas of an unquoted message belong to the message, and a
//! quote that is never closed must make one bad row and not swallow the rest of the file. So
//! [`BulkParser`] finds the rows, in constant memory and in one pass.

mod foreign_file;
mod number_fault;
mod parser;
mod quoted;
mod row;

use crate::{MessageText, Number, Reason};

pub use parser::BulkParser;

/// How many bad rows are reported one by one; the others are only counted.
pub const ERRORS_MAX: usize = 20;

/// What the rows of a file hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkMode {
    /// Number, comma, message.
    OneToOne,
    /// A number. All numbers get the same message, which isn't in the file.
    OneToMany,
}

/// How the file was encoded on its way here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkWriting {
    /// As it was written to the file.
    Plain,
    /// In a URL-encoded form or query, where a `+` that wasn't escaped became a space: a space
    /// before a number is read as `+`, as [`Number::parse_url_decoded`] does.
    UrlDecoded,
}

/// What a file may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkLimits {
    /// Rows, good and bad ones.
    pub rows_max: u64,
    /// Pages of a message.
    pub message_pages_max: usize,
}

/// A good row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkRow {
    pub number: Number,
    /// The row's own message; `None` in a one-to-many file.
    pub message: Option<MessageText>,
}

/// A row that can't be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// The physical line, counted from 1, where the row starts.
    pub line: u64,
    pub reason: Reason,
    /// What is wrong and what to do, in one sentence. Never quotes the file.
    pub detail: &'static str,
}

/// The bad rows of a refused file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// The first [`ERRORS_MAX`] bad rows in their order. For a file without rows there is one,
    /// which says so.
    pub errors: Vec<BadRow>,
    /// How many bad rows there are in all.
    pub error_count: u64,
}

/// The file has more rows than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file has more rows than allowed")]
pub struct TooManyRows;

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkError {
    TooManyRows,
    Bad(BadFile),
}

impl From<TooManyRows> for BulkError {
    fn from(TooManyRows: TooManyRows) -> Self {
        Self::TooManyRows
    }
}
