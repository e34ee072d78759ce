//! Sessions, and the devices that they are once somebody has signed in.

use domain::Timestamp;
use domain::records::{AccountRecord, DeviceRecord};

use crate::Service;
use crate::accounts::{throttles_before, token_hash};
use crate::error::{Refusal, Result};
use crate::store::sessions::{self, Valid};
use crate::store::throttles;

/// A session that was unused for this long is over.
pub(crate) const IDLE_MS: i64 = 30 * 60 * 1000;
/// A session is over this long after it was made, used or not; a sign-in makes a new session.
pub(crate) const ABSOLUTE_MS: i64 = 12 * 60 * 60 * 1000;
/// How often "last seen" is written at most: a page view needn't cost a commit.
const TOUCH_MS: i64 = 60 * 1000;
/// How many characters of a `User-Agent` are kept.
const USER_AGENT_CHARS_MAX: usize = 255;

/// A session as the portal sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The account that is signed in.
    pub account_id: Option<i64>,
    /// The session's data as JSON.
    pub data: String,
    /// When the session will be over unless it is used before. This moment is only returned: the
    /// stored moments come from the clock.
    pub expires_at: Timestamp,
}

/// The browser that signs in.
#[derive(Clone, Debug, Default)]
pub struct ClientInfo {
    pub user_agent: String,
    pub address: String,
}

impl Service {
    /// Stores a new session; false when a session with this token exists.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn session_create(&self, token: &str, row: &SessionRow) -> Result<bool> {
        let (hash, data) = (token_hash(token), row.data.clone());
        self.in_transaction(move |tx, now| {
            Box::pin(async move { sessions::insert(tx, &hash, &data, now).await })
        })
        .await
    }

    /// Stores what changed in a session. A session that was signed out meanwhile stays so.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn session_save(&self, token: &str, row: &SessionRow) -> Result<()> {
        let (hash, data) = (token_hash(token), row.data.clone());
        self.in_transaction(move |tx, now| {
            Box::pin(async move { sessions::save(tx, &hash, &data, now).await })
        })
        .await
    }

    /// The session with this token, unless it is over; using a session puts off its end.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
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

    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn session_delete(&self, token: &str) -> Result<()> {
        let hash = token_hash(token);
        self.in_transaction(move |tx, _| Box::pin(async move { sessions::delete(tx, &hash).await }))
            .await
    }

    /// Makes a stored session a device of the account that signed in.
    ///
    /// # Errors
    /// `WrongCredentials`, when the password was changed since, or when there is no such session.
    pub async fn device_sign_in(
        &self,
        token: &str,
        account: &AccountRecord,
        client: &ClientInfo,
    ) -> Result<()> {
        let hash = token_hash(token);
        let user_agent: String = client
            .user_agent
            .chars()
            .take(USER_AGENT_CHARS_MAX)
            .collect();
        let (account, address) = (account.clone(), client.address.clone());
        self.in_transaction(move |tx, _| {
            Box::pin(async move {
                if !sessions::bind(tx, &hash, &account, &user_agent, &address).await? {
                    return Err(Refusal::WrongCredentials.into());
                }
                Ok(())
            })
        })
        .await
    }

    /// The account that is signed in with a session; using the session puts off its end.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
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

    /// Whether somebody is signed in with a session, without putting off the session's end: for
    /// requests that a page makes by itself.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn session_holds(&self, token: &str) -> Result<bool> {
        let mut conn = self.store().read().await?;
        let found = sessions::account(&mut conn, &token_hash(token), valid(self.now())).await?;
        Ok(found.is_some())
    }

    /// The devices of an account, the one seen last first.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn devices(&self, account_id: i64, current_token: &str) -> Result<Vec<DeviceRecord>> {
        let mut conn = self.store().read().await?;
        let current = token_hash(current_token);
        sessions::devices(&mut conn, account_id, &current, valid(self.now())).await
    }

    /// # Errors
    /// `NoSuchDevice`.
    pub async fn sign_out_device(&self, account_id: i64, device_id: i64) -> Result<()> {
        self.in_transaction(move |tx, _| {
            Box::pin(async move {
                if !sessions::delete_device(tx, account_id, device_id).await? {
                    return Err(Refusal::NoSuchDevice.into());
                }
                Ok(())
            })
        })
        .await
    }

    /// Signs out every device of the account except the one that asks.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn sign_out_others(&self, account_id: i64, current_token: &str) -> Result<()> {
        let keep = token_hash(current_token);
        self.in_transaction(move |tx, _| {
            Box::pin(async move { sessions::delete_others(tx, account_id, &keep).await })
        })
        .await
    }

    /// Deletes sessions and windows of attempts that are over; returns how many sessions.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn session_sweep(&self) -> Result<u64> {
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let swept = sessions::sweep(tx, valid(now)).await?;
                throttles::sweep(tx, throttles_before(now)).await?;
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

fn valid(now: Timestamp) -> Valid {
    Valid {
        seen_after: now.plus_ms(-IDLE_MS),
        made_after: now.plus_ms(-ABSOLUTE_MS),
    }
}
