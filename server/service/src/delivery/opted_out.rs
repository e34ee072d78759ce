//! Messages that end before a carrier gets them: their recipients opted out, the application's
//! limits refuse them, or they are cancelled.

use domain::{DeliveryError, MessageStatus, Submission, Timestamp, Transid};

use store::error::Result;
use store::messages::{self, Ended, Ending};
use store::queue::Requeued;
use store::{WriteTx, batches, queue};

/// Rejects messages to recipients who opted out, as [`withdraw`] does.
pub(crate) async fn reject(
    tx: &mut WriteTx<'_>,
    ids: &[Transid],
    now: Timestamp,
) -> Result<Vec<Ended>> {
    withdraw(tx, ids, (MessageStatus::Rejected, Some(DeliveryError::OptedOut)), now).await
}

/// Ends the claims of rows of the queue. Those that went on although their batch was cancelled are
/// cancelled now, unless a carrier has, or may have, a segment. Returns the messages that this
/// ended. The caller still has to settle the charges that this releases.
pub(crate) async fn requeue(
    tx: &mut WriteTx<'_>,
    rows: &[Requeued],
    now: Timestamp,
) -> Result<Vec<Ended>> {
    queue::requeue(tx, rows).await?;
    let unbegun = rows.iter().filter(|row| matches!(row.submission, Submission::None));
    let unbegun: Vec<_> = unbegun.map(|row| row.id).collect();
    if unbegun.is_empty() {
        return Ok(Vec::new());
    }
    let cancelled = batches::of_cancelled(tx, &unbegun).await?;
    withdraw(tx, &cancelled, (MessageStatus::Cancelled, None), now).await
}

/// Gives these messages a final status and an error, except those that have been claimed or of
/// which a carrier has, or may have, a segment. The caller still has to settle the charges that
/// this releases.
pub(crate) async fn withdraw(
    tx: &mut WriteTx<'_>,
    ids: &[Transid],
    (status, error): (MessageStatus, Option<DeliveryError>),
    now: Timestamp,
) -> Result<Vec<Ended>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    messages::lock(tx, ids).await?;
    let unclaimed = queue::drop_unclaimed(tx, ids, false).await?;
    let endings = unclaimed.into_iter().map(|id| Ending {
        id,
        status,
        error: error.map(|error| error.as_str().to_owned()),
        release: true,
        taken: false,
    });
    let endings: Vec<_> = endings.collect();
    messages::finish(tx, &endings, now).await
}
