//! Spools, which hold the rows of uploads until they are messages. With SQLite, a spool is a file
//! of the only serving process. With PostgreSQL, its chunks are rows of a table that all processes
//! can read.

use std::fs::File;

use domain::ids::Shard;
use tokio::io::AsyncWriteExt as _;

use crate::uploads::spool_folder::SpoolFolder;
use crate::uploads::spool_format::{
    CHUNK_ROWS_MAX, Chunk, ChunkError, chunks, parse_chunk, read_chunk,
};
use crate::{Messages, Service, run_blocking};
use store::error::{Error, Fault, Result};
use store::gate::Priority;
use store::planted::is_planted;
use store::shared;

/// The most rows that one transaction expands while no other transaction waits to write.
pub(crate) const ROWS_MAX: i64 = 4000;
/// The most chunks that are read from the table at a time.
const CHUNKS_MAX: i64 = ROWS_MAX / CHUNK_ROWS_MAX as i64;

/// Where spools are stored. This is chosen when the service is opened.
pub(crate) enum Spools {
    /// In files of the only process that serves a SQLite database.
    Folder(SpoolFolder),
    /// In a table that all processes of a PostgreSQL database read.
    Table,
}

/// Writes a new spool.
pub(crate) enum SpoolWriter {
    File(tokio::fs::File, SpoolFolder),
    /// The number of bytes written so far.
    Table(i64),
}

/// A spool that is removed when this is dropped, unless [`Spool::keep`] was called.
pub(crate) struct Spool {
    pub(crate) service: Service,
    pub(crate) name: String,
    /// The shard of the application that uploads.
    shard: Shard,
    keep: bool,
}

impl Spool {
    /// Keeps the spool for its batch. Returns the spool's name.
    pub(crate) fn keep(mut self) -> String {
        self.keep = true;
        self.name.clone()
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if !self.keep {
            self.service.messages().remove_spool(self.shard, &self.name);
        }
    }
}

impl Messages<'_> {
    pub(crate) async fn make_spool(&self, shard: Shard) -> Result<(SpoolWriter, Spool)> {
        let service = self.0.clone();
        let random = service.entropy().bytes::<16>();
        let spool = move |name| Spool { service, name, shard, keep: false };
        let Spools::Folder(folder) = &self.inner.spools else {
            return Ok((SpoolWriter::Table(0), spool(hex::encode(random))));
        };
        let (folder, made_in) = (folder.clone(), folder.clone());
        // The file and the value that removes it are created together, because the caller's future
        // may be dropped meanwhile.
        let making = move || {
            let (name, file) = made_in.create(random)?;
            Ok((file, spool(name)))
        };
        let (file, spool): (File, Spool) = blocking(making).await?;
        Ok((SpoolWriter::File(tokio::fs::File::from_std(file), folder), spool))
    }

    /// Reads the chunk of a spool that starts at an offset. With PostgreSQL, also reads the
    /// following chunks and joins them to it, up to [`ROWS_MAX`] rows in all.
    pub(crate) async fn spooled_chunk(
        &self,
        shard: Shard,
        name: &str,
        offset: i64,
    ) -> Result<std::result::Result<Chunk, ChunkError>> {
        let Spools::Folder(folder) = &self.inner.spools else {
            let mut conn = self.store().read_at(shard).await?;
            let found = shared::chunks(&mut conn, name, offset, CHUNKS_MAX).await?;
            return Ok(joined(found, offset));
        };
        let path = folder.path(name);
        run_blocking(move || read_chunk(&path, offset)).await
    }

    /// Removes a spool that isn't needed any more. If that fails, a sweep removes the rest later.
    pub(crate) fn remove_spool(&self, shard: Shard, name: &str) {
        if let Spools::Folder(folder) = &self.inner.spools {
            return folder.remove(name);
        }
        let (service, name) = (self.0.clone(), name.to_owned());
        tokio::spawn(async move {
            let removed = async {
                let mut tx = service.store().begin_at(shard, Priority::Bulk).await?;
                shared::remove_spool(&mut tx, &name).await?;
                tx.commit().await
            };
            if let Err(error) = removed.await {
                tracing::warn!(name, detail = ?error, "the rows of an upload can't be removed yet");
            }
        });
    }
}

impl SpoolWriter {
    /// Writes a chain of whole chunks.
    pub(crate) async fn write(&mut self, chain: &[u8], spool: &Spool) -> Result<()> {
        match self {
            Self::File(file, _) => {
                file.write_all(chain).await.map_err(file_error)?;
                // The write continues on another thread. Only a flush reports its failure, a sync
                // doesn't.
                file.flush().await.map_err(file_error)
            }
            Self::Table(written) => {
                let service = &spool.service;
                let mut tx = service.store().begin_at(spool.shard, Priority::Bulk).await?;
                for chunk in chunks(chain) {
                    shared::insert_chunk(&mut tx, &spool.name, *written, chunk, service.now())
                        .await?;
                    *written += chunk.len().cast_signed() as i64;
                }
                tx.commit().await
            }
        }
    }

    /// Ends the spool. When this returns, all written bytes are on disk.
    pub(crate) async fn finish(self) -> Result<()> {
        let Self::File(file, folder) = self else {
            return Ok(());
        };
        if !is_planted("rows-not-synced") {
            file.sync_all().await.map_err(file_error)?;
        }
        if is_planted("name-of-rows-not-synced") {
            return Ok(());
        }
        blocking(move || folder.sync()).await
    }
}

/// Joins the chunks that follow each other from an offset on. Stops before a chunk that can't be
/// read. The call that starts with that chunk reports the error.
fn joined(found: Vec<(i64, Vec<u8>)>, offset: i64) -> std::result::Result<Chunk, ChunkError> {
    let mut found = found.into_iter();
    let first = found.next().filter(|(start, _)| *start == offset);
    let Some((_, bytes)) = first else {
        return Err(ChunkError::Lost("the chunk is missing".to_owned()));
    };
    let mut chunk = parse_chunk(bytes, offset)?;
    for (start, bytes) in found {
        match parse_chunk(bytes, start) {
            Ok(next) if start == chunk.end => chunk.append(&next),
            _ => break,
        }
    }
    Ok(chunk)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    run_blocking(work).await?.map_err(file_error)
}

fn file_error(error: std::io::Error) -> Error {
    Error::Failed(Fault::File(error))
}
