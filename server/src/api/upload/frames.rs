//! An upload's body as it comes.

use std::time::Duration;

use bytes::Bytes;
use domain::Reason;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::api::answer::Failure;
use crate::api::body::drop_rest;

/// How long the next bytes may take.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body piece by piece, never more of it than allowed. When this is dropped, the rest is read for a
/// while, so that the client sees the answer.
pub struct Frames {
    body: Option<Incoming>,
    bytes_left: u64,
}

impl Frames {
    /// # Errors
    /// `too_large` when the request says that its body is.
    pub fn new(body: Incoming, bytes_max: u64) -> Result<Self, Failure> {
        let fits = body.size_hint().lower() <= bytes_max;
        let frames = Self {
            body: Some(body),
            bytes_left: bytes_max,
        };
        if fits { Ok(frames) } else { Err(too_large()) }
    }

    /// The next piece, `None` at the end.
    ///
    /// # Errors
    /// `too_large`; `timeout`; unanswered when the client left or broke the framing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(body) = &mut self.body {
            let Ok(frame) = tokio::time::timeout(FRAME_TIMEOUT, body.frame()).await else {
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
            let left = self.bytes_left.checked_sub(data.len() as u64);
            self.bytes_left = left.ok_or_else(too_large)?;
            return Ok(Some(data));
        }
        Ok(None)
    }
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
