//! Measures the storage that test messages of accounts without a deposit take.

use std::sync::{Mutex, PoisonError};

use domain::support::UnpaidUse;

use crate::Operations;
use store::error::Result;
use store::unpaid;

/// The bytes that a message takes with PostgreSQL besides its text: its row and its index entries.
/// With SQLite, a message takes a third of that. `server/tests/api/costs.rs` measures this.
const MESSAGE_BYTES: i64 = 436;
/// The most messages that are counted per shard. More needn't be counted to know that there are too
/// many.
const MESSAGES_MAX: i64 = 5_000_000;

/// The latest measurement of this process.
pub(crate) type LastUse = Mutex<Option<UnpaidUse>>;

impl Operations<'_> {
    /// Measures the stored test messages of accounts that never had a deposit.
    pub async fn measure_unpaid(&self) -> Result<UnpaidUse> {
        let kept = self.in_each_shard(|shard| async move {
            unpaid::kept(&mut self.store().read_at(shard).await?, MESSAGES_MAX).await
        });
        let kept = kept.await?;
        let messages = kept.iter().map(|(messages, _)| messages).sum();
        let texts: i64 = kept.iter().map(|(_, bytes)| bytes).sum();
        let measured = UnpaidUse {
            messages,
            bytes: messages * MESSAGE_BYTES + texts,
            bytes_max: self.limits().unpaid_bytes_max,
        };
        *self.last_use() = Some(measured);
        Ok(measured)
    }

    /// Returns the latest measurement of this process, or `None` if there was none yet.
    pub fn unpaid_use(&self) -> Option<UnpaidUse> {
        *self.last_use()
    }

    fn last_use(&self) -> std::sync::MutexGuard<'_, Option<UnpaidUse>> {
        let last = self.inner.unpaid.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }
}
