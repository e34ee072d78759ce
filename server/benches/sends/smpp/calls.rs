//! The HTTP server to which Kannel reports deliveries. It counts the calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const END: &[u8] = b"\r\n\r\n";

/// Runs until the process ends.
pub struct Calls {
    address: SocketAddr,
    counts: Arc<Counts>,
}

/// Calls by kind of report.
#[derive(Default)]
struct Counts {
    /// Reports that a message was submitted.
    submitted: AtomicU64,
    delivered: AtomicU64,
}

impl Calls {
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        std::thread::spawn(move || serve(listener, &shared));
        Self { address, counts }
    }

    /// Returns the URL for Kannel, which puts the kind of report into the path.
    pub fn url(&self) -> String {
        format!("http://{}/%d", self.address)
    }

    /// Returns how many messages were reported both as submitted and as delivered.
    pub fn delivered(&self) -> u64 {
        let count = |count: &AtomicU64| count.load(Ordering::SeqCst);
        count(&self.counts.submitted).min(count(&self.counts.delivered))
    }
}

fn serve(listener: std::net::TcpListener, counts: &Arc<Counts>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(stream, Arc::clone(counts)));
        }
    });
}

async fn answer(mut stream: TcpStream, counts: Arc<Counts>) {
    let mut buffer = Vec::with_capacity(4096);
    while let Ok(1..) = stream.read_buf(&mut buffer).await {
        while let Some(end) = buffer.windows(END.len()).position(|window| window == END) {
            let request: Vec<u8> = buffer.drain(..end + END.len()).collect();
            let count = match request.as_slice() {
                [b'G', b'E', b'T', b' ', b'/', b'8', b' ', ..] => &counts.submitted,
                [b'G', b'E', b'T', b' ', b'/', b'1', b' ', ..] => &counts.delivered,
                other => panic!("{:?}", String::from_utf8_lossy(other)),
            };
            // A call counts only after its answer is written.
            if stream.write_all(ANSWER).await.is_err() {
                return;
            }
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}
