//! The clocks of the test keys of applications. One commit moves a clock. The waiting rows follow
//! in chunks, so that sends don't wait for them.

use domain::ids::Shard;
use domain::{ApplicationId, Reason, TestClock, Timestamp};
use serde::{Deserialize, Serialize};

use crate::admission::KeyAccess;
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use crate::delivery::expiry::least_queued;
use crate::wakeups::Wakeup;
use crate::{Messages, Service, run_detached_with_attempts};
use store::error::Result;
use store::gate::Priority;
use store::test_clocks::{self, Following};

/// How to move a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    /// Ahead, by a number of seconds.
    Advance(i64),
    /// Back to real time.
    Reset,
}

/// A clock after a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedClock {
    /// The time that it showed right after the move.
    pub now: Timestamp,
    /// How far it is ahead of real time, in seconds.
    pub offset_s: i64,
    /// Whether an earlier request with the same idempotency key moved it.
    #[serde(skip)]
    pub replayed: bool,
}

/// The outcome of an attempt to move a clock.
enum Attempt {
    Moved(MovedClock),
    Refused(Reason),
    /// The previous move isn't finished: some rows still have to follow it.
    Following,
}

impl Messages<'_> {
    /// Moves the clock of a test key. When this returns, all rows of the key that wait for a time
    /// have followed. After a fault of the database, a job lets them follow later.
    ///
    /// # Errors
    /// `IdempotencyMismatch`. The reason is `TestKeyRequired` for a live key, and
    /// `InvalidParameter` if the clock would be too far ahead.
    pub async fn move_clock(
        &self,
        access: &KeyAccess,
        change: ClockChange,
        key: Option<&IdempotencyKey>,
    ) -> Result<std::result::Result<MovedClock, Reason>> {
        let stream = access.stream();
        if !stream.test {
            return Ok(Err(Reason::TestKeyRequired));
        }
        let of = stream.application_id;
        let shard = self.shard_of(access.reference).await?;
        let once = key.map(|key| Once::new(stream, key, change.digest()));
        let moved = loop {
            self.follow_clock(shard, of).await?;
            let once = once.clone();
            let moving = run_detached_with_attempts(self, move |service| {
                let once = once.clone();
                async move { begin(&service, (shard, of), change, once).await }
            });
            match moving.await? {
                Attempt::Moved(moved) => break moved,
                Attempt::Refused(reason) => return Ok(Err(reason)),
                Attempt::Following => {}
            }
        };
        if let Err(error) = self.follow_clock(shard, of).await {
            tracing::error!(detail = ?error, "some rows of a test key will follow its clock later");
        }
        for wakeup in [Wakeup::ClockMoved, Wakeup::Queued, Wakeup::BatchAccepted] {
            self.inner.wake(wakeup);
        }
        Ok(Ok(moved))
    }

    /// Lets the remaining rows follow the clocks that were moved. Returns all clocks that don't
    /// show real time.
    pub async fn follow_clocks(&self) -> Result<Vec<(ApplicationId, TestClock)>> {
        let moved = self.in_each_shard(|shard| async move {
            let rows = test_clocks::moved(&mut self.store().read_at(shard).await?).await?;
            for row in rows.iter().filter(|row| row.following.is_some()) {
                self.follow_clock(shard, row.application_id).await?;
            }
            Ok(rows)
        });
        let moved = moved.await?.into_iter().flatten();
        let moved = moved.filter(|row| row.clock.is_moved());
        Ok(moved.map(|row| (row.application_id, row.clock)).collect())
    }

    /// Lets the rows of an application follow the newest move of its clock.
    async fn follow_clock(&self, shard: Shard, of: ApplicationId) -> Result<()> {
        let mut more = true;
        while more {
            let following = run_detached_with_attempts(self, move |service| async move {
                let mut tx = service.store().begin_at(shard, Priority::Bulk).await?;
                let mut row = test_clocks::lock(&mut tx, of).await?;
                let more = test_clocks::follow(&mut tx, &mut row, service.now()).await?;
                tx.commit().await?;
                Ok(more)
            });
            more = following.await?;
        }
        Ok(())
    }
}

async fn begin(
    service: &Service,
    (shard, of): (Shard, ApplicationId),
    change: ClockChange,
    once: Option<Once>,
) -> Result<Attempt> {
    let mut tx = service.store().begin_at(shard, Priority::Verb).await?;
    let mut row = test_clocks::lock(&mut tx, of).await?;
    let now = service.now();
    if let Some(once) = &once
        && let Some(answered) = once.answered::<MovedClock>(&mut tx, now).await?
    {
        return Ok(Attempt::Moved(MovedClock { replayed: true, ..answered }));
    }
    if row.following.is_some() {
        return Ok(Attempt::Following);
    }
    let before_ms = row.clock.offset_ms();
    match change {
        ClockChange::Reset => row.clock.reset(),
        ClockChange::Advance(seconds) => {
            if !row.clock.advance(now, seconds.saturating_mul(1000)) {
                return Ok(Attempt::Refused(Reason::InvalidParameter));
            }
        }
    }
    let offset_ms = row.clock.offset_ms();
    let by_ms = offset_ms - before_ms;
    let greatest = service.next_id(now);
    row.following = (by_ms != 0).then(|| Following::begin(by_ms, least_queued(now), greatest));
    test_clocks::store(&mut tx, &row).await?;
    let shown = now.plus_ms(offset_ms);
    let moved = MovedClock { now: shown, offset_s: offset_ms / 1000, replayed: false };
    if let Some(once) = once {
        once.keep(&mut tx, &moved, now).await?;
    }
    tx.commit().await?;
    Ok(Attempt::Moved(moved))
}

impl ClockChange {
    fn digest(self) -> Digest {
        let mut digest = Digest::new("test clock");
        match self {
            Self::Advance(seconds) => digest.text(&seconds.to_string()),
            Self::Reset => digest.text("reset"),
        }
        digest
    }
}
