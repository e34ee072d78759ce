//! Alarms about the use of applications, and counts of the requests that their limits refused.

use domain::ids::id_unix_ms;
use domain::records::AlarmRecord;
use domain::{AlarmKind, ApplicationId, Timestamp};

use super::query::{Conn, Row, query};
use super::row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    /// Adds to the newest alarm of this kind, if it isn't older than `$3`.
    const REPEAT: Sql = Sql::in_shard(r"
        UPDATE limit_alarms SET count = count + $4 WHERE application_id = $1 AND id = (
            SELECT MAX(id) FROM limit_alarms WHERE application_id = $1 AND kind = $2
              AND id >= $3{ AND shard = $shard}){ AND shard = $shard}");
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO limit_alarms (application_id, id, kind, count, example, detail{, shard})
        VALUES ($1, $2, $3, $4, $5, $6{, $shard})");
    /// For an application that has never sent to an international number, counts from its creation.
    const INTERNATIONAL_AFTER: Sql = Sql::in_shard(r"
        UPDATE applications SET international_day = $2
        WHERE id = $1
          AND COALESCE(international_day, created_at / 86400000) <= $3{ AND shard = $shard}");
    const INTERNATIONAL: Sql = Sql::in_shard(r"
        UPDATE applications SET international_day = $2
        WHERE id = $1 AND COALESCE(international_day, 0) < $2{ AND shard = $shard}");
    const FORGET: Sql = Sql::in_shard(
        "DELETE FROM limit_alarms WHERE id < $1{ AND shard = $shard}");
    const UNREAD: Sql = Sql::in_shard(r"
        SELECT id, kind, count, example, detail
        FROM limit_alarms WHERE application_id = $1 AND read_at IS NULL{ AND shard = $shard}
        ORDER BY id DESC LIMIT $2");
    const READ: Sql = Sql::in_shard(r"
        UPDATE limit_alarms SET read_at = $2
        WHERE application_id = $1 AND id <= $3 AND read_at IS NULL{ AND shard = $shard}");
    const READ_OF_KIND: Sql = Sql::in_shard(r"
        UPDATE limit_alarms SET read_at = $2
        WHERE application_id = $1 AND kind = $3 AND read_at IS NULL{ AND shard = $shard}");
    const COUNT: Sql = Sql::in_shard(r"
        INSERT INTO limit_refusals AS r (application_id, reason, day, n{, shard})
        VALUES ($1, $2, $3, $4{, $shard})
        ON CONFLICT (application_id, reason, day{, shard}) DO UPDATE SET n = r.n + excluded.n");
    const FORGET_COUNTS: Sql = Sql::in_shard(
        "DELETE FROM limit_refusals WHERE day < $1{ AND shard = $shard}");
    const COUNTS: Sql = Sql::in_shard(r"
        SELECT reason, CAST(SUM(n) AS BIGINT) AS n
        FROM limit_refusals WHERE application_id = $1 AND day >= $2{ AND shard = $shard}
        GROUP BY reason ORDER BY reason");
}

pub struct NewAlarm<'a> {
    pub application_id: ApplicationId,
    pub kind: AlarmKind,
    pub count: i64,
    pub example: Option<&'a str>,
    pub detail: Option<&'a str>,
}

/// Stores an alarm, or adds to the newest alarm of its kind if that alarm isn't older than `since`.
/// Returns true if the alarm is new. `id` begins with the time of the alarm.
pub async fn note(conn: Conn<'_>, new: &NewAlarm<'_>, id: i64, since: i64) -> Result<bool> {
    let NewAlarm { application_id, kind, count, example, detail } = *new;
    let repeating = query(REPEAT, (application_id, kind.as_str(), since, count));
    if repeating.execute(&mut *conn).await? > 0 {
        return Ok(false);
    }
    let values = (application_id, id, kind.as_str(), count, example, detail);
    query(INSERT, values).execute(conn).await?;
    Ok(true)
}

/// Stores that an application sent to an international number on a day. Returns true if it hasn't
/// done so in the `days` before that, and was created even earlier.
pub async fn is_first_international(
    conn: Conn<'_>,
    application_id: ApplicationId,
    day: i64,
    days: i64,
) -> Result<bool> {
    let after = query(INTERNATIONAL_AFTER, (application_id, day, day - days));
    if after.execute(&mut *conn).await? > 0 {
        return Ok(true);
    }
    query(INTERNATIONAL, (application_id, day)).execute(conn).await?;
    Ok(false)
}

/// Deletes alarms with IDs below this one, and the counts of days before this one.
pub async fn forget(conn: Conn<'_>, below: i64, before_day: i64) -> Result<()> {
    query(FORGET, below).execute(&mut *conn).await?;
    query(FORGET_COUNTS, before_day).execute(conn).await.map(drop)
}

/// Returns at most `limit` alarms that the owner hasn't marked as read, newest first.
pub async fn unread(
    conn: Conn<'_>,
    application_id: ApplicationId,
    limit: i64,
) -> Result<Vec<AlarmRecord>> {
    query(UNREAD, (application_id, limit)).fetch_all(conn, read).await
}

fn read(row: &Row<'_>) -> Result<AlarmRecord> {
    let id: i64 = row.get("id")?;
    Ok(AlarmRecord {
        id,
        at: Timestamp::from_unix_ms(id_unix_ms(id)),
        kind: row::word(row, "limit_alarms", "kind", AlarmKind::parse)?,
        count: row.get("count")?,
        example: row.get("example")?,
        detail: row.get("detail")?,
    })
}

/// Marks alarms up to this ID as read.
pub async fn mark_read(
    conn: Conn<'_>,
    application_id: ApplicationId,
    up_to: i64,
    now: Timestamp,
) -> Result<()> {
    query(READ, (application_id, now, up_to)).execute(conn).await.map(drop)
}

pub async fn mark_kind_read(
    conn: Conn<'_>,
    application_id: ApplicationId,
    kind: AlarmKind,
    now: Timestamp,
) -> Result<()> {
    query(READ_OF_KIND, (application_id, now, kind.as_str())).execute(conn).await.map(drop)
}

/// Counts requests that an application's limits refused on a day.
pub async fn count(
    conn: Conn<'_>,
    application_id: ApplicationId,
    (reason, n): (&str, i64),
    day: i64,
) -> Result<()> {
    query(COUNT, (application_id, reason, day, n)).execute(conn).await.map(drop)
}

/// Returns the number of requests that an application's limits refused since a day, by reason.
pub async fn counts(
    conn: Conn<'_>,
    application_id: ApplicationId,
    since: i64,
) -> Result<Vec<(String, i64)>> {
    let read = |row: &Row<'_>| Ok((row.get("reason")?, row.get("n")?));
    query(COUNTS, (application_id, since)).fetch_all(conn, read).await
}
