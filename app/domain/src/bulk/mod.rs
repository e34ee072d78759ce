//! Uploaded files: many numbers, or many numbers with one message each.
//!
//! A file is UTF-8 text with one row per line. Lines end with LF or CRLF. In a one-to-one file,
//! everything after the first comma is the message. In a one-to-many file, the whole line is the
//! number.
//!
//! The `csv` crate can't read this dialect. Commas in an unquoted message belong to the message,
//! and an unclosed quote must make one bad row instead of swallowing the rest of the file.
//! [`BulkParser`] finds the rows in one pass and in constant memory.

mod first_lines;
mod foreign_file;
mod number_fault;
mod parser;
mod quoted;
mod report;
mod row;

use crate::{MessageText, Number, Reason};

pub use first_lines::{FIRST_BYTES, first_lines};
pub use foreign_file::{FileFinding, ForeignFile, HEAD_BYTES};
pub use parser::BulkParser;
pub use report::{FileReport, Lines, PartReport};

/// The maximum number of bad rows that are reported individually. Further bad rows are only
/// counted.
pub const ERRORS_MAX: usize = 20;

/// The contents of a file's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkMode {
    /// Number, comma, message.
    OneToOne,
    /// A number. All numbers get the same message, which isn't in the file.
    OneToMany,
}

/// How the request encoded the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkWriting {
    /// Not encoded.
    Plain,
    /// In a URL-encoded form or query, where an unescaped `+` decodes to a space. A space before a
    /// number is read as `+`, as in [`Number::parse_url_decoded`].
    UrlDecoded,
}

/// The limits for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkLimits {
    /// The maximum number of rows, good and bad.
    pub rows_max: u64,
    /// The maximum number of pages in a message.
    pub message_pages_max: usize,
    /// Whether messages get replacements for characters outside GSM-7.
    pub replace_characters: bool,
}

/// A good row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkRow {
    /// The physical line where the row starts, counted from 1.
    pub line: u64,
    pub number: Number,
    /// The row's own message. `None` in a one-to-many file.
    pub message: Option<MessageText>,
}

/// A row that can't be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// The physical line where the row starts, counted from 1.
    pub line: u64,
    pub reason: Reason,
    /// One sentence that says what is wrong and what to do. Never quotes the file.
    pub detail: &'static str,
}

/// The bad rows of a refused file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// The first [`ERRORS_MAX`] bad rows, in order. For a file without rows, a single error that
    /// says so.
    pub errors: Vec<BadRow>,
    /// The total number of bad rows.
    pub error_count: u64,
    /// The peculiarities of the program that wrote the file, in the order of the first lines with
    /// them.
    pub findings: Vec<FileFinding>,
}

/// The file has more rows than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file has more rows than allowed")]
pub struct TooManyRows;

/// Why a file was refused.
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
