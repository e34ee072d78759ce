//! Expiry: the end of a message's 48 hours, or of its validity.
//!
//! While messages are held after a restore, messages that were accepted before the hold don't
//! expire: a carrier may have them, and a final status could never be corrected.

use domain::ids::Shard;
use domain::schedule::{DAYS_AHEAD_MAX, is_by_validity};
use domain::timestamp::DAY_MS;
use domain::{DeliveryError, MessageStatus, Timestamp, Transid, ids};

use crate::money::releases::settle;
use crate::{Delivery, MESSAGE_LIFETIME_MS, run_detached, run_detached_with_attempts};
use store::error::Result;
use store::gate::Priority;
use store::messages::{self, Ending, Overdue, OverdueOf};
use store::query::Conn;
use store::test_clocks::{self, ClockRow};
use store::{Chore, Tx, batches, hold, installation, queue};

/// The number of messages that one transaction makes final.
const CHUNK: i64 = 500;

impl Delivery<'_> {
    /// Makes every expired message final, and returns how many. Releases the charge of messages
    /// that never reached a carrier.
    pub async fn expire(&self) -> Result<u64> {
        let begun = self.now();
        let of_tests = self.expire_tests().await?;
        let held = hold::since(&mut self.store().read().await?).await?;
        let runs = self.in_each_shard(|shard| self.expire_at(shard, held));
        let runs = runs.await?;
        let expired = of_tests + runs.iter().map(|run| run.expired).sum::<u64>();
        let lows: Vec<i64> = runs.iter().filter_map(|run| run.low).collect();
        // The held messages have yet to expire, so the mark doesn't move until the hold ends. All
        // messages with IDs below the mark are final, except those that were scheduled for later.
        if held.is_none()
            && lows.len() == self.shards().count()
            && let Some(low) = lows.into_iter().min()
        {
            // The mark never goes beyond the existing messages, because the clock may be fast now
            // and be corrected later.
            let greatest = runs.iter().map(|run| run.greatest).max();
            let low = low.min(greatest.unwrap_or(0) + 1);
            let service = self.0.clone();
            run_detached(async move { service.delivery().set_swept(low, begun).await }).await?;
        }
        Ok(expired)
    }

    /// Makes the messages final that have expired by the clocks of test keys, and returns how
    /// many.
    pub async fn expire_tests(&self) -> Result<u64> {
        let expired = self.in_each_shard(|shard| async move {
            let clocks = test_clocks::moved(&mut self.store().read_at(shard).await?).await?;
            let mut expired = 0;
            for row in clocks.into_iter().filter(|row| row.clock.is_moved()) {
                expired += self.expire_by(shard, &row).await?;
            }
            Ok(expired)
        });
        Ok(expired.await?.into_iter().sum())
    }

    /// Makes the messages final that have expired by a clock but not by real time.
    async fn expire_by(&self, shard: Shard, row: &ClockRow) -> Result<u64> {
        let (now, of) = (self.now(), row.application_id);
        let since = row.clock.has_run_since(now, MESSAGE_LIFETIME_MS).plus_ms(1);
        let (from, below) = (first_unexpired(now), ids::compose_id(since.unix_ms(), 0));
        // A long move may have passed the time of a scheduled message. Its 48 hours then began when
        // it was claimed.
        let scheduled = OverdueOf::TestTimes(of, now.plus_ms(-MESSAGE_LIFETIME_MS), since);
        let mut expired = 0;
        for which in [OverdueOf::TestIds(of, from, below), scheduled] {
            loop {
                let step = run_detached_with_attempts(self, move |service| async move {
                    let mut tx = service.store().begin_at(shard, Priority::Bulk).await?;
                    let ended = end_overdue(&mut tx, which, None, service.now()).await?;
                    tx.commit().await?;
                    Ok(ended)
                });
                let step = step.await?;
                expired += step.expired;
                if step.found < CHUNK || !step.is_changed {
                    break;
                }
            }
        }
        Ok(expired)
    }

    async fn set_swept(&self, low: i64, at: Timestamp) -> Result<()> {
        let mut tx = self.store().begin_as(Priority::Bulk).await?;
        installation::set_swept(&mut tx, low, at).await?;
        tx.commit().await
    }

    async fn expire_at(&self, shard: Shard, held: Option<Timestamp>) -> Result<Run> {
        let mut run = Run { held, ..Run::default() };
        while !run.done {
            run = run_detached_with_attempts(self, move |service| async move {
                service.delivery().expire_chunk(shard, run).await
            })
            .await?;
        }
        Ok(run)
    }

    async fn expire_chunk(&self, shard: Shard, mut run: Run) -> Result<Run> {
        let now = self.now();
        let tx = self.store().begin_chore(Chore::Expire, shard, Priority::Bulk).await?;
        let Some(mut tx) = tx else {
            run.done = true;
            return Ok(run);
        };
        tx.at(shard);
        let low = match run.begun_at {
            Some(low) => low,
            None => installation::swept(&mut tx).await?.low,
        };
        let from = *run.begun_at.insert(low);
        let below = first_unexpired(now);
        if run.unexpanded.is_none() {
            // Read this before the overdue messages: rows that become messages meanwhile must not
            // count as final.
            let least = batches::least_unexpanded(&mut tx).await?;
            run.unexpanded = Some(least.unwrap_or(i64::MAX));
        }
        let which = match run.stage {
            Stage::Ids => OverdueOf::Ids(run.from.unwrap_or(from), below),
            Stage::Times => OverdueOf::Times(time_of(from), time_of(below)),
            Stage::Queue => OverdueOf::Queue(now, least_queued(now)),
        };
        let ended = end_overdue(&mut tx, which, run.held, now).await?;
        run.from = ended.last.map(|id| id.0 + 1);
        run.first_leased = run.first_leased.into_iter().chain(ended.first_leased).min();
        // Except in the stage by ID, a query finds the same chunk again if nothing was changed.
        if ended.found < CHUNK || run.stage != Stage::Ids && !ended.is_changed {
            run.from = None;
            match run.stage {
                Stage::Ids => run.stage = Stage::Times,
                Stage::Times => run.stage = Stage::Queue,
                Stage::Queue => run.done = true,
            }
        }
        if run.done {
            run.greatest = messages::greatest(&mut tx).await?;
            // Rows of an upload become messages with IDs from the time of its acceptance.
            let unexpanded = run.unexpanded.unwrap_or(below);
            let low = run.first_leased.unwrap_or(below);
            run.low = Some(low.min(below).min(unexpanded));
        }
        tx.commit().await?;
        run.expired += ended.expired;
        Ok(run)
    }
}

/// The result of a transaction that ended overdue messages.
struct Ended {
    /// The number of overdue messages that it found.
    found: i64,
    /// The last of these messages.
    last: Option<Transid>,
    /// The smallest ID of those that are leased. A scheduled message counts with its time as an ID.
    first_leased: Option<i64>,
    /// Whether the next transaction finds other messages.
    is_changed: bool,
    expired: u64,
}

/// Makes overdue messages final, or only takes them out of the queue. `held` is the time since
/// which messages are held.
async fn end_overdue(
    tx: &mut Tx<'_>,
    which: OverdueOf,
    held: Option<Timestamp>,
    now: Timestamp,
) -> Result<Ended> {
    let overdue = messages::overdue(tx, which, held, CHUNK).await?;
    let found = i64::try_from(overdue.len()).unwrap_or(CHUNK);
    let last = overdue.last().map(|message| message.id);
    // A message may have been claimed meanwhile, so the deciding rows are read again under the
    // lock.
    let ids: Vec<Transid> = overdue.iter().map(|message| message.id).collect();
    let overdue = if messages::lock(tx, &ids).await? {
        let mut locked = messages::overdue(tx, which, held, CHUNK).await?;
        locked.retain(|message| ids.contains(&message.id));
        locked
    } else {
        overdue
    };
    let (mut gone, mut endings) = (Vec::new(), Vec::with_capacity(overdue.len()));
    let mut first_leased: Option<i64> = None;
    for message in overdue {
        // A running submit is decided within its lease. A later sweep checks the message again.
        if message.leased {
            let due = message.send_at.map_or(message.id.0, |at| ids::compose_id(at.unix_ms(), 0));
            first_leased = Some(first_leased.map_or(due, |first| first.min(due)));
            continue;
        }
        gone.push(message.id);
        // The end of its validity only takes an `unknown` message out of the queue. A receipt may
        // still settle the message.
        if !matches!(which, OverdueOf::Queue(..)) || message.status != MessageStatus::Unknown {
            endings.push(ending(&message));
        }
    }
    let ended = messages::finish(tx, &endings, now).await?;
    queue::drop_all(tx, &gone).await?;
    settle(tx, &ended, now).await?;
    let expired = u64::try_from(ended.len()).unwrap_or(u64::MAX);
    Ok(Ended { found, last, first_leased, is_changed: !gone.is_empty(), expired })
}

/// Returns the smallest ID of a message that hasn't expired.
pub(crate) fn first_unexpired(now: Timestamp) -> i64 {
    ids::compose_id(now.plus_ms(-MESSAGE_LIFETIME_MS).unix_ms(), 0)
}

/// Returns whether the rows of an upload may no longer be submitted. Without an expiry of their
/// own, rows expire 48 hours after the time in the first row's ID.
pub(crate) fn have_expired(expires_at: Option<Timestamp>, first_id: i64, now: Timestamp) -> bool {
    expires_at.map_or(first_id < first_unexpired(now), |at| at <= now)
}

/// Returns the smallest ID of a message that can be in the queue. A sweep takes a message out of
/// the queue within a week after its expiry.
pub(crate) fn least_queued(now: Timestamp) -> i64 {
    first_unexpired(now.plus_ms(-(DAYS_AHEAD_MAX + 7) * DAY_MS))
}

/// Returns the ID below which every message of a shard is final. The sweep's mark alone isn't
/// enough, because it ignores messages that were scheduled for later.
pub(crate) async fn final_below(conn: Conn<'_>, now: Timestamp) -> Result<i64> {
    let low = installation::swept(conn).await?.low;
    // Messages that wait for a later time are all in the queue, and there may be a million of them.
    // The day allows for a clock that was set back.
    let until = now.plus_ms(DAY_MS);
    let due = messages::least_scheduled(conn, time_of(low), until).await?;
    let queued = queue::least(conn).await?;
    Ok([due, queued].into_iter().flatten().fold(low, i64::min))
}

const fn time_of(id: i64) -> Timestamp {
    Timestamp::from_unix_ms(ids::id_unix_ms(id))
}

/// The stages of a sweep, in order. Each checks other messages.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Messages that were due at once, 48 hours after their acceptance.
    #[default]
    Ids,
    /// Scheduled messages, 48 hours after their time.
    Times,
    /// Messages in the queue whose validity has ended.
    Queue,
}

/// The progress of a sweep.
#[derive(Clone, Copy, Default)]
struct Run {
    /// Since when messages are held. `None` if they aren't.
    held: Option<Timestamp>,
    expired: u64,
    stage: Stage,
    /// The mark at the beginning of the sweep.
    begun_at: Option<i64>,
    /// Where the next chunk by ID begins.
    from: Option<i64>,
    /// The smallest ID that a row of an upload could still get when the sweep began.
    unexpanded: Option<i64>,
    /// The smallest ID of an overdue message that is leased. A scheduled message counts with its
    /// time as an ID.
    first_leased: Option<i64>,
    /// At the end of a sweep, every message of the shard with an ID below this is final. So is
    /// every scheduled message whose time is before the time in this ID.
    low: Option<i64>,
    /// The greatest message ID of the shard, at the end of a sweep.
    greatest: i64,
    done: bool,
}

/// Returns the final state of an expired message.
fn ending(message: &Overdue) -> Ending {
    // The message can't arrive complete, whatever happened to the segments without a receipt.
    if let Some(error) = &message.failed {
        return Ending {
            id: message.id,
            status: MessageStatus::Failed,
            error: Some(error.clone()),
            release: false,
            taken: true,
        };
    }
    let base = message.send_at.unwrap_or(time_of(message.id.0));
    // Only a test clock can move the expiry before the time that it counts from.
    let expires_at = message.expires_at.filter(|at| *at >= base);
    let (error, release) = match message.status {
        MessageStatus::Submitted => (DeliveryError::NoReceipt, false),
        MessageStatus::Unknown => (DeliveryError::NoAnswer, false),
        // A carrier has some of the message's segments, and the others can't follow any more.
        _ if message.taken => (DeliveryError::ExpiredInPart, false),
        _ if is_by_validity(expires_at, base) => (DeliveryError::Validity, true),
        _ => (DeliveryError::ExpiredInQueue, true),
    };
    Ending {
        id: message.id,
        status: MessageStatus::Expired,
        error: Some(error.as_str().to_owned()),
        release,
        taken: false,
    }
}
