//! Streams the body of a request, with limits on size and time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use domain::Reason;
use http_body_util::BodyExt as _;
use hyper::body::Body as HttpBody;
use hyper::body::{Frame, SizeHint};

use super::answer::Failure;

/// How long the server keeps reading the rest of a refused body. Otherwise, a client that is still
/// writing would see a closed connection instead of the response.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits on a body's size and time.
#[derive(Clone, Copy)]
pub struct Allowed {
    pub bytes_max: u64,
    /// Returns the error message for a larger body.
    pub too_large: fn(bytes_max: u64) -> String,
    /// Returns the timeout for the next bytes, given the bytes received and the time elapsed.
    pub timeout: fn(received: u64, elapsed: Duration) -> Duration,
}

/// Reads a body piece by piece within its limits. When this is dropped, a background task reads the
/// rest for a while, so that the client sees the response.
pub struct Frames {
    body: Option<Body>,
    allowed: Allowed,
    started: Instant,
    received: u64,
}

impl Frames {
    /// # Errors
    /// `too_large` if the declared length exceeds the limit.
    pub fn new(body: Body, allowed: Allowed) -> Result<Self, Failure> {
        let declared = body.size_hint().lower();
        let frames = Self { body: Some(body), allowed, started: Instant::now(), received: 0 };
        frames.refuse_above(declared)?;
        Ok(frames)
    }

    /// Returns the next piece, or `None` at the end.
    ///
    /// # Errors
    /// `too_large`; `timeout`; a failure without a response if the client disconnected or broke the
    /// framing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(body) = &mut self.body {
            let timeout = (self.allowed.timeout)(self.received, self.started.elapsed());
            let Ok(frame) = tokio::time::timeout(timeout, body.frame()).await else {
                // The time is up. Dropping the body here keeps `Drop` from reading the rest, which
                // would delay a shutdown.
                self.body = None;
                return Err(Failure::of(Reason::Timeout).closing());
            };
            let Some(frame) = frame else {
                self.body = None;
                break;
            };
            // The client is gone, so no response can be sent.
            let frame = frame.map_err(|_| Failure::unanswered())?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.received += data.len() as u64;
            self.refuse_above(self.received)?;
            return Ok(Some(data));
        }
        Ok(None)
    }

    fn refuse_above(&self, bytes: u64) -> Result<(), Failure> {
        let bytes_max = self.allowed.bytes_max;
        if bytes <= bytes_max {
            return Ok(());
        }
        let detail = (self.allowed.too_large)(bytes_max);
        Err(Failure::with_detail(Reason::TooLarge, detail))
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            drop_rest(body);
        }
    }
}

/// A body for handlers that may respond without reading it. When this is dropped, a background task
/// reads the rest for a while, so that the client, or a proxy in between, sees the response.
pub struct ReadToEnd(Body);

impl ReadToEnd {
    pub fn body(body: Body) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::new(Self(body))
    }
}

impl HttpBody for ReadToEnd {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl Drop for ReadToEnd {
    fn drop(&mut self) {
        drop_rest(std::mem::take(&mut self.0));
    }
}

/// Returns a body together with the result that allows to read it. With an error, drops the body.
pub fn body_if<T, E>(allowed: Result<T, E>, body: Body) -> Result<(T, Body), E> {
    match allowed {
        Ok(allowed) => Ok((allowed, body)),
        Err(error) => {
            drop_rest(body);
            Err(error)
        }
    }
}

/// Reads the rest of a body for a while in a background task, so that the client sees the response.
pub fn drop_rest(mut body: Body) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(tokio::time::timeout(DROP_TIMEOUT, async move {
        while let Some(Ok(_)) = body.frame().await {}
    }));
}
