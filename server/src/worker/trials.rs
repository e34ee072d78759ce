//! Runs operators' commands that send a test message or trace a carrier's connections.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use domain::records::ConnectionState;
use domain::{MessageStatus, Transid};
use parking_lot::Mutex;
use service::{
    AnswerState, Claimed, Result, Service, SubmitOutcome, Submitted, TestCommand, TraceCommand,
};
use smpp::trace::TracedPdu;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::watched::WatchedCarriers;
use crate::carrier::smpp::status_words;
use crate::carrier::{CarrierConnection, CarrierReport};

/// How long a test message may wait for its answers. A connection gives up earlier.
const ANSWERS_TIMEOUT: Duration = Duration::from_mins(3);
/// How long a test waits for the receipts of its message.
const RECEIPTS_TIMEOUT: Duration = Duration::from_mins(2);
/// How often a test searches for receipts, and how often a trace stores its PDUs.
const INTERVAL: Duration = Duration::from_millis(500);
/// How much earlier than the test its receipt may seem to have come, because nodes' clocks differ.
const CLOCKS_APART_MS: i64 = 5000;
/// The maximum number of PDUs that wait to be stored.
const PDUS_MAX: usize = 1024;
/// The maximum size of the PDUs that one process stores for a trace, in hexadecimal digits.
const TRACE_BYTES_MAX: usize = 512 * 1024;

/// The test messages whose answers are awaited.
#[derive(Clone, Default)]
pub(super) struct Trials(Arc<Mutex<HashMap<Transid, mpsc::UnboundedSender<Submitted>>>>);

impl Trials {
    fn begin(&self, id: Transid) -> mpsc::UnboundedReceiver<Submitted> {
        let (to, results) = mpsc::unbounded_channel();
        self.0.lock().insert(id, to);
        results
    }

    fn end(&self, id: Transid) {
        self.0.lock().remove(&id);
    }

    /// Takes the results of test messages out of a report, because no stored message has them. Raw
    /// answers stay in the report, but without the message. Returns the carrier message IDs.
    pub(super) fn take(&self, report: &mut CarrierReport) -> Vec<String> {
        let trials = self.0.lock();
        let mut ids = Vec::new();
        if trials.is_empty() {
            return ids;
        }
        for raw in &mut report.raw_receipts {
            raw.message_id.take_if(|id| trials.contains_key(id));
        }
        for results in [&mut report.early, &mut report.submitted] {
            for result in results.extract_if(.., |result| trials.contains_key(&result.id)) {
                ids.extend(result.outcomes.iter().filter_map(|(_, outcome)| match outcome {
                    SubmitOutcome::Accepted { carrier_message_id } => carrier_message_id.clone(),
                    _ => None,
                }));
                // Without a receiver, the test has ended.
                let _ = trials[&result.id].send(result);
            }
        }
        ids
    }
}

/// The connections of this process, for the commands of operators.
#[derive(Clone)]
pub struct Connections {
    pub(super) carriers: WatchedCarriers,
    pub(super) trials: Trials,
}

/// The answers of this process to a command.
struct Answers<'a> {
    service: &'a Service,
    command: i64,
    count: i64,
}

impl Answers<'_> {
    /// Returns false if nobody waits for the answer any more.
    async fn say(&mut self, state: AnswerState, text: String) -> Result<bool> {
        self.count += 1;
        let delivery = self.service.delivery();
        delivery.answer_command(self.command, self.count, state, text).await
    }

    async fn refuse(&mut self, text: &str) -> Result<()> {
        self.say(AnswerState::Refused, text.to_owned()).await.map(drop)
    }
}

impl Connections {
    /// Returns the connections to a carrier, in the order of their numbers.
    fn to(&self, carrier: &str) -> Vec<Arc<dyn CarrierConnection>> {
        let carriers = self.carriers.list();
        let of_carrier = carriers.iter().filter(|watched| watched.carrier == carrier);
        of_carrier.flat_map(|watched| watched.links.clone()).collect()
    }

    /// Sends a test message unless another process does, and follows it to its receipt.
    pub async fn test(&self, service: &Service, command: i64, test: &TestCommand) -> Result<()> {
        let mut answers = Answers { service, command, count: 0 };
        let delivery = service.delivery();
        if delivery.is_sandbox(&test.carrier) {
            return answers.refuse("a sandbox delivers to nobody").await;
        }
        delivery.expect_test(test);
        let is_bound = |connection: &dyn CarrierConnection| {
            matches!(connection.state().state, ConnectionState::Bound | ConnectionState::Probing)
        };
        let mut all = (1..).zip(self.to(&test.carrier));
        let Some((number, connection)) = all.find(|(_, found)| is_bound(found.as_ref())) else {
            let faults = self.to(&test.carrier).into_iter().filter_map(|c| c.state().last_error);
            let fault = faults.map(|fault| format!(": {fault}")).next().unwrap_or_default();
            let refusal = format!("this process has no connection that is up{fault}");
            return answers.refuse(&refusal).await;
        };
        if !delivery.take_command(command).await? {
            return Ok(());
        }
        let (lease, message) = delivery.test_message(test);
        let Claimed { id, address, sender, .. } = message.clone();
        let step = format!("submitting to {address} from {sender} on connection {number}");
        answers.say(AnswerState::Going, step).await?;
        let awaited = self.trials.begin(id);
        let began = service.clock().now().plus_ms(-CLOCKS_APART_MS);
        connection.submit(lease, vec![message]);
        let outcomes = outcomes(&mut answers, awaited).await;
        self.trials.end(id);
        let outcomes = outcomes?;
        let Some(ids) = accepted(&outcomes) else {
            let advice = connection.state().last_error;
            return answers.refuse(&failed(&outcomes, advice)).await;
        };
        let mut receipts = Receipts { test, address, began, ids, is_suspicious: false };
        receipts.follow(&mut answers).await
    }

    /// Begins to copy the PDUs of those connections to a carrier that aren't `traced` yet. A reload
    /// or a rebind replaces connections.
    fn follow(
        &self,
        carrier: &str,
        traced: &mut Vec<Arc<dyn CarrierConnection>>,
        to: &mpsc::Sender<TracedPdu>,
    ) {
        for (number, connection) in (1..).zip(self.to(carrier)) {
            let is_known = |known: &Arc<dyn CarrierConnection>| {
                std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(&connection))
            };
            if !traced.iter().any(is_known) && connection.trace(number, to) {
                traced.push(connection);
            }
        }
    }

    /// Stores copies of the PDUs on the connections to a carrier for some time.
    pub async fn trace(&self, service: &Service, command: i64, trace: &TraceCommand) -> Result<()> {
        let mut answers = Answers { service, command, count: 0 };
        let (to, mut pdus) = mpsc::channel(PDUS_MAX);
        let mut traced = Vec::new();
        self.follow(&trace.carrier, &mut traced, &to);
        if traced.is_empty() {
            return answers.refuse("this process has no SMPP connection to the carrier").await;
        }
        let until = Instant::now() + Duration::from_secs(trace.seconds);
        answers.say(AnswerState::Going, String::new()).await?;
        let (mut text, mut bytes, mut count, mut store_at) = (String::new(), 0, 0, Instant::now());
        let end = loop {
            if store_at <= Instant::now() {
                store_at = Instant::now() + INTERVAL;
                self.follow(&trace.carrier, &mut traced, &to);
                if !text.is_empty()
                    && !answers.say(AnswerState::Going, std::mem::take(&mut text)).await?
                {
                    return Ok(());
                }
            }
            tokio::select! {
                // The sender is kept for new connections, so the channel stays open.
                Some(mut pdu) = pdus.recv() => {
                    pdu.mask(trace.all);
                    let direction = if pdu.sent { '>' } else { '<' };
                    let (at, hex) = (service.clock().now().unix_ms(), hex::encode(&pdu.octets));
                    let (source, link) = (pdu.source, pdu.link);
                    // Writing into a `String` never fails.
                    let _ = writeln!(text, "{at} {source} {link} {direction} {hex}");
                    count += 1;
                    bytes += hex.len();
                    if bytes > TRACE_BYTES_MAX {
                        break "the trace is full";
                    }
                }
                () = sleep_until(store_at) => {}
                () = sleep_until(until) => break "the time is over",
            }
        };
        answers.say(AnswerState::Going, text).await?;
        answers.say(AnswerState::Done, format!("{count} PDUs; {end}")).await.map(drop)
    }
}

/// Waits for the answers to all segments of a test message.
async fn outcomes(
    answers: &mut Answers<'_>,
    mut results: mpsc::UnboundedReceiver<Submitted>,
) -> Result<BTreeMap<u16, SubmitOutcome>> {
    let mut outcomes = BTreeMap::new();
    while let Ok(Some(result)) = timeout(ANSWERS_TIMEOUT, results.recv()).await {
        for (segment, outcome) in result.outcomes {
            if outcomes.contains_key(&segment) {
                continue;
            }
            let place = format!("segment {segment} of {}", result.segments);
            answers.say(AnswerState::Going, format!("{place}: {}", words(&outcome))).await?;
            outcomes.insert(segment, outcome);
        }
        if outcomes.len() >= usize::from(result.segments) {
            break;
        }
    }
    Ok(outcomes)
}

/// The receipts of a test message.
struct Receipts<'a> {
    test: &'a TestCommand,
    /// The number as the carrier gets it.
    address: String,
    began: domain::Timestamp,
    /// The carrier message IDs of the segments, as far as the carrier gave any.
    ids: Vec<Option<String>>,
    /// Whether the last search found a receipt for the number with another ID. The next search may
    /// find the right ID.
    is_suspicious: bool,
}

impl Receipts<'_> {
    /// Waits for the receipts of all segments.
    async fn follow(&mut self, answers: &mut Answers<'_>) -> Result<()> {
        let until = Instant::now() + RECEIPTS_TIMEOUT;
        let mut missing: Vec<String> = self.ids.iter().flatten().cloned().collect();
        let mut not_delivered = None;
        loop {
            for found in self.look(answers.service, &missing).await? {
                let error = found.error.map(|error| format!(" ({error})")).unwrap_or_default();
                let text = format!("receipt for {}: {}{error}", found.id, found.status);
                if found.status != MessageStatus::Delivered {
                    not_delivered.get_or_insert(format!("{}{error}", found.status));
                }
                answers.say(AnswerState::Going, text).await?;
                missing.retain(|id| *id != found.id);
                if missing.is_empty() {
                    return match not_delivered {
                        None => {
                            answers.say(AnswerState::Done, "delivered".to_owned()).await.map(drop)
                        }
                        Some(why) => answers.refuse(&format!("not delivered: {why}")).await,
                    };
                }
            }
            if let Some(other) = self.other_id(answers.service, &missing).await? {
                let name = &self.test.carrier;
                let had = missing.join(", ");
                let text = format!(
                    "a receipt for this number has the ID {other}, but the answer had {had}: if one \
                     is decimal and the other hexadecimal, or they differ in case or zeros, \
                     change message_id of {name}"
                );
                return answers.refuse(&text).await;
            }
            if Instant::now() >= until {
                let seconds = RECEIPTS_TIMEOUT.as_secs();
                return answers.refuse(&format!("no receipt came within {seconds} s")).await;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Returns the receipts that have come. If an answer had no ID, returns the receipts for the
    /// number.
    async fn look(
        &self,
        service: &Service,
        missing: &[String],
    ) -> Result<Vec<service::TestReceipt>> {
        let (delivery, carrier) = (service.delivery(), &self.test.carrier);
        if self.ids.iter().any(Option::is_none) {
            return delivery.receipts_for_number(carrier, &self.address, self.began).await;
        }
        delivery.take_test_receipts(carrier, missing.to_vec(), self.began).await
    }

    /// Returns the ID of a receipt for the number that no answer had, if two searches found it.
    async fn other_id(&mut self, service: &Service, missing: &[String]) -> Result<Option<String>> {
        if missing.is_empty() {
            return Ok(None);
        }
        let delivery = service.delivery();
        let looking = delivery.receipts_for_number(&self.test.carrier, &self.address, self.began);
        let other = looking.await?.pop().map(|found| found.id);
        let was_suspicious = std::mem::replace(&mut self.is_suspicious, other.is_some());
        Ok(other.filter(|_| was_suspicious))
    }
}

/// Returns the carrier message ID of each segment, if the carrier accepted all.
fn accepted(outcomes: &BTreeMap<u16, SubmitOutcome>) -> Option<Vec<Option<String>>> {
    let ids = outcomes.values().map(|outcome| match outcome {
        SubmitOutcome::Accepted { carrier_message_id } => Some(carrier_message_id.clone()),
        _ => None,
    });
    ids.collect::<Option<Vec<_>>>().filter(|ids| !ids.is_empty())
}

fn failed(outcomes: &BTreeMap<u16, SubmitOutcome>, advice: Option<String>) -> String {
    let is_unknown = |outcome: &SubmitOutcome| matches!(outcome, SubmitOutcome::Unknown { .. });
    let end = if outcomes.is_empty() || outcomes.values().any(is_unknown) {
        "the carrier may have the message"
    } else {
        "the carrier didn't accept the message"
    };
    let advice = advice.map(|advice| format!(". {advice}")).unwrap_or_default();
    format!("{end}{advice}")
}

/// Describes an answer.
fn words(outcome: &SubmitOutcome) -> String {
    let named = |error: &str| match status_words(error) {
        Some(words) => format!("{error} ({words})"),
        None => error.to_owned(),
    };
    match outcome {
        SubmitOutcome::Accepted { carrier_message_id: Some(id) } => {
            format!("accepted with the message ID {id}")
        }
        SubmitOutcome::Accepted { carrier_message_id: None } => {
            "accepted without a message ID".to_owned()
        }
        SubmitOutcome::Refused { error } | SubmitOutcome::Rejected { error } => {
            format!("refused: {}", named(error))
        }
        SubmitOutcome::Held { error } => {
            format!("refused, like all messages now: {}", named(error))
        }
        SubmitOutcome::Throttled { error } | SubmitOutcome::Temporary { error } => {
            format!("refused for now: {}", named(error))
        }
        SubmitOutcome::NotSent => {
            "not accepted: the connection was lost or too busy, or the carrier refused the \
             validity period. A customer's message would be submitted again"
                .to_owned()
        }
        SubmitOutcome::Later { .. } => "not sent: the sender has used up its rate".to_owned(),
        SubmitOutcome::Unknown { error } => format!("no answer: {error}"),
    }
}
