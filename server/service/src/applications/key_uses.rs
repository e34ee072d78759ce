//! When and from where keys are used, for their owners. Uses are collected in memory and stored
//! once a minute, so that they don't slow down sends. A process that dies loses the uses of its
//! last minute.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::records::{KeyClientRecord, KeyRecord};
use domain::timestamp::DAY_MS;
use domain::{ApiKey, KeyKind, Reference, Timestamp};

use crate::Applications;
use crate::applications::owned;
use crate::transactions::work;
use store::api_keys::{self, ClientCalls, KeyName};
use store::error::Result;

const HOUR_MS: i64 = 3_600_000;
/// The number of hours over which calls are counted.
const DAY_HOURS: i64 = 24;
/// The number of days over which clients are listed, today included.
const CLIENT_DAYS: i64 = 30;
/// The number of a key's clients that are counted separately, both per day and between two stores.
/// Without a limit, the addresses of a phone app with the key in it would fill the database.
const CLIENTS_MAX: usize = 100;
/// The number of counts per transaction, which takes a few milliseconds. The counts of a key aren't
/// split, so a transaction may have some hundred more.
const CHUNK: usize = 200;

/// The uses of keys that aren't stored yet. They are sorted by reference, because all writers of
/// keys lock the rows in that order.
#[derive(Default)]
pub(crate) struct KeyUses(Mutex<BTreeMap<KeyName, Uses>>);

struct Uses {
    at: Timestamp,
    from: Option<IpAddr>,
    /// The number of calls in each hour. Hours are counted since 1970.
    calls: BTreeMap<i64, i64>,
    /// The calls of each client on each day. Days are counted since 1970. `None` stands for the
    /// clients beyond [`CLIENTS_MAX`].
    clients: BTreeMap<(i64, Option<IpAddr>), ClientCalls>,
}

impl Uses {
    fn note_client(&mut self, at: Timestamp, from: IpAddr) {
        let day = day(at);
        let is_counted =
            self.clients.len() < CLIENTS_MAX || self.clients.contains_key(&(day, Some(from)));
        let new = ClientCalls { day, calls: 0, first_at: at, last_at: at };
        let client = is_counted.then_some(from);
        let calls = self.clients.entry((day, client)).or_insert(new);
        calls.calls += 1;
        calls.first_at = calls.first_at.min(at);
        calls.last_at = calls.last_at.max(at);
    }
}

const fn hour(at: Timestamp) -> i64 {
    at.unix_ms().div_euclid(HOUR_MS)
}

const fn day(at: Timestamp) -> i64 {
    at.unix_ms().div_euclid(DAY_MS)
}

impl KeyUses {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<KeyName, Uses>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, key: KeyName, at: Timestamp, from: Option<IpAddr>) {
        let mut noted = self.lock();
        let uses = noted.entry(key).or_insert_with(|| Uses {
            at,
            from,
            calls: BTreeMap::new(),
            clients: BTreeMap::new(),
        });
        if at >= uses.at {
            (uses.at, uses.from) = (at, from);
        }
        *uses.calls.entry(hour(at)).or_default() += 1;
        if let Some(from) = from {
            uses.note_client(at, from);
        }
    }
}

impl Applications<'_> {
    /// Records a call with a key that is in force, in memory.
    pub fn note_key_use(&self, key: &ApiKey, from: Option<IpAddr>) {
        let name = (key.reference(), key.kind());
        self.inner.key_uses.note(name, self.now(), from);
    }

    /// Stores the uses that were added since the last time. If there were any, also deletes counts
    /// that are more than a day old and clients of more than 30 days ago.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` if the database can't be written. The uses are then lost: they can't
    /// be stored again, because they may have been stored already.
    pub async fn store_key_uses(&self) -> Result<()> {
        let noted = std::mem::take(&mut *self.inner.key_uses.lock());
        if noted.is_empty() {
            return Ok(());
        }
        let mut noted = noted.into_iter().peekable();
        while noted.peek().is_some() {
            let mut counts = 0;
            let chunk: Vec<_> = std::iter::from_fn(|| {
                let next = noted.next_if(|_| counts < CHUNK)?;
                counts += next.1.calls.len() + next.1.clients.len();
                Some(next)
            })
            .collect();
            self.store_some_uses(chunk).await?;
        }
        self.in_transaction(work!(|tx, now| {
            api_keys::sweep(tx, hour(now) - DAY_HOURS, day(now) - CLIENT_DAYS).await
        }))
        .await
    }

    async fn store_some_uses(&self, noted: Vec<(KeyName, Uses)>) -> Result<()> {
        self.in_transaction(work!(|tx, _now| {
            for (key, uses) in noted {
                let from = uses.from.map(|from| from.to_string());
                api_keys::used(tx, key, uses.at, from.as_deref()).await?;
                for (hour, calls) in uses.calls {
                    api_keys::count(tx, key, hour, calls, uses.at).await?;
                }
                for ((_, client), calls) in uses.clients {
                    let client = client.map(|client| client.to_string()).unwrap_or_default();
                    let most = CLIENTS_MAX.cast_signed() as i64;
                    api_keys::count_client(tx, key, &client, calls, most).await?;
                }
            }
            Ok(())
        }))
        .await
    }

    /// Returns the records of the keys of one of an account's applications.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn key_records(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<KeyRecord>> {
        let mut conn = self.read_of(reference).await?;
        owned(&mut conn, account_id, reference).await?;
        drop(conn);
        let mut conn = self.store().read().await?;
        let since = hour(self.now()) - DAY_HOURS;
        api_keys::of_application(&mut conn, reference, since).await
    }

    /// Returns the clients that used a key of one of an account's applications in the last 30 days,
    /// the last one first.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn key_clients(
        &self,
        account_id: i64,
        reference: Reference,
        kind: KeyKind,
    ) -> Result<Vec<KeyClientRecord>> {
        let mut conn = self.read_of(reference).await?;
        owned(&mut conn, account_id, reference).await?;
        drop(conn);
        let mut conn = self.store().read().await?;
        let since = day(self.now()) - (CLIENT_DAYS - 1);
        let limit = CLIENTS_MAX.cast_signed() as i64;
        api_keys::clients(&mut conn, (reference, kind), since, limit).await
    }
}
