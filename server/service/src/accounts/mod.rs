//! Accounts: registration, sign-in and passwords.

mod billing;
pub(crate) mod changes;
mod closing;
mod common_passwords;
mod confirming;
pub(crate) mod devices;
mod email;
pub(crate) mod key_check;
pub(crate) mod known_device;
pub(crate) mod passkeys;
pub(crate) mod password;
mod preferences;
pub(crate) mod resets;
pub(crate) mod sealing;
pub(crate) mod second_factor;
pub(crate) mod security_events;
pub(crate) mod staff;
pub(crate) mod throttle;

use domain::records::AccountRecord;
use domain::security_event::SecurityEventKind;
use domain::{Email, Password, Theme, Timestamp};
use tokio::time::sleep;

use crate::Accounts;
use crate::mail::{self, texts};
use crate::token::token_hash;
use crate::transactions::work;
use security_events::Event;
use store::audit::{self, Actor, Change};
use store::error::{Error, Refusal, Result};
use store::query::Conn;
use store::{accounts, confirmations, known_devices, second_factors, sessions};
use throttle::{Attempt, Counted};

impl Accounts<'_> {
    /// Creates a customer's account. `client` is the network address that the request comes from.
    ///
    /// # Errors
    /// `EmailTaken`, `InvalidPassword`, `Throttled`.
    pub async fn register(
        &self,
        email: &Email,
        password: &Password,
        client: &str,
    ) -> Result<AccountRecord> {
        sleep(self.count(Attempt::Register, client, "")?.delay).await;
        let unconfirmed = self.operations().sends_mail();
        self.insert_account(None, email, password, false, unconfirmed).await
    }

    /// Creates an account on behalf of its owner. The audit log records `actor`.
    ///
    /// # Errors
    /// `EmailTaken`, `InvalidPassword`.
    pub async fn add_account(
        &self,
        actor: &Actor,
        email: &Email,
        password: &Password,
        staff: bool,
    ) -> Result<AccountRecord> {
        self.insert_account(Some(*actor), email, password, staff, false).await
    }

    /// Stores an account. `actor` is `None` if the owner creates it. The owner of an unconfirmed
    /// account gets a mail with a link that confirms the email.
    async fn insert_account(
        &self,
        actor: Option<Actor>,
        email: &Email,
        password: &Password,
        staff: bool,
        unconfirmed: bool,
    ) -> Result<AccountRecord> {
        self.refuse_guessable(password, email.as_str()).await?;
        let hash = self.inner.hasher.hash(password.expose(), self.entropy()).await?;
        let email = email.clone();
        self.in_transaction(work!(|tx, now| {
            let id = accounts::insert(tx, email.as_str(), &hash, staff, now)
                .await?
                .ok_or(Refusal::EmailTaken)?;
            let action = if staff { "account.add_staff" } else { "account.add" };
            let owner = Actor::Account(id);
            let (actor, subject) = (actor.unwrap_or(owner), owner.to_string());
            audit::insert(tx, now, &actor, action, &subject, None).await?;
            let account = AccountRecord {
                id,
                email: email.as_str().to_owned(),
                staff,
                password_changed_at: now,
                confirmed_at: (!unconfirmed).then_some(now),
                second_factor: false,
                theme: Theme::default(),
                time_zone: None,
                closed: false,
            };
            if unconfirmed {
                confirmations::expect(tx, id, now).await?;
                mail::put(tx, &account, &texts::confirm(), now).await?;
            }
            Ok(account)
        }))
        .await
    }

    /// Returns the account with this email and password. An unknown email gets the same answer as a
    /// wrong password, after the same time. Only failed attempts count.
    ///
    /// # Errors
    /// `WrongCredentials`, `Throttled`, `Busy`. `AccountDisabled` or `AccountClosed` only if the
    /// password is right.
    pub async fn sign_in(
        &self,
        email: &str,
        password: &str,
        client: &str,
    ) -> Result<AccountRecord> {
        let email = email.trim().to_lowercase();
        let counted = self.count_sign_in(&email, client).await?;
        sleep(counted.delay).await;
        let account = async { accounts::by_email(&mut self.store().read().await?, &email).await };
        let account = account.await.inspect_err(|_| self.inner.throttle.uncount(&counted))?;
        let hash = account.as_ref().map(|row| row.password_hash.clone());
        let id = account.as_ref().map(|row| row.record.id);
        let failed = self.event(SecurityEventKind::SignInFailed, id);
        let matches = self.judge(&counted, password, hash, failed).await?;
        let account = account.filter(|_| matches).ok_or(Refusal::WrongCredentials)?;
        if account.record.closed {
            return Err(Refusal::AccountClosed.into());
        }
        if account.disabled_at.is_some() {
            return Err(Refusal::AccountDisabled.into());
        }
        Ok(account.record)
    }

    /// Counts a sign-in attempt. If the client has a device cookie, the attempt also counts against
    /// the limit of that device, even while the general limits aren't reached. Once a general limit
    /// is reached, only the device's own limit applies to a known device.
    async fn count_sign_in(&self, email: &str, client: &str) -> Result<Counted> {
        let throttle = &self.inner.throttle;
        let throttled = match throttle.count(Attempt::SignIn, client, email, self.now()) {
            Ok(counted) => {
                let Some(device) = self.claimed_device() else {
                    return Ok(counted);
                };
                return match self.count(Attempt::KnownDevice, client, &device) {
                    Ok(own) => Ok(counted.and(own)),
                    Err(throttled) => {
                        throttle.uncount(&counted);
                        Err(throttled)
                    }
                };
            }
            Err(throttled) => throttled,
        };
        if let Some(device) = self.known_device(email).await? {
            return self.count(Attempt::KnownDevice, client, &device);
        }
        self.count_in_home(Attempt::SignIn, email, client, throttled).await
    }

    /// Counts a throttled attempt against the client's own limits, if somebody signed in to the
    /// account from the client's network before. Returns `throttled` if nobody did, or if the
    /// client has reached its own limits too.
    async fn count_in_home(
        &self,
        what: Attempt,
        email: &str,
        client: &str,
        throttled: Error,
    ) -> Result<Counted> {
        let throttle = &self.inner.throttle;
        let network = throttle::network(client);
        let is_home = {
            let mut conn = self.store().read().await?;
            match accounts::by_email(&mut conn, email).await? {
                Some(row) => {
                    known_devices::knows_network(&mut conn, row.record.id, &network).await?
                }
                None => false,
            }
        };
        if is_home && let Ok(counted) = throttle.count_in_home(what, client, email, self.now()) {
            return Ok(counted);
        }
        throttle.note_refused(what);
        Err(throttled)
    }

    /// Returns whether a password matches. Without a hash, takes the same time and returns false. A
    /// wrong password stays counted and is recorded as a security event. Any other result removes
    /// the attempt from the counts.
    async fn judge(
        &self,
        counted: &Counted,
        password: &str,
        hash: Option<String>,
        failed: Event,
    ) -> Result<bool> {
        match self.inner.hasher.verify(password, hash).await {
            Ok(true) => self.inner.throttle.succeed(counted),
            Ok(false) => {
                self.record(failed).await?;
                return Ok(false);
            }
            Err(error) => {
                self.inner.throttle.uncount(counted);
                return Err(error);
            }
        }
        Ok(true)
    }

    pub async fn account(&self, account_id: i64) -> Result<Option<AccountRecord>> {
        let mut conn = self.store().read().await?;
        Ok(accounts::by_id(&mut conn, account_id).await?.map(|row| row.record))
    }

    pub async fn find_account(&self, email: &str) -> Result<Option<AccountRecord>> {
        let mut conn = self.store().read().await?;
        Ok(accounts::by_email(&mut conn, &email.trim().to_lowercase()).await?.map(|row| row.record))
    }

    pub async fn account_count(&self) -> Result<i64> {
        accounts::count(&mut self.store().read().await?).await
    }

    /// Returns the kinds of attempts for which all clients together have reached the limit. For
    /// these kinds, each network has a small share and answers are slow.
    pub fn strained_limits(&self) -> Vec<&'static str> {
        self.inner.throttle.strained(self.now())
    }

    /// Returns how many password hashes this process has computed, both to set and to verify
    /// passwords.
    pub fn password_hashes(&self) -> u64 {
        self.inner.hasher.hashed()
    }

    /// Changes the password and signs out every device except the current one.
    ///
    /// # Errors
    /// `WrongPassword`, `InvalidPassword`, `Throttled`.
    pub async fn change_password(
        &self,
        account: &AccountRecord,
        current: &str,
        new: &Password,
        keep_token: &str,
    ) -> Result<()> {
        let account_id = account.id;
        let verified = self.verify_password(account_id, current).await?;
        self.refuse_guessable(new, &account.email).await?;
        let hash = self.inner.hasher.hash(new.expose(), self.entropy()).await?;
        let keep = token_hash(keep_token);
        let changed = self.event(SecurityEventKind::PasswordChanged, Some(account_id));
        self.in_transaction(work!(|tx, now| {
            accounts::still_in_force(tx, account_id, &verified).await?;
            set_password(tx, account_id, &hash, &keep, now).await?;
            changed.store(tx, now).await
        }))
        .await
    }

    /// Verifies the password again before a sensitive change. Returns the hash that matched. The
    /// transaction of the change must pass it to [`accounts::still_in_force`].
    ///
    /// # Errors
    /// `WrongPassword`, `Throttled`.
    pub(crate) async fn verify_password(&self, account_id: i64, password: &str) -> Result<String> {
        let account = account_id.to_string();
        let counted = self.count(Attempt::Password, &self.client.address, &account)?;
        let hash = accounts::by_id(&mut self.store().read().await?, account_id)
            .await?
            .map(|row| row.password_hash);
        let failed = self.event(SecurityEventKind::PasswordWrong, Some(account_id));
        if !self.judge(&counted, password, hash.clone(), failed).await? {
            return Err(Refusal::WrongPassword.into());
        }
        Ok(hash.unwrap_or_default())
    }
}

/// Writes an audit entry about an account that its owner changed.
async fn audit_owner(
    conn: Conn<'_>,
    now: Timestamp,
    account_id: i64,
    action: &'static str,
    change: Change<'_>,
) -> Result<()> {
    let owner = Actor::Account(account_id);
    audit::insert_change(conn, now, &owner, action, &owner.to_string(), change).await
}

/// Sets a password. Invalidates the account's reset links, and signs out every device except the
/// one whose token has the hash `keep`.
async fn set_password(
    conn: Conn<'_>,
    account_id: i64,
    hash: &str,
    keep: &str,
    now: Timestamp,
) -> Result<()> {
    accounts::set_password(conn, account_id, hash, now).await?;
    if let Some(account) = accounts::by_id(conn, account_id).await? {
        mail::put(conn, &account.record, &texts::password_changed(), now).await?;
    }
    accounts::spend_resets(conn, account_id, now).await?;
    second_factors::end_wrong(conn, account_id).await?;
    sessions::delete_others(conn, account_id, keep).await?;
    audit_owner(conn, now, account_id, "account.password", Change::default()).await
}
