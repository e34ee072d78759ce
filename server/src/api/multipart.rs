//! `multipart/form-data` (RFC 7578). The `multer` crate splits the body into parts. This module
//! parses their names itself: multer mistakes a `name=` inside a quoted file name for the part's
//! name, and doesn't recognise `Name=`.

use axum::http::header::CONTENT_DISPOSITION;
use domain::Reason;
use multer::Field;

use super::answer::Failure;

/// The maximum number of parts. It is larger than the number of parameters, since some may be
/// misspelt. Each part may leave a piece of the body in multer's memory.
pub const PARTS_MAX: usize = 32;

/// Returns the boundary in a content type.
///
/// # Errors
/// `invalid_parameter` if there is none.
pub fn boundary(content_type: &str) -> Result<String, Failure> {
    multer::parse_boundary(content_type)
        .ok()
        .filter(|boundary| !boundary.is_empty())
        .ok_or_else(|| unreadable("The content type has no boundary."))
}

/// Returns the parameter name of a part. Returns `None` if the part has no name, or if the name
/// isn't text.
///
/// # Errors
/// `unsupported_media_type` if the part's content is encoded; `invalid_parameter` if it has two
/// names.
pub fn name(part: &Field<'_>) -> Result<Option<String>, Failure> {
    if is_encoded(part) {
        return Err(Failure::with_detail(
            Reason::UnsupportedMediaType,
            "A part has a Content-Transfer-Encoding; send its content as it is.",
        ));
    }
    let Some(value) = part.headers().get(CONTENT_DISPOSITION) else {
        return Ok(None);
    };
    let mut names = parameters(value.as_bytes())
        .into_iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"name"))
        .map(|(_, value)| value);
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(String::from_utf8(name).ok()),
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(unreadable("A part has two names; give each part one.")),
    }
}

/// Returns the parameters of a header field (RFC 9110 §5.6.6). In quotes, `\"` is a quote. Other
/// backslashes are literal, because file names contain them.
fn parameters(field: &[u8]) -> Vec<(&[u8], Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = field;
    while let Some(start) = rest.iter().position(|&byte| byte == b';') {
        rest = &rest[start + 1..];
        let end = rest.iter().position(|byte| b"=;".contains(byte));
        let Some(end) = end.filter(|&end| rest[end] == b'=') else {
            continue;
        };
        let name = rest[..end].trim_ascii();
        let (value, after) = value(rest[end + 1..].trim_ascii_start());
        found.push((name, value));
        rest = after;
    }
    found
}

/// Returns the value at the start of a text, and the rest.
fn value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|&byte| byte == b';');
        let (value, after) = text.split_at(end.unwrap_or(text.len()));
        return (value.trim_ascii_end().to_vec(), after);
    };
    let mut value = Vec::new();
    let mut rest = quoted;
    loop {
        match rest {
            [b'\\', b'"', after @ ..] => {
                value.push(b'"');
                rest = after;
            }
            [b'"', after @ ..] => return (value, after),
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return (value, rest),
        }
    }
}

/// Returns true if the part's content is encoded. RFC 7578 §4.7 deprecates encodings. Taking
/// encoded content as it is would send a text that nobody wrote.
fn is_encoded(part: &Field<'_>) -> bool {
    let plain = ["7bit", "8bit", "binary"];
    let is_plain =
        |encoding: &str| plain.iter().any(|plain| plain.eq_ignore_ascii_case(encoding.trim()));
    let encoding = part.headers().get("content-transfer-encoding");
    encoding.is_some_and(|encoding| !encoding.to_str().is_ok_and(is_plain))
}

/// Refuses a body that can't be parsed.
pub fn unreadable(detail: &'static str) -> Failure {
    Failure::with_detail(Reason::InvalidParameter, detail)
}

/// Refuses a body with more parts than any request needs.
pub fn too_many_parts() -> Failure {
    unreadable("The body has too many parts.")
}

/// Converts an error of multer into a refusal.
pub fn failure(error: &multer::Error) -> Failure {
    match error {
        multer::Error::IncompleteStream | multer::Error::IncompleteFieldData { .. } => unreadable(
            "The body doesn't end with the closing boundary; it is cut short, or the boundary is \
             wrong.",
        ),
        _ => unreadable("The body isn't multipart/form-data as its content type says."),
    }
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn parameters_are_found_outside_of_quotes_alone() {
        for (field, expected) in [
            ("form-data; name=\"a\"", &[("name", "a")][..]),
            ("form-data;Name=a ; x", &[("Name", "a")]),
            (
                "form-data; filename=\"x; name=y\"; name=\"a\"",
                &[("filename", "x; name=y"), ("name", "a")],
            ),
            (
                "form-data; filename=\"C:\\a\\b.csv\"; name=\"a\\\"b\"",
                &[("filename", "C:\\a\\b.csv"), ("name", "a\"b")],
            ),
            ("form-data; name=\"open; x=y", &[("name", "open; x=y")]),
            ("form-data; name = \"a\"", &[("name", "a")]),
            ("form-data; name", &[]),
            ("form-data", &[]),
            ("name=a", &[]),
            (";;name=;", &[("name", "")]),
        ] {
            let found = parameters(field.as_bytes());
            let found: Vec<_> = found
                .iter()
                .map(|(name, value)| {
                    let text = |bytes| str::from_utf8(bytes).unwrap();
                    (text(*name), text(value.as_slice()))
                })
                .collect();
            assert_eq!(found, expected, "{field}");
        }
    }
}
