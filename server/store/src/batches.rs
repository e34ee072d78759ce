//! Batches: accepted uploads, and their rows that become messages.

use std::borrow::Cow;

use domain::pricing::cost_at;
use domain::records::{BatchRecord, BatchStatus, ScheduledRows, StatusCounts};
use domain::{
    ApplicationId, BatchId, EventStream, Kind, MessageStatus, Money, Prices, PricesInForce,
    Reference, Timestamp, Transid,
};
use serde::Deserialize;

use super::Tx;
use super::query::{Argument, Conn, Query, Row, query};
use super::row::{self, from_row};
use super::sql::{Dialect, Sql, statements};
use crate::error::{Error, Result};

/// Selects batches for a list. The result has one row per batch and status, except for statuses
/// with a count of 0.
macro_rules! listed {
    ($where:literal $(, $order:literal)?) => {
        Sql::in_shard(concat!(
            r"
        SELECT b.*, c.status, c.n
        FROM (
            SELECT id, test, requestid, rows, pages, cost, released, created_at, expanded_at,
                   done_at, send_at, waits_until, paused_at, pause_reason, cancelled_at
            FROM batches",
            $where,
            "{ AND shard = $shard}",
            $($order,)?
            r") b
        JOIN batch_counts c ON c.batch_id = b.id AND c.n > 0{ AND c.shard = $shard}
        ORDER BY b.id DESC",
        ))
    };
}

/// Selects batches whose expansion hasn't ended.
macro_rules! unexpanded {
    ($rest:literal) => {
        Sql::in_shard(concat!(
            r"
        SELECT id, application_id, test, sender, requestid, body, rows, pages, cost, price_id,
               created_at, first_message_id, spool, spool_offset, expanded_rows, expanded_cost,
               waits_until, expires_at, paused_at, cancelled_at,
               (
                   SELECT reference
                   FROM applications WHERE id = application_id{ AND shard = $shard}) AS reference,
               (
                   SELECT COUNT(*) FROM applications WHERE id = application_id
                     AND effective_status = 'Suspended'{ AND shard = $shard}) AS suspended
        FROM batches WHERE expanded_at IS NULL",
            $rest,
        ))
    };
}

/// Selects batches with the columns that show whether a batch can be paused or cancelled.
macro_rules! stoppable {
    ($rest:literal) => {
        Sql::in_shard(concat!(
            r"
        SELECT id, application_id, test, first_message_id, last_message_id, cancelled_at,
               cancelled_rows, cancelled_cost, cancelling, done_at
        FROM batches",
            $rest,
        ))
    };
}

statements! {
    const LIST: Sql = listed!(
        " WHERE application_id = $1 AND test = $2 AND id < $3", " ORDER BY id DESC LIMIT $4"
    );
    const LIST_OF_REQUEST: Sql = listed!(
        " WHERE application_id = $1 AND test = $2 AND id < $3 AND requestid = $5",
        " ORDER BY id DESC LIMIT $4"
    );
    const LIST_SCHEDULED: Sql = listed!(
        r" WHERE application_id = $1 AND test = $2 AND id < $3 AND waits_until IS NOT NULL
              AND (CAST($5 AS TEXT) IS NULL OR requestid = $5)",
        " ORDER BY id DESC LIMIT $4"
    );
    const ONE: Sql = listed!(" WHERE application_id = $1 AND test = $2 AND id = $3");
    const MESSAGES: Sql = Sql::in_shard(r"
        SELECT first_message_id, last_message_id
        FROM batches WHERE application_id = $1 AND test = $2 AND id = $3{ AND shard = $shard}");
    /// Finds a batch by its ID alone, whichever application it belongs to.
    const OWNER: Sql = Sql::in_shard(
        "SELECT application_id, test FROM batches WHERE id = $1{ AND shard = $shard}");
    const EXISTS: Sql = Sql::in_shard("SELECT id FROM batches WHERE id = $1{ AND shard = $shard}");
    const GREATEST: Sql = Sql::in_shard(r"
        SELECT MAX(id) AS id, MAX(last_message_id) AS message_id
        FROM batches{ WHERE shard = $shard}");
    const LEAST_UNEXPANDED: Sql = Sql::in_shard(r"
        SELECT MIN(first_message_id) AS id
        FROM batches WHERE expanded_at IS NULL AND waits_until IS NULL{ AND shard = $shard}");
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO batches (id, application_id, test, sender, requestid, body, rows, pages,
            cost, price_local, price_international, first_message_id, last_message_id, spool,
            created_at, price_id, send_at, waits_until, expires_at, spool_offset, expanded_rows,
            expanded_cost, open, released{, shard})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                $19, 0, 0, 0, $7, 0{, $shard})");
    const INSERT_COUNTS: Sql = Sql::in_shard(r"
        INSERT INTO batch_counts (batch_id, status, n{, shard})
        SELECT id, s.column1,
               CASE s.column1 WHEN CASE WHEN waits_until IS NULL THEN {queued}
                                   ELSE {scheduled} END THEN rows ELSE 0 END{, shard}
        FROM batches CROSS JOIN (VALUES {statuses}) AS s WHERE id = $1{ AND shard = $shard}");
    /// Leaves out a paused batch, and a scheduled batch before its time. Finds both once their rows
    /// have expired.
    const NEXT_UNEXPANDED: Sql = unexpanded!(r" AND id > $1 AND cancelled_at IS NULL
          AND (paused_at IS NULL AND (waits_until IS NULL OR waits_until <= $2)
            OR expires_at <= $2 OR expires_at IS NULL AND first_message_id < $3)
          { AND shard = $shard}
        ORDER BY id LIMIT 1");
    const NEXT_START: Sql = Sql::in_shard(r"
        SELECT MIN(waits_until) AS at
        FROM batches WHERE waits_until IS NOT NULL AND paused_at IS NULL{ AND shard = $shard}");
    const START: Sql = Sql::in_shard(r"
        UPDATE batches SET waits_until = NULL, first_message_id = $2, last_message_id = $3
        WHERE id = $1 AND waits_until IS NOT NULL AND paused_at IS NULL
          AND cancelled_at IS NULL AND expanded_at IS NULL{ AND shard = $shard}");
    const UNEXPANDED: Sql = unexpanded!(" AND id = $1{ AND shard = $shard}");
    /// SQLite only. On PostgreSQL, spools are rows of a table.
    const SPOOLS: Sql = Sql::sqlite("SELECT spool FROM batches WHERE expanded_at IS NULL");
    /// Updates the batch only if its spool offset is still the one that the caller read. Otherwise
    /// another process has changed the batch in the meantime.
    const ADVANCE: Sql = Sql::in_shard(r"
        UPDATE batches SET spool_offset = $3, expanded_rows = expanded_rows + $4,
            expanded_cost = expanded_cost + $5,
            expanded_at = CASE WHEN expanded_rows + $4 = rows THEN $6 ELSE expanded_at END
        WHERE id = $1 AND spool_offset = $2 AND expanded_at IS NULL AND paused_at IS NULL
          AND cancelled_at IS NULL{ AND shard = $shard}");
    const GIVE_UP: Sql = Sql::in_shard(r"
        UPDATE batches SET expanded_at = $3, waits_until = NULL
        WHERE id = $1 AND spool_offset = $2 AND expanded_at IS NULL{ AND shard = $shard}");
    const SCHEDULED: Sql = Sql::in_shard(r"
        SELECT id FROM batches
        WHERE application_id = $1 AND test = $2 AND waits_until IS NOT NULL{ AND shard = $shard}
        ORDER BY id");
    const SCHEDULED_ROWS: Sql = Sql::in_shard(r"
        SELECT CAST(COALESCE(SUM(rows), 0) AS BIGINT) AS n, MIN(waits_until) AS at,
               CAST(COALESCE(SUM(cost), 0) AS BIGINT) AS reserved,
               CAST(COALESCE(SUM(CASE WHEN waits_until < $3 THEN rows END), 0) AS BIGINT) AS soon
        FROM batches
        WHERE application_id = $1 AND test = $2 AND waits_until IS NOT NULL{ AND shard = $shard}");
    const STOPPABLE: Sql = stoppable!(
        " WHERE application_id = $1 AND test = $2 AND id = $3{ AND shard = $shard}");
    const FOLLOWED: Sql = stoppable!(
        " WHERE (cancelling = 1 OR resumed_at IS NOT NULL){ AND shard = $shard} ORDER BY id");
    const PAUSE: Sql = Sql::in_shard(r"
        UPDATE batches SET paused_at = COALESCE(paused_at, $2), paused_by = $3, resumed_at = NULL
        WHERE id = $1 AND paused_by IS NULL AND done_at IS NULL
          AND cancelled_at IS NULL{ AND shard = $shard}");
    const RESUME: Sql = Sql::in_shard(r"
        UPDATE batches SET paused_by = NULL,
            paused_at = CASE WHEN pause_reason IS NOT NULL THEN paused_at END,
            resumed_at = CASE WHEN pause_reason IS NULL THEN CAST($2 AS BIGINT) END
        WHERE id = $1 AND paused_by IS NOT NULL{ AND shard = $shard}");
    const PAUSE_BY_STAFF: Sql = Sql::in_shard(r"
        UPDATE batches SET paused_at = COALESCE(paused_at, $2), pause_reason = $3,
            resumed_at = NULL
        WHERE id = $1 AND pause_reason IS NULL AND done_at IS NULL
          AND cancelled_at IS NULL{ AND shard = $shard}");
    const RESUME_BY_STAFF: Sql = Sql::in_shard(r"
        UPDATE batches SET pause_reason = NULL,
            paused_at = CASE WHEN paused_by IS NOT NULL THEN paused_at END,
            resumed_at = CASE WHEN paused_by IS NULL THEN CAST($2 AS BIGINT) END
        WHERE id = $1 AND pause_reason IS NOT NULL{ AND shard = $shard}");
    const RESUMED: Sql = Sql::in_shard(r"
        UPDATE batches SET resumed_at = NULL
        WHERE id = $1 AND resumed_at < $2{ AND shard = $shard}");
    const CANCEL: Sql = Sql::in_shard(r"
        UPDATE batches SET cancelled_at = $2, cancelled_by = $3, cancelling = 1, paused_at = NULL,
            paused_by = NULL, pause_reason = NULL, resumed_at = NULL
        WHERE id = $1 AND done_at IS NULL AND cancelled_at IS NULL{ AND shard = $shard}");
    const COUNT_CANCELLED: Sql = Sql::in_shard(r"
        UPDATE batches SET cancelled_rows = $2, cancelled_cost = $3
        WHERE id = $1 AND cancelled_rows IS NULL{ AND shard = $shard}");
    const CANCELLED: Sql = Sql::in_shard(
        "UPDATE batches SET cancelling = 0 WHERE id = $1{ AND shard = $shard}");
    const CANCELLED_BY: Sql = Sql::in_shard(r"
        SELECT cancelled_by FROM batches
        WHERE id = $1 AND cancelled_at IS NOT NULL{ AND shard = $shard}");
    const OF_CANCELLED: Sql = Sql {
        sqlite: r"
            SELECT m.id
            FROM messages m
            JOIN batches b ON b.id = m.batch_id
            WHERE m.id = ?1 AND b.cancelled_at IS NOT NULL",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(m.id)), '[]')::text AS found
            FROM messages m
            JOIN batches b ON b.id = m.batch_id
            WHERE m.id = ANY ({ids}) AND m.id BETWEEN $2 AND $3 AND m.shard = $4 AND b.shard = $4
              AND b.cancelled_at IS NOT NULL",
        ..Sql::IN_SHARD
    };
    /// The parameters of a row are ID, number, kind, body, pages, segments, price, cost and time.
    /// The values that all rows share follow. If all rows share one text, only the batch has it,
    /// and the body of each row is null.
    const EXPAND: Sql = Sql {
        sqlite: r"
            INSERT INTO messages (id, number, kind, body, pages, segments, unit_price, cost,
                created_at, application_id, test, sender, requestid, batch_id, status, released)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        postgres: r"
            COPY messages (id, number, kind, body, pages, segments, unit_price, cost,
                created_at, application_id, test, sender, requestid, batch_id, status, released,
                shard)
            FROM STDIN (FORMAT binary)",
        ..Sql::IN_SHARD
    };
}

/// A batch that is being accepted.
pub struct NewBatch {
    pub id: BatchId,
    pub application_id: ApplicationId,
    pub test: bool,
    pub sender: Option<String>,
    pub requestid: Option<String>,
    /// The text that all rows share. `None` if each row has its own.
    pub body: Option<String>,
    pub rows: i64,
    pub pages: i64,
    pub cost: Money,
    pub prices: Prices,
    /// The ID of the newest price change when the batch was priced.
    pub price_id: i64,
    pub first_message_id: i64,
    pub last_message_id: i64,
    pub spool: String,
    /// The time that the batch is scheduled for. `None` if the batch is due at once.
    pub send_at: Option<Timestamp>,
    /// When the rows of a scheduled batch begin to become messages. Equals `send_at`, unless the
    /// test clock was moved.
    pub waits_until: Option<Timestamp>,
    /// The time from which its rows may no longer be submitted. `None` means 48 hours after the
    /// time in the first message ID.
    pub expires_at: Option<Timestamp>,
}

/// A batch whose expansion hasn't ended.
pub struct UnexpandedBatch {
    pub id: BatchId,
    pub application_id: ApplicationId,
    pub reference: Reference,
    /// Whether the application is suspended or its account is disabled. If so, the batch's messages
    /// are deferred.
    pub suspended: bool,
    pub test: bool,
    pub sender: Option<String>,
    pub requestid: Option<String>,
    pub body: Option<String>,
    pub rows: i64,
    /// The pages of all rows together.
    pages: i64,
    pub cost: Money,
    /// The ID of the newest price change when the batch was priced. Together with `created_at`, the
    /// time of acceptance, it determines the batch's prices.
    pub price_id: i64,
    pub created_at: Timestamp,
    pub first_message_id: i64,
    pub spool: String,
    pub spool_offset: i64,
    pub expanded_rows: i64,
    pub expanded_cost: Money,
    /// When its rows begin to become messages. `None` if the batch isn't scheduled, or has begun.
    pub waits_until: Option<Timestamp>,
    /// The time from which its rows may no longer be submitted. `None` means 48 hours after the
    /// time in the first message ID.
    pub expires_at: Option<Timestamp>,
    /// Whether the batch is paused or cancelled, so that no row becomes a message.
    pub stopped: bool,
}

/// The pages and the segments of the text that all rows of a batch share.
#[derive(Clone, Copy)]
pub struct SharedText {
    /// The pages of each row, as counted when the batch was accepted. The price of this many pages
    /// was reserved.
    pub pages: i64,
    segments: i64,
}

impl UnexpandedBatch {
    /// Returns the status of the rows that aren't messages yet.
    pub const fn rows_status(&self) -> MessageStatus {
        match self.waits_until {
            Some(_) => MessageStatus::Scheduled,
            None => MessageStatus::Queued,
        }
    }

    pub const fn stream(&self) -> EventStream {
        EventStream { application_id: self.application_id, test: self.test }
    }

    /// Returns the pages and the segments of the shared text, or `None` if each row has its own.
    pub fn shared_text(&self) -> Option<SharedText> {
        let body = self.body.as_deref()?;
        Some(SharedText {
            pages: self.pages / self.rows,
            segments: domain::message::segments(body).cast_signed() as i64,
        })
    }
}

fn record(row: &Row<'_>) -> Result<BatchRecord> {
    let done_at = row.get("done_at")?;
    let is_set = |column| row.get::<Option<i64>>(column).map(|at| at.is_some());
    let status = match (is_set("expanded_at")?, done_at) {
        _ if is_set("cancelled_at")? => BatchStatus::Cancelled,
        (true, Some(_)) => BatchStatus::Done,
        _ if is_set("paused_at")? => BatchStatus::Paused,
        _ if is_set("waits_until")? => BatchStatus::Scheduled,
        (false, _) => BatchStatus::Expanding,
        (true, None) => BatchStatus::Sending,
    };
    Ok(BatchRecord {
        batchid: row.get("id")?,
        requestid: row.get("requestid")?,
        rows: row.get("rows")?,
        pages: row.get("pages")?,
        cost: row.get("cost")?,
        released: row.get("released")?,
        status,
        counts: StatusCounts::default().with(row::status(row, "batch_counts")?, row.get("n")?),
        created_at: row.get("created_at")?,
        send_at: row.get("send_at")?,
        done_at,
        // A batch that ended while it was paused isn't paused any more.
        pause_reason: row.get::<Option<String>>("pause_reason")?.filter(|_| done_at.is_none()),
        test: row.get("test")?,
    })
}

fn unexpanded(row: &Row<'_>) -> Result<UnexpandedBatch> {
    from_row!(row => UnexpandedBatch {
        id, application_id, reference: row::reference(row)?, suspended, test, sender, requestid,
        body, rows, pages, cost, price_id, created_at, first_message_id, spool, spool_offset,
        expanded_rows, expanded_cost, waits_until, expires_at,
        stopped: row.get::<Option<i64>>("paused_at")?.is_some()
            || row.get::<Option<i64>>("cancelled_at")?.is_some(),
    })
}

/// Returns at most `limit` batches of an application with IDs below `below`, newest first. If
/// `requestid` is set, returns only batches with this request ID.
pub async fn list(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
    below: i64,
    requestid: Option<&str>,
    limit: i64,
) -> Result<Vec<BatchRecord>> {
    let sql = match requestid {
        None => LIST,
        Some(_) => LIST_OF_REQUEST,
    };
    let listing = query(sql, (application_id, test, below, limit));
    let listing = listing.bind(requestid.map(Argument::from));
    records(conn, listing).await
}

/// Like [`list`], but returns only scheduled batches that haven't begun.
pub async fn list_scheduled(
    conn: Conn<'_>,
    stream: EventStream,
    below: i64,
    requestid: Option<&str>,
    limit: i64,
) -> Result<Vec<BatchRecord>> {
    let whose = (stream.application_id, stream.test);
    let listing = query(LIST_SCHEDULED, (whose.0, whose.1, below, limit, requestid));
    records(conn, listing).await
}

/// Reads the batches of a list, and combines the rows of each batch.
async fn records(conn: Conn<'_>, listing: Query<'_>) -> Result<Vec<BatchRecord>> {
    let mut found = listing.fetch_all(conn, record).await?;
    found.dedup_by(|next, first| {
        let is_same = next.batchid == first.batchid;
        if is_same {
            first.counts.add(&next.counts);
        }
        is_same
    });
    Ok(found)
}

pub async fn one(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
    id: BatchId,
) -> Result<Option<BatchRecord>> {
    Ok(records(conn, query(ONE, (application_id, test, id.0))).await?.pop())
}

/// Returns the messages among `ids` whose batch was cancelled.
pub async fn of_cancelled(tx: &mut Tx<'_>, ids: &[Transid]) -> Result<Vec<Transid>> {
    let finding = query(OF_CANCELLED, ()).bind(tx.among(ids));
    let found: Vec<(i64,)> = finding.find_each(tx, ids.iter().copied(), "messages").await?;
    Ok(found.into_iter().map(|(id,)| Transid(id)).collect())
}

/// Returns the application of a batch, and whether the batch was uploaded with the test key.
pub async fn application_of(conn: Conn<'_>, id: BatchId) -> Result<Option<(ApplicationId, bool)>> {
    query(OWNER, id.0)
        .fetch_optional(conn, |row| Ok((row.get("application_id")?, row.get("test")?)))
        .await
}

/// Returns the first and the last message ID of a batch. Rows that aren't messages yet have IDs
/// too.
pub async fn messages(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
    id: BatchId,
) -> Result<Option<(i64, i64)>> {
    let read = |row: &Row<'_>| Ok((row.get("first_message_id")?, row.get("last_message_id")?));
    query(MESSAGES, (application_id, test, id)).fetch_optional(conn, read).await
}

pub async fn exists(conn: Conn<'_>, id: BatchId) -> Result<bool> {
    query(EXISTS, id).finds(conn).await
}

/// Returns the greatest batch ID and the greatest message ID of all batches. Rows that aren't
/// messages yet have message IDs too. Both IDs are 0 if there are no batches.
pub async fn greatest(conn: Conn<'_>) -> Result<(i64, i64)> {
    let read = |row: &Row<'_>| {
        let greatest = |column| row.get::<Option<i64>>(column).map(Option::unwrap_or_default);
        Ok((greatest("id")?, greatest("message_id")?))
    };
    query(GREATEST, ()).fetch_one(conn, read).await
}

/// Returns the least message ID of all batches whose expansion hasn't ended, or `None` if there is
/// no such batch. No expansion assigns a lower ID. Leaves out scheduled batches that haven't begun,
/// because their rows get new IDs at the beginning.
pub async fn least_unexpanded(conn: Conn<'_>) -> Result<Option<i64>> {
    query(LEAST_UNEXPANDED, ()).fetch_one(conn, |row| row.get("id")).await
}

pub async fn insert(conn: Conn<'_>, batch: &NewBatch, now: Timestamp) -> Result<()> {
    let values = (
        batch.id.0,
        batch.application_id,
        batch.test,
        &batch.sender,
        &batch.requestid,
        &batch.body,
        batch.rows,
        batch.pages,
        batch.cost,
        batch.prices.local,
        batch.prices.international,
        batch.first_message_id,
        batch.last_message_id,
        &batch.spool,
        now,
        batch.price_id,
    );
    let times = [batch.send_at, batch.waits_until, batch.expires_at].map(Argument::from);
    query(INSERT, values).bind(times).execute(&mut *conn).await?;
    query(INSERT_COUNTS, batch.id).execute(conn).await.map(drop)
}

/// Returns the batch with the least ID above `after` whose expansion has something to do. Rows with
/// IDs below `least` have expired, unless their batch has an expiry of its own.
pub async fn next_unexpanded(
    conn: Conn<'_>,
    after: i64,
    now: Timestamp,
    least: i64,
) -> Result<Option<UnexpandedBatch>> {
    query(NEXT_UNEXPANDED, (after, now, least)).fetch_optional(conn, unexpanded).await
}

/// Returns when the next scheduled batch begins. Leaves out paused batches.
pub async fn next_start(conn: Conn<'_>) -> Result<Option<Timestamp>> {
    query(NEXT_START, ()).fetch_one(conn, |row| row.get("at")).await
}

/// Begins a scheduled batch. From now on its rows count as queued and have these message IDs.
/// Returns false if another process changed the batch first.
pub async fn start(
    tx: &mut Tx<'_>,
    batch: &UnexpandedBatch,
    (first, last): (i64, i64),
    now: Timestamp,
) -> Result<bool> {
    if query(START, (batch.id.0, first, last)).execute(&mut *tx).await? != 1 {
        return Ok(false);
    }
    let statuses = (MessageStatus::Scheduled, MessageStatus::Queued);
    tx.tally.move_rows((batch.stream(), batch.id), (batch.rows, 0), statuses, now);
    Ok(true)
}

/// Returns the batch with this ID, or `None` if its expansion has ended.
pub async fn still_unexpanded(conn: Conn<'_>, id: BatchId) -> Result<Option<UnexpandedBatch>> {
    query(UNEXPANDED, id.0).fetch_optional(conn, unexpanded).await
}

/// Returns the statement of [`spools`] for SQLite.
pub(crate) const fn select_spools() -> &'static str {
    SPOOLS.of(Dialect::Sqlite)
}

/// Returns the spools of the batches whose expansion hasn't ended.
pub async fn spools(conn: Conn<'_>) -> Result<Vec<String>> {
    query(SPOOLS, ()).fetch_all(conn, |row| row.get("spool")).await
}

/// A step of an expansion: the number and the cost of the rows that became messages, and the spool
/// offset after them.
pub struct Advance {
    pub offset: i64,
    pub rows: i64,
    pub cost: Money,
}

/// Stores that rows became messages. Returns false if another process changed the batch first.
pub async fn advance(
    conn: Conn<'_>,
    batch: &UnexpandedBatch,
    step: &Advance,
    now: Timestamp,
) -> Result<bool> {
    let values = (batch.id.0, batch.spool_offset, step.offset, step.rows, step.cost, now);
    Ok(query(ADVANCE, values).execute(conn).await? == 1)
}

/// Ends the expansion. The batch counts the remaining rows under the status `rest`, and they never
/// become messages. Returns false if another process changed the batch first.
pub async fn give_up(
    tx: &mut Tx<'_>,
    batch: &UnexpandedBatch,
    rest: MessageStatus,
    now: Timestamp,
) -> Result<bool> {
    if query(GIVE_UP, (batch.id.0, batch.spool_offset, now)).execute(&mut *tx).await? != 1 {
        return Ok(false);
    }
    let lost =
        (batch.rows - batch.expanded_rows, batch.cost.micros() - batch.expanded_cost.micros());
    tx.tally.move_rows((batch.stream(), batch.id), lost, (batch.rows_status(), rest), now);
    Ok(true)
}

/// A batch, with the facts that show whether it can be paused or cancelled.
#[derive(Clone, Copy, Debug)]
pub struct StoppableBatch {
    pub id: BatchId,
    pub stream: EventStream,
    /// The IDs of the first and the last row.
    pub ids: (i64, i64),
    pub cancelled_at: Option<Timestamp>,
    /// The number and the cost of the rows that its cancellation stops. `None` until they are
    /// counted.
    pub cancelled: Option<(i64, Money)>,
    /// Whether the cancellation hasn't reached all of its rows yet.
    pub is_cancelling: bool,
    pub is_done: bool,
}

fn stoppable(row: &Row<'_>) -> Result<StoppableBatch> {
    let (rows, cost) = (row.get("cancelled_rows")?, row.get::<Option<Money>>("cancelled_cost")?);
    from_row!(row => StoppableBatch {
        id,
        stream: EventStream { application_id: row.get("application_id")?, test: row.get("test")? },
        ids: (row.get("first_message_id")?, row.get("last_message_id")?),
        cancelled_at, cancelled: Option::zip(rows, cost), is_cancelling: row.get("cancelling")?,
        is_done: row.get::<Option<i64>>("done_at")?.is_some(),
    })
}

/// Returns the batch with this ID, if it was uploaded with the key of this stream.
pub async fn to_stop(
    conn: Conn<'_>,
    stream: EventStream,
    id: BatchId,
) -> Result<Option<StoppableBatch>> {
    let finding = query(STOPPABLE, (stream.application_id, stream.test, id));
    finding.fetch_optional(conn, stoppable).await
}

/// Returns the scheduled batches of a key that haven't begun.
pub async fn scheduled(conn: Conn<'_>, stream: EventStream) -> Result<Vec<BatchId>> {
    let finding = query(SCHEDULED, (stream.application_id, stream.test));
    finding.fetch_all(conn, |row| row.get("id")).await
}

/// Counts the rows of a key's scheduled batches that haven't begun. Returns their number and cost,
/// the number of those that are due before `until`, and when the next batch begins.
pub async fn scheduled_rows(
    conn: Conn<'_>,
    stream: EventStream,
    until: Timestamp,
) -> Result<(ScheduledRows, i64, Option<Timestamp>)> {
    let counting = query(SCHEDULED_ROWS, (stream.application_id, stream.test, until));
    let read = |row: &Row<'_>| {
        let all = ScheduledRows { rows: row.get("n")?, reserved: row.get("reserved")? };
        Ok((all, row.get("soon")?, row.get("at")?))
    };
    counting.fetch_one(conn, read).await
}

/// Returns the batches with rows that a job still has to cancel, or to make due again after a
/// pause.
pub async fn followed(conn: Conn<'_>) -> Result<Vec<StoppableBatch>> {
    query(FOLLOWED, ()).fetch_all(conn, stoppable).await
}

/// Pauses a batch for its owner. Returns false if the owner has paused the batch already, or if it
/// is done or cancelled.
pub async fn pause(conn: Conn<'_>, id: BatchId, by: &str, now: Timestamp) -> Result<bool> {
    Ok(query(PAUSE, (id, now, by)).execute(conn).await? == 1)
}

/// Ends the pause by a batch's owner. Returns false if the owner hasn't paused the batch. A job
/// then makes the deferred rows due again, unless staff have paused the batch too.
pub async fn resume(conn: Conn<'_>, id: BatchId, now: Timestamp) -> Result<bool> {
    Ok(query(RESUME, (id, now)).execute(conn).await? == 1)
}

/// Pauses a batch for staff. A pause by its owner stays. Returns false if staff have paused the
/// batch already, or if it is done or cancelled.
pub async fn pause_by_staff(
    conn: Conn<'_>,
    id: BatchId,
    reason: &str,
    now: Timestamp,
) -> Result<bool> {
    Ok(query(PAUSE_BY_STAFF, (id, now, reason)).execute(conn).await? == 1)
}

/// Ends the pause of a batch by staff. Returns false if staff haven't paused the batch. A job then
/// makes the deferred rows due again, unless the owner has paused the batch too.
pub async fn resume_by_staff(conn: Conn<'_>, id: BatchId, now: Timestamp) -> Result<bool> {
    Ok(query(RESUME_BY_STAFF, (id, now)).execute(conn).await? == 1)
}

/// Stores that all deferred rows of a resumed batch are due again. Does nothing if the batch was
/// paused or resumed again since `before`.
pub async fn set_resumed(conn: Conn<'_>, id: BatchId, before: Timestamp) -> Result<bool> {
    Ok(query(RESUMED, (id, before)).execute(conn).await? == 1)
}

/// Cancels a batch: no more rows become messages, and claims skip its rows in the queue, except
/// those that [`super::queue::exempt`] exempted. Returns false if the batch is done or cancelled
/// already.
pub async fn cancel(conn: Conn<'_>, id: BatchId, by: &str, now: Timestamp) -> Result<bool> {
    Ok(query(CANCEL, (id, now, by)).execute(conn).await? == 1)
}

/// Stores the number and the cost of the rows that the cancellation of a batch stopped. Returns
/// false if they are stored already.
pub async fn count_cancelled(
    conn: Conn<'_>,
    id: BatchId,
    (rows, cost): (i64, Money),
) -> Result<bool> {
    Ok(query(COUNT_CANCELLED, (id, rows, cost)).execute(conn).await? == 1)
}

/// Stores that the cancellation of a batch has reached all of its rows.
pub async fn set_cancelled(conn: Conn<'_>, id: BatchId) -> Result<()> {
    query(CANCELLED, id).execute(conn).await.map(drop)
}

/// Returns who cancelled a batch, or `None` if it isn't cancelled.
pub async fn cancelled_by(conn: Conn<'_>, id: BatchId) -> Result<Option<String>> {
    query(CANCELLED_BY, id).fetch_optional(conn, |row| row.get("cancelled_by")).await
}

/// A row of an upload, as stored in a chunk of the spool: an array of these fields in this order.
#[derive(Deserialize)]
pub struct ChunkRow<'a> {
    #[serde(borrow)]
    digits: Cow<'a, str>,
    /// 1 for a local number, 0 for an international number.
    local: i64,
    /// The row's own text. `body`, `pages` and `segments` are `None` if all rows share one text.
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    pages: Option<i64>,
    #[serde(default)]
    segments: Option<i64>,
}

impl<'a> ChunkRow<'a> {
    /// Parses the rows of a chunk.
    pub fn parse_all(json: &'a str) -> Result<Vec<Self>> {
        serde_json::from_str(json).map_err(|error| Error::Failed(error.into()))
    }

    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// Returns the pages of the row's own text, or `None` if all rows share one text.
    pub fn pages(&self) -> Option<u64> {
        self.pages.map(i64::unsigned_abs)
    }

    /// Returns the segments of the row's own text, or `None` if all rows share one text.
    pub fn segments(&self) -> Option<usize> {
        self.segments.and_then(|segments| usize::try_from(segments).ok())
    }

    pub const fn kind(&self) -> Kind {
        if self.local == 1 { Kind::Local } else { Kind::International }
    }
}

/// Turns the rows of a chunk of the spool into messages and returns their number. `first` is the
/// position of the chunk's first row in the batch, from 0.
pub async fn expand(
    tx: &mut Tx<'_>,
    (batch, prices): (&UnexpandedBatch, &PricesInForce),
    first: i64,
    rows: &str,
) -> Result<u64> {
    let text = batch.shared_text();
    let rows = ChunkRow::parse_all(rows)?;
    let id = |position| domain::ids::nth_id(batch.first_message_id, position);
    let pages = |row: &ChunkRow| row.pages.or(text.map(|text| text.pages));
    // `None` only if the chunk is corrupt, because the cost of the whole batch was reserved without
    // an overflow. The database then rejects the null.
    let cost = |row: &ChunkRow| {
        let pages = usize::try_from(pages(row)?).ok()?;
        cost_at(prices.per_page(row.kind(), row.digits()), pages)
    };
    let whose = (batch.application_id, batch.test);
    for (row, position) in rows.iter().zip(first..) {
        let cost = cost(row).unwrap_or_default();
        (tx.tally).add_new(whose, Transid(id(position)), MessageStatus::Queued, cost);
    }
    let values = rows.iter().zip(first..).map(|(row, position)| {
        (
            id(position),
            row.digits(),
            row.kind().as_str(),
            row.body.as_deref(),
            pages(row),
            row.segments.or(text.map(|text| text.segments)),
            prices.per_page(row.kind(), row.digits()),
            cost(row),
            domain::ids::id_unix_ms(id(position)),
        )
    });
    let shared = (
        batch.application_id,
        batch.test,
        &batch.sender,
        &batch.requestid,
        batch.id,
        MessageStatus::Queued.code(),
        Money::ZERO,
    );
    query(EXPAND, shared).insert_each(tx, values).await
}
