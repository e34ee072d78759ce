//! An upload as `multipart/form-data`. Limits the data that the `multer` crate would otherwise
//! buffer in memory without bound.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use domain::{BulkWriting, Reason};
use futures_util::Stream;
use futures_util::stream::try_unfold;
use multer::Multipart;

use super::fields::{Fields, Files};
use crate::api::answer::Failure;
use crate::api::frames::Frames;
use crate::api::multipart::{self, PARTS_MAX, unreadable};

/// The most bytes that multer may buffer before a part's content: the part's headers, and any text
/// before the first part.
const PART_HEAD_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of the body that multer gets at once.
const PIECE_BYTES_MAX: usize = PART_HEAD_BYTES_MAX / 2;

/// Passes every part to the fields by its name. File names and content types are ignored.
pub async fn read<F: Files>(
    content_type: &str,
    frames: &mut Frames,
    fields: &mut Fields<'_, F>,
) -> Result<(), Failure> {
    let boundary = multipart::boundary(content_type)?;
    read_parts(boundary, frames, fields).await?;
    // Text after the last boundary is ignored, but the request must arrive completely.
    while frames.next().await?.is_some() {}
    Ok(())
}

async fn read_parts<F: Files>(
    boundary: String,
    frames: &mut Frames,
    fields: &mut Fields<'_, F>,
) -> Result<(), Failure> {
    let unparsed = AtomicUsize::new(0);
    let mut parts = Multipart::new(pieces(frames, &unparsed), boundary);
    for _ in 0..=PARTS_MAX {
        unparsed.store(0, Ordering::Relaxed);
        let Some(mut part) = parts.next_field().await.map_err(failure)? else {
            return Ok(());
        };
        let name = multipart::name(&part)?;
        fields.begin(name.as_deref(), BulkWriting::Plain).await?;
        loop {
            unparsed.store(0, Ordering::Relaxed);
            let Some(data) = part.chunk().await.map_err(failure)? else {
                break;
            };
            fields.data(&data).await?;
        }
        fields.end().await?;
    }
    Err(multipart::too_many_parts())
}

/// Yields the body in small pieces, one at a time. Otherwise multer would buffer all available
/// pieces before it parses any of them. Before the first part, it buffers two at once.
fn pieces<'a>(
    frames: &'a mut Frames,
    unparsed: &'a AtomicUsize,
) -> impl Stream<Item = Result<Bytes, Stopped>> + Send + 'a {
    try_unfold((frames, Bytes::new()), move |(frames, mut rest)| async move {
        tokio::task::yield_now().await;
        if unparsed.load(Ordering::Relaxed) > PART_HEAD_BYTES_MAX {
            return Err(Stopped(unreadable(
                "The boundary between the parts wasn't found, or a part's headers are too long.",
            )));
        }
        while rest.is_empty() {
            let Some(frame) = frames.next().await.map_err(Stopped)? else {
                return Ok(None);
            };
            rest = frame;
        }
        let piece = rest.split_to(rest.len().min(PIECE_BYTES_MAX));
        unparsed.fetch_add(piece.len(), Ordering::Relaxed);
        Ok(Some((piece, (frames, rest))))
    })
}

/// Carries the failure of a stopped read through multer.
#[derive(Debug, thiserror::Error)]
#[error("the upload stopped before the end of the body")]
struct Stopped(Failure);

fn failure(error: multer::Error) -> Failure {
    match error {
        multer::Error::StreamReadFailed(stopped) => match stopped.downcast::<Stopped>() {
            Ok(stopped) => stopped.0,
            Err(_) => Failure::of(Reason::Internal),
        },
        error => multipart::failure(&error),
    }
}
