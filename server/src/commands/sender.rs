//! `heliograph sender`.

use domain::Reference;
use domain::records::SenderRequestRecord;
use service::{Actor, Service};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::Sender;
use crate::json::{DateTime, shown};

shown! {
    /// A request for a sender name as the command line shows it.
    pub struct Request from record: SenderRequestRecord {
        id: i64 = record.id,
        reference: Reference = record.reference,
        pub name: String = record.name,
        pub status: &'static str = record.status.as_str(),
        reason: Option<String> = record.reason,
        requested_at: DateTime = DateTime(record.requested_at),
        decided_at: Option<DateTime> = record.decided_at.map(DateTime),
    }
}

const COLUMNS: [Column<Request>; 6] = [
    ("ID", |request| request.id.to_string()),
    ("REFERENCE", |request| request.reference.to_string()),
    ("NAME", |request| request.name.clone()),
    ("STATUS", |request| request.status.to_owned()),
    ("REQUESTED", |request| request.requested_at.0.to_table()),
    ("REASON", |request| or_dash(request.reason.as_deref())),
];

pub async fn run(service: &Service, command: Sender, output: Output) -> Result<(), CommandError> {
    let actor = Actor::CommandLine;
    let record = match command {
        Sender::List => {
            let requests = service.applications().sender_requests(true).await?;
            return Ok(output.list(requests, &COLUMNS)?);
        }
        Sender::Accept { id } => service.applications().accept_sender(&actor, id).await?,
        Sender::Reject { id, reason } => {
            service.applications().reject_sender(&actor, id, &reason).await?
        }
    };
    Ok(output.print(&Request::from(record), |request| {
        format!("{} is {}.", request.name, request.status)
    })?)
}
