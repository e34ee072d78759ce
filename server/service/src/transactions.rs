//! Transactions, chores and detached work.

use std::pin::Pin;
use std::time::{Duration, Instant};

use domain::ids::Shard;
use domain::{Reference, Timestamp};
use store::error::{Fault, Result, Uncertain};
use store::gate::Priority;
use store::{Chore, Tx};
use tracing::Instrument as _;

use crate::Service;

/// Wraps the work of a verb or a chore: turns the closure's body into a boxed future.
macro_rules! work {
    (|$tx:pat_param, $now:pat_param| $body:expr) => {
        move |$tx, $now| Box::pin(async move { $body })
    };
}
pub(crate) use work;

impl Service {
    /// Runs a verb's work in its own transaction. Commits if the work succeeds and rolls back
    /// otherwise. The work receives the time at which it begins.
    pub(crate) async fn in_transaction<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Tx<'_>, Timestamp) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let service = self.clone();
        run_detached(async move {
            let mut tx = service.store().begin().await?;
            tx.asked_from(&service.client.address);
            let done = work(&mut tx, service.now()).await?;
            tx.commit().await?;
            Ok(done)
        })
        .await
    }

    /// Like [`Self::in_transaction`], in the shard of the application with this reference.
    pub(crate) async fn in_transaction_of<T: Send + 'static>(
        &self,
        reference: Reference,
        work: impl for<'t> FnOnce(&'t mut Tx<'_>, Timestamp) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let shard = self.shard_of(reference).await?;
        self.in_transaction(move |tx, now| {
            tx.at(shard);
            work(tx, now)
        })
        .await
    }

    /// Runs a chore in each shard.
    pub(crate) async fn do_chore<F>(&self, chore: Chore, priority: Priority, work: F) -> Result<()>
    where
        F: for<'t> Fn(&'t mut Tx<'_>, Timestamp) -> Work<'t, bool> + Copy + Send + 'static,
    {
        let doing = |shard| self.do_chore_at(shard, chore, priority, work);
        self.in_each_shard(doing).await.map(drop)
    }

    /// Runs a chore in a shard. Runs the work repeatedly, each time in its own transaction, until
    /// the work returns false. Does nothing while another process runs the chore.
    pub(crate) async fn do_chore_at<F>(
        &self,
        shard: Shard,
        chore: Chore,
        priority: Priority,
        work: F,
    ) -> Result<()>
    where
        F: for<'t> Fn(&'t mut Tx<'_>, Timestamp) -> Work<'t, bool> + Copy + Send + 'static,
    {
        let mut more = true;
        while more {
            let service = self.clone();
            more = run_detached(async move {
                let tx = service.store().begin_chore(chore, shard, priority).await?;
                let Some(mut tx) = tx else { return Ok(false) };
                tx.at(shard);
                let more = work(&mut tx, service.now()).await?;
                tx.commit().await?;
                Ok(more)
            })
            .await?;
        }
        Ok(())
    }
}

/// The future of a verb's or chore's work in a transaction.
pub(crate) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 't>>;

/// A verb's work, to run in its own transaction or in that of another verb.
pub(crate) type Verb<T> = Box<dyn for<'t> FnOnce(&'t mut Tx<'_>, Timestamp) -> Work<'t, T> + Send>;

/// Sleeps three times as long as the time since `begun`. Long jobs call this after each part, so
/// that sends find the database free most of the time.
pub(crate) async fn leave_time(begun: Instant) {
    tokio::time::sleep(begun.elapsed() * 3).await;
}

/// The maximum number of attempts at work whose transaction conflicts with another one. The
/// database rolls back one of two conflicting transactions.
pub(crate) const ATTEMPTS: u32 = 6;

/// Like [`run_detached`], for work whose transaction may conflict with another one on PostgreSQL.
/// Not all such work can take its locks in the same order. If two transactions wait for each other,
/// the database rolls one of them back, and its work is retried.
pub(crate) async fn run_detached_with_attempts<
    T: Send + 'static,
    W: Future<Output = Result<T>> + Send + 'static,
>(
    service: &Service,
    work: impl Fn(Service) -> W + Send + 'static,
) -> Result<T> {
    let service = service.clone();
    run_detached(async move {
        for _ in 1..ATTEMPTS {
            match work(service.clone()).await {
                Err(error) if error.is_conflict() => {
                    tracing::debug!(detail = ?error, "conflict with another transaction; trying \
                        again");
                }
                done => return done,
            }
        }
        work(service).await
    })
    .await
}

/// Runs work in its own task. If the client disconnects, the request's future is dropped, but the
/// task goes on until its transaction commits or rolls back.
pub(crate) async fn run_detached<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    run_detached_within(WORK_TIMEOUT, work).await
}

/// Like [`run_detached`], with another timeout.
pub(crate) async fn run_detached_within<T: Send + 'static>(
    time: Duration,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let timed = tokio::time::timeout(time, work).in_current_span();
    let done = tokio::spawn(timed).await.map_err(|failed| Uncertain::Task(failed.to_string()))?;
    done.unwrap_or(Err(Uncertain::TimedOut.into()))
}

/// Runs blocking work on a thread of Tokio's blocking pool.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|failed| Fault::Task(failed.to_string()).into())
}

/// The timeout for detached work. A database server that has lost power or network never answers.
/// After this time, the service gives up the work, and the outcome is uncertain. A commit (30
/// seconds) and the query for its outcome (40 seconds) fit into this time.
pub(crate) const WORK_TIMEOUT: Duration = Duration::from_mins(3);
/// The timeout for the statements of a commit group, before its commit.
pub(crate) const STATEMENTS_TIMEOUT: Duration = Duration::from_secs(40);
