//! Matches unmatched receipts again once more is known about their messages, and explains to staff
//! why a receipt matches no message.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::ids::Shard;
use domain::support::{
    CarrierReceipts, ReceiptCandidate, ReceiptKind, ReceiptOutcome, ReceiptRecord, SuggestedForm,
};
use domain::timestamp::DAY_MS;
use domain::{MessageIdForm, MessageStatus};

use crate::delivery::receipts::{
    AHEAD_MS, CROSSED_MS, CarrierReceipt, Matched, Matching, NODES_DIFFER_MS, WrittenReceipt,
    apply, made_at, message_ids,
};
use crate::{Delivery, leave_time, run_detached};
use store::error::Result;
use store::gate::Priority;
use store::messages;
use store::raw_receipts::{self, RawReceiptRow, Selection};
use store::segments::{self, SegmentId, Unanswered};
use store::unmatched_receipts::{self, Selection as Waiting, WaitingReceipt};
use store::{Chore, Tx, carriers};

/// How often all unmatched receipts are compared with messages even if the settings haven't
/// changed. Another process may have stored some of them under other settings.
const COMPARED_AGAIN: Duration = Duration::from_hours(1);
/// The number of unmatched receipts in a row after which operators are warned.
const UNMATCHED_RUN_MIN: usize = 10;
/// How often operators are warned of a carrier's unmatched receipts.
const WARNED_AGAIN: Duration = Duration::from_mins(10);
/// The number of receipts per transaction.
const CHUNK: i64 = 200;
/// The maximum number of receipts that staff see at once.
const SHOWN_MAX: i64 = 50;
/// The maximum number of unmatched receipts that suggestions are made from.
const COUNTED_MAX: i64 = 100;
/// The maximum number of candidates that staff see for a receipt.
const CANDIDATES_MAX: usize = 5;

/// Which receipts of a carrier staff want to see.
#[derive(Clone, Debug, Default)]
pub enum ReceiptFilter {
    #[default]
    All,
    Unmatched,
    /// The receipts with this message ID, as the carrier wrote it.
    Id(String),
    /// The receipts for messages to this number, in the carrier's format.
    Number(String),
}

/// The formats of message IDs under which this process last compared all unmatched receipts, by
/// carrier. Without this, processes with different settings would compare the same receipts in turn
/// without end.
#[derive(Default)]
pub(crate) struct ComparedForms(Mutex<HashMap<String, (Form, Instant)>>);

/// A carrier's format of message IDs. `None` if it writes them the same everywhere.
type Form = Option<MessageIdForm>;

/// Stands for the format of receipts that were never compared with messages.
pub(super) const NEW_FORM: &str = "new";

impl ComparedForms {
    fn is_due(&self, carrier: &str, form: Form) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let compared = known.get(carrier).filter(|(known, _)| *known == form);
        compared.is_none_or(|(_, at)| at.elapsed() >= COMPARED_AGAIN)
    }

    fn done(&self, carrier: &str, form: Form) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(carrier.to_owned(), (form, Instant::now()));
    }

    fn forget(&self, carrier: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(carrier);
    }
}

/// For each carrier, the number of receipts in a row that matched no message, and when operators
/// were last warned.
#[derive(Default)]
pub struct UnmatchedRuns(Mutex<HashMap<String, (usize, Option<Instant>)>>);

impl UnmatchedRuns {
    /// Counts receipts. Warns if so many have come without a match that late answers can't be the
    /// only reason.
    pub(super) fn count(&self, carrier: &str, matched: usize, unmatched: usize) {
        if matched == 0 && unmatched == 0 {
            return;
        }
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (run, warned_at) = runs.entry(carrier.to_owned()).or_default();
        *run = if matched > 0 { 0 } else { *run + unmatched };
        let is_due = warned_at.is_none_or(|at| at.elapsed() >= WARNED_AGAIN);
        if *run >= UNMATCHED_RUN_MIN && is_due {
            *warned_at = Some(Instant::now());
            tracing::warn!(
                carrier,
                "the last {run} receipts of the carrier match no message. \
                 `heliograph carrier receipts {carrier} --unmatched` shows why"
            );
        }
    }
}

/// A segment that has one of the IDs that a receipt may mean.
struct StoredSegment {
    /// The ID, as it is stored.
    carrier_message_id: String,
    segment: Unanswered,
}

impl Delivery<'_> {
    /// Matches unmatched receipts again. If a process died before it stored an answer, the
    /// message's receipt matches by the fields other than the carrier message ID after the lease
    /// has ended. After a carrier's setting `message_id` has changed, all of its unmatched receipts
    /// are matched again. Receipts with an unknown state are applied once the settings name the
    /// state. Returns how many were matched.
    pub async fn match_waiting(&self) -> Result<usize> {
        let mut matched = 0;
        for carrier in &self.inner.router.network().carriers {
            if carrier.sandbox {
                continue;
            }
            if self.apply_named_states(carrier).await? > 0 {
                self.inner.compared_forms.forget(&carrier.name);
            }
            let mut conn = self.store().read().await?;
            if !unmatched_receipts::is_any(&mut conn, &carrier.name).await? {
                continue;
            }
            drop(conn);
            let form = carrier.message_id;
            if self.inner.compared_forms.is_due(&carrier.name, form) {
                matched += self.match_in_new_form(&carrier.name, form).await?;
            }
            matched += self.match_recent(&carrier.name, form).await?;
        }
        Ok(matched)
    }

    /// Matches the receipts that were last compared with messages under another format of message
    /// IDs, or never.
    async fn match_in_new_form(&self, carrier: &str, form: Form) -> Result<usize> {
        let mut matched = 0;
        let own = form.map_or("", MessageIdForm::as_str);
        let forms = MessageIdForm::ALL.map(MessageIdForm::as_str).into_iter();
        for other in forms.chain(["", NEW_FORM]).filter(|other| *other != own) {
            loop {
                let begun = Instant::now();
                let mut conn = self.store().read().await?;
                let of_form = Waiting::OfForm(other);
                let waiting = unmatched_receipts::list(&mut conn, carrier, of_form, CHUNK).await?;
                drop(conn);
                if waiting.is_empty() {
                    break;
                }
                let done = self.match_again(carrier, form, &waiting, form.is_some()).await?;
                // Otherwise another process is matching receipts.
                let Some(done) = done else { return Ok(matched) };
                matched += done.len();
                let rest = waiting.iter().map(|waiting| waiting.receipt);
                let rest: Vec<i64> = rest.filter(|receipt| !done.contains(receipt)).collect();
                let (service, carrier) = (self.0.clone(), carrier.to_owned());
                run_detached(async move {
                    let mut tx = service.store().begin_as(Priority::Bulk).await?;
                    unmatched_receipts::set_form(&mut tx, &carrier, &rest, own).await?;
                    tx.commit().await
                })
                .await?;
                leave_time(begun).await;
            }
        }
        self.inner.compared_forms.done(carrier, form);
        Ok(matched)
    }

    /// Matches the receipts of the last minutes by the fields other than the carrier message ID, if
    /// a segment's carrier message ID is unknown.
    async fn match_recent(&self, carrier: &str, form: Option<MessageIdForm>) -> Result<usize> {
        let has_unanswered = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            segments::has_unanswered(&mut conn, carrier).await
        });
        if !has_unanswered.await?.contains(&true) {
            return Ok(0);
        }
        let since = self.now().plus_ms(-CROSSED_MS - self.limits().lease_ms);
        let mut after = domain::ids::compose_id(since.unix_ms(), 0);
        let mut matched = 0;
        loop {
            let mut conn = self.store().read().await?;
            let of_numbers = Waiting::OfNumbers(after);
            let waiting = unmatched_receipts::list(&mut conn, carrier, of_numbers, CHUNK).await?;
            drop(conn);
            let Some(newest) = waiting.last() else { return Ok(matched) };
            after = newest.receipt;
            let fitting = self.unanswered(carrier, &waiting).await?;
            let waiting: Vec<WaitingReceipt> = waiting
                .into_iter()
                .filter(|one| fitting.iter().any(|fits| self.is_to_number(carrier, one, fits)))
                .collect();
            if !waiting.is_empty() {
                let done = self.match_again(carrier, form, &waiting, false).await?;
                matched += done.map_or(0, |done| done.len());
            }
        }
    }

    /// Matches all unmatched receipts of a carrier that have a number. Returns how many were
    /// matched.
    pub(crate) async fn match_all(&self, carrier: &str) -> Result<usize> {
        let form = self.inner.router.network().message_id(carrier);
        let (mut after, mut matched) = (0, 0);
        loop {
            let of_numbers = Waiting::OfNumbers(after);
            let mut conn = self.store().read().await?;
            let waiting = unmatched_receipts::list(&mut conn, carrier, of_numbers, CHUNK).await?;
            drop(conn);
            let Some(newest) = waiting.last() else { return Ok(matched) };
            after = newest.receipt;
            let done = self.match_again(carrier, form, &waiting, false).await?;
            matched += done.map_or(0, |done| done.len());
        }
    }

    /// Matches receipts in all shards. `is_new_form` is true if the carrier message IDs may have
    /// been stored under another format. Returns the IDs of the matched receipts, or `None` while
    /// another process is matching receipts.
    async fn match_again(
        &self,
        carrier: &str,
        form: Option<MessageIdForm>,
        waiting: &[WaitingReceipt],
        is_new_form: bool,
    ) -> Result<Option<Vec<i64>>> {
        let receipts: Vec<CarrierReceipt> =
            waiting.iter().map(|waiting| receipt(waiting, form)).collect();
        // If there are several shards, a receipt may fit a message in each of them.
        let shards = match self.only_shard() {
            Some(shard) => vec![Some(shard); receipts.len()],
            None => self.shards_that_fit(carrier, &receipts).await?,
        };
        let mut done: Vec<i64> = Vec::new();
        for shard in self.shards() {
            let of_shard: Vec<(WaitingReceipt, CarrierReceipt, bool)> = waiting
                .iter()
                .zip(&receipts)
                .zip(&shards)
                .filter(|((waiting, _), _)| !done.contains(&waiting.receipt))
                .map(|((waiting, receipt), fits)| {
                    (waiting.clone(), receipt.clone(), *fits == Some(shard))
                })
                .collect();
            let (service, carrier) = (self.0.clone(), carrier.to_owned());
            let matching = run_detached(async move {
                let form = form.filter(|_| is_new_form);
                service.delivery().match_again_at(shard, &carrier, form, of_shard).await
            });
            match matching.await? {
                Some(matched) => done.extend(matched),
                None => return Ok(None),
            }
        }
        Ok(Some(done))
    }

    /// Matches receipts in a shard. The flag of a receipt says whether it may match by the fields
    /// other than the carrier message ID. Returns the IDs of the matched receipts, or `None` while
    /// another process is matching receipts.
    async fn match_again_at(
        &self,
        shard: Shard,
        carrier: &str,
        new_form: Option<MessageIdForm>,
        waiting: Vec<(WaitingReceipt, CarrierReceipt, bool)>,
    ) -> Result<Option<Vec<i64>>> {
        let now = self.now();
        let tx = self.store().begin_chore(Chore::MatchCrossed, shard, Priority::Results).await?;
        let Some(mut tx) = tx else { return Ok(None) };
        tx.at(shard);
        let mut found: Vec<(WaitingReceipt, SegmentId)> = Vec::new();
        for (by_fields, how) in [(true, Matching::Anything), (false, Matching::ById)] {
            let some = waiting.iter().filter(|(.., fits)| *fits == by_fields);
            let (some, receipts): (Vec<_>, Vec<_>) =
                some.map(|(waiting, receipt, _)| (waiting, receipt.clone())).unzip();
            let matched = self.match_receipts(&mut tx, carrier, &receipts, how).await?;
            let matched = matched.into_iter();
            found.extend(matched.map(|(index, segment)| (some[index].clone(), segment)));
        }
        if let Some(form) = new_form {
            let rest: Vec<WaitingReceipt> = waiting
                .iter()
                .map(|(waiting, ..)| waiting.clone())
                .filter(|waiting| !found.iter().any(|(known, _)| known.receipt == waiting.receipt))
                .collect();
            found.extend(self.match_other_forms(&mut tx, carrier, form, rest).await?);
        }
        if found.is_empty() {
            // Otherwise a rollback might still hold the chore's lock when the next receipts are
            // matched.
            tx.commit().await?;
            return Ok(Some(Vec::new()));
        }
        let ids: Vec<_> = found.iter().map(|(_, segment)| segment.message_id).collect();
        messages::lock(&mut tx, &ids).await?;
        found.sort_by_key(|(waiting, _)| waiting.receipt);
        let matched: Vec<Matched<'_>> = found
            .iter()
            .map(|(waiting, segment)| Matched {
                segment: *segment,
                status: waiting.status,
                error: waiting.error.as_deref(),
            })
            .collect();
        apply(self, &mut tx, &matched, now).await?;
        let done: Vec<i64> = found.iter().map(|(waiting, _)| waiting.receipt).collect();
        unmatched_receipts::drop_all(&mut tx, carrier, &done).await?;
        let messages = found.iter().map(|(waiting, segment)| (waiting, segment.message_id));
        raw_receipts::set_messages(&mut tx, carrier, messages).await?;
        // Last, because all receipts of the carrier wait for this row.
        carriers::add_unmatched(&mut tx, carrier, 0, done.len()).await?;
        tx.commit().await?;
        self.inner.figures.add_matched(carrier, found.iter().map(|(waiting, _)| waiting.status));
        Ok(Some(done))
    }

    /// Matches receipts to segments whose IDs were stored under another format. A segment must be
    /// for the receipt's number and have no receipt yet.
    async fn match_other_forms(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        form: MessageIdForm,
        waiting: Vec<WaitingReceipt>,
    ) -> Result<Vec<(WaitingReceipt, SegmentId)>> {
        let possible: Vec<Vec<String>> =
            waiting.iter().map(|waiting| stored_ids(waiting, form)).collect();
        let (country_code, least) = self.search_bounds();
        let ids = flat(&possible);
        let stored = segments::stored_as(tx, carrier, &ids, country_code, least).await?;
        let stored = by_receipt(&possible, stored);
        let mut found: Vec<(WaitingReceipt, SegmentId)> = Vec::new();
        for (index, waiting) in waiting.into_iter().enumerate() {
            let segments = stored.get(&index).map_or(&[][..], Vec::as_slice);
            let is_to_number = |segment: &Unanswered| self.is_to_number(carrier, &waiting, segment);
            let fitting = segments
                .iter()
                .filter(|stored| is_to_number(&stored.segment) && fits(&waiting, &stored.segment));
            let free = fitting
                .filter(|stored| !found.iter().any(|(_, taken)| *taken == stored.segment.id));
            // The newest one, because carriers reuse their IDs.
            if let Some(newest) = free.max_by_key(|stored| stored.segment.id.message_id) {
                found.push((waiting, newest.segment.id));
            }
        }
        Ok(found)
    }

    /// Returns receipts of a carrier, and its answers to submits, for staff, newest first. Explains
    /// why unmatched receipts match no message. Unless a single ID or number is looked up, also
    /// suggests formats of message IDs under which they would match.
    ///
    /// # Errors
    /// `NoSuchCarrier`.
    pub async fn carrier_receipts(
        &self,
        carrier: &str,
        filter: &ReceiptFilter,
    ) -> Result<CarrierReceipts> {
        self.must_have_carrier(carrier)?;
        let form = self.inner.router.network().message_id(carrier);
        let mut conn = self.store().read().await?;
        let day_ago = domain::ids::compose_id(self.now().plus_ms(-DAY_MS).unix_ms(), 0);
        let of_day = match filter {
            ReceiptFilter::All | ReceiptFilter::Unmatched => {
                let newest = Waiting::Newest(day_ago);
                unmatched_receipts::list(&mut conn, carrier, newest, COUNTED_MAX).await?
            }
            ReceiptFilter::Id(_) | ReceiptFilter::Number(_) => Vec::new(),
        };
        let unmatched = if matches!(filter, ReceiptFilter::Unmatched) {
            let newest = Waiting::Newest(0);
            unmatched_receipts::list(&mut conn, carrier, newest, SHOWN_MAX).await?
        } else {
            Vec::new()
        };
        let selections = match filter {
            // Looked up separately, so that many refusals don't hide the receipts.
            ReceiptFilter::All => vec![Selection::Receipts, Selection::Answers],
            ReceiptFilter::Unmatched => Vec::new(),
            ReceiptFilter::Id(id) => vec![Selection::WrittenId(id)],
            ReceiptFilter::Number(number) => vec![Selection::Number(number)],
        };
        let mut rows = Vec::new();
        for selection in selections {
            rows.extend(raw_receipts::list(&mut conn, carrier, selection, SHOWN_MAX).await?);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.id));
        let ids: Vec<Vec<String>> = rows
            .iter()
            .map(|row| message_ids(row.written_id.as_deref(), row.parameter_id.as_deref(), form))
            .collect();
        let of_rows: Vec<(&[String], &str)> =
            rows.iter().zip(&ids).map(|(row, ids)| (&ids[..], &*row.number)).collect();
        let waiting = unmatched_receipts::still_waiting(&mut conn, carrier, &of_rows).await?;
        drop(conn);
        let receipts = rows.into_iter().zip(ids).enumerate().map(|(index, (row, ids))| {
            let is_waiting = row.kind == ReceiptKind::Final && waiting.contains(&index);
            (ids, record(row, is_waiting))
        });
        let (suggestions, explained) = match form {
            Some(form) => self.suggestions(carrier, form, &of_day).await?,
            None => (Vec::new(), HashMap::new()),
        };
        let mut receipts = self.with_messages(carrier, receipts.collect()).await?;
        let unanswered = self.unanswered(carrier, &unmatched).await?;
        for waiting in unmatched {
            let matching = explained.get(&waiting.receipt).map_or(&[][..], Vec::as_slice);
            receipts.push(self.explained(carrier, waiting, matching, &unanswered));
        }
        Ok(CarrierReceipts {
            carrier: carrier.to_owned(),
            receipts,
            unmatched: of_day.len(),
            suggestions,
        })
    }

    /// Adds the messages that have the receipts' IDs.
    async fn with_messages(
        &self,
        carrier: &str,
        receipts: Vec<(Vec<String>, ReceiptRecord)>,
    ) -> Result<Vec<ReceiptRecord>> {
        let (ids, mut records): (Vec<Vec<String>>, Vec<ReceiptRecord>) =
            receipts.into_iter().unzip();
        let stored = self.stored_segments(carrier, &ids).await?;
        for (index, record) in records.iter_mut().enumerate() {
            let segments = stored.get(&index).into_iter().flatten();
            let named = segments.map(|stored| stored.segment.id.message_id).max();
            record.transid = record.transid.or(named);
        }
        Ok(records)
    }

    /// Returns the segments of all shards that have one of the IDs, by the index of the list of
    /// IDs.
    async fn stored_segments(
        &self,
        carrier: &str,
        ids: &[Vec<String>],
    ) -> Result<HashMap<usize, Vec<StoredSegment>>> {
        let (country_code, least) = self.search_bounds();
        let all = &flat(ids);
        let finding = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            segments::stored_as(&mut conn, carrier, all, country_code, least).await
        });
        Ok(by_receipt(ids, finding.await?.concat()))
    }

    /// Tries these receipts under each other format of message IDs. Returns how many receipts would
    /// match under each format, and for each receipt the formats under which it would match. Leaves
    /// out a format under which future answers of this kind wouldn't match.
    async fn suggestions(
        &self,
        carrier: &str,
        form: MessageIdForm,
        waiting: &[WaitingReceipt],
    ) -> Result<(Vec<SuggestedForm>, HashMap<i64, Vec<(MessageIdForm, ReceiptCandidate)>>)> {
        let mut counts = Vec::new();
        let mut explained: HashMap<i64, Vec<(MessageIdForm, ReceiptCandidate)>> = HashMap::new();
        for other in MessageIdForm::ALL.into_iter().filter(|other| *other != form) {
            let possible: Vec<Vec<String>> =
                waiting.iter().map(|waiting| stored_ids(waiting, other)).collect();
            let stored = self.stored_segments(carrier, &possible).await?;
            let mut count = 0;
            for (index, waiting) in waiting.iter().enumerate() {
                let segments = stored.get(&index).map_or(&[][..], Vec::as_slice);
                let mut candidates = Vec::new();
                let mut has_fitting = false;
                let looked_up = receipt(waiting, Some(other)).message_ids;
                for StoredSegment { carrier_message_id, segment } in segments {
                    if !other.finds_new_answer(form, carrier_message_id, &looked_up) {
                        continue;
                    }
                    let is_to_number = self.is_to_number(carrier, waiting, segment);
                    has_fitting |= is_to_number && fits(waiting, segment);
                    let id = Some(carrier_message_id.as_str());
                    candidates.push((other, candidate(segment, is_to_number, id)));
                }
                count += usize::from(has_fitting);
                explained.entry(waiting.receipt).or_default().extend(candidates);
            }
            counts.push(SuggestedForm { form: other, receipts: count });
        }
        counts.retain(|suggested| suggested.receipts > 0);
        // The sort is stable: of two formats with the same count, the stricter one comes first.
        counts.sort_by_key(|suggested| std::cmp::Reverse(suggested.receipts));
        Ok((counts, explained))
    }

    /// Whether a receipt names the number that a segment is for.
    fn is_to_number(&self, carrier: &str, waiting: &WaitingReceipt, segment: &Unanswered) -> bool {
        let network = self.inner.router.network();
        network.writes_number(carrier, &segment.address, &waiting.number)
    }

    /// Returns the segments for the numbers of these receipts that were submitted to a carrier and
    /// got no answer.
    async fn unanswered(
        &self,
        carrier: &str,
        receipts: &[WaitingReceipt],
    ) -> Result<Vec<Unanswered>> {
        let (country_code, least) = self.search_bounds();
        let written: Vec<&str> = receipts
            .iter()
            .map(|waiting| &*waiting.number)
            .filter(|number| !number.is_empty())
            .collect();
        let numbers = &self.inner.router.network().numbers_meant(carrier, &written);
        let finding = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            segments::unanswered(&mut conn, carrier, numbers, country_code, least).await
        });
        Ok(finding.await?.concat())
    }

    /// Explains why a receipt matches no message. `matching` has the messages that would match
    /// under another format. `unanswered` has the messages that got no answer, to any number.
    fn explained(
        &self,
        carrier: &str,
        waiting: WaitingReceipt,
        matching: &[(MessageIdForm, ReceiptCandidate)],
        unanswered: &[Unanswered],
    ) -> ReceiptRecord {
        let network = self.inner.router.network();
        let written = Some(&*waiting.number).filter(|number| !number.is_empty());
        let numbers = network.numbers_meant(carrier, written.as_slice());
        let unanswered: Vec<&Unanswered> =
            unanswered.iter().filter(|segment| numbers.contains(&segment.address)).collect();
        let right = matching.iter().find(|(_, candidate)| candidate.is_to_number);
        let reason = match (right, matching.first(), unanswered.len()) {
            (Some((form, _)), ..) => {
                format!("{}: set message_id = \"{form}\"", form.explanation())
            }
            (None, Some((form, _)), _) => format!(
                "a message to another number has this ID if {}; ask the carrier for the format",
                form.explanation()
            ),
            (None, None, 0) => "no message of the last 7 days has this ID".to_owned(),
            (None, None, 1) => "no message has this ID. A message to this number got no answer \
                with an ID, but neither the reference nor the submit date of the receipt fits"
                .to_owned(),
            (None, None, count) => format!(
                "no message has this ID. {count} messages to this number got no answer with an ID, \
                 and the receipt doesn't say which one it is for"
            ),
        };
        let mut candidates: Vec<ReceiptCandidate> = Vec::new();
        let others = unanswered
            .iter()
            .map(|segment| candidate(segment, self.is_to_number(carrier, &waiting, segment), None));
        for one in matching.iter().map(|(_, candidate)| candidate.clone()).chain(others) {
            let is_known = |known: &ReceiptCandidate| {
                (known.transid, known.segment) == (one.transid, one.segment)
            };
            if !candidates.iter().any(is_known) {
                candidates.push(one);
            }
        }
        candidates.sort_by_key(|candidate| {
            let distance = candidate.submitted_at.ms_since(waiting.received_at).abs();
            (!candidate.is_to_number, distance)
        });
        candidates.truncate(CANDIDATES_MAX);
        let received_at = waiting.made_at();
        let id = Some(waiting.carrier_message_id).filter(|id| !id.is_empty());
        ReceiptRecord {
            received_at,
            written_id: waiting.text_id.or_else(|| waiting.parameter_id.clone()).or(id),
            parameter_id: waiting.parameter_id,
            number: waiting.number,
            state: waiting.state,
            error: waiting.error,
            outcome: ReceiptOutcome::Unmatched,
            transid: None,
            reason: Some(reason),
            candidates,
            raw: None,
        }
    }
}

/// Returns a receipt as it is under this format of message IDs.
fn receipt(waiting: &WaitingReceipt, form: Option<MessageIdForm>) -> CarrierReceipt {
    let mut ids = message_ids(waiting.text_id.as_deref(), waiting.parameter_id.as_deref(), form);
    if ids.is_empty() && !waiting.carrier_message_id.is_empty() {
        ids.push(waiting.carrier_message_id.clone());
    }
    CarrierReceipt {
        message_ids: ids,
        status: waiting.status,
        error: waiting.error.clone(),
        user_reference: waiting.user_reference,
        number: waiting.number.clone(),
        sender: waiting.sender.clone(),
        submitted_at: waiting.submitted_at,
        received_at: Some(waiting.made_at()),
        written: WrittenReceipt::default(),
    }
}

/// Returns the IDs that the receipt's segment may have if the carrier uses this format.
fn stored_ids(waiting: &WaitingReceipt, form: MessageIdForm) -> Vec<String> {
    let id = waiting.text_id.as_deref().or(waiting.parameter_id.as_deref());
    id.map(|id| form.stored_for_receipt(id)).unwrap_or_default()
}

/// Whether a receipt can be for a segment that has the same number, and whose ID matches under
/// another format.
fn fits(waiting: &WaitingReceipt, segment: &Unanswered) -> bool {
    let is_open = matches!(segment.id.status, MessageStatus::Submitted | MessageStatus::Unknown);
    is_open
        && segment.submitted_at <= waiting.received_at.plus_ms(AHEAD_MS)
        && made_at(&segment.id) <= waiting.made_at().plus_ms(NODES_DIFFER_MS)
}

fn candidate(
    segment: &Unanswered,
    is_to_number: bool,
    carrier_id: Option<&str>,
) -> ReceiptCandidate {
    ReceiptCandidate {
        transid: segment.id.message_id,
        segment: segment.id.segment,
        carrier_id: carrier_id.map(str::to_owned),
        submitted_at: segment.submitted_at,
        is_to_number,
    }
}

fn flat(ids: &[Vec<String>]) -> Vec<&str> {
    ids.iter().flatten().map(String::as_str).collect()
}

/// Groups segments by receipt. The segments were found for the IDs of all receipts in one list.
fn by_receipt(
    ids: &[Vec<String>],
    found: Vec<(usize, Unanswered)>,
) -> HashMap<usize, Vec<StoredSegment>> {
    let owners: Vec<(usize, &String)> = ids
        .iter()
        .enumerate()
        .flat_map(|(index, ids)| ids.iter().map(move |id| (index, id)))
        .collect();
    let mut stored: HashMap<usize, Vec<StoredSegment>> = HashMap::new();
    for (place, segment) in found {
        if let Some((index, id)) = owners.get(place) {
            let carrier_message_id = (*id).clone();
            stored.entry(*index).or_default().push(StoredSegment { carrier_message_id, segment });
        }
    }
    stored
}

/// Returns a receipt for staff, without its message.
fn record(row: RawReceiptRow, is_waiting: bool) -> ReceiptRecord {
    let outcome = match row.kind {
        ReceiptKind::Final if is_waiting => ReceiptOutcome::Unmatched,
        ReceiptKind::Final => ReceiptOutcome::Matched,
        ReceiptKind::Intermediate => ReceiptOutcome::Intermediate,
        ReceiptKind::UnknownState => ReceiptOutcome::UnknownState,
        ReceiptKind::AcceptedWithoutId => ReceiptOutcome::AcceptedWithoutId,
        ReceiptKind::Refused => ReceiptOutcome::Refused,
        ReceiptKind::Deferred => ReceiptOutcome::Deferred,
        ReceiptKind::Throttled => ReceiptOutcome::Throttled,
        ReceiptKind::Held => ReceiptOutcome::Held,
        ReceiptKind::UnknownOutcome => ReceiptOutcome::UnknownOutcome,
    };
    ReceiptRecord {
        received_at: row.received_at(),
        written_id: row.written_id,
        parameter_id: row.parameter_id,
        number: row.number,
        state: row.state,
        error: row.error,
        outcome,
        transid: row.message_id,
        reason: None,
        candidates: Vec::new(),
        raw: Some(row.raw),
    }
}
