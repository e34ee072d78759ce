//! The check of a file before it is uploaded. Nothing is stored, charged or sent.

use std::collections::HashSet;
use std::sync::Arc;

use domain::bulk::{FIRST_BYTES, FileReport, ForeignFile, Lines, PartReport, first_lines};
use domain::{
    BadFile, BulkError, BulkLimits, BulkMode, BulkParser, BulkRow, BulkWriting, Kind, MessageText,
    NumberWarning, PagesByPrice, PricesInForce, Reason, SendLimits,
};

use crate::Messages;
use crate::admission::KeyAccess;
use crate::opt_outs::numbers::{OptedOutNumbers, Packed};
use crate::uploads::UploadError;
use crate::uploads::upload_slots::{HeldSlot, UploadSlot};
use store::error::Result;

/// A file that is being checked. It holds a slot, and about 20 MB of memory for a million rows.
pub struct FileCheck {
    slot: HeldSlot,
    parser: BulkParser,
    bytes_left: u64,
    /// The first bytes of the file.
    head: Vec<u8>,
    rows: CheckedRows,
}

/// The counts of the good rows so far.
struct CheckedRows {
    country_code: String,
    prices: Arc<PricesInForce>,
    opted_out: OptedOutNumbers,
    /// The recipients so far, as carriers get them.
    seen: HashSet<Packed>,
    local: CountedRows,
    international: CountedRows,
    to_opted_out: PagesByPrice,
    doubtful: [Lines; NumberWarning::ALL.len()],
    repeated: Lines,
    opted_out_lines: Lines,
    /// The limits of the application.
    own_limits: SendLimits,
}

#[derive(Default)]
struct CountedRows {
    rows: u64,
    /// In mode one to many, as if the text had one page.
    pages: PagesByPrice,
}

/// A file that has been checked completely.
pub struct CheckedFile {
    rows: CheckedRows,
    bad: BadFile,
    head: Vec<u8>,
}

impl Messages<'_> {
    /// Begins the check of a file.
    ///
    /// # Errors
    /// `RateLimited` if the application has the maximum number of checks in progress. `Unavailable`
    /// if this process has.
    pub async fn check_file(
        &self,
        access: KeyAccess,
        mode: BulkMode,
        writing: BulkWriting,
    ) -> Result<std::result::Result<FileCheck, Reason>> {
        let slot = match HeldSlot::take(self, UploadSlot::of_check(access)) {
            Ok(slot) => slot,
            Err(reason) => return Ok(Err(reason)),
        };
        let own_limits = self.applications().send_limits(access.reference).await?;
        let limits = self.limits();
        let parser_limits = BulkLimits {
            rows_max: limits.bulk_rows_max,
            message_pages_max: limits.message_pages_max,
            replace_characters: own_limits.replace_characters,
        };
        Ok(Ok(FileCheck {
            slot,
            parser: BulkParser::new(mode, writing, parser_limits).passing_all(),
            bytes_left: limits.bulk_bytes_max,
            head: Vec::new(),
            rows: CheckedRows {
                country_code: self.country_code().to_owned(),
                prices: self.money().prices_now().await?,
                opted_out: self.opted_out_numbers(&access).await?,
                seen: HashSet::new(),
                local: CountedRows::default(),
                international: CountedRows::default(),
                to_opted_out: PagesByPrice::default(),
                doubtful: std::array::from_fn(|_| Lines::default()),
                repeated: Lines::default(),
                opted_out_lines: Lines::default(),
                own_limits,
            },
        }))
    }
}

impl FileCheck {
    /// Processes the next bytes of the file.
    ///
    /// # Errors
    /// `TooLarge`. The check can't continue after an error.
    pub fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), UploadError> {
        let limits = self.slot.service.limits();
        let left = self.bytes_left.checked_sub(bytes.len() as u64);
        let too_large = UploadError::TooLarge { limit: limits.bulk_bytes_max, of: "bytes" };
        self.bytes_left = left.ok_or(too_large)?;
        let missing = FIRST_BYTES - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        let rows = &mut self.rows;
        let parsed = self.parser.push(bytes, &mut |row| rows.add(&row));
        parsed.map_err(|_| UploadError::TooLarge { limit: limits.bulk_rows_max, of: "rows" })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn finish(self) -> std::result::Result<CheckedFile, UploadError> {
        let Self { slot, parser, head, mut rows, .. } = self;
        let bad = match parser.finish(&mut |row| rows.add(&row)) {
            Ok(_) => BadFile { errors: Vec::new(), error_count: 0, findings: Vec::new() },
            Err(BulkError::Bad(bad)) => bad,
            Err(BulkError::TooManyRows) => {
                let limit = slot.service.limits().bulk_rows_max;
                return Err(UploadError::TooLarge { limit, of: "rows" });
            }
        };
        Ok(CheckedFile { rows, bad, head })
    }
}

impl CheckedRows {
    fn add(&mut self, row: &BulkRow) {
        let (number, pages) = (&row.number, row.message.as_ref().map_or(1, MessageText::pages));
        let (priced, pages) = ((number.kind(), number.digits()), pages as u64);
        let part = match number.kind() {
            Kind::Local => &mut self.local,
            Kind::International => &mut self.international,
        };
        part.rows += 1;
        part.pages.add(&self.prices, priced, pages);
        for warning in number.warnings(&self.country_code) {
            self.doubtful[warning as usize].add(row.line);
        }
        let for_carrier = number.for_carrier(&self.country_code);
        let packed = Packed::of(&for_carrier);
        if self.opted_out.has(&for_carrier) {
            self.opted_out_lines.add(row.line);
            self.to_opted_out.add(&self.prices, priced, pages);
        }
        if !self.seen.insert(packed) {
            self.repeated.add(row.line);
        }
    }

    /// Returns a part of the report. `times` is the number of pages of the message that all rows
    /// share.
    fn part(&self, part: &CountedRows, times: u64) -> Option<PartReport> {
        let pages = part.pages.checked_times(times)?;
        let cost = self.prices.cost_of_all(&pages)?;
        Some(PartReport { rows: part.rows, pages: pages.total()?, cost })
    }
}

impl CheckedFile {
    /// Returns the report. `message` is the message to all numbers, in mode one to many. Returns
    /// `None` if the pages or the price overflow.
    pub fn report(self, message: Option<&MessageText>) -> Option<FileReport> {
        let Self { rows, bad, head } = self;
        let written = message.map(|message| rows.own_limits.written(message.clone()));
        let times = written.map_or(1, |message| message.pages() as u64);
        let released = rows.to_opted_out.checked_times(times)?;
        let found: Vec<ForeignFile> = bad.findings.iter().map(|finding| finding.file).collect();
        let is_bad = bad.error_count > 0;
        // A file without rows has one error, which isn't about a row.
        let is_empty = found.is_empty()
            && bad.errors.first().is_some_and(|error| error.reason == Reason::InvalidFile);
        let good = rows.local.rows + rows.international.rows;
        Some(FileReport {
            rows: if is_empty { 0 } else { good + bad.error_count },
            local: rows.part(&rows.local, times)?,
            international: rows.part(&rows.international, times)?,
            released: rows.prices.cost_of_all(&released)?,
            doubtful: NumberWarning::ALL
                .into_iter()
                .zip(rows.doubtful)
                .filter(|(_, lines)| lines.count > 0)
                .collect(),
            repeated: rows.repeated,
            opted_out: rows.opted_out_lines,
            errors: (bad.errors.iter()).map(|bad| (bad.line, bad.detail.to_owned())).collect(),
            error_count: bad.error_count,
            findings: bad.findings,
            first_lines: if is_bad { first_lines(&head, &found) } else { Vec::new() },
        })
    }
}
