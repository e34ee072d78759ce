//! HTTP requests as bytes, and single exchanges.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// The text of every message, 100 characters.
pub const TEXT: &str = "Dear customer, your parcel is on its way. It will be with you tomorrow \
    between 9 and 12. Thank you!!";
const _: () = assert!(TEXT.len() == 100, "of 100 characters");

/// The same text, percent-encoded for a query.
pub fn query_text() -> String {
    TEXT.replace(' ', "%20")
}

/// Returns a GET request that keeps the connection open.
pub fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: bench\r\n\r\n").into_bytes()
}

/// Header lines with which a browser requests a page, on a connection of its own.
pub const PAGE: &str = "Accept: text/html\r\nConnection: close\r\n";

/// Returns a POST request with a form. `head` has further header lines, each with its line end.
pub fn form(target: &str, head: &str, form: &str) -> Vec<u8> {
    let request = format!(
        "POST {target} HTTP/1.1\r\nHost: bench\r\n{head}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    request.into_bytes()
}

/// Returns what comes before and after a file in a request that uploads it in the field `name`. The
/// connection ends with the answer.
pub fn around(target: &str, name: &str, file: &str) -> [String; 2] {
    const BOUNDARY: &str = "divider";
    let part = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; \
         filename=\"rows.csv\"\r\nContent-Type: text/csv\r\n\r\n"
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n{part}",
        part.len() + file.len() + tail.len()
    );
    [head, tail]
}

/// Sends a GET on a connection of its own and returns the whole response.
pub fn fetch(address: &str, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes())
}

/// Sends a request on a connection of its own and returns the whole response. The request must have
/// `Connection: close`.
pub fn exchange(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the body of a response, which must be a 200 with JSON.
pub fn json(answer: &str) -> Value {
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}
