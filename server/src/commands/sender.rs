//! `heliograph sender`.

use domain::Reference;
use domain::records::SenderRequestRecord;
use serde::Serialize;
use service::{Actor, Service};

use super::output::{or_dash, table};
use super::{CommandError, Output};
use crate::cli::Sender;
use crate::json::Moment;

/// A request for a sender name as the command line shows it.
#[derive(Serialize)]
pub struct Request {
    id: i64,
    reference: Reference,
    pub name: String,
    pub status: &'static str,
    reason: Option<String>,
    requested_at: Moment,
    decided_at: Option<Moment>,
}

impl From<SenderRequestRecord> for Request {
    fn from(record: SenderRequestRecord) -> Self {
        Self {
            id: record.id,
            reference: record.reference,
            name: record.name,
            status: record.status.as_str(),
            reason: record.reason,
            requested_at: Moment(record.requested_at),
            decided_at: record.decided_at.map(Moment),
        }
    }
}

pub async fn run(service: &Service, command: Sender, output: Output) -> Result<(), CommandError> {
    let actor = Actor::CommandLine;
    let record = match command {
        Sender::List => return list(service, output).await,
        Sender::Accept { id } => service.accept_sender(&actor, id).await?,
        Sender::Reject { id, reason } => service.reject_sender(&actor, id, &reason).await?,
    };
    output.print(&Request::from(record), |request| {
        format!("{} is {}.", request.name, request.status)
    })?;
    Ok(())
}

async fn list(service: &Service, output: Output) -> Result<(), CommandError> {
    let requests: Vec<Request> = service
        .sender_requests(true)
        .await?
        .into_iter()
        .map(Request::from)
        .collect();
    output.print(&requests, |requests| {
        let rows: Vec<Vec<String>> = requests.iter().map(row).collect();
        table(
            &["ID", "REFERENCE", "NAME", "STATUS", "REQUESTED", "REASON"],
            &rows,
        )
    })?;
    Ok(())
}

fn row(request: &Request) -> Vec<String> {
    vec![
        request.id.to_string(),
        request.reference.to_string(),
        request.name.clone(),
        request.status.to_owned(),
        request.requested_at.0.to_table(),
        or_dash(request.reason.as_deref()),
    ]
}
