//! `heliograph message reconcile` and `heliograph message hold`.

use std::path::Path;

use domain::{Timestamp, Transid};
use serde::Serialize;
use service::{Actor, Export, ExportLine, Reconciled, Reconciliation, Rest, Service};

use super::output::facts;
use super::{CommandError, Output};
use crate::cli::{Reconcile, RestAs};
use crate::json::{DateTime, shown};

/// The messages that are held, as the command line shows them.
#[derive(Serialize)]
struct Held {
    held_since: Option<DateTime>,
    waiting: i64,
}

shown! {
    /// The outcome of a reconciliation.
    struct Shown from done: Reconciled {
        by_receipts: usize = done.by_receipts,
        by_export: usize = done.by_export,
        discarded: usize = done.discarded,
        released: String = done.released.to_string(),
        unknown: usize = done.unknown,
        left: i64 = done.left,
        ended: bool = done.ended,
    }
}

pub async fn hold(service: &Service, output: Output) -> Result<(), CommandError> {
    service.operations().begin_hold(&Actor::CommandLine).await?;
    show(service, output).await
}

pub async fn reconcile(
    service: &Service,
    command: Reconcile,
    output: Output,
) -> Result<(), CommandError> {
    let export = match (&command.export, command.carrier) {
        (Some(file), Some(carrier)) => Some(Export { carrier, lines: read(file)? }),
        _ => None,
    };
    let now = service.clock().now();
    let by = Reconciliation {
        by_receipts: command.receipts,
        export,
        discard_before: command.discard_older_than.map(|ms| now.plus_ms(-ms)),
        rest: command.rest.map(|rest| match rest {
            RestAs::Send => Rest::Send,
            RestAs::Unknown => Rest::Unknown,
        }),
    };
    if !by.by_receipts && by.export.is_none() && by.discard_before.is_none() && by.rest.is_none() {
        return show(service, output).await;
    }
    let done = service.operations().reconcile(&Actor::CommandLine, by).await?;
    Ok(output.print(&Shown::from(done), |done| {
        let next = if done.ended {
            "The hold has ended."
        } else {
            "Messages are still held. `--rest send` or `--rest unknown` ends the hold."
        };
        let facts = facts(&[
            ("Sent, by receipts", done.by_receipts.to_string()),
            ("Sent, by the carrier's list", done.by_export.to_string()),
            ("Discarded", format!("{} ({} released)", done.discarded, done.released)),
            ("Unknown", done.unknown.to_string()),
            ("Left in the queue", done.left.to_string()),
        ]);
        format!("{facts}\n\n{next}")
    })?)
}

async fn show(service: &Service, output: Output) -> Result<(), CommandError> {
    let hold = service.operations().hold().await?;
    let shown = Held {
        held_since: hold.map(|hold| DateTime(hold.since)),
        waiting: hold.map_or(0, |hold| hold.waiting),
    };
    Ok(output.print(&shown, |shown| match &shown.held_since {
        None => "Messages aren't held.".to_owned(),
        Some(since) => format!(
            "All messages have been held since {}. {} of them may have been sent before: sort them \
             with --receipts, --export, --discard-older-than and --rest.",
            since.0.to_table(),
            shown.waiting,
        ),
    })?)
}

/// Reads a carrier's list: CSV whose first line names the columns `transid`, `number`, `time` and
/// `id`. Each line needs a transid or a number.
fn read(file: &Path) -> Result<Vec<ExportLine>, CommandError> {
    let refused = |why: String| CommandError::Refused(format!("{}: {why}", file.display()));
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(file);
    let reader = reader.as_mut().map_err(|error| refused(error.to_string()))?;
    let header = reader.headers().map_err(|error| refused(error.to_string()))?.clone();
    let place =
        |name: &str| header.iter().position(|known| known.trim().eq_ignore_ascii_case(name));
    let [transid, number, time, id] = ["transid", "number", "time", "id"].map(place);
    if transid.is_none() && number.is_none() {
        return Err(refused("the first line has no column transid or number".to_owned()));
    }
    let mut lines = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let refused = |why: &str| refused(format!("line {}: {why}", index + 2));
        let record = record.map_err(|error| refused(&error.to_string()))?;
        let field = |place: Option<usize>| {
            let field = place.and_then(|place| record.get(place)).unwrap_or_default().trim();
            (!field.is_empty()).then_some(field)
        };
        let transid = field(transid).map(|text| {
            Transid::parse(text).ok_or_else(|| refused("a transid is m_ and 13 characters"))
        });
        let at = field(time).map(|text| {
            parse_time(text).ok_or_else(|| {
                refused("a time is written like 2026-12-01 08:30:00 in UTC, or as RFC 3339")
            })
        });
        let line = ExportLine {
            transid: transid.transpose()?,
            number: field(number).unwrap_or_default().to_owned(),
            at: at.transpose()?,
            carrier_message_id: field(id).map(str::to_owned),
        };
        if line.transid.is_none() && line.number.is_empty() {
            return Err(refused("the line has neither a transid nor a number"));
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Parses a time as people and programs write it. Without an offset it is in UTC.
fn parse_time(text: &str) -> Option<Timestamp> {
    let parsed = Timestamp::parse_typed(text);
    parsed.or_else(|| Timestamp::parse(&format!("{}Z", text.replacen(' ', "T", 1))))
}
