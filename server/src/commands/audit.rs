//! `heliograph audit`.

use domain::support::AuditRecord;
use serde::Serialize;
use service::{AuditFilter, Service};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::Audit;
use crate::json::DateTime;

/// The number of entries per page.
const PAGE: i64 = 1000;

/// An entry as the command line shows it.
#[derive(Serialize)]
struct Shown {
    id: i64,
    at: DateTime,
    who: String,
    address: Option<String>,
    action: String,
    subject: String,
    before: Option<String>,
    after: Option<String>,
    detail: Option<String>,
}

impl From<AuditRecord> for Shown {
    fn from(entry: AuditRecord) -> Self {
        Self {
            id: entry.id,
            at: DateTime(entry.at),
            who: entry.who,
            address: entry.address,
            action: entry.action,
            subject: entry.subject,
            before: entry.before,
            after: entry.after,
            detail: entry.detail,
        }
    }
}

const COLUMNS: [Column<Shown>; 8] = [
    ("AT", |entry| entry.at.0.to_table()),
    ("WHO", |entry| entry.who.clone()),
    ("ADDRESS", |entry| or_dash(entry.address.as_deref())),
    ("ACTION", |entry| entry.action.clone()),
    ("SUBJECT", |entry| entry.subject.clone()),
    ("BEFORE", |entry| or_dash(entry.before.as_deref())),
    ("AFTER", |entry| or_dash(entry.after.as_deref())),
    ("DETAIL", |entry| or_dash(entry.detail.as_deref())),
];

pub async fn run(service: &Service, command: Audit, output: Output) -> Result<(), CommandError> {
    let Audit::List { subject, from } = command;
    let mut filter = AuditFilter { subject, from, limit: PAGE, ..AuditFilter::default() };
    let mut entries = Vec::new();
    loop {
        let page = service.support().audit(&filter).await?;
        entries.extend(page.items);
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            return Ok(output.list(entries, &COLUMNS)?);
        }
    }
}
