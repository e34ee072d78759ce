//! A file of numbers that is being uploaded for a list. It is checked like an upload in mode one to
//! many.

use domain::{BulkError, BulkLimits, BulkMode, BulkParser, BulkWriting, Reason};
use sha2::{Digest as _, Sha256};

use crate::Messages;
use crate::admission::KeyAccess;
use crate::opt_outs::OptOutChange;
use crate::opt_outs::numbers::NumberList;
use crate::uploads::UploadError;
use crate::uploads::upload_slots::{HeldSlot, UploadSlot};

/// A file of numbers. It holds an upload slot until its numbers are stored.
pub struct NumberFile {
    slot: HeldSlot,
    parser: BulkParser,
    bytes_left: u64,
    digest: Sha256,
    numbers: NumberList,
}

impl Messages<'_> {
    /// Begins a file of numbers that is uploaded for an application.
    ///
    /// # Errors
    /// `RateLimited`, `Unavailable`: the upload slots are taken.
    pub fn number_file(
        &self,
        access: &KeyAccess,
        writing: BulkWriting,
    ) -> std::result::Result<NumberFile, Reason> {
        // An application that isn't Active may have opt-outs too, so each file takes one of the
        // slots of such applications.
        let slot = UploadSlot { access: *access, is_active: false, is_check: false };
        let slot = HeldSlot::take(self, slot)?;
        let limits = self.limits();
        let parser_limits = BulkLimits {
            rows_max: limits.bulk_rows_max,
            message_pages_max: limits.message_pages_max,
            replace_characters: false,
        };
        Ok(NumberFile {
            slot,
            parser: BulkParser::new(BulkMode::OneToMany, writing, parser_limits),
            bytes_left: limits.bulk_bytes_max,
            digest: Sha256::new(),
            numbers: NumberList::default(),
        })
    }
}

impl NumberFile {
    /// Processes the next bytes of the file.
    ///
    /// # Errors
    /// `TooLarge`. The file can't continue after an error.
    pub fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), UploadError> {
        let limits = self.slot.service.limits();
        let left = self.bytes_left.checked_sub(bytes.len() as u64);
        let too_large = UploadError::TooLarge { limit: limits.bulk_bytes_max, of: "bytes" };
        self.bytes_left = left.ok_or(too_large)?;
        self.digest.update(bytes);
        let (numbers, code) = (&mut self.numbers, self.slot.service.country_code());
        let parsed = self.parser.push(bytes, &mut |row| numbers.push(&row.number, code));
        parsed.map_err(|_| UploadError::TooLarge { limit: limits.bulk_rows_max, of: "rows" })
    }

    /// Ends the file. Returns the change that adds its numbers.
    ///
    /// # Errors
    /// `Bad`, `TooLarge`.
    pub fn finish(self) -> std::result::Result<OptOutChange, UploadError> {
        let Self { slot, parser, digest, mut numbers, .. } = self;
        let (limits, code) = (slot.service.limits(), slot.service.country_code());
        let rows = parser.finish(&mut |row| numbers.push(&row.number, code));
        let rows = rows.map_err(|error| match error {
            BulkError::Bad(bad) => UploadError::Bad(bad),
            BulkError::TooManyRows => {
                UploadError::TooLarge { limit: limits.bulk_rows_max, of: "rows" }
            }
        })?;
        numbers.sort();
        Ok(OptOutChange::Import {
            numbers,
            rows,
            digest: digest.finalize().to_vec(),
            slot: Box::new(slot),
        })
    }
}
