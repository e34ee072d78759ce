//! The single row of the table `installation`.

use domain::Timestamp;

use super::history::Redaction;
use super::query::{Conn, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO installation (id, currency, created_at, sweep_low_id, swept_at, form_key)
        VALUES (1, $1, $2, 0, $2, $3)
        ON CONFLICT (id) DO NOTHING");
    const CURRENCY: Sql = Sql::same("SELECT currency FROM installation WHERE id = 1");
    const FORM_KEY: Sql = Sql::same("SELECT form_key FROM installation WHERE id = 1");
    /// PostgreSQL only: SQLite has one shard.
    const SHARDS: Sql = Sql::postgres("SELECT shards FROM installation WHERE id = 1");
    const SEALING_KEY: Sql = Sql::same("SELECT sealing_key FROM installation WHERE id = 1");
    const HAS_SEALED: Sql = Sql::sqlite(r"
        SELECT 1 AS found FROM second_factors
        UNION ALL SELECT 1 FROM webhooks WHERE removed_at IS NULL
        UNION ALL SELECT 1 FROM opt_outs WHERE number >= 'x' LIMIT 1");
    const KEEP_SEALING_KEY: Sql = Sql::same(r"
        UPDATE installation SET sealing_key = $1 WHERE id = 1 AND sealing_key IS NULL");
    const SWEPT: Sql = Sql::same("SELECT sweep_low_id, swept_at FROM installation WHERE id = 1");
    const HISTORY_LOW: Sql = Sql::same("SELECT history_low_id FROM installation WHERE id = 1");
    const SET_HISTORY_LOW: Sql = Sql::same(r"
        UPDATE installation SET history_low_id = $1 WHERE id = 1");
    const RAISE_TEST_LOW: Sql = Sql::same(r"
        UPDATE installation SET test_low_id = $1 WHERE id = 1 AND test_low_id < $1");
    const MASKED_LOW: Sql = Sql::same("SELECT masked_low_id AS low FROM installation WHERE id = 1");
    const SET_MASKED_LOW: Sql = Sql::same(r"
        UPDATE installation SET masked_low_id = $1 WHERE id = 1");
    const TEXT_LOW: Sql = Sql::same("SELECT text_low_id AS low FROM installation WHERE id = 1");
    const SET_TEXT_LOW: Sql = Sql::same(r"
        UPDATE installation SET text_low_id = $1 WHERE id = 1");
    const SET_SWEPT: Sql = Sql::same(r"
        UPDATE installation SET swept_at = $2,
            sweep_low_id = CASE WHEN sweep_low_id < $1 THEN $1 ELSE sweep_low_id END
        WHERE id = 1");
}

pub async fn insert(conn: Conn<'_>, currency: &str, form_key: &str, now: Timestamp) -> Result<()> {
    query(INSERT, (currency, now, form_key)).execute(conn).await.map(drop)
}

/// Returns the secret key that seals the forms of browsers without scripts.
pub async fn form_key(conn: Conn<'_>) -> Result<String> {
    query(FORM_KEY, ()).fetch_one(conn, |row| row.get("form_key")).await
}

pub async fn currency(conn: Conn<'_>) -> Result<String> {
    query(CURRENCY, ()).fetch_one(conn, |row| row.get("currency")).await
}

pub async fn shards(conn: Conn<'_>) -> Result<i64> {
    if !conn.dialect().is_shared() {
        return Ok(1);
    }
    query(SHARDS, ()).fetch_one(conn, |row| row.get("shards")).await
}

/// Returns the key that seals secrets. Returns `None` if the key is in a file of the data folder.
pub async fn sealing_key(conn: Conn<'_>) -> Result<Option<String>> {
    query(SEALING_KEY, ()).fetch_one(conn, |row| row.get("sealing_key")).await
}

/// Returns whether the database has values that need the key: secrets of second factors and of
/// endpoints, and opt-outs of erased numbers.
pub async fn has_sealed(conn: Conn<'_>) -> Result<bool> {
    query(HAS_SEALED, ()).finds(conn).await
}

/// Stores the key that seals secrets, unless the database already has one.
pub async fn keep_sealing_key(conn: Conn<'_>, key: &str) -> Result<()> {
    query(KEEP_SEALING_KEY, key).execute(conn).await.map(drop)
}

/// Returns the ID below which all messages were dropped.
pub async fn history_low(conn: Conn<'_>) -> Result<i64> {
    query(HISTORY_LOW, ()).fetch_one(conn, |row| row.get("history_low_id")).await
}

pub async fn set_history_low(conn: Conn<'_>, id: i64) -> Result<()> {
    query(SET_HISTORY_LOW, id).execute(conn).await.map(drop)
}

/// Returns the ID below which all final messages are redacted.
pub async fn redacted_low(conn: Conn<'_>, redaction: Redaction) -> Result<i64> {
    let low = match redaction {
        Redaction::Numbers => MASKED_LOW,
        Redaction::Texts => TEXT_LOW,
    };
    query(low, ()).fetch_one(conn, |row| row.get("low")).await
}

pub async fn set_redacted_low(conn: Conn<'_>, redaction: Redaction, id: i64) -> Result<()> {
    let set = match redaction {
        Redaction::Numbers => SET_MASKED_LOW,
        Redaction::Texts => SET_TEXT_LOW,
    };
    query(set, id).execute(conn).await.map(drop)
}

/// Stores that test messages below this ID are being dropped.
pub async fn raise_test_low(conn: Conn<'_>, id: i64) -> Result<()> {
    query(RAISE_TEST_LOW, id).execute(conn).await.map(drop)
}

/// The progress of the expiry sweep.
pub struct Swept {
    /// Every message below this ID is final.
    pub low: i64,
    /// When a sweep last found every message below `low` to be final.
    pub at: Timestamp,
}

pub async fn swept(conn: Conn<'_>) -> Result<Swept> {
    let read =
        |row: &Row<'_>| Ok(Swept { low: row.get("sweep_low_id")?, at: row.get("swept_at")? });
    query(SWEPT, ()).fetch_one(conn, read).await
}

pub async fn set_swept(conn: Conn<'_>, low: i64, now: Timestamp) -> Result<()> {
    query(SET_SWEPT, (low, now)).execute(conn).await.map(drop)
}
