//! Finds the rows of a file that arrives in pieces.

use memchr::{memchr, memchr_iter};

use super::foreign_file::{FileFinding, ForeignFile, HEAD_BYTES};
use super::quoted::{Closing, characters, closing};
use super::row::{Fault, Rules};
use super::{
    BadFile, BadRow, BulkError, BulkLimits, BulkMode, BulkRow, BulkWriting, ERRORS_MAX, TooManyRows,
};
use crate::message::PAGE_CHARS;

/// The mark that some programs write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// The number of bytes parsed at a time. The parser buffers at most this many bytes plus the
/// longest row.
const PIECE_BYTES: usize = 64 * 1024;
/// The maximum number of bytes before the comma of a row whose message may be quoted. A good number
/// has at most 16. The limit is higher so that, after a bad number, the lines of a quoted message
/// aren't read as rows.
const NUMBER_BYTES_MAX: usize = 256;
/// The maximum number of bytes in a UTF-8 character.
const CHARACTER_BYTES_MAX: usize = 4;

/// Parses a file piece by piece and passes its rows to a callback. The result doesn't depend on how
/// the file is cut into pieces.
#[derive(Debug)]
pub struct BulkParser {
    mode: BulkMode,
    writing: BulkWriting,
    limits: BulkLimits,
    /// The bytes that aren't parsed yet. They are shorter than the longest row.
    buffer: Vec<u8>,
    state: State,
    /// The physical line where the buffer starts.
    line: u64,
    /// The number of blank lines directly above `line`. They are allowed at the end of the file,
    /// but become bad rows if another row follows.
    blanks: u64,
    rows: u64,
    errors: Vec<BadRow>,
    error_count: u64,
    findings: Vec<FileFinding>,
    /// Whether good rows are passed on after a bad one.
    passes_all: bool,
}

/// The beginning of the buffer.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The start of the file, perhaps with a byte order mark.
    File,
    /// A row. Its line end isn't before index `searched`.
    Row { searched: usize },
    /// A row with an opening quote after the comma at index `comma`. The closing quote isn't before
    /// index `searched` of the message.
    Quoted { comma: usize, searched: usize },
    /// The rest of a bad row's line.
    BadLine,
    /// A file that isn't UTF-8 text.
    Foreign,
}

const ROW: State = State::Row { searched: 0 };

impl BulkParser {
    pub const fn new(mode: BulkMode, writing: BulkWriting, limits: BulkLimits) -> Self {
        Self {
            mode,
            writing,
            limits,
            buffer: Vec::new(),
            state: State::File,
            line: 1,
            blanks: 0,
            rows: 0,
            errors: Vec::new(),
            error_count: 0,
            findings: Vec::new(),
            passes_all: false,
        }
    }

    /// Makes the parser pass on all good rows, including those after a bad row.
    pub fn passing_all(self) -> Self {
        Self { passes_all: true, ..self }
    }

    /// Parses the next bytes. After the first bad row, the parser still finds bad rows but passes
    /// on no more good ones, unless it passes on all.
    ///
    /// # Errors
    /// Returns an error as soon as there are too many rows. The parser can't be used after that.
    pub fn push(&mut self, bytes: &[u8], row: &mut impl FnMut(BulkRow)) -> Result<(), TooManyRows> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.buffer.extend_from_slice(piece);
            self.read(false, row)?;
        }
        Ok(())
    }

    /// Ends the file and returns the number of its rows. The last line may lack a line end.
    ///
    /// # Errors
    /// Returns an error if there was a bad row, no row, or too many rows.
    pub fn finish(mut self, row: &mut impl FnMut(BulkRow)) -> Result<u64, BulkError> {
        self.read(true, row)?;
        if self.rows == 0 {
            self.refuse(1, Fault::NoRows);
        }
        if self.error_count > 0 {
            return Err(BulkError::Bad(BadFile {
                errors: self.errors,
                error_count: self.error_count,
                findings: self.findings,
            }));
        }
        Ok(self.rows)
    }

    /// Parses the complete rows in the buffer. If `last` is true, parses the whole buffer.
    fn read(&mut self, last: bool, row: &mut impl FnMut(BulkRow)) -> Result<(), TooManyRows> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut at = 0;
        while at < buffer.len() {
            let Some(taken) = self.step(&buffer[at..], last, row)? else {
                break;
            };
            at += taken;
        }
        buffer.drain(..at);
        self.buffer = buffer;
        Ok(())
    }

    /// Performs one step on `rest`, which isn't empty. Returns the number of bytes consumed, or
    /// `None` if more bytes must arrive first.
    fn step(
        &mut self,
        rest: &[u8],
        last: bool,
        row: &mut impl FnMut(BulkRow),
    ) -> Result<Option<usize>, TooManyRows> {
        match self.state {
            State::File => Ok(self.begin(rest, last)),
            State::Row { searched } => self.line(rest, searched, last, row),
            State::Quoted { comma, searched } => self.quoted(rest, comma, searched, last, row),
            State::BadLine => Ok(Some(self.skip_line(rest))),
            State::Foreign => Ok(Some(rest.len())),
        }
    }

    fn begin(&mut self, rest: &[u8], last: bool) -> Option<usize> {
        if !last && rest.len() < HEAD_BYTES {
            return None;
        }
        if let Some(foreign) = ForeignFile::find(rest) {
            self.rows = 1;
            self.refuse(self.line, Fault::Foreign(foreign));
            self.state = State::Foreign;
            return Some(rest.len());
        }
        self.state = ROW;
        let marked = rest.starts_with(BYTE_ORDER_MARK);
        Some(if marked { BYTE_ORDER_MARK.len() } else { 0 })
    }

    /// Parses a row on a single line. If the row has an opening quote, leaves it to the next step.
    fn line(
        &mut self,
        rest: &[u8],
        searched: usize,
        last: bool,
        row: &mut impl FnMut(BulkRow),
    ) -> Result<Option<usize>, TooManyRows> {
        let end = memchr(b'\n', &rest[searched..]).map(|at| searched + at);
        let bytes_max = self.line_bytes_max();
        if end.is_none() && !last && rest.len() <= bytes_max {
            self.state = State::Row { searched: rest.len() };
            return Ok(None);
        }
        let line = &rest[..end.unwrap_or(rest.len())];
        if let Some(comma) = self.opening_quote(line) {
            self.state = State::Quoted { comma, searched: 0 };
            return Ok(Some(0));
        }
        let text = match line.strip_suffix(b"\r") {
            Some(text) if end.is_some() => text,
            _ => line,
        };
        if text.is_empty() {
            self.blanks += 1;
        } else if line.len() > bytes_max {
            let fault = self.rules().too_long(&line[..bytes_max]);
            self.count(Err(fault), row)?;
        } else {
            let read = self.rules().unquoted(text);
            self.count(read, row)?;
        }
        Ok(Some(self.skip_line(rest)))
    }

    /// Parses a row whose message has an opening quote.
    fn quoted(
        &mut self,
        rest: &[u8],
        comma: usize,
        searched: usize,
        last: bool,
        row: &mut impl FnMut(BulkRow),
    ) -> Result<Option<usize>, TooManyRows> {
        let start = comma + 2;
        let body = &rest[start..];
        let bytes_max = self.message_bytes_max();
        let message = match closing(body, searched, bytes_max, last) {
            Closing::Unknown { searched } => {
                self.state = State::Quoted { comma, searched };
                return Ok(None);
            }
            Closing::At(quote) => &body[..quote],
            Closing::None => {
                let seen = &body[..body.len().min(bytes_max + 1)];
                return self.unclosed(rest, comma, seen, row).map(Some);
            }
        };
        if characters(message) > self.characters_max() {
            return self.unclosed(rest, comma, message, row).map(Some);
        }
        let record = &rest[..start + message.len()];
        let end = record.len() + 1;
        let after = match &rest[end..] {
            [] | [b'\n', ..] | [b'\r', b'\n', ..] => None,
            [b'\r'] if !last => return Ok(None),
            // The next row of a file whose lines end with CR.
            [b'\r', b'0'..=b'9' | b'+', ..] => Some(Fault::Foreign(ForeignFile::OldMac)),
            _ => Some(Fault::TextAfterQuote),
        };
        let read = self.rules().quoted(record, comma);
        let read = read.and_then(|row| after.map_or(Ok(row), Err));
        self.count(read, row)?;
        self.line += memchr_iter(b'\n', record).count() as u64;
        Ok(Some(end + self.skip_line(&rest[end..])))
    }

    /// Refuses a row whose quote isn't closed within `seen`, the part of the message that was
    /// searched. Parsing continues on the line after the one where the row starts, so each row that
    /// the quote swallowed is checked separately.
    ///
    /// No line is searched repeatedly because of this: if a swallowed row had an opening quote,
    /// that quote would have closed this one.
    fn unclosed(
        &mut self,
        rest: &[u8],
        comma: usize,
        seen: &[u8],
        row: &mut impl FnMut(BulkRow),
    ) -> Result<usize, TooManyRows> {
        let first_line = &seen[..memchr(b'\n', seen).unwrap_or(seen.len())];
        let fault = if characters(first_line) > self.characters_max() {
            Fault::MessageTooLong
        } else {
            Fault::QuoteNotClosed
        };
        let record = &rest[..comma + 2 + first_line.len()];
        let fault = self.rules().unclosed(record, comma, fault);
        self.count(Err(fault), row)?;
        Ok(self.skip_line(rest))
    }

    /// Skips the rest of the line, as far as it has arrived. Returns the number of bytes skipped.
    fn skip_line(&mut self, rest: &[u8]) -> usize {
        if let Some(end) = memchr(b'\n', rest) {
            self.line += 1;
            self.state = ROW;
            end + 1
        } else {
            self.state = State::BadLine;
            rest.len()
        }
    }

    /// Returns the index of the comma before an opening quote.
    fn opening_quote(&self, line: &[u8]) -> Option<usize> {
        if self.mode == BulkMode::OneToMany {
            return None;
        }
        let comma = memchr(b',', &line[..line.len().min(NUMBER_BYTES_MAX)])?;
        (line.get(comma + 1) == Some(&b'"')).then_some(comma)
    }

    /// Counts a row. Any blank lines above it become bad rows.
    fn count(
        &mut self,
        read: Result<BulkRow, Fault>,
        row: &mut impl FnMut(BulkRow),
    ) -> Result<(), TooManyRows> {
        let blanks = std::mem::take(&mut self.blanks);
        self.rows += blanks + 1;
        if self.rows > self.limits.rows_max {
            return Err(TooManyRows);
        }
        for line in self.line - blanks..self.line {
            self.refuse(line, Fault::Blank);
        }
        match read {
            Ok(good) if self.passes_all || self.error_count == 0 => row(good),
            Ok(_) => {}
            Err(fault) => self.refuse(self.line, fault),
        }
        Ok(())
    }

    fn refuse(&mut self, line: u64, fault: Fault) {
        self.error_count += 1;
        for file in fault.foreign() {
            match self.findings.iter_mut().find(|finding| finding.file == file) {
                Some(finding) => finding.rows += 1,
                None => self.findings.push(FileFinding { file, rows: 1, line }),
            }
        }
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(BadRow { line, reason: fault.reason(), detail: fault.sentence() });
        }
    }

    const fn rules(&self) -> Rules {
        let (mode, writing) = (self.mode, self.writing);
        let BulkLimits { message_pages_max: pages_max, replace_characters, .. } = self.limits;
        Rules { line: self.line, mode, writing, pages_max, replace_characters }
    }

    /// Returns the maximum number of characters in a message.
    const fn characters_max(&self) -> usize {
        self.limits.message_pages_max.saturating_mul(PAGE_CHARS)
    }

    /// Returns the maximum number of bytes in a message, quoted or not. A doubled quote takes fewer
    /// bytes than the longest character.
    const fn message_bytes_max(&self) -> usize {
        self.characters_max().saturating_mul(CHARACTER_BYTES_MAX)
    }

    /// Returns the maximum number of bytes in the line of a good row, without its LF.
    const fn line_bytes_max(&self) -> usize {
        self.message_bytes_max().saturating_add(NUMBER_BYTES_MAX)
    }
}
