//! Everything that an application has scheduled.

use domain::records::ScheduledCount;
use domain::{MessageStatus, Money};

use super::{Cancelled, StopAuthor, cancel_each, total};
use crate::admission::KeyAccess;
use crate::delivery::opted_out::check_withdrawals;
use crate::{MESSAGE_LIFETIME_MS, Messages, run_detached_with_attempts, zones};
use domain::schedule::DAYS_AHEAD_MAX;
use store::error::{Error, Fault, Refusal, Result};
use store::gate::Priority;
use store::{batches, hold, messages, tally};

/// The maximum number of messages that one transaction cancels.
const CHUNK: i64 = 500;

impl Messages<'_> {
    /// Returns how many messages wait for their time, how many of them are due today, and the next
    /// time.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn scheduled(&self, access: &KeyAccess) -> Result<ScheduledCount> {
        let (stream, now) = (access.stream(), self.now());
        let limits = self.0.applications().send_limits(access.reference).await?;
        let until = now.plus_ms(zones::ms_until_tomorrow(limits.zone.as_deref(), now));
        let mut conn = self.read_of(access.reference).await?;
        let whose = (stream.application_id, stream.test);
        let days = (now.day() - DAYS_AHEAD_MAX - 2, now.day());
        let counts = tally::totals(&mut conn, whose.0, whose.1, days).await?;
        let from = now.plus_ms(-MESSAGE_LIFETIME_MS);
        let next = messages::scheduled(&mut conn, stream, from, 1).await?;
        let today = messages::count_scheduled(&mut conn, stream, (from, until)).await?;
        let (of_batches, soon, next_batch) =
            batches::scheduled_rows(&mut conn, stream, until).await?;
        Ok(ScheduledCount {
            messages: counts.get(MessageStatus::Scheduled) + of_batches.rows,
            of_batches,
            today: today + soon,
            next: next.first().map(|(_, at)| *at).into_iter().chain(next_batch).min(),
        })
    }

    /// Cancels everything that waits for its time, some messages per transaction. If the daily number
    /// of withdrawn messages is reached meanwhile, returns what was cancelled.
    ///
    /// # Errors
    /// `NotCancellable` if nothing waits for its time. `TooManyWithdrawn`.
    pub async fn cancel_scheduled(
        &self,
        access: &KeyAccess,
        author: StopAuthor,
    ) -> Result<Cancelled> {
        let mut sum = Cancelled { messages: 0, released: Money::ZERO, replayed: false };
        let shard = self.shard_of(access.reference).await?;
        let stream = access.stream();
        let waiting = batches::scheduled(&mut self.store().read_at(shard).await?, stream).await?;
        for batch in waiting {
            match self.cancel_batch(*access, batch, author, None).await {
                Ok(cancelled) => sum.add(&cancelled)?,
                Err(error) if error.refusal() == Some(&Refusal::NotCancellable) => {}
                Err(error) if sum.messages > 0 && is_too_many(&error) => return Ok(sum),
                Err(error) => return Err(error),
            }
        }
        let reference = access.reference;
        loop {
            let step = run_detached_with_attempts(self, move |service| async move {
                let mut tx = service.store().begin_at(shard, Priority::Verb).await?;
                let now = service.now();
                check_withdrawals(&service, &mut tx, stream, now).await?;
                // Messages whose time came before a hold began may have been submitted.
                let held = if stream.test { None } else { hold::since(&mut tx).await? };
                let from = now.plus_ms(-MESSAGE_LIFETIME_MS);
                let from = held.map_or(from, |since| from.max(since.plus_ms(1)));
                let found = messages::scheduled(&mut tx, stream, from, CHUNK).await?;
                let ids: Vec<_> = found.into_iter().map(|(id, _)| id).collect();
                let ended = cancel_each(&service, &mut tx, &ids, author, now).await?;
                if !ended.is_empty() {
                    let subject = (reference, &*reference.to_string());
                    author.note(&mut tx, "application.cancel_scheduled", subject, now).await?;
                }
                tx.commit().await?;
                total(&ended)
            });
            let step = match step.await {
                Err(error) if sum.messages > 0 && is_too_many(&error) => return Ok(sum),
                step => step?,
            };
            if step.messages == 0 {
                break;
            }
            sum.add(&step)?;
        }
        if sum.messages == 0 { Err(Refusal::NotCancellable.into()) } else { Ok(sum) }
    }
}

fn is_too_many(error: &Error) -> bool {
    error.refusal() == Some(&Refusal::TooManyWithdrawn)
}

impl Cancelled {
    fn add(&mut self, other: &Self) -> Result<()> {
        self.messages += other.messages;
        let released = self.released.checked_add(other.released);
        self.released = released.ok_or(Error::Failed(Fault::MoneyOverflow))?;
        Ok(())
    }
}
