//! Mails: what each says, and the outbox that they are sent from.
//!
//! A mail is stored in the transaction of what it is about, and a job sends it later ([`sending`]).
//! A link that gives access, to reset a password or to confirm an email, isn't stored with its
//! mail. Its token is made when the mail is sent, and the database has only the token's hash: so
//! neither staff, who read the outbox, nor a backup of the database has a link that works, and no
//! key has to be kept for that.

pub(crate) mod confirming;
mod notices;
mod sending;
mod template;
pub(crate) mod texts;

use domain::records::AccountRecord;
use domain::{MailKind, Timestamp};

use crate::error::Result;
use crate::store::accounts;
use crate::store::applications::ApplicationRow;
use crate::store::outbox::{self, NewMail};
use crate::store::query::Connection;

pub use sending::{MailCounts, OutgoingMail};

/// What the service must know to send mails.
#[derive(Clone, Debug, Default)]
pub struct MailSettings {
    /// For links, without a slash at its end; passkeys are made for it too.
    pub base_url: String,
    /// Whether a mail server is set up: mails are kept for staff otherwise.
    pub is_set_up: bool,
}

/// Whom a mail is for.
pub(crate) struct Recipient<'a> {
    pub(crate) account_id: i64,
    pub(crate) email: &'a str,
}

impl<'a> From<&'a AccountRecord> for Recipient<'a> {
    fn from(account: &'a AccountRecord) -> Self {
        Self {
            account_id: account.id,
            email: &account.email,
        }
    }
}

impl<'a> From<&'a ApplicationRow> for Recipient<'a> {
    fn from(row: &'a ApplicationRow) -> Self {
        Self {
            account_id: row.account_id,
            email: &row.record.email,
        }
    }
}

/// A mail without its recipient.
pub(crate) struct Mail {
    pub(crate) kind: MailKind,
    pub(crate) subject: String,
    /// Paragraphs, with an empty line between them.
    pub(crate) body: String,
    /// The page that the mail links to; `None` too for a mail with a secret link.
    pub(crate) path: Option<String>,
}

/// Puts a mail into the outbox, in the transaction of what it is about; one that its recipient can
/// do without only where it is wanted.
pub(crate) async fn put(
    conn: &mut dyn Connection,
    recipient: impl Into<Recipient<'_>>,
    mail: &Mail,
    now: Timestamp,
) -> Result<()> {
    let recipient = recipient.into();
    if mail.kind.is_optional()
        && !accounts::wants_mail(conn, recipient.account_id, mail.kind).await?
    {
        return Ok(());
    }
    let mail = NewMail {
        account_id: Some(recipient.account_id),
        kind: mail.kind,
        recipient: recipient.email,
        subject: &mail.subject,
        body: &mail.body,
        path: mail.path.as_deref(),
    };
    outbox::insert(conn, &mail, now).await
}
