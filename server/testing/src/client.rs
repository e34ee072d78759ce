//! A small blocking HTTP/1.1 client that sends exactly the given bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, Socket, Type};

/// Longer than any response takes, so that a hanging test ends.
const TIMEOUT: Duration = Duration::from_secs(40);

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the values of a header that may be repeated.
    #[allow(dead_code, reason = "only some of the tests look at cookies")]
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = move |(header, _): &&(String, String)| header.eq_ignore_ascii_case(name);
        let found = self.headers.iter().filter(named);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the header names, in lower case.
    #[allow(dead_code, reason = "only some of the tests look at all of them")]
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(name, _)| name.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub fn code(&self) -> u64 {
        self.json()["code"].as_u64().unwrap()
    }

    pub fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or_default().to_owned()
    }

    /// Asserts the status, code and reason, and the properties of every API response.
    pub fn is(&self, status: u16, code: u64, reason: &str) {
        let shown = String::from_utf8_lossy(&self.body);
        assert_eq!(
            (self.status, self.code(), self.reason().as_str()),
            (status, code, reason),
            "{shown}"
        );
        self.is_guarded();
        assert_eq!(self.header("content-type"), Some("application/json"));
        let json = self.json();
        assert_eq!(json["message"], json["text"], "{shown}");
        assert!(json["message"].as_str().is_some_and(|words| !words.is_empty()), "{shown}");
    }

    pub fn is_guarded(&self) {
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(self.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        let policy = self.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    }
}

/// A connection for several requests.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    pub fn open(address: &str) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// Connects from one of the machine's own addresses, such as 127.0.3.1.
    pub fn open_from(own: &str, address: &str) -> Self {
        let own = SocketAddr::new(own.parse().unwrap(), 0);
        let address: SocketAddr = address.parse().unwrap();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&own.into()).unwrap();
        socket.connect(&address.into()).unwrap();
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).unwrap();
    }

    /// # Errors
    /// When the connection is closed or cut.
    pub fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Sends a request and returns the status of the response. `None` if the connection ends
    /// without a response.
    pub fn try_status(&mut self, request: &[u8]) -> Option<u16> {
        self.try_write(request).ok()?;
        self.read().map(|answer| answer.status)
    }

    /// Closes the sending side of the connection.
    pub fn finish_writing(&mut self) {
        // Fails if the server has closed the connection already.
        let _ = self.0.get_mut().shutdown(Shutdown::Write);
    }

    /// Reads one response. `None` if the connection ends without one.
    pub fn read(&mut self) -> Option<Answer> {
        self.read_head().map(|(status, headers)| {
            let mut answer = Answer { status, headers, body: Vec::new() };
            if let Some(length) = answer.header("content-length") {
                let mut body = vec![0; length.parse().unwrap()];
                self.0.read_exact(&mut body).unwrap();
                answer.body = body;
            } else if answer.header("transfer-encoding") == Some("chunked") {
                answer.body = self.read_chunks();
            }
            answer
        })
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// Reads a line of a response's head.
    pub fn read_line(&mut self) -> String {
        self.line().expect("a line")
    }

    fn read_head(&mut self) -> Option<(u16, Vec<(String, String)>)> {
        let line = self.line()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        if status == 100 {
            self.line();
            return self.read_head();
        }
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                return Some((status, headers));
            };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    fn read_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Some(chunk) = self.read_chunk() {
            body.extend(chunk);
        }
        body
    }

    /// Returns the next chunk of a streamed response, or `None` at its end.
    pub fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let length = usize::from_str_radix(&self.line().unwrap(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        self.0.read_exact(&mut chunk).unwrap();
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }

    /// Reads the head of a streamed response.
    pub fn read_beginning(&mut self) -> Answer {
        let (status, headers) = self.read_head().expect("an answer");
        Answer { status, headers, body: Vec::new() }
    }

    /// Returns everything that comes until the server closes the connection.
    pub fn read_to_end_text(&mut self) -> String {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// Waits until the server closes the connection. Returns false if the connection fails instead.
    pub fn ends(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_ok()
    }
}

/// Sends bytes on a new connection and reads the response.
pub fn exchange(address: &str, bytes: &[u8]) -> Answer {
    let mut connection = Connection::open(address);
    connection.write(bytes);
    connection.read().expect("an answer")
}

/// Builds a request without a body.
pub fn bare(method: &str, target: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let headers: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{}\r\n", headers.concat()).into_bytes()
}

/// Builds a POST request with a body.
pub fn posted(target: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let headers = [("Content-Type", content_type), ("Content-Length", length.as_str())];
    let mut bytes = bare("POST", target, &headers);
    bytes.extend_from_slice(body);
    bytes
}

/// The content type of [`multipart`].
pub const MULTIPART: &str = "multipart/form-data; boundary=--divider";

/// Builds a multipart body as curl does. `bulksms` and `numbers` are files.
pub fn multipart(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, content) in parts {
        let about = match *name {
            "bulksms" | "numbers" => "; filename=\"rows.csv\"\r\nContent-Type: text/csv",
            _ => "",
        };
        let head = format!(
            "----divider\r\nContent-Disposition: form-data; name=\"{name}\"{about}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"----divider--\r\n");
    body
}

/// Percent-encodes everything except letters and digits.
pub fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Encodes `name=value&…`.
pub fn form(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}

/// Sends the same request over all connections at once and returns the statuses of the responses.
/// `None` if a connection was closed without a response.
pub fn statuses_at_once(connections: Vec<Connection>, request: &[u8]) -> Vec<Option<u16>> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = connections
            .into_iter()
            .map(|mut connection| scope.spawn(move || connection.try_status(request)))
            .collect();
        let clients = clients.into_iter();
        clients.map(|client| client.join().unwrap()).collect()
    })
}
