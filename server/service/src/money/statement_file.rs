//! Reads the files of bank statements, whichever bank wrote them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use domain::Money;
use domain::bulk::{ForeignFile, HEAD_BYTES};
use domain::printable::printable;
use domain::records::{LineOutcome, SuggestedColumns};

use super::deposits::{is_bank_id, written};
use super::statement_amounts::{Amount, amount, amount_of_two, is_ambiguous};
use super::statement_columns::{by_data, by_name};
use super::statement_days::day;
use store::statements::{BankColumns, FileLine};

/// The maximum number of lines of a bank statement.
const LINES_MAX: usize = 1_000_000;
/// The maximum number of bad lines that an error lists.
const BAD_LINES_SHOWN: usize = 20;
/// The byte order mark of UTF-8, which spreadsheets put before the first cell.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The maximum length of the header line, in bytes.
const HEADER_BYTES_MAX: u64 = 64 * 1024;

/// The number of leading bytes that show whether a file is text.
const TEXT_BYTES: u64 = 64 * 1024;
/// At least one byte of this many is a control character if a file isn't text.
const CONTROLS_PER_BYTES: usize = 16;

/// The number of characters of an amount that an error shows.
const AMOUNT_CHARS_SHOWN: usize = 40;

/// The number of rows that suggest the columns.
const SAMPLE_ROWS: usize = 50;
/// The size at which a part of a kept file ends, in bytes.
const PART_BYTES: usize = 256 * 1024;
/// The size at which a line without an end is split between two parts, in bytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The columns of a file in our own format, in which every line must be a payment.
const OWN_COLUMNS: [&str; 3] = ["bank_id", "reference", "amount"];

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStatement {
    #[error(
        "The file is empty, or has no line below its header. It needs a header line and a line for \
         each payment."
    )]
    Empty,
    /// The file isn't text, but for example a workbook.
    #[error("{}", .0.sentence())]
    Foreign(ForeignFile),
    #[error("The file isn't text. Export the statement from your bank as CSV.")]
    NotText,
    #[error("The first line is longer than 64 KiB. Check that this is a CSV file.")]
    HeaderTooLong,
    #[error("The file has more than 1,000,000 lines. Split it.")]
    TooLong,
    /// Nothing of the file is stored. `first` has the first bad lines with their numbers, and
    /// `total` is the number of all bad lines.
    #[error(
        "The file is refused, and nothing of it is stored. Bad lines ({total}): {}.",
        named(.first)
    )]
    Lines { first: Vec<(u64, LineFault)>, total: usize },
}

/// Why a line is bad.
type LineFault = Cow<'static, str>;

fn named(lines: &[(u64, LineFault)]) -> String {
    let lines: Vec<_> = lines.iter().map(|(line, what)| format!("line {line}: {what}")).collect();
    lines.join("; ")
}

/// A file whose separator, encoding and header are known.
pub(crate) struct OpenStatement {
    file: File,
    separator: u8,
    is_utf8: bool,
    pub(crate) names: Vec<String>,
    /// The header line, under which the choice of columns is stored.
    pub(crate) header: String,
}

impl OpenStatement {
    /// Opens a file. Reads all of it, because a single byte can determine the encoding.
    pub(crate) fn open(mut file: File) -> io::Result<Result<Self, BadStatement>> {
        file.rewind()?;
        let mut head = Vec::new();
        (&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        if let Some(foreign) = ForeignFile::find(&head) {
            return Ok(Err(BadStatement::Foreign(foreign)));
        }
        file.rewind()?;
        let mut first = Vec::new();
        let mut reader = BufReader::new(&file);
        while first.trim_ascii().is_empty() {
            first.clear();
            let read = (&mut reader).take(HEADER_BYTES_MAX).read_until(b'\n', &mut first)?;
            if read == 0 {
                return Ok(Err(BadStatement::Empty));
            }
            if first.len() as u64 == HEADER_BYTES_MAX && !first.ends_with(b"\n") {
                return Ok(Err(BadStatement::HeaderTooLong));
            }
            if let Some(rest) = first.strip_prefix(MARK) {
                first = rest.to_vec();
            }
        }
        file.rewind()?;
        let mut head = Vec::new();
        (&mut file).take(TEXT_BYTES).read_to_end(&mut head)?;
        if first.contains(&0) || !is_text(&head) {
            return Ok(Err(BadStatement::NotText));
        }
        let header = first.trim_ascii();
        let count = |separator: u8| header.split(|byte| *byte == separator).count();
        let separator = [b',', b';', b'\t'].into_iter().rev().max_by_key(|one| count(*one));
        let mut statement = Self {
            file,
            separator: separator.unwrap_or(b','),
            is_utf8: true,
            names: Vec::new(),
            header: String::new(),
        };
        let header = header.to_vec();
        statement.is_utf8 = statement.reads_as_utf8()?;
        statement.header = written(&statement.text(&header));
        let mut records = statement.records()?;
        let mut record = csv::ByteRecord::new();
        if records.read_byte_record(&mut record)? {
            statement.names = record.iter().map(|cell| statement.cell(cell)).collect();
        }
        Ok(Ok(statement))
    }

    fn reads_as_utf8(&self) -> io::Result<bool> {
        let mut records = self.records()?;
        let mut record = csv::ByteRecord::new();
        while records.read_byte_record(&mut record)? {
            // Separators are the same byte in both encodings, so each cell can be checked by
            // itself.
            if record.iter().any(|cell| std::str::from_utf8(cell).is_err()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns a reader for all records, starting with the header.
    fn records(&self) -> io::Result<csv::Reader<impl io::Read + use<>>> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(file);
        if reader.fill_buf()?.starts_with(MARK) {
            reader.consume(MARK.len());
        }
        Ok(csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(self.separator)
            // Only a line feed ends a line. Trimming a cell removes the carriage return before it.
            .terminator(csv::Terminator::Any(b'\n'))
            // Every record has a terminator, so that lines can be counted.
            .from_reader(reader.chain(&b"\n"[..])))
    }

    fn text<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        if self.is_utf8 {
            String::from_utf8_lossy(bytes)
        } else {
            encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0
        }
    }

    fn cell(&self, bytes: &[u8]) -> String {
        self.text(bytes).trim().to_owned()
    }

    /// Finds the columns by their names. Returns `None` if a required column isn't found.
    pub(crate) fn guessed(&self) -> Option<BankColumns> {
        let found = by_name(&self.names);
        Some(BankColumns {
            bank_id: found.bank_id?,
            reference: found.reference?,
            amount: found.amount?,
            debit: found.debit,
            currency: found.currency,
            payer: found.payer,
            purpose: found.purpose,
            paid_on: found.paid_on,
        })
    }

    /// Returns the first rows below the header, and the columns that their names and these rows
    /// suggest.
    pub(crate) fn sample(&self) -> io::Result<(Vec<Vec<String>>, SuggestedColumns)> {
        let mut records = self.records()?;
        let mut record = csv::ByteRecord::new();
        let mut rows = Vec::new();
        while rows.len() <= SAMPLE_ROWS && records.read_byte_record(&mut record)? {
            let cells: Vec<_> = record.iter().map(|cell| written(&self.cell(cell))).collect();
            if !cells.iter().all(String::is_empty) {
                rows.push(cells);
            }
        }
        rows.drain(..rows.len().min(1));
        let suggested = by_data(by_name(&self.names), &rows);
        Ok((rows, suggested))
    }

    /// Passes the file's text to `take`, in parts that end with a line.
    pub(crate) fn parts(&self, mut take: impl FnMut(String) -> io::Result<()>) -> io::Result<()> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(file);
        loop {
            let mut part = Vec::new();
            while part.len() < PART_BYTES {
                if (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut part)? == 0 {
                    break;
                }
            }
            if part.is_empty() {
                return Ok(());
            }
            take(written(&self.text(&part)))?;
        }
    }

    pub(crate) fn check(
        &self,
        columns: BankColumns,
        currency: &str,
    ) -> io::Result<Result<(), BadStatement>> {
        let (mut first, mut total, mut count) = (Vec::new(), 0, 0);
        let mut payments = Payments::default();
        self.each(columns, currency, |line, read| {
            count += 1;
            let what = match read {
                Err(what) => Some(what),
                Ok(read) => payments.conflict(&read).map(|earlier| {
                    let what = "it has the bank ID of line";
                    Cow::Owned(format!("{what} {earlier}, but another reference or amount"))
                }),
            };
            if let Some(what) = what {
                total += 1;
                if first.len() < BAD_LINES_SHOWN {
                    first.push((line, what));
                }
            }
            Ok(count <= LINES_MAX)
        })?;
        Ok(match (count, total) {
            (0, _) => Err(BadStatement::Empty),
            (count, _) if count > LINES_MAX => Err(BadStatement::TooLong),
            (_, 0) => Ok(()),
            (_, total) => Err(BadStatement::Lines { first, total }),
        })
    }

    /// Passes the lines of a checked file to `take`, at most `size` of them at a time.
    pub(crate) fn chunks(
        &self,
        columns: BankColumns,
        currency: &str,
        size: usize,
        mut take: impl FnMut(Vec<FileLine>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut chunk = Vec::new();
        let mut payments = Payments::default();
        self.each(columns, currency, |_, read| {
            chunk.extend(read.ok().map(|line| payments.judge(line)));
            if chunk.len() == size {
                take(std::mem::take(&mut chunk))?;
            }
            Ok(true)
        })?;
        if chunk.is_empty() {
            return Ok(());
        }
        take(chunk)
    }

    /// Calls `take` for each line below the header that isn't blank, until `take` returns false.
    fn each(
        &self,
        columns: BankColumns,
        currency: &str,
        mut take: impl FnMut(u64, Result<FileLine, LineFault>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut records = self.records()?;
        let mut record = csv::ByteRecord::new();
        let is_own = self.names == OWN_COLUMNS && self.guessed() == Some(columns);
        let is_month_first = self.is_month_first(columns.paid_on)?;
        let mut is_header = true;
        while records.read_byte_record(&mut record)? {
            let cells: Vec<_> = record.iter().map(|cell| self.cell(cell)).collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            let line = line(&record, records.position());
            if std::mem::take(&mut is_header) {
                continue;
            }
            let read = if has_lone_return(&record) {
                Err("it contains a carriage return without a line feed".into())
            } else if is_own {
                own_payment(line, &record, &cells)
            } else {
                let paid_on = columns.paid_on.and_then(|place| cells.get(place));
                let paid_on = paid_on.and_then(|cell| day(cell, is_month_first));
                payment(line, &cells, columns, currency).map(|read| FileLine { paid_on, ..read })
            };
            if !take(line, read)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether a column has more days that can only be read with the month first than days that
    /// can't be read so. Many days, such as 05/11/2026, can be read either way.
    fn is_month_first(&self, column: Option<usize>) -> io::Result<bool> {
        let Some(column) = column else { return Ok(false) };
        let mut records = self.records()?;
        let mut record = csv::ByteRecord::new();
        let [mut month_first, mut day_first] = [0, 0];
        while records.read_byte_record(&mut record)? {
            let cell = self.cell(record.get(column).unwrap_or_default());
            match (day(&cell, true), day(&cell, false)) {
                (Some(_), None) => month_first += 1,
                (None, Some(_)) => day_first += 1,
                _ => {}
            }
        }
        Ok(month_first > day_first)
    }
}

/// Whether the beginning of a file is text. A text may have a few control characters, for example
/// where a bank cut off a payer's name.
fn is_text(head: &[u8]) -> bool {
    let is_control = |byte: &&u8| byte.is_ascii_control() && !b"\t\r\n".contains(byte);
    head.iter().filter(is_control).count() * CONTROLS_PER_BYTES <= head.len()
}

/// Returns the number of the line on which a record begins. The reader counts blank lines before a
/// record as part of the record. `after` is the position after the record.
fn line(record: &csv::ByteRecord, after: &csv::Position) -> u64 {
    let lines = record.as_slice().split(|byte| *byte == b'\n').count() as u64;
    let before = record.position().map_or(0, csv::Position::line);
    before.max(after.line().saturating_sub(lines))
}

/// Returns whether a record has a carriage return that isn't part of a line ending. Such a record
/// may consist of two lines, of which the second would be lost.
fn has_lone_return(record: &csv::ByteRecord) -> bool {
    let bytes = record.as_slice().trim_ascii_end();
    bytes.windows(2).any(|two| two[0] == b'\r' && two[1] != b'\n')
}

/// The payments of a file so far. Maps the hash of a bank ID to the hash of the payment's data and
/// to its line. Hashes save memory, because a file may have a million payments.
#[derive(Default)]
struct Payments {
    hasher: RandomState,
    paid: HashMap<u64, (u64, i64)>,
}

impl Payments {
    /// Adds a payment, or returns the earlier one with the same bank ID in the same currency:
    /// whether it is the same payment, and its line.
    fn add(&mut self, line: &FileLine) -> Option<(bool, i64)> {
        let id = self.hasher.hash_one((&line.bank_id, &line.currency));
        let data = self.hasher.hash_one((&line.reference, line.amount.micros()));
        match self.paid.entry(id) {
            Entry::Vacant(place) => {
                place.insert((data, line.line));
                None
            }
            Entry::Occupied(known) => {
                let (earlier, at) = *known.get();
                Some((earlier == data, at))
            }
        }
    }

    /// Returns the earlier line that has the same bank ID and other data. One of the two can't be
    /// right, and the wrong column may have been chosen.
    fn conflict(&mut self, line: &FileLine) -> Option<i64> {
        let earlier = if line.skipped.is_none() { self.add(line) } else { None };
        earlier.filter(|(is_same, _)| !is_same).map(|(_, at)| at)
    }

    /// Marks a line of a checked file as skipped if an earlier line is the same payment.
    fn judge(&mut self, mut line: FileLine) -> FileLine {
        let is_payment = match line.skipped {
            None => true,
            Some(LineOutcome::OtherCurrency) => !line.bank_id.is_empty(),
            Some(_) => false,
        };
        if is_payment && matches!(self.add(&line), Some((true, _))) {
            line.skipped = Some(LineOutcome::Known);
        }
        line
    }
}

/// Reads a line of a file in our own format. Its amounts have a decimal point, as on the command
/// line.
fn own_payment(
    line: u64,
    record: &csv::ByteRecord,
    cells: &[String],
) -> Result<FileLine, LineFault> {
    if record.iter().any(|cell| std::str::from_utf8(cell).is_err()) {
        return Err("it isn't UTF-8".into());
    }
    let [bank_id, reference, amount] = cells else {
        return Err("it needs three cells: bank_id, reference and amount".into());
    };
    if reference.is_empty() {
        return Err("the reference is empty".into());
    }
    let read = Money::parse(amount).ok().filter(|amount| *amount > Money::ZERO);
    let amount = read.ok_or_else(|| {
        LineFault::from(format!(
            "the amount {} must be above 0, with at most 6 decimals",
            shown(amount)
        ))
    })?;
    file_line(line, bank_id, reference, amount, None)
}

/// Returns the text of an optional column, or `None` if it is empty.
fn optional(cells: &[String], column: Option<usize>) -> Option<String> {
    let text = written(cells.get(column?)?);
    (!text.is_empty()).then_some(text)
}

fn payment(
    line: u64,
    cells: &[String],
    columns: BankColumns,
    currency: &str,
) -> Result<FileLine, LineFault> {
    let cell = |place: usize| cells.get(place).map_or("", String::as_str);
    let other = optional(cells, columns.currency).filter(|it| !it.eq_ignore_ascii_case(currency));
    let written = [Some(columns.amount), columns.debit].map(|place| place.map_or("", cell));
    let read = match columns.debit {
        Some(_) => amount_of_two(written[0], written[1]),
        None => amount(written[0]),
    };
    let read = read.ok_or_else(|| fault_of_amounts(written))?;
    let (amount, skipped) = match read {
        Amount::Debit(amount) => (amount, Some(LineOutcome::Debit)),
        Amount::Payment(amount) if other.is_some() => (amount, Some(LineOutcome::OtherCurrency)),
        Amount::Payment(amount) => (amount, None),
    };
    let read = file_line(line, cell(columns.bank_id), cell(columns.reference), amount, skipped)?;
    Ok(FileLine {
        payer: optional(cells, columns.payer),
        purpose: optional(cells, columns.purpose),
        currency: other,
        ..read
    })
}

/// Returns why none of the amounts of a line can be used.
fn fault_of_amounts(written: [&str; 2]) -> LineFault {
    let mut filled = written.into_iter().filter(|text| !text.trim().is_empty());
    let unreadable = filled.clone().find(|text| amount(text).is_none());
    let Some(text) = unreadable else {
        return if filled.next().is_some() {
            "money in and money out both have an amount".into()
        } else {
            "it has no amount".into()
        };
    };
    let shown = shown(text);
    if is_ambiguous(text) {
        let why = "the separator may be that of thousands or of decimals";
        return format!("the amount {shown} is ambiguous, because {why}").into();
    }
    format!("the amount {shown} can't be read").into()
}

/// Returns the beginning of an amount as an error shows it.
fn shown(amount: &str) -> String {
    printable(amount).chars().take(AMOUNT_CHARS_SHOWN).collect()
}

fn file_line(
    line: u64,
    bank_id: &str,
    reference: &str,
    amount: Money,
    skipped: Option<LineOutcome>,
) -> Result<FileLine, LineFault> {
    if skipped.is_none() && !is_bank_id(bank_id) {
        let what = "the bank ID must have 1 to 255 characters, none of them a control character";
        return Err(what.into());
    }
    Ok(FileLine {
        line: i64::try_from(line).unwrap_or(i64::MAX),
        bank_id: written(bank_id),
        reference: written(reference),
        amount,
        payer: None,
        purpose: None,
        paid_on: None,
        currency: None,
        skipped,
    })
}
