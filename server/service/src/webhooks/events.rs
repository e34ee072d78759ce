//! The list of events that programs poll, and the data of events.

use std::collections::HashMap;

use domain::records::{BatchRecord, MessageRecord};
use domain::{
    BatchId, EventId, EventStream, EventType, InboundId, InboundRecord, Money, Reference,
    Timestamp, Transid,
};

use crate::Webhooks;
use crate::admission::KeyAccess;
use crate::reports::first_id;
use crate::transactions::work;
use store::error::{Refusal, Result};
use store::events::{self, StoredEvent, StreamState};
use store::query::Conn;
use store::{batches, inbound, reports};

const PAGE_MAX: i64 = 1000;
/// The maximum number of events that one call reads. If a filter leaves out most of them, the page
/// has few events or none, and its cursor continues behind them.
const READ_MAX: i64 = 10_000;

/// Selects events of a list.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only events of these types. `None` means all.
    pub types: Option<Vec<EventType>>,
    /// Only events at or after this time.
    pub from: Option<Timestamp>,
    /// Only events before this time.
    pub to: Option<Timestamp>,
    /// The maximum number of events on the page, 1 to 1,000.
    pub limit: i64,
    /// The `next` of an earlier page.
    pub cursor: Option<String>,
}

/// A page of events, oldest first.
#[derive(Debug)]
pub struct EventPage {
    pub events: Vec<EventRecord>,
    /// The cursor of the events that follow. It stays valid at the end of the list.
    pub next: String,
    /// Since when the events of messages are stored.
    pub since: Timestamp,
}

#[derive(Clone, Debug)]
pub struct EventRecord {
    pub id: EventId,
    pub kind: EventType,
    pub at: Timestamp,
    pub data: EventData,
}

/// The data of an event, by its type.
#[derive(Clone, Debug)]
pub enum EventData {
    /// The message as it was when the event happened.
    Message(Box<MessageRecord>),
    Batch(Box<BatchRecord>),
    Inbound(Box<InboundRecord>),
    /// JSON.
    Other(String),
}

impl Webhooks<'_> {
    /// Returns a page of the events that a key sees, oldest first. The first call makes the service
    /// store the events of messages from then on.
    ///
    /// # Errors
    /// `InvalidCursor`, `CursorTooOld`.
    pub async fn events(&self, access: &KeyAccess, filter: &EventFilter) -> Result<EventPage> {
        let (stream, reference) = (access.stream(), access.reference);
        let (state, since) = self.kept(stream, reference).await?;
        let after = match &filter.cursor {
            Some(cursor) => {
                let id = EventId::parse(cursor)
                    .filter(|id| id.reference == reference && id.test == stream.test)
                    .ok_or(Refusal::InvalidCursor)?;
                if id.number < state.dropped_id {
                    return Err(Refusal::CursorTooOld.into());
                }
                id.number
            }
            None => 0,
        };
        let from = after.max(filter.from.map_or(0, |from| first_id(from) - 1));
        let below = filter.to.map_or(i64::MAX, first_id);
        let mut conn = self.read_of(reference).await?;
        let limit = filter.limit.clamp(1, PAGE_MAX);
        let (found, next) = filtered(&mut conn, stream, (from, below), limit, filter).await?;
        let events = described(&mut conn, stream, reference, found).await?;
        // At the end of the list, the cursor skips the events that `from` and the retention leave
        // out. It never skips an event that isn't committed yet.
        let end = || after.max(state.dropped_id).max(state.last_id.min(below - 1));
        let number = next.unwrap_or_else(end);
        let next = EventId { number, reference, test: stream.test };
        Ok(EventPage { events, next: next.to_string(), since })
    }

    /// Makes the service store the events of a stream's messages, if it doesn't yet. Returns the
    /// stream's state, and the time since which these events are stored.
    pub(super) async fn kept(
        &self,
        stream: EventStream,
        reference: Reference,
    ) -> Result<(StreamState, Timestamp)> {
        let shard = self.shard_of(reference).await?;
        let state = events::stream(&mut self.store().read_at(shard).await?, stream).await?;
        if let Some((state, since)) = state.and_then(|state| Some((state, state.since?))) {
            return Ok((state, since));
        }
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                events::keep_since(tx, stream, now).await?;
                let state = events::stream(tx, stream).await?.unwrap_or_default();
                Ok((state, state.since.unwrap_or(now)))
            }),
        )
        .await
    }
}

/// Returns the first events between two IDs that the filter selects, and the ID of the last event
/// that was read.
async fn filtered(
    conn: Conn<'_>,
    stream: EventStream,
    (mut after, below): (i64, i64),
    limit: i64,
    filter: &EventFilter,
) -> Result<(Vec<StoredEvent>, Option<i64>)> {
    let (mut found, mut last, mut read) = (Vec::new(), None, 0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    while found.len() < limit && read < READ_MAX {
        let page = events::page(conn, stream, (after, below), PAGE_MAX).await?;
        let is_last = (page.len() as u64) < PAGE_MAX.unsigned_abs();
        read += PAGE_MAX;
        for event in page {
            if found.len() == limit {
                return Ok((found, last));
            }
            after = event.id;
            last = Some(event.id);
            if filter.types.as_ref().is_none_or(|types| types.contains(&event.kind)) {
                found.push(event);
            }
        }
        if is_last {
            break;
        }
    }
    Ok((found, last))
}

/// Adds the data to events. Leaves out events whose message, batch or inbound message was deleted.
pub(super) async fn described(
    conn: Conn<'_>,
    stream: EventStream,
    reference: Reference,
    found: Vec<StoredEvent>,
) -> Result<Vec<EventRecord>> {
    let of_messages = found.iter().filter(|event| event.kind.status().is_some());
    let ids: Vec<Transid> = of_messages.filter_map(|event| event.subject.map(Transid)).collect();
    let rows = reports::by_ids(conn, &ids).await?;
    let messages: HashMap<i64, MessageRecord> =
        rows.into_iter().map(|row| (row.record.transid.0, row.record)).collect();
    let received = found.iter().filter(|event| event.kind == EventType::Received);
    let ids: Vec<InboundId> = received.filter_map(|event| event.subject.map(InboundId)).collect();
    let rows = inbound::by_ids(conn, &ids).await?;
    let mut inbound: HashMap<i64, InboundRecord> =
        rows.into_iter().map(|row| (row.inboundid.0, row)).collect();
    let mut events = Vec::with_capacity(found.len());
    for StoredEvent { id, kind, subject, data } in found {
        let data = match (kind, subject) {
            (EventType::BatchDone, Some(batch)) => {
                let EventStream { application_id, test } = stream;
                let batch = batches::one(conn, application_id, test, BatchId(batch)).await?;
                batch.map(|batch| EventData::Batch(Box::new(batch)))
            }
            (EventType::Received, Some(id)) => {
                inbound.remove(&id).map(|message| EventData::Inbound(Box::new(message)))
            }
            (_, Some(message)) if kind.status().is_some() => {
                let record = messages.get(&message).cloned();
                record.map(|record| EventData::Message(Box::new(as_of(kind, record))))
            }
            _ => data.map(EventData::Other),
        };
        let id = EventId { number: id, reference, test: stream.test };
        let at = Timestamp::from_unix_ms(domain::ids::id_unix_ms(id.number));
        events.extend(data.map(|data| EventRecord { id, kind, at, data }));
    }
    Ok(events)
}

/// Returns a message as it was when it got the status of an event. A final message never changes,
/// and a submitted one wasn't final.
fn as_of(kind: EventType, mut record: MessageRecord) -> MessageRecord {
    if let (EventType::Submitted, Some(status)) = (kind, kind.status()) {
        record.status = status;
        record.error = None;
        record.final_at = None;
        record.released = Money::ZERO;
    }
    record
}
