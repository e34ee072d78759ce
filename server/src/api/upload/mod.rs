//! Reads the body of an upload, which may be larger than memory.

mod fields;
mod frames;
mod multipart;
mod url_encoded;

use axum::body::Body;
use axum::http::HeaderMap;
use domain::BulkWriting;
use hyper::body::Body as _;

use super::answer::Failure;
use super::body::{self, Form};

pub use fields::{Fields, File};
use frames::Frames;
use url_encoded::{Decoder, Event};

/// Bytes of a URL-encoded form per byte that it stands for, at most.
const ESCAPED_BYTES: u64 = 3;
/// Room for the small parameters, and for what stands around the parts.
const OTHERS_BYTES_MAX: u64 = 1024 * 1024;

/// What an upload may be written in.
const ACCEPTED: &str = "multipart/form-data or application/x-www-form-urlencoded";

/// Reads the parameters of query and body. On failure the rest of the body is dropped.
pub async fn read(
    headers: &HeaderMap,
    query: Option<&str>,
    body: Body,
    file_bytes_max: u64,
    fields: &mut Fields<'_>,
) -> Result<(), Failure> {
    // First, so that a refusal of the body knows the request by its parameters; but its own faults
    // come after.
    let queried = url_encoded_text(query.unwrap_or_default().as_bytes(), fields).await;
    // Whatever comes of it, the frames care for the rest of the body.
    let empty = body.is_end_stream();
    let form = body::form(headers).filter(|form| *form != Form::Json);
    let scale = match form {
        Some(Form::UrlEncoded) => ESCAPED_BYTES,
        _ => 1,
    };
    let bytes_max = file_bytes_max.saturating_add(OTHERS_BYTES_MAX);
    let frames = Frames::new(body, bytes_max.saturating_mul(scale));
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

async fn url_encoded_text(text: &[u8], fields: &mut Fields<'_>) -> Result<(), Failure> {
    let mut decoder = Decoder::default();
    hand_over(decoder.read(text), fields).await?;
    hand_over(decoder.finish(), fields).await
}

async fn url_encoded(frames: &mut Frames, fields: &mut Fields<'_>) -> Result<(), Failure> {
    let mut decoder = Decoder::default();
    while let Some(piece) = frames.next().await? {
        hand_over(decoder.read(&piece), fields).await?;
    }
    hand_over(decoder.finish(), fields).await
}

async fn hand_over(events: Vec<Event>, fields: &mut Fields<'_>) -> Result<(), Failure> {
    for event in events {
        match event {
            Event::Begin(name) => {
                fields
                    .begin(name.as_deref(), BulkWriting::UrlDecoded)
                    .await?;
            }
            Event::Data(data) => fields.data(&data).await?,
            Event::End => fields.end().await?,
        }
    }
    Ok(())
}
