//! Sessions. A session becomes a device of an account when somebody signs in.

use domain::Timestamp;
use domain::account::DEVICE_NAME_CHARS_MAX;
use domain::records::{AccountRecord, DeviceRecord, SessionEnd};
use domain::security_event::SecurityEventKind;
use domain::timestamp::DAY_MS;

use crate::Accounts;
use crate::accounts::audit_owner;
use crate::accounts::security_events::{ClientInfo, Event};
use crate::accounts::throttle::network;
use crate::mail::{self, texts};
use crate::token::token_hash;
use crate::transactions::work;
use store::audit::Change;
use store::error::{Refusal, Result};
use store::query::Conn;
use store::sessions::{self, SignIn, Valid};
use store::{accounts, known_devices};

/// A session expires after this time without use.
pub(crate) const IDLE_MS: i64 = 30 * 60 * 1000;
/// A session expires this long after it was created, even if it is in use. A sign-in creates a new
/// session.
pub(crate) const ABSOLUTE_MS: i64 = 12 * 60 * 60 * 1000;
/// The minimum time between two writes of "last seen", so that most page views cost no commit.
const TOUCH_MS: i64 = 60 * 1000;
/// A sign-in this soon after the registration counts as part of it.
const REGISTERING_MS: i64 = 60 * 1000;

/// How somebody signed in, as the event's detail.
const BY_PASSWORD: &str = "By password";
const BY_CODE: &str = "By password and second factor";

/// A session as the portal sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The account that is signed in.
    pub account_id: Option<i64>,
    /// The session's data as JSON.
    pub data: String,
    /// When the session expires if it isn't used again. The service returns this field but never
    /// reads it: it computes the stored times with its own clock.
    pub expires_at: Timestamp,
}

impl Accounts<'_> {
    /// Stores a new session. Returns false if a session with this token already exists.
    pub async fn session_create(&self, token: &str, row: &SessionRow) -> Result<bool> {
        let (hash, data) = (token_hash(token), row.data.clone());
        self.in_transaction(work!(|tx, now| sessions::insert(tx, &hash, &data, now).await)).await
    }

    /// Stores the changed data of a session. If the session was signed out meanwhile, it stays
    /// signed out.
    pub async fn session_save(&self, token: &str, row: &SessionRow) -> Result<()> {
        let (hash, data) = (token_hash(token), row.data.clone());
        self.in_transaction(work!(|tx, now| sessions::save(tx, &hash, &data, now).await)).await
    }

    /// Returns the session with this token, unless it has expired. Extends the session.
    pub async fn session_load(&self, token: &str) -> Result<Option<SessionRow>> {
        let hash = token_hash(token);
        let now = self.now();
        let stored = sessions::load(&mut self.store().read().await?, &hash, valid(now)).await?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        self.touch(hash, stored.last_seen_at, now).await?;
        let expires_at = now.plus_ms(IDLE_MS).min(stored.created_at.plus_ms(ABSOLUTE_MS));
        Ok(Some(SessionRow { account_id: stored.account_id, data: stored.data, expires_at }))
    }

    pub async fn session_delete(&self, token: &str) -> Result<()> {
        let hash = token_hash(token);
        self.in_transaction(work!(|tx, _| sessions::delete(tx, &hash).await)).await
    }

    /// Makes a stored session a device of the account, which signed in with its password alone.
    ///
    /// # Errors
    /// `WrongCredentials` if the password was changed or the account was disabled meanwhile, if the
    /// account has a second factor, or if there is no such session.
    pub async fn device_sign_in(
        &self,
        token: &str,
        account: &AccountRecord,
        client: &ClientInfo,
    ) -> Result<()> {
        self.make_device(token, account, client, 0).await
    }

    /// Like [`Accounts::device_sign_in`], but [`Accounts::sign_in_step`] has accepted a second
    /// factor.
    ///
    /// # Errors
    /// `WrongCredentials` as with [`Accounts::device_sign_in`], except that the account may have a
    /// second factor.
    pub async fn device_sign_in_by_code(
        &self,
        token: &str,
        account: &AccountRecord,
        client: &ClientInfo,
    ) -> Result<()> {
        self.make_device(token, account, client, 1).await
    }

    /// Records in a session that the password was right and that the second factor's code is
    /// pending. The session doesn't give access yet.
    ///
    /// # Errors
    /// `WrongCredentials` if the password was changed or the account was disabled meanwhile, or if
    /// there is no such session.
    pub async fn await_code(&self, token: &str, account: &AccountRecord) -> Result<()> {
        let (hash, account) = (token_hash(token), account.clone());
        self.in_transaction(work!(|tx, _| {
            if !sessions::await_code(tx, &hash, &account).await? {
                return Err(Refusal::WrongCredentials.into());
            }
            Ok(())
        }))
        .await
    }

    async fn make_device(
        &self,
        token: &str,
        account: &AccountRecord,
        client: &ClientInfo,
        factors: i64,
    ) -> Result<()> {
        let hash = token_hash(token);
        let account = account.clone();
        let event = Event {
            kind: SecurityEventKind::SignedIn,
            account_id: Some(account.id),
            origin: client.origin(),
            detail: Some(if factors > 0 { BY_CODE } else { BY_PASSWORD }.to_owned()),
        };
        self.in_transaction(work!(|tx, now| {
            let (user_agent, address) = (&event.origin.user_agent, &event.origin.address);
            let sign_in = SignIn { account: &account, user_agent, address, factors };
            if !sessions::bind(tx, &hash, &sign_in, now).await? {
                return Err(Refusal::WrongCredentials.into());
            }
            mail_if_new(tx, &account, user_agent, address, now).await?;
            event.store(tx, now).await
        }))
        .await
    }

    /// Returns the account that is signed in with a session. Extends the session.
    pub async fn session_account(&self, token: &str) -> Result<Option<AccountRecord>> {
        let hash = token_hash(token);
        let now = self.now();
        let found = sessions::account(&mut self.store().read().await?, &hash, valid(now)).await?;
        let Some((account, seen)) = found else {
            return Ok(None);
        };
        self.touch(hash, seen, now).await?;
        Ok(Some(account))
    }

    /// Returns the account that is signed in with a session, without extending the session. Used
    /// for requests that a page sends on its own.
    pub async fn session_follower(&self, token: &str) -> Result<Option<AccountRecord>> {
        let mut conn = self.store().read().await?;
        let found = sessions::account(&mut conn, &token_hash(token), valid(self.now())).await?;
        Ok(found.map(|(account, _)| account))
    }

    /// Returns when a signed-in session expires, without extending it. The service stores the last
    /// use at most once a minute, so a session may expire up to a minute earlier than 30 minutes
    /// after its last use.
    pub async fn session_end(&self, token: &str) -> Result<Option<SessionEnd>> {
        let now = self.now();
        let stored =
            sessions::load(&mut self.store().read().await?, &token_hash(token), valid(now)).await?;
        Ok(stored.filter(|stored| stored.account_id.is_some()).map(|stored| {
            let unused = stored.last_seen_at.plus_ms(IDLE_MS).ms_since(now);
            let at_most = stored.created_at.plus_ms(ABSOLUTE_MS).ms_since(now);
            SessionEnd { in_ms: unused.min(at_most), idle: unused < at_most }
        }))
    }

    /// Returns the devices of an account, most recently seen first.
    pub async fn devices(&self, account_id: i64, current_token: &str) -> Result<Vec<DeviceRecord>> {
        let mut conn = self.store().read().await?;
        let current = token_hash(current_token);
        let names = known_devices::names(&mut conn, account_id).await?;
        let mut devices =
            sessions::devices(&mut conn, account_id, &current, valid(self.now())).await?;
        for device in &mut devices {
            let fingerprint = fingerprint(&device.user_agent, &device.address);
            device.name = names.get(&fingerprint).cloned();
        }
        Ok(devices)
    }

    /// Sets the name of a device's browser and network. A later sign-in with the same browser and
    /// network shows the name again. An empty name removes it.
    ///
    /// # Errors
    /// `DeviceNameInvalid`, `NoSuchDevice`.
    pub async fn name_device(&self, account_id: i64, device_id: i64, name: &str) -> Result<()> {
        let name = name.trim().to_owned();
        if name.chars().count() > DEVICE_NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(Refusal::DeviceNameInvalid.into());
        }
        self.in_transaction(work!(|tx, _| {
            let device = sessions::device(tx, account_id, device_id).await?;
            let (user_agent, address) = device.ok_or(Refusal::NoSuchDevice)?;
            let fingerprint = fingerprint(&user_agent, &address);
            let name = (!name.is_empty()).then_some(name.as_str());
            known_devices::set_name(tx, account_id, &fingerprint, name).await
        }))
        .await
    }

    /// Signs out one device of an account.
    ///
    /// # Errors
    /// `NoSuchDevice`.
    pub async fn sign_out_device(&self, account_id: i64, device_id: i64) -> Result<()> {
        self.in_transaction(work!(|tx, now| {
            if !sessions::delete_device(tx, account_id, device_id).await? {
                return Err(Refusal::NoSuchDevice.into());
            }
            audit_owner(tx, now, account_id, "account.sign_out_device", Change::default()).await
        }))
        .await
    }

    /// Signs out every device of the account except the current one.
    ///
    /// # Errors
    /// `WrongPassword`, `Throttled`, `Busy`.
    pub async fn sign_out_others(
        &self,
        account_id: i64,
        password: &str,
        current_token: &str,
    ) -> Result<()> {
        let verified = self.verify_password(account_id, password).await?;
        let keep = token_hash(current_token);
        let event = self.event(SecurityEventKind::SignedOutOthers, Some(account_id));
        self.in_transaction(work!(|tx, now| {
            accounts::still_in_force(tx, account_id, &verified).await?;
            if sessions::delete_others(tx, account_id, &keep).await? == 0 {
                return Ok(());
            }
            audit_owner(tx, now, account_id, "account.sign_out_others", Change::default()).await?;
            event.store(tx, now).await
        }))
        .await
    }

    /// Moves a session and its data to another token. Replaces the session that has that token, if
    /// any.
    pub async fn session_rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (token_hash(from), token_hash(to));
        self.in_transaction(work!(|tx, _| {
            sessions::delete(tx, &to).await?;
            sessions::rename(tx, &from, &to).await
        }))
        .await
    }

    /// Deletes expired sessions and old security events. Returns the number of deleted sessions.
    pub async fn session_sweep(&self) -> Result<u64> {
        let days = self.limits().security_event_days;
        self.in_transaction(work!(|tx, now| {
            let swept = sessions::sweep(tx, valid(now)).await?;
            store::security_events::sweep(tx, now.plus_ms(-days * DAY_MS)).await?;
            Ok(swept)
        }))
        .await
    }

    async fn touch(&self, hash: String, seen: Timestamp, now: Timestamp) -> Result<()> {
        if now.ms_since(seen) < TOUCH_MS {
            return Ok(());
        }
        self.in_transaction(work!(|tx, _| sessions::touch(tx, &hash, now).await)).await
    }
}

/// Mails the owner of an account about a sign-in from an unknown browser or network. The first
/// sign-in after the registration counts as known.
async fn mail_if_new(
    conn: Conn<'_>,
    account: &AccountRecord,
    user_agent: &str,
    address: &str,
    now: Timestamp,
) -> Result<()> {
    let fingerprint = fingerprint(user_agent, address);
    let registered = now.plus_ms(-REGISTERING_MS);
    let is_first = known_devices::is_first(conn, account.id, registered).await?;
    let network = network(address);
    if known_devices::see(conn, account.id, &fingerprint, &network, now).await? || is_first {
        return Ok(());
    }
    let mail = texts::new_device(user_agent, address, now);
    mail::put(conn, account, &mail, now).await
}

/// Returns the fingerprint by which a browser in a network is recognized.
fn fingerprint(user_agent: &str, address: &str) -> String {
    token_hash(&format!("{} {user_agent}", network(address)))
}

fn valid(now: Timestamp) -> Valid {
    Valid { seen_after: now.plus_ms(-IDLE_MS), made_after: now.plus_ms(-ABSOLUTE_MS) }
}
