//! `multipart/form-data` (RFC 7578). The `multer` crate finds the parts; what it would keep in
//! memory without bound is bounded here.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use domain::{BulkWriting, Reason};
use futures_util::Stream;
use futures_util::stream::try_unfold;
use multer::{Field, Multipart};

use super::fields::Fields;
use super::frames::Frames;
use crate::api::answer::Failure;

/// Parts of a body: more than there are parameters, so that some may be ignored. Each may leave a
/// piece of the body in multer's memory.
const PARTS_MAX: usize = 32;
/// Bytes before a part's content, in multer's memory: its headers, and what stands before the first
/// part.
const PART_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Hands every part over to the fields. Names count; file names and content types don't.
pub async fn read(
    content_type: &str,
    frames: &mut Frames,
    fields: &mut Fields<'_>,
) -> Result<(), Failure> {
    let boundary = multer::parse_boundary(content_type)
        .ok()
        .filter(|boundary| !boundary.is_empty())
        .ok_or_else(|| unreadable("The content type names no boundary."))?;
    read_parts(boundary, frames, fields).await?;
    // What stands after the last boundary is nobody's; but a request that never came whole isn't
    // done.
    while frames.next().await?.is_some() {}
    Ok(())
}

async fn read_parts(
    boundary: String,
    frames: &mut Frames,
    fields: &mut Fields<'_>,
) -> Result<(), Failure> {
    let unparsed = AtomicUsize::new(0);
    let mut parts = Multipart::new(pieces(frames, &unparsed), boundary);
    for _ in 0..=PARTS_MAX {
        unparsed.store(0, Ordering::Relaxed);
        let Some(mut part) = parts.next_field().await.map_err(failure)? else {
            return Ok(());
        };
        refuse_encoded(&part)?;
        fields.begin(part.name(), BulkWriting::Plain).await?;
        loop {
            unparsed.store(0, Ordering::Relaxed);
            let Some(data) = part.chunk().await.map_err(failure)? else {
                break;
            };
            fields.data(&data).await?;
        }
        fields.end().await?;
    }
    Err(unreadable("The body has too many parts."))
}

/// The body, one piece at a time: multer takes in whatever is ready before it looks at any of it.
fn pieces<'a>(
    frames: &'a mut Frames,
    unparsed: &'a AtomicUsize,
) -> impl Stream<Item = Result<Bytes, Stopped>> + Send + 'a {
    try_unfold(frames, move |frames| async move {
        tokio::task::yield_now().await;
        if unparsed.load(Ordering::Relaxed) > PART_HEAD_BYTES_MAX {
            return Err(Stopped(unreadable(
                "The boundary between the parts wasn't found, or a part's headers are too long.",
            )));
        }
        let Some(piece) = frames.next().await.map_err(Stopped)? else {
            return Ok(None);
        };
        unparsed.fetch_add(piece.len(), Ordering::Relaxed);
        Ok(Some((piece, frames)))
    })
}

/// RFC 7578 §4.7 has done away with encodings; taking the content as it is would send what nobody
/// wrote.
fn refuse_encoded(part: &Field<'_>) -> Result<(), Failure> {
    let Some(encoding) = part.headers().get("content-transfer-encoding") else {
        return Ok(());
    };
    let plain = ["7bit", "8bit", "binary"];
    let is_plain = |encoding: &str| {
        plain
            .iter()
            .any(|plain| plain.eq_ignore_ascii_case(encoding))
    };
    if encoding.to_str().is_ok_and(|text| is_plain(text.trim())) {
        return Ok(());
    }
    Err(Failure::with_detail(
        Reason::UnsupportedMediaType,
        "A part has a Content-Transfer-Encoding; send its content as it is.",
    ))
}

fn unreadable(detail: &'static str) -> Failure {
    Failure::with_detail(Reason::InvalidParameter, detail)
}

/// Why the body isn't read on, on its way through multer.
#[derive(Debug, thiserror::Error)]
#[error("the body isn't read on")]
struct Stopped(Failure);

fn failure(error: multer::Error) -> Failure {
    match error {
        multer::Error::StreamReadFailed(stopped) => match stopped.downcast::<Stopped>() {
            Ok(stopped) => stopped.0,
            Err(_) => Failure::of(Reason::Internal),
        },
        multer::Error::IncompleteStream | multer::Error::IncompleteFieldData { .. } => unreadable(
            "The body doesn't end with the closing boundary; it is cut short, or the boundary is wrong.",
        ),
        _ => unreadable("The body isn't multipart/form-data as its content type says."),
    }
}
