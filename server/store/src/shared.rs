//! State that processes share through PostgreSQL: uploads in progress, their rows, and the
//! rate-limit buckets of keys. With SQLite the only process has this state in memory or in files.

use domain::{ApplicationId, KeyKind, Reference, Timestamp};

use super::query::{Conn, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const UPLOADS: Sql = Sql::postgres(r"
        SELECT CAST(COUNT(*) AS BIGINT) AS of_application,
               CAST(COUNT(*) FILTER (WHERE u.test = $2) AS BIGINT) AS of_key,
               CAST(COUNT(*) FILTER (WHERE u.test = $2 AND u.key = $3) AS BIGINT)
                   AS with_idempotency_key
        FROM uploads u
        JOIN nodes n ON n.slot = u.node AND n.token = u.token
        WHERE u.application_id = $1");
    const BEGIN_UPLOAD: Sql = Sql::postgres(r"
        INSERT INTO uploads (node, token, application_id, test, key)
        VALUES ($1, $2, $3, $4, $5)
        RETURNING id");
    const END_UPLOAD: Sql = Sql::postgres("DELETE FROM uploads WHERE id = $1");
    /// Deletes the uploads of processes that no longer have their slot.
    const FORGET_UPLOADS: Sql = Sql::postgres(r"
        DELETE FROM uploads u
        WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.slot = u.node AND n.token = u.token)");
    const INSERT_CHUNK: Sql = Sql::postgres_in_shard(r"
        INSERT INTO spool_chunks (spool, start, chunk, created_at, shard)
        VALUES ($1, $2, $3, $4, $5)");
    const CHUNKS: Sql = Sql::postgres_in_shard(r"
        SELECT start, chunk FROM spool_chunks
        WHERE spool = $1 AND start >= $2 AND shard = $4 ORDER BY start LIMIT $3");
    const REMOVE_SPOOL: Sql = Sql::postgres_in_shard(r"
        DELETE FROM spool_chunks WHERE spool = $1 AND shard = $2");
    /// Deletes the spools of uploads that never became a batch, and the spools of expanded batches.
    const FORGET_SPOOLS: Sql = Sql::postgres_in_shard(r"
        DELETE FROM spool_chunks
        WHERE created_at < $1 AND shard = $2
          AND spool NOT IN (SELECT spool FROM batches WHERE expanded_at IS NULL AND shard = $2)");
    const ENSURE_BUCKET: Sql = Sql::postgres(r"
        INSERT INTO rate_buckets (reference, test, level, filled_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING");
    /// Fills the bucket up to now, then takes at most `$3` requests. `$4` is the limit in requests
    /// per second, which is also how many thousandths of a request flow in per millisecond. If this
    /// process's clock is slightly behind that of the process that filled the bucket last, the
    /// bucket isn't filled. So no time is counted twice.
    const TAKE: Sql = Sql::postgres(r"
        WITH b AS (
            SELECT LEAST(
                $4 * 1000, level + LEAST(GREATEST($5 - filled_at, 0), 1000) * $4) AS filled
            FROM rate_buckets WHERE reference = $1 AND test = $2 FOR UPDATE)
        UPDATE rate_buckets SET level = b.filled - LEAST($3, b.filled / 1000) * 1000,
            filled_at = CASE WHEN filled_at - $5 > 1000 THEN $5 ELSE GREATEST(filled_at, $5) END
        FROM b WHERE reference = $1 AND test = $2
        RETURNING LEAST($3, b.filled / 1000) AS taken, level");
}

/// The number of uploads of an application that are in progress, in all processes.
pub struct UploadsUnderWay {
    pub of_application: usize,
    pub of_key: usize,
    pub with_idempotency_key: usize,
}

pub async fn uploads(
    conn: Conn<'_>,
    application_id: ApplicationId,
    kind: KeyKind,
    key: Option<&str>,
) -> Result<UploadsUnderWay> {
    let read = |row: &Row<'_>| {
        let count = |column| {
            let count: i64 = row.get(column)?;
            Result::Ok(usize::try_from(count).unwrap_or_default())
        };
        Ok(UploadsUnderWay {
            of_application: count("of_application")?,
            of_key: count("of_key")?,
            with_idempotency_key: count("with_idempotency_key")?,
        })
    };
    let counting = query(UPLOADS, (application_id, kind == KeyKind::Test, key));
    counting.fetch_one(conn, read).await
}

/// The slot and the token of a process that serves the database.
#[derive(Clone, Copy)]
pub struct NodeKey {
    pub slot: i64,
    pub token: i64,
}

/// Records that an upload is in progress. Returns the ID to end it by.
pub async fn begin_upload(
    conn: Conn<'_>,
    node: NodeKey,
    application_id: ApplicationId,
    kind: KeyKind,
    key: Option<&str>,
) -> Result<i64> {
    let values = (node.slot, node.token, application_id, kind == KeyKind::Test, key);
    query(BEGIN_UPLOAD, values).fetch_one(conn, |row| row.get("id")).await
}

pub async fn end_upload(conn: Conn<'_>, id: i64) -> Result<()> {
    query(END_UPLOAD, id).execute(conn).await.map(drop)
}

pub async fn forget_uploads(conn: Conn<'_>) -> Result<()> {
    query(FORGET_UPLOADS, ()).execute(conn).await.map(drop)
}

pub async fn insert_chunk(
    conn: Conn<'_>,
    spool: &str,
    start: i64,
    chunk: &[u8],
    now: Timestamp,
) -> Result<()> {
    query(INSERT_CHUNK, (spool, start, chunk, now)).execute(conn).await.map(drop)
}

/// Returns the first chunks of a spool from the offset `from` on, each with its own offset.
pub async fn chunks(
    conn: Conn<'_>,
    spool: &str,
    from: i64,
    limit: i64,
) -> Result<Vec<(i64, Vec<u8>)>> {
    query(CHUNKS, (spool, from, limit))
        .fetch_all(conn, |row| Ok((row.get("start")?, row.get("chunk")?)))
        .await
}

pub async fn remove_spool(conn: Conn<'_>, spool: &str) -> Result<()> {
    query(REMOVE_SPOOL, spool).execute(conn).await.map(drop)
}

/// Deletes the spools from before this time that are no longer needed.
pub async fn forget_spools(conn: Conn<'_>, before: Timestamp) -> Result<()> {
    query(FORGET_SPOOLS, before).execute(conn).await.map(drop)
}

/// The result of taking requests from a key's bucket.
pub struct TakenRequests {
    pub taken: i64,
    /// The level of the bucket, in thousandths of a request.
    pub level: i64,
}

/// Takes requests from a key's bucket. A negative `wanted` puts requests back.
pub async fn take_requests(
    conn: Conn<'_>,
    (reference, kind): (Reference, KeyKind),
    wanted: i64,
    limit: u32,
    now: Timestamp,
) -> Result<TakenRequests> {
    let (reference, test) = (reference.as_str(), kind == KeyKind::Test);
    let limit = i64::from(limit);
    let read =
        |row: &Row<'_>| Ok(TakenRequests { taken: row.get("taken")?, level: row.get("level")? });
    loop {
        let taking = query(TAKE, (reference, test, wanted, limit, now));
        if let Some(taken) = taking.fetch_optional(conn, read).await? {
            return Ok(taken);
        }
        let ensuring = query(ENSURE_BUCKET, (reference, test, limit * 1000, now));
        ensuring.execute(conn).await?;
    }
}
