//! Receipts: what carriers report of messages they took.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::ids::Shard;
use domain::timestamp::DAY_MS;
use domain::{ApplicationId, MessageStatus, Timestamp, Transid};

use crate::error::Result;
use crate::operations::nodes::Node;
use crate::store::events::{self, Event};
use crate::store::gate::Priority;
use crate::store::messages::{self, Ending};
use crate::store::segments::{self, Segment, SegmentEnding, SegmentId, Unanswered};
use crate::store::unmatched_receipts::{self, NewUnmatchedReceipt};
use crate::store::{Chore, WriteTx, carriers, queue};
use crate::{Service, run_detached};

/// How far a receipt's submit date may be from ours when nothing else tells which message the
/// receipt is for.
const SUBMIT_DATE_MS: i64 = 10 * 60 * 1000;
/// How long a receipt may be ahead of the answer to its submit. An older receipt is for another
/// message: carriers use their names again.
const AHEAD_MS: i64 = 60 * 60 * 1000;
/// How long unmatched receipts are looked at again: no transaction is open for longer, and no lease
/// lasts longer.
const CROSSED_MS: i64 = 10 * 60 * 1000;
/// How many names one transaction looks at.
const CROSSED_CHUNK: usize = 500;
/// How long receipts for unknown names and the carriers' names of segments are kept: carriers
/// report within days.
const KEPT_MS: i64 = 7 * DAY_MS;
/// The milliseconds of message ids whose segments one transaction forgets.
const FORGET_MS: i64 = 10_000;

/// Most characters of a carrier's name for a segment: a longer one doesn't fit into PostgreSQL's
/// index of names. Carriers' names have some 10 to 65.
pub const RECEIPT_NAME_CHARS_MAX: usize = 255;

/// Whether a carrier's name for a segment can be stored.
pub(crate) fn is_storable_name(name: &str) -> bool {
    // Most names are shorter in bytes, too, and needn't be counted.
    name.len() <= RECEIPT_NAME_CHARS_MAX || name.chars().count() <= RECEIPT_NAME_CHARS_MAX
}

/// A sandbox's receipt: how a message ended.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub id: Transid,
    pub application_id: ApplicationId,
    /// A final status.
    pub status: MessageStatus,
    /// Why the message wasn't delivered, in a stable word.
    pub error: Option<String>,
}

/// A carrier's receipt: how a segment ended.
#[derive(Clone, Debug)]
pub struct CarrierReceipt {
    /// The carrier's name for the segment, in each of the forms that the carrier may have given it
    /// in.
    pub names: Vec<String>,
    /// A final status.
    pub status: MessageStatus,
    /// Why the segment wasn't delivered, in a stable word.
    pub error: Option<String>,
    /// What the carrier echoes of the submit: see [`user_reference`].
    pub user_reference: Option<u16>,
    /// The number that the message was for, as the carrier was given it.
    pub number: String,
    /// The sender name, as the carrier was given it.
    pub sender: String,
    /// When the carrier took the segment, as the receipt says.
    pub submitted_at: Option<Timestamp>,
}

impl CarrierReceipt {
    /// Removes what a carrier's words can have and the database can't: NUL characters, and names of
    /// more than [`RECEIPT_NAME_CHARS_MAX`] characters. A receipt that loses its names may still
    /// find its message by what else it says.
    fn make_storable(&mut self) {
        self.names.retain(|name| is_storable_name(name));
        let texts = self.names.iter_mut().chain(&mut self.error);
        for text in texts.chain([&mut self.number, &mut self.sender]) {
            text.retain(|c| c != '\0');
        }
    }
}

/// A reference that a carrier may echo of a submit (SMPP 3.4 §5.3.2.17). With its two octets the
/// reference tells messages apart only together with the number.
pub const fn user_reference(id: Transid, segment: u16) -> u16 {
    // The low bits of an id count within a millisecond, the bits above are milliseconds.
    let [low, high, ..] = ((id.0 >> 21) ^ id.0).to_le_bytes();
    u16::from_le_bytes([low, high]) ^ segment.rotate_right(4)
}

/// How far a shard goes to find the segments of a carrier's receipts, and what it does with the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// By the carrier's names alone; the others are returned, since another shard may know them.
    Names,
    /// Likewise, but the others are kept as unmatched.
    NamesOrKeep,
    /// Also by what else a receipt says; the others are returned.
    Anything,
    /// Likewise, but the others are kept as unmatched.
    AnythingOrKeep,
}

impl Matching {
    const fn is_by_names_alone(self) -> bool {
        matches!(self, Self::Names | Self::NamesOrKeep)
    }

    const fn keeps_unmatched(self) -> bool {
        matches!(self, Self::NamesOrKeep | Self::AnythingOrKeep)
    }
}

/// A receipt and the segment that it is for.
struct Matched<'a> {
    segment: SegmentId,
    status: MessageStatus,
    error: Option<&'a str>,
}

/// A name that a receipt is kept as unmatched for, and the newest message with a segment of that
/// name.
#[derive(Clone)]
struct Crossed {
    carrier: String,
    /// The carrier's name for the segment.
    name: String,
    message_id: Transid,
    /// The shard of the message.
    shard: Shard,
}

impl Service {
    /// Makes messages final by a sandbox's receipts; durable when this returns. The charge stays
    /// whatever the receipt says. A receipt for a message that is final already goes into the
    /// message's timeline.
    pub async fn record_receipts(&self, receipts: Vec<Receipt>) -> Result<()> {
        self.end_at_shards(receipts).await
    }

    /// Makes messages final by a carrier's receipts; durable when this returns. A receipt for a
    /// name that nothing is known of is kept as unmatched: the answer to the submit may come after
    /// it.
    pub async fn record_carrier_receipts(
        &self,
        carrier: &str,
        mut receipts: Vec<CarrierReceipt>,
    ) -> Result<()> {
        receipts.iter_mut().for_each(CarrierReceipt::make_storable);
        self.match_at_shards(carrier, receipts).await
    }

    /// Writes a sandbox's receipts in a commit group.
    pub(crate) async fn write_receipts(
        &self,
        tx: &mut WriteTx<'_>,
        receipts: Vec<Receipt>,
    ) -> Result<()> {
        end(self, tx, receipts, self.now()).await
    }

    /// Writes a carrier's receipts in a commit group. Receipts for which nothing is found are
    /// unmatched, or returned to be matched in another way.
    pub(crate) async fn write_carrier_receipts(
        &self,
        tx: &mut WriteTx<'_>,
        carrier: &str,
        receipts: &[CarrierReceipt],
        matching: Matching,
    ) -> Result<Vec<CarrierReceipt>> {
        let now = self.now();
        let found = self.match_receipts(tx, carrier, receipts, matching).await?;
        let (mut matched, mut unmatched, mut count) = (Vec::new(), Vec::new(), 0);
        let mut returned = Vec::new();
        for (place, receipt) in receipts.iter().enumerate() {
            let (status, error) = (receipt.status, receipt.error.as_deref());
            if let Some(segment) = found.get(&place) {
                matched.push(Matched {
                    segment: *segment,
                    status,
                    error,
                });
            } else if !matching.keeps_unmatched() {
                returned.push(receipt.clone());
            } else if receipt.names.is_empty() {
                tracing::warn!(carrier, "a receipt that names no message is dropped");
            } else {
                count += 1;
                let names = receipt.names.iter();
                unmatched.extend(names.map(|name| NewUnmatchedReceipt {
                    name,
                    status,
                    error,
                }));
            }
        }
        let ids: Vec<Transid> = matched.iter().map(|m| m.segment.message_id).collect();
        messages::lock(tx, &ids).await?;
        apply(self, tx, &matched, now).await?;
        if count > 0 {
            if tx.must_lock() {
                for receipt in &unmatched {
                    self.inner.unmatched_names.add(carrier, receipt.name);
                }
            }
            unmatched_receipts::keep(tx, &unmatched, carrier, now).await?;
            carriers::add_unmatched(tx, carrier, count, 0).await?;
        }
        Ok(returned)
    }

    /// The segment of each receipt that has one, by the place of the receipt.
    async fn match_receipts(
        &self,
        tx: &mut WriteTx<'_>,
        carrier: &str,
        receipts: &[CarrierReceipt],
        matching: Matching,
    ) -> Result<HashMap<usize, SegmentId>> {
        let (owners, names): (Vec<usize>, Vec<&str>) = receipts
            .iter()
            .enumerate()
            .flat_map(|(place, receipt)| receipt.names.iter().map(move |n| (place, n.as_str())))
            .unzip();
        // The last segment found for a name is the newest.
        let mut found: HashMap<usize, SegmentId> = segments::named(tx, carrier, &names)
            .await?
            .into_iter()
            .map(|(place, segment)| (owners[place], segment))
            .collect();
        if matching.is_by_names_alone() {
            return Ok(found);
        }
        let (country_code, least) = self.unanswered_since();
        let open: Vec<&str> = (receipts.iter().enumerate())
            .filter(|(place, receipt)| !found.contains_key(place) && !receipt.number.is_empty())
            .map(|(_, receipt)| receipt.number.as_str())
            .collect();
        let unanswered = segments::unanswered(tx, carrier, &open, country_code, least).await?;
        for (place, receipt) in receipts.iter().enumerate() {
            if found.contains_key(&place) || unanswered.is_empty() {
                continue;
            }
            let to_it = unanswered.iter().filter(|c| c.address == receipt.number);
            let candidates: Vec<&Unanswered> = to_it.collect();
            let Some(segment) = the_one(receipt, &candidates) else {
                continue;
            };
            // The receipt may be for a message whose answer comes later, unless the receipt has
            // more than number and time.
            let (number, id) = (&receipt.number, segment.message_id);
            if receipt.user_reference.is_none()
                && segments::is_another_submitted(tx, carrier, number, country_code, id, least)
                    .await?
            {
                continue;
            }
            // The next of these receipts must not take the segment for its own.
            if !found.values().any(|other| *other == segment) {
                found.insert(place, segment);
            }
        }
        Ok(found)
    }

    /// The shard of the one message that each receipt fits by what it says besides the carrier's
    /// names, among the messages of all shards; `None` where none or several fit.
    pub(crate) async fn shards_that_fit(
        &self,
        carrier: &str,
        receipts: &[CarrierReceipt],
    ) -> Result<Vec<Option<Shard>>> {
        let (country_code, least) = self.unanswered_since();
        let numbers = receipts.iter().map(|receipt| receipt.number.as_str());
        let numbers: Vec<&str> = numbers.filter(|number| !number.is_empty()).collect();
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
            let to_it = unanswered.iter().filter(|c| c.address == receipt.number);
            let segment = the_one(receipt, &to_it.collect::<Vec<_>>());
            let shard = segment.and_then(|segment| shards_of.get(&segment.message_id).copied());
            shards.push(match (segment, shard) {
                (Some(segment), Some(shard))
                    if !self
                        .may_be_elsewhere(carrier, receipt, segment, shard)
                        .await? =>
                {
                    Some(shard)
                }
                _ => None,
            });
        }
        Ok(shards)
    }

    /// Whether a receipt with nothing but number and time may be for a message of another shard,
    /// which is being submitted now.
    async fn may_be_elsewhere(
        &self,
        carrier: &str,
        receipt: &CarrierReceipt,
        segment: SegmentId,
        shard: Shard,
    ) -> Result<bool> {
        if receipt.user_reference.is_some() {
            return Ok(false);
        }
        let (country_code, least) = self.unanswered_since();
        let (number, id) = (&receipt.number, segment.message_id);
        for other in self.shards().filter(|other| *other != shard) {
            let mut conn = self.store().read_at(other).await?;
            let asking =
                segments::is_another_submitted(&mut conn, carrier, number, country_code, id, least);
            if asking.await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The country code that carriers put before local numbers, and the least id of a message that
    /// a receipt may still be for.
    fn unanswered_since(&self) -> (&str, i64) {
        let country_code = &self.inner.router.network.country_code;
        let oldest = self.now().plus_ms(-KEPT_MS - DAY_MS);
        (country_code, domain::ids::compose_id(oldest.unix_ms(), 0))
    }

    /// Matches the receipts that were kept as unmatched for names which are known now.
    pub(crate) async fn match_unmatched(
        &self,
        tx: &mut WriteTx<'_>,
        carrier: &str,
        names: &[&str],
        now: Timestamp,
    ) -> Result<()> {
        let since = now.plus_ms(-AHEAD_MS);
        let unmatched = unmatched_receipts::take(tx, carrier, names, since).await?;
        if unmatched.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = unmatched
            .iter()
            .map(|unmatched| unmatched.name.as_str())
            .collect();
        let found: HashMap<usize, SegmentId> = segments::named(tx, carrier, &names)
            .await?
            .into_iter()
            .collect();
        let matched: Vec<_> = unmatched
            .iter()
            .enumerate()
            .filter_map(|(place, unmatched)| {
                Some(Matched {
                    segment: *found.get(&place)?,
                    status: unmatched.status,
                    error: unmatched.error.as_deref(),
                })
            })
            .collect();
        carriers::add_unmatched(tx, carrier, 0, matched.len()).await?;
        apply(self, tx, &matched, now).await
    }

    /// Matches receipts that were kept as unmatched though their segments are known; returns how
    /// many. A receipt stays unmatched when it crosses the answer to its submit: one transaction
    /// stores the name and finds no receipt, while another finds no name and keeps the receipt as
    /// unmatched, and neither sees what the other wrote. A receipt also stays unmatched when
    /// another process stores the answer by a call, which looks for the receipts of its own process
    /// alone.
    pub async fn match_crossed(&self) -> Result<usize> {
        // Where one process writes to a file, its transactions follow each other.
        let Node::Member(_) = &self.inner.node else {
            return Ok(0);
        };
        // With several shards receipts are kept as unmatched too while a shard can't be reached.
        let since = if self.only_shard().is_some() {
            CROSSED_MS
        } else {
            AHEAD_MS
        };
        let names = {
            let mut conn = self.store().read().await?;
            unmatched_receipts::names(&mut conn, self.now().plus_ms(-since)).await?
        };
        let mut matched = 0;
        for some in names.chunks(CROSSED_CHUNK) {
            let crossed = &self.crossed(some).await?;
            let matching = self.in_each_shard(|shard| async move {
                let of_shard = crossed.iter().filter(|crossed| crossed.shard == shard);
                let of_shard: Vec<Crossed> = of_shard.cloned().collect();
                if of_shard.is_empty() {
                    return Ok(0);
                }
                let service = self.clone();
                run_detached(async move { service.match_some(shard, &of_shard).await }).await
            });
            matched += matching.await?.into_iter().sum::<usize>();
        }
        Ok(matched)
    }

    /// The names that segments have, of these names, each with its carrier. Where a carrier used a
    /// name again, the newest segment counts, in whichever shard it is.
    async fn crossed(&self, names: &[(String, String)]) -> Result<Vec<Crossed>> {
        let finding = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            let mut found = Vec::new();
            for of_one in names.chunk_by(|(a, _), (b, _)| a == b) {
                let of_carrier: Vec<&str> = of_one.iter().map(|(_, name)| name.as_str()).collect();
                let segments = segments::named(&mut conn, &of_one[0].0, &of_carrier).await?;
                let segments = segments.into_iter();
                found.extend(
                    segments.map(|(place, segment)| {
                        (of_one[place].clone(), (segment.message_id, shard))
                    }),
                );
            }
            Ok(found)
        });
        let mut newest: BTreeMap<(String, String), (Transid, Shard)> = BTreeMap::new();
        for (name, found) in finding.await?.into_iter().flatten() {
            let known = newest.entry(name).or_insert(found);
            *known = found.max(*known);
        }
        let crossed = newest.into_iter();
        let crossed = crossed.map(|((carrier, name), (message_id, shard))| Crossed {
            carrier,
            name,
            message_id,
            shard,
        });
        Ok(crossed.collect())
    }

    /// Matches the receipts that are kept as unmatched for these names, which are ordered by
    /// carrier; returns how many names that are.
    async fn match_some(&self, shard: Shard, crossed: &[Crossed]) -> Result<usize> {
        let now = self.now();
        let tx = self
            .store()
            .begin_chore(Chore::MatchCrossed, shard, Priority::Results)
            .await?;
        let Some(mut tx) = tx else { return Ok(0) };
        tx.at(shard);
        let ids: Vec<Transid> = crossed.iter().map(|crossed| crossed.message_id).collect();
        messages::lock(&mut tx, &ids).await?;
        for of_one in crossed.chunk_by(|a, b| a.carrier == b.carrier) {
            let names: Vec<&str> = of_one.iter().map(|crossed| crossed.name.as_str()).collect();
            let matching = self.match_unmatched(&mut tx, &of_one[0].carrier, &names, now);
            matching.await?;
        }
        tx.commit().await?;
        Ok(crossed.len())
    }

    /// Forgets the carriers' names of segments, and unmatched receipts, after a week. Receipts that
    /// come later are kept as unmatched, and forgotten after a week too.
    pub async fn forget_segments(&self) -> Result<()> {
        self.do_chore(Chore::ForgetSegments, Priority::Bulk, |tx, now| {
            Box::pin(async move {
                let before = now.plus_ms(-KEPT_MS);
                let below = domain::ids::compose_id(before.unix_ms(), 0);
                let step = domain::ids::compose_id(domain::ids::id_unix_ms(0) + FORGET_MS, 0);
                let more = segments::forget(tx, below, step).await?;
                unmatched_receipts::forget(tx, before).await?;
                Ok(more)
            })
        })
        .await
    }
}

/// The segment that a receipt without a known name is for, if exactly one segment fits.
fn the_one(receipt: &CarrierReceipt, candidates: &[&Unanswered]) -> Option<SegmentId> {
    let echoed = |c: &&&Unanswered| {
        let reference = user_reference(c.id.message_id, c.id.segment);
        receipt.user_reference == Some(reference)
    };
    let in_time = |c: &&&Unanswered| {
        receipt
            .submitted_at
            .is_some_and(|at| at.ms_since(c.submitted_at).abs() <= SUBMIT_DATE_MS)
            && c.sender
                .as_ref()
                .is_none_or(|sender| *sender == receipt.sender)
    };
    let only = |mut fitting: Vec<&&Unanswered>| match fitting.len() {
        1 => fitting.pop().map(|candidate| candidate.id),
        _ => None,
    };
    // An echoed reference also says which messages the receipt isn't for.
    if receipt.user_reference.is_some() {
        only(candidates.iter().filter(echoed).collect())
    } else {
        only(candidates.iter().filter(in_time).collect())
    }
}

/// Makes segments final, and messages whose segments all are. A second receipt for a segment goes
/// into the timeline when it says something else than the first one.
async fn apply(
    service: &Service,
    tx: &mut WriteTx<'_>,
    matched: &[Matched<'_>],
    now: Timestamp,
) -> Result<()> {
    let mut known: HashMap<(Transid, u16), MessageStatus> = HashMap::new();
    let (mut rows, mut receipts, mut in_parts) = (Vec::new(), Vec::new(), Vec::new());
    let mut contradictions = Vec::new();
    for Matched {
        segment: id,
        status,
        error,
    } in matched
    {
        let was = known
            .entry((id.message_id, id.segment))
            .or_insert(id.status);
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
    events::insert(tx, &contradictions, now, || service.next_id(now)).await
}

fn receipt(id: SegmentId, status: MessageStatus, error: Option<String>) -> Receipt {
    Receipt {
        id: id.message_id,
        application_id: id.application_id,
        status,
        error,
    }
}

/// The messages of these segments that are final as a whole now: delivered when all segments are;
/// otherwise failed if a segment failed, else expired.
async fn whole_messages(tx: &mut WriteTx<'_>, touched: &[SegmentId]) -> Result<Vec<Receipt>> {
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

/// Makes messages final by receipts for whole messages.
async fn end(
    service: &Service,
    tx: &mut WriteTx<'_>,
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
    // A receipt that comes before the submit is recorded, or after its lease was lost, also takes
    // the message out of the queue.
    let gone: Vec<Transid> = ended.iter().map(|ended| ended.id).collect();
    queue::drop_all(tx, &gone).await?;
    let ended: HashSet<Transid> = ended.into_iter().map(|ended| ended.id).collect();
    let mut events = Vec::new();
    for receipt in receipts.iter().filter(|r| !ended.contains(&r.id)) {
        // A receipt that repeats the status is no news.
        if messages::status(tx, receipt.id).await? != Some(receipt.status) {
            events.push(late(receipt));
        }
    }
    events::insert(tx, &events, now, || service.next_id(now)).await
}

fn late(receipt: &Receipt) -> Event {
    let error = receipt.error.as_deref().unwrap_or("no error");
    Event {
        id: receipt.id,
        application_id: receipt.application_id,
        status: receipt.status,
        detail: Some(format!("late receipt: {error}")),
    }
}
