//! Cuts the connection of a client that doesn't read its response. Otherwise, the response would
//! stay in memory and the connection would stay open.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connections::Slot;

/// The time that a client has to read the next bytes of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The bytes that a client must read in that time, unless fewer are left. Otherwise, a client that
/// reads a few bytes now and then could go on forever.
const WRITE_BYTES_MIN: usize = 16 * 1024;

/// A connection's stream. Its writes fail if they make too little progress.
pub struct Progress<S> {
    stream: S,
    slot: Arc<Slot>,
    /// Set while the client is slow to read.
    waiting: Option<Waiting>,
}

struct Waiting {
    until: Pin<Box<Sleep>>,
    /// The bytes that the client has read since the wait began.
    taken: usize,
}

impl<S> Progress<S> {
    pub const fn new(stream: S, slot: Arc<Slot>) -> Self {
        Self { stream, slot, waiting: None }
    }

    /// Returns the outcome of a write, or an error if the client was too slow.
    fn judge(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(count)) => {
                self.slot.used();
                if let Some(waiting) = &mut self.waiting {
                    waiting.taken += count;
                    if waiting.taken >= WRITE_BYTES_MIN {
                        self.waiting = None;
                    }
                }
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let begin = || Waiting { until: Box::pin(sleep(WRITE_TIMEOUT)), taken: 0 };
                let waiting = self.waiting.get_or_insert_with(begin);
                if waiting.until.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.slot.is_unread();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progress<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progress<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// A writer flushes once everything is written, so the next response gets the full time.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waiting = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
