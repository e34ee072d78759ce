//! A scripted endpoint on a socket.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The endpoint's reaction to the next request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Writes these bytes, and keeps the connection.
    Answer(Vec<u8>),
    /// Writes these bytes and closes.
    AnswerAndClose(Vec<u8>),
    /// Writes the first bytes, and then the others again and again.
    Repeat(&'static str, Vec<u8>),
    /// Writes the first bytes, and then one `a` every 10 ms.
    Drip(&'static str),
}

/// A request that the endpoint received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// State that all connections share.
#[derive(Default)]
struct Log {
    acts: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    opened: Mutex<usize>,
    closed: watch::Sender<usize>,
}

pub struct Receiver {
    pub address: SocketAddr,
    log: Arc<Log>,
}

impl Receiver {
    pub async fn start(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::start_with(acts, None).await
    }

    pub async fn start_tls(acts: impl IntoIterator<Item = Act>, acceptor: TlsAcceptor) -> Self {
        Self::start_with(acts, Some(acceptor)).await
    }

    async fn start_with(
        acts: impl IntoIterator<Item = Act>,
        acceptor: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acts = Mutex::new(acts.into_iter().collect());
        let log = Arc::new(Log { acts, ..Log::default() });
        let shared = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *shared.opened.lock().unwrap() += 1;
                let (log, acceptor) = (Arc::clone(&shared), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => _ = serve(stream, &log).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                _ = serve(stream, &log).await;
                            }
                        }
                    }
                    log.closed.send_modify(|closed| *closed += 1);
                });
            }
        });
        Self { address, log }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.log.seen.lock().unwrap().clone()
    }

    /// The number of connections so far.
    pub fn opened(&self) -> usize {
        *self.log.opened.lock().unwrap()
    }

    /// Waits until the client has closed this many connections.
    pub async fn until_closed(&self, count: usize) {
        self.log.closed.subscribe().wait_for(|closed| *closed >= count).await.unwrap();
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, log: &Log) -> std::io::Result<()> {
    loop {
        let seen = read_request(&mut stream).await?;
        log.seen.lock().unwrap().push(seen);
        let act = log.acts.lock().unwrap().pop_front();
        match act.expect("the script has no more acts") {
            Act::Answer(bytes) => stream.write_all(&bytes).await?,
            Act::AnswerAndClose(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Act::Repeat(head, bytes) => {
                stream.write_all(head.as_bytes()).await?;
                loop {
                    stream.write_all(&bytes).await?;
                }
            }
            Act::Drip(head) => {
                stream.write_all(head.as_bytes()).await?;
                let mut ticks = tokio::time::interval(Duration::from_millis(10));
                loop {
                    ticks.tick().await;
                    stream.write_all(b"a").await?;
                }
            }
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut seen = Seen { head, body: Vec::new() };
    seen.body.resize(seen.header("content-length").unwrap().parse().unwrap(), 0);
    stream.read_exact(&mut seen.body).await?;
    Ok(seen)
}
