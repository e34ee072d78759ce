//! Compares the answers that clients got with the reports, the balances, and the carrier's submits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use domain::Money;
use serde_json::Value;
use testing::harness::{Keys, money};

use crate::cluster::{Cluster, DEPOSIT};
use crate::load::{Outcome, Sent};
use crate::stops::Stops;

/// The price of a local page in micro-units.
const PRICE_MICROS: i64 = 50_000;
/// The longest time without progress. It is longer than a lost answer can delay a message: the node
/// waits for the answer, and sends the message again half a minute later.
const STANDSTILL: Duration = Duration::from_secs(75);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Counts of an application's messages.
#[derive(Default)]
pub struct Judgement {
    pub messages: usize,
    pub unknown: usize,
    /// Unknown messages that the carrier has.
    pub came_unknown: usize,
    pub twice: usize,
    /// Cancelled messages and rows of uploads.
    pub cancelled: usize,
}

impl std::fmt::Display for Judgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { messages, unknown, came_unknown, twice, cancelled } = self;
        write!(
            f,
            "{messages} messages, {unknown} unknown ({came_unknown} came), {twice} came twice, \
             {cancelled} cancelled"
        )
    }
}

/// Waits until no message is queued or being sent.
pub fn until_settled(cluster: &Cluster, applications: &[&Keys]) {
    let (mut seen, mut since) = (None, Instant::now());
    loop {
        let now = (cluster.queued(), cluster.carrier.taken(), cluster.carrier.open_receipts());
        let open = if (now.0, now.2) == (0, 0) {
            let open = applications.iter().filter_map(|keys| open(cluster, keys));
            open.take(1).collect()
        } else {
            vec!["a queue that isn't empty, or receipts that aren't acknowledged".to_owned()]
        };
        if open.is_empty() {
            return;
        }
        if seen != Some(now) {
            (seen, since) = (Some(now), Instant::now());
        }
        assert!(
            since.elapsed() < STANDSTILL,
            "no progress; queued, submitted, unacknowledged receipts: {now:?}; \
             still open: {open:?}"
        );
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Returns an upload with rows that aren't messages yet, or a message that isn't final.
fn open(cluster: &Cluster, keys: &Keys) -> Option<String> {
    let key = keys.live.expose();
    let is_open =
        |batch: &&Value| matches!(text(batch, "status"), "expanding" | "scheduled" | "paused");
    if let Some(batch) = cluster.batches(keys).iter().find(is_open) {
        return Some(batch.to_string());
    }
    let on_its_way =
        |report: &&Value| !matches!(text(report, "status"), "delivered" | "unknown" | "cancelled");
    let reports = cluster.reports(keys);
    let transid = text(reports.iter().find(on_its_way)?, "transid");
    let report = cluster.nodes[0].get(&format!("/sms/reports/{key}/{transid}"));
    Some(report.text())
}

/// Checks that the answers are true, and that no message was submitted more than `most` times.
pub fn judge(cluster: &Cluster, keys: &Keys, sent: &[&Sent], most: usize) -> Judgement {
    judge_with(cluster, keys, (sent, &Stops::default()), most)
}

/// Like [`judge`], while messages and batches were cancelled.
pub fn judge_with(
    cluster: &Cluster,
    keys: &Keys,
    (sent, stops): (&[&Sent], &Stops),
    most: usize,
) -> Judgement {
    let reports = cluster.reports(keys);
    let batches = cluster.batches(keys);
    let mut by_number: HashMap<usize, Vec<&Value>> = HashMap::new();
    for report in &reports {
        let number = text(report, "number").parse().unwrap();
        by_number.entry(number).or_default().push(report);
    }
    let cancelled = batches.iter().filter(|batch| batch["status"] == "cancelled");
    let cancelled: HashSet<&str> = cancelled.map(|batch| text(batch, "batchid")).collect();
    for sent in sent {
        compare(cluster, sent, &by_number, &cancelled);
    }
    let known: usize = sent.iter().map(|sent| sent.numbers.len()).sum();
    assert!(reports.len() <= known, "messages that no client sent");

    let mut judgement = Judgement { messages: reports.len(), ..Judgement::default() };
    for report in &reports {
        let came = cluster.carrier.count(text(report, "number"));
        assert!(came <= most, "came {came} times: {report}");
        judgement.twice += usize::from(came == 2);
        assert_eq!(report["cost"].to_string(), "0.05", "{report}");
        let is_cancelled = report["status"] == "cancelled";
        assert_eq!(report["released"] == report["cost"], is_cancelled, "{report}");
        match text(report, "status") {
            "delivered" => assert!(came > 0, "never came: {report}"),
            "unknown" => {
                judgement.unknown += 1;
                judgement.came_unknown += usize::from(came > 0);
            }
            "cancelled" => assert_eq!(came, 0, "cancelled, but it came: {report}"),
            _ => panic!("neither delivered, unknown nor cancelled: {report}"),
        }
    }
    judgement.cancelled = stops.judge(keys, &reports, &batches);
    // Each message was charged once, and nothing but the cancelled messages was released.
    let is_cancelled = |report: &&Value| report["status"] == "cancelled";
    let charged = reports.len() - reports.iter().filter(is_cancelled).count();
    let charged = PRICE_MICROS * i64::try_from(charged).unwrap();
    let left = Money::from_micros(money(DEPOSIT).micros() - charged);
    assert_eq!(cluster.balance(keys), left.to_string());
    judgement
}

/// Checks that a client's answer matches the stored messages. Some rows of the cancelled batches
/// never became messages.
fn compare(
    cluster: &Cluster,
    sent: &Sent,
    by_number: &HashMap<usize, Vec<&Value>>,
    cancelled: &HashSet<&str>,
) {
    let found: Vec<&Value> = sent
        .numbers
        .clone()
        .flat_map(|number| by_number.get(&number).map_or(&[][..], Vec::as_slice))
        .copied()
        .collect();
    let whole = |may_miss: bool| {
        // Each number has one message.
        let count = |number| by_number.get(&number).map_or(0, Vec::len);
        let fits = |count| count == 1 || may_miss && count == 0;
        let all = sent.numbers.clone().map(count).all(fits);
        assert!(all, "{sent:?}: {found:?}");
    };
    match &sent.outcome {
        Outcome::Accepted(id) => {
            whole(cancelled.contains(id.as_str()));
            let field = if sent.upload { "batchid" } else { "transid" };
            assert!(found.iter().all(|report| report[field] == id.as_str()), "{sent:?}: {found:?}");
        }
        Outcome::Refused(..) => {
            assert!(found.is_empty(), "{sent:?}: {found:?}");
            let came = |number: usize| cluster.carrier.count(&number.to_string()) > 0;
            assert!(!sent.numbers.clone().any(came), "{sent:?}");
        }
        Outcome::Lost if found.is_empty() => {}
        Outcome::Lost => whole(false),
    }
}

/// Returns how often each answer occurred, including repeats.
pub fn answers(sent: &[Sent]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for answer in sent.iter().flat_map(|sent| &sent.answers) {
        let words = match answer {
            Outcome::Accepted(_) => "200".to_owned(),
            Outcome::Refused(status, code, reason) => format!("{status} {code} {reason}"),
            Outcome::Lost => "none".to_owned(),
        };
        *counts.entry(words).or_default() += 1;
    }
    counts
}

/// Checks that every refusal is a 503, the only one that a failure of the system may cause.
pub fn refusals_say_that_waiting_helps(sent: &[Sent]) {
    for (answer, count) in answers(sent) {
        assert!(
            ["200", "none", "503 500 unavailable"].contains(&answer.as_str()),
            "{count} times {answer}"
        );
    }
}

pub fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap()
}
