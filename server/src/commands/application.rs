//! `heliograph application`.

use domain::Reference;
use domain::records::ApplicationRecord;
use service::{Actor, Refusal, Service};

use super::output::{Column, facts, or_dash};
use super::sender::Request;
use super::{CommandError, Output};
use crate::cli::Application;
use crate::json::{Amount, DateTime, shown};

shown! {
    /// An application as the command line shows it.
    struct Shown from record: ApplicationRecord {
        reference: Reference = record.reference,
        category: &'static str = record.category.as_str(),
        status: &'static str = record.status.as_str(),
        email: String = record.email,
        sender_name: Option<String> = record.sender_name,
        requested_sender: Option<Request> = record.requested_sender.map(Request::from),
        balance: Amount = Amount(record.balance),
        test_balance: Amount = Amount(record.test_balance),
        created_at: DateTime = DateTime(record.created_at),
        activation_requested_at: Option<DateTime> = record.activation_requested_at.map(DateTime),
        suspend_reason: Option<String> = record.suspend_reason,
    }
}

const COLUMNS: [Column<Shown>; 7] = [
    ("REFERENCE", |shown| shown.reference.to_string()),
    ("CATEGORY", |shown| shown.category.to_owned()),
    ("STATUS", |shown| shown.status.to_owned()),
    ("BALANCE", |shown| shown.balance.0.to_string()),
    ("SENDER", |shown| or_dash(shown.sender_name.as_deref())),
    ("ACCOUNT", |shown| shown.email.clone()),
    ("ACTIVATION", |shown| {
        let requested_at = shown.activation_requested_at;
        requested_at.map_or("-".to_owned(), |at| format!("requested {}", at.0.to_table()))
    }),
];

pub async fn run(
    service: &Service,
    command: Application,
    output: Output,
) -> Result<(), CommandError> {
    let actor = Actor::CommandLine;
    let record = match command {
        Application::List => {
            let applications = service.applications().all_applications().await?;
            return Ok(output.list(applications, &COLUMNS)?);
        }
        Application::Show { reference } => service
            .applications()
            .find_application(reference)
            .await?
            .ok_or_else(|| CommandError::Refused(Refusal::NoSuchApplication.to_string()))?,
        Application::Approve { reference } => {
            service.applications().approve(&actor, reference).await?
        }
        Application::Suspend { reference, reason } => {
            service.applications().suspend(&actor, reference, &reason).await?
        }
        Application::Reinstate { reference } => {
            service.applications().reinstate(&actor, reference).await?
        }
    };
    Ok(output.print(&Shown::from(record), details)?)
}

fn details(application: &Shown) -> String {
    let mut rows = vec![
        ("reference", application.reference.to_string()),
        ("account", application.email.clone()),
        ("category", application.category.to_owned()),
        ("status", application.status.to_owned()),
        ("balance", application.balance.0.to_string()),
        ("sender name", or_dash(application.sender_name.as_deref())),
        ("created", application.created_at.0.to_table()),
    ];
    if let Some(request) = &application.requested_sender {
        rows.push(("requested name", format!("{} ({})", request.name, request.status)));
    }
    if let Some(reason) = &application.suspend_reason {
        rows.push(("suspended for", reason.clone()));
    }
    facts(&rows)
}
