//! Shards. A database that can be distributed over servers stores the rows of all applications of
//! an account in one shard. Work for one application runs in its shard. Work for all applications
//! runs shard by shard.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use domain::ids::Shard;
use domain::{ApplicationId, Reason, Reference};

use crate::Service;
use store::applications::Address;
use store::error::{Refusal, Result};
use store::query::At;
use store::{Reader, accounts, applications};

/// The shards of the installation, and caches of the shards of applications.
pub(crate) struct Shards {
    /// The number of shards. They are numbered from 1.
    count: i64,
    of: RwLock<HashMap<Reference, Address>>,
    /// The cached shards of applications, by ID.
    of_applications: RwLock<HashMap<ApplicationId, Shard>>,
    skipped: AtomicU64,
}

impl Shards {
    pub(crate) fn new(count: i64) -> Self {
        Self {
            count,
            of: RwLock::default(),
            of_applications: RwLock::default(),
            skipped: AtomicU64::new(0),
        }
    }

    fn address(&self, reference: Reference) -> Option<Address> {
        let known = self.of.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&reference).copied()
    }

    fn of_application(&self, id: ApplicationId) -> Option<Shard> {
        let known = self.of_applications.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&id).copied()
    }

    fn learn(&self, reference: Reference, address: Address) {
        let mut known = self.of.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(reference, address);
    }

    /// Returns the only shard, or `None` if there are several.
    fn only(&self) -> Option<Shard> {
        (self.count == 1).then_some(Shard::FIRST)
    }
}

pub(crate) fn all(count: i64) -> impl Iterator<Item = Shard> {
    (1..=count).map(Shard)
}

impl Service {
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        all(self.inner.shards.count)
    }

    /// Returns how many times a shard was skipped because its database couldn't be reached.
    pub fn shards_skipped(&self) -> u64 {
        self.inner.shards.skipped.load(Ordering::Relaxed)
    }

    /// Returns the address of the application with this reference, or `None` if there is none. Only
    /// for PostgreSQL.
    pub(crate) async fn address_of(&self, reference: Reference) -> Result<Option<Address>> {
        let shards = &self.inner.shards;
        if let Some(address) = shards.address(reference) {
            return Ok(Some(address));
        }
        let mut conn = self.store().read().await?;
        let found = applications::address_of(&mut conn, reference).await?;
        if let Some(address) = found {
            shards.learn(reference, address);
        }
        Ok(found)
    }

    /// Returns the address for a send. Returns `None` with SQLite, where a commit group reads all
    /// rows itself.
    pub(crate) async fn address_to_send(&self, reference: Reference) -> Result<Option<Address>> {
        if self.store().dialect().is_shared() { self.address_of(reference).await } else { Ok(None) }
    }

    /// Returns the shard of the application with this reference, or `None` if there is no such
    /// application. An installation with one shard returns that shard for any reference.
    pub(crate) async fn find_shard(&self, reference: Reference) -> Result<Option<Shard>> {
        if let Some(shard) = self.inner.shards.only() {
            return Ok(Some(shard));
        }
        Ok(self.address_of(reference).await?.map(|address| address.shard))
    }

    /// Returns the shard of the application with this reference.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub(crate) async fn shard_of(&self, reference: Reference) -> Result<Shard> {
        let found = self.find_shard(reference).await?;
        Ok(found.ok_or(Refusal::NoSuchApplication)?)
    }

    /// Returns the only shard, or `None` if there are several.
    pub(crate) fn only_shard(&self) -> Option<Shard> {
        self.inner.shards.only()
    }

    pub(crate) async fn shard_of_application(&self, id: ApplicationId) -> Result<Shard> {
        let shards = &self.inner.shards;
        if let Some(shard) = shards.only().or_else(|| shards.of_application(id)) {
            return Ok(shard);
        }
        let mut conn = self.store().read().await?;
        let shard = applications::shard_of(&mut conn, id).await?;
        let mut known = shards.of_applications.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(id, shard);
        Ok(shard)
    }

    /// Returns the shard of an account's applications.
    pub(crate) async fn shard_of_account(&self, account_id: i64) -> Result<Shard> {
        if let Some(shard) = self.inner.shards.only() {
            return Ok(shard);
        }
        let mut conn = self.store().read().await?;
        accounts::shard(&mut conn, account_id).await
    }

    /// Returns a connection that reads the shard of the application with this reference.
    pub(crate) async fn read_of(&self, reference: Reference) -> Result<At<Reader>> {
        self.store().read_at(self.shard_of(reference).await?).await
    }

    /// Returns a connection that reads the shard of an account's applications.
    pub(crate) async fn read_of_account(&self, account_id: i64) -> Result<At<Reader>> {
        self.store().read_at(self.shard_of_account(account_id).await?).await
    }

    /// Runs work in each shard and returns the results. Logs and skips a shard whose database can't
    /// be reached, so that only the shard's own applications are delayed. Fails if no shard can be
    /// reached.
    pub(crate) async fn in_each_shard<T, F>(&self, work: impl Fn(Shard) -> F) -> Result<Vec<T>>
    where
        F: Future<Output = Result<T>>,
    {
        let (mut done, mut failed) = (Vec::new(), None);
        for shard in self.shards() {
            match work(shard).await {
                Ok(of_shard) => done.push(of_shard),
                Err(error) if error.reason() == Reason::Unavailable => {
                    if self.inner.shards.only().is_none() {
                        tracing::warn!(shard = shard.0, detail = ?error, "a shard is skipped");
                        self.inner.shards.skipped.fetch_add(1, Ordering::Relaxed);
                    }
                    failed = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match failed {
            Some(error) if done.is_empty() => Err(error),
            _ => Ok(done),
        }
    }
}
