//! Stores results and receipts of carriers in the shards of their messages. A shard whose database
//! is unreachable delays only its own messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::Transid;
use domain::ids::Shard;
use futures_util::future::join_all;
use tokio::task::JoinHandle;

use crate::Delivery;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::receipts::{CarrierReceipt, Matching, Receipt, ReceiptMatch};
use crate::delivery::{Claimed, Lease, Submitted};
use store::error::{Fault, Result};

/// How long to wait for a shard before going on with the others.
const WAIT: Duration = Duration::from_secs(5);
/// The pause before a failed store to a shard is retried.
const PAUSE: Duration = Duration::from_secs(1);
/// The size of a generation. At least this many carrier message IDs are kept.
const IDS_KEPT: usize = 131_072;

/// The shards of segments, by carrier and carrier message ID. A receipt has nothing else that
/// identifies its shard. The first of the two generations has the newest IDs.
#[derive(Default)]
pub(crate) struct SegmentShards(Mutex<[HashMap<(String, String), Shard>; 2]>);

impl SegmentShards {
    fn learn(&self, carrier: &str, results: &[Submitted]) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations[0].len() >= IDS_KEPT {
            generations.swap(0, 1);
            generations[0].clear();
        }
        for result in results {
            for (_, outcome) in &result.outcomes {
                if let SubmitOutcome::Accepted { carrier_message_id: Some(id) } = outcome {
                    let key = (carrier.to_owned(), id.clone());
                    generations[0].insert(key, result.lease.shard);
                }
            }
        }
    }

    fn of(&self, carrier: &str, receipt: &CarrierReceipt) -> Option<Shard> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receipt.message_ids.iter().find_map(|id| {
            let key = (carrier.to_owned(), id.clone());
            generations.iter().find_map(|ids| ids.get(&key).copied())
        })
    }
}

/// A receipt with its index among the receipts that came with it.
type Numbered = (usize, CarrierReceipt);

pub(super) fn by_shard<T>(
    values: Vec<T>,
    shard_of: impl Fn(&T) -> Shard,
) -> BTreeMap<Shard, Vec<T>> {
    let mut shards: BTreeMap<Shard, Vec<T>> = BTreeMap::new();
    for value in values {
        shards.entry(shard_of(&value)).or_default().push(value);
    }
    shards
}

impl Delivery<'_> {
    /// Claims due messages of a carrier in the first shard that has some. The claim is durable
    /// before this returns.
    pub async fn claim(&self, carrier: &str, limit: i64) -> Result<(Lease, Vec<Claimed>)> {
        let limit = usize::try_from(limit).unwrap_or(0);
        let commits = &self.inner.group_commit;
        let mut claimed = commits.inbox(Shard::FIRST).claim(carrier, limit).await?;
        for shard in self.shards().skip(1) {
            if claimed.1.is_empty() {
                claimed = commits.inbox(shard).claim(carrier, limit).await?;
            }
        }
        if claimed.1.iter().any(|message| message.code.is_some()) {
            let secret = self.accounts().code_secret().await?;
            claimed.1.iter_mut().for_each(|message| message.reveal_code(&secret));
        }
        Ok(claimed)
    }

    /// Stores results in the shards of their messages. If there are several shards and one is
    /// unreachable, a task retries as long as this process lives. The messages count as stored in
    /// the meantime. If the process ends first, the leases of the messages end as after a crash.
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
            let (service, carrier) = (self.0.clone(), carrier.to_owned());
            let storing = tokio::spawn(async move {
                let inbox = service.inner.group_commit.inbox(shard);
                let store = || inbox.record_results(&carrier, results.clone());
                service.delivery().store_at(shard, store).await
            });
            async move { wait_for(storing).await.unwrap_or(taken) }
        });
        Ok(join_all(recording).await.concat())
    }

    /// Stores a sandbox's receipts in the shards of their messages, like results.
    pub(super) async fn end_at_shards(&self, receipts: Vec<Receipt>) -> Result<()> {
        if let Some(shard) = self.only_shard() {
            return self.inner.group_commit.inbox(shard).record_receipts(receipts).await;
        }
        let mut shards: BTreeMap<Shard, Vec<Receipt>> = BTreeMap::new();
        for receipt in receipts {
            let shard = self.shard_of_application(receipt.application_id).await?;
            shards.entry(shard).or_default().push(receipt);
        }
        let recording = shards.into_iter().map(|(shard, receipts)| {
            let service = self.0.clone();
            wait_for(tokio::spawn(async move {
                let inbox = service.inner.group_commit.inbox(shard);
                let store = || inbox.record_receipts(receipts.clone());
                service.delivery().store_at(shard, store).await
            }))
        });
        join_all(recording).await;
        Ok(())
    }

    /// Calls `store`, which stores something in a shard, until it succeeds. Returns `None` if the
    /// service closes first.
    async fn store_at<T, F: Future<Output = Result<T>>>(
        &self,
        shard: Shard,
        store: impl Fn() -> F,
    ) -> Option<T> {
        loop {
            match store().await {
                Ok(stored) => return Some(stored),
                Err(error) => {
                    tracing::warn!(shard = shard.0, detail = ?error, "retrying a store to a shard");
                }
            }
            if self.store().is_closed() {
                return None;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stores a carrier's receipts in the shards of their messages. If the shard of a receipt is
    /// unknown, searches shard by shard for its carrier message ID, then all shards together for a
    /// message that fits its other fields. Keeps a receipt as unmatched if no shard has its
    /// message. Returns what each receipt matched.
    pub(super) async fn match_at_shards(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
    ) -> Result<Vec<ReceiptMatch>> {
        if let Some(shard) = self.only_shard() {
            let inbox = self.inner.group_commit.inbox(shard);
            let how = Matching::AnythingOrKeep;
            return inbox.record_carrier_receipts(carrier, receipts, how).await;
        }
        let mut matches = vec![ReceiptMatch::Unmatched; receipts.len()];
        let known = |(_, receipt): &Numbered| {
            let found = self.inner.segment_shards.of(carrier, receipt);
            found.unwrap_or(Shard::FIRST)
        };
        let shards = by_shard(receipts.into_iter().enumerate().collect(), known);
        let recording = shards.into_iter().map(|(first, receipts)| async move {
            let others = self.shards().filter(|shard| *shard != first);
            let order: Vec<Shard> = std::iter::once(first).chain(others).collect();
            self.match_in_order(carrier, &order, receipts).await
        });
        for matched in join_all(recording).await {
            for (index, found) in matched? {
                matches[index] = found;
            }
        }
        Ok(matches)
    }

    async fn match_in_order(
        &self,
        carrier: &str,
        order: &[Shard],
        mut receipts: Vec<Numbered>,
    ) -> Result<Vec<(usize, ReceiptMatch)>> {
        let (mut failed, mut matched) = (None, Vec::new());
        for shard in order {
            let matching = self.match_at(carrier, *shard, &mut receipts, Matching::ById);
            match matching.await {
                Ok(found) => matched.extend(found),
                Err(error) => failed = Some(error),
            }
            if receipts.is_empty() {
                return Ok(matched);
            }
        }
        match self.match_what_fits(carrier, &mut receipts).await {
            Ok(found) => matched.extend(found),
            Err(error) => failed = Some(error),
        }
        if failed.is_some() {
            // The shard that didn't answer may have the message. A receipt with a carrier message
            // ID is kept as unmatched meanwhile. If any other receipt is left, the error makes the
            // carrier send it again.
            let count = receipts.len();
            receipts.retain(|(_, receipt)| !receipt.message_ids.is_empty());
            failed = failed.filter(|_| receipts.len() < count);
        }
        self.keep(carrier, order, receipts).await?;
        failed.map_or(Ok(matched), Err)
    }

    /// Matches receipts by the fields other than the carrier message ID. Passes each receipt to the
    /// shard of the only message that fits. Removes the receipts that match, and returns what they
    /// matched.
    async fn match_what_fits(
        &self,
        carrier: &str,
        receipts: &mut Vec<Numbered>,
    ) -> Result<Vec<(usize, ReceiptMatch)>> {
        let alone: Vec<CarrierReceipt> =
            receipts.iter().map(|(_, receipt)| receipt.clone()).collect();
        let fitting = self.shards_that_fit(carrier, &alone).await?;
        let mut shards: BTreeMap<Option<Shard>, Vec<Numbered>> = BTreeMap::new();
        for (receipt, shard) in receipts.drain(..).zip(fitting) {
            shards.entry(shard).or_default().push(receipt);
        }
        let (mut matched, mut failed) = (Vec::new(), None);
        for (shard, mut of_shard) in shards {
            if let Some(shard) = shard {
                let matching = self.match_at(carrier, shard, &mut of_shard, Matching::Anything);
                match matching.await {
                    Ok(found) => matched.extend(found),
                    Err(error) => failed = Some(error),
                }
            }
            receipts.extend(of_shard);
        }
        failed.map_or(Ok(matched), Err)
    }

    /// Keeps receipts as unmatched, through the first shard that can be reached.
    async fn keep(
        &self,
        carrier: &str,
        order: &[Shard],
        mut receipts: Vec<Numbered>,
    ) -> Result<()> {
        if receipts.is_empty() {
            return Ok(());
        }
        let mut failed = Fault::Stopped.into();
        for shard in order {
            let keeping = self.match_at(carrier, *shard, &mut receipts, Matching::ByIdOrKeep);
            match keeping.await {
                Ok(_) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Matches receipts in a shard. Removes those that match, and returns what they matched.
    async fn match_at(
        &self,
        carrier: &str,
        shard: Shard,
        receipts: &mut Vec<Numbered>,
        matching: Matching,
    ) -> Result<Vec<(usize, ReceiptMatch)>> {
        let inbox = self.inner.group_commit.inbox(shard);
        let alone = receipts.iter().map(|(_, receipt)| receipt.clone()).collect();
        let matching = inbox.record_carrier_receipts(carrier, alone, matching);
        let reply = tokio::time::timeout(WAIT, matching).await;
        let reply =
            reply.unwrap_or_else(|_| Err(Fault::TimedOut("matching receipts in a shard").into()));
        let mut found = reply?.into_iter();
        let mut matched = Vec::new();
        receipts.retain(|(index, _)| match found.next() {
            Some(found @ ReceiptMatch::Matched(_)) => {
                matched.push((*index, found));
                false
            }
            Some(ReceiptMatch::Unmatched) | None => true,
        });
        Ok(matched)
    }
}

/// Waits for a task's result. Returns `None` after [`WAIT`], and the task goes on in the
/// background.
async fn wait_for<T>(storing: JoinHandle<Option<T>>) -> Option<T> {
    tokio::time::timeout(WAIT, storing).await.ok()?.ok()?
}
