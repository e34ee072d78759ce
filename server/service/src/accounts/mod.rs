//! Registration, sign-in, passwords.

pub(crate) mod devices;
pub(crate) mod password;

use std::net::IpAddr;

use domain::records::AccountRecord;
use domain::{Email, Password, Timestamp};
use sha2::{Digest, Sha256};

use crate::Service;
use crate::error::{Refusal, Result};
use crate::store::audit::{self, Actor};
use crate::store::query::Connection;
use crate::store::{accounts, sessions, throttles};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const SIGN_IN_WINDOW_MS: i64 = 15 * MINUTE_MS;
/// How long a reset link works.
const RESET_LIFETIME_MS: i64 = HOUR_MS;
/// The text of the mail to staff about a reset.
const RESET_MAIL: &str = "A new password was asked for. Run `heliograph account reset` with this \
                          e-mail and hand the link to its owner.";
/// The most reset mails per e-mail in an hour.
const RESETS_PER_HOUR_MAX: i64 = 5;
const TOKEN_BYTES: usize = 32;
/// The most failed sign-ins from one network, as a multiple of those that one e-mail may have.
const EMAILS_PER_NETWORK: i64 = 10;

impl Service {
    /// Makes a customer's account. `client` is the network address that the request comes from.
    ///
    /// # Errors
    /// `EmailTaken`, `Throttled`.
    pub async fn register(
        &self,
        email: &Email,
        password: &Password,
        client: &str,
    ) -> Result<AccountRecord> {
        let max = self.inner.limits.registrations_max;
        self.count_attempt(&format!("register {}", network(client)), max, HOUR_MS)
            .await?;
        self.add_account(&Actor::System, email, password, false)
            .await
    }

    /// Makes an account on behalf of somebody.
    ///
    /// # Errors
    /// `EmailTaken`.
    pub async fn add_account(
        &self,
        actor: &Actor,
        email: &Email,
        password: &Password,
        staff: bool,
    ) -> Result<AccountRecord> {
        let hash = self
            .inner
            .hasher
            .hash(password.expose(), self.entropy())
            .await?;
        let (actor, email) = (*actor, email.clone());
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let id = accounts::insert(tx, email.as_str(), &hash, staff, now)
                    .await?
                    .ok_or(Refusal::EmailTaken)?;
                let action = if staff {
                    "account.add_staff"
                } else {
                    "account.add"
                };
                audit::insert(tx, now, &actor, action, &format!("account {id}"), None).await?;
                Ok(AccountRecord {
                    id,
                    email: email.as_str().to_owned(),
                    staff,
                    password_changed_at: now,
                })
            })
        })
        .await
    }

    /// The account with this e-mail and password. An unknown e-mail is answered like a wrong
    /// password, and after the same time.
    ///
    /// # Errors
    /// `WrongCredentials`, `Throttled`.
    pub async fn sign_in(
        &self,
        email: &str,
        password: &str,
        client: &str,
    ) -> Result<AccountRecord> {
        let email = email.trim().to_lowercase();
        let bucket = format!("sign-in {email} {}", network(client));
        let max = self.inner.limits.sign_in_failures_max;
        // One network may not try one password on every e-mail either: each try costs a hash.
        let sweeping = max.saturating_mul(EMAILS_PER_NETWORK);
        self.count_attempt(
            &format!("sign-in {}", network(client)),
            sweeping,
            SIGN_IN_WINDOW_MS,
        )
        .await?;
        self.count_attempt(&bucket, max, SIGN_IN_WINDOW_MS).await?;
        let account = {
            let mut conn = self.store().read().await?;
            accounts::by_email(&mut conn, &email).await?
        };
        let (record, hash) = account.map(|row| (row.record, row.password_hash)).unzip();
        let matches = self.inner.hasher.verify(password, hash).await?;
        let record = record
            .filter(|_| matches)
            .ok_or(Refusal::WrongCredentials)?;
        self.forget_attempts(&bucket).await?;
        Ok(record)
    }

    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn account(&self, account_id: i64) -> Result<Option<AccountRecord>> {
        let mut conn = self.store().read().await?;
        Ok(accounts::by_id(&mut conn, account_id)
            .await?
            .map(|row| row.record))
    }

    /// The account with this e-mail.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn find_account(&self, email: &str) -> Result<Option<AccountRecord>> {
        let mut conn = self.store().read().await?;
        Ok(accounts::by_email(&mut conn, &email.trim().to_lowercase())
            .await?
            .map(|row| row.record))
    }

    /// How many accounts there are.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn account_count(&self) -> Result<i64> {
        let mut conn = self.store().read().await?;
        accounts::count(&mut conn).await
    }

    /// Changes the password and signs out every device except the one that asks.
    ///
    /// # Errors
    /// `WrongPassword`, `Throttled`.
    pub async fn change_password(
        &self,
        account_id: i64,
        current: &str,
        new: &Password,
        keep_token: &str,
    ) -> Result<()> {
        let verified = self.verify_password(account_id, current).await?;
        let hash = self.inner.hasher.hash(new.expose(), self.entropy()).await?;
        let keep = token_hash(keep_token);
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                still_in_force(tx, account_id, &verified).await?;
                set_password(tx, account_id, &hash, &keep, now).await
            })
        })
        .await
    }

    /// Makes the token of a reset link for whoever runs the server. Only the token's hash is
    /// stored.
    ///
    /// # Errors
    /// `NoSuchAccount`.
    pub async fn issue_reset(&self, actor: &Actor, email: &str) -> Result<String> {
        let account = self
            .find_account(email)
            .await?
            .ok_or(Refusal::NoSuchAccount)?;
        let token = hex::encode(self.entropy().bytes::<TOKEN_BYTES>());
        let hash = token_hash(&token);
        let actor = *actor;
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let expires = now.plus_ms(RESET_LIFETIME_MS);
                accounts::insert_reset(tx, &hash, account.id, now, expires).await?;
                let subject = format!("account {}", account.id);
                audit::insert(tx, now, &actor, "account.reset", &subject, None).await?;
                Ok(token)
            })
        })
        .await
    }

    /// Sets a new password with a reset link, and signs out every device.
    ///
    /// # Errors
    /// `ResetLinkInvalid`.
    pub async fn reset_password(&self, token: &str, new: &Password) -> Result<()> {
        let hash = self.inner.hasher.hash(new.expose(), self.entropy()).await?;
        let token = token_hash(token);
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let account_id = accounts::use_reset(tx, &token, now)
                    .await?
                    .ok_or(Refusal::ResetLinkInvalid)?;
                set_password(tx, account_id, &hash, "", now).await
            })
        })
        .await
    }

    /// Asks for a reset link. The answer is the same whether or not the e-mail exists; staff see
    /// the request in the outbox and hand the link over.
    ///
    /// # Errors
    /// `Throttled`.
    pub async fn request_reset(&self, email: &str, client: &str) -> Result<()> {
        let email = email.trim().to_lowercase();
        let bucket = format!("reset {email} {}", network(client));
        self.count_attempt(&bucket, RESETS_PER_HOUR_MAX, HOUR_MS)
            .await?;
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                if accounts::by_email(tx, &email).await?.is_some() {
                    let subject = "Reset your password";
                    accounts::insert_mail(tx, &email, subject, RESET_MAIL, now).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// Verifies the password again before something that matters. Returns the hash that the
    /// password fitted, which must still be in force when that is done.
    ///
    /// # Errors
    /// `WrongPassword`, `Throttled`.
    pub(crate) async fn verify_password(&self, account_id: i64, password: &str) -> Result<String> {
        let bucket = format!("password {account_id}");
        let max = self.inner.limits.sign_in_failures_max;
        self.count_attempt(&bucket, max, SIGN_IN_WINDOW_MS).await?;
        let hash = {
            let mut conn = self.store().read().await?;
            accounts::by_id(&mut conn, account_id)
                .await?
                .map(|row| row.password_hash)
        };
        if !self.inner.hasher.verify(password, hash.clone()).await? {
            return Err(Refusal::WrongPassword.into());
        }
        self.forget_attempts(&bucket).await?;
        Ok(hash.unwrap_or_default())
    }

    /// Counts an attempt, even if it is refused, and refuses it when there were too many in the
    /// window.
    async fn count_attempt(&self, bucket: &str, max: i64, window_ms: i64) -> Result<()> {
        let bucket = token_hash(bucket);
        let counted = self.in_transaction(move |tx, now| {
            Box::pin(async move { throttles::hit(tx, &bucket, now, window_ms).await })
        });
        let (hits, started) = counted.await?;
        if hits <= max {
            return Ok(());
        }
        let over_in_ms = started.plus_ms(window_ms).ms_since(self.now());
        let retry_after_s = (over_in_ms / 1000).max(1);
        Err(Refusal::Throttled { retry_after_s }.into())
    }

    /// Forgets the attempts that were counted before a successful one.
    async fn forget_attempts(&self, bucket: &str) -> Result<()> {
        let bucket = token_hash(bucket);
        self.in_transaction(move |tx, _| {
            Box::pin(async move { throttles::clear(tx, &bucket).await })
        })
        .await
    }
}

/// Fails if the password was changed since it was verified: then the verified one is wrong now.
pub(crate) async fn still_in_force(
    conn: &mut dyn Connection,
    account_id: i64,
    verified: &str,
) -> Result<()> {
    match accounts::by_id(conn, account_id).await? {
        Some(row) if row.password_hash == verified => Ok(()),
        _ => Err(Refusal::WrongPassword.into()),
    }
}

/// The network that an address is counted as: an IPv6 customer has a whole /64 to try from.
fn network(client: &str) -> String {
    match client.parse() {
        Ok(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        _ => client.to_owned(),
    }
}

/// The hash that is stored of a token, or of the name of a throttle.
pub(crate) fn token_hash(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

/// The moment before which windows of attempts can be forgotten: no window is longer than an hour.
pub(crate) fn throttles_before(now: Timestamp) -> Timestamp {
    now.plus_ms(-HOUR_MS)
}

/// Sets a password: the account's reset links work no more, and all devices are signed out except
/// the one whose token has the hash `keep`.
async fn set_password(
    conn: &mut dyn Connection,
    account_id: i64,
    hash: &str,
    keep: &str,
    now: Timestamp,
) -> Result<()> {
    accounts::set_password(conn, account_id, hash, now).await?;
    accounts::spend_resets(conn, account_id, now).await?;
    sessions::delete_others(conn, account_id, keep).await?;
    let actor = Actor::Account(account_id);
    let subject = actor.to_string();
    audit::insert(conn, now, &actor, "account.password", &subject, None).await
}
