//! Recounting every invariant of the ledger and the queue.

use crate::error::Result;
use crate::store::check;
use crate::{MESSAGE_LIFETIME_MS, Service};

/// What a message may take beyond its lifetime to become final.
const GRACE_MS: i64 = 10 * 60 * 1000;

impl Service {
    /// Every broken invariant in words; none when all hold. All statements see one moment of the database.
    pub async fn check(&self) -> Result<Vec<String>> {
        let mut snapshot = self.store().snapshot().await?;
        let dialect = self.store().dialect();
        dialect.prepare_recount(&mut snapshot).await?;
        let violations = check::violations(&mut snapshot, MESSAGE_LIFETIME_MS + GRACE_MS).await?;
        snapshot.rollback().await?;
        Ok(violations)
    }
}
