//! The load generator: as many connections as asked for, each sending the next request when its answer
//! is whole. One thread, so that it takes as little as possible from what it measures.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Not counted, at the start of each run.
const WARM_UP: Duration = Duration::from_millis(300);

/// Connections that are made at a time.
const AT_ONCE: usize = 4;

pub struct Load {
    /// The connections are spread over them.
    pub addresses: Vec<String>,
    pub request: Vec<u8>,
    pub connections: usize,
    pub duration: Duration,
}

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// All answers, those of the warm-up among them.
    pub answers: u64,
    /// Processor time of an answer and all that followed from it, where it was measured: it says more than the
    /// rate on a machine that does something else besides.
    pub cpu: Option<Duration>,
}

impl Measured {
    /// The run in the middle by rate.
    pub fn median(mut runs: Vec<Self>) -> Self {
        runs.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        runs[runs.len() / 2]
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let (p50, p99) = (ms(self.p50), ms(self.p99));
        write!(f, "{:.0}/s p50 {p50:.2} p99 {p99:.2} ms", self.per_second)?;
        match self.cpu {
            Some(cpu) => write!(f, " cpu {} µs", cpu.as_micros()),
            None => Ok(()),
        }
    }
}

impl Load {
    pub fn run(self) -> Measured {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (mut latencies, answers) = runtime.block_on(async {
            let connections = self.connect().await;
            let mut answers = connections.len() as u64;
            let from = Instant::now() + WARM_UP;
            let until = from + self.duration;
            let tasks: Vec<_> = connections
                .into_iter()
                .map(|connection| tokio::spawn(talk(connection, self.request.clone(), from, until)))
                .collect();
            let mut latencies = Vec::new();
            for task in tasks {
                let (counted, all) = task.await.unwrap();
                latencies.extend(counted);
                answers += all;
            }
            (latencies, answers)
        });
        latencies.sort_unstable();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let per_second = latencies.len() as f64 / self.duration.as_secs_f64();
        Measured {
            per_second,
            p50: percentile(&latencies, 0.5),
            p99: percentile(&latencies, 0.99),
            answers,
            cpu: None,
        }
    }

    /// Connections that have had an answer each. A few at a time: Kannel lets ten wait to be accepted.
    async fn connect(&self) -> Vec<TcpStream> {
        let connect = async |address: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            ask(&mut stream, &self.request, &mut Vec::new()).await;
            stream
        };
        let addresses = self.addresses.iter().cycle().take(self.connections);
        let addresses: Vec<_> = addresses.collect();
        let mut connections = Vec::with_capacity(self.connections);
        for some in addresses.chunks(AT_ONCE) {
            let some = some.iter().map(|address| connect(address));
            connections.extend(futures_util::future::join_all(some).await);
        }
        connections
    }
}

/// The time that this part of them took at most; of sorted ones.
pub fn percentile(times: &[Duration], part: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into what fits in memory"
    )]
    let index = (times.len() as f64 * part) as usize;
    let last = times.len().saturating_sub(1);
    times.get(index.min(last)).copied().unwrap_or_default()
}

/// The times of the answers that count, and how many answers there were.
async fn talk(
    mut stream: TcpStream,
    request: Vec<u8>,
    from: Instant,
    until: Instant,
) -> (Vec<Duration>, u64) {
    let mut buffer = Vec::with_capacity(64 * 1024);
    let mut latencies = Vec::new();
    let mut answers = 0;
    loop {
        let started = Instant::now();
        if started >= until {
            return (latencies, answers);
        }
        ask(&mut stream, &request, &mut buffer).await;
        answers += 1;
        if started >= from {
            latencies.push(started.elapsed());
        }
    }
}

async fn ask(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>) {
    stream.write_all(request).await.unwrap();
    read_answer(stream, buffer).await;
}

/// Reads one answer, which must be a 200, or a 202 as Kannel's are.
async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    buffer.clear();
    loop {
        if whole(buffer) {
            break;
        }
        let read = stream.read_buf(buffer).await.unwrap();
        assert!(read > 0, "the server closed the connection");
    }
    assert!(
        buffer.starts_with(b"HTTP/1.1 200") || buffer.starts_with(b"HTTP/1.1 202"),
        "{}",
        String::from_utf8_lossy(&buffer[..buffer.len().min(400)])
    );
}

/// Whether head and body are there: by length, or by the last chunk.
fn whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let body = &answer[head + 4..];
    match content_length(&answer[..head]) {
        Some(length) => body.len() >= length,
        None => body.ends_with(b"0\r\n\r\n"),
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length: ";
    let at = head
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME))?;
    let digits = head[at + NAME.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0')))
}
