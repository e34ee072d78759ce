//! One process, which ends and starts again while clients use it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;
use testing::client::{Answer, bare, exchange};
use testing::harness::{Place, Running, until};

const SERVE: &[&str] = &["serve", "--json"];

pub struct Node {
    log: String,
    process: Mutex<Option<Process>>,
}

struct Process {
    child: Running,
    address: String,
    ops_address: String,
}

impl Node {
    /// Creates a node without starting it. Its log file contains `name`.
    pub fn new(name: &str) -> Self {
        Self { log: format!("log-{name}.txt"), process: Mutex::new(None) }
    }

    pub fn start(&self, place: &Place, environment: &[(&str, &str)]) {
        self.start_with(place.command(SERVE), place, environment);
    }

    /// Starts the node with another release's binary.
    pub fn start_release(&self, binary: &OsStr, place: &Place, environment: &[(&str, &str)]) {
        self.start_with(place.command_of(binary, SERVE), place, environment);
    }

    fn start_with(&self, mut serve: Command, place: &Place, environment: &[(&str, &str)]) {
        let path = place.path().join(&self.log);
        let log = File::options().create(true).append(true).open(&path).unwrap();
        let mut child = serve
            .env("HELIOGRAPH_LEASE_SECONDS", "10")
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        // From here on the process ends with the test.
        let child = Running(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let log = std::fs::read_to_string(&path).unwrap();
            panic!("a node didn't start: {line:?} {log}")
        });
        let address = |name: &str| {
            let url = ready[name].as_str().unwrap();
            url.split_once("://").unwrap().1.to_owned()
        };
        *self.process() =
            Some(Process { child, address: address("url"), ops_address: address("ops_url") });
    }

    /// Returns the address while the process runs.
    pub fn address(&self) -> Option<String> {
        Some(self.process().as_ref()?.address.clone())
    }

    pub fn ops_address(&self) -> Option<String> {
        Some(self.process().as_ref()?.ops_address.clone())
    }

    pub fn get(&self, target: &str) -> Answer {
        exchange(&self.address().unwrap(), &bare("GET", target, &[]))
    }

    pub fn get_ops(&self, target: &str) -> Answer {
        exchange(&self.ops_address().unwrap(), &bare("GET", target, &[]))
    }

    pub fn until_ready(&self) {
        until("a ready node", || (self.get_ops("/readyz").status == 200).then_some(()));
    }

    /// Kills the process, like a power cut.
    pub fn kill(&self) {
        // Dropping the process kills it.
        drop(self.process().take());
    }

    pub fn signal(&self, name: &str) {
        let id = self.process().as_ref().unwrap().child.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Stops the process with SIGTERM and waits until it has ended. Clients still find its address
    /// until then.
    pub fn stop(&self) {
        self.signal("TERM");
        let code = until("the end of a node", || {
            let mut process = self.process();
            let status = process.as_mut().unwrap().child.0.try_wait().unwrap();
            status.map(|status| status.code())
        });
        assert_eq!(code, Some(0));
        self.kill();
    }

    /// Returns what its processes wrote to standard error.
    pub fn log(&self, place: &Place) -> String {
        std::fs::read_to_string(place.path().join(&self.log)).unwrap()
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap()
    }
}
