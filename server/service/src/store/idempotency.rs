//! Answers that are kept for requests with an Idempotency-Key.

use super::query::{Connection, query};
use domain::Timestamp;

use super::dialect::Batch;
use super::row::{self, json, touched};
use super::statements;
use crate::error::Result;

statements! {
    SWEEP = "DELETE FROM idempotency WHERE created_at <= $1";
    /// Where a sweep of at most so many ends.
    SWEEP_END = "SELECT created_at FROM idempotency WHERE created_at <= $1 \
                 ORDER BY created_at LIMIT 1 OFFSET $2";
}

/// Application, test, the caller's key.
pub(crate) type KeptKey = (i64, i64, String);

/// An answer and the request that it was given to.
#[derive(Clone)]
pub(crate) struct KeptAnswer {
    pub(crate) digest: String,
    /// JSON.
    pub(crate) answer: String,
}

/// The answers that are kept for these keys since that moment.
pub(crate) async fn find(
    conn: &mut dyn Connection,
    batch: &Batch,
    keys: &[KeptKey],
    kept_since: Timestamp,
) -> Result<Vec<(KeptKey, KeptAnswer)>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = query(batch.kept_answers)
        .bind(json(&keys)?)
        .bind(kept_since.unix_ms())
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            let key = (
                row::int(row, "application_id")?,
                row::int(row, "test")?,
                row::text(row, "key")?,
            );
            let answer = KeptAnswer {
                digest: row::text(row, "digest")?,
                answer: row::text(row, "answer")?,
            };
            Ok((key, answer))
        })
        .collect()
}

/// Keeps answers; one that is too old to count is replaced.
pub(crate) async fn keep(
    conn: &mut dyn Connection,
    batch: &Batch,
    answers: &[(KeptKey, KeptAnswer)],
    now: Timestamp,
) -> Result<()> {
    if answers.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = answers
        .iter()
        .map(|((application, test, key), kept)| {
            (application, test, key, &kept.digest, &kept.answer)
        })
        .collect();
    let done = query(batch.keep_answers)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    touched("idempotency", rows.len(), done.rows_affected())
}

/// Forgets answers from this moment and before, the oldest first; true when there are more.
pub(crate) async fn sweep(
    conn: &mut dyn Connection,
    kept_since: Timestamp,
    limit: i64,
) -> Result<bool> {
    let end = query(SWEEP_END)
        .bind(kept_since.unix_ms())
        .bind(limit)
        .fetch_optional(&mut *conn)
        .await?;
    let end = end.map(|row| row::int(&row, "created_at")).transpose()?;
    query(SWEEP)
        .bind(end.unwrap_or(kept_since.unix_ms()))
        .execute(conn)
        .await?;
    Ok(end.is_some())
}
