//! State that processes share through PostgreSQL, and that the one process of a SQLite database has
//! in memory or in files: uploads under way and their rows, and how many requests a key may still
//! make.

use domain::{ApplicationId, KeyKind, Reference, Timestamp};

use super::query::{Connection, query};
use super::row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const UPLOADS: Sql = Sql::postgres(r"
        SELECT CAST(COUNT(*) AS BIGINT) AS n,
               CAST(COUNT(*) FILTER (WHERE u.test = $2 AND u.key = $3) AS BIGINT) AS with_key
        FROM uploads u
        JOIN nodes n ON n.slot = u.node AND n.token = u.token
        WHERE u.application_id = $1");
    const BEGIN_UPLOAD: Sql = Sql::postgres(r"
        INSERT INTO uploads (node, token, application_id, test, key)
        VALUES ($1, $2, $3, $4, $5)
        RETURNING id");
    const END_UPLOAD: Sql = Sql::postgres("DELETE FROM uploads WHERE id = $1");
    /// Of processes that are gone.
    const FORGET_UPLOADS: Sql = Sql::postgres(r"
        DELETE FROM uploads u
        WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.slot = u.node AND n.token = u.token)");
    const INSERT_CHUNK: Sql = Sql::postgres(r"
        INSERT INTO spool_chunks (spool, start, chunk, created_at) VALUES ($1, $2, $3, $4)");
    const CHUNK: Sql = Sql::postgres(r"
        SELECT chunk FROM spool_chunks WHERE spool = $1 AND start = $2");
    const REMOVE_SPOOL: Sql = Sql::postgres("DELETE FROM spool_chunks WHERE spool = $1");
    /// Uploads that never became a batch, and those of batches that are expanded.
    const FORGET_SPOOLS: Sql = Sql::postgres(r"
        DELETE FROM spool_chunks
        WHERE created_at < $1
          AND spool NOT IN (SELECT spool FROM batches WHERE expanded_at IS NULL)");
    const ENSURE_BUCKET: Sql = Sql::postgres(r"
        INSERT INTO rate_buckets (reference, test, level, filled_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING");
    /// Fills the bucket up to now, then takes as many requests as there are, at most so many. What
    /// flows in within a millisecond is the limit, in thousandths of a request; a moment that is a
    /// little behind another process's adds nothing, and isn't counted again.
    const TAKE: Sql = Sql::postgres(r"
        WITH b AS (
            SELECT LEAST(
                $4 * 1000, level + LEAST(GREATEST($5 - filled_at, 0), 1000) * $4) AS filled
            FROM rate_buckets WHERE reference = $1 AND test = $2
            FOR UPDATE)
        UPDATE rate_buckets SET level = b.filled - LEAST($3, b.filled / 1000) * 1000,
            filled_at = CASE WHEN filled_at - $5 > 1000 THEN $5 ELSE GREATEST(filled_at, $5) END
        FROM b WHERE reference = $1 AND test = $2
        RETURNING LEAST($3, b.filled / 1000) AS taken, level");
}

/// Uploads of an application that are under way.
pub(crate) struct UploadsUnderWay {
    pub(crate) all: i64,
    /// Those with the same idempotency key.
    pub(crate) with_key: i64,
}

/// How many uploads of an application are under way.
pub(crate) async fn uploads(
    conn: &mut dyn Connection,
    application_id: ApplicationId,
    kind: KeyKind,
    key: Option<&str>,
) -> Result<UploadsUnderWay> {
    let row = query(UPLOADS)
        .bind(application_id)
        .bind(i64::from(kind == KeyKind::Test))
        .bind(key.map(str::to_owned))
        .fetch_one(conn)
        .await?;
    Ok(UploadsUnderWay {
        all: row::int(&row, "n")?,
        with_key: row::int(&row, "with_key")?,
    })
}

/// A process that serves the database.
#[derive(Clone, Copy)]
pub(crate) struct NodeKey {
    pub(crate) slot: i64,
    pub(crate) token: i64,
}

/// Counts an upload; the id to end it by.
pub(crate) async fn begin_upload(
    conn: &mut dyn Connection,
    node: NodeKey,
    application_id: ApplicationId,
    kind: KeyKind,
    key: Option<&str>,
) -> Result<i64> {
    let row = query(BEGIN_UPLOAD)
        .bind(node.slot)
        .bind(node.token)
        .bind(application_id)
        .bind(i64::from(kind == KeyKind::Test))
        .bind(key.map(str::to_owned))
        .fetch_one(conn)
        .await?;
    row::int(&row, "id")
}

pub(crate) async fn end_upload(conn: &mut dyn Connection, id: i64) -> Result<()> {
    query(END_UPLOAD).bind(id).execute(conn).await?;
    Ok(())
}

pub(crate) async fn forget_uploads(conn: &mut dyn Connection) -> Result<()> {
    query(FORGET_UPLOADS).execute(conn).await?;
    Ok(())
}

pub(crate) async fn insert_chunk(
    conn: &mut dyn Connection,
    spool: &str,
    start: i64,
    chunk: &[u8],
    now: Timestamp,
) -> Result<()> {
    query(INSERT_CHUNK)
        .bind(spool.to_owned())
        .bind(start)
        .bind(chunk.to_vec())
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(())
}

pub(crate) async fn chunk(
    conn: &mut dyn Connection,
    spool: &str,
    start: i64,
) -> Result<Option<Vec<u8>>> {
    let row = query(CHUNK)
        .bind(spool.to_owned())
        .bind(start)
        .fetch_optional(conn)
        .await?;
    row.map(|row| row::bytes(&row, "chunk")).transpose()
}

pub(crate) async fn remove_spool(conn: &mut dyn Connection, spool: &str) -> Result<()> {
    query(REMOVE_SPOOL)
        .bind(spool.to_owned())
        .execute(conn)
        .await?;
    Ok(())
}

/// Forgets what was uploaded before this moment and isn't needed any more.
pub(crate) async fn forget_spools(conn: &mut dyn Connection, before: Timestamp) -> Result<()> {
    query(FORGET_SPOOLS)
        .bind(before.unix_ms())
        .execute(conn)
        .await?;
    Ok(())
}

/// Requests that were taken out of a key's bucket.
pub(crate) struct TakenRequests {
    pub(crate) taken: i64,
    /// What is left, in thousandths of a request.
    pub(crate) level: i64,
}

/// Takes requests out of a key's bucket, or gives them back.
pub(crate) async fn take_requests(
    conn: &mut dyn Connection,
    (reference, kind): (Reference, KeyKind),
    wanted: i64,
    limit: u32,
    now: Timestamp,
) -> Result<TakenRequests> {
    let (reference, test) = (reference.to_string(), i64::from(kind == KeyKind::Test));
    loop {
        let found = query(TAKE)
            .bind(reference.clone())
            .bind(test)
            .bind(wanted)
            .bind(i64::from(limit))
            .bind(now.unix_ms())
            .fetch_optional(&mut *conn)
            .await?;
        if let Some(row) = found {
            return Ok(TakenRequests {
                taken: row::int(&row, "taken")?,
                level: row::int(&row, "level")?,
            });
        }
        query(ENSURE_BUCKET)
            .bind(reference.clone())
            .bind(test)
            .bind(i64::from(limit) * 1000)
            .bind(now.unix_ms())
            .execute(&mut *conn)
            .await?;
    }
}
