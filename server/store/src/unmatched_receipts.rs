//! Unmatched receipts: receipts whose message isn't known yet.

use std::collections::HashSet;

use domain::{MessageStatus, Timestamp};
use serde::Deserialize;

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The columns of a [`WaitingReceipt`].
macro_rules! waiting {
    ($($rest:literal),+) => {
        Sql::same(concat!(
            "SELECT receipt, carrier_message_id, status, error, received_at, text_id, ",
            "parameter_id, state, number, sender, user_reference, submitted_at ",
            "FROM unmatched_receipts ",
            $($rest),+
        ))
    };
}

statements! {
    /// PostgreSQL only. On SQLite only one transaction writes at a time, so a receipt and the
    /// answer to its submit can't miss each other.
    const IDS: Sql = Sql::postgres(r"
        SELECT DISTINCT carrier, carrier_message_id
        FROM unmatched_receipts WHERE received_at > $1 ORDER BY carrier");
    const FORGET: Sql = Sql::same("DELETE FROM unmatched_receipts WHERE received_at < $1");
    const INSERT: Sql = Sql::same(r"
        INSERT INTO unmatched_receipts (receipt, carrier_message_id, status, error, text_id,
            parameter_id, state, number, sender, user_reference, submitted_at, received_at,
            carrier, form)
        {values int text int text text text text text text int int int common common}");
    const BY_IDS: Sql = Sql {
        sqlite: r"
            SELECT receipt, carrier_message_id, status, error FROM unmatched_receipts
            WHERE carrier = ?2 AND carrier_message_id = ?1 AND received_at > ?3",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                p.receipt, p.carrier_message_id, p.status, p.error
            ) ORDER BY p.receipt), '[]')::text AS found
            FROM jsonb_array_elements_text($1::text::jsonb) AS r
            JOIN unmatched_receipts p ON p.carrier = $2 AND p.carrier_message_id = r.value
              AND p.received_at > $3",
        ..Sql::ANYWHERE
    };
    const DROP: Sql = Sql {
        sqlite: r"
            DELETE FROM unmatched_receipts WHERE carrier = ?2 AND receipt = ?1",
        postgres: r"
            DELETE FROM unmatched_receipts WHERE receipt = ANY ({ids}) AND carrier = $2",
        ..Sql::ANYWHERE
    };
    const SET_FORM: Sql = Sql {
        sqlite: r"
            UPDATE unmatched_receipts SET form = ?3 WHERE carrier = ?2 AND receipt = ?1",
        postgres: r"
            UPDATE unmatched_receipts SET form = $3 WHERE receipt = ANY ({ids}) AND carrier = $2",
        ..Sql::ANYWHERE
    };
    const ANY: Sql =
        Sql::same("SELECT 1 AS found FROM unmatched_receipts WHERE carrier = $1 LIMIT 1");
    const NEWEST: Sql = waiting!(
        "WHERE carrier = $1 AND receipt > $2 ORDER BY receipt DESC LIMIT $3"
    );
    const OF_FORM: Sql = waiting!(
        "WHERE carrier = $1 AND form = $2 ORDER BY receipt LIMIT $3"
    );
    const OF_NUMBERS: Sql = waiting!(
        "WHERE carrier = $1 AND receipt > $2 AND number <> '' ORDER BY receipt LIMIT $3"
    );
    /// `$1` is `[[index, carrier message ID, number]]`. A receipt without an ID has its number
    /// instead.
    const STILL_WAITING: Sql = Sql {
        sqlite: r"
            SELECT ?1 FROM unmatched_receipts
            WHERE carrier = ?4 AND carrier_message_id = ?2 AND (?2 <> '' OR number = ?3) LIMIT 1",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array((r.value ->> 0)::bigint)), '[]')::text
            AS found
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE EXISTS (
                SELECT FROM unmatched_receipts u
                WHERE u.carrier = $2 AND u.carrier_message_id = r.value ->> 1
                  AND (r.value ->> 1 <> '' OR u.number = r.value ->> 2))",
        ..Sql::ANYWHERE
    };
}

/// A stored unmatched receipt. The fields are in the order of [`BY_IDS`].
#[derive(Deserialize)]
pub struct UnmatchedReceipt {
    receipt: i64,
    pub carrier_message_id: String,
    #[serde(deserialize_with = "row::status_from_number")]
    pub status: MessageStatus,
    pub error: Option<String>,
}

impl UnmatchedReceipt {
    /// Returns when the receipt came, by the clock of message IDs.
    pub const fn received_at(&self) -> Timestamp {
        Timestamp::from_unix_ms(domain::ids::id_unix_ms(self.receipt))
    }
}

impl WaitingReceipt {
    /// Returns when the receipt came, by the clock of message IDs.
    pub const fn made_at(&self) -> Timestamp {
        Timestamp::from_unix_ms(domain::ids::id_unix_ms(self.receipt))
    }
}

pub struct NewUnmatchedReceipt<'a> {
    /// The number of the receipt. It has a row for each carrier message ID that it may mean.
    pub receipt: i64,
    pub carrier_message_id: &'a str,
    pub status: MessageStatus,
    pub error: Option<&'a str>,
    /// The IDs as the carrier wrote them.
    pub text_id: Option<&'a str>,
    pub parameter_id: Option<&'a str>,
    pub state: &'a str,
    pub number: &'a str,
    pub sender: &'a str,
    pub user_reference: Option<u16>,
    pub submitted_at: Option<Timestamp>,
    pub received_at: Timestamp,
}

/// An unmatched receipt with everything that it may be matched by.
#[derive(Clone)]
pub struct WaitingReceipt {
    /// The number of the receipt. A later receipt has a higher one.
    pub receipt: i64,
    /// The first of the carrier message IDs that it may mean. Empty if it has none.
    pub carrier_message_id: String,
    pub status: MessageStatus,
    pub error: Option<String>,
    pub received_at: Timestamp,
    pub text_id: Option<String>,
    pub parameter_id: Option<String>,
    pub state: String,
    pub number: String,
    pub sender: String,
    pub user_reference: Option<u16>,
    pub submitted_at: Option<Timestamp>,
}

/// Which unmatched receipts of a carrier to return.
#[derive(Clone, Copy)]
pub enum Selection<'a> {
    /// Receipts whose receipt number is above this one, newest first.
    Newest(i64),
    /// Receipts that were last compared with messages under this format of message IDs, oldest
    /// first.
    OfForm(&'a str),
    /// Receipts with a recipient, whose receipt number is above this one, oldest first.
    OfNumbers(i64),
}

/// The most carrier message IDs that a receipt may mean.
const ROWS_MAX: i64 = 3;

/// Stores unmatched receipts. Their messages may become known later. `form` is the carrier's format
/// of message IDs.
pub async fn keep(
    conn: Conn<'_>,
    rows: &[NewUnmatchedReceipt<'_>],
    carrier: &str,
    form: &str,
) -> Result<()> {
    let values = rows.iter().map(|row| {
        (
            row.receipt,
            row.carrier_message_id,
            row.status.code(),
            row.error,
            row.text_id,
            row.parameter_id,
            row.state,
            row.number,
            row.sender,
            row.user_reference,
            row.submitted_at.map(Timestamp::unix_ms),
            row.received_at.unix_ms(),
        )
    });
    let keeping = query(INSERT, (carrier, form));
    keeping.execute_each(conn, values).await.map(drop)
}

/// Deletes and returns the unmatched receipts with these carrier message IDs that came after
/// `since`.
pub async fn take(
    conn: Conn<'_>,
    carrier: &str,
    ids: &[&str],
    since: Timestamp,
) -> Result<Vec<UnmatchedReceipt>> {
    let finding = query(BY_IDS, (carrier, since));
    let finding = finding.find_each(conn, ids.iter().copied(), "unmatched_receipts");
    let mut found: Vec<UnmatchedReceipt> = finding.await?;
    found.sort_by_key(|unmatched| unmatched.receipt);
    // A receipt may mean two of the IDs.
    found.dedup_by_key(|unmatched| unmatched.receipt);
    let receipts: Vec<i64> = found.iter().map(|unmatched| unmatched.receipt).collect();
    drop_all(conn, carrier, &receipts).await?;
    Ok(found)
}

/// Deletes the unmatched receipts with these numbers.
pub async fn drop_all(conn: Conn<'_>, carrier: &str, receipts: &[i64]) -> Result<()> {
    query(DROP, carrier).execute_each(conn, receipts.iter().copied()).await.map(drop)
}

/// Stores that these receipts were compared with messages under the carrier's format of message
/// IDs.
pub async fn set_form(conn: Conn<'_>, carrier: &str, receipts: &[i64], form: &str) -> Result<()> {
    let setting = query(SET_FORM, (carrier, form));
    setting.execute_each(conn, receipts.iter().copied()).await.map(drop)
}

/// Whether a carrier has unmatched receipts.
pub async fn is_any(conn: Conn<'_>, carrier: &str) -> Result<bool> {
    query(ANY, carrier).finds(conn).await
}

/// Returns at most `limit` unmatched receipts of a carrier.
pub async fn list(
    conn: Conn<'_>,
    carrier: &str,
    selection: Selection<'_>,
    limit: i64,
) -> Result<Vec<WaitingReceipt>> {
    let rows = limit.saturating_mul(ROWS_MAX);
    let finding = match selection {
        Selection::Newest(after) => query(NEWEST, (carrier, after, rows)),
        Selection::OfForm(form) => query(OF_FORM, (carrier, form, rows)),
        Selection::OfNumbers(after) => query(OF_NUMBERS, (carrier, after, rows)),
    };
    let mut found = finding.fetch_all(conn, read).await?;
    // One row of each receipt.
    found.dedup_by_key(|row| row.receipt);
    found.truncate(usize::try_from(limit).unwrap_or(0));
    Ok(found)
}

/// Returns the indexes of the receipts that are unmatched. Each receipt has the carrier message IDs
/// that it may mean, and its number, which stands for a missing ID.
pub async fn still_waiting(
    conn: Conn<'_>,
    carrier: &str,
    receipts: &[(&[String], &str)],
) -> Result<HashSet<usize>> {
    let mut values: Vec<(usize, &str, &str)> = Vec::new();
    for (index, (ids, number)) in receipts.iter().enumerate() {
        values.extend(ids.iter().map(|id| (index, id.as_str(), *number)));
        values.extend(ids.is_empty().then_some((index, "", *number)));
    }
    let finding = query(STILL_WAITING, carrier);
    let found: Vec<(usize,)> = finding.find_each(conn, values, "unmatched_receipts").await?;
    Ok(found.into_iter().map(|(index,)| index).collect())
}

fn read(row: &Row<'_>) -> Result<WaitingReceipt> {
    let reference: Option<i64> = row.get("user_reference")?;
    from_row!(row => WaitingReceipt {
        receipt, carrier_message_id,
        status: row::status(row, "unmatched_receipts")?,
        error, received_at, text_id, parameter_id, state, number, sender,
        user_reference: reference.and_then(|reference| u16::try_from(reference).ok()),
        submitted_at,
    })
}

/// Returns the carrier message IDs of the unmatched receipts that came after `since`, each with its
/// carrier. Ordered by carrier.
pub async fn carrier_message_ids(
    conn: Conn<'_>,
    since: Timestamp,
) -> Result<Vec<(String, String)>> {
    let read = |row: &Row<'_>| Ok((row.get("carrier")?, row.get("carrier_message_id")?));
    query(IDS, since).fetch_all(conn, read).await
}

/// Deletes the unmatched receipts that came before this time, and returns how many there were.
pub async fn forget(conn: Conn<'_>, before: Timestamp) -> Result<u64> {
    query(FORGET, before).execute(conn).await
}
