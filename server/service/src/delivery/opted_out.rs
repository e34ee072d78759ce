//! Messages that are rejected before they are submitted, because their recipients have opted out or
//! because of the application's limits.

use domain::{DeliveryError, MessageStatus, Timestamp, Transid};

use store::error::Result;
use store::messages::{self, Ended, Ending};
use store::{WriteTx, queue};

/// Rejects these messages because their recipients have opted out; see [`reject_with`].
pub(crate) async fn reject(
    tx: &mut WriteTx<'_>,
    ids: &[Transid],
    now: Timestamp,
) -> Result<Vec<Ended>> {
    reject_with(DeliveryError::OptedOut, tx, ids, now).await
}

/// Rejects these messages, except those that have been claimed. The caller still has to settle the
/// charges that this releases.
pub(crate) async fn reject_with(
    error: DeliveryError,
    tx: &mut WriteTx<'_>,
    ids: &[Transid],
    now: Timestamp,
) -> Result<Vec<Ended>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    messages::lock(tx, ids).await?;
    let unclaimed = queue::drop_unclaimed(tx, ids).await?;
    let endings = unclaimed.into_iter().map(|id| Ending {
        id,
        status: MessageStatus::Rejected,
        error: Some(error.as_str().to_owned()),
        release: true,
        taken: false,
    });
    let endings: Vec<_> = endings.collect();
    messages::finish(tx, &endings, now).await
}
