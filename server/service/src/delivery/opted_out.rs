//! Messages that end before a carrier gets them: their recipients opted out, the application's
//! limits refuse them, or they are cancelled.

use std::collections::BTreeMap;

use domain::{
    ApiKey, DeliveryError, EventStream, KeyKind, MessageStatus, Submission, Timestamp, Transid,
};

use crate::{Messages, Service};
use store::error::{Refusal, Result};
use store::messages::{self, Ended, Ending};
use store::query::Conn;
use store::queue::Requeued;
use store::{Tx, applications, batches, queue};

/// Rejects messages to recipients who opted out, as [`withdraw`] does.
pub(crate) async fn reject(tx: &mut Tx<'_>, ids: &[Transid], now: Timestamp) -> Result<Vec<Ended>> {
    withdraw(tx, ids, (MessageStatus::Rejected, Some(DeliveryError::OptedOut)), now).await
}

/// Ends the claims of rows of the queue. If a row's batch was cancelled during the claim, cancels
/// its message, unless a carrier has, or may have, a segment. Returns the cancelled messages. The
/// caller still has to settle the charges that this releases.
pub(crate) async fn requeue(
    tx: &mut Tx<'_>,
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
/// this releases. They count towards the number of messages that an application may have withdrawn on
/// a day ([`check_withdrawals`]).
pub(crate) async fn withdraw(
    tx: &mut Tx<'_>,
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
    let ended = messages::finish(tx, &endings, now).await?;
    // Sorted by application, so that transactions that lock several applications can't deadlock.
    let mut counts = BTreeMap::<_, i64>::new();
    for ended in &ended {
        *counts.entry((ended.application_id, ended.test)).or_default() += 1;
    }
    for ((application_id, test), count) in counts {
        let whose = EventStream { application_id, test };
        applications::add_withdrawn(tx, whose, count, now.day()).await?;
    }
    Ok(ended)
}

impl Messages<'_> {
    /// Returns whether an application may have more messages of a key withdrawn on this day.
    pub async fn has_withdrawals_left(&self, key: &ApiKey) -> Result<bool> {
        let Some(row) = self.key_row(key.reference()).await? else {
            return Ok(true);
        };
        let mut conn = self.store().read_at(self.shard_of(key.reference()).await?).await?;
        let whose = EventStream { application_id: row.id, test: key.kind() == KeyKind::Test };
        match check_withdrawals(self.0, &mut conn, whose, self.now()).await {
            Err(error) if error.refusal().is_some() => Ok(false),
            checked => checked.map(|()| true),
        }
    }
}

/// Checks that an application may have more messages withdrawn on this day. A withdrawn message
/// costs the application nothing, but we have to store it and release its price. The last request
/// of a day may exceed the limit, because a request is accepted or refused as a whole.
///
/// # Errors
/// `TooManyWithdrawn`.
pub(crate) async fn check_withdrawals(
    service: &Service,
    conn: Conn<'_>,
    whose: EventStream,
    now: Timestamp,
) -> Result<()> {
    let withdrawn = applications::withdrawn(conn, whose, now.day()).await?;
    if withdrawn < service.limits().withdrawn_messages_max {
        Ok(())
    } else {
        Err(Refusal::TooManyWithdrawn.into())
    }
}
