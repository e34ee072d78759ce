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

/// The parameters are the request's body, and the number of requests before it.
type Script = dyn Fn(&Value, usize) -> Reply + Send + Sync;

pub struct Upstream {
    pub address: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Upstream {
    pub fn start(script: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script)
    }

    /// Listens at this address until the test ends.
    pub fn start_at(
        address: &str,
        script: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static,
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
        let mut requests = self.requests.lock().unwrap().clone();
        requests.retain(|request| request["to"] == number);
        requests
    }
}

/// Accepts every message. The carrier message ID is the transaction ID with the prefix `up-`.
pub fn accept(request: &Value) -> Reply {
    let id = format!("up-{}", request["ref"].as_str().unwrap());
    Reply::Answer(200, serde_json::json!({ "id": id }).to_string())
}

/// Serves one request.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Value>>, script: &Script) {
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

fn read(stream: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
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
    Some(serde_json::from_slice(&body).unwrap())
}
