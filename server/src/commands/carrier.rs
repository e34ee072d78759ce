//! `heliograph carrier`.

use domain::records::{CarrierRecord, ConnectionRecord, ConnectionState};
use serde::Serialize;
use service::{Actor, Refusal, Service};

use super::output::{Column, or_dash, shown, table};
use super::{CommandError, Output};
use crate::cli::Carrier;
use crate::json::DateTime;

shown! {
    /// A carrier as the command line shows it.
    struct Shown from record: CarrierRecord {
        name: String = record.name,
        state: &'static str = record.state.as_str(),
        drained_at: Option<DateTime> = record.drained_at.map(DateTime),
        waiting: i64 = record.waiting,
        oldest_waiting_at: Option<DateTime> = record.oldest_waiting_at.map(DateTime),
        receipts_unmatched: i64 = record.receipts_unmatched,
        receipts_matched: i64 = record.receipts_matched,
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
