//! The body of a single send.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use domain::message::PAGE_CHARS;
use domain::{BulkWriting, Reason};
use futures_util::stream;
use hyper::body::Body as _;
use multer::Multipart;

use super::answer::Failure;
use super::frames::{Allowed, Frames, drop_rest};
use super::json_body;
use super::multipart::{self, PARTS_MAX};
use super::parameters::Parameters;

/// The most bytes that one character can take: a four-byte character with each byte
/// percent-encoded, or two escaped surrogates in JSON.
const CHARACTER_BYTES_MAX: usize = 12;
/// Space for the other parameters.
const OTHERS_BYTES_MAX: usize = 32 * 1024;
/// The time limit for receiving a body.
const SEND_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The accepted content types of a single send, for error messages.
const ACCEPTED: &str = "application/x-www-form-urlencoded, multipart/form-data or application/json";

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    UrlEncoded,
    Json,
    /// Holds the content type, which contains the boundary.
    Multipart(&'a str),
}

/// The size limit for the body of a single send. The longest message fits in any encoding.
const fn bytes_max(message_pages_max: usize) -> usize {
    let characters = message_pages_max.saturating_mul(PAGE_CHARS);
    let message = characters.saturating_mul(CHARACTER_BYTES_MAX);
    message.saturating_add(OTHERS_BYTES_MAX)
}

/// Adds the body's parameters to those of the query. On failure, drops the rest of the body.
pub async fn read_parameters(
    headers: &HeaderMap,
    body: Body,
    parameters: &mut Parameters,
    message_pages_max: usize,
) -> Result<(), Failure> {
    if body.is_end_stream() {
        return Ok(());
    }
    let Some(form) = form(headers) else {
        drop_rest(body);
        return Err(unsupported(ACCEPTED));
    };
    let allowed = Allowed {
        bytes_max: bytes_max(message_pages_max) as u64,
        too_large: |bytes_max| format!("The body is larger than {bytes_max} bytes."),
        timeout: |_, elapsed| SEND_BODY_TIMEOUT.saturating_sub(elapsed),
    };
    let mut frames = Frames::new(body, allowed)?;
    let mut bytes = BytesMut::new();
    while let Some(piece) = frames.next().await? {
        bytes.extend_from_slice(&piece);
    }
    match form {
        Form::UrlEncoded => {
            parameters.add_form(&bytes);
            Ok(())
        }
        Form::Json => {
            for (name, given) in json_body::members(&bytes)? {
                parameters.add(name.as_deref(), given);
            }
            Ok(())
        }
        Form::Multipart(content_type) => add_parts(parameters, content_type, bytes.freeze()).await,
    }
}

/// Adds the parts of a body that is completely in memory.
async fn add_parts(
    parameters: &mut Parameters,
    content_type: &str,
    body: Bytes,
) -> Result<(), Failure> {
    let boundary = multipart::boundary(content_type)?;
    let pieces = stream::iter([Ok::<_, Infallible>(body)]);
    let mut parts = Multipart::new(pieces, boundary);
    for _ in 0..=PARTS_MAX {
        let part = parts.next_field().await.map_err(|error| multipart::failure(&error))?;
        let Some(part) = part else {
            return Ok(());
        };
        let name = multipart::name(&part)?;
        let value = part.bytes().await.map_err(|error| multipart::failure(&error))?;
        parameters.add_bytes(name.as_deref(), value.into(), false, BulkWriting::Plain);
    }
    Err(multipart::too_many_parts())
}

/// Returns the encoding of an uncompressed body. Returns `None` if the content type isn't
/// supported, or if the request doesn't have exactly one.
pub fn form(headers: &HeaderMap) -> Option<Form<'_>> {
    if headers.contains_key(CONTENT_ENCODING) {
        return None;
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (Some(value), None) => media_type(value.to_str().ok()?),
        _ => None,
    }
}

/// Refuses a body of an unsupported type. `accepted` lists the supported types.
pub fn unsupported(accepted: &str) -> Failure {
    let detail = format!(
        "This content type isn't supported here; send {accepted}, in UTF-8 and without \
         Content-Encoding."
    );
    Failure::with_detail(Reason::UnsupportedMediaType, detail)
}

fn media_type(value: &str) -> Option<Form<'_>> {
    if is_text(value, "application/x-www-form-urlencoded") {
        Some(Form::UrlEncoded)
    } else if is_text(value, "application/json") {
        Some(Form::Json)
    } else if is(value, "multipart/form-data") {
        Some(Form::Multipart(value))
    } else {
        None
    }
}

/// Returns true if the content type is `wanted` and its charset, if any, is UTF-8.
fn is_text(value: &str, wanted: &str) -> bool {
    is(value, wanted)
        && value.split(';').skip(1).all(|parameter| match parameter.trim().split_once('=') {
            Some((name, charset)) if name.eq_ignore_ascii_case("charset") => {
                let charset = charset.trim_matches('"');
                charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
            }
            _ => true,
        })
}

/// Returns true if the content type is `wanted`, whatever its parameters.
pub fn is(value: &str, wanted: &str) -> bool {
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_by_their_type() {
        for (value, form) in [
            ("application/json", Some(Form::Json)),
            ("Application/JSON; Charset=\"UTF-8\"", Some(Form::Json)),
            ("application/x-www-form-urlencoded;charset=utf-8", Some(Form::UrlEncoded)),
            ("application/x-www-form-urlencoded; charset=iso-8859-1", None),
            (
                "multipart/form-data; boundary=x",
                Some(Form::Multipart("multipart/form-data; boundary=x")),
            ),
            ("multipart/mixed; boundary=x", None),
            ("text/plain", None),
            ("", None),
        ] {
            assert_eq!(media_type(value), form, "{value}");
        }
    }
}
