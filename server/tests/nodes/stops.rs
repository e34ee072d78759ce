//! A client that cancels messages and batches, and pauses and resumes batches.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use testing::client::bare;
use testing::harness::{Keys, until};

use crate::cluster::Cluster;
use crate::judging::text;
use crate::load::{Answered, Asking, LONG, Load, REPEATS, ask};

const SEED: u64 = 20_261_127;
/// The pause between two requests.
const PACE: Duration = Duration::from_millis(40);

/// The result of a cancellation, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cancel {
    /// Nothing was left to cancel.
    Refused,
    /// No answer: it may have been executed or not.
    Lost,
    /// The number of cancelled messages.
    Answered(usize),
}

/// The cancellations, and the number of other changes by their answer.
#[derive(Default)]
pub struct Stops {
    /// By the API key and the transaction ID or batch ID.
    cancels: Mutex<BTreeMap<(String, String), Cancel>>,
    changes: Mutex<BTreeMap<String, usize>>,
}

impl Stops {
    /// Changes random messages and batches until the load is over.
    pub fn run(&self, load: &Load<'_>) {
        let mut random = StdRng::seed_from_u64(SEED);
        let mut asking = Asking::new(load, SEED);
        while !load.is_over() {
            let upload = random.random_range(0..2) == 0;
            if let Some((application, id)) = load.recent(&mut random, upload) {
                let key = load.key(application);
                match random.random_range(0..5) {
                    0 | 1 if upload => self.change(&mut asking, key, &id, "pause"),
                    2 | 3 if upload => self.change(&mut asking, key, &id, "resume"),
                    _ => self.cancel(&mut asking, key, &id, upload),
                }
            }
            std::thread::sleep(PACE);
        }
    }

    /// Cancels with an idempotency key, so that every answer to a repeat is that to the first
    /// request.
    fn cancel(&self, asking: &mut Asking<'_>, key: &str, id: &str, upload: bool) {
        let field = if upload { "batchid" } else { "transid" };
        let target = format!("/sms/cancel/{key}?{field}={id}");
        let idempotency = format!("cancel {id}");
        let headers = [("Idempotency-Key", idempotency.as_str())];
        let (mut cancel, mut was_lost) = (Cancel::Lost, false);
        for _ in 0..REPEATS {
            cancel = match asking.exchange(&request(&target, &headers)) {
                Some((200, body)) => Cancel::Answered(count(&body["cancelled"])),
                Some((409, body)) => {
                    assert_eq!(body["reason"], "not_cancellable", "{body}");
                    // A lost request may have cancelled.
                    if was_lost { Cancel::Lost } else { Cancel::Refused }
                }
                // A full disk answers 500.
                Some((500 | 503, _)) | None => {
                    was_lost = true;
                    continue;
                }
                Some(answer) => panic!("{answer:?}"),
            };
            break;
        }
        let mut cancels = self.cancels.lock().unwrap();
        let known = cancels.entry((key.to_owned(), id.to_owned())).or_insert(cancel);
        if let (Cancel::Answered(_), Cancel::Answered(_)) = (*known, cancel) {
            assert_eq!(*known, cancel, "two answers about {id}");
        }
        *known = cancel.max(*known);
    }

    fn change(&self, asking: &mut Asking<'_>, key: &str, id: &str, change: &str) {
        let target = format!("/sms/batches/{key}/{id}?{change}=1");
        let answer = match asking.exchange(&request(&target, &[])) {
            Some((200 | 500 | 503, body)) => body["code"].to_string(),
            Some((409, body)) if body["reason"] == "batch_ended" => "ended".to_owned(),
            Some(answer) => panic!("{answer:?}"),
            None => "none".to_owned(),
        };
        *self.changes.lock().unwrap().entry(format!("{change} {answer}")).or_default() += 1;
    }

    /// Checks that the answers to an application's cancellations are true. Returns the number of
    /// its cancelled messages, with rows that never became messages.
    pub fn judge(&self, keys: &Keys, reports: &[Value], batches: &[Value]) -> usize {
        let cancels = self.cancels.lock().unwrap();
        let of = |id: &Value| {
            let key = (keys.live.expose().to_owned(), id.as_str()?.to_owned());
            cancels.get(&key).copied()
        };
        let mut cancelled = 0;
        for report in reports {
            let is_cancelled = report["status"] == "cancelled";
            cancelled += usize::from(is_cancelled);
            match of(&report["transid"]) {
                Some(Cancel::Answered(count)) => assert!(count == 1 && is_cancelled, "{report}"),
                Some(Cancel::Lost) => {}
                // A refused cancellation of the message cancelled nothing, but that of its batch
                // may have.
                Some(Cancel::Refused) | None => {
                    let batch = of(&report["batchid"]);
                    let may_be = matches!(batch, Some(Cancel::Answered(_) | Cancel::Lost));
                    assert!(!is_cancelled || may_be, "nobody cancelled {report}");
                }
            }
        }
        for batch in batches {
            let its = reports.iter().filter(|report| report["batchid"] == batch["batchid"]);
            let its: Vec<&Value> = its.collect();
            let ended = its.iter().filter(|report| report["status"] == "cancelled").count();
            let missing = count(&batch["rows"]) - its.len();
            assert_eq!(count(&batch["counts"]["cancelled"]), ended + missing, "{batch}");
            cancelled += missing;
            match of(&batch["batchid"]) {
                // Messages that were claimed at that moment, and came back without a submit, are
                // cancelled later.
                Some(Cancel::Answered(count)) => assert!(count <= ended + missing, "{batch}"),
                Some(Cancel::Lost) => {}
                Some(Cancel::Refused) | None => {
                    assert_ne!(text(batch, "status"), "cancelled", "nobody cancelled {batch}");
                }
            }
        }
        cancelled
    }
}

impl std::fmt::Display for Stops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for ((_, id), cancel) in self.cancels.lock().unwrap().iter() {
            let words = match (cancel, id.starts_with("b_")) {
                (Cancel::Answered(_), true) => "batches",
                (Cancel::Answered(_), false) => "messages",
                (Cancel::Lost, _) => "lost",
                (Cancel::Refused, _) => "refused",
            };
            *counts.entry(words).or_default() += 1;
        }
        write!(f, "cancelled: {counts:?}; changed: {:?}", self.changes.lock().unwrap())
    }
}

/// Resumes all paused batches.
pub fn resume_all(cluster: &Cluster, applications: &[&Keys]) {
    for keys in applications {
        until("no batch is paused", || {
            let batches = cluster.batches(keys);
            let paused = batches.iter().filter(|batch| batch["status"] == "paused");
            let paused: Vec<&str> = paused.map(|batch| text(batch, "batchid")).collect();
            for id in &paused {
                let target = format!("/sms/batches/{}/{id}?resume=1", keys.live.expose());
                let _: Option<Answered> =
                    ask(&cluster.nodes[0].address()?, &request(&target, &[]), LONG);
            }
            paused.is_empty().then_some(())
        });
    }
}

fn request(target: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let all = [("Connection", "close"), ("Content-Length", "0")];
    let all: Vec<_> = all.iter().chain(headers).copied().collect();
    bare("POST", target, &all)
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}
