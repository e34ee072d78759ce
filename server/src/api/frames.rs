//! A request's body as it comes.

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

/// How long the rest of a refused body is read; otherwise a client that is still writing would see
/// a closed connection instead of the answer.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// How large a body may be, and how long it may take.
#[derive(Clone, Copy)]
pub struct Allowed {
    pub bytes_max: u64,
    /// The sentence that refuses a larger body.
    pub too_large: fn(bytes_max: u64) -> String,
    /// How long the next bytes may take, by the bytes and the time so far.
    pub timeout: fn(received: u64, elapsed: Duration) -> Duration,
}

/// Reads a body piece by piece, never more of it than allowed. When this is dropped, the rest is
/// read for a while, so that the client sees the answer.
pub struct Frames {
    body: Option<Body>,
    allowed: Allowed,
    started: Instant,
    received: u64,
}

impl Frames {
    /// # Errors
    /// `too_large` when the request says that its body is.
    pub fn new(body: Body, allowed: Allowed) -> Result<Self, Failure> {
        let declared = body.size_hint().lower();
        let frames = Self {
            body: Some(body),
            allowed,
            started: Instant::now(),
            received: 0,
        };
        frames.refuse_above(declared)?;
        Ok(frames)
    }

    /// The next piece, `None` at the end.
    ///
    /// # Errors
    /// `too_large`; `timeout`; unanswered when the client left or broke the framing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(body) = &mut self.body {
            let timeout = (self.allowed.timeout)(self.received, self.started.elapsed());
            let Ok(frame) = tokio::time::timeout(timeout, body.frame()).await else {
                // The body's time is over: the rest isn't waited for, even while the server stops.
                self.body = None;
                return Err(Failure::of(Reason::Timeout).closing());
            };
            let Some(frame) = frame else {
                self.body = None;
                break;
            };
            // Nobody is there to answer.
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

/// A body for whoever may answer without having read it. When this is dropped, the rest is read for
/// a while, so that the client, or a proxy before it, sees the answer.
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

/// Reads what is left of a body for a while, in a task of its own, so that the answer can be seen.
pub fn drop_rest(mut body: Body) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(tokio::time::timeout(DROP_TIMEOUT, async move {
        while let Some(Ok(_)) = body.frame().await {}
    }));
}
