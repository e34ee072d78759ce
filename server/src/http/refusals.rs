//! Adds bodies to the responses that hyper sends by itself to data that isn't a valid request.
//!
//! hyper has no hook for these responses. But it writes such a response in a single call, as a head
//! with recognisable headers and without a body, and then closes the connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::{Response, StatusCode};
use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long the server keeps reading from a refused client. A connection that is closed with unread
/// data is reset, and the client might not see the response.
const DROP_TIMEOUT: Duration = Duration::from_secs(5);
/// A header of hyper's own responses. A handler's short response may have it too, but also has a
/// request ID.
const NO_BODY: &str = "\r\ncontent-length: 0\r\n";
/// The maximum size of a response of hyper's own.
const HEAD_BYTES_MAX: usize = 256;

/// Returns the response that replaces hyper's own response with this status, or `None` to keep
/// hyper's.
type Refuse = Box<dyn Fn(StatusCode) -> Option<Response<Bytes>> + Send>;

/// A connection's stream that replaces hyper's own responses.
pub struct Refusals<S> {
    stream: S,
    refuse: Refuse,
    refused: Option<Refused>,
}

/// hyper refused a request, and writes nothing else.
struct Refused {
    /// The part of the response that isn't written yet.
    answer: Bytes,
    /// The deadline for reading more data. Set once the response is written.
    dropping: Option<Pin<Box<Sleep>>>,
}

impl<S> Refusals<S> {
    pub fn new(
        stream: S,
        refuse: impl Fn(StatusCode) -> Option<Response<Bytes>> + Send + 'static,
    ) -> Self {
        Self { stream, refuse: Box::new(refuse), refused: None }
    }

    /// Returns true if these bytes are hyper's own response. Another response is then written
    /// instead.
    fn takes_over(&mut self, written: &[u8]) -> bool {
        let Some((status, head)) = own_answer(written) else {
            return false;
        };
        let Some(response) = (self.refuse)(status) else {
            return false;
        };
        self.refused = Some(Refused { answer: with_body(head, &response), dropping: None });
        true
    }
}

/// Returns the status and the text of hyper's own response, or `None` for any other.
fn own_answer(written: &[u8]) -> Option<(StatusCode, &str)> {
    if written.len() > HEAD_BYTES_MAX || !written.starts_with(b"HTTP/1.1 4") {
        return None;
    }
    let head = str::from_utf8(written).ok()?;
    let status = StatusCode::from_bytes(head.get(9..12)?.as_bytes()).ok()?;
    let ends = head.find("\r\n\r\n") == Some(head.len() - 4);
    // Every response of a handler has a request ID.
    let own = head.contains(NO_BODY) && !head.contains("\r\nx-request-id: ");
    (ends && own).then_some((status, head))
}

/// Returns the response as bytes: the head that hyper wrote, with the response's headers and body.
fn with_body(head: &str, response: &Response<Bytes>) -> Bytes {
    let body = response.body();
    let mut answer = Vec::with_capacity(head.len() + 512 + body.len());
    let length = format!("\r\ncontent-length: {}\r\n", body.len());
    let head = head.replacen(NO_BODY, &length, 1);
    // Removes the empty line at the end of the head.
    answer.extend_from_slice(head.as_bytes().strip_suffix(b"\r\n").unwrap_or_default());
    for (name, value) in response.headers() {
        answer.extend_from_slice(name.as_str().as_bytes());
        answer.extend_from_slice(b": ");
        answer.extend_from_slice(value.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"\r\n");
    answer.extend_from_slice(body);
    answer.into()
}

impl<S: AsyncWrite + Unpin> Refusals<S> {
    /// Writes the replacing response, if there is one.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(refused) = &mut self.refused else {
            return Poll::Ready(Ok(()));
        };
        while refused.answer.has_remaining() {
            let written = Pin::new(&mut self.stream).poll_write(context, &refused.answer);
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => refused.answer.advance(count),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> Refusals<S> {
    /// Reads and discards data until the client stops sending or the deadline passes.
    fn poll_drop_rest(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(dropping) = self.refused.as_mut().and_then(|one| one.dropping.as_mut()) else {
            return Poll::Ready(Ok(()));
        };
        if dropping.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut room = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Refusals<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Refusals<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.takes_over(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = pieces.first()
            && self.takes_over(first)
        {
            return Poll::Ready(Ok(first.len()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_answer(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_dropping = self.refused.as_ref().is_some_and(|one| one.dropping.is_some());
        if !is_dropping {
            ready!(self.as_mut().poll_flush(context))?;
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if let Some(refused) = &mut self.refused {
                refused.dropping = Some(Box::pin(sleep(DROP_TIMEOUT)));
            }
        }
        self.poll_drop_rest(context)
    }
}
