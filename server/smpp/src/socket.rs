//! The bytes in and out of one socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio::time::Instant;
use tokio_util::io::poll_read_buf;

use crate::outbox::Outbox;
use crate::stream::Stream;

/// What is read at once.
const READ: usize = 64 * 1024;

/// A socket and what waits on either side of it.
pub(crate) struct Socket {
    stream: Box<dyn Stream>,
    tls: bool,
    pub(crate) incoming: BytesMut,
    pub(crate) outbox: Outbox,
    /// When something was last read.
    pub(crate) heard: Instant,
    /// Nothing was left to read at the last try: only then is silence the peer's.
    pub(crate) caught_up: bool,
    /// A write failed; after it nothing is written.
    pub(crate) write_error: Option<io::Error>,
    /// Since when the socket has taken nothing of what waits.
    stalled: Option<Instant>,
    unflushed: bool,
}

impl Socket {
    pub(crate) fn new(stream: Box<dyn Stream>, tls: bool) -> Self {
        Self {
            stream,
            tls,
            incoming: BytesMut::new(),
            outbox: Outbox::default(),
            heard: Instant::now(),
            caught_up: false,
            write_error: None,
            stalled: None,
            unflushed: false,
        }
    }

    /// Since when the socket has taken nothing of what waits to be written.
    pub(crate) fn stalled(&self) -> Option<Instant> {
        self.stalled
    }

    pub(crate) fn all_written(&self) -> bool {
        self.outbox.len() == 0 && !self.unflushed
    }

    /// Takes submits back of which no byte was taken and for which `drop` says so.
    pub(crate) fn take_back(&mut self, drop: impl Fn(Instant) -> bool) -> Vec<u32> {
        let removed = self.outbox.remove(drop);
        if self.outbox.len() == 0 {
            self.stalled = None;
        }
        removed
    }

    /// Reads once and writes all that the socket takes; pending when neither went on. The error is
    /// the reading side's: what failed to be written shows in `write_error`.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        may_read: bool,
    ) -> Poll<io::Result<()>> {
        let mut progress = false;
        if may_read {
            match self.poll_read(context) {
                Poll::Ready(Ok(())) => progress = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // Once, so that what only waited for this is looked at.
                    progress = !self.caught_up;
                    self.caught_up = true;
                }
            }
        } else {
            self.caught_up = false;
        }
        progress |= self.poll_write(context);
        if progress {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.incoming.reserve(READ);
        let stream = Pin::new(&mut self.stream);
        poll_read_buf(stream, context, &mut self.incoming).map(|read| match read {
            Ok(0) => {
                let closed = || io::Error::other("the peer closed the connection");
                Err(self.write_error.take().unwrap_or_else(closed))
            }
            Ok(_) => {
                self.heard = Instant::now();
                self.caught_up = false;
                Ok(())
            }
            Err(error) => Err(error),
        })
    }

    /// Writes until the socket takes no more; whether anything changed.
    fn poll_write(&mut self, context: &mut Context<'_>) -> bool {
        let mut changed = false;
        while self.write_error.is_none() && self.outbox.len() > 0 {
            let stream = Pin::new(&mut self.stream);
            match stream.poll_write(context, self.outbox.offer()) {
                Poll::Ready(Ok(count)) if count > 0 => self.took(count),
                Poll::Ready(result) => self.fail(result.err()),
                Poll::Pending => {
                    self.stalled.get_or_insert_with(Instant::now);
                    break;
                }
            }
            changed = true;
        }
        if self.unflushed && self.write_error.is_none() {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Ok(())) => {
                    self.unflushed = false;
                    changed = true;
                }
                Poll::Ready(Err(error)) => {
                    self.fail(Some(error));
                    changed = true;
                }
                Poll::Pending => {}
            }
        }
        changed
    }

    fn took(&mut self, count: usize) {
        self.unflushed = true;
        self.stalled = None;
        self.outbox.took(count);
    }

    /// What was written before may have been answered, so reading goes on until nothing is left.
    fn fail(&mut self, error: Option<io::Error>) {
        // TLS takes bytes in and may send a part of them before it fails: all of them may be gone.
        if self.tls {
            self.took(self.outbox.len());
        }
        self.write_error = Some(error.unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
        self.outbox.abandon();
        self.stalled = None;
        self.caught_up = false;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Through the public face it would depend on when exactly the peer reads.
    #[tokio::test]
    async fn nothing_stalls_once_all_that_waited_is_taken_back() {
        let (ours, _peer) = tokio::io::duplex(3);
        let mut socket = Socket::new(Box::new(ours), false);
        for (sequence, text) in [(1, "aaa"), (2, "bbb")] {
            let not_after = Instant::now();
            socket.outbox.append_submit(sequence, not_after, |out| {
                out.extend_from_slice(text.as_bytes());
            });
        }
        while socket.stalled().is_none() {
            poll_fn(|context| socket.poll(context, true)).await.unwrap();
        }
        assert_eq!(socket.take_back(|_| true), [2]);
        assert_eq!(socket.stalled(), None);
        socket.outbox.append(|out| out.extend_from_slice(b"ccc"));
        assert_eq!(socket.stalled(), None);
    }
}
