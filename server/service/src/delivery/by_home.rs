//! Results and receipts of carriers, which are stored in the homes of their messages. A home whose
//! database can't be reached delays its own messages alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::Transid;
use domain::ids::Home;
use futures_util::future::join_all;
use tokio::task::JoinHandle;

use crate::Service;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::receipts::{CarrierReceipt, Matching, Receipt};
use crate::delivery::{Claimed, Lease, Submitted};
use crate::error::{Fault, Result};

/// How long to wait for a home before going on with the others.
const WAIT: Duration = Duration::from_secs(5);
/// How long to wait before a home that couldn't store something is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How many names of segments are remembered at least.
const NAMES: usize = 131_072;

/// The homes of segments, by carrier and the carrier's name for the segment: a receipt has nothing
/// else to find a home by. The newest names are in the first of the two generations.
#[derive(Default)]
pub(crate) struct SegmentHomes(Mutex<[HashMap<(String, String), Home>; 2]>);

impl SegmentHomes {
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
                    generations[0].insert(key, result.lease.home);
                }
            }
        }
    }

    fn of(&self, carrier: &str, receipt: &CarrierReceipt) -> Option<Home> {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receipt.names.iter().find_map(|name| {
            let key = (carrier.to_owned(), name.clone());
            generations
                .iter()
                .find_map(|names| names.get(&key).copied())
        })
    }
}

fn by_home<T>(values: Vec<T>, home_of: impl Fn(&T) -> Home) -> BTreeMap<Home, Vec<T>> {
    let mut homes: BTreeMap<Home, Vec<T>> = BTreeMap::new();
    for value in values {
        homes.entry(home_of(&value)).or_default().push(value);
    }
    homes
}

impl Service {
    /// Claims due messages of a carrier in the first home that has some. The claim is durable
    /// before the messages are returned.
    ///
    /// # Errors
    /// When the database can't be used.
    pub async fn claim(&self, carrier: &str, limit: i64) -> Result<(Lease, Vec<Claimed>)> {
        let limit = usize::try_from(limit).unwrap_or(0);
        let commits = &self.inner.group_commit;
        let mut claimed = commits.inbox(Home::FIRST).claim(carrier, limit).await?;
        for home in self.homes().skip(1) {
            if claimed.1.is_empty() {
                claimed = commits.inbox(home).claim(carrier, limit).await?;
            }
        }
        Ok(claimed)
    }

    /// Stores results in the homes of their messages. Where there are several homes, one that can't
    /// be reached gets its results later, as long as this process lives; after that the leases of
    /// the messages end, as after a crash. Its messages count as stored meanwhile.
    pub(super) async fn record_at_homes(
        &self,
        carrier: &str,
        results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        if let Some(home) = self.only_home() {
            let inbox = self.inner.group_commit.inbox(home);
            return inbox.record_results(carrier, results).await;
        }
        self.inner.segment_homes.learn(carrier, &results);
        let homes = by_home(results, |result| result.lease.home);
        let recording = homes.into_iter().map(|(home, results)| {
            let taken = results.iter().filter(|result| result.is_taken());
            let taken: Vec<Transid> = taken.map(|result| result.id).collect();
            let (service, carrier) = (self.clone(), carrier.to_owned());
            let storing = tokio::spawn(async move {
                let inbox = service.inner.group_commit.inbox(home);
                let store = || inbox.record_results(&carrier, results.clone());
                service.store_at(home, store).await
            });
            async move { wait_for(storing).await.unwrap_or(taken) }
        });
        Ok(join_all(recording).await.concat())
    }

    /// Stores a sandbox's receipts in the homes of their messages, like results.
    pub(super) async fn end_at_homes(&self, receipts: Vec<Receipt>) -> Result<()> {
        if let Some(home) = self.only_home() {
            return self
                .inner
                .group_commit
                .inbox(home)
                .record_receipts(receipts)
                .await;
        }
        let mut homes: BTreeMap<Home, Vec<Receipt>> = BTreeMap::new();
        for receipt in receipts {
            let home = self.home_of_application(receipt.application_id).await?;
            homes.entry(home).or_default().push(receipt);
        }
        let recording = homes.into_iter().map(|(home, receipts)| {
            let service = self.clone();
            wait_for(tokio::spawn(async move {
                let inbox = service.inner.group_commit.inbox(home);
                let store = || inbox.record_receipts(receipts.clone());
                service.store_at(home, store).await
            }))
        });
        join_all(recording).await;
        Ok(())
    }

    /// Tries to store something in a home until it is stored; `None` if the service closes before.
    async fn store_at<T, F: Future<Output = Result<T>>>(
        &self,
        home: Home,
        store: impl Fn() -> F,
    ) -> Option<T> {
        loop {
            match store().await {
                Ok(stored) => return Some(stored),
                Err(error) => {
                    tracing::warn!(home = home.0, detail = ?error, "a home is tried again");
                }
            }
            if self.store().is_closed() {
                return None;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stores a carrier's receipts in the homes of their messages: where that isn't known, each
    /// home is asked by the carrier's name first, then all homes together by what else the receipt
    /// says. What no home knows, or couldn't be asked about, is parked.
    pub(super) async fn match_at_homes(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        if let Some(home) = self.only_home() {
            let inbox = self.inner.group_commit.inbox(home);
            let how = Matching::AnythingOrPark;
            let matching = inbox.record_carrier_receipts(carrier, receipts, how);
            return matching.await.map(drop);
        }
        let known = |receipt: &CarrierReceipt| {
            let found = self.inner.segment_homes.of(carrier, receipt);
            found.unwrap_or(Home::FIRST)
        };
        let homes = by_home(receipts, known);
        let recording = homes.into_iter().map(|(first, receipts)| async move {
            let others = self.homes().filter(|home| *home != first);
            let order: Vec<Home> = std::iter::once(first).chain(others).collect();
            self.match_in_order(carrier, &order, receipts).await
        });
        join_all(recording).await.into_iter().collect()
    }

    async fn match_in_order(
        &self,
        carrier: &str,
        order: &[Home],
        mut receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        let mut failed = None;
        for home in order {
            match self
                .match_at(carrier, *home, receipts.clone(), Matching::Names)
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
            // The home that couldn't be asked may have the message. A receipt with a name can be
            // parked meanwhile; any other one has to be sent again.
            let (named, others) = receipts.into_iter().partition(|r| !r.names.is_empty());
            receipts = named;
            failed = failed.filter(|_| !Vec::<CarrierReceipt>::is_empty(&others));
        }
        self.park(carrier, order, receipts).await?;
        failed.map_or(Ok(()), Err)
    }

    /// Matches receipts by what they say besides the carrier's names, each in the one home where a
    /// message fits; returns the others.
    async fn match_what_fits(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
    ) -> Result<Vec<CarrierReceipt>> {
        let fitting = self.homes_that_fit(carrier, &receipts).await?;
        let mut unmatched = Vec::new();
        let mut homes: BTreeMap<Home, Vec<CarrierReceipt>> = BTreeMap::new();
        for (receipt, home) in receipts.into_iter().zip(fitting) {
            match home {
                Some(home) => homes.entry(home).or_default().push(receipt),
                None => unmatched.push(receipt),
            }
        }
        for (home, receipts) in homes {
            let matching = self.match_at(carrier, home, receipts, Matching::Anything);
            unmatched.extend(matching.await?);
        }
        Ok(unmatched)
    }

    /// Parks receipts by the commit group of the first home that can be reached.
    async fn park(
        &self,
        carrier: &str,
        order: &[Home],
        receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        if receipts.is_empty() {
            return Ok(());
        }
        let mut failed = Fault::Stopped.into();
        for home in order {
            match self
                .match_at(carrier, *home, receipts.clone(), Matching::NamesOrPark)
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Matches receipts in a home; returns those that it knows nothing of.
    async fn match_at(
        &self,
        carrier: &str,
        home: Home,
        receipts: Vec<CarrierReceipt>,
        matching: Matching,
    ) -> Result<Vec<CarrierReceipt>> {
        let inbox = self.inner.group_commit.inbox(home);
        let asking = inbox.record_carrier_receipts(carrier, receipts, matching);
        let asked = tokio::time::timeout(WAIT, asking).await;
        asked.unwrap_or_else(|_| Err(Fault::TimedOut("asking a home for receipts").into()))
    }
}

/// What a task stored; `None` if the task takes longer than [`WAIT`], and goes on by itself.
async fn wait_for<T>(storing: JoinHandle<Option<T>>) -> Option<T> {
    tokio::time::timeout(WAIT, storing).await.ok()?.ok()?
}
