//! The real binary on a database of its own.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::machine;

/// More than the sends of a run can cost.
const DEPOSIT: &str = "100000000";

pub struct Server {
    child: Child,
    folder: TempDir,
    ready: Value,
}

/// The binary in a folder, with an environment of its own.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heliograph"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("HELIOGRAPH_ADDR", "127.0.0.1:0")
        .env("HELIOGRAPH_OPS_ADDR", "127.0.0.1:0")
        .env("HELIOGRAPH_ALLOW_SANDBOX", "true")
        // The log is written, as it would be in use; see log.txt.
        .stderr(File::create(folder.join("log.txt")).unwrap());
    command
}

/// Starts and waits for the line that says it is ready.
fn start(folder: &Path, arguments: &[&str]) -> (Child, Value) {
    let mut child = command(folder, arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

/// Times from the start of the process to the line that says it is ready, and the memory that the last
/// of them then holds.
pub fn starts(count: usize) -> (Vec<Duration>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut times = Vec::new();
    let mut rss = String::new();
    // The first start migrates and isn't counted.
    for _ in 0..=count {
        let started = Instant::now();
        let (mut child, _) = start(folder.path(), &["serve", "--json"]);
        times.push(started.elapsed());
        rss = machine::rss(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    (times.split_off(1), rss)
}

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (child, ready) = start(folder.path(), &["serve", "--demo", "--json"]);
        let server = Self {
            child,
            folder,
            ready,
        };
        let reference = server.text("/reference");
        let deposit = ["deposit", "add", &reference, DEPOSIT, "--bank-id", "bench"];
        assert!(
            command(server.folder.path(), &deposit)
                .output()
                .unwrap()
                .status
                .success()
        );
        server
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn text(&self, pointer: &str) -> String {
        self.ready
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap()
            .to_owned()
    }

    pub fn address(&self) -> &str {
        let url = self.ready["url"].as_str().unwrap();
        url.split_once("://").unwrap().1
    }

    pub fn send_request(&self) -> Vec<u8> {
        let key = self.text("/api_key");
        format!("GET /sms/send/{key}?number=57000001&message=Hello%20there HTTP/1.1\r\nHost: bench\r\n\r\n")
            .into_bytes()
    }

    /// A page asked for by a browser in which the demo's customer is signed in.
    pub fn page_request(&self, path: &str) -> Vec<u8> {
        let cookie = self.sign_in();
        format!(
            "GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: text/html\r\nCookie: {cookie}\r\n\r\n"
        )
        .into_bytes()
    }

    fn sign_in(&self) -> String {
        let email = self.text("/customer/email").replace('@', "%40");
        let form = format!(
            "email={email}&password={}&next=",
            self.text("/customer/password")
        );
        let request = format!(
            "POST /fn/sign-in HTTP/1.1\r\nHost: bench\r\nAccept: text/html\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let cookie = answer
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .and_then(|cookie| cookie.split(';').next());
        assert!(cookie.is_some(), "{answer}");
        cookie.unwrap_or_default().to_owned()
    }

    /// Every invariant holds after the load.
    pub fn check(&self) {
        let output = command(self.folder.path(), &["check"]).output().unwrap();
        println!(
            "heliograph check: {}",
            String::from_utf8_lossy(&output.stdout).trim()
        );
        assert!(output.status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
