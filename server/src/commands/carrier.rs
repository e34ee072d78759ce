//! `heliograph carrier`.

use std::collections::BTreeMap;

use domain::carrier_figures::{CarrierCounts, CarrierEvent};
use domain::records::{CarrierRecord, ConnectionRecord, ConnectionState};
use serde::Serialize;
use service::{Actor, CarrierCommand, CommandAnswer, Refusal, Service};

use super::output::{Column, facts, or_dash, shown, table};
use super::{CommandError, Output};
use crate::cli::Carrier;
use crate::json::DateTime;

shown! {
    /// A carrier as the command line shows it.
    struct Shown from record: CarrierRecord {
        name: String = record.name,
        state: &'static str = record.state.as_str(),
        since: Option<DateTime> = record.since.map(DateTime),
        /// Why it is degraded or down.
        reason: Option<String> = record.reason,
        drained_at: Option<DateTime> = record.drained_at.map(DateTime),
        waiting: i64 = record.waiting,
        oldest_waiting_at: Option<DateTime> = record.oldest_waiting_at.map(DateTime),
        receipts_unmatched: i64 = record.receipts_unmatched,
        receipts_matched: i64 = record.receipts_matched,
        last_5_minutes: Figures = Figures::of(&record.recent.five_minutes),
        last_hour: Figures = Figures::of(&record.recent.hour),
        last_day: Figures = Figures::of(&record.recent.day),
        connections: Vec<Connection> = record.connections.into_iter().map(Into::into).collect(),
    }
}

shown! {
    struct Connection from record: ConnectionRecord {
        /// The number of the process that holds the connection.
        node: i64 = record.node,
        number: i64 = record.number,
        state: &'static str = record.state.as_str(),
        since: DateTime = DateTime(record.since),
        in_flight: i64 = record.in_flight,
        window: i64 = record.window,
        rate: i64 = record.rate,
        throttled: i64 = record.throttled,
        last_error: Option<String> = record.last_error,
        last_error_at: Option<DateTime> = record.last_error_at.map(DateTime),
    }
}

/// The figures of a carrier over some time.
#[derive(Serialize)]
struct Figures {
    #[serde(flatten)]
    counts: BTreeMap<&'static str, u64>,
    delivered_percent: Option<u64>,
    receipt_p50_s: Option<u32>,
    receipt_p95_s: Option<u32>,
}

impl Figures {
    fn of(counts: &CarrierCounts) -> Self {
        let events = CarrierEvent::ALL.into_iter();
        Self {
            counts: events.map(|event| (event.as_str(), counts.get(event))).collect(),
            delivered_percent: counts.delivered_percent(),
            receipt_p50_s: counts.receipt_within_s(50),
            receipt_p95_s: counts.receipt_within_s(95),
        }
    }

    fn count(&self, event: CarrierEvent) -> String {
        self.counts[event.as_str()].to_string()
    }
}

/// The figures of some time, with its name.
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
        let bound = ConnectionState::Bound.as_str();
        let connections = carrier.connections.iter();
        let count = connections.filter(|connection| connection.state == bound);
        format!("{}/{}", count.count(), carrier.connections.len())
    }),
];

pub async fn run(service: &Service, command: Carrier, output: Output) -> Result<(), CommandError> {
    let done = match command {
        Carrier::List => return list(service, output).await,
        Carrier::Show { name } => return show(service, &name, output).await,
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
        .map(|CommandAnswer { node, refused, text }| Answered { node, refused, text })
        .collect();
    output.print(&answers, |answers| {
        let lines = answers.iter().map(|answer| format!("{}: {}", answer.node, answer.text));
        lines.collect::<Vec<_>>().join("\n")
    })?;
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
        (true, false) => format!("{name} was drained before."),
        (false, true) => format!("{name} is resumed."),
        (false, false) => format!("{name} wasn't drained."),
    }
}

async fn list(service: &Service, output: Output) -> Result<(), CommandError> {
    let carriers = service.delivery().carriers().await?;
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

async fn show(service: &Service, name: &str, output: Output) -> Result<(), CommandError> {
    let carriers = service.delivery().carriers().await?;
    let carrier = carriers.into_iter().find(|carrier| carrier.name == name);
    let carrier = Shown::from(carrier.ok_or(service::Error::from(Refusal::NoSuchCarrier))?);
    Ok(output.print(&carrier, |carrier| {
        let since = carrier.since.as_ref().map(|at| at.0.to_table());
        let facts = facts(&[
            ("Carrier", carrier.name.clone()),
            ("State", carrier.state.to_owned()),
            ("Since", or_dash(since.as_deref())),
            ("Reason", or_dash(carrier.reason.as_deref())),
            ("Waiting", carrier.waiting.to_string()),
        ]);
        let connections: Vec<_> = named_connections(carrier).collect();
        format!("{facts}\n\n{}\n\n{}", figures_table(carrier), connection_table(&connections))
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
            ("PER SECOND", |(_, shown)| shown.rate.to_string()),
            ("THROTTLED", |(_, shown)| shown.throttled.to_string()),
            ("SEEN", |(_, shown)| {
                let at = shown.last_error_at.map(|at| at.0.to_table());
                or_dash(at.as_deref())
            }),
            ("LAST ERROR", |(_, shown)| or_dash(shown.last_error.as_deref())),
        ],
    )
}
