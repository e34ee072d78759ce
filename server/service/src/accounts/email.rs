//! Changing an account's email.
//!
//! The new address gets a link, and nothing changes before its owner confirms the address. Unless a
//! second factor confirmed the change, the change then waits for a day, in which the owner of the
//! current address can stop it. So somebody who has only the password can't take over the account
//! permanently.

use domain::records::{AccountRecord, AccountSettings};
use domain::security_event::SecurityEventKind;
use domain::{Email, Timestamp};

use crate::Accounts;
use crate::accounts::audit_owner;
use crate::accounts::confirming::{refuse_flood, throttle};
use crate::accounts::throttle::Attempt;
use crate::mail::{self, Recipient, texts};
use crate::token::token_hash;
use crate::transactions::work;
use store::accounts::AccountRow;
use store::audit::Change;
use store::confirmations::Purpose;
use store::error::{Refusal, Result};
use store::query::Conn;
use store::{accounts, confirmations, second_factors};

/// How long a confirmed change waits if no second factor confirmed it.
const WAIT_MS: i64 = 24 * 60 * 60 * 1000;

impl Accounts<'_> {
    /// Returns the settings of an account that only its owner sees.
    ///
    /// # Errors
    /// `NoSuchAccount`.
    pub async fn account_settings(&self, account_id: i64) -> Result<AccountSettings> {
        let row = accounts::by_id(&mut self.store().read().await?, account_id).await?;
        let row = row.ok_or(Refusal::NoSuchAccount)?;
        Ok(AccountSettings {
            account: row.record,
            new_email: row.new_email,
            new_email_at: row.new_email_at,
            unwanted_mails: row.unwanted_mails,
        })
    }

    /// Requests a new email. Mails a confirmation link to the new address. Mails the current
    /// address a link that stops the change. Replaces an earlier request. If the account has a
    /// second factor, the caller must have checked it.
    ///
    /// # Errors
    /// `NoMailSent`, `WrongPassword`, `EmailUnchanged`, `EmailTaken`. `Throttled` also within five
    /// minutes of the last confirmation mail, for the sixth request in a day, and if the new
    /// address has received too many mails.
    pub async fn request_email_change(
        &self,
        account: &AccountRecord,
        password: &str,
        new: &Email,
    ) -> Result<()> {
        if !self.operations().sends_mail() {
            return Err(Refusal::NoMailSent.into());
        }
        let verified = self.verify_password(account.id, password).await?;
        let counted = self.count(Attempt::EmailChange, "", &account.id.to_string())?;
        let (account, new) = (account.clone(), new.clone());
        let requested = self.in_transaction(work!(|tx, now| {
            accounts::still_in_force(tx, account.id, &verified).await?;
            if account.email == new.as_str() {
                return Err(Refusal::EmailUnchanged.into());
            }
            if accounts::by_email(tx, new.as_str()).await?.is_some() {
                return Err(Refusal::EmailTaken.into());
            }
            throttle(tx, account.id, now).await?;
            refuse_flood(tx, new.as_str(), now).await?;
            accounts::set_new_email(tx, account.id, Some(new.as_str())).await?;
            let to_new = Recipient::of_account(account.id, new.as_str());
            mail::put(tx, to_new, &texts::change_email(), now).await?;
            let notice = texts::email_change_asked(new.as_str());
            mail::put(tx, &account, &notice, now).await?;
            let change = Change::of(&account.email, new.as_str());
            audit_owner(tx, now, account.id, "account.ask_email", change).await
        }));
        requested.await.inspect_err(|_| self.inner.throttle.uncount(&counted))
    }

    /// Cancels the pending change of the email, confirmed or not. Its link stops working.
    pub async fn cancel_email_change(&self, account_id: i64) -> Result<()> {
        self.in_transaction(work!(|tx, now| cancel(tx, account_id, now).await.map(drop))).await
    }

    /// Cancels a change of the email. `token` is from the link that was mailed to the current
    /// address. Using the link again changes nothing.
    ///
    /// # Errors
    /// `ConfirmationInvalid`, also if the account's email has changed since the mail was sent.
    pub async fn stop_email_change(&self, token: &str) -> Result<()> {
        let hash = token_hash(token);
        let mut event = self.event(SecurityEventKind::EmailChangeStopped, None);
        self.in_transaction(work!(|tx, now| {
            let found = confirmations::find(tx, &hash, Purpose::Stop, now).await?;
            let (id, email) = found.ok_or(Refusal::ConfirmationInvalid)?;
            let row = accounts::by_id(tx, id).await?;
            if row.is_none_or(|row| row.record.email != email) {
                return Err(Refusal::ConfirmationInvalid.into());
            }
            if !cancel(tx, id, now).await? {
                return Ok(());
            }
            event.account_id = Some(id);
            event.store(tx, now).await
        }))
        .await
    }

    /// Confirms the new email of an account. `token` is from the link that was mailed to the new
    /// email. Returns when the change takes effect, or `None` if it already has. The change takes
    /// effect at once if a second factor confirmed it, or if the old email was never confirmed.
    /// Using the link again changes nothing. Invalidates the account's earlier reset links.
    ///
    /// # Errors
    /// `ConfirmationInvalid`, also if another address was requested meanwhile or the change was
    /// canceled. `EmailTaken`.
    pub async fn change_email(&self, token: &str) -> Result<Option<Timestamp>> {
        let hash = token_hash(token);
        let service = self.0.clone();
        self.in_transaction(work!(|tx, now| {
            let found = confirmations::find(tx, &hash, Purpose::Change, now).await?;
            let (id, email) = found.ok_or(Refusal::ConfirmationInvalid)?;
            let row = accounts::by_id(tx, id).await?;
            let row = row.ok_or(Refusal::ConfirmationInvalid)?;
            if row.record.email == email {
                return Ok(None);
            }
            if row.new_email.as_ref() != Some(&email) || row.disabled_at.is_some() {
                return Err(Refusal::ConfirmationInvalid.into());
            }
            if row.new_email_at.is_some() {
                return Ok(row.new_email_at);
            }
            if accounts::by_email(tx, &email).await?.is_some() {
                return Err(Refusal::EmailTaken.into());
            }
            if takes_effect_at_once(tx, &row, now).await? {
                service.accounts().give_email(tx, &row, &email, now).await?;
                return Ok(None);
            }
            let at = now.plus_ms(WAIT_MS);
            wait(tx, &row, &email, at, now).await?;
            Ok(Some(at))
        }))
        .await
    }

    /// Applies the email changes whose wait is over. If some can't be applied, applies the others.
    ///
    /// # Errors
    /// The last failure. Each is logged.
    pub async fn apply_email_changes(&self) -> Result<()> {
        let due = accounts::new_emails_due(&mut self.store().read().await?, self.now()).await?;
        let mut result = Ok(());
        for id in due {
            if let Err(error) = self.apply_email_change(id).await {
                tracing::warn!(account = id, detail = ?error, "an email change can't be applied");
                result = Err(error);
            }
        }
        result
    }

    async fn apply_email_change(&self, id: i64) -> Result<()> {
        let service = self.0.clone();
        self.in_transaction(work!(|tx, now| {
            let Some(row) = accounts::by_id(tx, id).await? else {
                return Ok(());
            };
            let (Some(email), Some(at)) = (&row.new_email, row.new_email_at) else {
                return Ok(());
            };
            if at > now {
                return Ok(());
            }
            if accounts::by_email(tx, email).await?.is_some() {
                mail::put(tx, &row.record, &texts::email_taken(email), now).await?;
                return cancel(tx, id, now).await.map(drop);
            }
            service.accounts().give_email(tx, &row, email, now).await
        }))
        .await
    }

    /// Sets the requested email of an account and notifies both addresses.
    async fn give_email(
        &self,
        conn: Conn<'_>,
        row: &AccountRow,
        email: &str,
        now: Timestamp,
    ) -> Result<()> {
        let id = row.record.id;
        accounts::spend_resets(conn, id, now).await?;
        mail::put(conn, &row.record, &texts::email_changed(email), now).await?;
        if !accounts::set_email(conn, id, email, now).await? {
            // The change was canceled or applied meanwhile.
            return Err(Refusal::ConfirmationInvalid.into());
        }
        let to_new = Recipient::of_account(id, email);
        mail::put(conn, to_new, &texts::email_in_use(), now).await?;
        let change = Change::of(&row.record.email, email);
        audit_owner(conn, now, id, "account.email", change).await?;
        let event = self.event(SecurityEventKind::EmailChanged, Some(id));
        event.store(conn, now).await
    }
}

/// True if a confirmed change doesn't have to wait. A second factor that is younger than the wait
/// doesn't count, unless the account is that young too. Otherwise a thief with the password could
/// set up a second factor first.
async fn takes_effect_at_once(conn: Conn<'_>, row: &AccountRow, now: Timestamp) -> Result<bool> {
    let since = now.plus_ms(-WAIT_MS);
    let factor = second_factors::of(conn, row.record.id).await?;
    let confirmed_by_factor =
        factor.is_some_and(|factor| factor.created_at <= since || row.created_at > since);
    Ok(confirmed_by_factor || row.record.confirmed_at.is_none())
}

/// Schedules a confirmed change for `at` and notifies both addresses.
async fn wait(
    conn: Conn<'_>,
    row: &AccountRow,
    email: &str,
    at: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let id = row.record.id;
    if !accounts::set_new_email_at(conn, id, email, at).await? {
        return Err(Refusal::ConfirmationInvalid.into());
    }
    // Somebody who reads the old mailbox may have requested a reset link, and must not set a
    // password now.
    accounts::spend_resets(conn, id, now).await?;
    let notice = texts::email_change_waits(email, at);
    mail::put(conn, &row.record, &notice, now).await?;
    let to_new = Recipient::of_account(id, email);
    mail::put(conn, to_new, &texts::email_change_confirmed(at), now).await?;
    let change = Change::of(&row.record.email, email);
    audit_owner(conn, now, id, "account.confirm_email", change).await
}

/// Cancels the change of the email. Returns false if none is pending.
async fn cancel(conn: Conn<'_>, account_id: i64, now: Timestamp) -> Result<bool> {
    let account = accounts::by_id(conn, account_id).await?;
    if account.is_none_or(|row| row.new_email.is_none()) {
        return Ok(false);
    }
    accounts::set_new_email(conn, account_id, None).await?;
    audit_owner(conn, now, account_id, "account.cancel_email", Change::default()).await?;
    Ok(true)
}
