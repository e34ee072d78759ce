//! Recounts the ledger of a few applications each minute. An application whose ledger is broken is
//! suspended, so that the fault costs nobody more money.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use domain::ids::Shard;
use domain::{ApplicationId, Reference};

use crate::{Actor, Operations, Refusal};
use store::error::Result;
use store::recount::{self, Newest};

/// The number of applications that a run recounts, over all shards.
const APPLICATIONS: i64 = 100;
/// The number of transfers of each application that are recounted.
const TRANSFERS: i64 = 200;
/// The reason in the mail to the application's owner.
const REASON: &str = "A check of the application's balance failed. We are looking into it.";

/// The progress of this process's recount, and the broken ledgers that it found.
#[derive(Default)]
pub(crate) struct Recounts {
    /// The last application of each shard.
    reached: BTreeMap<Shard, ApplicationId>,
    broken: BTreeSet<Reference>,
}

/// The recounts of this process.
pub(crate) type LastRecounts = Mutex<Recounts>;

impl Operations<'_> {
    /// Recounts the newest transfers of the next applications. The balance after each transfer must
    /// be the previous balance plus the transfer. The newest one must be the application's balance.
    /// A charge must be the cost of its message. Suspends an application with a broken ledger, and
    /// logs what is wrong. After the last application, the first one is next.
    pub async fn recount(&self) -> Result<()> {
        self.in_each_shard(|shard| self.recount_shard(shard)).await.map(drop)
    }

    /// Returns the number of applications whose ledger was broken at the last recount by this
    /// process.
    pub fn broken_ledgers(&self) -> usize {
        self.recounts().broken.len()
    }

    async fn recount_shard(&self, shard: Shard) -> Result<()> {
        let shards = i64::try_from(self.shards().count()).unwrap_or(APPLICATIONS);
        let limit = (APPLICATIONS / shards).max(1);
        let reached = self.recounts().reached.get(&shard).copied().unwrap_or(ApplicationId(0));
        let next = recount::after(&mut self.store().read_at(shard).await?, reached, limit).await?;
        for (id, reference) in &next {
            match self.breach(shard, *id).await? {
                Some(breach) => self.stop_broken(*reference, &breach).await?,
                None => drop(self.recounts().broken.remove(reference)),
            }
        }
        let last = next.last().map_or(ApplicationId(0), |(id, _)| *id);
        self.recounts().reached.insert(shard, last);
        Ok(())
    }

    /// Says what is wrong with an application's ledger. Two snapshots have to agree, because old
    /// messages may be dropped during the first one.
    async fn breach(&self, shard: Shard, id: ApplicationId) -> Result<Option<String>> {
        let mut conn = self.store().read_at(shard).await?;
        let first = breach_of(&recount::newest(&mut conn, id, TRANSFERS).await?);
        if first.is_none() {
            return Ok(None);
        }
        Ok(breach_of(&recount::newest(&mut conn, id, TRANSFERS).await?))
    }

    async fn stop_broken(&self, reference: Reference, breach: &str) -> Result<()> {
        tracing::error!(
            %reference,
            breach,
            "the ledger of an application is broken, so the application is suspended. Run \
             heliograph check, and report what it prints"
        );
        self.recounts().broken.insert(reference);
        match self.applications().suspend(&Actor::System, reference, REASON).await {
            Err(error) if matches!(error.refusal(), Some(Refusal::StatusConflict { .. })) => Ok(()),
            done => done.map(drop),
        }
    }

    fn recounts(&self) -> std::sync::MutexGuard<'_, Recounts> {
        self.inner.recounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says what is wrong with a balance and the transfers before it.
fn breach_of(newest: &Newest) -> Option<String> {
    let mut wanted = newest.balance.micros();
    for transfer in &newest.transfers {
        let id = transfer.id;
        if transfer.balance_after != Some(wanted) {
            let stored =
                transfer.balance_after.map_or_else(|| "none".to_owned(), |at| at.to_string());
            return Some(format!(
                "the balance after transfer {id} is {wanted}, stored is {stored}"
            ));
        }
        if let Some(cost) = transfer.cost.filter(|cost| *cost != -transfer.change) {
            let charged = -transfer.change;
            return Some(format!("transfer {id} charged {charged}, its message costs {cost}"));
        }
        wanted -= transfer.change;
    }
    let is_whole = i64::try_from(newest.transfers.len()).is_ok_and(|count| count < TRANSFERS);
    (is_whole && wanted != 0).then(|| format!("the balance before the first transfer is {wanted}"))
}
