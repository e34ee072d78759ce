//! Sessions, and the devices that they are once somebody has signed in.

use domain::Timestamp;
use domain::account::DEVICE_NAME_CHARS_MAX;
use domain::records::{AccountRecord, DeviceRecord, SessionEnd};
use domain::security_event::SecurityEventKind;

use crate::Service;
use crate::accounts::security_events::{self, ClientInfo, Event};
use crate::accounts::throttle::network;
use crate::accounts::{still_in_force, token_hash};
use crate::error::{Refusal, Result};
use crate::mail::{self, texts};
use crate::store::audit::{self, Actor};
use crate::store::known_devices;
use crate::store::query::Connection;
use crate::store::sessions::{self, SignIn, Valid};

/// A session that was unused for this long is over.
pub(crate) const IDLE_MS: i64 = 30 * 60 * 1000;
/// A session is over this long after it was made, used or not; a sign-in makes a new session.
pub(crate) const ABSOLUTE_MS: i64 = 12 * 60 * 60 * 1000;
/// How often "last seen" is written at most: a page view needn't cost a commit.
const TOUCH_MS: i64 = 60 * 1000;
/// A sign-in this soon after the registration is a part of it.
const REGISTERING_MS: i64 = 60 * 1000;

/// How somebody signed in, as the event says.
const BY_PASSWORD: &str = "By password";
const BY_CODE: &str = "By password and second factor";

/// A session as the portal sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The account that is signed in.
    pub account_id: Option<i64>,
    /// The session's data as JSON.
    pub data: String,
    /// When the session will be over unless it is used before. This time is only returned: the
    /// stored times come from the clock.
    pub expires_at: Timestamp,
}

impl Service {
    /// Stores a new session; false when a session with this token exists.
    pub async fn session_create(&self, token: &str, row: &SessionRow) -> Result<bool> {
        let (hash, data) = (token_hash(token), row.data.clone());
        self.in_transaction(move |tx, now| {
            Box::pin(async move { sessions::insert(tx, &hash, &data, now).await })
        })
        .await
    }

    /// Stores what changed in a session. A session that was signed out meanwhile stays so.
    pub async fn session_save(&self, token: &str, row: &SessionRow) -> Result<()> {
        let (hash, data) = (token_hash(token), row.data.clone());
        self.in_transaction(move |tx, now| {
            Box::pin(async move { sessions::save(tx, &hash, &data, now).await })
        })
        .await
    }

    /// The session with this token, unless it is over; using a session extends it.
    pub async fn session_load(&self, token: &str) -> Result<Option<SessionRow>> {
        let hash = token_hash(token);
        let now = self.now();
        let stored = {
            let mut conn = self.store().read().await?;
            sessions::load(&mut conn, &hash, valid(now)).await?
        };
        let Some(stored) = stored else {
            return Ok(None);
        };
        self.touch(hash, stored.last_seen_at, now).await?;
        let expires_at = now
            .plus_ms(IDLE_MS)
            .min(stored.created_at.plus_ms(ABSOLUTE_MS));
        Ok(Some(SessionRow {
            account_id: stored.account_id,
            data: stored.data,
            expires_at,
        }))
    }

    pub async fn session_delete(&self, token: &str) -> Result<()> {
        let hash = token_hash(token);
        self.in_transaction(move |tx, _| Box::pin(async move { sessions::delete(tx, &hash).await }))
            .await
    }

    /// Makes a stored session a device of the account that signed in by its password alone.
    ///
    /// # Errors
    /// `WrongCredentials`, when the password was changed or the account disabled since, when the
    /// account has a second factor, or when there is no such session.
    pub async fn device_sign_in(
        &self,
        token: &str,
        account: &AccountRecord,
        client: &ClientInfo,
    ) -> Result<()> {
        self.make_device(token, account, client, 0).await
    }

    /// Like [`Service::device_sign_in`], after [`Service::sign_in_step`] took a code.
    ///
    /// # Errors
    /// The same, but for the second factor.
    pub async fn device_sign_in_by_code(
        &self,
        token: &str,
        account: &AccountRecord,
        client: &ClientInfo,
    ) -> Result<()> {
        self.make_device(token, account, client, 1).await
    }

    /// Notes in a stored session that the account gave its password and its code is awaited. The
    /// session opens nothing by that.
    ///
    /// # Errors
    /// `WrongCredentials`, as with [`Service::device_sign_in`].
    pub async fn await_code(&self, token: &str, account: &AccountRecord) -> Result<()> {
        let (hash, account) = (token_hash(token), account.clone());
        self.in_transaction(move |tx, _| {
            Box::pin(async move {
                if !sessions::await_code(tx, &hash, &account).await? {
                    return Err(Refusal::WrongCredentials.into());
                }
                Ok(())
            })
        })
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
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let (user_agent, address) = (&event.origin.user_agent, &event.origin.address);
                let sign_in = SignIn {
                    account: &account,
                    user_agent,
                    address,
                    factors,
                };
                if !sessions::bind(tx, &hash, &sign_in, now).await? {
                    return Err(Refusal::WrongCredentials.into());
                }
                mail_if_new(tx, &account, user_agent, address, now).await?;
                event.store(tx, now).await
            })
        })
        .await
    }

    /// The account that is signed in with a session; using the session extends it.
    pub async fn session_account(&self, token: &str) -> Result<Option<AccountRecord>> {
        let hash = token_hash(token);
        let now = self.now();
        let found = {
            let mut conn = self.store().read().await?;
            sessions::account(&mut conn, &hash, valid(now)).await?
        };
        let Some((account, seen)) = found else {
            return Ok(None);
        };
        self.touch(hash, seen, now).await?;
        Ok(Some(account))
    }

    /// The account that is signed in with a session, as it is now, without extending the
    /// session's end: for requests that a page makes by itself.
    pub async fn session_follower(&self, token: &str) -> Result<Option<AccountRecord>> {
        let mut conn = self.store().read().await?;
        let found = sessions::account(&mut conn, &token_hash(token), valid(self.now())).await?;
        Ok(found.map(|(account, _)| account))
    }

    /// When the session of somebody who is signed in ends, without putting that off. Its last use
    /// is known to a minute: the session may go on for so much longer.
    pub async fn session_end(&self, token: &str) -> Result<Option<SessionEnd>> {
        let now = self.now();
        let stored = {
            let mut conn = self.store().read().await?;
            sessions::load(&mut conn, &token_hash(token), valid(now)).await?
        };
        Ok(stored
            .filter(|stored| stored.account_id.is_some())
            .map(|stored| {
                let unused = stored.last_seen_at.plus_ms(IDLE_MS).ms_since(now);
                let at_most = stored.created_at.plus_ms(ABSOLUTE_MS).ms_since(now);
                SessionEnd {
                    in_ms: unused.min(at_most),
                    idle: unused < at_most,
                }
            }))
    }

    /// The devices of an account, the one seen last first.
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

    /// Names the browser of a device, in the network that it is in: the name is there again after
    /// the next sign-in. An empty name takes the name away.
    ///
    /// # Errors
    /// `DeviceNameInvalid`, `NoSuchDevice`.
    pub async fn name_device(&self, account_id: i64, device_id: i64, name: &str) -> Result<()> {
        let name = name.trim().to_owned();
        if name.chars().count() > DEVICE_NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(Refusal::DeviceNameInvalid.into());
        }
        self.in_transaction(move |tx, _| {
            Box::pin(async move {
                let device = sessions::device(tx, account_id, device_id).await?;
                let (user_agent, address) = device.ok_or(Refusal::NoSuchDevice)?;
                let fingerprint = fingerprint(&user_agent, &address);
                let name = (!name.is_empty()).then_some(name.as_str());
                known_devices::set_name(tx, account_id, &fingerprint, name).await
            })
        })
        .await
    }

    /// # Errors
    /// `NoSuchDevice`.
    pub async fn sign_out_device(&self, account_id: i64, device_id: i64) -> Result<()> {
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                if !sessions::delete_device(tx, account_id, device_id).await? {
                    return Err(Refusal::NoSuchDevice.into());
                }
                let actor = Actor::Account(account_id);
                let subject = actor.to_string();
                audit::insert(tx, now, &actor, "account.sign_out_device", &subject, None).await
            })
        })
        .await
    }

    /// Signs out every device of the account except the one that asks.
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
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                still_in_force(tx, account_id, &verified).await?;
                if sessions::delete_others(tx, account_id, &keep).await? == 0 {
                    return Ok(());
                }
                let actor = Actor::Account(account_id);
                let subject = actor.to_string();
                audit::insert(tx, now, &actor, "account.sign_out_others", &subject, None).await?;
                event.store(tx, now).await
            })
        })
        .await
    }

    /// Gives a session, with everything that is stored of it, another token. A session that has
    /// that token is replaced.
    pub async fn session_rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (token_hash(from), token_hash(to));
        self.in_transaction(move |tx, _| {
            Box::pin(async move {
                sessions::delete(tx, &to).await?;
                sessions::rename(tx, &from, &to).await
            })
        })
        .await
    }

    /// Deletes sessions that are over and old security events; returns how many sessions.
    pub async fn session_sweep(&self) -> Result<u64> {
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let swept = sessions::sweep(tx, valid(now)).await?;
                security_events::sweep(tx, now).await?;
                Ok(swept)
            })
        })
        .await
    }

    async fn touch(&self, hash: String, seen: Timestamp, now: Timestamp) -> Result<()> {
        if now.ms_since(seen) < TOUCH_MS {
            return Ok(());
        }
        self.in_transaction(move |tx, _| {
            Box::pin(async move { sessions::touch(tx, &hash, now).await })
        })
        .await
    }
}

/// Mails the owner of an account about a sign-in from a browser or network that isn't known. The
/// first one is known when it follows the registration.
async fn mail_if_new(
    conn: &mut dyn Connection,
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

/// What a browser in a network is known by.
fn fingerprint(user_agent: &str, address: &str) -> String {
    token_hash(&format!("{} {user_agent}", network(address)))
}

fn valid(now: Timestamp) -> Valid {
    Valid {
        seen_after: now.plus_ms(-IDLE_MS),
        made_after: now.plus_ms(-ABSOLUTE_MS),
    }
}
