//! Reading and dropping request bodies.

use std::time::Duration;

use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use bytes::BytesMut;
use domain::Reason;
use domain::message::PAGE_CHARS;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::answer::Failure;
use super::parameters::Parameters;

/// A character in the worst form: each byte of a four-byte one escaped, or two surrogates in JSON.
const CHARACTER_BYTES_MAX: usize = 12;
/// Room for the other parameters, also for some that are ignored.
const OTHERS_BYTES_MAX: usize = 32 * 1024;
/// How long such a body may take to arrive.
const SEND_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the rest of a refused upload is read: a client that is still writing sees a closed
/// connection instead of the answer.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// What a body is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    UrlEncoded,
    Json,
}

/// Largest body of a single send: it holds the longest message, however that is written.
const fn bytes_max(message_pages_max: usize) -> usize {
    let characters = message_pages_max.saturating_mul(PAGE_CHARS);
    let message = characters.saturating_mul(CHARACTER_BYTES_MAX);
    message.saturating_add(OTHERS_BYTES_MAX)
}

/// Reads the body's parameters into those of the query. On failure the rest of the body is dropped.
pub async fn read_parameters(
    headers: &HeaderMap,
    mut body: Incoming,
    parameters: &mut Parameters,
    message_pages_max: usize,
) -> Result<(), Failure> {
    if body.is_end_stream() {
        return Ok(());
    }
    let form = match form(headers) {
        Ok(form) => form,
        Err(reason) => {
            drop_rest(body);
            return Err(Failure::of(reason));
        }
    };
    let bytes_max = bytes_max(message_pages_max);
    let declared = body.size_hint().lower();
    let read = if declared > bytes_max as u64 {
        Err(too_large(bytes_max))
    } else {
        let reading = read(&mut body, bytes_max);
        let Ok(read) = tokio::time::timeout(SEND_BODY_TIMEOUT, reading).await else {
            // Its time is over: more of it isn't waited for, a stop included.
            return Err(Failure::of(Reason::Timeout).closing());
        };
        read
    };
    match (read, form) {
        (Ok(bytes), Form::UrlEncoded) => {
            parameters.add_form(&bytes);
            Ok(())
        }
        (Ok(bytes), Form::Json) => parameters.add_json(&bytes),
        (Err(failure), _) => {
            drop_rest(body);
            Err(failure)
        }
    }
}

async fn read(body: &mut Incoming, bytes_max: usize) -> Result<BytesMut, Failure> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // The client left or broke the framing: nobody is there to answer.
        let frame = frame.map_err(|_| Failure::unanswered())?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn too_large(bytes_max: usize) -> Failure {
    let detail = format!("The body is larger than {bytes_max} bytes.");
    Failure::with_detail(Reason::TooLarge, detail)
}

/// Reads what is left of a body for a while, in a task of its own, so that the answer can be seen.
pub fn drop_rest(mut body: Incoming) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(tokio::time::timeout(DROP_TIMEOUT, async move {
        while let Some(Ok(_)) = body.frame().await {}
    }));
}

/// The body's form by its headers.
fn form(headers: &HeaderMap) -> Result<Form, Reason> {
    media_type(content_type(headers)?).ok_or(Reason::UnsupportedMediaType)
}

/// The content type of a body that isn't compressed.
pub fn content_type(headers: &HeaderMap) -> Result<&str, Reason> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(Reason::UnsupportedMediaType);
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    match (types.next().map(HeaderValue::to_str), types.next()) {
        (Some(Ok(value)), None) => Ok(value),
        _ => Err(Reason::UnsupportedMediaType),
    }
}

fn media_type(value: &str) -> Option<Form> {
    if is_text(value, "application/x-www-form-urlencoded") {
        Some(Form::UrlEncoded)
    } else if is_text(value, "application/json") {
        Some(Form::Json)
    } else {
        None
    }
}

/// Whether a content type is this one, in UTF-8.
pub fn is_text(value: &str, wanted: &str) -> bool {
    is(value, wanted)
        && value
            .split(';')
            .skip(1)
            .all(|parameter| match parameter.trim().split_once('=') {
                Some((name, charset)) if name.eq_ignore_ascii_case("charset") => {
                    let charset = charset.trim_matches('"');
                    charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
                }
                _ => true,
            })
}

/// Whether a content type is this one, whatever its parameters.
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
            (
                "application/x-www-form-urlencoded;charset=utf-8",
                Some(Form::UrlEncoded),
            ),
            (
                "application/x-www-form-urlencoded; charset=iso-8859-1",
                None,
            ),
            ("multipart/form-data; boundary=x", None),
            ("text/plain", None),
            ("", None),
        ] {
            assert_eq!(media_type(value), form, "{value}");
        }
    }
}
