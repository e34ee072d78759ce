//! `heliograph carrier`.

use domain::records::{CarrierRecord, ConnectionRecord, ConnectionState};
use serde::Serialize;
use service::{Actor, Service};

use super::output::{or_dash, table};
use super::{CommandError, Output};
use crate::cli::Carrier;
use crate::json::Moment;

/// A carrier as the command line shows it.
#[derive(Serialize)]
struct Shown {
    name: String,
    state: &'static str,
    drained_at: Option<Moment>,
    waiting: i64,
    oldest_waiting_at: Option<Moment>,
    receipts_parked: i64,
    receipts_matched: i64,
    connections: Vec<Connection>,
}

#[derive(Serialize)]
struct Connection {
    /// Number of the process that has the connection.
    node: i64,
    number: i64,
    state: &'static str,
    since: Moment,
    in_flight: i64,
    window: i64,
    rate: i64,
    throttled: i64,
    last_error: Option<String>,
}

/// The result of a drain or a resume.
#[derive(Serialize)]
struct Done {
    name: String,
    drained: bool,
    /// False when the carrier was in that state before.
    changed: bool,
}

impl From<CarrierRecord> for Shown {
    fn from(record: CarrierRecord) -> Self {
        Self {
            name: record.name,
            state: record.state.as_str(),
            drained_at: record.drained_at.map(Moment),
            waiting: record.waiting,
            oldest_waiting_at: record.oldest_waiting_at.map(Moment),
            receipts_parked: record.receipts_parked,
            receipts_matched: record.receipts_matched,
            connections: record.connections.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ConnectionRecord> for Connection {
    fn from(record: ConnectionRecord) -> Self {
        Self {
            node: record.node,
            number: record.number,
            state: record.state.as_str(),
            since: Moment(record.since),
            in_flight: record.in_flight,
            window: record.window,
            rate: record.rate,
            throttled: record.throttled,
            last_error: record.last_error,
        }
    }
}

pub async fn run(service: &Service, command: Carrier, output: Output) -> Result<(), CommandError> {
    let actor = Actor::CommandLine;
    let done = match command {
        Carrier::List => return list(service, output).await,
        Carrier::Drain { name } => Done {
            changed: service.drain_carrier(&actor, &name).await?,
            drained: true,
            name,
        },
        Carrier::Resume { name } => Done {
            changed: service.resume_carrier(&actor, &name).await?,
            drained: false,
            name,
        },
    };
    output.print(&done, sentence)?;
    Ok(())
}

fn sentence(done: &Done) -> String {
    let name = &done.name;
    match (done.drained, done.changed) {
        (true, true) => format!("{name} is drained: it is handed nothing until it is resumed."),
        (true, false) => format!("{name} was drained before."),
        (false, true) => format!("{name} is resumed."),
        (false, false) => format!("{name} wasn't drained."),
    }
}

async fn list(service: &Service, output: Output) -> Result<(), CommandError> {
    let carriers: Vec<Shown> = (service.carriers().await?)
        .into_iter()
        .map(Into::into)
        .collect();
    output.print(&carriers, |carriers| {
        let rows: Vec<Vec<String>> = carriers.iter().map(row).collect();
        let mut text = table(
            &[
                "NAME", "STATE", "WAITING", "OLDEST", "PARKED", "MATCHED", "BOUND",
            ],
            &rows,
        );
        let rows: Vec<Vec<String>> = carriers.iter().flat_map(connection_rows).collect();
        if !rows.is_empty() {
            text.push_str("\n\n");
            text.push_str(&table(
                &[
                    "CONNECTION",
                    "STATE",
                    "SINCE",
                    "WINDOW",
                    "PER SECOND",
                    "THROTTLED",
                    "LAST ERROR",
                ],
                &rows,
            ));
        }
        text
    })?;
    Ok(())
}

fn row(carrier: &Shown) -> Vec<String> {
    let bound = ConnectionState::Bound.as_str();
    let count = (carrier.connections.iter())
        .filter(|connection| connection.state == bound)
        .count();
    vec![
        carrier.name.clone(),
        carrier.state.to_owned(),
        carrier.waiting.to_string(),
        or_dash(
            carrier
                .oldest_waiting_at
                .map(|at| at.0.to_table())
                .as_deref(),
        ),
        carrier.receipts_parked.to_string(),
        carrier.receipts_matched.to_string(),
        format!("{count}/{}", carrier.connections.len()),
    ]
}

fn connection_rows(carrier: &Shown) -> impl Iterator<Item = Vec<String>> {
    carrier.connections.iter().map(|connection| {
        vec![
            format!("{} {}.{}", carrier.name, connection.node, connection.number),
            connection.state.to_owned(),
            connection.since.0.to_table(),
            format!("{}/{}", connection.in_flight, connection.window),
            connection.rate.to_string(),
            connection.throttled.to_string(),
            or_dash(connection.last_error.as_deref()),
        ]
    })
}
