//! The outcome of an attempt.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, StatusCode, header};

use crate::retry_after::retry_after;

/// The longest `Retry-After` that is honored.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
/// How much of an answer is kept, in bytes of UTF-8.
const KEPT_BYTES_MAX: usize = 1024;
/// The longest character in UTF-8. With this many more bytes, the last kept character is complete.
const CHAR_BYTES_MAX: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the answer. `None` if none came.
    pub status: Option<u16>,
    /// Why the attempt failed: sentences for the customer. `None` exactly if it succeeded. It never
    /// contains the URL, a secret or the address of a host.
    pub error: Option<String>,
    /// How long the endpoint asks to wait before the next attempt, at most an hour.
    pub retry_after: Option<Duration>,
    /// The beginning of the answer's body, at most 1 KiB. It has no NUL, because PostgreSQL can't
    /// store one.
    pub answer: String,
    /// From the DNS lookup to the end of the answer.
    pub latency: Duration,
}

impl Outcome {
    /// Returns the outcome of an attempt without an answer.
    pub fn without_answer(error: String, latency: Duration) -> Self {
        Self { status: None, error: Some(error), retry_after: None, answer: String::new(), latency }
    }

    /// Whether the endpoint has taken the event: it answered with any 2xx.
    pub fn is_success(&self) -> bool {
        self.error.is_none()
    }
}

/// The part of an answer that is kept.
pub struct KeptAnswer {
    status: StatusCode,
    retry_after: Option<String>,
    /// The beginning of the body.
    body: Vec<u8>,
}

impl KeptAnswer {
    pub fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        let retry_after = headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        Self { status, retry_after, body: Vec::new() }
    }

    /// Adds a part of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        let free = KEPT_BYTES_MAX + CHAR_BYTES_MAX - self.body.len();
        self.body.extend_from_slice(&chunk[..free.min(chunk.len())]);
    }

    /// Returns the outcome of an attempt that began at this time, in Unix seconds.
    pub fn outcome(self, timestamp: i64, latency: Duration) -> Outcome {
        let status = self.status.as_u16();
        let error = if self.status.is_success() {
            None
        } else if self.status.is_redirection() {
            Some(format!(
                "The endpoint answered with a redirect (status {status}). Redirects aren't \
                 followed. Set the webhook's URL to the new address."
            ))
        } else {
            Some(format!("The endpoint answered with status {status}."))
        };
        Outcome {
            status: Some(status),
            error,
            retry_after: self.retry_after.and_then(|text| {
                let now = SystemTime::UNIX_EPOCH + Duration::from_secs(timestamp.try_into().ok()?);
                Some(retry_after(&text, now)?.min(RETRY_AFTER_MAX))
            }),
            answer: kept_text(&self.body),
            latency,
        }
    }
}

/// Returns the beginning of a body as text. Replacing bytes never makes the text shorter than the
/// bytes, so an incomplete character at the end of the bytes is always cut off.
fn kept_text(body: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(body).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(KEPT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_text_has_at_most_1_kib() {
        let kept = |chunks: &[&[u8]]| {
            let mut answer = KeptAnswer::new(StatusCode::OK, &HeaderMap::new());
            for chunk in chunks {
                answer.push(chunk);
            }
            answer.outcome(0, Duration::ZERO).answer
        };
        assert_eq!(kept(&[]), "");
        assert_eq!(kept(&[b"a", b"", b"b"]), "ab");
        assert_eq!(kept(&[b"a\0b\xff\xfec"]), "a\u{fffd}b\u{fffd}\u{fffd}c");
        assert_eq!(kept(&[&[b'a'; 1024]]), "a".repeat(1024));
        assert_eq!(kept(&[&[b'a'; 1000], &[b'b'; 1000], &[b'c'; 1000]]).len(), 1024);
        // A character that is split at the end is left out, and one split among chunks isn't.
        assert_eq!(kept(&["€".repeat(500).as_bytes()]), "€".repeat(341));
        assert_eq!(kept(&[b"\xe2", b"\x82", b"\xac"]), "€");
        assert_eq!(kept(&[format!("{}😀", "a".repeat(1020)).as_bytes()]).len(), 1024);
        assert_eq!(kept(&[format!("{}😀", "a".repeat(1021)).as_bytes()]), "a".repeat(1021));
        assert_eq!(kept(&[&[0; 3000]]), "\u{fffd}".repeat(341));
        assert_eq!(kept(&[&[0xff; 3000]]), "\u{fffd}".repeat(341));
        assert_eq!(kept(&[b"\xf0\x9f\x98"]), "\u{fffd}");
    }
}
