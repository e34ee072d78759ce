//! Claims mails for sending and stores the results, so that each mail is sent at least once. A
//! process claims a mail under a lease, submits it to the mail server without an open transaction,
//! and then stores the result. A mail that fails temporarily is retried for a day, with a growing
//! backoff.

use domain::records::{MailRecord, Paged};
use domain::timestamp::DAY_MS;
use domain::{MailKind, MailState, Timestamp};

use super::template::render;
use crate::token::{CONFIRMATION_LIFETIME_MS, RESET_LIFETIME_MS, token_hash};
use crate::transactions::work;
use crate::{Limits, Operations};
use store::audit::{self, Actor};
use store::confirmations::Purpose;
use store::error::{Refusal, Result};
use store::outbox::{self, ClaimedRow};
use store::query::Conn;
use store::{accounts, api_calls, confirmations, known_devices};

const MINUTE_MS: i64 = 60_000;
/// How long a link that stops a change of the email is valid. A change takes at most five days: one
/// until the confirmation mail is sent, three until the address is confirmed, and one until the
/// change takes effect.
const STOP_LIFETIME_MS: i64 = 7 * 24 * 60 * MINUTE_MS;
/// How long a process leases a mail. Submitting a mail takes less.
const LEASE_MS: i64 = 3 * MINUTE_MS;
const PAUSE_FIRST_MS: i64 = MINUTE_MS;
const PAUSE_LONGEST_MS: i64 = 4 * 60 * MINUTE_MS;
/// The pauses between this many attempts add up to a little more than a day.
const ATTEMPTS_MAX: i64 = 14;
/// The maximum number of stored characters of an error.
const ERROR_CHARS_MAX: usize = 300;
/// The most API calls that one transaction deletes.
const CALLS_CHUNK: i64 = 1000;
/// How long a device stays known after its last sign-in.
const DEVICES_KNOWN_MS: i64 = 90 * 24 * 60 * MINUTE_MS;
/// The maximum number of mails per page.
const LIST_MAX: i64 = 200;

/// A mail to submit to the mail server.
#[derive(Debug)]
pub struct OutgoingMail {
    pub id: i64,
    /// The number of this attempt, from 1.
    pub attempts: i64,
    pub recipient: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub created_at: Timestamp,
    /// The token of the mail's link, which must not be stored or logged.
    pub secret: Option<String>,
}

/// The numbers of mails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailCounts {
    /// Waiting to be sent.
    pub waiting: i64,
    /// Given up, until they are deleted or retried.
    pub failed: i64,
}

/// Returns the pause after an attempt that failed temporarily. `None` if it was the last one.
fn pause_ms(attempts: i64) -> Option<i64> {
    let doubled = u32::try_from(attempts - 1).unwrap_or_default().min(16);
    (attempts < ATTEMPTS_MAX).then(|| (PAUSE_FIRST_MS << doubled).min(PAUSE_LONGEST_MS))
}

impl Operations<'_> {
    /// Whether a mail server is set up.
    pub fn sends_mail(&self) -> bool {
        self.inner.mail.is_set_up
    }

    /// Claims at most `limit` mails that are due. No other process gets them before the lease ends.
    /// Creates their secret links. Drops a mail with a secret link if its recipient is no longer
    /// the account's current or requested email.
    pub async fn claim_mails(&self, limit: i64) -> Result<Vec<OutgoingMail>> {
        // Read first, because usually nothing is due.
        let due = outbox::next_due(&mut self.store().read().await?).await?;
        if due.is_none_or(|due| due > self.now()) {
            return Ok(Vec::new());
        }
        let service = self.0.clone();
        self.in_transaction(work!(|tx, now| {
            let mut mails = Vec::new();
            let lease_end = now.plus_ms(LEASE_MS);
            for row in outbox::claim(tx, now, lease_end, limit).await? {
                if is_still_meant(tx, &row).await? {
                    mails.push(service.operations().outgoing(tx, row, now).await?);
                } else {
                    outbox::drop_mail(tx, row.id).await?;
                }
            }
            Ok(mails)
        }))
        .await
    }

    /// Renders a mail and creates its secret link, if it has one.
    async fn outgoing(
        &self,
        conn: Conn<'_>,
        row: ClaimedRow,
        now: Timestamp,
    ) -> Result<OutgoingMail> {
        let base_url = &self.inner.mail.base_url;
        let secret = match (row.kind.secret_page(), row.account_id) {
            (Some(page), Some(account_id)) => {
                let token = self.new_token();
                store_link(conn, &row, &token_hash(&token), account_id, now).await?;
                Some((page, token))
            }
            _ => None,
        };
        let link = match (&secret, &row.path) {
            (Some((page, token)), _) => Some(format!("{base_url}{page}{token}")),
            (None, Some(path)) => Some(format!("{base_url}{path}")),
            (None, None) => None,
        };
        let rendered = render(&row.body, link.as_deref(), base_url, self.support_contact());
        Ok(OutgoingMail {
            id: row.id,
            attempts: row.attempts,
            recipient: row.recipient,
            subject: row.subject,
            text: rendered.text,
            html: rendered.html,
            created_at: row.created_at,
            secret: secret.map(|(_, token)| token),
        })
    }

    /// Stores that the mail server accepted a mail, and deletes the mail's text.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` if the database can't be written. The mail is then sent again.
    pub async fn mail_sent(&self, mail: &OutgoingMail) -> Result<()> {
        let (id, attempts) = (mail.id, mail.attempts);
        self.in_transaction(work!(|tx, _| outbox::sent(tx, id, attempts).await.map(drop))).await
    }

    /// Stores why a mail wasn't sent. The mail is retried, unless it was refused permanently or
    /// this was the last attempt. Returns the mail's new state.
    pub async fn mail_not_sent(
        &self,
        mail: &OutgoingMail,
        error: &str,
        for_good: bool,
    ) -> Result<MailState> {
        let (id, attempts) = (mail.id, mail.attempts);
        let error = shown(error, mail.secret.as_deref());
        let pause = pause_ms(attempts).filter(|_| !for_good);
        let state = match pause {
            Some(_) => MailState::Queued,
            None => MailState::Failed,
        };
        self.in_transaction(work!(|tx, now| {
            let next_attempt = now.plus_ms(pause.unwrap_or_default());
            outbox::not_sent(tx, (id, attempts), state, next_attempt, &error).await?;
            Ok(state)
        }))
        .await
    }

    /// Keeps the waiting mails for staff to read. Called if no mail server is set up.
    pub async fn keep_mails(&self) -> Result<()> {
        let due = outbox::next_due(&mut self.store().read().await?).await?;
        if due.is_none_or(|due| due > self.now()) {
            return Ok(());
        }
        self.in_transaction(work!(|tx, _| outbox::keep(tx).await.map(drop))).await
    }

    /// Returns a page of the stored mails, newest first.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn mails(&self, cursor: Option<&str>, limit: i64) -> Result<Paged<MailRecord>> {
        let before = match cursor {
            Some(text) => text.parse().map_err(|_| Refusal::InvalidCursor)?,
            None => i64::MAX,
        };
        let limit = limit.clamp(1, LIST_MAX);
        let mails = outbox::newest(&mut self.store().read().await?, before, limit + 1).await?;
        Ok(Paged::of(mails, limit, |mail| mail.id.to_string()))
    }

    /// Queues a waiting, kept or failed mail again.
    ///
    /// # Errors
    /// `NoSuchMail`, `MailSent`.
    pub async fn retry_mail(&self, actor: &Actor, id: i64) -> Result<MailRecord> {
        let actor = *actor;
        self.in_transaction(work!(|tx, now| {
            let queued = outbox::retry(tx, id, now).await?;
            let mail = outbox::by_id(tx, id).await?.ok_or(Refusal::NoSuchMail)?;
            if !queued {
                return Err(Refusal::MailSent.into());
            }
            let subject = format!("mail {id}");
            audit::insert(tx, now, &actor, "mail.retry", &subject, None).await?;
            Ok(mail)
        }))
        .await
    }

    pub async fn mail_counts(&self) -> Result<MailCounts> {
        let (waiting, failed) = outbox::counts(&mut self.store().read().await?).await?;
        Ok(MailCounts { waiting, failed })
    }

    /// Deletes sent, kept and failed mails that are older than the setting `mail_days`, API calls
    /// that are older than `call_log_days`, expired confirmation links, and devices that weren't
    /// seen for 90 days.
    pub async fn forget_mails(&self) -> Result<()> {
        let Limits { mail_days, call_log_days, .. } = *self.limits();
        self.in_transaction(work!(|tx, now| {
            outbox::forget(tx, now.plus_ms(-mail_days * DAY_MS)).await?;
            if call_log_days > 0 {
                let before = now.plus_ms(-call_log_days * DAY_MS);
                api_calls::forget_old(tx, before, CALLS_CHUNK).await?;
            }
            confirmations::forget(tx, now).await?;
            known_devices::forget(tx, now.plus_ms(-DEVICES_KNOWN_MS)).await
        }))
        .await
    }
}

/// Returns whether a mail with a secret link is still addressed to the account's current or
/// requested email. A mail may wait for a day, and its link is only created when it is sent.
async fn is_still_meant(conn: Conn<'_>, row: &ClaimedRow) -> Result<bool> {
    let (Some(_), Some(account_id)) = (row.kind.secret_page(), row.account_id) else {
        return Ok(true);
    };
    let Some(account) = accounts::by_id(conn, account_id).await? else {
        return Ok(false);
    };
    let meant = match row.kind {
        MailKind::EmailChange => account.new_email,
        _ => Some(account.record.email),
    };
    Ok(meant.as_ref() == Some(&row.recipient))
}

/// Stores the hash of a mail's link and what the link does.
async fn store_link(
    conn: Conn<'_>,
    row: &ClaimedRow,
    hash: &str,
    account_id: i64,
    now: Timestamp,
) -> Result<()> {
    let (purpose, lifetime_ms) = match row.kind {
        MailKind::Reset => {
            let times = (now, now.plus_ms(RESET_LIFETIME_MS));
            let email = Some(row.recipient.as_str());
            return accounts::insert_reset(conn, hash, account_id, email, times).await;
        }
        MailKind::EmailChange => (Purpose::Change, CONFIRMATION_LIFETIME_MS),
        MailKind::EmailStop => (Purpose::Stop, STOP_LIFETIME_MS),
        _ => (Purpose::Confirm, CONFIRMATION_LIFETIME_MS),
    };
    let expires_at = now.plus_ms(lifetime_ms);
    confirmations::insert(conn, hash, account_id, purpose, &row.recipient, expires_at).await
}

/// Returns an error as it is stored, without the secret: a mail server may quote the mail.
fn shown(error: &str, secret: Option<&str>) -> String {
    let error = match secret {
        Some(secret) => error.replace(secret, "…"),
        None => error.to_owned(),
    };
    let printable = error.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::{ATTEMPTS_MAX, MINUTE_MS, pause_ms, shown};

    #[test]
    fn pauses_double_up_to_four_hours_and_add_up_to_a_day() {
        let pauses: Vec<i64> = (1..ATTEMPTS_MAX).filter_map(pause_ms).collect();
        let minutes: Vec<i64> = pauses.iter().map(|pause| pause / MINUTE_MS).collect();
        assert_eq!(minutes[..9], [1, 2, 4, 8, 16, 32, 64, 128, 240]);
        let day = 24 * 60;
        let sum: i64 = minutes.iter().sum();
        assert!((day..day + 60).contains(&sum), "{sum}");
        assert_eq!(pause_ms(ATTEMPTS_MAX), None);
    }

    #[test]
    fn an_error_never_shows_the_secret_and_no_control_characters() {
        let error = "554 spam:\r\nhttps://x/reset/abc123 \u{1b}[2J";
        assert_eq!(shown(error, Some("abc123")), "554 spam:  https://x/reset/…  [2J");
        assert_eq!(shown(&"x".repeat(1000), None).len(), 300);
    }
}
