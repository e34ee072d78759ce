//! An endpoint that receives webhooks.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A delivery.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Listens on a port of its own until the process ends.
pub struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// Answers each delivery with the status that `answer` returns. `answer` gets the number of
    /// earlier deliveries.
    pub fn start(answer: impl Fn(usize, &Received) -> u16 + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (answer, shared) = (Arc::new(answer), Arc::clone(&received));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (answer, received) = (Arc::clone(&answer), Arc::clone(&shared));
                std::thread::spawn(move || serve(&connection, &received, answer.as_ref()));
            }
        });
        Self { address, received }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

/// Answers the requests of a connection until it ends.
fn serve(
    connection: &TcpStream,
    received: &Mutex<Vec<Received>>,
    answer: &(impl Fn(usize, &Received) -> u16 + ?Sized),
) -> Option<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut delivery = Received { path, headers, body: Vec::new() };
        let length = delivery.header("content-length").parse().ok()?;
        delivery.body = vec![0; length];
        reader.read_exact(&mut delivery.body).ok()?;
        let status = {
            let mut received = received.lock().unwrap();
            let status = answer(received.len(), &delivery);
            received.push(delivery);
            status
        };
        let answer = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: 2\r\n\r\nok");
        (&*connection).write_all(answer.as_bytes()).ok()?;
    }
}
