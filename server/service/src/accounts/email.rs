//! Changing an account's email: the new address is mailed a link, and nothing changes before its
//! owner says that it is theirs.

use domain::Email;
use domain::records::{AccountRecord, AccountSettings};
use domain::security_event::SecurityEventKind;

use crate::Service;
use crate::accounts::{still_in_force, token_hash};
use crate::error::{Refusal, Result};
use crate::mail::confirming::throttle;
use crate::mail::{self, Recipient, texts};
use crate::store::audit::{self, Actor, Change};
use crate::store::{accounts, confirmations};

impl Service {
    /// What the owner of an account sees of it alone.
    ///
    /// # Errors
    /// `NoSuchAccount`.
    pub async fn account_settings(&self, account_id: i64) -> Result<AccountSettings> {
        let mut conn = self.store().read().await?;
        let row = accounts::by_id(&mut conn, account_id).await?;
        let row = row.ok_or(Refusal::NoSuchAccount)?;
        Ok(AccountSettings {
            account: row.record,
            new_email: row.new_email,
            unwanted_mails: row.unwanted_mails,
        })
    }

    /// Asks for a new email: it is mailed a link, and the present one is told. An address that was
    /// asked for before is forgotten.
    ///
    /// # Errors
    /// `NoMailSent`, `WrongPassword`, `EmailUnchanged`, `EmailTaken`; `Throttled` too within five
    /// minutes of the last mail of this kind.
    pub async fn ask_email_change(
        &self,
        account: &AccountRecord,
        password: &str,
        new: &Email,
    ) -> Result<()> {
        if !self.sends_mail() {
            return Err(Refusal::NoMailSent.into());
        }
        let verified = self.verify_password(account.id, password).await?;
        let (account, new) = (account.clone(), new.clone());
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                still_in_force(tx, account.id, &verified).await?;
                if account.email == new.as_str() {
                    return Err(Refusal::EmailUnchanged.into());
                }
                if accounts::by_email(tx, new.as_str()).await?.is_some() {
                    return Err(Refusal::EmailTaken.into());
                }
                throttle(tx, account.id, now).await?;
                accounts::set_new_email(tx, account.id, Some(new.as_str())).await?;
                let to_new = Recipient {
                    account_id: account.id,
                    email: new.as_str(),
                };
                mail::put(tx, to_new, &texts::change_email(), now).await?;
                let told = texts::email_change_asked(new.as_str());
                mail::put(tx, &account, &told, now).await?;
                let actor = Actor::Account(account.id);
                let (subject, change) =
                    (actor.to_string(), Change::of(&account.email, new.as_str()));
                audit::insert_change(tx, now, &actor, "account.ask_email", &subject, change).await
            })
        })
        .await
    }

    /// Forgets the email that was asked for: its link works no more.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn cancel_email_change(&self, account_id: i64) -> Result<()> {
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let account = accounts::by_id(tx, account_id).await?;
                if account.is_none_or(|row| row.new_email.is_none()) {
                    return Ok(());
                }
                accounts::set_new_email(tx, account_id, None).await?;
                let actor = Actor::Account(account_id);
                let subject = actor.to_string();
                audit::insert(tx, now, &actor, "account.cancel_email", &subject, None).await
            })
        })
        .await
    }

    /// Gives the account its new email, by the link in the mail to it. The same link again changes
    /// nothing. The links to set a new password that the old address has work no more.
    ///
    /// # Errors
    /// `ConfirmationInvalid`, also when another address was asked for since or none is any more;
    /// `EmailTaken`.
    pub async fn change_email(&self, token: &str) -> Result<()> {
        let hash = token_hash(token);
        let mut event = self.event(SecurityEventKind::EmailChanged, None);
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let (id, email) = confirmations::change_of(tx, &hash, now)
                    .await?
                    .ok_or(Refusal::ConfirmationInvalid)?;
                let row = accounts::by_id(tx, id).await?;
                let row = row.ok_or(Refusal::ConfirmationInvalid)?;
                if row.record.email == email {
                    return Ok(());
                }
                if row.new_email.as_ref() != Some(&email) || row.disabled_at.is_some() {
                    return Err(Refusal::ConfirmationInvalid.into());
                }
                if accounts::by_email(tx, &email).await?.is_some() {
                    return Err(Refusal::EmailTaken.into());
                }
                accounts::set_email(tx, id, &email, now).await?;
                accounts::spend_resets(tx, id, now).await?;
                mail::put(tx, &row.record, &texts::email_changed(&email), now).await?;
                let actor = Actor::Account(id);
                let (subject, change) = (actor.to_string(), Change::of(&row.record.email, &email));
                audit::insert_change(tx, now, &actor, "account.email", &subject, change).await?;
                event.account_id = Some(id);
                event.store(tx, now).await
            })
        })
        .await
    }
}
