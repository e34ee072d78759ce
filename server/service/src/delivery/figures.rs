//! Counts of carriers' answers and receipts: in memory since the start of the process, and in the
//! database by minute and hour for all processes together.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::carrier_figures::{
    CarrierCounts, CarrierEvent, CountedRefusal, HourCounts, RecentCounts,
};
use domain::timestamp::DAY_MS;
use domain::{MessageStatus, Timestamp};

use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::receipts::{CarrierReceipt, ReceiptMatch};
use crate::delivery::{Delivery, Submitted};
use crate::run_detached;
use store::carrier_figures;
use store::error::Result;
use store::gate::Priority;

const MINUTE_MS: i64 = 60 * 1000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// How long the counts of minutes, and of hours, are kept.
const KEPT: [(i64, i64); 2] = [(MINUTE_MS, 2 * HOUR_MS), (HOUR_MS, 8 * DAY_MS)];
/// The maximum number of a carrier's segments for which the time until the receipt is measured.
/// They are a sample of all segments.
const SAMPLES_MAX: usize = 1000;
/// If there are [`SAMPLES_MAX`] samples, those of this age are dropped. This is also the minimum
/// time between two such sweeps.
const SAMPLE_LASTS: Duration = Duration::from_mins(10);
/// How long the receipts of a test message don't count.
const TEST_LASTS: Duration = Duration::from_mins(5);

/// The number of reasons for refusals that staff see.
const REFUSALS_SHOWN: usize = 5;

/// The counts of this process, by carrier.
#[derive(Default)]
pub(crate) struct Figures(Mutex<BTreeMap<String, OfCarrier>>);

struct OfCarrier {
    counts: CarrierCounts,
    /// The counts that are in the database.
    stored: CarrierCounts,
    /// The refusals that aren't in the database yet, by reason.
    refusals: BTreeMap<String, u64>,
    /// When the carrier accepted each segment of the sample, by carrier message ID.
    samples: HashMap<String, Instant>,
    samples_checked_at: Instant,
    /// The numbers and carrier message IDs of test messages, and until when their receipts don't
    /// count.
    tested: Vec<(String, Instant)>,
}

/// A final receipt as it is counted.
pub(super) struct CountedReceipt {
    event: CarrierEvent,
    /// The time since the carrier accepted the segment, for a sample of the segments.
    seconds: Option<u64>,
}

impl Default for OfCarrier {
    fn default() -> Self {
        Self {
            counts: CarrierCounts::default(),
            stored: CarrierCounts::default(),
            refusals: BTreeMap::new(),
            samples: HashMap::new(),
            samples_checked_at: Instant::now(),
            tested: Vec::new(),
        }
    }
}

impl Figures {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OfCarrier>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, carrier: &str, update: impl FnOnce(&mut OfCarrier)) {
        let mut carriers = self.lock();
        if let Some(known) = carriers.get_mut(carrier) {
            update(known);
        } else {
            update(carriers.entry(carrier.to_owned()).or_default());
        }
    }

    pub(super) fn answers(&self, carrier: &str, results: &[Submitted]) -> CarrierCounts {
        let mut counts = CarrierCounts::default();
        let mut ids = Vec::new();
        for (_, outcome) in results.iter().flat_map(|result| &result.outcomes) {
            let event = match outcome {
                SubmitOutcome::Accepted { carrier_message_id } => {
                    ids.extend(carrier_message_id.as_deref());
                    CarrierEvent::Accepted
                }
                SubmitOutcome::Refused { .. } | SubmitOutcome::Rejected { .. } => {
                    CarrierEvent::Refused
                }
                SubmitOutcome::Throttled { .. } => CarrierEvent::Throttled,
                SubmitOutcome::Temporary { .. } | SubmitOutcome::Held { .. } => {
                    CarrierEvent::Deferred
                }
                SubmitOutcome::Unknown { .. } => CarrierEvent::Unanswered,
                SubmitOutcome::NotSent | SubmitOutcome::Later { .. } => continue,
            };
            counts.add(event, 1);
        }
        self.update(carrier, |figures| figures.take_samples(&ids));
        counts
    }

    /// Returns how each final receipt counts once it is stored, or `None` for a receipt that
    /// doesn't count.
    pub(super) fn receipts(
        &self,
        carrier: &str,
        receipts: &[CarrierReceipt],
    ) -> Vec<Option<CountedReceipt>> {
        let mut counted = Vec::with_capacity(receipts.len());
        self.update(carrier, |figures| {
            let now = Instant::now();
            figures.tested.retain(|(_, until)| *until > now);
            counted.extend(receipts.iter().map(|receipt| {
                if figures.tested.iter().any(|(test, _)| is_of_test(test, receipt)) {
                    return None;
                }
                let mut ids = receipt.message_ids.iter();
                let accepted_at = ids.find_map(|id| figures.samples.remove(id));
                let seconds = accepted_at.map(|at| at.elapsed().as_secs());
                Some(CountedReceipt { event: event(receipt.status), seconds })
            }));
        });
        counted
    }

    /// Counts receipts that are stored now. `matches` says what each receipt matched. An unmatched
    /// receipt says nothing about our messages, so the delivery rate leaves it out.
    pub(super) fn add_receipts(
        &self,
        carrier: &str,
        counted: Vec<Option<CountedReceipt>>,
        matches: &[ReceiptMatch],
    ) {
        let mut counts = CarrierCounts::default();
        for (receipt, found) in counted.into_iter().zip(matches) {
            let Some(receipt) = receipt else { continue };
            if *found == ReceiptMatch::Unmatched {
                counts.add(CarrierEvent::Unmatched, 1);
                continue;
            }
            counts.add(receipt.event, 1);
            if let Some(seconds) = receipt.seconds {
                counts.add_receipt_time(seconds);
            }
        }
        self.add(carrier, &counts);
    }

    /// Counts receipts that matched a message later, by the statuses that they report.
    pub(crate) fn add_matched(
        &self,
        carrier: &str,
        statuses: impl IntoIterator<Item = MessageStatus>,
    ) {
        let mut counts = CarrierCounts::default();
        statuses.into_iter().for_each(|status| counts.add(event(status), 1));
        self.add(carrier, &counts);
    }

    /// Keeps receipts of test messages out of the counts, by their numbers or carrier message IDs.
    /// Numbers are as the carrier gets them.
    pub(super) fn test(&self, carrier: &str, tests: impl IntoIterator<Item = String>) {
        let until = Instant::now() + TEST_LASTS;
        let tests = tests.into_iter().map(|test| (test, until));
        self.update(carrier, |figures| figures.tested.extend(tests));
    }

    /// Counts receipts whose state isn't known.
    pub(super) fn add_unknown_states(&self, carrier: &str, count: usize) {
        let mut counts = CarrierCounts::default();
        counts.add(CarrierEvent::UnknownState, count as u64);
        self.add(carrier, &counts);
    }

    /// Adds counts whose results or receipts are stored now.
    pub(super) fn add(&self, carrier: &str, counts: &CarrierCounts) {
        self.update(carrier, |figures| figures.counts.add_all(counts));
    }
}

impl OfCarrier {
    /// Begins to measure the time until the receipts of these segments, up to [`SAMPLES_MAX`]
    /// samples.
    fn take_samples(&mut self, ids: &[&str]) {
        let now = Instant::now();
        if self.samples.len() >= SAMPLES_MAX && self.samples_checked_at + SAMPLE_LASTS < now {
            self.samples_checked_at = now;
            self.samples.retain(|_, accepted_at| now - *accepted_at < SAMPLE_LASTS);
        }
        let space = SAMPLES_MAX.saturating_sub(self.samples.len());
        self.samples.extend(ids.iter().take(space).map(|id| ((*id).to_owned(), now)));
    }
}

impl Delivery<'_> {
    /// Returns the counts of this process since its start, by carrier.
    pub fn carrier_counts(&self) -> BTreeMap<String, CarrierCounts> {
        let carriers = self.inner.figures.lock();
        carriers.iter().map(|(name, figures)| (name.clone(), figures.counts)).collect()
    }

    /// Counts refusals by reason. There are few reasons, and they contain nothing of a message.
    pub fn count_refusals(&self, carrier: &str, refusals: BTreeMap<String, u64>) {
        self.inner.figures.update(carrier, |figures| {
            for (reason, count) in refusals {
                *figures.refusals.entry(reason).or_default() += count;
            }
        });
    }

    /// Adds the counts since the last call to those of the current minute and hour, and deletes old
    /// ones.
    pub async fn store_carrier_figures(&self) -> Result<()> {
        // Counts whose commit fails are lost: they may have been stored.
        let (mut new, mut refusals) = (BTreeMap::new(), BTreeMap::new());
        for (name, figures) in self.inner.figures.lock().iter_mut() {
            let stored = std::mem::replace(&mut figures.stored, figures.counts);
            let counts = figures.counts.since(&stored);
            if counts != CarrierCounts::default() {
                new.insert(name.clone(), counts);
            }
            if !figures.refusals.is_empty() {
                refusals.insert(name.clone(), std::mem::take(&mut figures.refusals));
            }
        }
        if new.is_empty() && refusals.is_empty() {
            return Ok(());
        }
        let service = self.0.clone();
        run_detached(async move {
            let now = service.now();
            let mut tx = service.store().begin_as(Priority::Bulk).await?;
            for (period_ms, kept_ms) in KEPT {
                let period = (period_ms, began_at(now, period_ms));
                carrier_figures::add(&mut tx, period, &new).await?;
                carrier_figures::forget(&mut tx, period_ms, now.plus_ms(-kept_ms)).await?;
            }
            let minute = (MINUTE_MS, began_at(now, MINUTE_MS));
            carrier_figures::add_refusals(&mut tx, minute, &refusals).await?;
            tx.commit().await
        })
        .await
    }

    /// Returns the counts of all processes for a carrier in each of the last 24 hours, in
    /// chronological order. The last hour isn't over.
    pub async fn carrier_hours(&self, carrier: &str) -> Result<Vec<HourCounts>> {
        let last = began_at(self.now(), HOUR_MS);
        let mut conn = self.store().read().await?;
        let after = last.plus_ms(-DAY_MS);
        let found = carrier_figures::of_carrier(&mut conn, HOUR_MS, after, carrier).await?;
        let hours = (0..DAY_MS / HOUR_MS).rev().map(|ago| last.plus_ms(-ago * HOUR_MS));
        let of_hour = |began_at| HourCounts {
            began_at,
            counts: found.get(&began_at).copied().unwrap_or_default(),
        };
        Ok(hours.map(of_hour).collect())
    }

    /// Returns the most frequent reasons for which carriers refused submits of all processes in the
    /// last hour, by carrier.
    pub(super) async fn recent_refusals(&self) -> Result<BTreeMap<String, Vec<CountedRefusal>>> {
        let after = self.now().plus_ms(-HOUR_MS);
        let mut conn = self.store().read().await?;
        let mut refusals = carrier_figures::refusals(&mut conn, MINUTE_MS, after).await?;
        for of_carrier in refusals.values_mut() {
            of_carrier.truncate(REFUSALS_SHOWN);
        }
        Ok(refusals)
    }

    /// Returns the counts of all processes over the last 5 minutes, hour and day, by carrier. They
    /// are a few seconds old, and the day consists of whole hours.
    pub async fn recent_counts(&self) -> Result<BTreeMap<String, RecentCounts>> {
        let now = self.now();
        let mut conn = self.store().read().await?;
        let mut recent: BTreeMap<String, RecentCounts> = BTreeMap::new();
        for (name, counts) in
            carrier_figures::since(&mut conn, MINUTE_MS, now.plus_ms(-5 * MINUTE_MS)).await?
        {
            recent.entry(name).or_default().five_minutes = counts;
        }
        for (name, counts) in
            carrier_figures::since(&mut conn, MINUTE_MS, now.plus_ms(-HOUR_MS)).await?
        {
            recent.entry(name).or_default().hour = counts;
        }
        for (name, counts) in
            carrier_figures::since(&mut conn, HOUR_MS, now.plus_ms(-DAY_MS)).await?
        {
            recent.entry(name).or_default().day = counts;
        }
        Ok(recent)
    }
}

/// Whether a receipt is for the test message with the number or carrier message ID `test`. A
/// receipt may leave out the plus sign of a number, or have no number.
fn is_of_test(test: &str, receipt: &CarrierReceipt) -> bool {
    test.trim_start_matches('+') == receipt.number.trim_start_matches('+')
        || receipt.message_ids.iter().any(|id| id == test)
}

/// Returns what a final status counts as.
const fn event(status: MessageStatus) -> CarrierEvent {
    match status {
        MessageStatus::Delivered => CarrierEvent::Delivered,
        MessageStatus::Expired => CarrierEvent::Expired,
        _ => CarrierEvent::Failed,
    }
}

fn began_at(now: Timestamp, period_ms: i64) -> Timestamp {
    now.plus_ms(-now.unix_ms().rem_euclid(period_ms))
}

#[cfg(test)]
mod tests;
