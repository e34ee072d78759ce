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
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;
    use crate::config::ConnectionLimits;
    use crate::http::connections::Connections;
    use crate::metrics::Metrics;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the server's end, the client's end and the metrics.
    async fn pair() -> (Progress<DuplexStream>, DuplexStream, Arc<Metrics>) {
        let limits = ConnectionLimits { all: 1, address: 1, network: 1 };
        let metrics = Arc::new(Metrics::default());
        let connections = Connections::new(limits, Vec::new(), Arc::clone(&metrics));
        let taken = Arc::new(connections).take([192, 0, 2, 1].into()).await;
        let (server, client) = duplex(1024);
        let server = Progress::new(server, Arc::new(taken.unwrap()));
        (server, client, metrics)
    }

    /// Asserts that a large response is cut after the timeout, and that this is counted.
    async fn is_cut(server: &mut Progress<DuplexStream>, metrics: &Metrics) {
        let started = Instant::now();
        let error = server.write_all(&vec![0; 100_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), WRITE_TIMEOUT.as_secs());
        let text = metrics.render(None);
        assert!(text.contains("limit=\"unread\"} 1\n"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_nothing_is_cut_off() {
        let (mut server, _client, metrics) = pair().await;
        is_cut(&mut server, &metrics).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_a_byte_now_and_then_is_cut_off() {
        let (mut server, mut client, metrics) = pair().await;
        tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(10 * SECOND).await;
            }
        });
        is_cut(&mut server, &metrics).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_gets_the_whole() {
        let (mut server, mut client, _) = pair().await;
        let reading = tokio::spawn(async move {
            let mut read = 0;
            let mut room = vec![0; WRITE_BYTES_MIN];
            while client.read_exact(&mut room).await.is_ok() {
                read += room.len();
                tokio::time::sleep(20 * SECOND).await;
            }
            read
        });
        let whole = vec![0; 20 * WRITE_BYTES_MIN];
        server.write_all(&whole).await.unwrap();
        drop(server);
        assert_eq!(reading.await.unwrap(), whole.len());
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_its_own_time() {
        let (mut server, mut client, metrics) = pair().await;
        for _ in 0..4 {
            // More than the pipe can hold, but too little to reset the timeout.
            let (written, read) = tokio::join!(server.write_all(&[0; 2000]), async {
                tokio::time::sleep(20 * SECOND).await;
                client.read_exact(&mut [0; 2000]).await
            });
            written.unwrap();
            read.unwrap();
            server.flush().await.unwrap();
            tokio::time::sleep(20 * SECOND).await;
        }
        is_cut(&mut server, &metrics).await;
    }
}
