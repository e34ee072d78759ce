//! An upload's body as it comes.

use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use domain::Reason;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;

use crate::api::answer::Failure;
use crate::api::body::drop_rest;

/// How long the next bytes may take.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a body may take, however small: who sends a little at a time keeps one of the
/// application's places, a file and a connection for as long.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// For so many bytes it may take a second longer: the slowest line that a large file is taken from.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;

/// Reads a body piece by piece, never more of it than allowed. When this is dropped, the rest is
/// read for a while, so that the client sees the answer.
pub struct Frames {
    body: Option<Body>,
    bytes_left: u64,
    started: Instant,
    received: u64,
}

impl Frames {
    /// # Errors
    /// `too_large` when the request says that its body is.
    pub fn new(body: Body, bytes_max: u64) -> Result<Self, Failure> {
        let fits = body.size_hint().lower() <= bytes_max;
        let frames = Self {
            body: Some(body),
            bytes_left: bytes_max,
            started: Instant::now(),
            received: 0,
        };
        if fits { Ok(frames) } else { Err(too_large()) }
    }

    /// The next piece, `None` at the end.
    ///
    /// # Errors
    /// `too_large`; `timeout`; unanswered when the client left or broke the framing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(body) = &mut self.body {
            let timeout = timeout(self.received, self.started.elapsed());
            let Ok(frame) = tokio::time::timeout(timeout, body.frame()).await else {
                // Its time is over: more of it isn't waited for.
                self.body = None;
                return Err(Failure::of(Reason::Timeout));
            };
            let Some(frame) = frame else {
                break;
            };
            // Nobody is there to answer.
            let frame = frame.map_err(|_| Failure::unanswered())?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.received += data.len() as u64;
            let left = self.bytes_left.checked_sub(data.len() as u64);
            self.bytes_left = left.ok_or_else(too_large)?;
            return Ok(Some(data));
        }
        Ok(None)
    }
}

/// How long the next bytes may take after so many in so much time. What is there already is taken
/// even without any time left: it isn't the client who was slow then.
fn timeout(received: u64, elapsed: Duration) -> Duration {
    let longer = Duration::from_millis(received.saturating_mul(1000) / BYTES_PER_SECOND_MIN);
    let left = (BODY_TIMEOUT + longer).saturating_sub(elapsed);
    left.min(FRAME_TIMEOUT)
}

fn too_large() -> Failure {
    let detail = "The body is larger than the largest file needs; upload the file in parts.";
    Failure::with_detail(Reason::TooLarge, detail)
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            drop_rest(body);
        }
    }
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
