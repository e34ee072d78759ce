//! Joins the parts of long messages.

use std::collections::{BTreeMap, HashSet};

use domain::ids::Shard;
use domain::inbound::{self, DefaultAlphabet, PartPosition, ReceivedPart};
use domain::{InboundId, Timestamp};

use super::Arrived;
use crate::{Delivery, run_detached};
use store::error::Result;
use store::gate::Priority;
use store::inbound::{PartsKey, StoredPart};
use store::{Chore, Tx};

/// How long after the first part of a message the others may arrive. After that, the message is
/// stored without the missing parts.
const MISSING_MS: i64 = 10 * 60 * 1000;
/// The maximum number of parts that wait for others of their message. If a handset kept sending new
/// parts with one reference, each further part would be slower to store.
const PARTS_MAX: usize = 1000;
/// The maximum number of messages that one transaction of the chore joins.
const CHUNK: i64 = 100;

impl Delivery<'_> {
    /// Joins messages some of whose parts have been missing for too long, and complete messages
    /// whose last parts two processes stored at the same time.
    pub async fn join_inbound(&self) -> Result<()> {
        let mut more = true;
        while more {
            let service = self.0.clone();
            more =
                run_detached(async move { Box::pin(service.delivery().join_due()).await }).await?;
        }
        Ok(())
    }

    /// Joins some messages. Returns whether there may be more.
    async fn join_due(&self) -> Result<bool> {
        let now = self.now();
        let store = self.store();
        let tx = store.begin_chore(Chore::JoinInbound, Shard::FIRST, Priority::Bulk).await?;
        let Some(mut tx) = tx else { return Ok(false) };
        let before = now.plus_ms(-MISSING_MS);
        let keys = store::inbound::due(&mut tx, before, CHUNK).await?;
        if keys.is_empty() {
            tx.commit().await?;
            return Ok(false);
        }
        let messages = self.join_parts(&mut tx, &keys, now).await?;
        let joined = !messages.is_empty();
        let assigned = self.assign(&mut tx, messages, false, now).await?;
        tx.commit().await?;
        self.committed(&assigned);
        Ok(joined && keys.len() as u64 == CHUNK.unsigned_abs())
    }

    /// Joins the messages that [`take_message`] finds among the parts with these keys, and deletes
    /// their parts.
    pub(super) async fn join_parts(
        &self,
        tx: &mut Tx<'_>,
        keys: &[PartsKey],
        now: Timestamp,
    ) -> Result<Vec<Arrived>> {
        let before = now.plus_ms(-MISSING_MS);
        let mut by_key: BTreeMap<PartsKey, Vec<StoredPart>> = BTreeMap::new();
        for part in store::inbound::parts(tx, keys).await? {
            by_key.entry(part.key()).or_default().push(part);
        }
        let (mut messages, mut joined) = (Vec::new(), Vec::new());
        for (key, mut parts) in by_key {
            while let Some(of_message) = take_message(&mut parts, before) {
                joined.extend(of_message.iter().map(|part| part.id));
                messages.push(arrived(InboundId(self.next_id(now)), &key, &of_message));
            }
        }
        store::inbound::drop_parts(tx, &joined).await?;
        Ok(messages)
    }
}

/// Takes the parts of the first message if they are complete, if one of them came before `before`,
/// or if more than [`PARTS_MAX`] parts wait. A handset may reuse a reference, so a second part with
/// the same sequence number belongs to the next message.
fn take_message(parts: &mut Vec<StoredPart>, before: Timestamp) -> Option<Vec<StoredPart>> {
    let total = parts.first()?.total;
    let mut seen = HashSet::new();
    let is_first = |part: &&StoredPart| seen.insert(part.sequence);
    let of_message: Vec<StoredPart> = parts.iter().filter(is_first).cloned().collect();
    let is_whole = i64::try_from(of_message.len()) == Ok(total);
    let may_wait = of_message.iter().all(|part| part.received_at >= before);
    if !is_whole && may_wait && parts.len() <= PARTS_MAX {
        return None;
    }
    let ids: HashSet<i64> = of_message.iter().map(|part| part.id).collect();
    parts.retain(|part| !ids.contains(&part.id));
    Some(of_message)
}

fn arrived(id: InboundId, key: &PartsKey, parts: &[StoredPart]) -> Arrived {
    let alphabet = parts.first().and_then(|part| DefaultAlphabet::parse(&part.alphabet));
    let alphabet = alphabet.unwrap_or_default();
    let parts: Vec<ReceivedPart> = parts.iter().map(read).collect();
    Arrived {
        id,
        carrier: key.carrier.clone(),
        number: key.number.clone(),
        recipient: key.recipient.clone(),
        text: inbound::join(&parts, alphabet),
        segments: i64::try_from(inbound::segments(&parts, alphabet)).unwrap_or(i64::MAX),
        is_whole: inbound::is_complete(&parts),
        is_repeated: false,
    }
}

/// Parses a stored part.
fn read(part: &StoredPart) -> ReceivedPart {
    let octet = |value: i64| u8::try_from(value).unwrap_or_default();
    let position = PartPosition {
        reference: u32::try_from(part.reference).unwrap_or_default(),
        total: octet(part.total),
        sequence: octet(part.sequence),
    };
    let payload = hex::decode(&part.payload).unwrap_or_default();
    ReceivedPart::parse(octet(part.esm_class), octet(part.data_coding), &payload, Some(position))
}
