//! Homes: where the rows of an account's applications are, in a database that can be spread over
//! servers. What is done for one application is done in its home; what is done for all applications
//! is done home by home.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use domain::ids::Home;
use domain::{ApplicationId, Reason, Reference};

use crate::Service;
use crate::error::{Refusal, Result};
use crate::store::applications::Address;
use crate::store::{accounts, applications};

/// The homes of the installation, and the addresses of references as they become known.
pub(crate) struct Homes {
    /// How many homes there are; they are numbered from 1.
    count: i64,
    /// The addresses of references, as far as they are known.
    of: RwLock<HashMap<Reference, Address>>,
    /// The homes of applications, as far as they are known.
    of_applications: RwLock<HashMap<ApplicationId, Home>>,
    /// How often a home was skipped.
    skipped: AtomicU64,
}

impl Homes {
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

    fn of_application(&self, id: ApplicationId) -> Option<Home> {
        let known = self
            .of_applications
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        known.get(&id).copied()
    }

    fn learn(&self, reference: Reference, address: Address) {
        let mut known = self.of.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(reference, address);
    }

    /// The only home, where there is no other.
    fn only(&self) -> Option<Home> {
        (self.count == 1).then_some(Home::FIRST)
    }
}

/// All homes of an installation with this many homes.
pub(crate) fn all(count: i64) -> impl Iterator<Item = Home> {
    (1..=count).map(Home)
}

impl Service {
    pub(crate) fn homes(&self) -> impl Iterator<Item = Home> + use<> {
        all(self.inner.homes.count)
    }

    /// How often a home was skipped because its database couldn't be reached.
    pub fn homes_skipped(&self) -> u64 {
        self.inner.homes.skipped.load(Ordering::Relaxed)
    }

    /// The address of the application with this reference; `None` when the reference is nobody's.
    /// For PostgreSQL alone.
    pub(crate) async fn address_of(&self, reference: Reference) -> Result<Option<Address>> {
        let homes = &self.inner.homes;
        if let Some(address) = homes.address(reference) {
            return Ok(Some(address));
        }
        let mut conn = self.store().read().await?;
        let found = applications::address_of(&mut conn, reference).await?;
        if let Some(address) = found {
            homes.learn(reference, address);
        }
        Ok(found)
    }

    /// The address that a send goes to. With SQLite, where a commit group reads all rows itself, it
    /// isn't looked up.
    pub(crate) async fn address_to_send(&self, reference: Reference) -> Result<Option<Address>> {
        if self.store().dialect().is_shared() {
            self.address_of(reference).await
        } else {
            Ok(None)
        }
    }

    /// The home of the application with this reference; `None` when the reference is nobody's,
    /// unless the installation has one home.
    pub(crate) async fn find_home(&self, reference: Reference) -> Result<Option<Home>> {
        if let Some(home) = self.inner.homes.only() {
            return Ok(Some(home));
        }
        Ok(self
            .address_of(reference)
            .await?
            .map(|address| address.home))
    }

    /// The home of the application with this reference.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub(crate) async fn home_of(&self, reference: Reference) -> Result<Home> {
        let found = self.find_home(reference).await?;
        Ok(found.ok_or(Refusal::NoSuchApplication)?)
    }

    /// The only home, where there is no other.
    pub(crate) fn only_home(&self) -> Option<Home> {
        self.inner.homes.only()
    }

    /// The home of an application.
    pub(crate) async fn home_of_application(&self, id: ApplicationId) -> Result<Home> {
        let homes = &self.inner.homes;
        if let Some(home) = homes.only().or_else(|| homes.of_application(id)) {
            return Ok(home);
        }
        let mut conn = self.store().read().await?;
        let home = applications::home_of(&mut conn, id).await?;
        let mut known = homes
            .of_applications
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(id, home);
        Ok(home)
    }

    /// The home of an account's applications.
    pub(crate) async fn home_of_account(&self, account_id: i64) -> Result<Home> {
        if let Some(home) = self.inner.homes.only() {
            return Ok(home);
        }
        let mut conn = self.store().read().await?;
        accounts::home(&mut conn, account_id).await
    }

    /// Does work in each home and returns the results. A home whose database can't be reached is
    /// logged and skipped, so that it delays its own applications alone.
    ///
    /// # Errors
    /// When the work fails for another reason, or in every home.
    pub(crate) async fn in_each_home<T, F>(&self, work: impl Fn(Home) -> F) -> Result<Vec<T>>
    where
        F: Future<Output = Result<T>>,
    {
        let (mut done, mut failed) = (Vec::new(), None);
        for home in self.homes() {
            match work(home).await {
                Ok(of_home) => done.push(of_home),
                Err(error) if error.reason() == Reason::Unavailable => {
                    if self.inner.homes.only().is_none() {
                        tracing::warn!(home = home.0, detail = ?error, "a home is skipped");
                        self.inner.homes.skipped.fetch_add(1, Ordering::Relaxed);
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
