//! Counts of attempts, for throttles.

use domain::Timestamp;

use super::query::{Connection, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    /// Counts one more attempt; a window that is over begins anew.
    const HIT: Sql = Sql::same(r"
        INSERT INTO throttles (bucket, window_started_at, hits)
        VALUES ($1, $2, 1)
        ON CONFLICT (bucket)
        DO UPDATE SET hits = CASE WHEN throttles.window_started_at <= $3 THEN 1
            ELSE throttles.hits + 1 END,
            window_started_at = CASE WHEN throttles.window_started_at <= $3 THEN $2
                ELSE throttles.window_started_at END
        RETURNING hits, window_started_at");
    const CLEAR: Sql = Sql::same("DELETE FROM throttles WHERE bucket = $1");
    const SWEEP: Sql = Sql::same("DELETE FROM throttles WHERE window_started_at <= $1");
}

/// How many attempts this window has, including this one, and when the window began.
pub(crate) async fn hit(
    conn: &mut dyn Connection,
    bucket: &str,
    now: Timestamp,
    window_ms: i64,
) -> Result<(i64, Timestamp)> {
    let read = |row: &Row<'_>| Ok((row.get("hits")?, row.get("window_started_at")?));
    let counting = query(HIT, (bucket, now, now.plus_ms(-window_ms)));
    counting.fetch_one(conn, read).await
}

pub(crate) async fn clear(conn: &mut dyn Connection, bucket: &str) -> Result<()> {
    query(CLEAR, bucket).execute(conn).await.map(drop)
}

/// Deletes the windows that began at this moment or before.
pub(crate) async fn sweep(conn: &mut dyn Connection, before: Timestamp) -> Result<()> {
    query(SWEEP, before).execute(conn).await.map(drop)
}
