//! HTTP/1.1 on a socket, with or without TLS. Accepts connections, limits their number for each
//! client, and limits the time for sending a header and for reading a response. At shutdown, lets
//! pending requests finish.
//!
//! hyper refuses some data before it becomes a request. The handler provides the responses: 400 for
//! data that isn't valid HTTP, and 431 for a head with more than 100 headers or more than
//! [`HEAD_BYTES_MAX`] bytes.

mod connections;
mod header_timer;
mod progress;
mod refusals;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONNECTION, Entry};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use connections::Connections;
use connections::Slot;
use header_timer::HeaderTimer;
use progress::Progress;
use refusals::Refusals;

/// How long a client may take to send a request's header, and how long a connection may idle
/// between requests. This is longer than a browser pauses, but too short to hoard connections.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum size of a request's head: its first line and its headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The maximum size of a connection's read buffer and of its write buffer.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// How much of a response the kernel buffers in addition to the data that is in transit.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 * 1024;
/// The time limit for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests may take to finish at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// The pause after a failed accept, such as for lack of file descriptors. It keeps the loop from
/// spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The request must get no response, so the connection is closed instead. As an extension, this
/// marks a response that must not be sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed without an answer")]
pub struct NoAnswer;

/// Handles requests. The server clones the handler for each request.
pub trait Handler: Clone + Send + Sync + Unpin + 'static {
    fn handle(
        self,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Body>, NoAnswer>> + Send;

    /// Returns the headers and body of the response to data that isn't a valid request. The status
    /// is hyper's. With `None`, the response has no body.
    fn refuse(&self, _status: StatusCode) -> Option<Response<Bytes>> {
        None
    }
}

/// Passes every request to an axum router.
impl Handler for axum::Router {
    async fn handle(
        self,
        _peer: SocketAddr,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, NoAnswer> {
        let answer: Result<_, Infallible> =
            tower::ServiceExt::oneshot(self, request.map(Body::new)).await;
        let Ok(response) = answer;
        Ok(response)
    }
}

/// Serves until the token is cancelled. Then waits until all connections have ended, or for
/// [`DRAIN_TIMEOUT`] at most.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: H,
    connections: Connections,
    stop: CancellationToken,
) {
    let tracker = TaskTracker::new();
    let connections = Arc::new(connections);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let Some((stream, peer, slot)) = accepted else {
            continue;
        };
        // Checking a token takes its lock, so each connection gets a child token of its own.
        let (tls, handler, stop) = (tls.clone(), handler.clone(), stop.child_token());
        tracker.spawn(async move {
            let slot = Arc::new(slot);
            tokio::select! {
                () = connection(stream, peer, tls, handler, Arc::clone(&slot), stop) => {}
                () = slot.gives_way() => {}
            }
        });
    }
    drop(listener);
    tracker.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, tracker.wait()).await.is_err() {
        tracing::warn!("some requests didn't finish in time and were cut off");
    }
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
) -> Option<(TcpStream, SocketAddr, Slot)> {
    match listener.accept().await {
        Ok((stream, peer)) => {
            let slot = connections.take(peer.ip()).await?;
            Some((stream, peer, slot))
        }
        Err(error) => {
            tracing::warn!(%error, "can't accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn connection<H: Handler>(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    handler: H,
    slot: Arc<Slot>,
    stop: CancellationToken,
) {
    // Responses are small and complete, so waiting to fill a packet would only delay them. Without
    // the option, the connection still works.
    let _ = stream.set_nodelay(true);
    keep_unread_answers_small(&stream);
    let stream = Progress::new(stream, Arc::clone(&slot));
    let Some(tls) = tls else {
        return talk(stream, peer, handler, slot, stop).await;
    };
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        talk(stream, peer, handler, slot, stop).await;
    }
}

/// Limits the data that the kernel buffers for a client that doesn't read its responses. Without
/// this limit, the kernel buffers megabytes for each connection. A thousand such connections use up
/// the kernel's memory for all of TCP, and every client has to wait.
fn keep_unread_answers_small(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "can't limit the unsent data that the kernel buffers");
    }
}

async fn talk<H: Handler>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: SocketAddr,
    handler: H,
    slot: Arc<Slot>,
    stop: CancellationToken,
) {
    let refusing = handler.clone();
    let stream = Refusals::new(stream, move |status| refusing.refuse(status));
    let stopping = stop.clone();
    let service = service_fn(move |request| {
        let (handler, busy) = (handler.clone(), slot.begin_request());
        let persists = persists(&request);
        let stopping = stopping.clone();
        async move {
            let mut answer = handler.handle(peer, request).await;
            drop(busy);
            if let Ok(answer) = &mut answer
                && persists
                && !stopping.is_cancelled()
            {
                announce_idle_time(answer.headers_mut());
            }
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(HeaderTimer::default())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        // A client that has closed its sending side can still read. It sent a request and should
        // get the response.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Clients disconnect all the time. The kind of the error contains no part of the request.
        tracing::debug!(kind = kind(&error), "connection ended early");
    }
}

/// Returns true if the client wants to reuse the connection.
fn persists(request: &Request<Incoming>) -> bool {
    let named = request.headers().get_all(CONNECTION).iter();
    let mut named = named.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let closes = named.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
    request.version() == Version::HTTP_11 && !closes
}

/// Announces how long the connection may idle, so that no client sends a request while the server
/// closes it. Doesn't change a response that closes the connection.
fn announce_idle_time(headers: &mut HeaderMap) {
    static IDLE_TIME: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
        let seconds = HEADER_READ_TIMEOUT.as_secs();
        HeaderValue::try_from(format!("timeout={seconds}")).ok()
    });
    if let Some(idle_time) = &*IDLE_TIME
        && let Entry::Vacant(connection) = headers.entry(CONNECTION)
    {
        // RFC 9110 §7.6.1: the Connection header lists headers that are about the connection.
        connection.insert(HeaderValue::from_static("keep-alive"));
        headers.insert("keep-alive", idle_time.clone());
    }
}

fn kind(error: &hyper::Error) -> &'static str {
    if error.is_timeout() {
        "timeout"
    } else if error.is_parse() {
        "not readable as HTTP"
    } else if error.is_user() {
        "closed without an answer"
    } else {
        "closed by the client"
    }
}
