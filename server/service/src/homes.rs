//! Homes: where the rows of an account's applications are, in a database that can be spread over
//! servers. What is done for one application goes to its home; what goes over all applications is
//! done home by home.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::ids::Home;
use domain::{Reason, Reference};

use crate::Service;
use crate::error::{Refusal, Result};
use crate::store::{accounts, applications};

/// The homes of the installation, and those of references as they become known.
pub(crate) struct Homes {
    /// How many homes there are; they are numbered from 1.
    count: i64,
    /// No more than there are applications: a home never changes.
    of: Mutex<HashMap<Reference, Home>>,
    /// How often a home was skipped.
    skipped: AtomicU64,
}

impl Homes {
    pub(crate) fn new(count: i64) -> Self {
        Self {
            count,
            of: Mutex::default(),
            skipped: AtomicU64::new(0),
        }
    }

    /// The only home, where there is no other.
    fn only(&self) -> Option<Home> {
        (self.count == 1).then_some(Home::FIRST)
    }
}

/// All homes of an installation that has so many.
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

    /// The home of the application with this reference; `None` when the reference is nobody's,
    /// unless the installation has one home.
    pub(crate) async fn find_home(&self, reference: Reference) -> Result<Option<Home>> {
        let homes = &self.inner.homes;
        let known = || homes.of.lock().unwrap_or_else(PoisonError::into_inner);
        let found = homes.only().or_else(|| known().get(&reference).copied());
        if found.is_some() {
            return Ok(found);
        }
        let mut conn = self.store().read().await?;
        let found = applications::home_of(&mut conn, reference).await?;
        if let Some(home) = found {
            known().insert(reference, home);
        }
        Ok(found)
    }

    /// The home of the application with this reference.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub(crate) async fn home_of(&self, reference: Reference) -> Result<Home> {
        let found = self.find_home(reference).await?;
        Ok(found.ok_or(Refusal::NoSuchApplication)?)
    }

    /// The home of an account's applications.
    pub(crate) async fn home_of_account(&self, account_id: i64) -> Result<Home> {
        if let Some(home) = self.inner.homes.only() {
            return Ok(home);
        }
        let mut conn = self.store().read().await?;
        accounts::home(&mut conn, account_id).await
    }

    /// Does work in each home and returns what was done. A home whose database can't be reached is
    /// reported and skipped, so that it holds up its own applications alone.
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
