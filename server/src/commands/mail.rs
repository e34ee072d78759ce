//! `heliograph mail`.

use domain::records::MailRecord;
use service::{Actor, Service};

use super::output::{Column, or_dash};
use super::{CommandError, Output};
use crate::cli::Mail;
use crate::json::{DateTime, shown};

/// The number of mails per page.
const PAGE: i64 = 200;

shown! {
    /// A mail as the command line shows it.
    struct Shown from mail: MailRecord {
        id: i64 = mail.id,
        kind: &'static str = mail.kind.as_str(),
        state: &'static str = mail.state.as_str(),
        recipient: String = mail.recipient,
        subject: String = mail.subject,
        /// Empty once the mail is sent. Never contains a secret link.
        text: String = mail.text,
        created_at: DateTime = DateTime(mail.created_at),
        attempts: i64 = mail.attempts,
        /// Null unless the mail is queued.
        next_attempt_at: Option<DateTime> =
            (mail.state == domain::MailState::Queued).then_some(DateTime(mail.next_attempt_at)),
        last_error: Option<String> = mail.last_error,
    }
}

const COLUMNS: [Column<Shown>; 7] = [
    ("ID", |mail| mail.id.to_string()),
    ("STATE", |mail| mail.state.to_owned()),
    ("WRITTEN", |mail| mail.created_at.0.to_table()),
    ("RECIPIENT", |mail| mail.recipient.clone()),
    ("SUBJECT", |mail| mail.subject.clone()),
    ("ATTEMPTS", |mail| mail.attempts.to_string()),
    ("LAST ERROR", |mail| or_dash(mail.last_error.as_deref())),
];

pub async fn run(service: &Service, command: Mail, output: Output) -> Result<(), CommandError> {
    match command {
        Mail::List => {
            let mut mails = Vec::new();
            let mut cursor = None;
            loop {
                let page = service.operations().mails(cursor.as_deref(), PAGE).await?;
                mails.extend(page.items);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            Ok(output.list(mails, &COLUMNS)?)
        }
        Mail::Retry { id } => {
            let mail = service.operations().retry_mail(&Actor::CommandLine, id).await?;
            Ok(output.print(&Shown::from(mail), |mail| {
                format!("The mail to {} is queued again.", mail.recipient)
            })?)
        }
    }
}
