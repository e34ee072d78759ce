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

/// The most mails in an hour to an address that nobody has confirmed, of all kinds: anybody can have
/// them sent to anybody.
const UNCONFIRMED_MAX: i64 = 5;
/// The most mails of one kind in an hour, of the kinds that anybody can cause who knows an email, or
/// a password: the first ones say all that further ones would. Each kind counts for itself, so that
/// a thief can't use up what another kind has to say.
pub(crate) const PER_KIND_MAX: i64 = 5;
/// The most mails in an hour of each other kind about the security of an account, which only
/// somebody causes who is signed in.
const SECURITY_MAX: i64 = 20;
/// The most mails in an hour of those that an account can do without.
const OPTIONAL_MAX: i64 = 100;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Whether an address may get another mail of a kind within the hour. What a mail about the security
/// of a confirmed account says is never withheld, but where earlier mails said the same.
pub(crate) async fn has_room(
    conn: &mut dyn Connection,
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

/// Puts a mail into the outbox, in the transaction of what it is about; one that its recipient can
/// do without only where it is wanted. An address that isn't confirmed gets nothing but what is
/// meant for such addresses, and no address gets more than [`has_room`] says.
pub(crate) async fn put(
    conn: &mut dyn Connection,
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
