//! A scripted upstream on a socket.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The upstream's reaction to the next request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers, and keeps the connection.
    Answer(&'static str, &'static str),
    /// Answers as if it kept the connection, and closes it.
    AnswerAndClose(&'static str, &'static str),
    /// Closes without an answer.
    Cut,
    /// Writes these bytes and closes.
    CutAfter(&'static str),
    /// Never answers.
    Stall,
}

/// A request that the upstream received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub head: String,
    pub body: String,
}

impl Seen {
    pub fn first_line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// State that all connections share.
#[derive(Default)]
pub struct Log {
    acts: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    connections: watch::Sender<Connections>,
}

/// The numbers of opened and closed connections, and of requests.
#[derive(Clone, Copy, Debug, Default)]
struct Connections {
    opened: usize,
    closed: usize,
    requests: usize,
}

impl Log {
    pub fn with(acts: impl IntoIterator<Item = Act>) -> Self {
        Self { acts: Mutex::new(acts.into_iter().collect()), ..Self::default() }
    }
}

#[derive(Clone)]
pub struct Upstream {
    pub port: u16,
    log: Arc<Log>,
}

impl Upstream {
    pub async fn start(acts: &[Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Log::with(acts.iter().cloned()));
        let serving = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self { port, log }
    }

    /// Returns the requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.log.seen.lock().unwrap().clone()
    }

    pub fn opened(&self) -> usize {
        self.log.connections.borrow().opened
    }

    /// Waits until this many connections are closed.
    pub async fn until_closed(&self, closed: usize) {
        let mut connections = self.log.connections.subscribe();
        let enough = |connections: &Connections| connections.closed >= closed;
        connections.wait_for(enough).await.unwrap();
    }

    /// Waits until this many requests have arrived.
    pub async fn until_requested(&self, requests: usize) {
        let mut connections = self.log.connections.subscribe();
        let enough = |connections: &Connections| connections.requests >= requests;
        connections.wait_for(enough).await.unwrap();
    }
}

/// Serves one connection according to the script.
pub async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, log: Arc<Log>) {
    log.connections.send_modify(|all| all.opened += 1);
    while let Some(seen) = read(&mut stream).await {
        log.seen.lock().unwrap().push(seen);
        let act = log.acts.lock().unwrap().pop_front();
        log.connections.send_modify(|all| all.requests += 1);
        match act.expect("one request more than the script has") {
            Act::Answer(status, body) => write(&mut stream, status, body).await,
            Act::AnswerAndClose(status, body) => {
                write(&mut stream, status, body).await;
                break;
            }
            Act::Cut => break,
            Act::CutAfter(bytes) => {
                let _ = stream.write_all(bytes.as_bytes()).await;
                break;
            }
            Act::Stall => std::future::pending().await,
        }
    }
    // Sends the closing message of TLS.
    let _ = stream.shutdown().await;
    drop(stream);
    log.connections.send_modify(|all| all.closed += 1);
}

/// Returns the next request, or `None` once the client has closed the connection.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(seen) = whole(&bytes) {
            return Some(seen);
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn whole(bytes: &[u8]) -> Option<Seen> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let seen = Seen { head: head.to_owned(), body: body.to_owned() };
    let length = seen.header("content-length").map_or("0", |length| length);
    (body.len() >= length.parse().unwrap()).then_some(seen)
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), status: &str, body: &str) {
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nlocation: /elsewhere\r\n\r\n{body}"
    );
    // The client may close the connection before the end of the answer.
    let _ = stream.write_all(answer.as_bytes()).await;
}
