//! Mails: their texts, and the outbox from which they are sent.
//!
//! The transaction of a change also stores the mail about it. A job sends the mail later
//! ([`sending`]).
//!
//! A link that gives access, for example to reset a password or to confirm an email, isn't stored
//! with its mail. Its token is created when the mail is sent, and the database stores only the
//! token's hash. So neither the outbox, which staff read, nor a backup of the database contains a
//! working link, and no encryption key is needed.

mod notices;
mod sending;
mod template;
pub(crate) mod texts;

use domain::records::AccountRecord;
use domain::support_hours::SupportHours;
use domain::{MailKind, Timestamp};

use store::accounts;
use store::applications::ApplicationRow;
use store::error::Result;
use store::outbox::{self, NewMail};
use store::query::Conn;

pub use sending::{MailCounts, OutgoingMail};

#[derive(Clone, Debug, Default)]
pub struct MailSettings {
    /// The base URL of links, without a trailing slash. Passkeys are also created for it.
    pub base_url: String,
    /// Whether a mail server is set up. Otherwise mails are kept for staff.
    pub is_set_up: bool,
    /// How customers reach support, as lines of text.
    pub support_contact: Option<String>,
    /// The hours in which staff answer. They say how long an answer usually takes.
    pub support_hours: Option<SupportHours>,
}

pub(crate) struct Recipient<'a> {
    pub(crate) account_id: i64,
    pub(crate) email: &'a str,
    /// The display name of the application that the mail is about, if its owner has set one.
    pub(crate) application_name: Option<&'a str>,
}

impl<'a> Recipient<'a> {
    /// Creates the recipient of a mail that is about no application with a name.
    pub(crate) const fn of_account(account_id: i64, email: &'a str) -> Self {
        Self { account_id, email, application_name: None }
    }
}

impl<'a> From<&'a AccountRecord> for Recipient<'a> {
    fn from(account: &'a AccountRecord) -> Self {
        Self::of_account(account.id, &account.email)
    }
}

impl<'a> From<&'a ApplicationRow> for Recipient<'a> {
    fn from(row: &'a ApplicationRow) -> Self {
        let application_name = row.record.name.as_deref();
        Self { account_id: row.account_id, email: &row.record.email, application_name }
    }
}

/// A mail without its recipient.
pub(crate) struct Mail {
    pub(crate) kind: MailKind,
    pub(crate) subject: String,
    /// Paragraphs, separated by empty lines.
    pub(crate) body: String,
    /// The page that the mail links to. `None` if there is no link or the link is secret.
    pub(crate) path: Option<String>,
}

/// The maximum number of mails per hour, of all kinds, to an unconfirmed address. Anybody can cause
/// mails to any address.
const UNCONFIRMED_MAX: i64 = 5;
/// The maximum number of mails per hour of a kind that anybody who knows an email or a password can
/// cause. Later mails would only repeat what the first ones say. Each kind has its own count, so
/// that a thief can't use up the mails of another kind.
pub(crate) const PER_KIND_MAX: i64 = 5;
/// The maximum number of mails per hour of each other kind about the security of an account. Only a
/// signed-in person can cause these.
const SECURITY_MAX: i64 = 20;
/// The maximum number of optional mails per hour.
const OPTIONAL_MAX: i64 = 100;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Returns whether an address may get another mail of a kind within the hour. A mail about the
/// security of a confirmed account is withheld only if earlier mails said the same.
pub(crate) async fn has_room(
    conn: Conn<'_>,
    email: &str,
    kind: MailKind,
    confirmed: bool,
    now: Timestamp,
) -> Result<bool> {
    let written = outbox::written(conn, email, now.plus_ms(-HOUR_MS)).await?;
    let count = |counts: &dyn Fn(MailKind) -> bool| -> i64 {
        let counted = written.iter().filter(|(kind, _)| counts(*kind));
        counted.map(|(_, n)| n).sum()
    };
    Ok(match kind {
        MailKind::Reset | MailKind::NewDevice if confirmed => {
            count(&|other| other == kind) < PER_KIND_MAX
        }
        _ if kind.is_for_unconfirmed() => count(&|_| true) < UNCONFIRMED_MAX,
        _ if kind.is_optional() => count(&MailKind::is_optional) < OPTIONAL_MAX,
        _ => count(&|other| other == kind) < SECURITY_MAX,
    })
}

/// Puts a mail into the outbox, in the transaction of the change that it reports. Skips an optional
/// mail that the recipient has turned off. An unconfirmed address gets only the kinds for
/// unconfirmed addresses, and no address gets more than [`has_room`] allows.
pub(crate) async fn put(
    conn: Conn<'_>,
    recipient: impl Into<Recipient<'_>>,
    mail: &Mail,
    now: Timestamp,
) -> Result<()> {
    let recipient = recipient.into();
    let (unwanted, confirmed) = accounts::mail_wishes(conn, recipient.account_id).await?;
    let is_wanted = !mail.kind.is_optional() || !unwanted.contains(&mail.kind);
    if !is_wanted
        || !(confirmed || mail.kind.is_for_unconfirmed())
        || !has_room(conn, recipient.email, mail.kind, confirmed, now).await?
    {
        return Ok(());
    }
    let subject = match recipient.application_name {
        Some(name) => format!("{} ({name})", mail.subject),
        None => mail.subject.clone(),
    };
    let mail = NewMail {
        account_id: Some(recipient.account_id),
        kind: mail.kind,
        recipient: recipient.email,
        subject: &subject,
        body: &mail.body,
        path: mail.path.as_deref(),
    };
    outbox::insert(conn, &mail, now).await
}
