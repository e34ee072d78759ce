//! `heliograph audit`.

use domain::support::AuditRecord;
use service::{AuditFilter, Service};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::Audit;
use crate::json::{DateTime, shown};

/// The number of entries per page.
const PAGE: i64 = 1000;

shown! {
    /// An entry as the command line shows it.
    struct Shown from entry: AuditRecord {
        id: i64 = entry.id,
        at: DateTime = DateTime(entry.at),
        who: String = entry.who,
        address: Option<String> = entry.address,
        action: String = entry.action,
        subject: String = entry.subject,
        before: Option<String> = entry.before,
        after: Option<String> = entry.after,
        detail: Option<String> = entry.detail,
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
