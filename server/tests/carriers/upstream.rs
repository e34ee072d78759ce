//! A scripted HTTP API of an upstream.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// How the upstream handles a request.
pub enum Reply {
    /// Answers with an HTTP status and a body.
    Answer(u16, String),
    /// Closes the connection.
    Cut,
    /// Keeps the connection open without an answer.
    Nothing,
}

/// A request that the upstream received.
#[derive(Clone)]
pub struct Request {
    pub head: String,
    pub body: String,
}

impl Request {
    pub fn first_line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The second parameter is the number of requests before this one.
type Script = dyn Fn(&Request, usize) -> Reply + Send + Sync;

pub struct Upstream {
    pub address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Upstream {
    pub fn start(script: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script)
    }

    /// Listens at this address until the test ends. All requests have JSON bodies.
    pub fn start_at(
        address: &str,
        script: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(address, move |request, before| script(&request.json(), before))
    }

    pub fn start_with(
        address: &str,
        script: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::default();
        let (seen, script): (_, Arc<Script>) = (Arc::clone(&requests), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &seen, script.as_ref()));
            }
        });
        Self { address, requests }
    }

    /// Returns an address without a listener.
    pub fn nobody() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    }

    /// Returns the bodies of the requests for a number so far.
    pub fn requests_for(&self, number: &str) -> Vec<Value> {
        let mut requests: Vec<Value> = self.requests().iter().map(Request::json).collect();
        requests.retain(|request| request["to"] == number);
        requests
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Accepts every message. The carrier message ID is the transaction ID with the prefix `up-`.
pub fn accept(request: &Value) -> Reply {
    let id = format!("up-{}", request["ref"].as_str().unwrap());
    Reply::Answer(200, serde_json::json!({ "id": id }).to_string())
}

/// Serves one request.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Request>>, script: &Script) {
    let mut stream = BufReader::new(stream);
    // The client left before its request was complete.
    let Some(request) = read(&mut stream) else {
        return;
    };
    let before = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    match script(&request, before) {
        Reply::Answer(status, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n");
            let answer = format!("{head}connection: close\r\n\r\n{body}");
            // The client may have given up.
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
        Reply::Cut => {}
        // Waits until the client closes the connection.
        Reply::Nothing => drop(stream.read(&mut [0])),
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        head.push_str(&line);
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if line.trim_end().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Request { head, body: String::from_utf8(body).unwrap() })
}
