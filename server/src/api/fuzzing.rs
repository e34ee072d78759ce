//! Access to the API's parsers for the crate `fuzz`.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::FromRequestParts as _;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Request};
use domain::{BadFile, BulkMode, BulkWriting};
use service::{UploadError, UploadPermit};

use super::address::Address;
use super::answer::Failure;
use super::form;
use super::upload::{self, Fields, File, Files};

/// The longest small parameter of an upload, in characters.
const CHARACTERS_MAX: usize = 320;
/// The largest file of an upload, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The content of an upload, or its refusal.
pub type Uploaded = Result<UploadedFields, String>;

/// The parameters of an upload.
#[derive(Debug, PartialEq, Eq)]
pub struct UploadedFields {
    pub file: Option<(BulkMode, Result<Vec<u8>, BadFile>)>,
    /// The text of a small parameter, or the refusal of it, for each known name.
    pub small: Vec<(&'static str, Result<Option<String>, String>)>,
    /// The refusal of a parameter that isn't known.
    pub unknown: Option<String>,
}

/// Returns the name-value pairs of a query or form.
pub fn pairs(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    form::raw_pairs(text).collect()
}

/// Reads an upload whose body arrives in pieces.
pub async fn upload(content_type: &[u8], query: Option<&str>, pieces: Vec<Vec<u8>>) -> Uploaded {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    let body = if pieces.is_empty() {
        Body::empty()
    } else {
        let pieces = pieces.into_iter().map(Ok::<_, Infallible>);
        Body::from_stream(futures_util::stream::iter(pieces))
    };
    let mut fields = Fields::new(&InMemory, CHARACTERS_MAX);
    let read = upload::read(&headers, query, body, FILE_BYTES_MAX, &mut fields).await;
    read.map_err(|failure| shown(&failure))?;
    let (file, small) = fields.finish();
    let text = |name: &&'static str| {
        let text = small.optional(name, domain::Reason::InvalidParameter);
        (*name, text.map(|text| text.map(str::to_owned)).map_err(|failure| shown(&failure)))
    };
    Ok(UploadedFields {
        file: file.map(|File { mode, rows }| (mode, rows)),
        small: InMemory::KNOWN.iter().map(text).collect(),
        unknown: small.refuse_unknown().err().map(|failure| shown(&failure)),
    })
}

/// Returns the key and the ID of a request, if its path and its header can exist.
pub async fn key_and_id(
    path: &str,
    authorization: Option<&str>,
) -> Option<(Option<String>, Option<String>)> {
    let mut request = Request::builder().uri(path);
    if let Some(value) = authorization {
        request = request.header(AUTHORIZATION, value);
    }
    let (mut parts, ()) = request.body(()).ok()?.into_parts();
    let Ok(address) = Address::from_request_parts(&mut parts, &()).await;
    Some((address.key.as_deref().map(str::to_owned), address.id))
}

fn shown(failure: &Failure) -> String {
    format!("{failure:?}")
}

/// Keeps files in memory, without checking their rows.
struct InMemory;

impl Files for InMemory {
    type Open = Vec<u8>;
    type Rows = Vec<u8>;

    const KNOWN: &'static [&'static str] = UploadPermit::KNOWN;
    const FILES: &'static [(&'static str, BulkMode)] = UploadPermit::FILES;

    async fn open(&self, _: BulkMode, _: BulkWriting) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }

    async fn write(file: &mut Vec<u8>, data: &[u8]) -> Result<(), UploadError> {
        file.extend_from_slice(data);
        Ok(())
    }

    async fn finish(file: Vec<u8>) -> Result<Vec<u8>, UploadError> {
        Ok(file)
    }
}
