//! Validates a row.

use std::str;

use super::foreign_file::ForeignFile;
use super::number_fault::NumberFault;
use super::{BulkMode, BulkRow, BulkWriting};
use crate::message::InvalidMessage;
use crate::{MessageText, Number, Reason};

/// The fault of a row. If several things are wrong, the encoding takes precedence over the
/// number, and the number over the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The whole file isn't UTF-8 text.
    Foreign(ForeignFile),
    NoRows,
    Blank,
    Encoding,
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
            Self::Encoding => Reason::InvalidEncoding,
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

    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Foreign(foreign) => foreign.sentence(),
            Self::NoRows => "The file has no rows.",
            Self::Blank => "The line is blank, and rows follow; remove it.",
            Self::Encoding => "The row isn't valid UTF-8; save the file as UTF-8.",
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
    pub mode: BulkMode,
    pub writing: BulkWriting,
    /// The maximum number of pages in a message.
    pub pages_max: usize,
}

impl Rules {
    /// Validates a row without an opening quote. `line` excludes the line end.
    pub fn unquoted(self, line: &[u8]) -> Result<BulkRow, Fault> {
        let line = str::from_utf8(line).map_err(|_| Fault::Encoding)?;
        match self.mode {
            BulkMode::OneToMany => Ok(BulkRow { number: self.number(line)?, message: None }),
            BulkMode::OneToOne => {
                let (before, after) = line.split_once(',').unwrap_or((line, ""));
                let number = self.number(before)?;
                if before.len() == line.len() {
                    return Err(Fault::NoComma);
                }
                if after.contains('\r') {
                    return Err(Fault::CarriageReturn);
                }
                Ok(BulkRow { number, message: Some(self.message(after.to_owned())?) })
            }
        }
    }

    /// Validates a row with a quoted message. `record` ends before the closing quote.
    pub fn quoted(self, record: &[u8], comma: usize) -> Result<BulkRow, Fault> {
        let record = str::from_utf8(record).map_err(|_| Fault::Encoding)?;
        let number = self.number(&record[..comma])?;
        let text = record[comma + 2..].replace("\"\"", "\"");
        Ok(BulkRow { number, message: Some(self.message(text)?) })
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
        self.first_fault(start, number, Fault::MessageTooLong)
    }

    /// Returns the first fault in `start`, or `message_fault` if there is no other. `start` may end
    /// in the middle of a character.
    fn first_fault(self, start: &[u8], before_comma: &[u8], message_fault: Fault) -> Fault {
        if str::from_utf8(start).is_err_and(|error| error.error_len().is_some()) {
            return Fault::Encoding;
        }
        match str::from_utf8(before_comma).map(|text| self.number(text)) {
            Ok(Ok(_)) => message_fault,
            Ok(Err(fault)) => fault,
            Err(_) => Fault::Number(NumberFault::Other),
        }
    }

    fn number(self, text: &str) -> Result<Number, Fault> {
        let number = match self.writing {
            BulkWriting::Plain => Number::parse(text),
            BulkWriting::UrlDecoded => Number::parse_url_decoded(text),
        };
        number.map_err(|_| Fault::Number(NumberFault::find(text, self.mode)))
    }

    fn message(self, text: String) -> Result<MessageText, Fault> {
        MessageText::parse(text, self.pages_max).map_err(|error| match error {
            InvalidMessage::Empty => Fault::Empty,
            InvalidMessage::Nul => Fault::Nul,
            InvalidMessage::TooLong { .. } => Fault::MessageTooLong,
        })
    }
}
