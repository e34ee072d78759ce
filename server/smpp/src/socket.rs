//! Reads and writes one socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;
use tokio_util::io::poll_read_buf;

use crate::outbox::Outbox;
use crate::stream::Stream;

/// The buffer space for one read, in bytes.
const READ: usize = 64 * 1024;

/// Returns whether an error is the end of the peer's bytes.
pub(crate) fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// A socket, the bytes read from it and the bytes to be written to it.
pub(crate) struct Socket {
    stream: Box<dyn Stream>,
    tls: bool,
    pub(crate) incoming: BytesMut,
    pub(crate) outbox: Outbox,
    /// When the last bytes were read.
    pub(crate) heard: Instant,
    /// Whether the last read found nothing. If false, bytes from the peer may be unread, so silence
    /// proves nothing.
    pub(crate) caught_up: bool,
    /// Submits that the socket removed right before their write because their deadline had passed.
    pub(crate) overdue: Vec<u32>,
    /// Why a write failed. Nothing is written after that.
    pub(crate) write_error: Option<io::Error>,
    /// Since when the socket has accepted none of the pending bytes.
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
            overdue: Vec::new(),
            write_error: None,
            stalled: None,
            unflushed: false,
        }
    }

    /// Returns since when the socket has accepted none of the pending bytes, if it is stalled.
    pub(crate) fn stalled(&self) -> Option<Instant> {
        self.stalled
    }

    pub(crate) fn all_written(&self) -> bool {
        self.outbox.len() == 0 && !self.unflushed
    }

    /// Removes the submits that aren't begun and whose deadline satisfies `drop`. Returns their
    /// sequence numbers.
    pub(crate) fn take_back(&mut self, drop: impl Fn(Instant) -> bool) -> Vec<u32> {
        let removed = self.outbox.remove(drop);
        if self.outbox.len() == 0 {
            self.stalled = None;
        }
        removed
    }

    /// Reads once, and writes as much as the socket accepts. Pending if nothing was read or
    /// written. Returns the error of a read; `write_error` holds the error of a write.
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
                // Many writes in a row use up the task's budget. That says nothing about the peer.
                Poll::Pending if !has_budget_remaining() => self.caught_up = false,
                Poll::Pending => {
                    // Reports progress once, so that the link runs the checks that need
                    // `caught_up`.
                    progress = !self.caught_up;
                    self.caught_up = true;
                }
            }
        } else {
            self.caught_up = false;
        }
        progress |= self.poll_write(context);
        if progress { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.incoming.reserve(READ);
        let stream = Pin::new(&mut self.stream);
        poll_read_buf(stream, context, &mut self.incoming).map(|read| match read {
            Ok(0) => {
                let closed = || io::ErrorKind::UnexpectedEof.into();
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

    /// Writes until the socket accepts no more. Returns whether anything changed.
    fn poll_write(&mut self, context: &mut Context<'_>) -> bool {
        let mut changed = false;
        let several = self.outbox.takes_several();
        if several {
            self.stream.gather(true);
        }
        while self.write_error.is_none() && !self.all_written() {
            if self.poll_write_next(context).is_pending() {
                if self.outbox.len() > 0 {
                    self.stalled.get_or_insert_with(Instant::now);
                }
                break;
            }
            changed = true;
        }
        if several {
            self.stream.gather(false);
        }
        changed
    }

    fn poll_write_next(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // A submit inside TLS can't be removed, so TLS gets the next submit only once it has sent
        // the previous bytes.
        if self.unflushed {
            match ready!(Pin::new(&mut self.stream).poll_flush(context)) {
                Ok(()) => self.unflushed = false,
                Err(error) => self.fail(Some(error)),
            }
            return Poll::Ready(());
        }
        self.drop_overdue();
        if self.outbox.len() > 0 {
            let stream = Pin::new(&mut self.stream);
            match ready!(stream.poll_write(context, self.outbox.offer())) {
                Ok(count) if count > 0 => self.took(count),
                result => self.fail(result.err()),
            }
        }
        Poll::Ready(())
    }

    /// Removes the submits whose deadline has passed, if the next submit is one of them. This is
    /// the last check before a submit is begun.
    fn drop_overdue(&mut self) {
        let now = Instant::now();
        if self.outbox.is_overdue(now) {
            let removed = self.take_back(|not_after| not_after < now);
            self.overdue.extend(removed);
        }
    }

    fn took(&mut self, count: usize) {
        self.unflushed = true;
        self.stalled = None;
        self.outbox.took(count);
    }

    /// Records that a write failed. The peer may have answered earlier submits, so reading
    /// continues to the end.
    fn fail(&mut self, error: Option<io::Error>) {
        // TLS may send some of the bytes before it fails, so all offered bytes may have left.
        if self.tls && !self.unflushed {
            self.took(self.outbox.offer().len());
        }
        self.write_error = Some(error.unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
        self.outbox.abandon();
        self.stalled = None;
        self.caught_up = false;
    }
}

#[cfg(test)]
mod tests;
