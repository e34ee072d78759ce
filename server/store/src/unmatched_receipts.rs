//! Unmatched receipts: receipts whose carrier message ID isn't known yet.

use domain::{MessageStatus, Timestamp};
use serde::Deserialize;

use super::query::{Connection, Row, query};
use super::row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    /// PostgreSQL only. On SQLite only one transaction writes at a time, so a receipt and the
    /// answer to its submit can't miss each other.
    const IDS: Sql = Sql::postgres(r"
        SELECT DISTINCT carrier, carrier_message_id
        FROM unmatched_receipts WHERE received_at > $1 ORDER BY carrier");
    const FORGET: Sql = Sql::same("DELETE FROM unmatched_receipts WHERE received_at < $1");
    /// `$1` is `[[carrier message ID, status, error]]`.
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO unmatched_receipts (carrier, carrier_message_id, status, error, received_at)
            VALUES (?4, ?1, ?2, ?3, ?5)",
        postgres: r"
            INSERT INTO unmatched_receipts (carrier, carrier_message_id, status, error, received_at)
            SELECT $2, value ->> 0, (value ->> 1)::bigint, value ->> 2, $3
            FROM jsonb_array_elements($1::text::jsonb)",
        ..Sql::ANYWHERE
    };
    const BY_IDS: Sql = Sql {
        sqlite: r"
            SELECT id, carrier_message_id, status, error
            FROM unmatched_receipts
            WHERE carrier = ?2 AND carrier_message_id = ?1 AND received_at > ?3",
        postgres: r"
            SELECT COALESCE(
                json_agg(
                    json_build_array(p.id, p.carrier_message_id, p.status, p.error)
                    ORDER BY p.id),
                '[]')::text AS found
            FROM jsonb_array_elements_text($1::text::jsonb) AS r
            JOIN unmatched_receipts p ON p.carrier = $2 AND p.carrier_message_id = r.value
              AND p.received_at > $3",
        ..Sql::ANYWHERE
    };
    const DROP: Sql = Sql {
        sqlite: r"
            DELETE FROM unmatched_receipts WHERE id = ?1 AND carrier = ?2",
        postgres: r"
            DELETE FROM unmatched_receipts
            WHERE id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              AND carrier = $2",
        ..Sql::ANYWHERE
    };
}

/// A stored unmatched receipt. The fields are in the order of [`BY_IDS`].
#[derive(Deserialize)]
pub struct UnmatchedReceipt {
    id: i64,
    pub carrier_message_id: String,
    #[serde(deserialize_with = "row::status_from_number")]
    pub status: MessageStatus,
    pub error: Option<String>,
}

/// An unmatched receipt to store.
pub struct NewUnmatchedReceipt<'a> {
    pub carrier_message_id: &'a str,
    pub status: MessageStatus,
    pub error: Option<&'a str>,
}

/// Stores unmatched receipts. Their carrier message IDs may become known later.
pub async fn keep(
    conn: &mut dyn Connection,
    rows: &[NewUnmatchedReceipt<'_>],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let values = rows.iter().map(|row| (row.carrier_message_id, row.status.code(), row.error));
    let keeping = query(INSERT, (carrier, now));
    keeping.execute_each(conn, values).await.map(drop)
}

/// Deletes and returns the unmatched receipts with these carrier message IDs that came after
/// `since`.
pub async fn take(
    conn: &mut dyn Connection,
    carrier: &str,
    ids: &[&str],
    since: Timestamp,
) -> Result<Vec<UnmatchedReceipt>> {
    let finding = query(BY_IDS, (carrier, since));
    let finding = finding.find_each(conn, ids.iter().copied(), "unmatched_receipts");
    let mut found: Vec<UnmatchedReceipt> = finding.await?;
    found.sort_by_key(|unmatched| unmatched.id);
    let ids = found.iter().map(|unmatched| unmatched.id);
    query(DROP, carrier).execute_each(conn, ids).await?;
    Ok(found)
}

/// Returns the carrier message IDs of the unmatched receipts that came after `since`, each with its
/// carrier. Ordered by carrier.
pub async fn carrier_message_ids(
    conn: &mut dyn Connection,
    since: Timestamp,
) -> Result<Vec<(String, String)>> {
    let read = |row: &Row<'_>| Ok((row.get("carrier")?, row.get("carrier_message_id")?));
    query(IDS, since).fetch_all(conn, read).await
}

/// Deletes the unmatched receipts that came before this time, and returns how many there were.
pub async fn forget(conn: &mut dyn Connection, before: Timestamp) -> Result<u64> {
    query(FORGET, before).execute(conn).await
}
