//! Reads the body of an upload, which may be larger than memory.

mod fields;
mod multipart;
mod url_encoded;

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use domain::BulkWriting;
use hyper::body::Body as _;

use super::answer::Failure;
use super::body::{self, Form};
use super::frames::{Allowed, Frames};

pub use fields::{Fields, File, Files};
use url_encoded::{Decoder, Event};

/// The most bytes of a URL-encoded form per decoded byte.
const ESCAPED_BYTES: u64 = 3;
/// Space for the small parameters and for the boundaries and headers of parts.
const OTHERS_BYTES_MAX: u64 = 1024 * 1024;

/// The timeout for the next bytes.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for a small body. A client that sends slowly can occupy an upload slot of the
/// application, a file and a connection for this long.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// The slowest transfer rate for a large file. The time limit grows by a second for this many
/// bytes.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;

/// The accepted content types of an upload, for error messages.
const ACCEPTED: &str = "multipart/form-data or application/x-www-form-urlencoded";
const TOO_LARGE: &str = "The body is larger than the largest file needs; upload the file in parts.";

/// Reads the parameters of query and body. On failure, drops the rest of the body.
pub async fn read<F: Files>(
    headers: &HeaderMap,
    query: Option<&str>,
    body: Body,
    file_bytes_max: u64,
    fields: &mut Fields<'_, F>,
) -> Result<(), Failure> {
    // The query is read first, so that a refusal of the body can contain the requestid. Errors in
    // the query are still reported after those of the body's type and size.
    let queried = url_encoded_text(query.unwrap_or_default().as_bytes(), fields).await;
    // `Frames` is created before any refusal, because it reads the rest of a refused body.
    let empty = body.is_end_stream();
    let form = body::form(headers).filter(|form| *form != Form::Json);
    let scale = match form {
        Some(Form::UrlEncoded) => ESCAPED_BYTES,
        _ => 1,
    };
    let bytes_max = file_bytes_max.saturating_add(OTHERS_BYTES_MAX);
    let allowed = Allowed {
        bytes_max: bytes_max.saturating_mul(scale),
        too_large: |_| TOO_LARGE.to_owned(),
        timeout,
    };
    let frames = Frames::new(body, allowed);
    if !empty && form.is_none() {
        return Err(body::unsupported(ACCEPTED));
    }
    let mut frames = frames?;
    queried?;
    match form {
        _ if empty => Ok(()),
        Some(Form::Multipart(content_type)) => {
            multipart::read(content_type, &mut frames, fields).await
        }
        _ => url_encoded(&mut frames, fields).await,
    }
}

async fn url_encoded_text<F: Files>(
    text: &[u8],
    fields: &mut Fields<'_, F>,
) -> Result<(), Failure> {
    let mut decoder = Decoder::default();
    submission(decoder.read(text), fields).await?;
    submission(decoder.finish(), fields).await
}

async fn url_encoded<F: Files>(
    frames: &mut Frames,
    fields: &mut Fields<'_, F>,
) -> Result<(), Failure> {
    let mut decoder = Decoder::default();
    while let Some(piece) = frames.next().await? {
        submission(decoder.read(&piece), fields).await?;
    }
    submission(decoder.finish(), fields).await
}

async fn submission<F: Files>(
    events: Vec<Event>,
    fields: &mut Fields<'_, F>,
) -> Result<(), Failure> {
    for event in events {
        match event {
            Event::Begin(name) => {
                fields.begin(name.as_deref(), BulkWriting::UrlDecoded).await?;
            }
            Event::Data(data) => fields.data(&data).await?,
            Event::End => fields.end().await?,
        }
    }
    Ok(())
}

/// Returns the timeout for the next bytes, given the bytes received and the time elapsed. Bytes
/// that have already arrived are read even with a timeout of 0, because then the client wasn't
/// slow.
fn timeout(received: u64, elapsed: Duration) -> Duration {
    let longer = Duration::from_millis(received.saturating_mul(1000) / BYTES_PER_SECOND_MIN);
    let left = (BODY_TIMEOUT + longer).saturating_sub(elapsed);
    left.min(FRAME_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_minute_and_a_second_per_64_kib() {
        let (s, kib, mib) = (Duration::from_secs, 1024, 1024 * 1024);
        for (received, elapsed, left) in [
            (0, s(0), s(30)),
            (0, s(30), s(30)),
            (0, s(59), s(1)),
            (1, s(60), s(0)),
            (1, s(3600), s(0)),
            (64 * kib, s(60), s(1)),
            (96 * kib, s(61), Duration::from_millis(500)),
            (256 * mib, s(60 + 4096 - 31), s(30)),
            (256 * mib, s(60 + 4096 - 29), s(29)),
            (256 * mib, s(60 + 4096), s(0)),
        ] {
            assert_eq!(timeout(received, elapsed), left, "{received} {elapsed:?}");
        }
        assert_eq!(timeout(u64::MAX, s(1)), s(30));
    }
}
