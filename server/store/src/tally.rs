//! Counts of messages by status, for each day and for each batch. A transaction that adds messages
//! or changes their status also updates these counts. Lists and charts read them, because counting
//! millions of rows would take seconds. The same changes are also counted by quarter hour
//! ([`quarters`]).

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::Shard;
use domain::quarter::Figure;
use domain::records::{DayCounts, StatusCounts};
use domain::{
    ApplicationId, BatchId, EventStream, EventType, InboundId, MessageStatus, Money, Timestamp,
    Transid,
};
use serde::Deserialize;

use super::events::NewEvents;
use super::quarters;
use super::query::{Conn, Row, query};
use super::row::{self, json, touched};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const DAYS: Sql = Sql::in_shard(r"
        SELECT day, status, CAST(SUM(n) AS BIGINT) AS n FROM message_days
        WHERE application_id = $1 AND test = $2 AND day >= $3 AND day <= $4{ AND shard = $shard}
        GROUP BY day, status
        ORDER BY day");
    const TOTALS: Sql = Sql::in_shard(r"
        SELECT status, CAST(SUM(n) AS BIGINT) AS n FROM message_days
        WHERE application_id = $1 AND test = $2 AND day >= $3 AND day <= $4{ AND shard = $shard}
        GROUP BY status");
    const FIRST_AND_LAST: Sql = Sql::in_shard(r"
        SELECT MIN(day) AS first, MAX(day) AS last
        FROM message_days WHERE application_id = $1 AND test = $2{ AND shard = $shard}");
    const DAYS_OF_STATUS: Sql = Sql::in_shard(r"
        SELECT day, CAST(SUM(n) AS BIGINT) AS n FROM message_days
        WHERE application_id = $1 AND test = $2 AND status = $3 AND day >= $4
          AND day <= $5{ AND shard = $shard}
        GROUP BY day
        HAVING SUM(n) > 0
        ORDER BY day DESC");
    const OPEN_LIVE: Sql = Sql::in_shard(r"
        SELECT day, CAST(SUM(n) AS BIGINT) AS n
        FROM message_days WHERE test = 0 AND day >= $1 AND status < {delivered}{ AND shard = $shard}
        GROUP BY day HAVING SUM(n) > 0");
    /// The days below `$1` with counts that aren't folded.
    const UNFOLDED: Sql = Sql::in_shard(r"
        SELECT DISTINCT day
        FROM message_days WHERE (node <> 0 OR writer <> 1) AND day < $1{ AND shard = $shard}
        ORDER BY day");
    /// Locks the counts in the order in which other transactions change them.
    const LOCK_PARTS: Sql = Sql::postgres_in_shard(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1 FROM message_days WHERE day = $1 AND (node <> 0 OR writer <> 1) AND shard = $2
            ORDER BY application_id, test, status, node, writer FOR UPDATE) d");
    /// Returns the deleted rows. A separate read could miss a count that another transaction adds
    /// before the delete.
    const TAKE_PARTS: Sql = Sql::in_shard(r"
        DELETE FROM message_days WHERE day = $1 AND (node <> 0 OR writer <> 1){ AND shard = $shard}
        RETURNING application_id, test, status, n");
    /// Deletes folded counts of 0. `$1` is `[[application, test, day, status]]`.
    const FORGET_NOTHING: Sql = Sql {
        sqlite: r"
            DELETE FROM message_days
            WHERE application_id = ?1 AND test = ?2 AND day = ?3 AND status = ?4 AND node = 0
              AND writer = 1 AND n = 0",
        postgres: r"
            DELETE FROM message_days d
            USING jsonb_array_elements($1::text::jsonb) AS r
            WHERE d.application_id = (r.value ->> 0)::bigint AND d.test = (r.value ->> 1)::bigint
              AND d.day = (r.value ->> 2)::bigint AND d.status = (r.value ->> 3)::bigint
              AND d.node = 0 AND d.writer = 1 AND d.n = 0 AND d.shard = $2",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[application, test, day, status, n to add]]`.
    const ADD_DAYS: Sql = Sql {
        sqlite: r"
            INSERT INTO message_days (application_id, test, day, status, node, writer, n)
            VALUES (?1, ?2, ?3, ?4, ?6, ?7, ?5)
            ON CONFLICT (application_id, test, day, status, node, writer)
            DO UPDATE SET n = n + ?5",
        postgres: r"
            INSERT INTO message_days (application_id, test, day, status, n, node, writer, shard)
            SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
                   (value ->> 3)::bigint, (value ->> 4)::bigint, $2, $3, at.shard
            FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS r (value, place)
            CROSS JOIN (SELECT shard FROM applications WHERE shard = $4 LIMIT 1) AS at
            ORDER BY place
            ON CONFLICT (shard, application_id, test, day, status, node, writer)
            DO UPDATE SET n = message_days.n + excluded.n",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[application, test, status, message]]`.
    const FORGET_UNUSUAL: Sql = Sql::postgres_in_shard(r"
        DELETE FROM unusual_messages u
        USING jsonb_array_elements($1::text::jsonb) AS r
        WHERE u.application_id = (r.value ->> 0)::bigint AND u.test = (r.value ->> 1)::bigint
          AND u.status = (r.value ->> 2)::bigint AND u.message_id = (r.value ->> 3)::bigint
          AND u.shard = $2");
    const NOTE_UNUSUAL: Sql = Sql::postgres_in_shard(r"
        INSERT INTO unusual_messages (application_id, test, status, message_id, shard)
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
               (value ->> 3)::bigint, at.shard
        FROM jsonb_array_elements($1::text::jsonb)
        CROSS JOIN (SELECT shard FROM applications WHERE shard = $2 LIMIT 1) AS at");
    /// A transaction changes the counts of a batch only while it holds the lock on the batch's row.
    const LOCK_BATCHES: Sql = Sql::postgres_in_shard(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1 FROM batches
            WHERE id = ANY ({ids}) AND shard = $2 ORDER BY id FOR UPDATE) b");
    /// `$1` is `[[batch, status, n to add]]`.
    const COUNT_IN_BATCHES: Sql = Sql {
        sqlite: "UPDATE batch_counts SET n = n + ?3 WHERE batch_id = ?1 AND status = ?2",
        postgres: r"
            UPDATE batch_counts c SET n = c.n + (r.value ->> 2)::bigint
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE c.batch_id = (r.value ->> 0)::bigint AND c.status = (r.value ->> 1)::bigint
              AND c.shard = $2",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[batch, number of rows that became final, amount released]]`.
    const MOVE_BATCHES: Sql = Sql {
        sqlite: r"
            UPDATE batches SET open = open - ?2, released = released + ?3,
                done_at = CASE WHEN open = ?2 THEN COALESCE(done_at, ?4) END,
                paused_at = CASE WHEN open > ?2 THEN paused_at END
            WHERE id = ?1",
        postgres: r"
            UPDATE batches SET open = open - (r.value ->> 1)::bigint,
                released = released + (r.value ->> 2)::bigint,
                done_at = CASE WHEN open = (r.value ->> 1)::bigint THEN COALESCE(done_at, $2) END,
                paused_at = CASE WHEN open > (r.value ->> 1)::bigint THEN paused_at END
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE batches.id = (r.value ->> 0)::bigint
              AND batches.shard = $3",
        ..Sql::IN_SHARD
    };
}

/// The key of a count: an application, whether the messages are test messages, a day and a status.
/// Transactions update counts in the order of these keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DayKey {
    application_id: ApplicationId,
    test: i64,
    day: i64,
    status: i64,
}

/// A message with a rare status ([`MessageStatus::is_rare`]). PostgreSQL finds such a message by a
/// row of `unusual_messages`, and SQLite by an index. The fields are in the order of the
/// statements' values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Unusual {
    application_id: ApplicationId,
    test: i64,
    status: i64,
    message_id: Transid,
}

impl Unusual {
    fn of(message: &OpenMessage, status: MessageStatus) -> Option<Self> {
        status.is_rare().then(|| Self {
            application_id: message.application_id,
            test: message.test,
            status: status.code(),
            message_id: message.id,
        })
    }

    const fn columns(&self) -> (ApplicationId, i64, i64, Transid) {
        (self.application_id, self.test, self.status, self.message_id)
    }
}

/// The changes that a transaction makes to a batch.
struct BatchChange {
    /// The stream that gets the event when the batch is done.
    stream: EventStream,
    counts: StatusCounts,
    /// The released part of the cost, in micro-units.
    released: i64,
}

impl BatchChange {
    fn of(stream: EventStream) -> Self {
        Self { stream, counts: StatusCounts::default(), released: 0 }
    }

    fn count(&mut self, from: MessageStatus, to: MessageStatus, n: i64) {
        *self.counts.get_mut(from) -= n;
        *self.counts.get_mut(to) += n;
    }
}

/// A kind of transactions that update counts. Each counter of each process has its own rows in
/// `message_days` and `message_quarters`, so that no transaction waits there for the commit of
/// another counter.
#[derive(Clone, Copy)]
pub enum Counter {
    /// Sends, claims, results and receipts.
    Traffic,
    /// Everything else that changes messages.
    Others,
}

impl Counter {
    /// Returns the code in the column `writer`.
    const fn code(self) -> i64 {
        match self {
            Self::Traffic => 0,
            Self::Others => 1,
        }
    }
}

/// The changes that a transaction makes to the counts, and the events that it causes. The
/// transaction writes them just before its commit, because other transactions can't write the same
/// counts until then. The order of the writes is fixed, so that two transactions can't wait for
/// each other.
pub struct Tally {
    node: i64,
    pub counter: Counter,
    days: BTreeMap<DayKey, i64>,
    quarters: quarters::Changes,
    batches: BTreeMap<BatchId, BatchChange>,
    events: NewEvents,
    /// The rows of `unusual_messages` to delete (`usual`) and to store (`unusual`).
    usual: BTreeSet<Unusual>,
    unusual: BTreeSet<Unusual>,
    /// The time of the last change. A batch that this change completes is done at this time, and
    /// the events have it.
    now: Option<Timestamp>,
}

impl Tally {
    pub const fn new(node: i64, counter: Counter) -> Self {
        Self {
            node,
            counter,
            days: BTreeMap::new(),
            quarters: quarters::Changes::none(),
            batches: BTreeMap::new(),
            events: NewEvents::none(),
            usual: BTreeSet::new(),
            unusual: BTreeSet::new(),
            now: None,
        }
    }

    /// Returns the changes so far, and resets the tally.
    pub const fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.node, self.counter))
    }

    /// Counts a new message by day and quarter hour. The counts of a batch include all its rows
    /// from the start.
    pub fn add_new(
        &mut self,
        (application_id, test): (ApplicationId, bool),
        id: Transid,
        status: MessageStatus,
        cost: Money,
    ) {
        let test = i64::from(test);
        let accepted_at = Timestamp::from_unix_ms(domain::ids::id_unix_ms(id.0));
        let key = DayKey { application_id, test, day: accepted_at.day(), status: status.code() };
        *self.days.entry(key).or_default() += 1;
        let whose = (application_id, test);
        (self.quarters).add(whose, accepted_at, Figure::Accepted, (1, cost.micros()));
    }

    /// Counts a message's change of status, and keeps track of messages with a rare status.
    pub fn change(&mut self, message: &OpenMessage, to: MessageStatus, now: Timestamp) {
        self.now = Some(now);
        let key = |status: MessageStatus| DayKey {
            application_id: message.application_id,
            test: message.test,
            day: Timestamp::from_unix_ms(message.created_at).day(),
            status: status.code(),
        };
        *self.days.entry(key(message.status)).or_default() -= 1;
        *self.days.entry(key(to)).or_default() += 1;
        let accepted_at = Timestamp::from_unix_ms(message.created_at);
        let due_at = message.send_at.map_or(accepted_at, Timestamp::from_unix_ms);
        if let Some(figure) = Figure::of_ending(to, now.ms_since(due_at)) {
            (self.quarters).add(message.whose(), accepted_at, figure, (1, 0));
        }
        if let Some(was) = Unusual::of(message, message.status)
            && !self.unusual.remove(&was)
        {
            self.usual.insert(was);
        }
        if let Some(is) = Unusual::of(message, to)
            && !self.usual.remove(&is)
        {
            self.unusual.insert(is);
        }
        let stream = message.stream();
        if let Some(batch) = message.batch_id {
            let change = self.batches.entry(batch).or_insert_with(|| BatchChange::of(stream));
            change.count(message.status, to, 1);
        }
        if let Some(kind) = EventType::of_status(to) {
            self.events.of_message(stream, kind, message.id.0);
        }
    }

    /// Moves rows of a batch that aren't messages to another status. Adds their price, `released`
    /// micro-units, to the released amount of the batch if they never become messages.
    pub(crate) fn move_rows(
        &mut self,
        (stream, batch): (EventStream, BatchId),
        (rows, released): (i64, i64),
        (from, to): (MessageStatus, MessageStatus),
        now: Timestamp,
    ) {
        self.now = Some(now);
        let change = self.batches.entry(batch).or_insert_with(|| BatchChange::of(stream));
        change.count(from, to, rows);
        change.released += released;
    }

    /// Counts the release of a message's price.
    pub fn release(&mut self, message: &OpenMessage) {
        let accepted_at = Timestamp::from_unix_ms(message.created_at);
        (self.quarters).add(message.whose(), accepted_at, Figure::Accepted, (0, -message.cost));
        if let Some(batch) = message.batch_id {
            let new = || BatchChange::of(message.stream());
            self.batches.entry(batch).or_insert_with(new).released += message.cost;
        }
    }

    /// Adds the event of an inbound message.
    pub fn receive(&mut self, stream: EventStream, id: InboundId, now: Timestamp) {
        self.now = Some(now);
        self.events.of_message(stream, EventType::Received, id.0);
    }

    /// Adds an event that isn't about a message: see [`super::Tx::cause`].
    pub(crate) fn cause(
        &mut self,
        shard: Option<Shard>,
        streams: &[EventStream],
        (kind, data): (EventType, &str),
        now: Timestamp,
    ) {
        self.now = Some(now);
        self.events.of_streams(shard, streams, kind, data);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.days.is_empty()
            && self.quarters.is_empty()
            && self.batches.is_empty()
            && self.events.is_empty()
    }

    /// Writes the changes to the database.
    pub(crate) async fn write(self, conn: Conn<'_>) -> Result<()> {
        let days = self.days.into_iter().filter(|(_, n)| *n != 0);
        let rows = days.map(|(key, n)| (key.application_id, key.test, key.day, key.status, n));
        let adding = query(ADD_DAYS, (self.node, self.counter.code()));
        adding.execute_each(conn, rows).await?;
        if !self.quarters.is_empty() {
            let counter = self.counter.code();
            self.quarters.write(conn, self.node, counter).await?;
        }
        let completing = self.batches.iter().filter(|(_, change)| change.counts.completed() > 0);
        let completing: Vec<_> = completing.map(|(id, change)| (change.stream, *id)).collect();
        if !self.batches.is_empty() {
            move_batches(conn, self.batches, self.now).await?;
        }
        if conn.dialect().is_shared() {
            for (statement, rows) in [(FORGET_UNUSUAL, self.usual), (NOTE_UNUSUAL, self.unusual)] {
                let touched_rows = query(statement, ())
                    .execute_each(conn, rows.iter().map(Unusual::columns))
                    .await?;
                touched("unusual_messages", rows.len(), touched_rows)?;
            }
        }
        if self.events.is_empty() && completing.is_empty() {
            return Ok(());
        }
        let now = self.now.unwrap_or(Timestamp::from_unix_ms(0));
        Box::pin(self.events.write(conn, &completing, now)).await
    }
}

async fn move_batches(
    conn: Conn<'_>,
    batches: BTreeMap<BatchId, BatchChange>,
    now: Option<Timestamp>,
) -> Result<()> {
    if conn.dialect().is_shared() {
        let ids: Vec<i64> = batches.keys().map(|id| id.0).collect();
        let locking = query(LOCK_BATCHES, json(&ids)?);
        locking.finds(&mut *conn).await?;
    }
    let counts = batches.iter().flat_map(|(id, change)| {
        let counts =
            MessageStatus::ALL.map(|status| (*id, status.code(), change.counts.get(status)));
        counts.into_iter().filter(|(.., n)| *n != 0)
    });
    let counts: Vec<_> = counts.collect();
    let counting = query(COUNT_IN_BATCHES, ());
    let counted = counting.execute_each(&mut *conn, counts.iter().copied()).await?;
    touched("batch_counts", counts.len(), counted)?;
    let rows = batches.iter().map(|(id, change)| (*id, change.counts.completed(), change.released));
    let rows: Vec<_> =
        rows.filter(|(_, completed, released)| (*completed, *released) != (0, 0)).collect();
    let moving = query(MOVE_BATCHES, now.map_or(0, Timestamp::unix_ms));
    let moved = moving.execute_each(conn, rows.iter().copied()).await?;
    touched("batches", rows.len(), moved)
}

/// A message that isn't final, as it was before a change. The fields are in the order of
/// `messages::OPEN`.
#[derive(Deserialize)]
pub struct OpenMessage {
    #[serde(deserialize_with = "row::transid_from_number")]
    pub id: Transid,
    pub application_id: ApplicationId,
    pub test: i64,
    #[serde(deserialize_with = "row::batch_from_number")]
    pub batch_id: Option<BatchId>,
    /// Unix milliseconds.
    pub created_at: i64,
    #[serde(deserialize_with = "row::status_from_number")]
    pub status: MessageStatus,
    /// Micro-units.
    pub cost: i64,
    /// When it was scheduled for, in Unix milliseconds.
    pub send_at: Option<i64>,
}

impl OpenMessage {
    /// Returns the message's application, and whether the message was sent with the test key.
    const fn whose(&self) -> (ApplicationId, i64) {
        (self.application_id, self.test)
    }

    const fn stream(&self) -> EventStream {
        EventStream { application_id: self.application_id, test: self.test == 1 }
    }
}

/// Returns the counts of an application's messages from day `first` to day `last`, both included.
pub async fn totals(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
    (first, last): (i64, i64),
) -> Result<StatusCounts> {
    let read = |row: &Row<'_>| Ok((row::status(row, "message_days")?, row.get("n")?));
    let rows: Vec<(MessageStatus, i64)> =
        query(TOTALS, (application_id, test, first, last)).fetch_all(conn, read).await?;
    let mut counts = StatusCounts::default();
    for (status, n) in rows {
        *counts.get_mut(status) += n;
    }
    Ok(counts)
}

/// Returns the counts of an application's messages by day, from `first` to `last`, both included.
pub async fn days(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
    first: i64,
    last: i64,
) -> Result<Vec<DayCounts>> {
    let read = |row: &Row<'_>| {
        let status = row::status(row, "message_days")?;
        Ok((row.get("day")?, status, row.get("n")?))
    };
    let rows: Vec<(i64, MessageStatus, i64)> =
        query(DAYS, (application_id, test, first, last)).fetch_all(conn, read).await?;
    let mut days: BTreeMap<i64, StatusCounts> = BTreeMap::new();
    for (day, status, n) in rows {
        *days.entry(day).or_default().get_mut(status) += n;
    }
    Ok(days.into_iter().map(|(day, counts)| DayCounts { day, counts }).collect())
}

/// Returns the first and the last day with messages of an application.
pub async fn first_and_last(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
) -> Result<Option<(i64, i64)>> {
    let read = |row: &Row<'_>| {
        let (first, last): (Option<i64>, Option<i64>) = (row.get("first")?, row.get("last")?);
        Ok(first.zip(last))
    };
    query(FIRST_AND_LAST, (application_id, test)).fetch_one(conn, read).await
}

/// Returns the days on which the application's messages with this status were accepted, newest
/// first, each with the number of these messages. Covers the days from `first` to `last`, both
/// included.
pub async fn days_of_status(
    conn: Conn<'_>,
    (application_id, test): (ApplicationId, bool),
    status: MessageStatus,
    first: i64,
    last: i64,
) -> Result<Vec<(i64, i64)>> {
    let finding = query(DAYS_OF_STATUS, (application_id, test, status.code(), first, last));
    finding.fetch_all(conn, |row| Ok((row.get("day")?, row.get("n")?))).await
}

/// Returns the days from `from` on with live messages that aren't final, and their number.
pub async fn open_live(conn: Conn<'_>, from: i64) -> Result<Vec<(i64, i64)>> {
    query(OPEN_LIVE, from).fetch_all(conn, |row| Ok((row.get("day")?, row.get("n")?))).await
}

/// Returns the days below `below` with counts that aren't folded. Folded counts are in the rows of
/// node 0 and writer 1 only.
pub async fn unfolded(conn: Conn<'_>, below: i64) -> Result<Vec<i64>> {
    query(UNFOLDED, below).fetch_all(conn, |row| row.get("day")).await
}

/// Folds a day's counts into one row per application, key kind and status. Other processes may
/// change the day's counts meanwhile. Their changes are folded by a later call.
pub async fn fold(conn: Conn<'_>, day: i64) -> Result<()> {
    if conn.dialect().is_shared() {
        query(LOCK_PARTS, day).finds(&mut *conn).await?;
    }
    let read = |row: &Row<'_>| {
        let of: (ApplicationId, i64, i64) =
            (row.get("application_id")?, row.get("test")?, row.get("status")?);
        Ok((of, row.get::<i64>("n")?))
    };
    let parts: Vec<_> = query(TAKE_PARTS, day).fetch_all(&mut *conn, read).await?;
    let mut sums: BTreeMap<(ApplicationId, i64, i64), i64> = BTreeMap::new();
    for (of, n) in parts {
        *sums.entry(of).or_default() += n;
    }
    let keys: Vec<_> = sums
        .keys()
        .map(|(application, test, status)| (*application, *test, day, *status))
        .collect();
    let rows = sums
        .into_iter()
        .map(|((application, test, status), n)| (application, test, day, status, n));
    query(ADD_DAYS, (0_i64, 1_i64)).execute_each(&mut *conn, rows).await?;
    query(FORGET_NOTHING, ()).execute_each(conn, keys).await.map(drop)
}
