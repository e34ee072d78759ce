//! Ends leases that have expired. The process that held such a lease has stopped or was too slow.

use domain::ids::Shard;
use domain::{MessageStatus, Submission, Timestamp, Transid};

use crate::delivery::expiry::least_queued;
use crate::delivery::opted_out::requeue;
use crate::delivery::outcomes::RESEND_AFTER_MS;
use crate::money::releases::settle;
use crate::wakeups::Wakeup;
use crate::{Delivery, run_detached_with_attempts};
use store::Tx;
use store::claims::{self, EndedLease};
use store::error::Result;
use store::gate::Priority;
use store::planted::is_planted;
use store::queue::{self, Requeued};
use store::segments::{self, NewSegment};
use store::submits::{self, Begun};
use store::tally::Counter;
use store::timeline::{self, NewEntry};

/// The number of claims that one transaction ends.
const CHUNK: i64 = 500;
/// The text in a message's timeline after its lease ended.
const DETAIL: &str =
    "the process that was submitting it stopped, or was too slow, before it stored an answer";

/// Which leases to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leases {
    /// All leases. For the start of a process, while no other process submits messages.
    All,
    /// The leases that have expired.
    Over,
    /// Expired leases in a restored database, whose messages may be older than any in a normal
    /// queue.
    OverInBackup,
}

impl Delivery<'_> {
    /// Ends leases and returns how many. It is unknown whether a carrier has the messages, so they
    /// wait for a receipt. They are submitted once more if their application has chosen that.
    /// Messages for the sandbox go back into the queue.
    pub async fn end_leases(&self, which: Leases) -> Result<u64> {
        if is_planted("leases-not-ended") {
            return Ok(0);
        }
        let ended = self.in_each_shard(|shard| self.end_leases_at(shard, which));
        Ok(ended.await?.into_iter().sum())
    }

    async fn end_leases_at(&self, shard: Shard, which: Leases) -> Result<u64> {
        let mut ended = 0;
        loop {
            let some = run_detached_with_attempts(self, move |service| async move {
                service.delivery().end_some(shard, which).await
            });
            let some = some.await?;
            ended += some.unsigned_abs();
            if some < CHUNK {
                return Ok(ended);
            }
        }
    }

    async fn end_some(&self, shard: Shard, which: Leases) -> Result<i64> {
        let now = self.now();
        let (ended_by, least) = match which {
            Leases::All => (Timestamp::from_unix_ms(i64::MAX), least_queued(now)),
            Leases::Over => (now, least_queued(now)),
            Leases::OverInBackup => (now, 0),
        };
        let mut tx = self.store().begin_at(shard, Priority::Results).await?;
        tx.tally.counter = Counter::Others;
        let ended_leases = claims::ended_leases(&mut tx, ended_by, least, CHUNK).await?;
        let count = i64::try_from(ended_leases.len()).unwrap_or(CHUNK);
        if ended_leases.is_empty() {
            return Ok(0);
        }
        let network = self.inner.router.network();
        let (again, lost): (Vec<_>, Vec<_>) =
            ended_leases.into_iter().partition(|row| network.is_sandbox(&row.carrier));
        let again: Vec<_> = again.iter().map(|row| requeued(row, row.submission, now)).collect();
        let ended = requeue(&mut tx, &again, now).await?;
        settle(&mut tx, &ended, now).await?;
        self.lose(&mut tx, &lost, now).await?;
        tx.commit().await?;
        self.inner.wake(Wakeup::Queued);
        Ok(count)
    }

    /// Ends the leases of messages that may have been submitted.
    async fn lose(&self, tx: &mut Tx<'_>, lost: &[EndedLease], now: Timestamp) -> Result<()> {
        let (mut again, mut leaving) = (Vec::new(), Vec::new());
        for row in lost {
            if row.submission.may_resend(row.lost_answer) || is_planted("always-sent-again") {
                let due_at = now.plus_ms(RESEND_AFTER_MS);
                again.push(requeued(row, Submission::Repeated, due_at));
            } else {
                leaving.push(row.id);
            }
        }
        queue::requeue(tx, &again).await?;
        queue::drop_all(tx, &leaving).await?;
        self.perhaps_taken(tx, lost, DETAIL, (now, now)).await
    }

    /// Stores that carriers may have these messages, and says in their timelines why the outcome is
    /// unknown. The times are those of the change and of the submit.
    pub(crate) async fn perhaps_taken(
        &self,
        tx: &mut Tx<'_>,
        lost: &[EndedLease],
        why: &str,
        (now, submitted_at): (Timestamp, Timestamp),
    ) -> Result<()> {
        let entry = |row: &EndedLease| NewEntry {
            id: row.id,
            application_id: row.application_id,
            status: MessageStatus::Unknown,
            detail: Some(why.to_owned()),
        };
        let entries: Vec<NewEntry> = lost.iter().map(entry).collect();
        timeline::insert(tx, &entries, now, || self.next_id(now)).await?;
        let network = self.inner.router.network();
        // Grouped by carrier, because each message is stored with its carrier.
        for rows in lost.chunk_by(|a, b| a.carrier == b.carrier) {
            let carrier = rows[0].carrier.as_str();
            let begun: Vec<_> =
                rows.iter().map(|row| Begun { id: row.id, unknown: true, taken: false }).collect();
            submits::begin(tx, &begun, carrier, now).await?;
            let parts = |row: &EndedLease| {
                if network.takes_whole(carrier) { 1 } else { row.segments }
            };
            let submitted = self.perhaps_submitted(tx, rows, parts).await?;
            segments::insert(tx, &submitted, carrier, submitted_at).await?;
        }
        Ok(())
    }

    /// Returns the segments that a claim was to submit: those that weren't submitted before, and in
    /// a second submission also those without a response.
    async fn perhaps_submitted(
        &self,
        tx: &mut Tx<'_>,
        rows: &[EndedLease],
        parts: impl Fn(&EndedLease) -> u16,
    ) -> Result<Vec<NewSegment>> {
        let ids: Vec<Transid> = rows.iter().map(|row| row.id).collect();
        let stored = segments::of(tx, &ids).await?;
        let mut found = Vec::new();
        for row in rows {
            let of_this = || stored.iter().filter(|segment| segment.message_id == row.id);
            let total = of_this().next().map_or_else(|| parts(row), |known| known.segments);
            for number in 1..=total {
                let known = of_this().find(|segment| segment.segment == number);
                let sent = known.is_none_or(|segment| {
                    let submits = segment.submits;
                    row.submission.repeats_segment(segment.is_taken(), submits)
                });
                if sent {
                    found.push(NewSegment {
                        message_id: row.id,
                        segment: number,
                        segments: total,
                        application_id: row.application_id,
                        carrier_message_id: None,
                        status: MessageStatus::Unknown,
                    });
                }
            }
        }
        Ok(found)
    }
}

fn requeued(row: &EndedLease, submission: Submission, due_at: Timestamp) -> Requeued {
    Requeued {
        id: row.id,
        due_at: due_at.unix_ms(),
        attempts: 0,
        submission,
        carrier: None,
        refused_by: String::new(),
    }
}
