//! Passkeys (WebAuthn). An account that has an authenticator app can use passkeys in place of the
//! app's codes. A passkey never replaces the password.
//!
//! The challenge for the browser and the browser's answer are JSON, which the portal passes on
//! unchanged. The session's row stores the sealed state that the answer is verified against, so any
//! process can verify it. The first answer changes the row, so each challenge can be answered only
//! once.

use domain::Timestamp;
use domain::passkey::{PASSKEYS_MAX, passkey_name};
use domain::records::PasskeyRecord;
use domain::security_event::SecurityEventKind;
use serde::{Deserialize, Serialize};
use webauthn_rs::prelude::{
    Passkey, PasskeyAuthentication, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, Url, Uuid, WebauthnError,
};
use webauthn_rs::{Webauthn, WebauthnBuilder};

use crate::Accounts;
use crate::accounts::audit_owner;
use crate::accounts::second_factor::{FactorChange, ISSUER};
use crate::accounts::security_events::Event;
use crate::token::token_hash;
use crate::transactions::work;
use store::audit::Change;
use store::error::{Fault, Refusal, Result};
use store::query::Conn;
use store::{passkeys, second_factors};

/// How long a challenge is valid.
const AWAITED_MS: i64 = 5 * 60 * 1000;

/// Returns the relying party that creates and verifies the passkeys of a site. `None` if browsers
/// create no passkeys for the site: they require a host name, and TLS unless the host is
/// `localhost`.
pub(crate) fn relying_party(base_url: &str) -> Option<Webauthn> {
    let origin = Url::parse(base_url).ok()?;
    let host = origin.domain()?;
    let local = host == "localhost" || host.ends_with(".localhost");
    if origin.scheme() != "https" && !local {
        return None;
    }
    let builder = WebauthnBuilder::new(host, &origin).ok()?.rp_name(ISSUER);
    builder.build().ok()
}

/// A pending challenge, as the session stores it.
#[derive(Serialize, Deserialize)]
struct Challenge {
    account_id: i64,
    at: Timestamp,
    what: What,
}

#[derive(Serialize, Deserialize)]
enum What {
    /// Creates a passkey with this name. The browser gets `options`.
    Add { name: String, options: String, state: PasskeyRegistration },
    /// Uses a passkey in place of a code.
    Use(PasskeyAuthentication),
}

fn sealed_for(account_id: i64) -> String {
    format!("passkey asked of account {account_id}")
}

fn to_json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(Fault::Json)?)
}

fn read_credential(json: &str) -> Result<Passkey> {
    Ok(serde_json::from_str(json).map_err(Fault::Json)?)
}

impl Accounts<'_> {
    /// True if browsers create passkeys for this site.
    pub fn passkeys_work(&self) -> bool {
        self.inner.relying_party.is_some()
    }

    fn relying_party(&self) -> Result<&Webauthn> {
        let relying_party = self.inner.relying_party.as_ref();
        relying_party.ok_or_else(|| Refusal::PasskeysUnavailable.into())
    }

    /// Returns the passkeys of an account, in the order in which they were added.
    pub async fn passkeys(&self, account_id: i64) -> Result<Vec<PasskeyRecord>> {
        let stored = self.stored_passkeys(account_id).await?;
        Ok(stored.into_iter().map(|stored| stored.record).collect())
    }

    async fn stored_passkeys(&self, account_id: i64) -> Result<Vec<passkeys::Stored>> {
        passkeys::of(&mut self.store().read().await?, account_id).await
    }

    /// True if the account can use a passkey in place of a code.
    pub async fn has_passkeys(&self, account_id: i64) -> Result<bool> {
        Ok(self.passkeys_work() && !self.stored_passkeys(account_id).await?.is_empty())
    }

    /// Starts adding a passkey. [`Accounts::passkey_to_add`] then returns the options for the
    /// browser.
    ///
    /// # Errors
    /// `PasskeysUnavailable`, `PasskeyNameInvalid`, `NoSecondFactor`, `TooManyPasskeys`.
    /// `SignInOver` if there is no such session.
    pub async fn begin_passkey(
        &self,
        token: &str,
        account_id: i64,
        email: &str,
        name: &str,
    ) -> Result<()> {
        let relying_party = self.relying_party()?;
        let name = passkey_name(name).ok_or(Refusal::PasskeyNameInvalid)?;
        let stored = refuse_new(&mut self.store().read().await?, account_id).await?;
        let known = stored
            .iter()
            .map(|stored| Ok(read_credential(&stored.credential)?.cred_id().clone()))
            .collect::<Result<_>>()?;
        let owner = Uuid::from_u64_pair(0, account_id.cast_unsigned());
        let begun = relying_party.start_passkey_registration(owner, email, email, Some(known));
        let (options, state) = begun.map_err(|error| Fault::Passkey(error.to_string()))?;
        let what =
            What::Add { name: name.to_owned(), options: to_json(&options.public_key)?, state };
        self.store_challenge(token, account_id, what).await
    }

    /// Returns the options with which the browser creates the new passkey, as JSON for
    /// `PublicKeyCredential.parseCreationOptionsFromJSON`.
    ///
    /// # Errors
    /// `PasskeyOver`.
    pub async fn passkey_to_add(&self, token: &str, account_id: i64) -> Result<String> {
        match self.challenge(token, account_id).await? {
            Some((What::Add { options, .. }, _)) => Ok(options),
            _ => Err(Refusal::PasskeyOver.into()),
        }
    }

    /// Adds the passkey that the browser created. `answer` is the credential as JSON.
    ///
    /// # Errors
    /// `PasskeyOver`, `PasskeyNotAdded`, `NoSecondFactor`, `TooManyPasskeys`, `Throttled`.
    pub async fn add_passkey(&self, token: &str, account_id: i64, answer: &str) -> Result<()> {
        let counted = self.count_code(account_id)?;
        let What::Add { name, state, .. } = self.take_challenge(token, account_id).await? else {
            return Err(Refusal::PasskeyOver.into());
        };
        let relying_party = self.relying_party()?;
        let made = serde_json::from_str::<RegisterPublicKeyCredential>(answer)
            .ok()
            .and_then(|answer| relying_party.finish_passkey_registration(&answer, &state).ok());
        let Some(passkey) = made else {
            let refused = self.passkey_refused(account_id, &Refusal::PasskeyNotAdded);
            self.record(refused).await?;
            return Err(Refusal::PasskeyNotAdded.into());
        };
        let new = passkeys::New {
            credential_hash: token_hash(&hex::encode(passkey.cred_id())),
            credential: to_json(&passkey)?,
            name,
        };
        let added = self.factor_changed(account_id, FactorChange::PasskeyAdded);
        self.in_transaction(work!(|tx, now| {
            refuse_new(tx, account_id).await?;
            if !passkeys::add(tx, account_id, &new, now).await? {
                return Err(Refusal::PasskeyNotAdded.into());
            }
            audit_owner(tx, now, account_id, "account.add_passkey", Change::default()).await?;
            added.about(&new.name).store(tx, now).await
        }))
        .await?;
        self.inner.throttle.succeed(&counted);
        Ok(())
    }

    /// Removes a passkey.
    ///
    /// # Errors
    /// `NoSuchPasskey`.
    pub async fn remove_passkey(&self, account_id: i64, id: i64) -> Result<()> {
        let removed = self.factor_changed(account_id, FactorChange::PasskeyRemoved);
        self.in_transaction(work!(|tx, now| {
            let stored = passkeys::of(tx, account_id).await?;
            let stored = stored.into_iter().find(|stored| stored.record.id == id);
            let stored = stored.ok_or(Refusal::NoSuchPasskey)?;
            if !passkeys::remove(tx, account_id, id).await? {
                return Err(Refusal::NoSuchPasskey.into());
            }
            audit_owner(tx, now, account_id, "account.remove_passkey", Change::default()).await?;
            removed.about(&stored.record.name).store(tx, now).await
        }))
        .await
    }

    /// Returns the options with which the browser uses a passkey, as JSON for
    /// `PublicKeyCredential.parseRequestOptionsFromJSON`. Uses the passkeys of the account whose
    /// second step is pending in the session. If none is pending, uses those of the account that is
    /// signed in.
    ///
    /// # Errors
    /// `PasskeysUnavailable`, `SignInOver`, `NoSuchPasskey`.
    pub async fn request_passkey(&self, token: &str) -> Result<String> {
        let relying_party = self.relying_party()?;
        let account = match self.awaited_account(token).await? {
            Some(account) => Some(account),
            None => self.session_account(token).await?,
        };
        let account_id = account.ok_or(Refusal::SignInOver)?.id;
        let stored = self.stored_passkeys(account_id).await?;
        let stored = stored.iter().map(|stored| read_credential(&stored.credential));
        let stored = stored.collect::<Result<Vec<_>>>()?;
        if stored.is_empty() {
            return Err(Refusal::NoSuchPasskey.into());
        }
        let begun = relying_party.start_passkey_authentication(&stored);
        let (options, state) = begun.map_err(|error| Fault::Passkey(error.to_string()))?;
        self.store_challenge(token, account_id, What::Use(state)).await?;
        to_json(&options.public_key)
    }

    /// Verifies a passkey's answer to the pending challenge.
    pub(super) async fn use_passkey(
        &self,
        token: &str,
        account_id: i64,
        answer: &str,
    ) -> Result<()> {
        let What::Use(state) = self.take_challenge(token, account_id).await? else {
            return Err(Refusal::PasskeyOver.into());
        };
        let answer: PublicKeyCredential =
            serde_json::from_str(answer).map_err(|_| Refusal::PasskeyRefused)?;
        let relying_party = self.relying_party()?;
        let used = relying_party.finish_passkey_authentication(&answer, &state);
        let used = used.map_err(|error| match error {
            WebauthnError::CredentialPossibleCompromise => Refusal::PasskeyCopied,
            _ => Refusal::PasskeyRefused,
        })?;
        let mut event = self.event(SecurityEventKind::PasskeyUsed, Some(account_id));
        self.in_transaction(work!(|tx, now| {
            for stored in passkeys::of(tx, account_id).await? {
                let mut passkey = read_credential(&stored.credential)?;
                if passkey.update_credential(&used).is_none() {
                    continue;
                }
                let (id, counter) = (stored.record.id, i64::from(used.counter()));
                let credential = to_json(&passkey)?;
                let set = passkeys::set_used(tx, account_id, id, &credential, counter, now).await?;
                if !set {
                    return Err(Refusal::PasskeyCopied.into());
                }
                event.detail = Some(stored.record.name);
                return event.store(tx, now).await;
            }
            // The passkey was removed after the challenge was created.
            Err(Refusal::PasskeyRefused.into())
        }))
        .await
    }

    /// Returns the event of a refused passkey, with the reason.
    pub(super) fn passkey_refused(&self, account_id: i64, refusal: &Refusal) -> Event {
        let mut event = self.event(SecurityEventKind::PasskeyRefused, Some(account_id));
        event.detail = Some(refusal.to_string());
        event
    }

    /// Stores a challenge in a session.
    async fn store_challenge(&self, token: &str, account_id: i64, what: What) -> Result<()> {
        let challenge = Challenge { account_id, at: self.now(), what };
        let challenge = to_json(&challenge)?;
        let sealed = self.seal(&sealed_for(account_id), challenge.as_bytes()).await?;
        let hash = token_hash(token);
        self.in_transaction(work!(|tx, _| {
            if !passkeys::set_challenge(tx, &hash, &sealed).await? {
                return Err(Refusal::SignInOver.into());
            }
            Ok(())
        }))
        .await
    }

    /// Returns the pending challenge of a session and its sealed form. `None` if there is no
    /// challenge or it has expired.
    async fn challenge(&self, token: &str, account_id: i64) -> Result<Option<(What, String)>> {
        let sealed =
            passkeys::challenge(&mut self.store().read().await?, &token_hash(token)).await?;
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        let opened = self.unseal(&sealed_for(account_id), &sealed).await?;
        let challenge: Challenge = serde_json::from_slice(&opened).map_err(Fault::Json)?;
        let awaited = (0..AWAITED_MS).contains(&self.now().ms_since(challenge.at));
        let valid = awaited && challenge.account_id == account_id;
        Ok(valid.then_some((challenge.what, sealed)))
    }

    /// Removes the pending challenge from a session and returns it.
    async fn take_challenge(&self, token: &str, account_id: i64) -> Result<What> {
        let challenge = self.challenge(token, account_id).await?;
        let (what, sealed) = challenge.ok_or(Refusal::PasskeyOver)?;
        let hash = token_hash(token);
        self.in_transaction(work!(|tx, _| {
            if !passkeys::take_challenge(tx, &hash, &sealed).await? {
                return Err(Refusal::PasskeyOver.into());
            }
            Ok(())
        }))
        .await?;
        Ok(what)
    }
}

/// Returns the account's passkeys, if another one may be added. Refuses if the account has no
/// authenticator app or already has [`PASSKEYS_MAX`] passkeys.
async fn refuse_new(conn: Conn<'_>, account_id: i64) -> Result<Vec<passkeys::Stored>> {
    let factor = second_factors::of(conn, account_id).await?;
    factor.ok_or(Refusal::NoSecondFactor)?;
    let stored = passkeys::of(conn, account_id).await?;
    if stored.len() >= PASSKEYS_MAX {
        return Err(Refusal::TooManyPasskeys.into());
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::relying_party;

    #[test]
    fn passkeys_are_for_sites_with_a_name_and_tls() {
        for (base_url, work) in [
            ("https://sms.example.org", true),
            ("https://sms.example.org:8443", true),
            ("http://localhost:3000", true),
            ("http://sms.example.org", false),
            ("http://127.0.0.1:3000", false),
            ("https://192.0.2.1", false),
            ("https://[2001:db8::1]", false),
            ("", false),
        ] {
            assert_eq!(relying_party(base_url).is_some(), work, "{base_url}");
        }
    }
}
