//! `heliograph webhook`.

use domain::KeyKind;
use domain::webhook::{DisabledReason, WebhookRecord};
use service::Service;

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::Webhook;
use crate::json::{DateTime, shown};

shown! {
    /// An endpoint as the command line shows it.
    struct Shown from (key, record): (KeyKind, WebhookRecord) {
        webhookid: String = record.webhookid.to_string(),
        key: &'static str = key.as_str(),
        events: Option<String> = record.types(),
        status: &'static str = if record.disabled.is_some() { "disabled" } else { "active" },
        disabled_reason: Option<&'static str> = record.disabled.map(DisabledReason::as_str),
        failing_since: Option<DateTime> = record.failing_since.map(DateTime),
        created_at: DateTime = DateTime(record.created_at),
        url: String = record.url,
    }
}

const COLUMNS: [Column<Shown>; 7] = [
    ("ID", |shown| shown.webhookid.clone()),
    ("KEY", |shown| shown.key.to_owned()),
    ("STATUS", |shown| shown.status.to_owned()),
    ("REASON", |shown| or_dash(shown.disabled_reason)),
    ("FAILING SINCE", |shown| {
        shown.failing_since.as_ref().map_or_else(|| "-".to_owned(), |since| since.0.to_table())
    }),
    ("CREATED", |shown| shown.created_at.0.to_table()),
    ("URL", |shown| shown.url.clone()),
];

pub async fn run(service: &Service, command: Webhook, output: Output) -> Result<(), CommandError> {
    let Webhook::List { reference } = command;
    let endpoints = service.webhooks().of_application(reference).await?;
    Ok(output.list(endpoints, &COLUMNS)?)
}
