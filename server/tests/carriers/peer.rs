//! A third-party SMSC in a process of its own, and its events.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, Once};

use serde_json::Value;
use testing::events::read_events;
use testing::harness::{Running, until};

/// The credentials that it accepts.
pub const SYSTEM_ID: &str = "heliograph";
pub const PASSWORD: &str = "secret";

/// The library that it uses.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The npm package `smpp`.
    Node,
    /// The crate `smpp34`.
    Smpp34,
}

/// The format of its message IDs.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    Text,
    /// Hexadecimal in answers, decimal in receipts.
    HexToDecimal,
}

pub struct Peer {
    pub port: u64,
    events: Arc<Mutex<Vec<Value>>>,
    /// The process ends when this is closed, even if the test is killed.
    input: Mutex<ChildStdin>,
    _process: Running,
}

/// A message as its recipient sees it, joined from its parts.
#[derive(Debug, PartialEq)]
pub struct Received {
    pub source: String,
    pub destination: String,
    pub text: String,
    /// The number of submits that it consists of.
    pub submits: usize,
}

impl Peer {
    pub fn start(kind: Kind, ids: Ids) -> Self {
        set_up();
        let mut command = match kind {
            Kind::Node => {
                let mut node = Command::new("node");
                node.arg(root().join("server/tests/peers/node/smsc.js"));
                node
            }
            // `.make/setup` builds it for development, whatever the profile of the tests.
            Kind::Smpp34 => Command::new(target().join("debug/smpp34-peer")),
        };
        let mut child = command
            .arg(match ids {
                Ids::Text => "text",
                Ids::HexToDecimal => "hex-to-decimal",
            })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let events = read_events(&mut child);
        let mut peer = Self {
            port: 0,
            events,
            input: Mutex::new(child.stdin.take().unwrap()),
            _process: Running(child),
        };
        peer.port =
            until("a listening SMSC", || peer.events_of("listening").first()?["port"].as_u64());
        peer
    }

    /// Makes the SMSC on npm's `smpp` deliver a message from a handset.
    pub fn deliver(&self, message: &Value) {
        writeln!(self.input.lock().unwrap(), "{message}").unwrap();
    }

    /// Returns all events with this name so far.
    pub fn events_of(&self, name: &str) -> Vec<Value> {
        let events = self.events.lock().unwrap();
        let wanted = events.iter().filter(|event| event["event"] == name);
        wanted.cloned().collect()
    }

    /// Returns all submits to a number so far, including refused ones.
    pub fn submits_to(&self, number: &str) -> Vec<Value> {
        let mut submits = self.events_of("submit");
        submits.retain(|submit| submit["destination"]["digits"] == number);
        submits
    }

    /// Returns the messages to a number, each once no matter how often it was submitted. Panics if
    /// a message has a missing or an extra part.
    pub fn received(&self, number: &str) -> Vec<Received> {
        let mut messages: Vec<(Value, Vec<Value>)> = Vec::new();
        for submit in self.submits_to(number) {
            let segment = &submit["segment"];
            let tie = segment["reference"].clone();
            match messages.iter_mut().find(|(other, _)| !tie.is_null() && *other == tie) {
                Some((_, parts)) => parts.push(submit),
                None => messages.push((tie, vec![submit])),
            }
        }
        messages.into_iter().map(|(_, parts)| whole(parts)).collect()
    }
}

fn whole(mut parts: Vec<Value>) -> Received {
    let number = |part: &Value| part["segment"]["number"].as_u64();
    parts.sort_by_key(number);
    if parts[0]["segment"].is_object() {
        let numbers: Vec<_> = parts.iter().filter_map(number).collect();
        let total = parts[0]["segment"]["total"].as_u64().unwrap();
        let all: Vec<u64> = (1..=total).collect();
        assert_eq!(numbers, all, "each part once: {parts:?}");
    }
    let one = |field: &dyn Fn(&Value) -> String| {
        let found = field(&parts[0]);
        assert!(parts.iter().all(|part| field(part) == found), "{parts:?}");
        found
    };
    Received {
        source: one(&|part| text_of(&part["source"]["digits"])),
        destination: one(&|part| text_of(&part["destination"]["digits"])),
        text: parts.iter().map(|part| text_of(&part["text"])).collect(),
        submits: parts.len(),
    }
}

/// Returns the text of a part. Panics if the part can't be decoded by itself.
fn text_of(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// Installs and builds the SMSCs once.
fn set_up() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let done = Command::new(root().join(".make/setup"))
            .arg("peers")
            .env("CARGO_TARGET_DIR", target())
            .status()
            .unwrap();
        assert!(done.success(), "`.make/setup peers` failed");
    });
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}
