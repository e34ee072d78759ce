//! The release binary with a database of its own.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use domain::limits::LimitsChange;
use serde_json::Value;
use tempfile::TempDir;

use crate::metrics::Metrics;
use crate::postgres::cluster::Cluster;
use crate::requests::{DIGITS, NUMBERS, Requests};
use crate::rounds::Contender;
use crate::usage::Work;
use crate::{applications, http, machine, stored};

/// More than the sends of a run cost.
pub const DEPOSIT: &str = "100000000";
/// The time after a run by which no message should wait any more. The sandbox delivers a message
/// half a second after it was submitted.
const REST: Duration = Duration::from_secs(2);
/// The time in which all accepted messages must be submitted.
const DEADLINE: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const DEMO: &[&str] = &["serve", "--demo", "--json"];
const COMMAND_LOG: &str = "command.txt";
const SERVE: &[&str] = &["serve", "--json"];

pub struct Server {
    child: Child,
    folder: TempDir,
    ready: Value,
    /// The live keys of its applications, the demo's first.
    keys: Vec<String>,
    /// `None` on SQLite.
    cluster: Option<Rc<Cluster>>,
}

/// Returns a command that runs the binary in a folder, without the caller's settings.
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
        // The log goes to a file, as it would in production.
        .stderr(File::create(folder.join(log)).unwrap());
    command
}

/// Starts the binary and waits for the line that says it is ready.
fn start(folder: &Path, arguments: &[&str]) -> (Child, Value) {
    let mut child = command(folder, "log.txt", arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

/// Runs a command, which must succeed. Returns its output.
fn call(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, COMMAND_LOG, arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = || std::fs::read_to_string(folder.join(COMMAND_LOG)).unwrap();
    assert!(output.status.success(), "{arguments:?}: {text}{}", log());
    text
}

fn folder_with(settings: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("heliograph.toml"), settings).unwrap();
    folder
}

/// Measures the times from the start of the process until it is ready. Also returns the resident
/// memory after the last start, in KiB.
pub fn starts(count: usize) -> (Vec<Duration>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut times = Vec::new();
    let mut rss = 0;
    // The first start migrates the database and isn't counted.
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
    /// Starts on SQLite, with demo data and more balance than a run can use up.
    pub fn start() -> Self {
        Self::start_with("", None)
    }

    /// Starts on PostgreSQL, otherwise like [`Server::start`].
    pub fn start_on(cluster: Cluster) -> Self {
        Self::start_with(&cluster.setting(), Some(Rc::new(cluster)))
    }

    /// Starts on a Citus cluster with this many shards, otherwise like [`Server::start`].
    pub fn start_distributed(cluster: Cluster, shards: usize) -> Self {
        let folder = folder_with(&cluster.setting());
        call(folder.path(), &["distribute", "--shards", &shards.to_string()]);
        Self::start_in(folder, Some(Rc::new(cluster)))
    }

    /// Starts on SQLite with further settings, otherwise like [`Server::start`].
    pub fn start_set(settings: &str) -> Self {
        Self::start_with(settings, None)
    }

    fn start_with(settings: &str, cluster: Option<Rc<Cluster>>) -> Self {
        Self::start_in(folder_with(settings), cluster)
    }

    fn start_in(folder: TempDir, cluster: Option<Rc<Cluster>>) -> Self {
        let (child, ready) = start(folder.path(), DEMO);
        let keys = vec![text(&ready, "/api_key")];
        let server = Self { child, folder, ready, keys, cluster };
        let reference = server.reference();
        server.call(&["deposit", "add", &reference, DEPOSIT, "--bank-id", "bench"]);
        server
    }

    /// Starts another process on the same PostgreSQL database, in a folder of its own.
    pub fn start_beside(&self) -> Self {
        let cluster = self.cluster.clone().unwrap();
        let folder = folder_with(&cluster.setting());
        let (child, ready) = start(folder.path(), SERVE);
        let mut server = Self {
            child,
            folder,
            ready: self.ready.clone(),
            keys: self.keys.clone(),
            cluster: Some(cluster),
        };
        server.move_to(ready);
        server
    }

    /// Restarts on the same data. `between` runs while no process has the database open. The
    /// restart has no `--demo` flag and thus hashes no passwords, which would take memory.
    pub fn start_again(mut self, between: impl FnOnce(&mut Self)) -> Self {
        machine::signal(self.id(), "TERM");
        assert!(self.child.wait().unwrap().success());
        between(&mut self);
        let (child, ready) = start(self.folder.path(), SERVE);
        self.child = child;
        self.move_to(ready);
        self
    }

    /// Restarts with `count` applications in total.
    pub fn with_applications(self, count: usize) -> Self {
        self.start_again(|server| {
            let more = count - server.keys.len();
            let data = server.folder.path().join("data");
            let keys = applications::make(more, &server.database_url(), &data);
            server.keys.extend(keys);
        })
    }

    /// Restarts with one more application, which has these limits.
    pub fn with_limited_application(self, limits: LimitsChange) -> Self {
        self.start_again(|server| {
            let data = server.folder.path().join("data");
            let key = applications::make_limited(limits, &server.database_url(), &data);
            server.keys.push(key);
        })
    }

    /// Restarts with one more application, which is Pending. Returns its test key.
    pub fn with_pending_application(self) -> (Self, String) {
        let mut key = String::new();
        let server = self.start_again(|server| {
            let data = server.folder.path().join("data");
            key = applications::make_pending(&server.database_url(), &data);
        });
        (server, key)
    }

    /// Sets the addresses that a start without demo data printed.
    fn move_to(&mut self, mut ready: Value) {
        for address in ["url", "ops_url"] {
            self.ready[address] = ready[address].take();
        }
    }

    /// Runs a command, which must succeed. Returns its output.
    pub fn call(&self, arguments: &[&str]) -> String {
        call(self.folder.path(), arguments)
    }

    /// Checks that every invariant holds.
    pub fn check(&self) {
        println!("heliograph check: {}", self.call(&["check"]).trim());
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn address(&self) -> &str {
        host(&self.ready["url"])
    }

    pub fn database_url(&self) -> String {
        match &self.cluster {
            Some(cluster) => cluster.url().to_owned(),
            None => format!("sqlite:{}", self.folder.path().join("data/heliograph.db").display()),
        }
    }

    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_deref()
    }

    pub fn reference(&self) -> String {
        text(&self.ready, "/reference")
    }

    /// The live keys of its applications.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The key of the demo's application.
    pub fn key(&self) -> &str {
        &self.keys[0]
    }

    /// Returns a value from the line that said the server was ready.
    pub fn said(&self, pointer: &str) -> String {
        text(&self.ready, pointer)
    }

    /// Returns its own process, and those of its database servers.
    pub fn processes(&self) -> Vec<u32> {
        let database = self.cluster.iter().flat_map(|cluster| cluster.processes());
        [self.id()].into_iter().chain(database).collect()
    }

    /// Returns sends by the first `applications` of its applications.
    pub fn sends(&self, applications: usize) -> Requests {
        sends_by(&self.keys[..applications])
    }

    /// Returns the server for a comparison. A run is over when all accepted messages are delivered.
    pub fn contender(&self, requests: Requests) -> Contender<'_> {
        Contender {
            addresses: vec![self.address().to_owned()],
            requests,
            processes: self.processes(),
            work: Box::new(|| self.work()),
            rest: REST,
            settle: Box::new(|_| self.settle()),
        }
    }

    /// Returns the counts of the server or its database.
    pub fn work(&self) -> Work {
        match &self.cluster {
            Some(cluster) => cluster.work(),
            None => self.metrics().work(),
        }
    }

    /// Returns the number of commit groups so far.
    pub fn commit_groups(&self) -> u64 {
        self.metrics().work().transactions.unwrap()
    }

    pub fn metrics(&self) -> Metrics {
        Metrics::of(host(&self.ready["ops_url"]))
    }

    /// Waits until every message is final or scheduled. If some weren't yet, returns how many waited for a
    /// carrier.
    fn settle(&self) -> Option<u64> {
        let waiting = self.metrics().waiting();
        if waiting == 0 && stored::unfinished(&self.database_url()) == 0 {
            return None;
        }
        self.wait_until_final();
        Some(waiting)
    }

    pub fn wait_until_final(&self) {
        self.wait_until_sent();
        let url = self.database_url();
        wait_until("every message to be final", || stored::unfinished(&url) == 0);
    }

    /// Waits until no message waits for a carrier.
    pub fn wait_until_sent(&self) {
        wait_until("the queue to be empty", || self.metrics().waiting() == 0);
    }
}

/// Returns sends by the applications of these keys.
pub fn sends_by(keys: &[String]) -> Requests {
    let text = http::query_text();
    let request =
        |key: &String| http::get(&format!("/sms/send/{key}?number={DIGITS}&message={text}"));
    Requests::new(keys.iter().map(request), NUMBERS)
}

fn host(url: &Value) -> &str {
    url.as_str().unwrap().split_once("://").unwrap().1
}

fn text(value: &Value, pointer: &str) -> String {
    let word = value.pointer(pointer).and_then(Value::as_str);
    word.unwrap().to_owned()
}

fn wait_until(what: &str, mut look: impl FnMut() -> bool) {
    let started = Instant::now();
    while !look() {
        assert!(started.elapsed() < DEADLINE, "waited too long for {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
