//! `heliograph carrier`.

use std::collections::BTreeMap;

use domain::carrier_figures::{CarrierCounts, CarrierEvent, CountedRefusal};
use domain::records::{CarrierRecord, ConnectionRecord};
use domain::support::{CarrierReceipts, ReceiptCandidate, ReceiptRecord, SuggestedForm};
use serde::Serialize;
use service::{
    Actor, AnswerState, CarrierCommand, CommandAnswer, ReceiptFilter, Refusal, Service,
    TestCommand, TraceCommand,
};

use super::output::{Column, facts, or_dash, table};
use super::{CommandError, Output, carrier_test};
use crate::cli::Carrier;
use crate::config::Settings;
use crate::json::{DateTime, shown};

shown! {
    /// A carrier as the command line shows it.
    struct Shown from record: CarrierRecord {
        name: String = record.name,
        state: &'static str = record.state.as_str(),
        since: Option<DateTime> = record.since.map(DateTime),
        /// Why it is degraded or down.
        reason: Option<String> = record.reason,
        drained_at: Option<DateTime> = record.drained_at.map(DateTime),
        /// Since when all messages are held, because a backup was restored.
        held_since: Option<DateTime> = record.held_since.map(DateTime),
        waiting: i64 = record.waiting,
        oldest_waiting_at: Option<DateTime> = record.oldest_waiting_at.map(DateTime),
        receipts_unmatched: i64 = record.receipts_unmatched,
        receipts_matched: i64 = record.receipts_matched,
        last_5_minutes: Figures = Figures::from(&record.recent.five_minutes),
        last_hour: Figures = Figures::from(&record.recent.hour),
        last_day: Figures = Figures::from(&record.recent.day),
        /// The most frequent reasons for refusals in the last hour.
        refusals: Vec<CountedReason> = record.refusals.into_iter().map(Into::into).collect(),
        receipts_unknown_state: i64 = record.receipts_unknown_state,
        connections: Vec<Connection> = record.connections.into_iter().map(Into::into).collect(),
    }
}

shown! {
    struct Connection from record: ConnectionRecord {
        /// The number of the process that holds the connection.
        node: i64 = record.node,
        number: i64 = record.number,
        state: &'static str = record.state.as_str(),
        /// Degraded connections are bound, too.
        is_bound: bool = record.state.is_bound(),
        since: DateTime = DateTime(record.since),
        in_flight: i64 = record.in_flight,
        window: i64 = record.window,
        rate: i64 = record.rate,
        throttled: i64 = record.throttled,
        last_error: Option<String> = record.last_error,
        last_error_at: Option<DateTime> = record.last_error_at.map(DateTime),
    }
}

shown! {
    struct CountedReason from counted: CountedRefusal {
        /// The code, with a description if it is a known SMPP status.
        reason: String = counted.reason,
        count: u64 = counted.count,
    }
}

shown! {
    /// The figures of a carrier for one period.
    struct Figures from counts: &CarrierCounts {
        #[serde(flatten)]
        counts: BTreeMap<&'static str, u64> =
            CarrierEvent::ALL.map(|event| (event.as_str(), counts.get(event))).into(),
        delivered_percent: Option<u64> = counts.delivered_percent(),
        receipt_p50_s: Option<u32> = counts.receipt_within_s(50),
        receipt_p95_s: Option<u32> = counts.receipt_within_s(95),
    }
}

impl Figures {
    fn count(&self, event: CarrierEvent) -> String {
        self.counts[event.as_str()].to_string()
    }
}

/// Explains which events the figures count.
const COUNTED: &str = "The columns from ACCEPTED to UNANSWERED count submits: one for each segment \
                       and attempt. DELIVERED, FAILED and EXPIRED count receipts.";

/// The figures of a period, with its name.
type FiguresRow<'a> = (&'static str, &'a Figures);

fn figures_table(carrier: &Shown) -> String {
    let columns: [Column<FiguresRow<'_>>; 11] = [
        ("LAST", |(time, _)| (*time).to_owned()),
        ("ACCEPTED", |(_, figures)| figures.count(CarrierEvent::Accepted)),
        ("REFUSED", |(_, figures)| figures.count(CarrierEvent::Refused)),
        ("DEFERRED", |(_, figures)| figures.count(CarrierEvent::Deferred)),
        ("THROTTLED", |(_, figures)| figures.count(CarrierEvent::Throttled)),
        ("UNANSWERED", |(_, figures)| figures.count(CarrierEvent::Unanswered)),
        ("DELIVERED", |(_, figures)| figures.count(CarrierEvent::Delivered)),
        ("FAILED", |(_, figures)| figures.count(CarrierEvent::Failed)),
        ("EXPIRED", |(_, figures)| figures.count(CarrierEvent::Expired)),
        ("DELIVERED %", |(_, figures)| number_or_dash(figures.delivered_percent)),
        ("RECEIPT P50/P95 S", |(_, figures)| {
            let p50 = number_or_dash(figures.receipt_p50_s.map(u64::from));
            format!("{p50}/{}", number_or_dash(figures.receipt_p95_s.map(u64::from)))
        }),
    ];
    let rows = [
        ("5 min", &carrier.last_5_minutes),
        ("hour", &carrier.last_hour),
        ("day", &carrier.last_day),
    ];
    table(&rows, &columns)
}

fn number_or_dash(number: Option<u64>) -> String {
    or_dash(number.map(|number| number.to_string()).as_deref())
}

shown! {
    /// The receipts and answers of a carrier as the command line shows them.
    struct ReceiptList from found: CarrierReceipts {
        carrier: String = found.carrier,
        /// The number of unmatched receipts in the last day.
        unmatched: usize = found.unmatched,
        suggestions: Vec<Suggestion> = found.suggestions.into_iter().map(Into::into).collect(),
        receipts: Vec<Receipt> = found.receipts.into_iter().map(Into::into).collect(),
    }
}

shown! {
    struct Suggestion from suggested: SuggestedForm {
        message_id: &'static str = suggested.form.as_str(),
        receipts: usize = suggested.receipts,
    }
}

shown! {
    struct Receipt from record: ReceiptRecord {
        received_at: DateTime = DateTime(record.received_at),
        written_id: Option<String> = record.written_id,
        parameter_id: Option<String> = record.parameter_id,
        number: String = record.number,
        state: String = record.state,
        error: Option<String> = record.error,
        outcome: &'static str = record.outcome.as_str(),
        transid: Option<String> = record.transid.map(|id| id.to_string()),
        reason: Option<String> = record.reason,
        candidates: Vec<Candidate> = record.candidates.into_iter().map(Into::into).collect(),
        raw: Option<String> = record.raw,
    }
}

shown! {
    struct Candidate from record: ReceiptCandidate {
        transid: String = record.transid.to_string(),
        segment: u16 = record.segment,
        carrier_id: Option<String> = record.carrier_id,
        submitted_at: DateTime = DateTime(record.submitted_at),
        is_to_number: bool = record.is_to_number,
    }
}

const RECEIPTS: [Column<Receipt>; 7] = [
    ("RECEIVED", |receipt| receipt.received_at.0.to_table()),
    ("CARRIER'S ID", |receipt| or_dash(receipt.written_id.as_deref())),
    ("NUMBER", |receipt| or_dash(Some(&*receipt.number).filter(|number| !number.is_empty()))),
    ("STATE", |receipt| or_dash(Some(&*receipt.state).filter(|state| !state.is_empty()))),
    ("ERROR", |receipt| or_dash(receipt.error.as_deref())),
    ("OUTCOME", |receipt| receipt.outcome.to_owned()),
    ("MESSAGE OR REASON", |receipt| {
        or_dash(receipt.transid.as_deref().or(receipt.reason.as_deref()))
    }),
];

/// The result of a drain or a resume.
#[derive(Serialize)]
struct Done {
    name: String,
    drained: bool,
    /// False if the carrier was already in that state.
    changed: bool,
}

const COLUMNS: [Column<Shown>; 7] = [
    ("NAME", |carrier| carrier.name.clone()),
    ("STATE", |carrier| carrier.state.to_owned()),
    ("WAITING", |carrier| carrier.waiting.to_string()),
    ("OLDEST", |carrier| {
        let oldest = carrier.oldest_waiting_at.map(|at| at.0.to_table());
        or_dash(oldest.as_deref())
    }),
    ("UNMATCHED", |carrier| carrier.receipts_unmatched.to_string()),
    ("MATCHED", |carrier| carrier.receipts_matched.to_string()),
    ("BOUND", |carrier| {
        let connections = carrier.connections.iter();
        let count = connections.filter(|connection| connection.is_bound);
        format!("{}/{}", count.count(), carrier.connections.len())
    }),
];

pub async fn run(
    service: &Service,
    settings: &Settings,
    command: Carrier,
    output: Output,
) -> Result<(), CommandError> {
    let delivery = service.delivery();
    // If the settings have a fault, the carriers are unknown. The database knows those in service.
    let carriers = async || match settings.fault {
        Some(_) => delivery.served_carriers().await,
        None => delivery.carriers().await,
    };
    let done = match command {
        Carrier::List => return list(carriers().await?, output),
        Carrier::Show { name } => return show(carriers().await?, &name, output),
        Carrier::Reload => return all(service, CarrierCommand::Reload, output).await,
        Carrier::Rebind { name } => {
            return all(service, CarrierCommand::Rebind(name), output).await;
        }
        Carrier::Drain { name, yes } => {
            Done { changed: drain(service, &name, yes).await?, drained: true, name }
        }
        Carrier::Resume { name } => Done {
            changed: service.delivery().resume_carrier(&Actor::CommandLine, &name).await?,
            drained: false,
            name,
        },
        Carrier::Test { name, number, text, sender } => {
            let (digits, kind) = (number.digits().to_owned(), number.kind());
            let command = TestCommand { carrier: name, digits, kind, sender, text };
            return carrier_test::test(service, command, output).await;
        }
        Carrier::Trace { name, seconds, numbers, pcap } => {
            let trace = TraceCommand { carrier: name, seconds, all: numbers };
            return carrier_test::trace(service, trace, pcap.as_deref(), output).await;
        }
        Carrier::Receipts { name, unmatched, id, number } => {
            let filter = match (unmatched, id, number) {
                (true, ..) => ReceiptFilter::Unmatched,
                (false, Some(id), _) => ReceiptFilter::Id(id),
                (false, None, Some(number)) => ReceiptFilter::Number(number),
                (false, None, None) => ReceiptFilter::All,
            };
            return receipts(service, &name, &filter, output).await;
        }
    };
    Ok(output.print(&done, sentence)?)
}

/// The answer of a process to a command.
#[derive(Serialize)]
struct Answered {
    /// The number of the process.
    node: i64,
    refused: bool,
    text: String,
}

/// Gives a command to all running processes, and prints what they answered.
async fn all(
    service: &Service,
    command: CarrierCommand,
    output: Output,
) -> Result<(), CommandError> {
    let delivery = service.delivery();
    let (answers, expected) = delivery.command_carriers(&Actor::CommandLine, command).await?;
    let answers: Vec<Answered> = (answers.into_iter())
        .map(|CommandAnswer { node, state, text, .. }| Answered {
            node,
            refused: state == AnswerState::Refused,
            text,
        })
        .collect();
    if !answers.is_empty() {
        output.print(&answers, |answers| {
            let lines = answers.iter().map(|answer| format!("{}: {}", answer.node, answer.text));
            lines.collect::<Vec<_>>().join("\n")
        })?;
    }
    if answers.len() < expected {
        return Err(CommandError::Refused(format!(
            "only {} of {expected} processes answered: is the server running?",
            answers.len()
        )));
    }
    if answers.iter().any(|answer| answer.refused) {
        return Err(CommandError::Refused("a process refused, and changed nothing".to_owned()));
    }
    Ok(())
}

async fn drain(service: &Service, name: &str, even_the_last: bool) -> Result<bool, CommandError> {
    let delivery = service.delivery();
    let draining = delivery.drain_carrier(&Actor::CommandLine, name, even_the_last);
    draining.await.map_err(|error| match error.refusal() {
        Some(refusal @ Refusal::LastCarrier { .. }) => {
            CommandError::Refused(format!("{refusal} --yes confirms."))
        }
        _ => error.into(),
    })
}

fn sentence(done: &Done) -> String {
    let name = &done.name;
    match (done.drained, done.changed) {
        (true, true) => format!("{name} is drained: it gets no messages until it is resumed."),
        (true, false) => format!("{name} is already drained."),
        (false, true) => format!("{name} is resumed."),
        (false, false) => format!("{name} wasn't drained."),
    }
}

async fn receipts(
    service: &Service,
    name: &str,
    filter: &ReceiptFilter,
    output: Output,
) -> Result<(), CommandError> {
    let found = service.delivery().carrier_receipts(name, filter).await?;
    let advice: Vec<String> = found.suggestions.iter().map(|form| found.advice(*form)).collect();
    let found = ReceiptList::from(found);
    Ok(output.print(&found, |found| {
        let table = table(&found.receipts, &RECEIPTS);
        let candidates: Vec<_> = found.receipts.iter().flat_map(candidates).collect();
        let candidates = (!candidates.is_empty()).then(|| candidate_table(&candidates));
        let parts = [Some(table), candidates, Some(advice.join("\n"))];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|p| !p.is_empty()).collect();
        parts.join("\n\n")
    })?)
}

/// Returns the messages that a receipt may be for, each with the receipt.
fn candidates(receipt: &Receipt) -> impl Iterator<Item = (&Receipt, &Candidate)> {
    receipt.candidates.iter().map(move |candidate| (receipt, candidate))
}

fn candidate_table(candidates: &[(&Receipt, &Candidate)]) -> String {
    table(
        candidates,
        &[
            ("RECEIPT", |(receipt, _)| or_dash(receipt.written_id.as_deref())),
            ("MAY BE FOR", |(_, shown)| format!("{} {}", shown.transid, shown.segment)),
            ("CARRIER'S ID", |(_, shown)| or_dash(shown.carrier_id.as_deref())),
            ("SUBMITTED", |(_, shown)| shown.submitted_at.0.to_table()),
            ("SAME NUMBER", |(_, shown)| if shown.is_to_number { "yes" } else { "no" }.to_owned()),
        ],
    )
}

fn list(carriers: Vec<CarrierRecord>, output: Output) -> Result<(), CommandError> {
    let carriers: Vec<Shown> = carriers.into_iter().map(Into::into).collect();
    Ok(output.print(&carriers, |carriers| {
        let connections: Vec<_> = carriers.iter().flat_map(named_connections).collect();
        let carriers = table(carriers, &COLUMNS);
        if connections.is_empty() {
            return carriers;
        }
        format!("{carriers}\n\n{}", connection_table(&connections))
    })?)
}

fn show(carriers: Vec<CarrierRecord>, name: &str, output: Output) -> Result<(), CommandError> {
    let carrier = carriers.into_iter().find(|carrier| carrier.name == name);
    let carrier = Shown::from(carrier.ok_or(service::Error::from(Refusal::NoSuchCarrier))?);
    Ok(output.print(&carrier, |carrier| {
        let since = carrier.since.as_ref().map(|at| at.0.to_table());
        let mut rows = vec![
            ("Carrier", carrier.name.clone()),
            ("State", carrier.state.to_owned()),
            ("Since", or_dash(since.as_deref())),
            ("Reason", or_dash(carrier.reason.as_deref())),
            ("Waiting", carrier.waiting.to_string()),
            ("Unmatched receipts", carrier.receipts_unmatched.to_string()),
            ("Receipts matched later", carrier.receipts_matched.to_string()),
            ("Receipts of unknown state", carrier.receipts_unknown_state.to_string()),
        ];
        if let Some(at) = &carrier.held_since {
            let held = format!("{}; run `heliograph message reconcile`", at.0.to_table());
            rows.push(("Held since", held));
        }
        let refusals = carrier.refusals.iter();
        let refusals: Vec<_> =
            refusals.map(|refused| format!("{} × {}", refused.count, refused.reason)).collect();
        if !refusals.is_empty() {
            rows.push(("Refused, last hour", refusals.join("; ")));
        }
        let facts = facts(&rows);
        let connections: Vec<_> = named_connections(carrier).collect();
        let (figures, connections) = (figures_table(carrier), connection_table(&connections));
        format!("{facts}\n\n{figures}\n{COUNTED}\n\n{connections}")
    })?)
}

/// Returns the carrier's connections, each with the name of the carrier.
fn named_connections(carrier: &Shown) -> impl Iterator<Item = (&str, &Connection)> {
    (carrier.connections.iter()).map(|connection| (carrier.name.as_str(), connection))
}

fn connection_table(connections: &[(&str, &Connection)]) -> String {
    table(
        connections,
        &[
            ("CONNECTION", |(carrier, shown)| format!("{carrier} {}.{}", shown.node, shown.number)),
            ("STATE", |(_, shown)| shown.state.to_owned()),
            ("SINCE", |(_, shown)| shown.since.0.to_table()),
            ("WINDOW", |(_, shown)| format!("{}/{}", shown.in_flight, shown.window)),
            ("ANSWERS/S", |(_, shown)| shown.rate.to_string()),
            ("THROTTLED", |(_, shown)| shown.throttled.to_string()),
            ("LAST ERROR AT", |(_, shown)| {
                let at = shown.last_error_at.map(|at| at.0.to_table());
                or_dash(at.as_deref())
            }),
            ("LAST ERROR", |(_, shown)| or_dash(shown.last_error.as_deref())),
        ],
    )
}
