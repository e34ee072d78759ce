//! Deletes old messages and keeps sums of them. Removes numbers and texts from messages that stay.
//! Also defines the tables by day or week.

use domain::ids::{compose_id, id_of_day, id_unix_ms};
use domain::schedule::DAYS_AHEAD_MAX;
use domain::timestamp::DAY_MS;
use domain::{ApplicationId, BatchId};

use super::erasure::MASK;
use super::query::{Conn, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The beginning of a statement that masks numbers. Keeps the last three digits. Skips erased
/// numbers, and numbers of at most three digits.
macro_rules! mask_numbers {
    ($table:literal, $condition:literal) => {
        concat!(
            "UPDATE ",
            $table,
            r"
        SET number = SUBSTR(CAST($3 AS TEXT), 1, LENGTH(number) - 3)
                || SUBSTR(number, LENGTH(number) - 2)
        WHERE ",
            $condition,
            " AND LENGTH(number) > 3 AND SUBSTR(number, 1, 1) <> '•'"
        )
    };
}

/// The beginning of a statement that erases texts.
macro_rules! erase_texts {
    ($table:literal, $condition:literal) => {
        concat!("UPDATE ", $table, " SET body = '' WHERE ", $condition, " AND body <> ''")
    };
}

statements! {
    const SUM_UP: Sql = Sql::in_shard(r"
        INSERT INTO dropped_days (day, application_id{, shard}, charged, released)
        SELECT ((id >> 21) + 1704067200000) / 86400000 AS day, application_id{, shard},
               CAST(SUM(CASE WHEN batch_id IS NULL THEN cost ELSE 0 END) AS BIGINT),
               CAST(SUM(released) AS BIGINT)
        FROM messages WHERE id >= $1 AND id < $2 AND test = 0{ AND shard = $shard}
        GROUP BY day, application_id{, shard}
        ON CONFLICT (day, application_id{, shard})
        DO UPDATE SET charged = dropped_days.charged + excluded.charged,
            released = dropped_days.released + excluded.released");
    const DELETE_MESSAGES: Sql = Sql::in_shard(
        "DELETE FROM messages WHERE id >= $1 AND id < $2{ AND shard = $shard}");
    const DELETE_EVENTS: Sql = Sql::in_shard(r"
        DELETE FROM message_timeline
        WHERE message_id >= $1 AND message_id < $2{ AND shard = $shard}");
    const MASK_NUMBERS: Sql = Sql::in_shard(concat!(
        mask_numbers!("messages", "id >= $1 AND id < $2 AND status >= {delivered}"),
        "{ AND shard = $shard}",
    ));
    /// The plus signs keep SQLite from reading all messages of these days. On PostgreSQL, the IDs
    /// limit the statement to the partitions of these days.
    const MASK_SCHEDULED: Sql = Sql {
        sqlite: mask_numbers!(
            "messages",
            "+id >= $1 AND +id < $2 AND send_at >= $4 AND send_at < $5 AND status >= {delivered}"
        ),
        postgres: concat!(
            mask_numbers!(
                "messages",
                "id >= $1 AND id < $2 AND send_at >= $4 AND send_at < $5 AND status >= {delivered}"
            ),
            " AND shard = $6"
        ),
        ..Sql::IN_SHARD
    };
    const MASK_INBOUND: Sql = Sql::in_shard(concat!(
        mask_numbers!("inbound_messages", "id >= $1 AND id < $2"),
        "{ AND shard = $shard}",
    ));
    const MASK_UNASSIGNED: Sql =
        Sql::same(mask_numbers!("unassigned_inbound", "id >= $1 AND id < $2"));
    const MASK_VERIFICATIONS: Sql = Sql::in_shard(concat!(
        mask_numbers!("verifications", "id >= $1 AND id < $2"),
        "{ AND shard = $shard}",
    ));
    /// A message with the text of its batch has none of its own.
    const ERASE_TEXTS: Sql = Sql::in_shard(concat!(
        erase_texts!("messages", "id >= $1 AND id < $2 AND status >= {delivered}"),
        "{ AND shard = $shard}",
    ));
    /// See [`MASK_SCHEDULED`].
    const ERASE_SCHEDULED_TEXTS: Sql = Sql {
        sqlite: erase_texts!(
            "messages",
            "+id >= $1 AND +id < $2 AND send_at >= $3 AND send_at < $4 AND status >= {delivered}"
        ),
        postgres: concat!(
            erase_texts!(
                "messages",
                "id >= $1 AND id < $2 AND send_at >= $3 AND send_at < $4 AND status >= {delivered}"
            ),
            " AND shard = $5"
        ),
        ..Sql::IN_SHARD
    };
    const ERASE_INBOUND_TEXTS: Sql = Sql::in_shard(concat!(
        erase_texts!("inbound_messages", "id >= $1 AND id < $2"),
        "{ AND shard = $shard}",
    ));
    const ERASE_UNASSIGNED_TEXTS: Sql =
        Sql::same(erase_texts!("unassigned_inbound", "id >= $1 AND id < $2"));
    /// A batch that isn't done may still need its text, however old its message IDs are: a
    /// scheduled batch gets new message IDs only when it begins.
    const ERASE_SHARED_TEXTS: Sql = Sql::in_shard(r"
        UPDATE batches SET body = '' WHERE id IN (
            SELECT id FROM batches WHERE body <> '' AND last_message_id < $1
              AND done_at IS NOT NULL{ AND shard = $shard} LIMIT $2){ AND shard = $shard}");
    /// A day with final test messages. The counts of other messages stay until they are final.
    const TEST_DAY: Sql = Sql::in_shard(r"
        SELECT application_id, day
        FROM message_days WHERE test = 1 AND day < $1 AND status >= {delivered}{ AND shard = $shard}
        ORDER BY day, application_id LIMIT 1");
    const NTH_TEST: Sql = Sql::in_shard(r"
        SELECT id FROM messages
        WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3
          AND status >= {delivered}{ AND shard = $shard} ORDER BY id LIMIT 1 OFFSET $4");
    const OPEN_TEST: Sql = Sql::in_shard(r"
        SELECT id FROM messages
        WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3
          AND status < {delivered}{ AND shard = $shard} LIMIT 1");
    /// Keeps messages from becoming final before the commit.
    const LOCK_OPEN_TESTS: Sql = Sql::postgres_in_shard(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1 FROM messages
            WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3
              AND status < {delivered} AND shard = $4
            ORDER BY id FOR UPDATE) m");
    const DELETE_TEST_EVENTS: Sql = Sql::in_shard(r"
        DELETE FROM message_timeline WHERE message_id >= $2 AND message_id < $3 AND message_id IN (
            SELECT id FROM messages
            WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3
              AND status >= {delivered}{ AND shard = $shard}){ AND shard = $shard}");
    const DELETE_TESTS: Sql = Sql::in_shard(r"
        DELETE FROM messages
        WHERE application_id = $1 AND test = 1 AND id >= $2 AND id < $3
          AND status >= {delivered}{ AND shard = $shard}");
    /// PostgreSQL only: SQLite has an index of `messages` instead of this table.
    const FORGET_UNUSUAL_TESTS: Sql = Sql::postgres_in_shard(r"
        DELETE FROM unusual_messages
        WHERE application_id = $1 AND test = 1 AND message_id >= $2 AND message_id < $3
          AND status > {delivered} AND shard = $4");
    const DELETE_TEST_DAY: Sql = Sql::in_shard(r"
        DELETE FROM message_days
        WHERE application_id = $1 AND test = 1 AND day = $2{ AND shard = $shard}");
    const DELETE_FINAL_COUNTS: Sql = Sql::in_shard(r"
        DELETE FROM message_days
        WHERE application_id = $1 AND test = 1 AND day = $2
          AND status >= {delivered}{ AND shard = $shard}");
    const DELETE_TEST_QUARTERS: Sql = Sql::in_shard(r"
        DELETE FROM message_quarters
        WHERE application_id = $1 AND test = 1 AND quarter >= $2
          AND quarter < $3{ AND shard = $shard}");
    const DELETE_TEST_BATCHES: Sql = Sql::in_shard(r"
        DELETE FROM batches WHERE id IN (
            SELECT id FROM batches b
            WHERE test = 1 AND last_message_id < $1 AND expanded_at IS NOT NULL{ AND shard = $shard}
              AND NOT EXISTS (
                  SELECT 1 FROM messages m
                  WHERE m.application_id = b.application_id AND m.test = 1
                    AND m.id BETWEEN b.first_message_id
                      AND b.last_message_id{ AND m.shard = $shard}) LIMIT $2){ AND shard = $shard}
              RETURNING id");
    const DELETE_BATCH_COUNTS: Sql = Sql {
        sqlite: "DELETE FROM batch_counts WHERE batch_id = ?1",
        postgres: r"
            DELETE FROM batch_counts WHERE batch_id = ANY ({ids}) AND shard = $2",
        ..Sql::IN_SHARD
    };
}

/// The number of quarter hours in a day.
const QUARTERS_OF_DAY: i64 = 96;

/// The data to remove from old messages. Everything else about them stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// All but the last three digits of numbers.
    Numbers,
    Texts,
}

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
pub async fn sum_up(conn: Conn<'_>, range: Range) -> Result<()> {
    query(SUM_UP, (range.from, range.below)).execute(conn).await.map(drop)
}

pub async fn delete(conn: Conn<'_>, range: Range) -> Result<()> {
    for statement in [DELETE_MESSAGES, DELETE_EVENTS] {
        query(statement, (range.from, range.below)).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Masks the numbers, or erases the texts, of final messages and of inbound messages in this range.
/// Does the same with final messages that were scheduled for a time in this range.
pub async fn redact(
    conn: Conn<'_>,
    redaction: Redaction,
    Range { from, below }: Range,
) -> Result<()> {
    let times = (id_unix_ms(from), id_unix_ms(below));
    let first_ms = times.0 - DAYS_AHEAD_MAX * DAY_MS;
    let accepted = compose_id(first_ms, 0);
    match redaction {
        Redaction::Numbers => {
            let masking = query(MASK_SCHEDULED, (accepted, below, MASK, times.0, times.1));
            masking.execute(&mut *conn).await?;
            for of_range in [MASK_NUMBERS, MASK_INBOUND, MASK_UNASSIGNED, MASK_VERIFICATIONS] {
                query(of_range, (from, below, MASK)).execute(&mut *conn).await?;
            }
        }
        Redaction::Texts => {
            let erasing = query(ERASE_SCHEDULED_TEXTS, (accepted, below, times.0, times.1));
            erasing.execute(&mut *conn).await?;
            for of_range in [ERASE_TEXTS, ERASE_INBOUND_TEXTS, ERASE_UNASSIGNED_TEXTS] {
                query(of_range, (from, below)).execute(&mut *conn).await?;
            }
        }
    }
    Ok(())
}

/// Erases the shared texts of at most `limit` batches that are done and whose messages all have IDs
/// below `below`. Returns whether there may be more.
pub async fn erase_shared_texts(conn: Conn<'_>, below: i64, limit: i64) -> Result<bool> {
    let erased = query(ERASE_SHARED_TEXTS, (below, limit)).execute(conn).await?;
    Ok(erased >= limit.unsigned_abs())
}

/// Deletes final messages of test keys and everything that is stored about them: at most `limit`
/// messages or batches. Deletes only messages that were accepted before the day `below` (since
/// 1970-01-01 UTC). Messages that aren't final stay, and so do the figures of their day. Returns
/// false if there is nothing left to delete.
pub async fn delete_tests(conn: Conn<'_>, below: i64, limit: i64) -> Result<bool> {
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
async fn forget_test_day(conn: Conn<'_>, application: ApplicationId, day: i64) -> Result<()> {
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
    conn: Conn<'_>,
    application: ApplicationId,
    (from, below): (i64, i64),
    before: i64,
) -> Result<Option<i64>> {
    query(NTH_TEST, (application, from, below, before))
        .fetch_optional(conn, |row| row.get("id"))
        .await
}
