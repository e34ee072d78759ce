//! Starts the real binary in its own folder.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use domain::{ApiKey, Category, Email, Money, Password, Reference, SenderName};
use serde_json::Value;
use service::{Actor, Clock, Config, Entropy, Limits, OpenError, Service};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _, Row as _};
use tempfile::TempDir;

use crate::client::{Answer, Connection, MULTIPART, bare, exchange, form, multipart, posted};

/// The maximum time that a test waits for a condition.
const DEADLINE: Duration = Duration::from_mins(1);
/// The pause between two checks of a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const LOG: &str = "log.txt";
/// The sandbox's delay in tests: short, but not zero.
const SANDBOX_DELAY_MS: &str = "20";

/// Calls `look` until it returns something.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    look_until(what, LOOK_AGAIN, look)
}

/// Like [`until`], but without a pause between the calls.
pub fn until_at_once<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    look_until(what, Duration::ZERO, look)
}

fn look_until<T>(what: &str, pause: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited too long for {what}");
        std::thread::sleep(pause);
    }
}

/// A process that is killed when the test ends, whether or not the test passes.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder with a database, and the commands of the binary in that folder.
pub struct Place {
    folder: TempDir,
    /// The URL of a database outside the folder.
    database_url: Option<String>,
}

impl Place {
    #[expect(
        clippy::new_without_default,
        reason = "it makes a folder, which nobody expects of a default"
    )]
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), database_url: None }
    }

    /// Creates a folder whose database is elsewhere.
    pub fn on(database_url: &str) -> Self {
        Self { database_url: Some(database_url.to_owned()), ..Self::new() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Prepares a command of the binary, with its own environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        // Cargo sets this variable when it runs tests and benchmarks of the binary's package.
        let binary = std::env::var_os("CARGO_BIN_EXE_heliograph")
            .expect("only the tests of the package `server` have the binary");
        self.command_of(&binary, arguments)
    }

    /// Prepares a command of another release's binary.
    pub fn command_of(&self, binary: &OsStr, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HELIOGRAPH_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .current_dir(self.path())
            .env("HELIOGRAPH_ADDR", "127.0.0.1:0")
            .env("HELIOGRAPH_OPS_ADDR", "127.0.0.1:0")
            .env("HELIOGRAPH_SANDBOX_DELAY_MS", SANDBOX_DELAY_MS);
        if let Some(url) = &self.database_url {
            command.env("HELIOGRAPH_DATABASE_URL", url);
        }
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed, and returns its JSON output.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that must be refused and print only the reason. Returns the reason.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.starts_with("heliograph: "), "{arguments:?}: {words}");
        words
    }

    /// Runs a command with this standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Asserts that every invariant holds.
    pub fn check(&self) {
        let checked = self.json(&["check"]);
        assert_eq!(checked["ok"], true, "{checked}");
    }

    /// Returns the names of the upload files on disk.
    pub fn spooled(&self) -> Vec<String> {
        let Ok(files) = std::fs::read_dir(self.path().join("data/spool")) else {
            return Vec::new();
        };
        let name = |file: std::fs::DirEntry| file.file_name().to_string_lossy().into_owned();
        files.map(|file| name(file.unwrap())).collect()
    }

    /// Expires the step-up authentication of all sessions.
    pub fn end_step_ups(&self) {
        self.execute("UPDATE sessions SET stepped_up_at = stepped_up_at - 600000");
    }

    /// Makes every account a customer. Sessions stay as they are.
    pub fn take_roles(&self) {
        self.execute("UPDATE accounts SET role = 'customer'");
    }

    /// Changes rows of the SQLite database.
    fn execute(&self, statement: &'static str) {
        self.with_database(async |database| {
            database.execute(statement).await.unwrap();
        });
    }

    /// Returns the number of rows in a table of the SQLite database. A condition may follow the
    /// table's name.
    pub fn rows(&self, table: &str) -> i64 {
        let count = AssertSqlSafe(format!("SELECT COUNT(*) AS n FROM {table}"));
        self.with_database(async |database| {
            let counting = sqlx::query(count).fetch_one(database);
            counting.await.unwrap().get("n")
        })
    }

    fn with_database<T>(&self, work: impl AsyncFnOnce(&mut AnyConnection) -> T) -> T {
        let file = self.path().join("data/heliograph.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            sqlx::any::install_default_drivers();
            let url = format!("sqlite:{}", file.display());
            work(&mut AnyConnection::connect(&url).await.unwrap()).await
        })
    }

    /// Opens the service, for operations that customers have only in the portal.
    pub fn with_service<T>(&self, work: impl AsyncFnOnce(&Service) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let path = self.path().join("data/heliograph.db");
        let file = || format!("sqlite:{}", path.display());
        let database_url = self.database_url.clone().unwrap_or_else(file);
        runtime.block_on(async {
            match Service::migrate(&database_url).await {
                // The running server has done it.
                Ok(()) | Err(OpenError::Served(_)) => {}
                Err(error) => panic!("{error}"),
            }
            let service = Service::open_beside(Config {
                database_url,
                prices: domain::Prices::new(money("0.05"), money("0.25")).unwrap(),
                currency: "USD".to_owned(),
                data_dir: self.path().join("data"),
                network: service::Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
                limits: Limits::default(),
                mail: service::MailSettings::default(),
                endpoints: service::EndpointRules::default(),
                opt_outs: service::OptOutSettings::default(),
                clock: Clock::system(),
                entropy: Entropy::system(),
            })
            .await
            .unwrap();
            let done = work(&service).await;
            service.close().await;
            done
        })
    }

    /// Adds a customer with a Pending application.
    pub fn application(&self, email: &str, category: Category, sender: Option<&str>) -> Keys {
        let email = Email::parse(email).unwrap();
        let password = Password::parse("correct horse battery").unwrap();
        let sender = sender.map(|name| SenderName::parse(name).unwrap());
        self.with_service(async |service| {
            let account = service
                .accounts()
                .add_account(&Actor::System, &email, &password, false)
                .await
                .unwrap();
            let new = service
                .applications()
                .create_application(account.id, category, sender.as_ref())
                .await
                .unwrap();
            Keys {
                account_id: account.id,
                reference: new.reference,
                live: new.live_key,
                test: new.test_key,
            }
        })
    }

    /// Adds a customer with an Active application and this balance.
    pub fn funded(&self, email: &str, balance: &str) -> Keys {
        let keys = self.application(email, Category::Sms, None);
        let reference = keys.reference.to_string();
        self.json(&["application", "approve", &reference]);
        let bank_id = format!("first-{reference}");
        self.json(&["deposit", "add", &reference, balance, "--bank-id", &bank_id]);
        keys
    }
}

pub fn money(text: &str) -> Money {
    Money::parse(text).unwrap()
}

/// An application with its keys, as its owner knows it.
pub struct Keys {
    pub account_id: i64,
    pub reference: Reference,
    pub live: ApiKey,
    pub test: ApiKey,
}

/// A running server. Dropping it kills the process, and fails the test if the process panicked.
pub struct TestServer {
    child: Child,
    pub place: Place,
    pub ready: Value,
    address: String,
    ops_address: String,
}

impl TestServer {
    /// Starts a server with demo data.
    pub fn demo() -> Self {
        Self::start(Place::new(), &["--demo"], &[])
    }

    /// Starts a server with an empty database.
    pub fn empty() -> Self {
        Self::start(Place::new(), &[], &[("HELIOGRAPH_ALLOW_SANDBOX", "true")])
    }

    pub fn start(place: Place, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let log = File::options().create(true).append(true).open(place.path().join(LOG)).unwrap();
        let mut child = place
            .command(&["serve", "--json"])
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let log = std::fs::read_to_string(place.path().join(LOG));
            panic!("the server didn't start: {line:?} {log:?}")
        });
        let address = |name: &str| {
            let url = ready[name].as_str().unwrap();
            url.split_once("://").unwrap().1.to_owned()
        };
        Self { address: address("url"), ops_address: address("ops_url"), child, place, ready }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the standard error of the process so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.place.path().join(LOG)).unwrap()
    }

    /// Returns the demo's live key.
    pub fn key(&self) -> &str {
        self.ready["api_key"].as_str().unwrap()
    }

    pub fn test_key(&self) -> &str {
        self.ready["test_key"].as_str().unwrap()
    }

    pub fn reference(&self) -> &str {
        self.ready["reference"].as_str().unwrap()
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.address)
    }

    pub fn exchange(&self, bytes: &[u8]) -> Answer {
        exchange(&self.address, bytes)
    }

    pub fn get(&self, target: &str) -> Answer {
        self.exchange(&bare("GET", target, &[]))
    }

    pub fn get_ops(&self, target: &str) -> Answer {
        exchange(&self.ops_address, &bare("GET", target, &[]))
    }

    pub fn send(&self, key: &str, pairs: &[(&str, &str)]) -> Answer {
        self.get(&format!("/sms/send/{key}?{}", form(pairs)))
    }

    pub fn post_form(&self, key: &str, pairs: &[(&str, &str)]) -> Answer {
        let body = form(pairs);
        let kind = "application/x-www-form-urlencoded";
        self.exchange(&posted(&format!("/sms/send/{key}"), kind, body.as_bytes()))
    }

    pub fn post_json(&self, key: &str, body: &[u8]) -> Answer {
        self.exchange(&posted(&format!("/sms/send/{key}"), "application/json", body))
    }

    /// Sends a message as a multipart body.
    pub fn post_parts(&self, key: &str, parts: &[(&str, &[u8])]) -> Answer {
        let target = format!("/sms/send/{key}");
        self.exchange(&posted(&target, MULTIPART, &multipart(parts)))
    }

    /// Uploads a batch as a multipart body.
    pub fn upload(&self, key: &str, parts: &[(&str, &[u8])]) -> Answer {
        let target = format!("/sms/bulk/{key}");
        self.exchange(&posted(&target, MULTIPART, &multipart(parts)))
    }

    /// Uploads numbers as a batch, which must be accepted. Returns its batchid.
    pub fn accepted_batch(&self, key: &str, numbers: &str) -> String {
        let parts = [("numbers", numbers.as_bytes()), ("message", b"Hello")];
        let answer = self.upload(key, &parts);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["batchid"].as_str().unwrap().to_owned()
    }

    pub fn batches(&self, key: &str, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/sms/batches/{key}?{query}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["batches"].as_array().unwrap().clone()
    }

    pub fn batch(&self, key: &str, batchid: &str) -> Value {
        let answer = self.get(&format!("/sms/batches/{key}/{batchid}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["batch"].clone()
    }

    /// Waits until all messages of a batch are final.
    pub fn done_batch(&self, key: &str, batchid: &str) -> Value {
        until("a finished batch", || {
            let batch = self.batch(key, batchid);
            (batch["status"] == "done").then_some(batch)
        })
    }

    /// Asserts that the demo data hasn't changed since the start.
    pub fn is_untouched(&self, what: &str) {
        assert_eq!(self.balance(self.key()), "10", "{what}");
        assert_eq!(self.count(self.key()), 0, "{what}");
        assert_eq!(self.batches(self.key(), "").len(), 0, "{what}");
        assert_eq!(self.place.spooled(), Vec::<String>::new(), "{what}");
    }

    /// Sends a message, which must be accepted. Returns its transid.
    pub fn accepted(&self, key: &str, number: &str) -> String {
        let answer = self.send(key, &[("number", number), ("message", "Hello")]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["transid"].as_str().unwrap().to_owned()
    }

    /// Returns the digits of the balance exactly as the API writes them.
    pub fn balance(&self, key: &str) -> String {
        let answer = self.get(&format!("/sms/balance/{key}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let (_, after) = text.split_once("\"balance\":").unwrap();
        after[..after.find([',', '}']).unwrap()].to_owned()
    }

    /// Returns the number of messages, up to 1000.
    pub fn count(&self, key: &str) -> usize {
        self.reports(key, "limit=1000").len()
    }

    pub fn reports(&self, key: &str, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/sms/reports/{key}?{query}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["reports"].as_array().unwrap().clone()
    }

    pub fn report(&self, key: &str, transid: &str) -> Value {
        let answer = self.get(&format!("/sms/reports/{key}/{transid}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["report"].clone()
    }

    /// Waits until a message is final.
    pub fn final_report(&self, key: &str, transid: &str) -> Value {
        until("a final status", || {
            let report = self.report(key, transid);
            (!report["final_at"].is_null()).then_some(report)
        })
    }

    /// Sends SIGTERM and waits for the exit code. The folder stays.
    pub fn stop(self) -> (Option<i32>, Place) {
        self.signal("TERM");
        self.stop_begun()
    }

    /// Waits for the exit code of a process that is already stopping.
    pub fn stop_begun(mut self) -> (Option<i32>, Place) {
        let status = self.child.wait().unwrap();
        (status.code(), self.leave())
    }

    /// Waits until a process ends after one of its threads panicked. Returns the exit code and the
    /// log, and removes the log from the folder.
    pub fn end_by_panic(mut self) -> (Option<i32>, String, Place) {
        let status = self.child.wait().unwrap();
        let log = self.log();
        assert!(log.contains("panic"), "nothing panicked:\n{log}");
        std::fs::remove_file(self.place.path().join(LOG)).unwrap();
        (status.code(), log, self.leave())
    }

    /// Kills the process, like a power cut.
    pub fn kill(mut self) -> Place {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.leave()
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }

    fn refuse_panics(&self) {
        let log = std::fs::read_to_string(self.place.path().join(LOG)).unwrap_or_default();
        assert!(!log.contains("panic"), "the server panicked:\n{log}");
    }

    fn leave(&mut self) -> Place {
        self.refuse_panics();
        std::mem::replace(&mut self.place, Place::new())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Both calls fail if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            self.refuse_panics();
        }
    }
}
