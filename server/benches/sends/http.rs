//! Requests as bytes, and one exchange at a time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// What every message says: 100 characters, as they stand in a file and in a query.
pub const TEXT: &str = "Dear customer, your parcel is on its way. It will be with you tomorrow \
    between 9 and 12. Thank you!!";
const _: () = assert!(TEXT.len() == 100, "of 100 characters");

/// The same in a query.
pub fn query_text() -> String {
    TEXT.replace(' ', "%20")
}

/// A request for a connection that goes on.
pub fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: bench\r\n\r\n").into_bytes()
}

/// Lines of a browser's head that asks for a page, on a connection of its own.
pub const PAGE: &str = "Accept: text/html\r\nConnection: close\r\n";

/// A form, with more lines of the head where there are some.
pub fn form(target: &str, head: &str, form: &str) -> Vec<u8> {
    let request = format!(
        "POST {target} HTTP/1.1\r\nHost: bench\r\n{head}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    request.into_bytes()
}

/// The whole answer to a GET on a connection of its own.
pub fn fetch(address: &str, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes())
}

/// The whole answer to a request that asks for the connection to be closed.
pub fn exchange(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The body of an answer that must be a 200 with JSON.
pub fn json(answer: &str) -> Value {
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}
