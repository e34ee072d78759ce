//! `heliograph message`.

use domain::Transid;
use domain::support::{MessageFile, SegmentRecord};
use serde::Serialize;
use service::{Actor, Refusal, Service, Settlement, UnknownMessage};

use super::output::{Column, facts, or_dash, table};
use super::{CommandError, Output, hold};
use crate::api::record::{Charge, Report, Step};
use crate::cli::{Message, SettleAs};
use crate::json::{DateTime, shown};

/// A message as the command line shows it.
#[derive(Serialize)]
struct Shown<'a> {
    account: String,
    reference: String,
    carrier: Option<String>,
    /// The carrier that the message waits for, and why it waits.
    waits_for: Option<String>,
    /// The field `message` is empty unless the text was requested.
    #[serde(flatten)]
    report: Report<'a>,
    /// The number of characters in the text.
    characters: usize,
    timeline: Vec<Step>,
    charge: Charge,
    segment_list: Vec<SegmentLine>,
}

shown! {
    struct SegmentLine from record: SegmentRecord {
        segment: i64 = record.segment,
        carrier: String = record.carrier,
        carrier_id: Option<String> = record.carrier_id,
        status: &'static str = record.status.as_str(),
        error: Option<String> = record.error,
        submits: i64 = record.submits,
        submitted_at: DateTime = DateTime(record.submitted_at),
    }
}

shown! {
    /// A message whose outcome is unknown.
    struct UnknownLine from found: UnknownMessage {
        transid: String = found.message.transid.to_string(),
        created_at: DateTime = DateTime(found.message.created_at),
        carrier: Option<String> = found.carrier,
        number: String = found.message.number,
        account: String = found.owner.email,
        reference: String = found.owner.reference.to_string(),
    }
}

const UNKNOWN: [Column<UnknownLine>; 6] = [
    ("TRANSID", |line| line.transid.clone()),
    ("CREATED", |line| line.created_at.0.to_table()),
    ("CARRIER", |line| or_dash(line.carrier.as_deref())),
    ("NUMBER", |line| line.number.clone()),
    ("ACCOUNT", |line| line.account.clone()),
    ("REFERENCE", |line| line.reference.clone()),
];

const STEPS: [Column<Step>; 3] = [
    ("AT", |step| step.at.0.to_table()),
    ("STATUS", |step| step.status.to_owned()),
    ("DETAIL", |step| or_dash(step.detail.as_deref())),
];

const SEGMENTS: [Column<SegmentLine>; 7] = [
    ("SEGMENT", |segment| segment.segment.to_string()),
    ("CARRIER", |segment| segment.carrier.clone()),
    ("CARRIER'S ID", |segment| or_dash(segment.carrier_id.as_deref())),
    ("STATUS", |segment| segment.status.to_owned()),
    ("ERROR", |segment| or_dash(segment.error.as_deref())),
    ("SUBMITS", |segment| segment.submits.to_string()),
    ("SUBMITTED", |segment| segment.submitted_at.0.to_table()),
];

pub async fn run(service: &Service, command: Message, output: Output) -> Result<(), CommandError> {
    let (transid, text) = match command {
        Message::Unknown { carrier } => return unknown(service, carrier.as_deref(), output).await,
        Message::Show { transid, text } => (transid, text),
        Message::Settle { transids, settlement } => {
            let settlement = match settlement {
                SettleAs::Delivered => Settlement::Delivered,
                SettleAs::Failed => Settlement::Failed,
                SettleAs::NeverSent => Settlement::NeverSent,
            };
            return each(&transids, output, async |transid| {
                service.support().settle_message(&Actor::CommandLine, transid, settlement).await
            })
            .await;
        }
        Message::Hold => return hold::hold(service, output).await,
        Message::Reconcile(command) => return hold::reconcile(service, command, output).await,
        Message::Requeue { transids } => {
            return each(&transids, output, async |transid| {
                service.support().requeue_message(&Actor::CommandLine, transid).await
            })
            .await;
        }
    };
    let mut file = found(service, transid).await?;
    if text {
        file.record.message = service.support().show_text(&Actor::CommandLine, transid).await?;
    }
    let currency = service.money().price_list().await?.currency;
    let shown = Shown {
        account: file.owner.email,
        reference: file.owner.reference.to_string(),
        carrier: file.carrier,
        waits_for: file.waits_for,
        report: Report::new(file.record, &currency),
        characters: file.chars,
        timeline: file.timeline.into_iter().map(Step::from).collect(),
        charge: file.charge.into(),
        segment_list: file.segments.into_iter().map(SegmentLine::from).collect(),
    };
    Ok(output.print(&shown, words)?)
}

/// Lists the messages whose outcome is unknown, with the commands that decide about them.
async fn unknown(
    service: &Service,
    carrier: Option<&str>,
    output: Output,
) -> Result<(), CommandError> {
    let found = service.support().unknown_messages(carrier).await?;
    let lines: Vec<UnknownLine> = found.into_iter().map(Into::into).collect();
    Ok(output.print(&lines, |lines| {
        if lines.is_empty() {
            return "No message has an unknown outcome.".to_owned();
        }
        format!(
            "{}\n\nAsk the carrier, then decide: heliograph message settle TRANSID... --as \
             delivered|failed|never-sent, or heliograph message requeue TRANSID...",
            table(lines, &UNKNOWN)
        )
    })?)
}

/// A message that a command decided about.
#[derive(Serialize)]
struct Decided {
    transid: String,
}

/// Decides about each message. Prints those that were changed, and refuses the others with the
/// reasons.
async fn each(
    transids: &[Transid],
    output: Output,
    decide: impl AsyncFn(Transid) -> service::Result<()>,
) -> Result<(), CommandError> {
    let (mut decided, mut refusals) = (Vec::new(), Vec::new());
    for transid in transids {
        match decide(*transid).await {
            Ok(()) => decided.push(Decided { transid: transid.to_string() }),
            Err(error) => match error.refusal() {
                Some(refusal) => refusals.push(format!("{transid}: {refusal}")),
                None => return Err(error.into()),
            },
        }
    }
    if !decided.is_empty() {
        output.print(&decided, |decided| {
            let lines = decided.iter().map(|one| format!("{}: done", one.transid));
            lines.collect::<Vec<_>>().join("\n")
        })?;
    }
    if refusals.is_empty() { Ok(()) } else { Err(CommandError::Refused(refusals.join("\n"))) }
}

async fn found(service: &Service, transid: Transid) -> Result<MessageFile, CommandError> {
    let file = service.support().message_file(transid).await?;
    file.ok_or_else(|| CommandError::Refused(Refusal::NoSuchMessage.to_string()))
}

fn words(shown: &Shown<'_>) -> String {
    let report = &shown.report;
    let text = match report.message.as_deref().unwrap_or_default() {
        "" => format!("{} characters; --text shows them", shown.characters),
        text => text.to_owned(),
    };
    let facts = facts(&[
        ("transid", report.transid.clone()),
        ("account", shown.account.clone()),
        ("reference", shown.reference.clone()),
        ("number", report.number.clone()),
        ("status", report.status.to_owned()),
        ("error", or_dash(report.error.as_deref())),
        ("carrier", or_dash(shown.carrier.as_deref())),
        ("waits for", or_dash(shown.waits_for.as_deref())),
        ("request ID", or_dash(report.requestid.as_deref())),
        ("batchid", or_dash(report.batchid.as_deref())),
        ("text", text),
        ("charge", shown.charge.why.clone()),
    ]);
    let mut words = format!("{facts}\n\n{}", table(&shown.timeline, &STEPS));
    if !shown.segment_list.is_empty() {
        words = format!("{words}\n\n{}", table(&shown.segment_list, &SEGMENTS));
    }
    words
}
