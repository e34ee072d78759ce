//! Deletes old messages and keeps sums of them. Also defines the tables by day or week.

use domain::ids::id_of_day;
use domain::{ApplicationId, BatchId};

use super::erasure::MASK;
use super::query::{Connection, Row, query};
use super::sql::{Sql, in_shard, statements};
use crate::error::Result;

statements! {
    const SUM_UP: Sql = in_shard!(
        "INSERT INTO dropped_days (" => "shard, ",
        r"day, application_id, charged, released)
        SELECT " => "shard, ",
        r"((id >> 21) + 1704067200000) / 86400000 AS day, application_id,
               CAST(SUM(CASE WHEN batch_id IS NULL THEN cost ELSE 0 END) AS BIGINT),
               CAST(SUM(released) AS BIGINT)
        FROM messages WHERE id >= $1 AND id < $2 AND test = 0" => " AND shard = $3",
        r"
        GROUP BY " => "shard, ",
        r"day, application_id
        ON CONFLICT (" => "shard, ",
        r"day, application_id)
        DO UPDATE SET charged = dropped_days.charged + excluded.charged,
            released = dropped_days.released + excluded.released",
    );
    const DELETE_MESSAGES: Sql = in_shard!(
        "DELETE FROM messages WHERE id >= $1 AND id < $2" => " AND shard = $3",
    );
    const DELETE_EVENTS: Sql = in_shard!(
        "DELETE FROM message_timeline WHERE message_id >= $1 AND message_id < $2"
            => " AND shard = $3",
    );
    /// Leaves the last three digits. Erased numbers stay as they are.
    const MASK_NUMBERS: Sql = in_shard!(
        r"
        UPDATE messages
        SET number = SUBSTR(CAST($3 AS TEXT), 1, LENGTH(number) - 3)
                || SUBSTR(number, LENGTH(number) - 2)
        WHERE id >= $1 AND id < $2 AND SUBSTR(number, 1, 1) <> '•'" => " AND shard = $4",
    );
    /// Deletes the shared texts of batches whose last message is being deleted.
    const FORGET_SHARED_TEXTS: Sql = in_shard!(
        r"
        UPDATE batches SET body = NULL
        WHERE last_message_id >= $1 AND last_message_id < $2 AND body IS NOT NULL
          AND expanded_at IS NOT NULL"
            => " AND shard = $3",
    );
    /// The day of a final message. The counts of messages that aren't final stay until they are.
    const TEST_DAY: Sql = in_shard!(
        r"
        SELECT application_id, day
        FROM message_days WHERE test = 1 AND day < $1 AND status >= {delivered}"
            => " AND shard = $2",
        " ORDER BY day, application_id LIMIT 1",
    );
    const NTH_TEST: Sql = in_shard!(
        r"
        SELECT id
        FROM messages
        WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3 AND status >= {delivered}"
            => " AND shard = $5",
        " ORDER BY id LIMIT 1 OFFSET $4",
    );
    const OPEN_TEST: Sql = in_shard!(
        r"
        SELECT id
        FROM messages
        WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3 AND status < {delivered}"
            => " AND shard = $4",
        " LIMIT 1",
    );
    /// Keeps messages from becoming final before the commit.
    const LOCK_OPEN_TESTS: Sql = Sql::postgres_in_shard(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1
            FROM messages
            WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3
              AND status < {delivered} AND shard = $4
            ORDER BY id FOR UPDATE) m");
    const DELETE_TEST_EVENTS: Sql = in_shard!(
        r"
        DELETE FROM message_timeline
        WHERE message_id >= $2 AND message_id < $3 AND message_id IN (
            SELECT id
            FROM messages
            WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3
              AND status >= {delivered}" => " AND shard = $4",
        ")" => " AND shard = $4",
    );
    const DELETE_TESTS: Sql = in_shard!(
        r"
        DELETE FROM messages
        WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3 AND status >= {delivered}"
            => " AND shard = $4",
    );
    /// PostgreSQL only: SQLite has an index of `messages` instead of this table.
    const FORGET_UNUSUAL_TESTS: Sql = Sql::postgres_in_shard(r"
        DELETE FROM unusual_messages
        WHERE application_id = $1 AND test = 1 AND message_id >= $2 AND message_id < $3
          AND status > {delivered} AND shard = $4");
    const DELETE_TEST_DAY: Sql = in_shard!(
        "DELETE FROM message_days WHERE application_id = $1 AND test = 1 AND day = $2"
            => " AND shard = $3",
    );
    const DELETE_FINAL_COUNTS: Sql = in_shard!(
        r"
        DELETE FROM message_days
        WHERE application_id = $1 AND test = 1 AND day = $2 AND status >= {delivered}"
            => " AND shard = $3",
    );
    const DELETE_TEST_QUARTERS: Sql = in_shard!(
        r"
        DELETE FROM message_quarters
        WHERE application_id = $1 AND test = 1 AND quarter >= $2 AND quarter < $3"
            => " AND shard = $4",
    );
    const DELETE_TEST_BATCHES: Sql = in_shard!(
        r"
        DELETE FROM batches
        WHERE id IN (
            SELECT id
            FROM batches b
            WHERE test = 1 AND last_message_id < $1 AND expanded_at IS NOT NULL"
            => " AND shard = $3",
        r"
              AND NOT EXISTS (
                  SELECT 1
                  FROM messages m
                  WHERE m.application_id = b.application_id AND m.test = 1
                    AND m.id BETWEEN b.first_message_id AND b.last_message_id"
            => " AND m.shard = $3",
        ") LIMIT $2)" => " AND shard = $3",
        " RETURNING id",
    );
    const DELETE_BATCH_COUNTS: Sql = Sql {
        sqlite: "DELETE FROM batch_counts WHERE batch_id = ?1",
        postgres: r"
            DELETE FROM batch_counts
            WHERE batch_id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              AND shard = $2",
        ..Sql::IN_SHARD
    };
}

/// The number of quarter hours in a day.
const QUARTERS_OF_DAY: i64 = 96;

/// A range of message IDs, excluding `below`.
#[derive(Clone, Copy)]
pub struct Range {
    pub from: i64,
    pub below: i64,
}

impl Range {
    /// Returns the IDs of the days from `from` up to but not including `below`. Days are counted
    /// since 1970-01-01 UTC.
    pub const fn of_days(from: i64, below: i64) -> Self {
        Self { from: id_of_day(from), below: id_of_day(below) }
    }
}

/// The time span of a new table of messages, if the database has tables by day or week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageTables {
    Day,
    /// From Monday to Sunday. If a day of the week already has its own table, the week's other days
    /// get their own tables too.
    Week,
}

/// A table of messages, and the table of their events.
pub struct Partition {
    /// The suffix of both tables' names.
    pub suffix: String,
    pub range: Range,
}

/// Adds the charges and releases of these messages to the sums that are kept by day.
pub async fn sum_up(conn: &mut dyn Connection, range: Range) -> Result<()> {
    query(SUM_UP, (range.from, range.below)).execute(conn).await.map(drop)
}

pub async fn delete(conn: &mut dyn Connection, range: Range) -> Result<()> {
    for statement in [DELETE_MESSAGES, DELETE_EVENTS] {
        query(statement, (range.from, range.below)).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Masks the numbers of messages.
pub async fn mask_numbers(conn: &mut dyn Connection, range: Range) -> Result<()> {
    query(MASK_NUMBERS, (range.from, range.below, MASK)).execute(conn).await.map(drop)
}

/// Deletes the shared texts of batches whose last message is in this range.
pub async fn forget_shared_texts(conn: &mut dyn Connection, range: Range) -> Result<()> {
    query(FORGET_SHARED_TEXTS, (range.from, range.below)).execute(conn).await.map(drop)
}

/// Deletes final messages of test keys and everything that is stored about them: at most `limit`
/// messages or batches. Deletes only messages that were accepted before the day `below` (since
/// 1970-01-01 UTC). Messages that aren't final stay, and so do the figures of their day. Returns
/// false if there is nothing left to delete.
pub async fn delete_tests(conn: &mut dyn Connection, below: i64, limit: i64) -> Result<bool> {
    let read = |row: &Row<'_>| Ok((row.get("application_id")?, row.get("day")?));
    let found: Option<(ApplicationId, i64)> =
        query(TEST_DAY, below).fetch_optional(&mut *conn, read).await?;
    let Some((application, day)) = found else {
        let deleting = query(DELETE_TEST_BATCHES, (id_of_day(below), limit));
        let batches: Vec<BatchId> = deleting.fetch_all(&mut *conn, |row| row.get("id")).await?;
        let deleting = query(DELETE_BATCH_COUNTS, ());
        deleting.execute_each(conn, batches.iter().copied()).await?;
        return Ok(!batches.is_empty());
    };
    let Range { from, below: end } = Range::of_days(day, day + 1);
    let next = nth_test(conn, application, (from, end), limit).await?;
    let is_last = next.is_none();
    let until = next.unwrap_or(end);
    let mut statements = vec![DELETE_TEST_EVENTS, DELETE_TESTS];
    if conn.dialect().is_shared() {
        statements.push(FORGET_UNUSUAL_TESTS);
        if is_last {
            query(LOCK_OPEN_TESTS, (application, from, end)).finds(&mut *conn).await?;
        }
    }
    for statement in statements {
        query(statement, (application, from, until)).execute(&mut *conn).await?;
    }
    if is_last {
        forget_test_day(conn, application, day).await?;
    }
    Ok(true)
}

/// Deletes the figures of a day whose final test messages are deleted. If other messages of the day
/// are left, deletes only the counts of final messages.
async fn forget_test_day(
    conn: &mut dyn Connection,
    application: ApplicationId,
    day: i64,
) -> Result<()> {
    let Range { from, below } = Range::of_days(day, day + 1);
    if query(OPEN_TEST, (application, from, below)).finds(&mut *conn).await? {
        return query(DELETE_FINAL_COUNTS, (application, day)).execute(conn).await.map(drop);
    }
    query(DELETE_TEST_DAY, (application, day)).execute(&mut *conn).await?;
    let quarters = (day * QUARTERS_OF_DAY, (day + 1) * QUARTERS_OF_DAY);
    let deleting = query(DELETE_TEST_QUARTERS, (application, quarters.0, quarters.1));
    deleting.execute(conn).await.map(drop)
}

/// Returns the ID of the final test message that is at position `before` (from 0) in a range of
/// IDs.
async fn nth_test(
    conn: &mut dyn Connection,
    application: ApplicationId,
    (from, below): (i64, i64),
    before: i64,
) -> Result<Option<i64>> {
    query(NTH_TEST, (application, from, below, before))
        .fetch_optional(conn, |row| row.get("id"))
        .await
}
