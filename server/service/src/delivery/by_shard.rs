//! Results and receipts of carriers, which are stored in the shards of their messages. A shard
//! whose database can't be reached delays its own messages alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::Transid;
use domain::ids::Shard;
use futures_util::future::join_all;
use tokio::task::JoinHandle;

use crate::Service;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::receipts::{CarrierReceipt, Matching, Receipt};
use crate::delivery::{Claimed, Lease, Submitted};
use crate::error::{Fault, Result};

/// How long to wait for a shard before going on with the others.
const WAIT: Duration = Duration::from_secs(5);
/// How long to wait before a shard that couldn't store something is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How many names of segments are remembered at least.
const NAMES: usize = 131_072;

/// The shards of segments, by carrier and the carrier's name for the segment: a receipt has nothing
/// else to find a shard by. The newest names are in the first of the two generations.
#[derive(Default)]
pub(crate) struct SegmentShards(Mutex<[HashMap<(String, String), Shard>; 2]>);

impl SegmentShards {
    fn learn(&self, carrier: &str, results: &[Submitted]) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations[0].len() >= NAMES {
            generations.swap(0, 1);
            generations[0].clear();
        }
        for result in results {
            for (_, outcome) in &result.outcomes {
                if let SubmitOutcome::Accepted {
                    carrier_message_id: Some(name),
                } = outcome
                {
                    let key = (carrier.to_owned(), name.clone());
                    generations[0].insert(key, result.lease.shard);
                }
            }
        }
    }

    fn of(&self, carrier: &str, receipt: &CarrierReceipt) -> Option<Shard> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receipt.names.iter().find_map(|name| {
            let key = (carrier.to_owned(), name.clone());
            generations
                .iter()
                .find_map(|names| names.get(&key).copied())
        })
    }
}

fn by_shard<T>(values: Vec<T>, shard_of: impl Fn(&T) -> Shard) -> BTreeMap<Shard, Vec<T>> {
    let mut shards: BTreeMap<Shard, Vec<T>> = BTreeMap::new();
    for value in values {
        shards.entry(shard_of(&value)).or_default().push(value);
    }
    shards
}

impl Service {
    /// Claims due messages of a carrier in the first shard that has some. The claim is durable
    /// before the messages are returned.
    pub async fn claim(&self, carrier: &str, limit: i64) -> Result<(Lease, Vec<Claimed>)> {
        let limit = usize::try_from(limit).unwrap_or(0);
        let commits = &self.inner.group_commit;
        let mut claimed = commits.inbox(Shard::FIRST).claim(carrier, limit).await?;
        for shard in self.shards().skip(1) {
            if claimed.1.is_empty() {
                claimed = commits.inbox(shard).claim(carrier, limit).await?;
            }
        }
        Ok(claimed)
    }

    /// Stores results in the shards of their messages. Where there are several shards, one that
    /// can't be reached gets its results later, as long as this process lives; after that the
    /// leases of the messages end, as after a crash. Its messages count as stored meanwhile.
    pub(super) async fn record_at_shards(
        &self,
        carrier: &str,
        results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        if let Some(shard) = self.only_shard() {
            let inbox = self.inner.group_commit.inbox(shard);
            return inbox.record_results(carrier, results).await;
        }
        self.inner.segment_shards.learn(carrier, &results);
        let shards = by_shard(results, |result| result.lease.shard);
        let recording = shards.into_iter().map(|(shard, results)| {
            let taken = results.iter().filter(|result| result.is_taken());
            let taken: Vec<Transid> = taken.map(|result| result.id).collect();
            let (service, carrier) = (self.clone(), carrier.to_owned());
            let storing = tokio::spawn(async move {
                let inbox = service.inner.group_commit.inbox(shard);
                let store = || inbox.record_results(&carrier, results.clone());
                service.store_at(shard, store).await
            });
            async move { wait_for(storing).await.unwrap_or(taken) }
        });
        Ok(join_all(recording).await.concat())
    }

    /// Stores a sandbox's receipts in the shards of their messages, like results.
    pub(super) async fn end_at_shards(&self, receipts: Vec<Receipt>) -> Result<()> {
        if let Some(shard) = self.only_shard() {
            return self
                .inner
                .group_commit
                .inbox(shard)
                .record_receipts(receipts)
                .await;
        }
        let mut shards: BTreeMap<Shard, Vec<Receipt>> = BTreeMap::new();
        for receipt in receipts {
            let shard = self.shard_of_application(receipt.application_id).await?;
            shards.entry(shard).or_default().push(receipt);
        }
        let recording = shards.into_iter().map(|(shard, receipts)| {
            let service = self.clone();
            wait_for(tokio::spawn(async move {
                let inbox = service.inner.group_commit.inbox(shard);
                let store = || inbox.record_receipts(receipts.clone());
                service.store_at(shard, store).await
            }))
        });
        join_all(recording).await;
        Ok(())
    }

    /// Tries to store something in a shard until it is stored; `None` if the service closes before.
    async fn store_at<T, F: Future<Output = Result<T>>>(
        &self,
        shard: Shard,
        store: impl Fn() -> F,
    ) -> Option<T> {
        loop {
            match store().await {
                Ok(stored) => return Some(stored),
                Err(error) => {
                    tracing::warn!(shard = shard.0, detail = ?error, "a shard is tried again");
                }
            }
            if self.store().is_closed() {
                return None;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stores a carrier's receipts in the shards of their messages: where that isn't known, each
    /// shard is asked by the carrier's name first, then all shards together by what else the
    /// receipt says. What no shard knows, or couldn't be asked about, is kept as unmatched.
    pub(super) async fn match_at_shards(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        if let Some(shard) = self.only_shard() {
            let inbox = self.inner.group_commit.inbox(shard);
            let how = Matching::AnythingOrKeep;
            let matching = inbox.record_carrier_receipts(carrier, receipts, how);
            return matching.await.map(drop);
        }
        let known = |receipt: &CarrierReceipt| {
            let found = self.inner.segment_shards.of(carrier, receipt);
            found.unwrap_or(Shard::FIRST)
        };
        let shards = by_shard(receipts, known);
        let recording = shards.into_iter().map(|(first, receipts)| async move {
            let others = self.shards().filter(|shard| *shard != first);
            let order: Vec<Shard> = std::iter::once(first).chain(others).collect();
            self.match_in_order(carrier, &order, receipts).await
        });
        join_all(recording).await.into_iter().collect()
    }

    async fn match_in_order(
        &self,
        carrier: &str,
        order: &[Shard],
        mut receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        let mut failed = None;
        for shard in order {
            match self
                .match_at(carrier, *shard, receipts.clone(), Matching::Names)
                .await
            {
                Ok(unmatched) => receipts = unmatched,
                Err(error) => failed = Some(error),
            }
            if receipts.is_empty() {
                return Ok(());
            }
        }
        match self.match_what_fits(carrier, receipts.clone()).await {
            Ok(unmatched) => receipts = unmatched,
            Err(error) => failed = Some(error),
        }
        if failed.is_some() {
            // The shard that couldn't be asked may have the message. A receipt with a name can be
            // unmatched meanwhile; any other one has to be sent again.
            let (named, others) = receipts.into_iter().partition(|r| !r.names.is_empty());
            receipts = named;
            failed = failed.filter(|_| !Vec::<CarrierReceipt>::is_empty(&others));
        }
        self.keep(carrier, order, receipts).await?;
        failed.map_or(Ok(()), Err)
    }

    /// Matches receipts by what they say besides the carrier's names, each in the one shard where a
    /// message fits; returns the others.
    async fn match_what_fits(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
    ) -> Result<Vec<CarrierReceipt>> {
        let fitting = self.shards_that_fit(carrier, &receipts).await?;
        let mut unmatched = Vec::new();
        let mut shards: BTreeMap<Shard, Vec<CarrierReceipt>> = BTreeMap::new();
        for (receipt, shard) in receipts.into_iter().zip(fitting) {
            match shard {
                Some(shard) => shards.entry(shard).or_default().push(receipt),
                None => unmatched.push(receipt),
            }
        }
        for (shard, receipts) in shards {
            let matching = self.match_at(carrier, shard, receipts, Matching::Anything);
            unmatched.extend(matching.await?);
        }
        Ok(unmatched)
    }

    /// Keeps unmatched receipts by the commit group of the first shard that can be reached.
    async fn keep(
        &self,
        carrier: &str,
        order: &[Shard],
        receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        if receipts.is_empty() {
            return Ok(());
        }
        let mut failed = Fault::Stopped.into();
        for shard in order {
            match self
                .match_at(carrier, *shard, receipts.clone(), Matching::NamesOrKeep)
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Matches receipts in a shard; returns those that it knows nothing of.
    async fn match_at(
        &self,
        carrier: &str,
        shard: Shard,
        receipts: Vec<CarrierReceipt>,
        matching: Matching,
    ) -> Result<Vec<CarrierReceipt>> {
        let inbox = self.inner.group_commit.inbox(shard);
        let asking = inbox.record_carrier_receipts(carrier, receipts, matching);
        let asked = tokio::time::timeout(WAIT, asking).await;
        asked.unwrap_or_else(|_| Err(Fault::TimedOut("asking a shard for receipts").into()))
    }
}

/// What a task stored; `None` if the task takes longer than [`WAIT`], and goes on by itself.
async fn wait_for<T>(storing: JoinHandle<Option<T>>) -> Option<T> {
    tokio::time::timeout(WAIT, storing).await.ok()?.ok()?
}
