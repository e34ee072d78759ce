//! Uploads on their way in: parsed, counted and spooled as they come, in constant memory.

pub(crate) mod acceptance;
pub(crate) mod batches;
pub(crate) mod expansion;
pub(crate) mod places;
pub(crate) mod spool_folder;
pub(crate) mod spool_format;
pub(crate) mod spool_store;

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::admission::idempotency::IdempotencyKey;
use crate::admission::{KeyAccess, SendAccess};
use crate::error::{Error, Fault, Result};
use crate::store::gate::Priority;
use crate::store::shared::{self, NodeKey};
use crate::uploads::places::{Own, Place, Places};
use crate::uploads::spool_format::ChunkWriter;
use crate::uploads::spool_store::{Spool, SpoolWriter};
use crate::{Service, run_detached};
use domain::admission::reserved_outcome;
use domain::{
    ApiKey, ApplicationStatus, BadFile, BulkError, BulkLimits, BulkMode, BulkParser, BulkRow,
    BulkWriting, KeyKind, PagesByPrice, PricesInForce, Reason, WarningCounts,
};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

/// How many bytes of chunks are collected before they are written to the spool.
const WRITE_BYTES: usize = 256 * 1024;

/// How long to wait before trying again to end an upload in the database.
const RETRY: Duration = Duration::from_secs(1);

/// Which uploads are under way in this process.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<UnderWay>);

#[derive(Default)]
struct UnderWay {
    places: Places,
    keys: HashSet<(KeyAccess, IdempotencyKey)>,
}

/// The right to upload a file; holds a place until it is dropped.
pub struct UploadPermit {
    pub(crate) service: Service,
    pub(crate) key: ApiKey,
    pub(crate) access: SendAccess,
    pub(crate) idempotency: Option<IdempotencyKey>,
    /// A repetition of a request that was accepted before has none: its file is only compared.
    place: Option<Place>,
    /// The upload as other processes see it, where there are others.
    shared: Option<SharedUpload>,
}

/// An upload that other processes count until this is dropped.
struct SharedUpload {
    service: Service,
    /// The id of the upload's row; 0 once the upload was ended.
    id: AtomicI64,
}

impl SharedUpload {
    /// Ends the upload in a task of its own, since whoever waits for this may leave meanwhile.
    fn end(&self) -> Option<JoinHandle<()>> {
        let id = self.id.swap(0, Ordering::Relaxed);
        let service = self.service.clone();
        (id != 0).then(|| tokio::spawn(async move { service.end_upload(id).await }))
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

    /// The access of the key, and whether the idempotency key is known.
    pub const fn access(&self) -> &SendAccess {
        &self.access
    }

    /// Ends the upload for the other processes, before the request is answered: the same request
    /// may be repeated at once.
    pub async fn end(&self) {
        if let Some(ending) = self.shared.as_ref().and_then(SharedUpload::end)
            && let Err(error) = ending.await
        {
            tracing::error!(%error, "ending an upload failed");
        }
    }

    /// Begins an upload of a file whose rows are written in this way. The spool is removed when the
    /// upload is dropped.
    ///
    /// # Errors
    /// When the spool can't be made.
    pub async fn upload(&self, mode: BulkMode, writing: BulkWriting) -> Result<Upload> {
        let limits = self.service.limits();
        let country_code = self.service.inner.router.network.country_code.clone();
        let storing = match self.place {
            Some(_) => Some(self.storing().await?),
            None => None,
        };
        let prices = self.service.prices_now().await?;
        let parser_limits = BulkLimits {
            rows_max: limits.bulk_rows_max,
            message_pages_max: limits.message_pages_max,
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
            storing,
        })
    }

    async fn storing(&self) -> Result<Storing> {
        let shard = self.service.shard_of(self.access.access.reference).await?;
        let (writer, spool) = self.service.make_spool(shard).await?;
        Ok(Storing {
            chunks: ChunkWriter::default(),
            written: Vec::new(),
            writer,
            spool,
        })
    }
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        let Some(place) = &self.place else {
            return;
        };
        let mut under_way = self.service.inner.uploads.lock();
        under_way.places.give_back(place);
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

impl Service {
    /// Lets a client upload a file, judged as [`Service::authorize_send`] does.
    ///
    /// # Errors
    /// The first reason that applies; `IdempotencyInProgress`; unless the request was accepted
    /// before, `RateLimited` when the application or the key has as many uploads under way as it
    /// may, and `Unavailable` when all together have.
    pub async fn begin_bulk(
        &self,
        key: Option<&str>,
        idempotency: Option<IdempotencyKey>,
    ) -> std::result::Result<UploadPermit, Reason> {
        let (row, key, access) = self.opened(key).await?;
        if let Some(key) = &idempotency
            && self
                .inner
                .uploads
                .lock()
                .keys
                .contains(&(access, key.clone()))
        {
            return Err(Reason::IdempotencyInProgress);
        }
        let access = self
            .check_admission(&row, access, idempotency.as_ref())
            .await?;
        let place = (!access.known).then(|| Place {
            access: access.access,
            is_active: row.status == ApplicationStatus::Active,
        });
        let mut permit = UploadPermit {
            service: self.clone(),
            key,
            access,
            idempotency,
            place: None,
            shared: None,
        };
        if let Some(place) = place {
            self.take_place(place, permit.idempotency.as_ref())?;
            permit.place = Some(place);
            if let Some(node) = self.inner.node.key() {
                permit.shared = Some(self.share_upload(&permit, node).await?);
            }
        }
        Ok(permit)
    }

    /// Counts an upload among those of this process.
    fn take_place(
        &self,
        place: Place,
        idempotency: Option<&IdempotencyKey>,
    ) -> std::result::Result<(), Reason> {
        let mut under_way = self.inner.uploads.lock();
        let key = idempotency.map(|key| (place.access, key.clone()));
        // Another upload may have begun while this one was judged.
        if key.as_ref().is_some_and(|key| under_way.keys.contains(key)) {
            return Err(Reason::IdempotencyInProgress);
        }
        under_way
            .places
            .take(place, self.limits().uploads_per_application)?;
        under_way.keys.extend(key);
        Ok(())
    }

    /// Counts an upload among those of all processes.
    async fn share_upload(
        &self,
        permit: &UploadPermit,
        node: NodeKey,
    ) -> std::result::Result<SharedUpload, Reason> {
        let (service, access) = (self.clone(), permit.access);
        let key = permit.idempotency.clone();
        let shared = run_detached(async move {
            let KeyAccess {
                application_id,
                kind,
                ..
            } = access.access;
            let key = key.as_ref().map(IdempotencyKey::as_str);
            let mut tx = service.store().begin().await?;
            let under_way = shared::uploads(&mut tx, application_id, kind, key).await?;
            if under_way.with_idempotency_key > 0 {
                return Ok(Err(Reason::IdempotencyInProgress));
            }
            let own = Own {
                application: under_way.of_application,
                key: under_way.of_key,
            };
            if !own.has_room(kind, service.limits().uploads_per_application) {
                return Ok(Err(Reason::RateLimited));
            }
            let id = shared::begin_upload(&mut tx, node, application_id, kind, key).await?;
            // Made before the commit, and dropped wherever this function ends without returning it:
            // a commit that wasn't answered may have stored the row, and nothing else would delete
            // it.
            let upload = SharedUpload {
                service: service.clone(),
                id: AtomicI64::new(id),
            };
            tx.commit().await?;
            Ok(Ok(upload))
        });
        shared.await.unwrap_or_else(|error| {
            tracing::error!(detail = ?error, "an upload can't be begun");
            Err(error.reason())
        })
    }

    /// Ends an upload in the database, as soon as the database can be written.
    async fn end_upload(&self, id: i64) {
        let end = async || {
            let mut tx = self.store().begin_as(Priority::Verb).await?;
            shared::end_upload(&mut tx, id).await?;
            tx.commit().await
        };
        while let Err(error) = end().await {
            tracing::warn!(detail = ?error, "an upload that ended still counts; trying again");
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
    /// Pages; in mode one to many, of a text of one page.
    pub(crate) pages: PagesByPrice,
    /// How many numbers are probably not the ones that were meant.
    pub(crate) warnings: WarningCounts,
    /// The answer that the first of the file's reserved numbers stands for.
    pub(crate) reserved_outcome: Option<Reason>,
}

impl RowCount {
    fn add(&mut self, row: &BulkRow, prices: &PricesInForce, country_code: &str, kind: KeyKind) {
        self.rows += 1;
        let pages = row
            .message
            .as_ref()
            .map_or(1, |message| message.pages() as u64);
        let number = (row.number.kind(), row.number.digits());
        self.pages.add(prices, number, pages);
        self.warnings.add(&row.number, country_code);
        self.reserved_outcome = self
            .reserved_outcome
            .or_else(|| reserved_outcome(&row.number, kind));
    }
}

/// A file that is being uploaded.
pub struct Upload {
    service: Service,
    kind: KeyKind,
    mode: BulkMode,
    parser: Option<BulkParser>,
    bytes_left: u64,
    /// The digest of the file's bytes, when an answer is to be kept for it.
    digest: Option<Sha256>,
    count: RowCount,
    /// The prices in force when the upload began, by which its pages are counted.
    prices: Arc<PricesInForce>,
    country_code: String,
    /// Where its rows go, unless it repeats a request that was accepted before. Such a file costs
    /// some memory for one row, so that there may be as many of them as there are connections.
    storing: Option<Storing>,
}

/// The rows of a file on their way into its spool.
struct Storing {
    chunks: ChunkWriter,
    /// Chunks that aren't in the spool yet.
    written: Vec<u8>,
    writer: SpoolWriter,
    spool: Spool,
}

/// A file whose rows are all valid, in its spool on disk.
pub struct Spooled {
    pub(crate) mode: BulkMode,
    pub(crate) count: RowCount,
    /// The prices by which the pages were counted.
    pub(crate) prices: Arc<PricesInForce>,
    pub(crate) digest: Option<Vec<u8>>,
    /// `None` for what repeats a request that was accepted before.
    pub(crate) spool: Option<Spool>,
}

impl Spooled {
    /// How many rows there are.
    pub const fn rows(&self) -> u64 {
        self.count.rows
    }
}

/// Why an upload ended without a spooled file.
#[derive(Debug)]
pub enum UploadError {
    /// The file has bad rows.
    Bad(BadFile),
    /// The file is larger than the limit, which is part of the error.
    TooLarge { limit: u64, of: &'static str },
    /// The machine failed.
    Failed(Error),
}

impl From<Error> for UploadError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Upload {
    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// `TooLarge`, `Failed`; the upload is over then.
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

    /// Runs a function that finds rows, and puts each row into its chunk.
    fn rows<T>(&mut self, find: impl FnOnce(&mut dyn FnMut(BulkRow)) -> T) -> Result<T> {
        let mut result = Ok(());
        let found = find(&mut |row| {
            self.count
                .add(&row, &self.prices, &self.country_code, self.kind);
            if let Some(storing) = &mut self.storing
                && result.is_ok()
            {
                result = storing.chunks.add(&row, &mut storing.written);
            }
        });
        result.map(|()| found)
    }

    fn too_many_rows(&self) -> UploadError {
        UploadError::TooLarge {
            limit: self.service.limits().bulk_rows_max,
            of: "rows",
        }
    }

    /// Ends the file: all of its rows are on disk when this returns.
    pub async fn finish(mut self) -> std::result::Result<Spooled, UploadError> {
        // An upload that failed is over, and the part of its file that came is no file.
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
