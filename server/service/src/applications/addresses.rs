//! Addresses: which application has a reference. An application keeps its reference for its whole
//! life, so that a process remembers what it looked up.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use domain::{ApplicationId, Reference};

use crate::Service;
use crate::error::Result;
use crate::store::applications;

/// The applications that were looked up; there are at most as many as references.
#[derive(Default)]
pub(crate) struct Addresses(RwLock<HashMap<Reference, ApplicationId>>);

impl Addresses {
    fn known(&self, reference: Reference) -> Option<ApplicationId> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&reference).copied()
    }

    fn learn(&self, reference: Reference, application: ApplicationId) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(reference, application);
    }
}

impl Service {
    /// The application with a reference, where sends are decided before the database is asked;
    /// `None` if there is no such application, and with SQLite, where a turn reads its rows itself.
    pub(crate) async fn address_of(&self, reference: Reference) -> Result<Option<ApplicationId>> {
        if !self.store().dialect().is_shared() {
            return Ok(None);
        }
        let addresses = &self.inner.addresses;
        if let Some(application) = addresses.known(reference) {
            return Ok(Some(application));
        }
        let mut conn = self.store().read().await?;
        let found = applications::id_by_reference(&mut conn, reference).await?;
        if let Some(application) = found {
            addresses.learn(reference, application);
        }
        Ok(found)
    }
}
