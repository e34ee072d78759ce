//! Reset links: requesting one by mail, issuing one to the operator, and setting a new password.

use std::time::Duration;

use domain::Password;
use domain::security_event::SecurityEventKind;
use tokio::time::{Instant, sleep, sleep_until};

use super::throttle::{Attempt, Counted};
use super::{confirming, set_password};
use crate::Accounts;
use crate::mail::{self, texts};
use crate::token::{RESET_LIFETIME_MS, token_hash};
use crate::transactions::work;
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::{accounts, outbox};

/// The service answers a request for a reset link after this time. It is longer than the work for a
/// known email takes, so the answer for an unknown email doesn't come earlier.
const RESET_LINK_ANSWER: Duration = Duration::from_millis(30);

impl Accounts<'_> {
    /// Creates the token of a reset link for the operator. Stores only the token's hash.
    ///
    /// # Errors
    /// `NoSuchAccount`.
    pub async fn issue_reset(&self, actor: &Actor, email: &str) -> Result<String> {
        let account = self.find_account(email).await?.ok_or(Refusal::NoSuchAccount)?;
        let token = self.new_token();
        let hash = token_hash(&token);
        let actor = *actor;
        self.in_transaction(work!(|tx, now| {
            let expires = now.plus_ms(RESET_LIFETIME_MS);
            let times = (now, expires);
            // The newest link is the only one that works, so a link that was given to the wrong
            // person can be replaced.
            accounts::spend_resets(tx, account.id, now).await?;
            accounts::insert_reset(tx, &hash, account.id, None, times).await?;
            outbox::forget_resets(tx, account.id).await?;
            let subject = format!("account {}", account.id);
            audit::insert(tx, now, &actor, "account.reset", &subject, None).await?;
            Ok(token)
        }))
        .await
    }

    /// Returns whether a reset link is valid now.
    pub async fn is_reset_valid(&self, token: &str) -> Result<bool> {
        let mut conn = self.store().read().await?;
        Ok(accounts::email_of_reset(&mut conn, &token_hash(token), self.now()).await?.is_some())
    }

    /// Sets a new password with a reset link and signs out every device. If the link was mailed and
    /// the email wasn't confirmed yet, this confirms it. The second factor is then removed, because
    /// a stranger may have registered the email and set up the factor to lock the owner out.
    ///
    /// Looks up the link first, so an invalid link costs no hash.
    ///
    /// # Errors
    /// `ResetLinkInvalid`, `InvalidPassword`, `Throttled`, `Busy`.
    pub async fn reset_password(&self, token: &str, new: &Password) -> Result<()> {
        let token = token_hash(token);
        let counted = self.count(Attempt::Reset, &self.client.address, "")?;
        sleep(counted.delay).await;
        let found =
            accounts::email_of_reset(&mut self.store().read().await?, &token, self.now()).await?;
        let email = found.ok_or(Refusal::ResetLinkInvalid)?;
        self.inner.throttle.uncount(&counted);
        self.refuse_guessable(new, &email).await?;
        let hash = self.inner.hasher.hash(new.expose(), self.entropy()).await?;
        let mut done = self.event(SecurityEventKind::PasswordReset, None);
        let service = self.0.clone();
        self.in_transaction(work!(|tx, now| {
            let (account_id, mailed) =
                accounts::use_reset(tx, &token, now).await?.ok_or(Refusal::ResetLinkInvalid)?;
            if mailed && confirming::confirm(tx, account_id, now).await? {
                service.accounts().remove_strangers_factor(tx, account_id, now).await?;
            }
            set_password(tx, account_id, &hash, "", now).await?;
            done.account_id = Some(account_id);
            done.store(tx, now).await
        }))
        .await
    }

    /// Requests a mail with a reset link. The answer is the same for known and unknown emails. If
    /// no mail server is set up, staff see the mail in the outbox and can pass on a link.
    ///
    /// # Errors
    /// `Throttled`.
    pub async fn request_reset(&self, email: &str, client: &str) -> Result<()> {
        let email = email.trim().to_lowercase();
        sleep(self.count_reset_link(&email, client).await?.delay).await;
        let answered_at = Instant::now() + RESET_LINK_ANSWER;
        let mut asked = self.event(SecurityEventKind::ResetAsked, None);
        let done = self.in_transaction(work!(|tx, now| {
            let account = accounts::by_email(tx, &email).await?;
            if let Some(account) = account {
                asked.account_id = Some(account.record.id);
                mail::put(tx, &account.record, &texts::reset(), now).await?;
            }
            asked.store(tx, now).await
        }));
        let done = done.await;
        sleep_until(answered_at).await;
        done
    }

    /// Counts a request for a reset link. A known device and a known network have their own limits,
    /// as in a sign-in.
    async fn count_reset_link(&self, email: &str, client: &str) -> Result<Counted> {
        let throttled =
            match self.inner.throttle.count(Attempt::ResetLink, client, email, self.now()) {
                Ok(counted) => return Ok(counted),
                Err(throttled) => throttled,
            };
        if let Some(device) = self.known_device(email).await? {
            let device = format!("reset link {device}");
            return self.count(Attempt::KnownDevice, client, &device);
        }
        self.count_in_home(Attempt::ResetLink, email, client, throttled).await
    }
}
