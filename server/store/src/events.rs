//! Events, which customers' programs poll and endpoints get. The events of an application and a
//! kind of key are a stream. A transaction that adds to a stream holds the lock on the stream's row
//! until it commits. So the IDs grow in the order of the commits, and a reader that has seen an ID
//! has missed no smaller ID.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::{Shard, compose_id};
use domain::{ApplicationId, BatchId, EventStream, EventType, Timestamp};
use serde::Deserialize;

use super::query::{At, Conn, Row, query};
use super::row::{self, from_row, touched};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const OPEN: Sql = Sql::in_shard(r"
        INSERT INTO event_streams (application_id, test, last_id, dropped_id{, shard})
        {values int int 0 0 shard} ON CONFLICT DO NOTHING");
    /// `$1` is `[[application, test]]`.
    const LOCK: Sql = Sql {
        sqlite: r"
            SELECT application_id, test, last_id, since
            FROM event_streams WHERE application_id = ?1 AND test = ?2",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                application_id, test, last_id, since)), '[]')::text AS found
            FROM (
                SELECT s.* FROM event_streams s
                WHERE s.shard = $2 AND (s.application_id, s.test) IN (
                    SELECT (value ->> 0)::bigint, (value ->> 1)::bigint
                    FROM jsonb_array_elements($1::text::jsonb))
                ORDER BY s.application_id, s.test FOR NO KEY UPDATE) l",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[batch]]`.
    const DONE: Sql = Sql {
        sqlite: "SELECT id FROM batches WHERE id = ?1 AND open = 0",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(id) ORDER BY id), '[]')::text AS found
            FROM batches WHERE id = ANY (
                ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb)))
              AND shard = $2 AND open = 0",
        ..Sql::IN_SHARD
    };
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO events (application_id, test, id, type, subject, data{, shard})
        {values int int int int int text shard}");
    /// `$1` is `[[application, test, ID of the newest event]]`.
    const ADVANCE: Sql = Sql {
        sqlite: "UPDATE event_streams SET last_id = ?3 WHERE application_id = ?1 AND test = ?2",
        postgres: r"
            UPDATE event_streams s SET last_id = (r.value ->> 2)::bigint
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE s.application_id = (r.value ->> 0)::bigint AND s.test = (r.value ->> 1)::bigint
              AND s.shard = $2",
        ..Sql::IN_SHARD
    };
    /// Makes the endpoints of the streams due. `$1` is `[[application, test]]`.
    const WAKE: Sql = Sql {
        sqlite: r"
            UPDATE webhooks SET due_at = ?3
            WHERE application_id = ?1 AND test = ?2 AND due_at > ?3 AND disabled_at IS NULL",
        postgres: r"
            UPDATE webhooks w SET due_at = $2
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE w.application_id = (r.value ->> 0)::bigint AND w.test = (r.value ->> 1)::bigint
              AND w.due_at > $2 AND w.disabled_at IS NULL AND w.shard = $3",
        ..Sql::IN_SHARD
    };
    const STREAM: Sql = Sql::in_shard(r"
        SELECT last_id, dropped_id, since
        FROM event_streams WHERE application_id = $1 AND test = $2{ AND shard = $shard}");
    const KEEP_SINCE: Sql = Sql::in_shard(r"
        UPDATE event_streams SET since = COALESCE(since, $3)
        WHERE application_id = $1 AND test = $2{ AND shard = $shard}");
    const PAGE: Sql = Sql::in_shard(r"
        SELECT id, type, subject, data FROM events
        WHERE application_id = $1 AND test = $2 AND id > $3 AND id < $4{ AND shard = $shard}
        ORDER BY id LIMIT $5");
    /// Streams that have events below `$1`.
    const OUTDATED: Sql = Sql::in_shard(r"
        SELECT s.application_id, s.test FROM event_streams s WHERE EXISTS (
            SELECT 1 FROM events e
            WHERE e.application_id = s.application_id AND e.test = s.test
              AND e.id < $1{ AND e.shard = $shard}) AND s.test = $2{ AND s.shard = $shard}
          ORDER BY s.application_id LIMIT $3");
    const DROPPED: Sql = Sql::in_shard(r"
        UPDATE event_streams SET dropped_id = $3
        WHERE application_id = $1 AND test = $2{ AND shard = $shard}");
    const DROP: Sql = Sql::in_shard(r"
        DELETE FROM events
        WHERE application_id = $1 AND test = $2 AND id <= $3{ AND shard = $shard}");
}

/// The events that a transaction causes. The transaction writes them just before its commit,
/// because other transactions can't add to the same streams until then.
pub struct NewEvents {
    /// Changed messages and inbound messages by ID, with their streams. Their events are stored
    /// only if the stream keeps events of messages.
    messages: Vec<(EventStream, EventType, i64)>,
    /// Other events, by shard. A transaction may credit deposits in several shards.
    others: BTreeMap<Option<Shard>, Vec<NewEvent>>,
}

type NewEvent = (EventStream, EventType, String);

/// A stream, locked until the transaction ends.
#[derive(Deserialize)]
struct Locked {
    application_id: ApplicationId,
    test: i64,
    last_id: i64,
    since: Option<i64>,
}

impl NewEvents {
    pub(crate) const fn none() -> Self {
        Self { messages: Vec::new(), others: BTreeMap::new() }
    }

    pub(crate) fn of_message(&mut self, stream: EventStream, kind: EventType, id: i64) {
        self.messages.push((stream, kind, id));
    }

    /// Adds an event that isn't about a message to streams. `data` is JSON.
    pub(crate) fn of_streams(
        &mut self,
        shard: Option<Shard>,
        streams: &[EventStream],
        kind: EventType,
        data: &str,
    ) {
        let events = streams.iter().map(|stream| (*stream, kind, data.to_owned()));
        self.others.entry(shard).or_default().extend(events);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.others.is_empty()
    }

    /// Writes the events. `batches` are the batches with messages that have become final.
    pub(crate) async fn write(
        self,
        conn: Conn<'_>,
        batches: &[(EventStream, BatchId)],
        now: Timestamp,
    ) -> Result<()> {
        let Self { messages, mut others } = self;
        let own = others.remove(&conn.shard()).unwrap_or_default();
        write(conn, &messages, batches, own, now).await?;
        for (shard, events) in others {
            let shard = shard.unwrap_or(Shard::FIRST);
            write(&mut At { conn: &mut *conn, shard }, &[], &[], events, now).await?;
        }
        Ok(())
    }
}

/// Writes the events of a shard.
async fn write(
    conn: Conn<'_>,
    messages: &[(EventStream, EventType, i64)],
    batches: &[(EventStream, BatchId)],
    others: Vec<NewEvent>,
    now: Timestamp,
) -> Result<()> {
    let mut touching: BTreeSet<_> = others.iter().map(|(stream, ..)| *stream).collect();
    if !touching.is_empty() {
        query(OPEN, ()).execute_each(conn, touching.iter().map(columns)).await?;
    }
    touching.extend(messages.iter().map(|(stream, ..)| *stream));
    touching.extend(batches.iter().map(|(stream, _)| *stream));
    let locking = query(LOCK, ());
    let locked: Vec<Locked> =
        locking.find_each(conn, touching.iter().map(columns), "event_streams").await?;
    let keeping: BTreeSet<_> =
        locked.iter().filter(|stream| stream.since.is_some()).map(Locked::stream).collect();
    let mut rows = Rows::of(&locked, now);
    for (stream, kind, id) in messages.iter().filter(|(stream, ..)| keeping.contains(stream)) {
        rows.push(*stream, *kind, Some(*id), None);
    }
    let kept = batches.iter().filter(|(stream, _)| keeping.contains(stream));
    let streams: BTreeMap<_, _> = kept.map(|(stream, id)| (*id, *stream)).collect();
    let finding = query(DONE, ());
    let done: Vec<(i64,)> = finding.find_each(conn, streams.keys().copied(), "batches").await?;
    for (id,) in done {
        if let Some(stream) = streams.get(&BatchId(id)) {
            rows.push(*stream, EventType::BatchDone, Some(id), None);
        }
    }
    for (stream, kind, data) in others {
        rows.push(stream, kind, None, Some(data));
    }
    rows.write(conn, now).await
}

impl Locked {
    const fn stream(&self) -> EventStream {
        EventStream { application_id: self.application_id, test: self.test == 1 }
    }
}

/// The columns of an event: application, test, ID, type, subject, data.
type EventColumns = (ApplicationId, bool, i64, i64, Option<i64>, Option<String>);

/// The rows of new events.
struct Rows {
    /// The ID of the last event of each stream.
    last: BTreeMap<EventStream, i64>,
    /// The first ID of this millisecond.
    first: i64,
    new: Vec<EventColumns>,
}

impl Rows {
    fn of(locked: &[Locked], now: Timestamp) -> Self {
        Self {
            last: locked.iter().map(|stream| (stream.stream(), stream.last_id)).collect(),
            first: compose_id(now.unix_ms(), 0),
            new: Vec::new(),
        }
    }

    fn push(
        &mut self,
        stream: EventStream,
        kind: EventType,
        subject: Option<i64>,
        data: Option<String>,
    ) {
        let last = self.last.entry(stream).or_default();
        *last = self.first.max(*last + 1);
        self.new.push((stream.application_id, stream.test, *last, kind.code(), subject, data));
    }

    async fn write(self, conn: Conn<'_>, now: Timestamp) -> Result<()> {
        let with_events: BTreeSet<_> = self.new.iter().map(|row| (row.0, row.1)).collect();
        if with_events.is_empty() {
            return Ok(());
        }
        let rows = self.new.len();
        let written = query(INSERT, ()).execute_each(conn, self.new).await?;
        touched("events", rows, written)?;
        let last = self.last.into_iter().map(|(stream, id)| (columns(&stream), id));
        let last = last.filter(|(stream, _)| with_events.contains(stream));
        let last = last.map(|((application, test), id)| (application, test, id));
        let advanced = query(ADVANCE, ()).execute_each(conn, last).await?;
        touched("event_streams", with_events.len(), advanced)?;
        query(WAKE, now).execute_each(conn, with_events).await.map(drop)
    }
}

fn columns(stream: &EventStream) -> (ApplicationId, bool) {
    (stream.application_id, stream.test)
}

#[derive(Clone, Copy, Debug, Default)]
pub struct StreamState {
    /// The ID of the newest event, or 0.
    pub last_id: i64,
    /// The ID of the newest event that was deleted, or 0.
    pub dropped_id: i64,
    /// Since when the events of messages are stored. `None` if they aren't.
    pub since: Option<Timestamp>,
}

pub struct StoredEvent {
    pub id: i64,
    pub kind: EventType,
    /// The ID of the message, the batch or the endpoint that the event is about.
    pub subject: Option<i64>,
    /// JSON. `None` if the subject's row has the data.
    pub data: Option<String>,
}

/// Returns the state of a stream. `None` if it has never had an event or a reader.
pub async fn stream(conn: Conn<'_>, stream: EventStream) -> Result<Option<StreamState>> {
    let read = |row: &Row<'_>| from_row!(row => StreamState { last_id, dropped_id, since });
    query(STREAM, columns(&stream)).fetch_optional(conn, read).await
}

/// Stores the events of a stream's messages from now on, unless they are stored already.
pub async fn keep_since(conn: Conn<'_>, stream: EventStream, now: Timestamp) -> Result<()> {
    query(OPEN, ()).execute_each(conn, [columns(&stream)]).await?;
    let (application_id, test) = columns(&stream);
    let kept = query(KEEP_SINCE, (application_id, test, now)).execute(conn).await?;
    touched("event_streams", 1, kept)
}

/// Returns the oldest events of a stream with IDs above `after` and below `below`.
pub async fn page(
    conn: Conn<'_>,
    stream: EventStream,
    (after, below): (i64, i64),
    limit: i64,
) -> Result<Vec<StoredEvent>> {
    let (application_id, test) = columns(&stream);
    let read = |row: &Row<'_>| {
        from_row!(row => StoredEvent {
            id,
            kind: row::code(row, "events", "type", EventType::from_code)?,
            subject, data,
        })
    };
    query(PAGE, (application_id, test, after, below, limit)).fetch_all(conn, read).await
}

/// Locks a stream until the transaction ends, and returns the ID of its newest event, or 0.
pub async fn lock(conn: Conn<'_>, stream: EventStream) -> Result<i64> {
    let locking = query(LOCK, ());
    let locked: Vec<Locked> = locking.find_each(conn, [columns(&stream)], "event_streams").await?;
    Ok(locked.first().map_or(0, |stream| stream.last_id))
}

/// Adds an event about `subject` to a stream, and returns its ID. Its data is empty.
pub async fn add(
    conn: Conn<'_>,
    stream: EventStream,
    kind: EventType,
    subject: i64,
    now: Timestamp,
) -> Result<i64> {
    query(OPEN, ()).execute_each(conn, [columns(&stream)]).await?;
    let locked: Vec<Locked> =
        query(LOCK, ()).find_each(conn, [columns(&stream)], "event_streams").await?;
    let mut rows = Rows::of(&locked, now);
    rows.push(stream, kind, Some(subject), Some("{}".to_owned()));
    let id = rows.last.get(&stream).copied().unwrap_or_default();
    rows.write(conn, now).await?;
    Ok(id)
}

/// Deletes the oldest events of the streams of live keys, or of those of test keys: at most `limit`
/// events, with IDs below `below`. Returns whether there may be more.
pub async fn drop_old(conn: Conn<'_>, test: bool, below: i64, limit: i64) -> Result<bool> {
    let read = |row: &Row<'_>| {
        Ok(EventStream { application_id: row.get("application_id")?, test: row.get("test")? })
    };
    let outdated = query(OUTDATED, (below, test, limit)).fetch_all(conn, read).await?;
    let mut left = limit;
    for stream in &outdated {
        if left <= 0 {
            break;
        }
        let oldest = page(conn, *stream, (0, below), left).await?;
        let Some(last) = oldest.last() else { continue };
        left -= oldest.len().cast_signed() as i64;
        let (application_id, test) = columns(stream);
        query(DROPPED, (application_id, test, last.id)).execute(conn).await?;
        query(DROP, (application_id, test, last.id)).execute(conn).await?;
    }
    Ok(!outdated.is_empty())
}
