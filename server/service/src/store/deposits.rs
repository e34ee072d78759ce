//! Deposits by bank.

use domain::{ApplicationId, Money, Reference, Timestamp};
use serde::Serialize;

use super::query::{Connection, Row, query};
use super::row;
use super::sql::{Sql, statements};
use crate::error::Result;

macro_rules! listed {
    ($rest:literal) => {
        concat!(
            r"
        SELECT d.bank_id, d.reference, d.amount, d.received_at, a.reference AS assigned_to
        FROM deposits d
        LEFT JOIN applications a ON a.id = d.application_id
",
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
    const BY_BANK_ID: Sql = Sql::same(listed!("WHERE d.bank_id = $1"));
    const UNMATCHED: Sql = Sql::same(listed!(r"
        WHERE d.application_id IS NULL ORDER BY d.received_at, d.bank_id"));
    const ASSIGN: Sql = Sql::same(r"
        UPDATE deposits SET application_id = $2, credited_at = $3
        WHERE bank_id = $1 AND application_id IS NULL");
}

/// A payment as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DepositRecord {
    pub bank_id: String,
    pub reference: String,
    pub amount: Money,
    pub received_at: Timestamp,
    pub assigned_to: Option<Reference>,
}

fn deposit(row: &Row) -> Result<DepositRecord> {
    let assigned = row::opt_text(row, "assigned_to")?;
    Ok(DepositRecord {
        bank_id: row::text(row, "bank_id")?,
        reference: row::text(row, "reference")?,
        amount: Money::from_micros(row::int(row, "amount")?),
        received_at: Timestamp::from_unix_ms(row::int(row, "received_at")?),
        assigned_to: assigned.and_then(|text| Reference::parse(&text).ok()),
    })
}

/// Stores a deposit; false when its bank id is known.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    bank_id: &str,
    reference: &str,
    amount: Money,
    application_id: Option<ApplicationId>,
    now: Timestamp,
) -> Result<bool> {
    let done = query(INSERT)
        .bind(bank_id)
        .bind(reference)
        .bind(amount.micros())
        .bind(application_id)
        .bind(now.unix_ms())
        .bind(application_id.map(|_| now.unix_ms()))
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn by_bank_id(
    conn: &mut dyn Connection,
    bank_id: &str,
) -> Result<Option<DepositRecord>> {
    let row = query(BY_BANK_ID).bind(bank_id).fetch_optional(conn).await?;
    row.map(|row| deposit(&row)).transpose()
}

pub(crate) async fn unmatched(conn: &mut dyn Connection) -> Result<Vec<DepositRecord>> {
    query(UNMATCHED)
        .fetch_all(conn)
        .await?
        .iter()
        .map(deposit)
        .collect()
}

/// Assigns an unmatched deposit; false when it isn't unmatched any more.
pub(crate) async fn assign(
    conn: &mut dyn Connection,
    bank_id: &str,
    application_id: ApplicationId,
    now: Timestamp,
) -> Result<bool> {
    let done = query(ASSIGN)
        .bind(bank_id)
        .bind(application_id)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}
