//! Receipts, and answers to submits, as carriers sent them, kept for staff. They are collected in
//! memory and stored in the background, so that they delay nothing. A process that dies loses the
//! receipts that it hasn't stored yet. Receipts with an unknown state are stored before they are
//! acknowledged, because they count once the settings name the state.
//!
//! An answer that accepts a message with an ID isn't kept: the message has the ID, and keeping the
//! answer would double the writes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::support::ReceiptKind;
use domain::{Timestamp, Transid};

use crate::delivery::receipts::is_storable_id;
use crate::{Delivery, SubmitOutcome, run_detached};
use store::carriers;
use store::error::Result;
use store::gate::Priority;
use store::raw_receipts::{self, RawReceiptRow};

/// The maximum length of a raw receipt.
const RAW_CHARS_MAX: usize = 1024;
const STATE_CHARS_MAX: usize = 64;
/// The maximum length of a number.
const NUMBER_CHARS_MAX: usize = 32;
/// The maximum size of the receipts that wait to be stored. Later ones are dropped.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The number of receipts per transaction, which takes a few milliseconds.
const CHUNK: usize = 500;
/// After each second of storing, nothing is stored for this many seconds. So storing takes at most
/// 2 % of the database's time.
const PAUSE_FACTOR: u32 = 49;
/// The shortest time between two log lines about unknown states of a carrier.
const UNKNOWN_STATE_LOG_INTERVAL_MS: i64 = 60_000;
/// The minimum time between two kept answers of a carrier that only ask us to slow down, or that
/// accept a message without an ID. Thousands of these may come in a second, and all say the same.
/// Other answers are all kept: each is about a different message, and a carrier that refuses every
/// message gets one message at a time.
const SAME_INTERVAL_MS: i64 = 1000;

/// A receipt as a carrier sent it, or an answer to a submit.
#[derive(Clone, Debug)]
pub struct RawReceipt {
    pub kind: ReceiptKind,
    /// The message ID in the receipt's text, or in the answer.
    pub text_id: Option<String>,
    /// The message ID in the receipt's parameter.
    pub parameter_id: Option<String>,
    /// The recipient.
    pub number: String,
    /// The state in a receipt, or the status of an answer.
    pub state: String,
    /// Why the message wasn't delivered or accepted, as a stable code. If the state isn't known, as
    /// the carrier writes it.
    pub error: Option<String>,
    /// The text of the receipt or answer, without the message's own text, which may be a one-time
    /// code. Bytes other than printable ASCII are escaped.
    pub raw: String,
    /// The message that it was matched to, or that the answer is for.
    pub message_id: Option<Transid>,
}

impl RawReceipt {
    /// Returns the record of a submit's answer, without the carrier's texts. `None` if the answer
    /// isn't kept, or if the submit didn't happen.
    pub fn of_answer(outcome: &SubmitOutcome, id: Transid, number: &str) -> Option<Self> {
        let (kind, error) = match outcome {
            SubmitOutcome::Accepted { carrier_message_id: Some(_) }
            | SubmitOutcome::Later { .. } => return None,
            SubmitOutcome::Accepted { carrier_message_id: None } => {
                (ReceiptKind::AcceptedWithoutId, None)
            }
            SubmitOutcome::Refused { error } | SubmitOutcome::Rejected { error } => {
                (ReceiptKind::Refused, Some(error))
            }
            SubmitOutcome::Held { error } => (ReceiptKind::Held, Some(error)),
            SubmitOutcome::Throttled { error } => (ReceiptKind::Throttled, Some(error)),
            SubmitOutcome::Temporary { error } => (ReceiptKind::Deferred, Some(error)),
            SubmitOutcome::NotSent => (ReceiptKind::Deferred, None),
            SubmitOutcome::Unknown { .. } => (ReceiptKind::UnknownOutcome, None),
        };
        Some(Self {
            kind,
            text_id: None,
            parameter_id: None,
            number: number.to_owned(),
            state: String::new(),
            error: error.cloned(),
            raw: String::new(),
            message_id: Some(id),
        })
    }

    /// Cuts texts that are too long, and removes what the database can't store.
    fn into_row(mut self, carrier: &str, id: i64) -> RawReceiptRow {
        for id in [&mut self.text_id, &mut self.parameter_id] {
            id.take_if(|id| !is_storable_id(id) || id.contains('\0'));
        }
        let cut = |text: String, max: usize| -> String {
            text.chars().filter(|c| *c != '\0').take(max).collect()
        };
        let parameter_id = self.parameter_id;
        RawReceiptRow {
            id,
            carrier: carrier.to_owned(),
            kind: self.kind,
            written_id: self.text_id.or_else(|| parameter_id.clone()),
            parameter_id,
            number: cut(self.number, NUMBER_CHARS_MAX),
            state: cut(self.state, STATE_CHARS_MAX),
            error: self.error.map(|error| cut(error, STATE_CHARS_MAX)),
            raw: cut(self.raw, RAW_CHARS_MAX),
            message_id: self.message_id,
        }
    }
}

/// The receipts and answers that aren't stored yet.
#[derive(Default)]
pub(crate) struct RawReceipts(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    receipts: VecDeque<RawReceiptRow>,
    bytes: usize,
    /// The number of receipts that were dropped since the last log line about them.
    dropped: u64,
    /// When an unknown state of a carrier was last logged, by carrier.
    logged: HashMap<String, Timestamp>,
    /// When an answer to which [`SAME_INTERVAL_MS`] applies was last kept, by its kind and carrier.
    same: HashMap<String, Timestamp>,
}

impl Waiting {
    fn push(&mut self, receipt: RawReceiptRow) {
        let bytes = size(&receipt);
        if self.bytes + bytes > WAITING_BYTES_MAX {
            self.dropped += 1;
            return;
        }
        self.bytes += bytes;
        self.receipts.push_back(receipt);
    }

    /// Takes the oldest receipts, and the number of receipts that were dropped.
    fn take(&mut self) -> (Vec<RawReceiptRow>, u64) {
        let count = self.receipts.len().min(CHUNK);
        let taken: Vec<_> = self.receipts.drain(..count).collect();
        self.bytes -= taken.iter().map(size).sum::<usize>();
        (taken, std::mem::take(&mut self.dropped))
    }
}

/// Whether an interval has passed since this function last returned true for `key`. `last` has the
/// times of these calls.
fn is_due(
    last: &mut HashMap<String, Timestamp>,
    key: &str,
    now: Timestamp,
    interval_ms: i64,
) -> bool {
    let due = |at: &Timestamp| now.ms_since(*at) >= interval_ms || now < *at;
    let is_due = last.get(key).is_none_or(due);
    if is_due {
        last.insert(key.to_owned(), now);
    }
    is_due
}

fn log_unknown_state(carrier: &str, receipt: &RawReceipt) {
    tracing::warn!(
        carrier,
        message_id = receipt.text_id.as_deref().or(receipt.parameter_id.as_deref()),
        state = receipt.state,
        "ignored a receipt with an unknown state; ask the carrier what it means, set it in the \
         carrier's settings, and run `heliograph carrier reload`"
    );
}

/// Returns approximately how much memory a receipt takes.
fn size(receipt: &RawReceiptRow) -> usize {
    let ids = [&receipt.written_id, &receipt.parameter_id];
    let ids: usize = ids.into_iter().flatten().map(String::len).sum();
    size_of::<RawReceiptRow>()
        + ids
        + receipt.carrier.len()
        + receipt.number.len()
        + receipt.state.len()
        + receipt.error.as_ref().map_or(0, String::len)
        + receipt.raw.len()
}

impl RawReceipts {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery<'_> {
    /// Keeps receipts and answers for staff, in memory until [`Self::store_raw_receipts`] stores
    /// them. Drops most of the answers to which [`SAME_INTERVAL_MS`] applies.
    pub fn keep_raw_receipts(&self, carrier: &str, receipts: Vec<RawReceipt>) {
        if self.limits().raw_receipts_days == 0 {
            return;
        }
        let now = self.now();
        let mut waiting = self.inner.raw_receipts.lock();
        for receipt in receipts {
            let kind = receipt.kind;
            let key = format!("{} {carrier}", kind.as_str());
            let is_one_of_many =
                matches!(kind, ReceiptKind::Throttled | ReceiptKind::AcceptedWithoutId)
                    && !is_due(&mut waiting.same, &key, now, SAME_INTERVAL_MS);
            if !is_one_of_many {
                waiting.push(receipt.into_row(carrier, self.next_id(now)));
            }
        }
    }

    /// Counts and logs the receipts with an unknown state, stores them if `raw_receipts_days` isn't
    /// 0, and removes them from `receipts`. They must be durable before the carrier gets an answer,
    /// because nothing else stores them.
    pub async fn record_unknown_states(
        &self,
        carrier: &str,
        receipts: &mut Vec<RawReceipt>,
    ) -> Result<()> {
        let is_unknown = |receipt: &RawReceipt| receipt.kind == ReceiptKind::UnknownState;
        let Some(first) = receipts.iter().find(|receipt| is_unknown(receipt)) else {
            return Ok(());
        };
        let now = self.now();
        let interval_ms = UNKNOWN_STATE_LOG_INTERVAL_MS;
        if is_due(&mut self.inner.raw_receipts.lock().logged, carrier, now, interval_ms) {
            log_unknown_state(carrier, first);
        }
        let unknown = receipts.iter().filter(|receipt| is_unknown(receipt)).cloned();
        let rows: Vec<_> =
            unknown.map(|receipt| receipt.into_row(carrier, self.next_id(now))).collect();
        let count = rows.len();
        let kept = if self.limits().raw_receipts_days > 0 { rows } else { Vec::new() };
        let (service, name) = (self.0.clone(), carrier.to_owned());
        run_detached(async move {
            let mut tx = service.store().begin_as(Priority::Results).await?;
            raw_receipts::insert(&mut tx, &kept).await?;
            let counted = i64::try_from(count).unwrap_or(i64::MAX);
            carriers::add_unknown_states(&mut tx, &name, counted).await?;
            tx.commit().await
        })
        .await?;
        self.inner.figures.add_unknown_states(carrier, count);
        receipts.retain(|receipt| !is_unknown(receipt));
        Ok(())
    }

    /// Stores some of the receipts that wait in memory. Returns how long to pause before the next
    /// call, so that storing costs the database little. Returns `None` if nothing was left to
    /// store.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` if the database can't be written. These receipts are then lost: they
    /// can't be stored again, because they may have been stored already.
    pub async fn store_raw_receipts(&self) -> Result<Option<Duration>> {
        let (receipts, dropped) = self.inner.raw_receipts.lock().take();
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "receipts and answers came faster than their raw texts can be stored; staff can't \
                 look up the dropped ones, but the messages have the right statuses"
            );
        }
        if receipts.is_empty() {
            return Ok(None);
        }
        let service = self.0.clone();
        run_detached(async move {
            let mut tx = service.store().begin_as(Priority::Bulk).await?;
            let begun = Instant::now();
            raw_receipts::insert(&mut tx, &receipts).await?;
            tx.commit().await?;
            Ok(Some(begun.elapsed() * PAUSE_FACTOR))
        })
        .await
    }
}
