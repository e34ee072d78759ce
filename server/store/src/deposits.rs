//! Bank deposits.

use domain::decision::DepositList;
use domain::records::DepositRecord;
use domain::{ApplicationId, Money, Reference, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

macro_rules! listed {
    ($rest:literal) => {
        Sql {
            sqlite: listed!("applications a ON a.id", $rest),
            // `applications` may be distributed. `deposits` never is, and neither is
            // `reference_shards`.
            postgres: listed!("reference_shards a ON a.application_id", $rest),
            ..Sql::ANYWHERE
        }
    };
    ($applications:literal, $rest:literal) => {
        concat!(
            r"
        SELECT d.bank_id, d.reference, d.amount, d.received_at, d.payer, d.purpose, d.paid_on,
            d.returned_at, d.return_note, a.reference AS assigned_to
        FROM deposits d
        LEFT JOIN ",
            $applications,
            " = d.application_id ",
            $rest
        )
    };
}

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO deposits (bank_id, reference, amount, application_id, received_at,
            credited_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (bank_id) DO NOTHING");
    const BY_BANK_ID: Sql = listed!("WHERE d.bank_id = $1");
    const UNMATCHED: Sql = listed!(
        "WHERE d.application_id IS NULL AND d.returned_at IS NULL ORDER BY d.received_at, d.bank_id"
    );
    const UNMATCHED_PAGE: Sql = listed!(
        "WHERE d.application_id IS NULL AND d.returned_at IS NULL
          AND (d.received_at, d.bank_id) > ($1, $2)
        ORDER BY d.received_at, d.bank_id LIMIT $3"
    );
    const NEWEST_PAGE: Sql = listed!(
        "WHERE (d.received_at, d.bank_id) < ($1, $2)
        ORDER BY d.received_at DESC, d.bank_id DESC LIMIT $3"
    );
    /// The newest deposits with the lower-case text `$1` in one of their texts.
    const WITH_PART: Sql = listed!(
        "WHERE REPLACE(LOWER(d.bank_id), $1, '') <> LOWER(d.bank_id)
           OR REPLACE(LOWER(d.reference), $1, '') <> LOWER(d.reference)
           OR REPLACE(LOWER(d.payer), $1, '') <> LOWER(d.payer)
           OR REPLACE(LOWER(d.purpose), $1, '') <> LOWER(d.purpose)
        ORDER BY d.received_at DESC, d.bank_id DESC LIMIT $2"
    );
    /// `$1` is `[reference]`.
    const KNOWN_REFERENCES: Sql = Sql {
        sqlite: r"
            SELECT a.reference FROM applications a JOIN accounts c ON c.id = a.account_id
            WHERE a.reference IN (SELECT value FROM json_each($1)) AND c.closed_at IS NULL
            ORDER BY a.reference LIMIT $2",
        postgres: r"
            SELECT a.reference FROM reference_shards a JOIN accounts c ON c.id = a.account_id
            WHERE a.reference = ANY (
                ARRAY(SELECT value FROM jsonb_array_elements_text($1::text::jsonb)))
              AND c.closed_at IS NULL
            ORDER BY a.reference LIMIT $2",
        ..Sql::ANYWHERE
    };
    const OF_CLOSED_ACCOUNT: Sql = Sql {
        sqlite: r"
            SELECT a.reference FROM applications a JOIN accounts c ON c.id = a.account_id
            WHERE a.reference = $1 AND c.closed_at IS NOT NULL",
        postgres: r"
            SELECT a.reference FROM reference_shards a JOIN accounts c ON c.id = a.account_id
            WHERE a.reference = $1 AND c.closed_at IS NOT NULL",
        ..Sql::ANYWHERE
    };
    const UNMATCHED_SUM: Sql = Sql::same(r"
        SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) AS amount
        FROM deposits WHERE application_id IS NULL AND returned_at IS NULL");
    const ASSIGN: Sql = Sql::same(r"
        UPDATE deposits SET application_id = $2, credited_at = $3
        WHERE bank_id = $1 AND application_id IS NULL AND returned_at IS NULL");
    const RETURN: Sql = Sql::same(r"
        UPDATE deposits SET returned_at = $2, return_note = $3
        WHERE bank_id = $1 AND application_id IS NULL AND returned_at IS NULL");
    const DESCRIBE: Sql = Sql::same(r"
        UPDATE deposits SET payer = $2, purpose = $3, paid_on = $4 WHERE bank_id = $1");
}

fn deposit(row: &Row<'_>) -> Result<DepositRecord> {
    let assigned: Option<String> = row.get("assigned_to")?;
    let (returned_at, note): (Option<Timestamp>, Option<String>) =
        (row.get("returned_at")?, row.get("return_note")?);
    from_row!(row => DepositRecord {
        bank_id, reference, amount, received_at,
        assigned_to: assigned.and_then(|text| Reference::parse(&text).ok()),
        payer, purpose, paid_on, returned: returned_at.zip(note),
    })
}

/// Stores a deposit. Returns false if a deposit with this bank ID is already stored.
pub async fn insert(
    conn: Conn<'_>,
    bank_id: &str,
    reference: &str,
    amount: Money,
    application_id: Option<ApplicationId>,
    now: Timestamp,
) -> Result<bool> {
    let credited_at = application_id.map(|_| now);
    let values = (bank_id, reference, amount, application_id, now, credited_at);
    Ok(query(INSERT, values).execute(conn).await? == 1)
}

pub async fn by_bank_id(conn: Conn<'_>, bank_id: &str) -> Result<Option<DepositRecord>> {
    query(BY_BANK_ID, bank_id).fetch_optional(conn, deposit).await
}

pub async fn unmatched(conn: Conn<'_>) -> Result<Vec<DepositRecord>> {
    query(UNMATCHED, ()).fetch_all(conn, deposit).await
}

/// Returns at most `limit` deposits, newest first. The lower-case text `part` is in their bank ID,
/// reference, payer or purpose.
pub async fn with_part(conn: Conn<'_>, part: &str, limit: i64) -> Result<Vec<DepositRecord>> {
    query(WITH_PART, (part, limit)).fetch_all(conn, deposit).await
}

/// Stores the payer's name, the purpose and the day of a deposit.
pub async fn describe(
    conn: Conn<'_>,
    bank_id: &str,
    [payer, purpose, paid_on]: [Option<&str>; 3],
) -> Result<()> {
    query(DESCRIBE, (bank_id, payer, purpose, paid_on)).execute(conn).await.map(drop)
}

/// Marks an unmatched deposit as returned to the bank. Returns false if it isn't unmatched any
/// more.
pub async fn mark_returned(
    conn: Conn<'_>,
    bank_id: &str,
    note: &str,
    now: Timestamp,
) -> Result<bool> {
    Ok(query(RETURN, (bank_id, now, note)).execute(conn).await? == 1)
}

/// Returns a page of a list of deposits, starting after a time and a bank ID.
pub async fn page(
    conn: Conn<'_>,
    list: DepositList,
    (at, bank_id): (i64, &str),
    limit: i64,
) -> Result<Vec<DepositRecord>> {
    let sql = match list {
        DepositList::Unmatched => UNMATCHED_PAGE,
        DepositList::All => NEWEST_PAGE,
    };
    query(sql, (at, bank_id, limit)).fetch_all(conn, deposit).await
}

/// Returns the references that belong to an application whose account isn't closed.
pub async fn known_references(
    conn: Conn<'_>,
    references: &[Reference],
    limit: i64,
) -> Result<Vec<Reference>> {
    // References are digits, so they need no escaping.
    let quoted: Vec<_> = references.iter().map(|one| format!("\"{one}\"")).collect();
    query(KNOWN_REFERENCES, (format!("[{}]", quoted.join(",")), limit))
        .fetch_all(conn, row::reference)
        .await
}

/// Returns whether a reference is that of an application whose account is closed.
pub async fn is_of_closed_account(conn: Conn<'_>, reference: Reference) -> Result<bool> {
    query(OF_CLOSED_ACCOUNT, reference.to_string()).finds(conn).await
}

pub async fn unmatched_sum(conn: Conn<'_>) -> Result<Money> {
    query(UNMATCHED_SUM, ()).fetch_one(conn, |row| row.get("amount")).await
}

/// Assigns an unmatched deposit to an application. Returns false if the deposit isn't unmatched
/// any more.
pub async fn assign(
    conn: Conn<'_>,
    bank_id: &str,
    application_id: ApplicationId,
    now: Timestamp,
) -> Result<bool> {
    Ok(query(ASSIGN, (bank_id, application_id, now)).execute(conn).await? == 1)
}
