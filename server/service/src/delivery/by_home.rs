//! What carriers bring, taken to the homes of its messages. A home whose database can't be reached
//! holds up its own messages alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::ids::Home;
use domain::{Reason, Transid};
use futures_util::future::join_all;

use crate::Service;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::receipts::{CarrierReceipt, Receipt};
use crate::delivery::{Claimed, Lease, Submitted};
use crate::error::Result;

/// How long to wait before results are stored again in a home that can't be reached.
const PAUSE: Duration = Duration::from_secs(1);
/// How many names of segments are remembered at least.
const NAMES: usize = 131_072;

/// The homes of segments, by carrier and carrier's name: receipts name nothing else. The newest
/// names are in the first of the two generations.
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
        let turn = &self.inner.turn;
        let mut claimed = turn.inbox(Home::FIRST).claim(carrier, limit).await?;
        for home in self.homes().skip(1) {
            if claimed.1.is_empty() {
                claimed = turn.inbox(home).claim(carrier, limit).await?;
            }
        }
        Ok(claimed)
    }

    /// Stores results in the homes of their messages. Where there are several homes, one that can't
    /// be reached gets its results later, as long as this process lives; after that the leases of
    /// the messages end, as after a crash.
    pub(super) async fn record_at_homes(
        &self,
        carrier: &str,
        results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        if let Some(home) = self.only_home() {
            return self.record_at(home, carrier, results).await;
        }
        self.inner.segment_homes.learn(carrier, &results);
        let homes = by_home(results, |result| result.lease.home);
        let recording = homes.into_iter().map(|(home, results)| async move {
            match self.record_at(home, carrier, results.clone()).await {
                Err(error) if error.reason() == Reason::Unavailable => {
                    self.record_later(home, carrier.to_owned(), results);
                    Ok(Vec::new())
                }
                recorded => recorded,
            }
        });
        let recorded = join_all(recording).await;
        let taken = recorded.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(taken.concat())
    }

    async fn record_at(
        &self,
        home: Home,
        carrier: &str,
        results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        let inbox = self.inner.turn.inbox(home);
        inbox.record_results(carrier, results).await
    }

    fn record_later(&self, home: Home, carrier: String, results: Vec<Submitted>) {
        tracing::warn!(
            home = home.0,
            carrier,
            "a home can't be reached; results are stored later"
        );
        let service = self.clone();
        tokio::spawn(async move {
            while !service.store().is_closed() {
                tokio::time::sleep(PAUSE).await;
                match service.record_at(home, &carrier, results.clone()).await {
                    Err(error) if error.reason() == Reason::Unavailable => {}
                    Err(error) => {
                        tracing::error!(detail = ?error, "results can't be stored");
                        return;
                    }
                    Ok(_) => return,
                }
            }
        });
    }

    /// Stores a sandbox's receipts in the homes of their messages.
    pub(super) async fn end_at_homes(&self, receipts: Vec<Receipt>) -> Result<()> {
        let mut homes: BTreeMap<Home, Vec<Receipt>> = BTreeMap::new();
        for receipt in receipts {
            let home = self.home_of_application(receipt.application_id).await?;
            homes.entry(home).or_default().push(receipt);
        }
        let recording = homes
            .into_iter()
            .map(|(home, receipts)| self.inner.turn.inbox(home).record_receipts(receipts));
        join_all(recording).await.into_iter().collect()
    }

    /// Stores a carrier's receipts in the homes of their messages: where that isn't known, each
    /// home is asked. What no home knows, or couldn't be asked about, is parked in the last one.
    pub(super) async fn match_at_homes(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        let known = |receipt: &CarrierReceipt| {
            let found = || self.inner.segment_homes.of(carrier, receipt);
            self.only_home().or_else(found).unwrap_or(Home::FIRST)
        };
        let homes = by_home(receipts, known);
        let recording = homes.into_iter().map(|(first, receipts)| async move {
            let others = self.homes().filter(|home| *home != first);
            let order: Vec<Home> = std::iter::once(first).chain(others).collect();
            self.match_in_turn(carrier, &order, receipts).await
        });
        join_all(recording).await.into_iter().collect()
    }

    async fn match_in_turn(
        &self,
        carrier: &str,
        order: &[Home],
        mut receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        for (asked, home) in order.iter().enumerate() {
            let parks = asked + 1 == order.len();
            let inbox = self.inner.turn.inbox(*home);
            let matching = inbox.record_carrier_receipts(carrier, receipts.clone(), parks);
            receipts = match matching.await {
                Ok(unmatched) => unmatched,
                Err(error) if parks || error.reason() != Reason::Unavailable => return Err(error),
                // The receipts are tried again where they are parked.
                Err(_) => receipts,
            };
            if receipts.is_empty() {
                break;
            }
        }
        Ok(())
    }
}
