//! Messages whose recipients opted out after the messages were accepted.

use domain::{DeliveryError, MessageStatus, Timestamp, Transid};

use store::error::Result;
use store::messages::{self, Ended, Ending};
use store::{WriteTx, queue};

/// Rejects these messages, except those that have been claimed. The caller still has to settle the
/// charges that this releases.
pub(crate) async fn reject(
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
        error: Some(DeliveryError::OptedOut.as_str().to_owned()),
        release: true,
        taken: false,
    });
    let endings: Vec<_> = endings.collect();
    messages::finish(tx, &endings, now).await
}
