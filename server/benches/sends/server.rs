//! The real binary on a database of its own.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use crate::postgres::cluster::Cluster;
use crate::rounds::Contender;
use crate::{http, machine};

/// More than the sends of a run can cost.
const DEPOSIT: &str = "100000000";
/// By when all that was accepted must be on its way.
const DEADLINE: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const DEMO: &[&str] = &["serve", "--demo", "--json"];
const COMMAND_LOG: &str = "command.txt";
const SERVE: &[&str] = &["serve", "--json"];

pub struct Server {
    child: Child,
    folder: TempDir,
    ready: Value,
    /// Where its database isn't a file.
    cluster: Option<Rc<Cluster>>,
}

/// The binary in a folder, with an environment of its own.
fn command(folder: &Path, log: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heliograph"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HELIOGRAPH_") {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .current_dir(folder)
        .env("HELIOGRAPH_ADDR", "127.0.0.1:0")
        .env("HELIOGRAPH_OPS_ADDR", "127.0.0.1:0")
        .env("HELIOGRAPH_ALLOW_SANDBOX", "true")
        // Written, as it would be in use.
        .stderr(File::create(folder.join(log)).unwrap());
    command
}

/// Starts and waits for the line that says it is ready.
fn start(folder: &Path, arguments: &[&str]) -> (Child, Value) {
    let mut child = command(folder, "log.txt", arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

fn folder_with(settings: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("heliograph.toml"), settings).unwrap();
    folder
}

/// Times from the start of the process to the line that says it is ready, and the memory that the last
/// of them then holds, in KiB.
pub fn starts(count: usize) -> (Vec<Duration>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut times = Vec::new();
    let mut rss = 0;
    // The first start migrates and isn't counted.
    for _ in 0..=count {
        let started = Instant::now();
        let (mut child, _) = start(folder.path(), SERVE);
        times.push(started.elapsed());
        rss = machine::rss_kib(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    (times.split_off(1), rss)
}

impl Server {
    /// With demo data and more money than a run can spend.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// The same on PostgreSQL.
    pub fn start_on(cluster: Cluster) -> Self {
        let mut server = Self::start_with(&cluster.setting());
        server.cluster = Some(Rc::new(cluster));
        server
    }

    /// One more process on the same PostgreSQL, in a folder of its own.
    pub fn start_beside(&self) -> Self {
        let cluster = self.cluster.clone().unwrap();
        let folder = folder_with(&cluster.setting());
        let (child, ready) = start(folder.path(), SERVE);
        let mut server = Self {
            child,
            folder,
            ready: self.ready.clone(),
            cluster: Some(cluster),
        };
        server.move_to(ready);
        server
    }

    /// The first with a settings file.
    pub fn start_with(settings: &str) -> Self {
        let folder = folder_with(settings);
        let (child, ready) = start(folder.path(), DEMO);
        let server = Self {
            child,
            folder,
            ready,
            cluster: None,
        };
        let reference = server.reference();
        server.call(&["deposit", "add", &reference, DEPOSIT, "--bank-id", "bench"]);
        server
    }

    /// Starts anew on the same data, after work on the database that nobody else has open. Without `--demo`: no
    /// password is hashed, which would leave memory behind.
    pub fn start_again(mut self, between: impl FnOnce(&Path)) -> Self {
        machine::signal(self.id(), "TERM");
        assert!(self.child.wait().unwrap().success());
        between(&self.folder.path().join("data/heliograph.db"));
        let (child, ready) = start(self.folder.path(), SERVE);
        self.child = child;
        self.move_to(ready);
        self
    }

    /// Takes over the addresses that a start without the demo's data has printed.
    fn move_to(&mut self, mut ready: Value) {
        for address in ["url", "ops_url"] {
            self.ready[address] = ready[address].take();
        }
    }

    /// Runs a command that must succeed; what it prints.
    pub fn call(&self, arguments: &[&str]) -> String {
        let output = command(self.folder.path(), COMMAND_LOG, arguments)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let log = || std::fs::read_to_string(self.folder.path().join(COMMAND_LOG)).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}{}", log());
        text
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

    /// In turns with others; its turn is over when all it accepted was handed to the carrier.
    pub fn contender(&self, request: Vec<u8>) -> Contender<'_> {
        Contender {
            addresses: vec![self.address().to_owned()],
            request,
            processes: self.processes(),
            settle: Box::new(|_| self.wait_until_sent()),
        }
    }

    /// Its own, and that of its database where it has one.
    pub fn processes(&self) -> Vec<u32> {
        let database = self.cluster.as_ref().map(|cluster| cluster.process());
        [self.id()].into_iter().chain(database).collect()
    }

    /// Waits until no message waits for a carrier.
    pub fn wait_until_sent(&self) {
        const NAME: &str = "heliograph_queue_messages ";
        let ops = self.text("/ops_url");
        let (_, address) = ops.split_once("://").unwrap();
        let started = Instant::now();
        loop {
            let metrics = http::fetch(address, "/metrics");
            let waiting = metrics.lines().find_map(|line| line.strip_prefix(NAME));
            if waiting.unwrap() == "0" {
                return;
            }
            assert!(started.elapsed() < DEADLINE, "{waiting:?} still wait");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// How many messages are stored as delivered.
    pub fn delivered(&self) -> u64 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let database = self.folder.path().join("data/heliograph.db");
        let count = "SELECT COALESCE(SUM(n), 0) FROM message_days WHERE status = 4";
        let delivered: i64 = runtime.block_on(async {
            let options = SqliteConnectOptions::new().filename(database);
            let mut db = options.read_only(true).connect().await.unwrap();
            sqlx::query_scalar(count).fetch_one(&mut db).await.unwrap()
        });
        delivered.unsigned_abs()
    }

    pub fn reference(&self) -> String {
        self.text("/reference")
    }

    pub fn key(&self) -> String {
        self.text("/api_key")
    }

    pub fn send_request(&self) -> Vec<u8> {
        let key = self.key();
        http::get(&format!(
            "/sms/send/{key}?number=57000001&message=Hello%20there"
        ))
    }

    /// The first page of the messages, a hundred of them.
    pub fn report_request(&self) -> Vec<u8> {
        self.filtered_request("")
    }

    /// The first page of the messages that fit.
    pub fn filtered_request(&self, filter: &str) -> Vec<u8> {
        http::get(&format!("/sms/reports/{}?limit=100{filter}", self.key()))
    }

    /// Pages asked for by a browser in which the demo's customer is signed in.
    pub fn page_requests(&self, paths: &[String]) -> Vec<Vec<u8>> {
        let cookie = self.sign_in();
        let request = |path: &String| {
            format!(
                "GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: text/html\r\nCookie: {cookie}\r\n\r\n"
            )
        };
        paths
            .iter()
            .map(|path| request(path).into_bytes())
            .collect()
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
        let answer = http::exchange(self.address(), request.as_bytes());
        let cookie = answer
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .and_then(|cookie| cookie.split(';').next());
        assert!(cookie.is_some(), "{answer}");
        cookie.unwrap_or_default().to_owned()
    }

    /// Every invariant holds after the load.
    pub fn check(&self) {
        println!("heliograph check: {}", self.call(&["check"]).trim());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
