//! Confirming that an email address belongs to the person who registered with it.

use domain::{MailKind, Timestamp};

use super::audit_owner;
use crate::Accounts;
use crate::mail::{self, texts};
use crate::token::token_hash;
use crate::transactions::work;
use store::audit::Change;
use store::confirmations::Purpose;
use store::error::{Refusal, Result};
use store::query::Conn;
use store::{accounts, confirmations};

/// The minimum time between two confirmation mails to an account.
const MAIL_PAUSE_MS: i64 = 5 * 60 * 1000;

impl Accounts<'_> {
    /// Returns whether an account must confirm its email before it can create applications. Always
    /// false if no mail server is set up.
    pub async fn must_confirm(&self, account_id: i64) -> Result<bool> {
        self.must_confirm_in(&mut self.store().read().await?, account_id).await
    }

    pub(crate) async fn must_confirm_in(&self, conn: Conn<'_>, account_id: i64) -> Result<bool> {
        if !self.operations().sends_mail() {
            return Ok(false);
        }
        let account = accounts::by_id(conn, account_id).await?;
        Ok(account.is_some_and(|row| row.record.confirmed_at.is_none()))
    }

    /// Mails another link that confirms the email.
    ///
    /// # Errors
    /// `NoSuchAccount`, `EmailConfirmed`. `Throttled` within five minutes of the last mail, and if
    /// the address has received too many mails.
    pub async fn mail_confirmation(&self, account_id: i64) -> Result<()> {
        self.in_transaction(work!(|tx, now| {
            let account = accounts::by_id(tx, account_id).await?;
            let account = account.ok_or(Refusal::NoSuchAccount)?.record;
            if account.confirmed_at.is_some() {
                return Err(Refusal::EmailConfirmed.into());
            }
            throttle(tx, account_id, now).await?;
            refuse_flood(tx, &account.email, now).await?;
            mail::put(tx, &account, &texts::confirm(), now).await
        }))
        .await
    }

    /// Confirms an email. `token` is from the link in the mail. Using the link again changes
    /// nothing.
    ///
    /// # Errors
    /// `ConfirmationInvalid`.
    pub async fn confirm_email(&self, token: &str) -> Result<()> {
        let hash = token_hash(token);
        self.in_transaction(work!(|tx, now| {
            let found = confirmations::find(tx, &hash, Purpose::Confirm, now).await?;
            let (account_id, email) = found.ok_or(Refusal::ConfirmationInvalid)?;
            let account = accounts::by_id(tx, account_id).await?;
            if account.is_none_or(|row| row.record.email != email) {
                return Err(Refusal::ConfirmationInvalid.into());
            }
            confirm(tx, account_id, now).await.map(drop)
        }))
        .await
    }
}

/// Confirms the email of an account. Returns false if it was already confirmed.
pub(super) async fn confirm(conn: Conn<'_>, account_id: i64, now: Timestamp) -> Result<bool> {
    let confirmed = confirmations::confirm(conn, account_id, now).await?;
    if confirmed {
        audit_owner(conn, now, account_id, "account.confirm", Change::default()).await?;
    }
    Ok(confirmed)
}

/// Refuses another mail to an unconfirmed address that has received too many mails.
///
/// # Errors
/// `Throttled`.
pub(super) async fn refuse_flood(conn: Conn<'_>, email: &str, now: Timestamp) -> Result<()> {
    if mail::has_room(conn, email, MailKind::Confirm, false, now).await? {
        return Ok(());
    }
    let retry_after_s = 60 * 60;
    Err(Refusal::Throttled { retry_after_s }.into())
}

/// Records that another confirmation mail to an account is written now.
///
/// # Errors
/// `Throttled` within five minutes of the last one.
pub(super) async fn throttle(conn: Conn<'_>, account_id: i64, now: Timestamp) -> Result<()> {
    let since = now.plus_ms(-MAIL_PAUSE_MS);
    if confirmations::mail_again(conn, account_id, now, since).await? {
        return Ok(());
    }
    let last = confirmations::mailed_at(conn, account_id).await?;
    let retry_after_s = last.ms_since(since).max(1000) / 1000;
    Err(Refusal::Throttled { retry_after_s }.into())
}
