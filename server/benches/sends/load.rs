//! The load generator. Each connection sends its next request as soon as it has the whole response
//! to the last one. One thread polls all connections, so that the generator takes as little CPU
//! time as possible from the server.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use crate::machine;
use crate::requests::Requests;

/// The start of each run, which isn't counted.
const WARM_UP: Duration = Duration::from_millis(300);
/// Connections opened at the same time. Kannel's backlog of connections to accept is ten.
const AT_ONCE: usize = 4;
const BUFFER: usize = 64 * 1024;
/// The time in which a response must arrive.
const PATIENCE: Duration = Duration::from_mins(1);

pub struct Load<'a> {
    /// The connections are spread over these.
    pub addresses: &'a [String],
    pub requests: &'a mut Requests,
    pub connections: usize,
    pub duration: Duration,
}

/// The responses of a run.
pub struct Answers {
    /// Responses to requests sent after the warm-up.
    pub times: Vec<Answer>,
    /// All responses.
    pub count: u64,
    /// How long requests were sent after the warm-up.
    pub duration: Duration,
    /// The CPU time of the generator, without the time for opening connections.
    pub cpu: Duration,
}

#[derive(Clone, Copy)]
pub struct Answer {
    pub asked: Instant,
    pub took: Duration,
}

struct Connection {
    stream: mio::net::TcpStream,
    /// The received part of a response.
    part: Vec<u8>,
    asked: Instant,
}

impl Load<'_> {
    pub fn run(mut self) -> Answers {
        let streams = self.connect();
        let from = Instant::now() + WARM_UP;
        let mut running = Running {
            poll: Poll::new().unwrap(),
            connections: Vec::with_capacity(streams.len()),
            requests: self.requests,
            from,
            until: from + self.duration,
            answers: Answers {
                times: Vec::new(),
                count: streams.len() as u64,
                duration: self.duration,
                cpu: Duration::ZERO,
            },
        };
        let before = machine::own_cpu();
        running.begin(streams);
        let mut answers = running.finish();
        answers.cpu = machine::own_cpu().saturating_sub(before);
        answers
    }

    /// Opens the connections and sends one request on each.
    fn connect(&mut self) -> Vec<TcpStream> {
        let addresses = self.addresses.iter().cycle().take(self.connections);
        let addresses: Vec<_> = addresses.collect();
        let mut streams = Vec::with_capacity(self.connections);
        for some in addresses.chunks(AT_ONCE) {
            let mut talkers: Vec<_> = some.iter().map(|address| Talker::connect(address)).collect();
            for talker in &mut talkers {
                talker.write(self.requests.next());
            }
            for mut talker in talkers {
                talker.read();
                streams.push(talker.stream);
            }
        }
        streams
    }
}

struct Running<'a> {
    poll: Poll,
    connections: Vec<Connection>,
    requests: &'a mut Requests,
    from: Instant,
    until: Instant,
    answers: Answers,
}

impl Running<'_> {
    /// Sends a request on every connection.
    fn begin(&mut self, streams: Vec<TcpStream>) {
        for (number, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true).unwrap();
            let mut stream = mio::net::TcpStream::from_std(stream);
            let registry = self.poll.registry();
            registry.register(&mut stream, Token(number), Interest::READABLE).unwrap();
            self.connections.push(Connection { stream, part: Vec::new(), asked: Instant::now() });
            self.ask(number);
        }
    }

    /// Sends the next request on each connection that has its response, until the time is over.
    fn finish(mut self) -> Answers {
        let mut events = Events::with_capacity(self.connections.len());
        let mut buffer = vec![0; BUFFER];
        let mut asking = self.connections.len();
        while asking > 0 {
            self.poll.poll(&mut events, Some(PATIENCE)).unwrap();
            assert!(!events.is_empty(), "no answer within {PATIENCE:?}");
            for event in &events {
                let number = event.token().0;
                if !self.connections[number].answered(&mut buffer) {
                    continue;
                }
                self.count(number);
                if Instant::now() < self.until {
                    self.ask(number);
                } else {
                    asking -= 1;
                }
            }
        }
        self.answers
    }

    fn ask(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        let request = self.requests.next();
        connection.asked = Instant::now();
        let written = connection.stream.write(request).unwrap();
        assert_eq!(written, request.len(), "the socket's buffer takes a whole request");
    }

    fn count(&mut self, number: usize) {
        let asked = self.connections[number].asked;
        self.answers.count += 1;
        if asked >= self.from {
            let took = asked.elapsed();
            self.answers.times.push(Answer { asked, took });
        }
    }
}

impl Connection {
    /// Reads all available bytes. Returns whether the response is complete; panics if it isn't a
    /// success.
    fn answered(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            let read = match self.stream.read(buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("reading an answer: {error}"),
            };
            assert!(read > 0, "the server closed the connection");
            // Most responses arrive in one piece.
            if self.part.is_empty() && whole(&buffer[..read]) {
                assert_good(&buffer[..read]);
                return true;
            }
            self.part.extend_from_slice(&buffer[..read]);
            if whole(&self.part) {
                assert_good(&self.part);
                self.part.clear();
                return true;
            }
        }
    }
}

/// One connection, used for one request at a time.
pub struct Talker {
    stream: TcpStream,
    buffer: Vec<u8>,
    answer: Vec<u8>,
}

impl Talker {
    pub fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, buffer: vec![0; BUFFER], answer: Vec::new() }
    }

    pub fn ask(&mut self, request: &[u8]) {
        self.write(request);
        self.read();
    }

    /// Sends a request and returns the status of the response. `None` if there was no response; the
    /// connection can't be used after that.
    pub fn status_of(&mut self, request: &[u8]) -> Option<u16> {
        self.try_write(request)?;
        self.status()
    }

    /// Sends a request without waiting for the response. `None` if the connection is closed.
    pub fn try_write(&mut self, request: &[u8]) -> Option<()> {
        self.stream.write_all(request).ok()
    }

    /// Returns the status of the next response. `None` if there is no response.
    pub fn status(&mut self) -> Option<u16> {
        self.receive().ok()?;
        status_in(&self.answer)
    }

    /// Returns the last response.
    pub fn answer(&self) -> &[u8] {
        &self.answer
    }

    fn write(&mut self, request: &[u8]) {
        self.stream.write_all(request).unwrap();
    }

    fn read(&mut self) {
        self.receive().unwrap();
        assert_good(&self.answer);
    }

    fn receive(&mut self) -> std::io::Result<()> {
        self.answer.clear();
        while !whole(&self.answer) {
            let read = self.stream.read(&mut self.buffer)?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.answer.extend_from_slice(&self.buffer[..read]);
        }
        Ok(())
    }

    /// Sends `count` requests, or fewer if they take longer than `at_most`. Returns the response
    /// times.
    pub fn ask_all(
        &mut self,
        requests: &mut Requests,
        count: usize,
        at_most: Duration,
    ) -> Vec<Duration> {
        let (mut times, started) = (Vec::new(), Instant::now());
        while times.len() < count && started.elapsed() < at_most {
            let asked = Instant::now();
            self.ask(requests.next());
            times.push(asked.elapsed());
        }
        times
    }
}

/// Returns the status at the start of a response.
pub fn status_in(answer: &[u8]) -> Option<u16> {
    let (_, status) = answer.split_at_checked("HTTP/1.1 ".len())?;
    std::str::from_utf8(status.get(..3)?).ok()?.parse().ok()
}

/// Accepts 200, and 202, which Kannel answers with.
fn assert_good(answer: &[u8]) {
    assert!(
        answer.starts_with(b"HTTP/1.1 200") || answer.starts_with(b"HTTP/1.1 202"),
        "{}",
        String::from_utf8_lossy(&answer[..answer.len().min(400)])
    );
}

/// Returns whether head and body are complete, by Content-Length or by the last chunk.
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
    let at = head.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME))?;
    let digits = head[at + NAME.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0')))
}
