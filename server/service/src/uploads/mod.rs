//! Incoming uploads. Their rows are parsed, counted and spooled as they arrive, in constant memory.

pub(crate) mod acceptance;
pub(crate) mod batches;
pub(crate) mod expansion;
pub(crate) mod file_check;
mod limited;
pub(crate) mod number_file;
pub(crate) mod spool_folder;
pub(crate) mod spool_format;
pub(crate) mod spool_store;
pub(crate) mod upload_slots;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::admission::idempotency::IdempotencyKey;
use crate::admission::{KeyAccess, Presented, SendAccess};
use crate::opt_outs::numbers::OptedOutNumbers;
use crate::uploads::spool_format::ChunkWriter;
use crate::uploads::spool_store::{Spool, SpoolWriter};
use crate::uploads::upload_slots::{Own, UploadSlot, UploadSlots};
use crate::{Messages, Service, run_detached};
use domain::admission::reserved_outcome;
use domain::limits::LimitedRows;
use domain::{
    ApiKey, ApplicationStatus, BadFile, BulkError, BulkLimits, BulkMode, BulkParser, BulkRow,
    BulkWriting, KeyKind, Kind, Number, PagesByPrice, PricesInForce, Reason, SendLimits,
    WarningCounts,
};
use sha2::{Digest as _, Sha256};
use store::error::{Error, Fault, Result};
use store::gate::Priority;
use store::shared::{self, NodeKey};
use tokio::task::JoinHandle;

/// The number of bytes of chunks to collect before they are written to the spool.
const WRITE_BYTES: usize = 256 * 1024;

/// The delay before another attempt to end an upload in the database.
const RETRY: Duration = Duration::from_secs(1);

/// The uploads in progress in this process.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<UnderWay>);

#[derive(Default)]
struct UnderWay {
    slots: UploadSlots,
    keys: HashSet<(KeyAccess, IdempotencyKey)>,
}

/// The right to upload a file. It holds an upload slot until it is dropped.
pub struct UploadPermit {
    pub(crate) service: Service,
    pub(crate) key: ApiKey,
    pub(crate) access: SendAccess,
    pub(crate) idempotency: Option<IdempotencyKey>,
    /// The client's address.
    pub(crate) address: Option<IpAddr>,
    limits: Arc<SendLimits>,
    /// `None` if the request repeats one that was accepted before. Its file is only compared.
    slot: Option<UploadSlot>,
    /// The upload as other processes see it, if there can be others.
    shared: Option<SharedUpload>,
}

/// An upload that other processes count until this is dropped.
struct SharedUpload {
    service: Service,
    /// The ID of the upload's row. 0 once the upload has ended.
    id: AtomicI64,
}

impl SharedUpload {
    /// Ends the upload in a task of its own, because the caller's future may be dropped.
    fn end(&self) -> Option<JoinHandle<()>> {
        let id = self.id.swap(0, Ordering::Relaxed);
        let service = self.service.clone();
        (id != 0).then(|| tokio::spawn(async move { service.messages().end_upload(id).await }))
    }
}

impl Drop for SharedUpload {
    fn drop(&mut self) {
        self.end();
    }
}

impl UploadPermit {
    pub const fn key(&self) -> &ApiKey {
        &self.key
    }

    /// Returns the key's access, and whether the idempotency key is known.
    pub const fn access(&self) -> &SendAccess {
        &self.access
    }

    /// Ends the upload for the other processes. Call this before the request is answered, because
    /// the client may then repeat it at once.
    pub async fn end(&self) {
        if let Some(ending) = self.shared.as_ref().and_then(SharedUpload::end)
            && let Err(error) = ending.await
        {
            tracing::error!(%error, "ending an upload failed");
        }
    }

    /// Begins the upload of a file with this mode and format. The spool is removed if the upload is
    /// dropped.
    ///
    /// # Errors
    /// Fails if the spool can't be created.
    pub async fn upload(&self, mode: BulkMode, writing: BulkWriting) -> Result<Upload> {
        let limits = self.service.limits();
        let country_code = self.service.inner.router.country_code.clone();
        let storing = match self.slot {
            Some(_) => Some(self.storing().await?),
            None => None,
        };
        let opted_out = match self.slot {
            Some(_) => self.service.opted_out_numbers(&self.access.access).await?,
            None => OptedOutNumbers::default(),
        };
        let prices = self.service.money().prices_now().await?;
        let parser_limits = BulkLimits {
            rows_max: limits.bulk_rows_max,
            message_pages_max: limits.message_pages_max,
            replace_characters: self.limits.replace_characters,
        };
        Ok(Upload {
            service: self.service.clone(),
            kind: self.access.access.kind,
            mode,
            parser: Some(BulkParser::new(mode, writing, parser_limits)),
            bytes_left: limits.bulk_bytes_max,
            digest: self.idempotency.is_some().then(Sha256::new),
            count: RowCount::default(),
            prices,
            country_code,
            opted_out,
            limits: Arc::clone(&self.limits),
            storing,
        })
    }

    async fn storing(&self) -> Result<Storing> {
        let shard = self.service.shard_of(self.access.access.reference).await?;
        let (writer, spool) = self.service.messages().make_spool(shard).await?;
        Ok(Storing { chunks: ChunkWriter::default(), written: Vec::new(), writer, spool })
    }
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        let Some(slot) = &self.slot else {
            return;
        };
        let mut under_way = self.service.inner.uploads.lock();
        under_way.slots.release(slot);
        if let Some(key) = self.idempotency.take() {
            under_way.keys.remove(&(self.access.access, key));
        }
    }
}

impl Uploads {
    fn lock(&self) -> std::sync::MutexGuard<'_, UnderWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages<'_> {
    /// Lets a client upload a file if [`Messages::authorize_send`] would allow a send.
    ///
    /// # Errors
    /// The first reason that applies. `IdempotencyInProgress` if an upload with the same
    /// idempotency key is in progress. `RateLimited` if the application or the key has as many
    /// uploads in progress as it may have. `Unavailable` if this process has as many uploads in
    /// progress as it may have. The last two don't apply to a request that was accepted before.
    pub async fn begin_bulk(
        &self,
        presented: impl Into<Presented<'_>>,
        idempotency: Option<IdempotencyKey>,
    ) -> std::result::Result<UploadPermit, Reason> {
        let presented = presented.into();
        let address = presented.origin.address;
        let (row, key, access) = self.opened(presented).await?;
        if let Some(key) = &idempotency
            && self.inner.uploads.lock().keys.contains(&(access, key.clone()))
        {
            return Err(Reason::IdempotencyInProgress);
        }
        let access = self.check_admission(&row, access, idempotency.as_ref()).await?;
        let slot = (!access.known).then(|| UploadSlot {
            access: access.access,
            is_active: row.status == ApplicationStatus::Active,
            is_check: false,
        });
        let mut permit = UploadPermit {
            service: self.0.clone(),
            key,
            access,
            idempotency,
            address,
            limits: Arc::new(row.limits().clone()),
            slot: None,
            shared: None,
        };
        if let Some(slot) = slot {
            self.take_slot(slot, permit.idempotency.as_ref())?;
            permit.slot = Some(slot);
            if let Some(node) = self.inner.node.key() {
                permit.shared = Some(self.share_upload(&permit, node).await?);
            }
        }
        Ok(permit)
    }

    /// Counts an upload among those of this process.
    fn take_slot(
        &self,
        slot: UploadSlot,
        idempotency: Option<&IdempotencyKey>,
    ) -> std::result::Result<(), Reason> {
        let mut under_way = self.inner.uploads.lock();
        let key = idempotency.map(|key| (slot.access, key.clone()));
        // Another upload with the same idempotency key may have begun while this one was checked.
        if key.as_ref().is_some_and(|key| under_way.keys.contains(key)) {
            return Err(Reason::IdempotencyInProgress);
        }
        under_way.slots.take(slot)?;
        under_way.keys.extend(key);
        Ok(())
    }

    /// Counts an upload among those of all processes.
    async fn share_upload(
        &self,
        permit: &UploadPermit,
        node: NodeKey,
    ) -> std::result::Result<SharedUpload, Reason> {
        let (service, access) = (self.0.clone(), permit.access);
        let key = permit.idempotency.clone();
        let shared = run_detached(async move {
            let KeyAccess { application_id, kind, .. } = access.access;
            let key = key.as_ref().map(IdempotencyKey::as_str);
            let mut tx = service.store().begin().await?;
            let under_way = shared::uploads(&mut tx, application_id, kind, key).await?;
            if under_way.with_idempotency_key > 0 {
                return Ok(Err(Reason::IdempotencyInProgress));
            }
            let own = Own { application: under_way.of_application, key: under_way.of_key };
            if !own.has_room(kind) {
                return Ok(Err(Reason::RateLimited));
            }
            let id = shared::begin_upload(&mut tx, node, application_id, kind, key).await?;
            // Created before the commit, so that its drop deletes the row if this function fails.
            // Nothing else would delete the row if the commit got no answer but was stored.
            let upload = SharedUpload { service: service.clone(), id: AtomicI64::new(id) };
            tx.commit().await?;
            Ok(Ok(upload))
        });
        shared.await.unwrap_or_else(|error| {
            tracing::error!(detail = ?error, "can't begin an upload");
            Err(error.reason())
        })
    }

    /// Ends an upload in the database. Retries until the database can be written.
    async fn end_upload(&self, id: i64) {
        let end = async || {
            let mut tx = self.store().begin_as(Priority::Verb).await?;
            shared::end_upload(&mut tx, id).await?;
            tx.commit().await
        };
        while let Err(error) = end().await {
            tracing::warn!(detail = ?error, "can't end an upload in the database yet; retrying");
            if self.store().is_closed() {
                return;
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// The counts of a file's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCount {
    pub(crate) rows: u64,
    /// The pages. In mode one to many, as if the text had one page.
    pub(crate) pages: PagesByPrice,
    /// The number of phone numbers with each warning.
    pub(crate) warnings: WarningCounts,
    /// The number of rows whose recipients have opted out.
    pub(crate) opted_out: u64,
    /// The rows that the application's limits refuse.
    pub(crate) limited: LimitedRows,
    pub(crate) international: Option<Number>,
    /// The outcome that the first reserved number in the file stands for.
    pub(crate) reserved_outcome: Option<Reason>,
}

impl RowCount {
    fn add(&mut self, row: &BulkRow, prices: &PricesInForce, country_code: &str, kind: KeyKind) {
        self.rows += 1;
        let pages = row.message.as_ref().map_or(1, |message| message.pages() as u64);
        let number = (row.number.kind(), row.number.digits());
        self.pages.add(prices, number, pages);
        self.warnings.add(&row.number, country_code);
        if self.international.is_none() && row.number.kind() == Kind::International {
            self.international = Some(row.number.clone());
        }
        self.reserved_outcome =
            self.reserved_outcome.or_else(|| reserved_outcome(&row.number, kind));
    }
}

/// A file that is being uploaded.
pub struct Upload {
    service: Service,
    kind: KeyKind,
    mode: BulkMode,
    parser: Option<BulkParser>,
    bytes_left: u64,
    /// The digest of the file's bytes, if the answer is to be kept.
    digest: Option<Sha256>,
    count: RowCount,
    /// The prices in force when the upload began. They are used to count its pages.
    prices: Arc<PricesInForce>,
    country_code: String,
    /// The numbers that have opted out, as of the beginning of the upload.
    opted_out: OptedOutNumbers,
    /// The application's limits, as of the beginning of the upload.
    limits: Arc<SendLimits>,
    /// Where the rows go. `None` if the request repeats one that was accepted before. Such a file
    /// takes only the memory of one row, so there may be as many of these uploads as connections.
    storing: Option<Storing>,
}

/// The rows of a file on their way to its spool.
struct Storing {
    chunks: ChunkWriter,
    /// Chunks that aren't in the spool yet.
    written: Vec<u8>,
    writer: SpoolWriter,
    spool: Spool,
}

/// A file in its spool on disk. All its rows are valid.
pub struct Spooled {
    pub(crate) mode: BulkMode,
    pub(crate) count: RowCount,
    /// The prices by which the pages were counted.
    pub(crate) prices: Arc<PricesInForce>,
    pub(crate) digest: Option<Vec<u8>>,
    /// `None` if the request repeats one that was accepted before.
    pub(crate) spool: Option<Spool>,
}

impl Spooled {
    pub const fn rows(&self) -> u64 {
        self.count.rows
    }
}

/// Why an upload ended without a spooled file.
#[derive(Debug)]
pub enum UploadError {
    /// The file has bad rows.
    Bad(BadFile),
    /// The file has more than `limit` bytes or rows. `of` is the unit.
    TooLarge { limit: u64, of: &'static str },
    /// Another fault, such as a full disk.
    Failed(Error),
}

impl From<Error> for UploadError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Upload {
    /// Processes the next bytes of the file.
    ///
    /// # Errors
    /// `TooLarge`, `Failed`. The upload can't continue after an error.
    pub async fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), UploadError> {
        let left = self.bytes_left.checked_sub(bytes.len() as u64);
        self.bytes_left = left.ok_or_else(|| UploadError::TooLarge {
            limit: self.service.limits().bulk_bytes_max,
            of: "bytes",
        })?;
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        let Some(mut parser) = self.parser.take() else {
            return Ok(());
        };
        self.rows(|row| parser.push(bytes, &mut |found| row(found)))?
            .map_err(|_| self.too_many_rows())?;
        self.parser = Some(parser);
        match &mut self.storing {
            Some(storing) if storing.written.len() >= WRITE_BYTES => Ok(storing.flush().await?),
            _ => Ok(()),
        }
    }

    /// Calls a function that finds rows, and adds each row to its chunk.
    fn rows<T>(&mut self, find: impl FnOnce(&mut dyn FnMut(BulkRow)) -> T) -> Result<T> {
        let mut result = Ok(());
        let found = find(&mut |row| {
            self.count.add(&row, &self.prices, &self.country_code, self.kind);
            let has_opted_out = !self.opted_out.is_empty()
                && self.opted_out.has(&row.number.for_carrier(&self.country_code));
            self.count.opted_out += u64::from(has_opted_out);
            if self.limits.refuses_numbers()
                && let Some(reason) = self.limits.refuse_number(&row.number, &self.country_code)
            {
                self.count.limited.add(reason);
            }
            if let Some(storing) = &mut self.storing
                && result.is_ok()
            {
                result = storing.chunks.add(&row, &mut storing.written);
            }
        });
        result.map(|()| found)
    }

    fn too_many_rows(&self) -> UploadError {
        UploadError::TooLarge { limit: self.service.limits().bulk_rows_max, of: "rows" }
    }

    /// Ends the file. When this returns, all its rows are on disk.
    pub async fn finish(mut self) -> std::result::Result<Spooled, UploadError> {
        // An upload that failed can't end normally: the part that arrived must not count as the
        // whole file.
        let parser = self.parser.take().ok_or_else(|| {
            let why = "an upload was ended after it had failed";
            UploadError::Failed(Error::Failed(Fault::Task(why.to_owned())))
        })?;
        let finished = self.rows(|row| parser.finish(&mut |found| row(found)))?;
        finished.map_err(|error| match error {
            BulkError::Bad(bad) => UploadError::Bad(bad),
            BulkError::TooManyRows => self.too_many_rows(),
        })?;
        let spool = match self.storing {
            Some(storing) => Some(storing.finish().await?),
            None => None,
        };
        Ok(Spooled {
            mode: self.mode,
            count: self.count,
            prices: self.prices,
            digest: self.digest.map(|digest| digest.finalize().to_vec()),
            spool,
        })
    }
}

impl Storing {
    async fn flush(&mut self) -> Result<()> {
        self.writer.write(&self.written, &self.spool).await?;
        self.written.clear();
        Ok(())
    }

    async fn finish(mut self) -> Result<Spool> {
        self.chunks.end_window(&mut self.written)?;
        self.flush().await?;
        self.writer.finish().await?;
        Ok(self.spool)
    }
}
