//! Receipts: the reports of carriers about accepted messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::ids::Shard;
use domain::timestamp::DAY_MS;
use domain::{ApplicationId, MessageIdForm, MessageStatus, Timestamp, Transid};

use crate::delivery::routing::Network;
use crate::transactions::work;
use crate::{Delivery, Service, run_detached};
use store::error::Result;
use store::gate::Priority;
use store::messages::{self, Ending};
use store::planted::is_planted;
use store::query::Conn;
use store::segments::{self, Segment, SegmentEnding, SegmentId, Unanswered};
use store::timeline::{self, NewEntry};
use store::unmatched_receipts::{self, NewUnmatchedReceipt};
use store::{Chore, Tx, carriers, queue, raw_receipts};

/// How much a receipt's submit date may differ from the time of our submit. Only checked for
/// receipts without a reference.
const SUBMIT_DATE_MS: i64 = 10 * 60 * 1000;
/// How much earlier than the claim of its message a receipt's submit date may be. Carriers cut off
/// the seconds, and their clocks differ from ours. A receipt with an earlier date is for another
/// message to the number.
const SUBMIT_DATE_AHEAD_MS: i64 = 2 * 60 * 1000;
/// How much the clocks of two nodes may differ when a receipt's time is compared with a message's.
pub(crate) const NODES_DIFFER_MS: i64 = 2000;
/// How much earlier than the response to its submit a receipt may arrive. An older receipt belongs
/// to another message, because carriers reuse their message IDs.
pub(super) const AHEAD_MS: i64 = 60 * 60 * 1000;
/// The age up to which [`Delivery::match_crossed`] checks unmatched receipts if there is only one
/// shard. No transaction or lease lasts longer.
pub(super) const CROSSED_MS: i64 = 10 * 60 * 1000;
/// The maximum number of carrier message IDs that one transaction matches.
const CROSSED_CHUNK: usize = 500;
/// How long unmatched receipts and segments are kept. Carriers report within days.
const KEPT_MS: i64 = 7 * DAY_MS;
/// The range of message IDs, in milliseconds, whose segments one transaction deletes.
const FORGET_MS: i64 = 10_000;
/// The number of raw receipts that one transaction deletes.
const RAW_CHUNK: i64 = 2000;

/// The maximum length of a carrier message ID in characters. Longer ones don't fit into
/// PostgreSQL's index. Carriers use 10 to 65 characters.
pub const CARRIER_MESSAGE_ID_CHARS_MAX: usize = 255;

/// Whether a carrier message ID can be stored.
pub(crate) fn is_storable_id(id: &str) -> bool {
    // Most IDs are short even in bytes, so their characters needn't be counted.
    id.len() <= CARRIER_MESSAGE_ID_CHARS_MAX || id.chars().count() <= CARRIER_MESSAGE_ID_CHARS_MAX
}

/// The final status of a whole message: a sandbox's receipt, or the result of all segments'
/// receipts.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub id: Transid,
    pub application_id: ApplicationId,
    /// A final status.
    pub status: MessageStatus,
    /// Why the message wasn't delivered, as a stable code.
    pub error: Option<String>,
}

/// A carrier's receipt: the final status of a segment.
#[derive(Clone, Debug)]
pub struct CarrierReceipt {
    /// The carrier message ID of the segment, in each form that the carrier may have used in its
    /// response to the submit.
    pub message_ids: Vec<String>,
    /// A final status.
    pub status: MessageStatus,
    /// Why the segment wasn't delivered, as a stable code.
    pub error: Option<String>,
    /// The reference that the carrier echoes from the submit, see [`user_reference`].
    pub user_reference: Option<u16>,
    /// The recipient's number, as it was submitted to the carrier.
    pub number: String,
    /// The sender name, as it was submitted to the carrier.
    pub sender: String,
    /// When the carrier accepted the segment, according to the receipt.
    pub submitted_at: Option<Timestamp>,
    /// When the receipt came. `None` unless it was kept as unmatched.
    pub received_at: Option<Timestamp>,
    pub written: WrittenReceipt,
}

/// The IDs and the state as the carrier wrote them. An unmatched receipt keeps them, so that it can
/// be matched after the setting `message_id` has been corrected.
#[derive(Clone, Debug, Default)]
pub struct WrittenReceipt {
    pub text_id: Option<String>,
    /// The ID in the parameter `receipted_message_id`.
    pub parameter_id: Option<String>,
    pub state: String,
}

/// Returns the possible carrier message IDs of a receipt. Most carriers write the ID in the
/// parameter as in their answers, and some write it as in the receipt's text, so both readings
/// count. `form` says how the two differ. Without a form, IDs are compared as written.
pub fn message_ids(
    text_id: Option<&str>,
    parameter_id: Option<&str>,
    form: Option<MessageIdForm>,
) -> Vec<String> {
    let form = form.unwrap_or(MessageIdForm::Text);
    let mut message_ids = Vec::new();
    for id in [
        parameter_id.map(|id| form.of_answer(id)),
        parameter_id.map(|id| form.of_receipt(id)),
        text_id.map(|id| form.of_receipt(id)),
    ] {
        message_ids.extend(id.filter(|id| !id.is_empty() && !message_ids.contains(id)));
    }
    message_ids
}

impl CarrierReceipt {
    /// Whether the receipt came before this time. If so, it can't be for a message that was
    /// submitted at this time or later.
    fn is_older_than(&self, time: Timestamp) -> bool {
        self.received_at.is_some_and(|at| at.plus_ms(NODES_DIFFER_MS) < time)
    }

    /// Removes text from carriers that the database can't store: NUL characters, and carrier
    /// message IDs of more than [`CARRIER_MESSAGE_ID_CHARS_MAX`] characters. A receipt that loses
    /// its IDs may still match by its other fields.
    fn make_storable(&mut self) {
        self.message_ids.retain(|id| is_storable_id(id));
        let texts = self.message_ids.iter_mut().chain(&mut self.error);
        let written = &mut self.written;
        for id in [&mut written.text_id, &mut written.parameter_id] {
            id.take_if(|id| !is_storable_id(id));
        }
        let texts = texts.chain(&mut written.text_id).chain(&mut written.parameter_id);
        for text in texts.chain([&mut self.number, &mut self.sender, &mut written.state]) {
            text.retain(|c| c != '\0');
        }
    }
}

/// Returns the reference of a submit, which a carrier may echo (SMPP 3.4 §5.3.2.17). The reference
/// has only two octets, so it identifies a message only together with the number.
pub const fn user_reference(id: Transid, segment: u16) -> u16 {
    // The low bits of an ID count within a millisecond. The bits above are milliseconds.
    let [low, high, ..] = ((id.0 >> 21) ^ id.0).to_le_bytes();
    u16::from_le_bytes([low, high]) ^ segment.rotate_right(4)
}

/// How a shard matches a carrier's receipts to segments, and whether it keeps the receipts that match
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Matches only by carrier message ID. Doesn't keep receipts that match none, since another
    /// shard may have their messages.
    ById,
    /// Matches only by carrier message ID. Keeps receipts that match none as unmatched.
    ByIdOrKeep,
    /// Also matches by the other fields. Doesn't keep receipts that match none.
    Anything,
    /// Also matches by the other fields. Keeps receipts that match none as unmatched.
    AnythingOrKeep,
}

impl Matching {
    const fn is_by_id_alone(self) -> bool {
        matches!(self, Self::ById | Self::ByIdOrKeep)
    }

    const fn keeps_unmatched(self) -> bool {
        matches!(self, Self::ByIdOrKeep | Self::AnythingOrKeep)
    }
}

/// The result of matching a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptMatch {
    Unmatched,
    /// The message. `None` if an SQL call of a commit group matched the receipt, because the call
    /// doesn't return the message.
    Matched(Option<Transid>),
}

impl ReceiptMatch {
    /// Returns the message, if it is known.
    pub const fn message(self) -> Option<Transid> {
        match self {
            Self::Matched(message) => message,
            Self::Unmatched => None,
        }
    }
}

/// A receipt and its segment.
pub(super) struct Matched<'a> {
    pub(super) segment: SegmentId,
    pub(super) status: MessageStatus,
    pub(super) error: Option<&'a str>,
}

/// The carrier message ID of an unmatched receipt, with the newest message that has a segment with
/// this ID.
#[derive(Clone)]
struct Crossed {
    carrier: String,
    /// The carrier message ID of the segment.
    carrier_message_id: String,
    message_id: Transid,
    shard: Shard,
}

impl Delivery<'_> {
    /// Makes messages final according to a sandbox's receipts. Durable when this returns. No
    /// receipt releases the charge. If a message is final already, a receipt with another status
    /// goes into its timeline.
    pub async fn record_receipts(&self, receipts: Vec<Receipt>) -> Result<()> {
        self.end_at_shards(receipts).await
    }

    /// Makes messages final according to a carrier's receipts. Durable when this returns. A receipt
    /// whose carrier message ID is unknown may match by its other fields. Otherwise it is kept as
    /// unmatched, because the response to the submit may come later. Returns what each receipt
    /// matched.
    pub async fn record_carrier_receipts(
        &self,
        carrier: &str,
        mut receipts: Vec<CarrierReceipt>,
    ) -> Result<Vec<ReceiptMatch>> {
        receipts.iter_mut().for_each(CarrierReceipt::make_storable);
        if is_planted("receipts-not-stored") {
            return Ok(vec![ReceiptMatch::Unmatched; receipts.len()]);
        }
        let counted = self.inner.figures.receipts(carrier, &receipts);
        let matches = self.match_at_shards(carrier, receipts).await?;
        self.inner.figures.add_receipts(carrier, counted, &matches);
        Ok(matches)
    }

    /// Writes a sandbox's receipts in a commit group.
    pub(crate) async fn write_receipts(
        &self,
        tx: &mut Tx<'_>,
        receipts: Vec<Receipt>,
    ) -> Result<()> {
        end(self, tx, receipts, self.now()).await
    }

    /// Writes a carrier's receipts in a commit group. `matching` says which fields count, and
    /// whether receipts without a segment are kept as unmatched. Returns what each receipt matched.
    pub(crate) async fn write_carrier_receipts(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        receipts: &[CarrierReceipt],
        matching: Matching,
    ) -> Result<Vec<ReceiptMatch>> {
        let now = self.now();
        let found = self.match_receipts(tx, carrier, receipts, matching).await?;
        let (mut matched, mut unmatched, mut count) = (Vec::new(), Vec::new(), 0);
        for (index, receipt) in receipts.iter().enumerate() {
            let (status, error) = (receipt.status, receipt.error.as_deref());
            if let Some(segment) = found.get(&index) {
                matched.push(Matched { segment: *segment, status, error });
                continue;
            }
            if !matching.keeps_unmatched() {
                // Another shard may have its message.
                continue;
            }
            if receipt.message_ids.is_empty() && receipt.number.is_empty() {
                tracing::warn!(carrier, "dropped a receipt that matches no message");
            } else {
                count += 1;
                unmatched.extend(unmatched_rows(receipt, self.next_id(now), now));
            }
        }
        let ids: Vec<Transid> = matched.iter().map(|m| m.segment.message_id).collect();
        messages::lock(tx, &ids).await?;
        apply(self, tx, &matched, now).await?;
        self.inner.unmatched_runs.count(carrier, matched.len(), count);
        if count > 0 {
            if tx.must_lock() {
                for receipt in &unmatched {
                    self.inner.unmatched_ids.add(carrier, receipt.carrier_message_id);
                }
            }
            let form = self.inner.router.network().message_id(carrier);
            let form = form.map_or("", MessageIdForm::as_str);
            unmatched_receipts::keep(tx, &unmatched, carrier, form).await?;
            carriers::add_unmatched(tx, carrier, count, 0).await?;
        }
        let matched = |index| match found.get(&index) {
            Some(segment) => ReceiptMatch::Matched(Some(segment.message_id)),
            None => ReceiptMatch::Unmatched,
        };
        Ok((0..receipts.len()).map(matched).collect())
    }

    /// Returns the segment of each receipt that has one, by the index of the receipt.
    pub(super) async fn match_receipts(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        receipts: &[CarrierReceipt],
        matching: Matching,
    ) -> Result<HashMap<usize, SegmentId>> {
        let (owners, message_ids): (Vec<usize>, Vec<&str>) = receipts
            .iter()
            .enumerate()
            .flat_map(|(index, receipt)| {
                receipt.message_ids.iter().map(move |id| (index, id.as_str()))
            })
            .unzip();
        // The last segment found for an ID is the newest.
        let mut found: HashMap<usize, SegmentId> = segments::with_ids(tx, carrier, &message_ids)
            .await?
            .into_iter()
            .map(|(index, segment)| (owners[index], segment))
            .filter(|(index, segment)| !receipts[*index].is_older_than(made_at(segment)))
            .collect();
        if matching.is_by_id_alone() {
            return Ok(found);
        }
        let (country_code, least) = self.search_bounds();
        let network = self.inner.router.network();
        let open: Vec<&str> = (receipts.iter().enumerate())
            .filter(|(index, receipt)| !found.contains_key(index) && !receipt.number.is_empty())
            .map(|(_, receipt)| receipt.number.as_str())
            .collect();
        let open = network.numbers_meant(carrier, &open);
        let unanswered = segments::unanswered(tx, carrier, &open, country_code, least).await?;
        for (index, receipt) in receipts.iter().enumerate() {
            if found.contains_key(&index) || unanswered.is_empty() {
                continue;
            }
            let Some(one) = the_one(&network, carrier, receipt, &unanswered) else {
                continue;
            };
            let segment = one.id;
            if self.may_be_another(tx, carrier, receipt, one).await? {
                continue;
            }
            // Another receipt in this call may have the segment already.
            if !found.values().any(|other| *other == segment) {
                found.insert(index, segment);
            }
        }
        Ok(found)
    }

    /// Whether another message of the shard could also be the receipt's message, although only
    /// `one` fits by number and time. The other message has no response yet, or its response had
    /// the ID in another format than the receipt. A receipt with a reference is unambiguous.
    async fn may_be_another(
        &self,
        conn: Conn<'_>,
        carrier: &str,
        receipt: &CarrierReceipt,
        one: &Unanswered,
    ) -> Result<bool> {
        if receipt.user_reference.is_some() {
            return Ok(false);
        }
        let (country_code, least) = self.search_bounds();
        let (number, id) = (&one.address, one.id.message_id);
        let is_submitted =
            segments::is_another_submitted(conn, carrier, number, country_code, id, least);
        if is_submitted.await? {
            return Ok(true);
        }
        let Some(at) = receipt.submitted_at else { return Ok(false) };
        let times = (at.plus_ms(-SUBMIT_DATE_MS), at.plus_ms(SUBMIT_DATE_MS));
        segments::is_another_named(conn, carrier, number, (country_code, least), times).await
    }

    /// Finds the shard of each receipt's message by the fields other than the carrier message ID.
    /// Returns `None` for a receipt if no message of any shard fits, or several do.
    pub(crate) async fn shards_that_fit(
        &self,
        carrier: &str,
        receipts: &[CarrierReceipt],
    ) -> Result<Vec<Option<Shard>>> {
        let (country_code, least) = self.search_bounds();
        let network = self.inner.router.network();
        let numbers = receipts.iter().map(|receipt| receipt.number.as_str());
        let numbers: Vec<&str> = numbers.filter(|number| !number.is_empty()).collect();
        let numbers = network.numbers_meant(carrier, &numbers);
        let (mut unanswered, mut shards_of) = (Vec::new(), HashMap::new());
        for shard in self.shards() {
            let mut conn = self.store().read_at(shard).await?;
            let found = segments::unanswered(&mut conn, carrier, &numbers, country_code, least);
            for segment in found.await? {
                shards_of.insert(segment.id.message_id, shard);
                unanswered.push(segment);
            }
        }
        let mut shards = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            let one = the_one(&network, carrier, receipt, &unanswered);
            let shard = one.and_then(|one| shards_of.get(&one.id.message_id).copied());
            shards.push(match (one, shard) {
                (Some(one), Some(shard))
                    if !self.may_be_elsewhere(carrier, receipt, one, shard).await? =>
                {
                    Some(shard)
                }
                _ => None,
            });
        }
        Ok(shards)
    }

    /// Like [`Self::may_be_another`], for the messages of all other shards.
    async fn may_be_elsewhere(
        &self,
        carrier: &str,
        receipt: &CarrierReceipt,
        segment: &Unanswered,
        shard: Shard,
    ) -> Result<bool> {
        for other in self.shards().filter(|other| *other != shard) {
            let mut conn = self.store().read_at(other).await?;
            if self.may_be_another(&mut conn, carrier, receipt, segment).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the bounds of a search for a receipt's segment. They are the country code that
    /// carriers put before local numbers, and the smallest ID of a message that may still get a
    /// receipt.
    pub(super) fn search_bounds(&self) -> (&str, i64) {
        let country_code = &self.inner.router.country_code;
        let oldest = self.now().plus_ms(-KEPT_MS - DAY_MS);
        (country_code, domain::ids::compose_id(oldest.unix_ms(), 0))
    }

    /// Matches unmatched receipts whose carrier message IDs are known now. Returns the statuses
    /// that the matched ones report, which the caller counts after the commit.
    pub(crate) async fn match_unmatched(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        message_ids: &[&str],
        now: Timestamp,
    ) -> Result<Vec<MessageStatus>> {
        let since = now.plus_ms(-AHEAD_MS);
        let unmatched = unmatched_receipts::take(tx, carrier, message_ids, since).await?;
        if unmatched.is_empty() {
            return Ok(Vec::new());
        }
        let message_ids: Vec<&str> =
            unmatched.iter().map(|unmatched| unmatched.carrier_message_id.as_str()).collect();
        let found: HashMap<usize, SegmentId> = segments::with_ids(tx, carrier, &message_ids)
            .await?
            .into_iter()
            // If the carrier has reused the ID, an earlier receipt is for an earlier message.
            .filter(|(index, segment)| {
                let received_at = unmatched[*index].received_at();
                received_at.plus_ms(NODES_DIFFER_MS) >= made_at(segment)
            })
            .collect();
        let matched: Vec<_> = unmatched
            .iter()
            .enumerate()
            .filter_map(|(index, unmatched)| {
                Some(Matched {
                    segment: *found.get(&index)?,
                    status: unmatched.status,
                    error: unmatched.error.as_deref(),
                })
            })
            .collect();
        carriers::add_unmatched(tx, carrier, 0, matched.len()).await?;
        self.inner.unmatched_runs.count(carrier, matched.len(), 0);
        apply(self, tx, &matched, now).await?;
        Ok(matched.iter().map(|matched| matched.status).collect())
    }

    /// Matches unmatched receipts whose segments are known. Returns the number of their carrier
    /// message IDs.
    ///
    /// A receipt stays unmatched if it is stored at the same time as the response to its submit.
    /// The transaction that stores the response finds no receipt. The transaction that stores the
    /// receipt finds no such carrier message ID and keeps the receipt as unmatched. Neither sees
    /// the other's rows: the two have crossed. A receipt also stays unmatched if another process
    /// stores the response by an SQL call: such a call matches no unmatched receipts, and each
    /// process knows only the IDs of its own ones.
    pub async fn match_crossed(&self) -> Result<usize> {
        // On SQLite, transactions run one after the other, so a receipt and a response can't cross.
        if !self.store().dialect().is_shared() {
            return Ok(0);
        }
        // With several shards, receipts are also kept as unmatched while a shard is unreachable.
        let since = if self.only_shard().is_some() { CROSSED_MS } else { AHEAD_MS };
        let message_ids = unmatched_receipts::carrier_message_ids(
            &mut self.store().read().await?,
            self.now().plus_ms(-since),
        )
        .await?;
        let mut matched = 0;
        for some in message_ids.chunks(CROSSED_CHUNK) {
            let crossed = &self.crossed(some).await?;
            let matching = self.in_each_shard(|shard| async move {
                let of_shard = crossed.iter().filter(|crossed| crossed.shard == shard);
                let of_shard: Vec<Crossed> = of_shard.cloned().collect();
                if of_shard.is_empty() {
                    return Ok(0);
                }
                let service = self.0.clone();
                run_detached(async move { service.delivery().match_some(shard, &of_shard).await })
                    .await
            });
            matched += matching.await?.into_iter().sum::<usize>();
        }
        Ok(matched)
    }

    /// Returns the carrier message IDs in `message_ids` that a segment has, each with its carrier
    /// and message. If a carrier reused an ID, the newest segment of all shards counts.
    async fn crossed(&self, message_ids: &[(String, String)]) -> Result<Vec<Crossed>> {
        let finding =
            self.in_each_shard(|shard| async move {
                let mut conn = self.store().read_at(shard).await?;
                let mut found = Vec::new();
                for of_one in message_ids.chunk_by(|(a, _), (b, _)| a == b) {
                    let of_carrier: Vec<&str> = of_one.iter().map(|(_, id)| id.as_str()).collect();
                    let segments = segments::with_ids(&mut conn, &of_one[0].0, &of_carrier).await?;
                    let segments = segments.into_iter();
                    found.extend(segments.map(|(index, segment)| {
                        (of_one[index].clone(), (segment.message_id, shard))
                    }));
                }
                Ok(found)
            });
        let mut newest: BTreeMap<(String, String), (Transid, Shard)> = BTreeMap::new();
        for (id, found) in finding.await?.into_iter().flatten() {
            let known = newest.entry(id).or_insert(found);
            *known = found.max(*known);
        }
        let crossed = newest.into_iter();
        let crossed = crossed.map(|((carrier, carrier_message_id), (message_id, shard))| Crossed {
            carrier,
            carrier_message_id,
            message_id,
            shard,
        });
        Ok(crossed.collect())
    }

    /// Matches the unmatched receipts with these carrier message IDs, which are ordered by carrier.
    /// Returns the number of IDs.
    async fn match_some(&self, shard: Shard, crossed: &[Crossed]) -> Result<usize> {
        let now = self.now();
        let tx = self.store().begin_chore(Chore::MatchCrossed, shard, Priority::Results).await?;
        let Some(mut tx) = tx else { return Ok(0) };
        tx.at(shard);
        let ids: Vec<Transid> = crossed.iter().map(|crossed| crossed.message_id).collect();
        messages::lock(&mut tx, &ids).await?;
        let mut matched = Vec::new();
        for of_one in crossed.chunk_by(|a, b| a.carrier == b.carrier) {
            let message_ids: Vec<&str> =
                of_one.iter().map(|crossed| crossed.carrier_message_id.as_str()).collect();
            let carrier = of_one[0].carrier.as_str();
            let statuses = self.match_unmatched(&mut tx, carrier, &message_ids, now).await?;
            matched.push((carrier, statuses));
        }
        tx.commit().await?;
        for (carrier, statuses) in matched {
            self.inner.figures.add_matched(carrier, statuses);
        }
        Ok(crossed.len())
    }

    /// Deletes segments, with their carrier message IDs, and unmatched receipts after a week.
    /// Deletes raw receipts after the days of the setting `raw_receipts_days`, and no later than
    /// texts. A receipt that comes after its segment was deleted is kept as unmatched for a week.
    pub async fn forget_segments(&self) -> Result<()> {
        self.do_chore(
            Chore::ForgetSegments,
            Priority::Bulk,
            work!(|tx, now| {
                let before = now.plus_ms(-KEPT_MS);
                let below = domain::ids::compose_id(before.unix_ms(), 0);
                let step = domain::ids::compose_id(domain::ids::id_unix_ms(0) + FORGET_MS, 0);
                let more = segments::forget(tx, below, step).await?;
                unmatched_receipts::forget(tx, before).await?;
                Ok(more)
            }),
        )
        .await?;
        let limits = self.limits();
        let days = limits.days_with_text(limits.raw_receipts_days);
        self.do_chore_at(
            Shard::FIRST,
            Chore::ForgetSegments,
            Priority::Bulk,
            work!(|tx, now| {
                raw_receipts::forget(tx, now.plus_ms(-days * DAY_MS), RAW_CHUNK).await
            }),
        )
        .await
    }
}

/// Returns a row for each carrier message ID that a receipt may mean, or one without an ID.
pub(super) fn unmatched_rows(
    receipt: &CarrierReceipt,
    receipt_id: i64,
    received_at: Timestamp,
) -> impl Iterator<Item = NewUnmatchedReceipt<'_>> {
    let ids = receipt.message_ids.iter().map(String::as_str);
    let none = receipt.message_ids.is_empty().then_some("");
    ids.chain(none).map(move |id| NewUnmatchedReceipt {
        receipt: receipt_id,
        carrier_message_id: id,
        status: receipt.status,
        error: receipt.error.as_deref(),
        text_id: receipt.written.text_id.as_deref(),
        parameter_id: receipt.written.parameter_id.as_deref(),
        state: &receipt.written.state,
        number: &receipt.number,
        sender: &receipt.sender,
        user_reference: receipt.user_reference,
        submitted_at: receipt.submitted_at,
        received_at,
    })
}

/// Returns the time in the ID of a segment's message: when the message was accepted or, for a
/// scheduled batch, when the batch began.
pub(super) const fn made_at(segment: &SegmentId) -> Timestamp {
    Timestamp::from_unix_ms(domain::ids::id_unix_ms(segment.message_id.0))
}

/// Returns the segment of a receipt without a known carrier message ID, if exactly one segment
/// fits. A segment never fits if its message was claimed after the receipt came. Without a
/// reference, it doesn't fit either if its message was claimed after the receipt's submit date.
/// Both rules allow for clocks that differ.
fn the_one<'a>(
    network: &Network,
    carrier: &str,
    receipt: &CarrierReceipt,
    unanswered: &'a [Unanswered],
) -> Option<&'a Unanswered> {
    let echoed = |c: &Unanswered| {
        let reference = user_reference(c.id.message_id, c.id.segment);
        receipt.user_reference == Some(reference)
    };
    let has_sender = |c: &Unanswered| {
        let mut sender = c.sender.iter();
        sender.all(|sender| network.writes_sender(carrier, sender, &receipt.sender))
    };
    let in_time = |c: &Unanswered| {
        let is_close = |at: Timestamp| {
            at.ms_since(c.submitted_at).abs() <= SUBMIT_DATE_MS
                && at.plus_ms(SUBMIT_DATE_AHEAD_MS) >= c.sending_at
        };
        receipt.submitted_at.is_some_and(is_close) && has_sender(c)
    };
    // `meant` has few numbers, so the other checks run on few segments.
    let meant = network.numbers_meant(carrier, &[receipt.number.as_str()]);
    let mut fitting = unanswered.iter().filter(|c| {
        meant.contains(&c.address)
            && network.writes_number(carrier, &c.address, &receipt.number)
            && !receipt.is_older_than(c.sending_at)
            // If the receipt echoes a reference, segments with another reference don't fit.
            && if receipt.user_reference.is_some() { echoed(c) } else { in_time(c) }
    });
    fitting.next().filter(|_| fitting.next().is_none())
}

/// Makes segments final, and messages whose segments are all final. A second receipt for a segment
/// goes into the timeline if it contradicts the first.
pub(super) async fn apply(
    service: &Service,
    tx: &mut Tx<'_>,
    matched: &[Matched<'_>],
    now: Timestamp,
) -> Result<()> {
    let mut known: HashMap<(Transid, u16), MessageStatus> = HashMap::new();
    let (mut rows, mut receipts, mut in_parts) = (Vec::new(), Vec::new(), Vec::new());
    let mut contradictions = Vec::new();
    for Matched { segment: id, status, error } in matched {
        let was = known.entry((id.message_id, id.segment)).or_insert(id.status);
        if was.is_final() {
            if was != status {
                contradictions.push(late(&receipt(*id, *status, error.map(str::to_owned))));
            }
            continue;
        }
        *was = *status;
        rows.push(SegmentEnding {
            message_id: id.message_id,
            segment: id.segment,
            status: *status,
            error: *error,
        });
        if id.segments > 1 {
            in_parts.push(*id);
        } else {
            receipts.push(receipt(*id, *status, error.map(str::to_owned)));
        }
    }
    segments::finish(tx, &rows).await?;
    receipts.extend(whole_messages(tx, &in_parts).await?);
    end(service, tx, receipts, now).await?;
    timeline::insert(tx, &contradictions, now, || service.next_id(now)).await
}

fn receipt(id: SegmentId, status: MessageStatus, error: Option<String>) -> Receipt {
    Receipt { id: id.message_id, application_id: id.application_id, status, error }
}

/// Returns the messages that are final now because all of their segments are. A message is
/// delivered if all segments are. Otherwise it has failed if a segment failed, else it has expired.
async fn whole_messages(tx: &mut Tx<'_>, touched: &[SegmentId]) -> Result<Vec<Receipt>> {
    let messages: HashMap<Transid, SegmentId> =
        touched.iter().map(|s| (s.message_id, *s)).collect();
    let ids: Vec<Transid> = messages.keys().copied().collect();
    let mut found: HashMap<Transid, Vec<Segment>> = HashMap::new();
    for segment in segments::of(tx, &ids).await? {
        found.entry(segment.message_id).or_default().push(segment);
    }
    let ended = found.into_iter().filter_map(|(id, segments)| {
        let all = segments.len() == usize::from(segments.first()?.segments);
        if !all || !segments.iter().all(|segment| segment.status.is_final()) {
            return None;
        }
        let worst = [MessageStatus::Failed, MessageStatus::Expired]
            .into_iter()
            .find_map(|status| segments.iter().find(|segment| segment.status == status));
        let (status, error) = worst.map_or((MessageStatus::Delivered, None), |segment| {
            (segment.status, segment.error.clone())
        });
        Some(receipt(*messages.get(&id)?, status, error))
    });
    Ok(ended.collect())
}

/// Makes messages final according to receipts for whole messages.
async fn end(
    service: &Service,
    tx: &mut Tx<'_>,
    receipts: Vec<Receipt>,
    now: Timestamp,
) -> Result<()> {
    if receipts.is_empty() {
        return Ok(());
    }
    let endings: Vec<_> = receipts
        .iter()
        .map(|r| Ending {
            id: r.id,
            status: r.status,
            error: r.error.clone(),
            release: false,
            taken: true,
        })
        .collect();
    let ended = messages::finish(tx, &endings, now).await?;
    // If a receipt comes before the answer is stored, or after the lease has ended, the message is
    // still in the queue.
    let gone: Vec<Transid> = ended.iter().map(|ended| ended.id).collect();
    queue::drop_all(tx, &gone).await?;
    let ended: HashSet<Transid> = ended.into_iter().map(|ended| ended.id).collect();
    let mut entries = Vec::new();
    for receipt in receipts.iter().filter(|r| !ended.contains(&r.id)) {
        // A receipt that repeats the status adds nothing to the timeline.
        if messages::status(tx, receipt.id).await? != Some(receipt.status) {
            entries.push(late(receipt));
        }
    }
    timeline::insert(tx, &entries, now, || service.next_id(now)).await
}

fn late(receipt: &Receipt) -> NewEntry {
    let error = receipt.error.as_deref().unwrap_or("no error");
    NewEntry {
        id: receipt.id,
        application_id: receipt.application_id,
        status: receipt.status,
        detail: Some(format!("late receipt: {error}")),
    }
}
