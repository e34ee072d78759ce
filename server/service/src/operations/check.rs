//! The check: counts every invariant of the ledger and the queue again.

use crate::error::Result;
use crate::store::check;
use crate::store::query::Connection;
use crate::{MESSAGE_LIFETIME_MS, Service};

/// How long after its lifetime a message may take to become final.
const GRACE_MS: i64 = 10 * 60 * 1000;

impl Service {
    /// Every broken invariant in words; empty when all hold. All statements see the same snapshot
    /// of the database.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn check(&self) -> Result<Vec<String>> {
        let mut snapshot = self.store().snapshot().await?;
        self.store()
            .dialect()
            .prepare_recount(&mut snapshot)
            .await?;
        let violations = violations(&mut snapshot).await?;
        snapshot.rollback().await?;
        Ok(violations)
    }
}

/// Every broken invariant, as the transaction of this connection sees the database.
pub(crate) async fn violations(conn: &mut dyn Connection) -> Result<Vec<String>> {
    check::violations(conn, MESSAGE_LIFETIME_MS + GRACE_MS).await
}
