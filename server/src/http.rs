//! HTTP/1.1 on a socket, with or without TLS: accepts, limits how many connections a client may have
//! and how long it may take for its header and for reading its answer, and at the end lets requests
//! finish.
//!
//! What hyper refuses before it is a request, the handler puts into words: 400 for what can't be
//! read as HTTP, 431 for a head of more than 100 headers or more bytes than [`HEAD_BYTES_MAX`].

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
use connections::Place;
use header_timer::HeaderTimer;
use progress::Progress;
use refusals::Refusals;

/// How long a client may take for a request's header, and how long a connection may idle between
/// requests: longer than a browser pauses, shorter than it takes to hoard connections.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);
/// Largest head of a request, its first line and its headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// What is read of a connection at a time, at most, and written.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// What the system takes of an answer beyond what is on its way to the client.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 * 1024;
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests may take to finish once the server was asked to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause after a failed accept (no descriptors left), so that the loop doesn't spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// No answer may be given: the connection is closed instead. A response that must not be sent has
/// it as an extension.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed without an answer")]
pub struct NoAnswer;

/// Answers requests. Cloned for each.
pub trait Handler: Clone + Send + Sync + Unpin + 'static {
    fn handle(
        self,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Body>, NoAnswer>> + Send;

    /// The answer to what can't be read as a request, with headers and body: the status stays.
    /// `None` for one without body.
    fn refuse(&self, _status: StatusCode) -> Option<Response<Bytes>> {
        None
    }
}

/// An axum router answers everything.
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

/// Serves until the token is cancelled, then until the last connection is done or its time is over.
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
        let Some((stream, peer, place)) = accepted else {
            continue;
        };
        // A token of its own: each look at one takes its lock.
        let (tls, handler, stop) = (tls.clone(), handler.clone(), stop.child_token());
        tracker.spawn(async move {
            let place = Arc::new(place);
            tokio::select! {
                () = connection(stream, peer, tls, handler, Arc::clone(&place), stop) => {}
                () = place.gives_way() => {}
            }
        });
    }
    drop(listener);
    tracker.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, tracker.wait())
        .await
        .is_err()
    {
        tracing::warn!("some requests didn't finish in time and were cut off");
    }
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
) -> Option<(TcpStream, SocketAddr, Place)> {
    match listener.accept().await {
        Ok((stream, peer)) => {
            let place = connections.take(peer.ip()).await?;
            Some((stream, peer, place))
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
    place: Arc<Place>,
    stop: CancellationToken,
) {
    // Answers are small and whole: waiting for more to fill a packet would only delay them. Without
    // the option it still works.
    let _ = stream.set_nodelay(true);
    keep_unread_answers_small(&stream);
    let stream = Progress::new(stream, Arc::clone(&place));
    let Some(tls) = tls else {
        return talk(stream, peer, handler, place, stop).await;
    };
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        talk(stream, peer, handler, place, stop).await;
    }
}

/// Limits what the system keeps of answers that are written but not sent, because their client
/// doesn't read. Otherwise it keeps megabytes for each connection: a thousand of them use up the
/// memory that the system has for all of TCP, and everybody waits.
fn keep_unread_answers_small(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the system keeps what it likes of answers that aren't read");
    }
}

async fn talk<H: Handler>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: SocketAddr,
    handler: H,
    place: Arc<Place>,
    stop: CancellationToken,
) {
    let refusing = handler.clone();
    let stream = Refusals::new(stream, move |status| refusing.refuse(status));
    let stopping = stop.clone();
    let service = service_fn(move |request| {
        let (handler, busy) = (handler.clone(), place.begin_request());
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
        // A client that says it will write no more may still read: what it sent is done, and it
        // should learn of it.
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
        // Clients that leave are everyday; the error's words name no part of the request.
        tracing::debug!(kind = kind(&error), "connection ended early");
    }
}

/// Whether the client wants to use the connection again.
fn persists(request: &Request<Incoming>) -> bool {
    let named = request.headers().get_all(CONNECTION).iter();
    let mut named = named.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let closes = named.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
    request.version() == Version::HTTP_11 && !closes
}

/// Says how long the connection may idle, so that no client sends a request while it is closed. An
/// answer that closes it keeps its word for that.
fn announce_idle_time(headers: &mut HeaderMap) {
    static IDLE_TIME: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
        let seconds = HEADER_READ_TIMEOUT.as_secs();
        HeaderValue::try_from(format!("timeout={seconds}")).ok()
    });
    if let Some(idle_time) = &*IDLE_TIME
        && let Entry::Vacant(connection) = headers.entry(CONNECTION)
    {
        // RFC 9110 §7.6.1: a header about the connection is named there.
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
