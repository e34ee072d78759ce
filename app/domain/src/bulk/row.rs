//! Validates a row.

use std::str;

use super::foreign_file::{ForeignFile, has_old_line_end, is_windows_1252};
use super::number_fault::NumberFault;
use super::{BulkMode, BulkRow, BulkWriting};
use crate::message::InvalidMessage;
use crate::{MessageText, Number, Reason};

/// The fault of a row. If several things are wrong, the encoding takes precedence over the
/// number, and the number over the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A peculiarity of the program that wrote the file.
    Foreign(ForeignFile),
    NoRows,
    Blank,
    Encoding,
    /// The encoding, and a peculiarity of the row's number. Excel writes semicolons in the same
    /// files.
    Windows1252(Option<ForeignFile>),
    Number(NumberFault),
    NoComma,
    Empty,
    Nul,
    CarriageReturn,
    MessageTooLong,
    TextAfterQuote,
    QuoteNotClosed,
}

impl Fault {
    pub const fn reason(self) -> Reason {
        match self {
            Self::NoRows => Reason::InvalidFile,
            Self::Foreign(foreign) => foreign.reason(),
            Self::Encoding | Self::Windows1252(_) => Reason::InvalidEncoding,
            Self::Blank | Self::Number(_) => Reason::InvalidNumber,
            Self::MessageTooLong => Reason::MessageTooLong,
            Self::NoComma
            | Self::Empty
            | Self::Nul
            | Self::CarriageReturn
            | Self::TextAfterQuote
            | Self::QuoteNotClosed => Reason::InvalidMessage,
        }
    }

    /// Returns the peculiarities of the program that wrote the file, if they are the fault.
    pub fn foreign(self) -> impl Iterator<Item = ForeignFile> {
        let (first, second) = match self {
            Self::Foreign(foreign) | Self::Number(NumberFault::Foreign(foreign)) => {
                (Some(foreign), None)
            }
            Self::Windows1252(second) => (Some(ForeignFile::Windows1252), second),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Foreign(foreign) => foreign.sentence(),
            Self::NoRows => "The file has no rows.",
            Self::Blank => "The line is blank, and rows follow; remove it.",
            Self::Encoding => "The row isn't valid UTF-8; save the file as UTF-8.",
            Self::Windows1252(_) => ForeignFile::Windows1252.sentence(),
            Self::Number(fault) => fault.sentence(),
            Self::NoComma => "There is no comma after the number, and so no message.",
            Self::Empty => "The message is empty.",
            Self::Nul => "The message has a NUL character; remove it.",
            Self::CarriageReturn => {
                "The message has a carriage return that ends no line; end lines with LF or CRLF, \
                 or put the message in quotes."
            }
            Self::MessageTooLong => {
                "The message is longer than allowed; shorten it or send it in parts."
            }
            Self::TextAfterQuote => {
                "There is text after the closing quote; double the quotes that belong to the \
                 message."
            }
            Self::QuoteNotClosed => {
                "The message's opening quote isn't closed within the longest message allowed; \
                 close it, or remove it."
            }
        }
    }
}

/// The rules that a row must follow.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The physical line where the row starts.
    pub line: u64,
    pub mode: BulkMode,
    pub writing: BulkWriting,
    /// The maximum number of pages in a message.
    pub pages_max: usize,
    /// Whether the message gets replacements for characters outside GSM-7.
    pub replace_characters: bool,
}

impl Rules {
    /// Validates a row without an opening quote. `line` excludes the line end.
    pub fn unquoted(self, line: &[u8]) -> Result<BulkRow, Fault> {
        let line = str::from_utf8(line).map_err(|_| self.not_utf8(line))?;
        match self.mode {
            BulkMode::OneToMany => Ok(self.row(self.number(line, line)?, None)),
            BulkMode::OneToOne => {
                let (before, after) = line.split_once(',').unwrap_or((line, ""));
                let number = self.number(before, line)?;
                if before.len() == line.len() {
                    return Err(Fault::NoComma);
                }
                if after.contains('\r') {
                    let is_old = has_old_line_end(line.as_bytes());
                    let old = Fault::Foreign(ForeignFile::OldMac);
                    return Err(if is_old { old } else { Fault::CarriageReturn });
                }
                Ok(self.row(number, Some(self.message(after.to_owned())?)))
            }
        }
    }

    /// Validates a row with a quoted message. `record` ends before the closing quote.
    pub fn quoted(self, record: &[u8], comma: usize) -> Result<BulkRow, Fault> {
        let record = str::from_utf8(record).map_err(|_| self.not_utf8(record))?;
        let number = self.number(&record[..comma], record)?;
        let text = record[comma + 2..].replace("\"\"", "\"");
        Ok(self.row(number, Some(self.message(text)?)))
    }

    const fn row(self, number: Number, message: Option<MessageText>) -> BulkRow {
        BulkRow { line: self.line, number, message }
    }

    /// Returns the fault of a row with a bad quote: `fault`, unless the first line of the row has a
    /// fault that takes precedence. `record` is the first line.
    pub fn unclosed(self, record: &[u8], comma: usize, fault: Fault) -> Fault {
        self.first_fault(record, &record[..comma], fault)
    }

    /// Returns the fault of a line that is too long for any row. `start` is the start of the line.
    pub fn too_long(self, start: &[u8]) -> Fault {
        let number = match self.mode {
            BulkMode::OneToOne => start.split(|&byte| byte == b',').next().unwrap_or(start),
            BulkMode::OneToMany => start,
        };
        let is_old = has_old_line_end(start);
        let fault =
            if is_old { Fault::Foreign(ForeignFile::OldMac) } else { Fault::MessageTooLong };
        self.first_fault(start, number, fault)
    }

    /// Returns the first fault in `start`, or `message_fault` if there is no other. `start` may end
    /// in the middle of a character.
    fn first_fault(self, start: &[u8], before_comma: &[u8], message_fault: Fault) -> Fault {
        if str::from_utf8(start).is_err_and(|error| error.error_len().is_some()) {
            return self.not_utf8(start);
        }
        match str::from_utf8(before_comma).map(|text| self.number(text, text)) {
            Ok(Ok(_)) => message_fault,
            Ok(Err(fault)) => fault,
            Err(_) => Fault::Number(NumberFault::Other),
        }
    }

    /// Returns the fault of a row that isn't valid UTF-8.
    fn not_utf8(self, row: &[u8]) -> Fault {
        if !is_windows_1252(row) {
            return Fault::Encoding;
        }
        let end = row.iter().position(|byte| !byte.is_ascii()).unwrap_or(row.len());
        let start = str::from_utf8(&row[..end]).unwrap_or_default();
        let number = match self.mode {
            BulkMode::OneToOne => start.split(',').next().unwrap_or(start),
            BulkMode::OneToMany => start,
        };
        match self.number(number, start) {
            Err(Fault::Number(NumberFault::Foreign(foreign))) => Fault::Windows1252(Some(foreign)),
            _ => Fault::Windows1252(None),
        }
    }

    /// Parses the number of a row. `line` starts with it.
    fn number(self, text: &str, line: &str) -> Result<Number, Fault> {
        let number = match self.writing {
            BulkWriting::Plain => Number::parse(text),
            BulkWriting::UrlDecoded => Number::parse_url_decoded(text),
        };
        let find = || NumberFault::find(text, line, self.mode, self.line == 1);
        number.map_err(|_| Fault::Number(find()))
    }

    fn message(self, text: String) -> Result<MessageText, Fault> {
        let message = MessageText::parse(text, self.pages_max).map_err(|error| match error {
            InvalidMessage::Empty => Fault::Empty,
            InvalidMessage::Nul => Fault::Nul,
            InvalidMessage::TooLong { .. } => Fault::MessageTooLong,
        })?;
        let replaced = self.replace_characters.then(|| message.replaced()).flatten();
        Ok(replaced.unwrap_or(message))
    }
}
