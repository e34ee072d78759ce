//! Answers that are stored for requests with an idempotency key.

use domain::{ApplicationId, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{json, touched};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const SWEEP: Sql = Sql::in_shard(
        "DELETE FROM idempotency WHERE created_at <= $1{ AND shard = $shard}");
    /// The end of a sweep: the time of the answer that follows the `$2` oldest ones.
    const SWEEP_END: Sql = Sql::in_shard(r"
        SELECT created_at FROM idempotency
        WHERE created_at <= $1{ AND shard = $shard} ORDER BY created_at LIMIT 1 OFFSET $2");
    /// `$1` is `[[application, test, key]]`.
    const FIND: Sql = Sql {
        sqlite: r"
            SELECT i.application_id, i.test, i.key, i.digest, i.answer
            FROM json_each($1) AS r
            CROSS JOIN idempotency i ON i.application_id = r.value ->> 0
              AND i.test = r.value ->> 1 AND i.key = r.value ->> 2
            WHERE i.created_at > $2",
        postgres: r"
            SELECT i.application_id, i.test, i.key, i.digest, i.answer
            FROM jsonb_array_elements($1::text::jsonb) AS r
            JOIN idempotency i ON i.application_id = (r.value ->> 0)::bigint
              AND i.test = (r.value ->> 1)::bigint AND i.key = r.value ->> 2
            WHERE i.created_at > $2 AND i.shard = $3",
        ..Sql::IN_SHARD
    };
    const KEEP: Sql = Sql::in_shard(r"
        INSERT INTO idempotency (application_id, test, key, digest, answer, created_at{, shard})
        {values int int text text text common shard}
        ON CONFLICT (application_id, test, key{, shard})
        DO UPDATE SET digest = excluded.digest, answer = excluded.answer,
            created_at = excluded.created_at");
}

/// The primary key of a stored answer.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeptKey {
    pub application_id: ApplicationId,
    pub test: bool,
    /// The SHA-256 of the caller's idempotency key, in hexadecimal.
    pub key: String,
}

impl KeptKey {
    pub fn of(application_id: ApplicationId, test: i64, key: &str) -> Self {
        Self { application_id, test: test == 1, key: key.to_owned() }
    }

    /// Returns the key's columns, for a row of a parameter.
    fn columns(&self) -> (ApplicationId, i64, &str) {
        (self.application_id, i64::from(self.test), &self.key)
    }
}

/// A stored answer and the digest of its request.
#[derive(Clone)]
pub struct KeptAnswer {
    pub digest: String,
    /// JSON.
    pub answer: String,
}

/// Returns the answers with these keys that were stored after `kept_since`.
pub async fn find(
    conn: Conn<'_>,
    keys: &[KeptKey],
    kept_since: Timestamp,
) -> Result<Vec<(KeptKey, KeptAnswer)>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = keys.iter().map(KeptKey::columns).collect();
    let read = |row: &Row<'_>| {
        let key = KeptKey {
            application_id: row.get("application_id")?,
            test: row.get("test")?,
            key: row.get("key")?,
        };
        let answer = KeptAnswer { digest: row.get("digest")?, answer: row.get("answer")? };
        Ok((key, answer))
    };
    query(FIND, (json(&keys)?, kept_since)).fetch_all(conn, read).await
}

/// Stores answers. An answer replaces an expired answer with the same key.
pub async fn keep(conn: Conn<'_>, answers: &[(KeptKey, KeptAnswer)], now: Timestamp) -> Result<()> {
    let rows = answers.iter().map(|(key, kept)| {
        let (application, test, key) = key.columns();
        (application, test, key, &kept.digest, &kept.answer)
    });
    let written = query(KEEP, now).execute_each(conn, rows).await?;
    touched("idempotency", answers.len(), written)
}

/// Deletes the oldest answers that were stored at or before `kept_since`, about `limit` at a time.
/// Returns true if more of them may be left.
pub async fn sweep(conn: Conn<'_>, kept_since: Timestamp, limit: i64) -> Result<bool> {
    let finding = query(SWEEP_END, (kept_since, limit));
    let end = finding.fetch_optional(&mut *conn, |row| row.get("created_at")).await?;
    query(SWEEP, end.unwrap_or(kept_since)).execute(conn).await?;
    Ok(end.is_some())
}
