//! Applications.

use std::collections::BTreeSet;

use domain::admission::SendingApplication;
use domain::records::{ApplicationRecord, SenderRequestRecord};
use domain::{
    ApplicationId, ApplicationStatus, Category, LostAnswer, Money, Reference, SenderState,
    SenderStatus, Timestamp,
};

use super::query::{Conn, Connection, Row, given, look_up, query};
use super::row::{self, json};
use super::sql::{Sql, statements};
use crate::error::{Error, Fault, Result};

/// Columns of a listed application. The newest request for a sender name is joined; one that is
/// accepted is the application's sender name itself.
macro_rules! listed {
    ($rest:literal) => {
        concat!(
            r"
        SELECT a.id, a.account_id, a.reference, a.category, a.status, a.status_before,
               a.suspend_reason, a.lost_answer, a.activation_requested_at, a.sender_name,
               a.sender_state, a.balance, a.test_balance, a.test_day, a.created_at,
               accounts.email, s.id AS request_id, s.name AS request_name,
               s.status AS request_status, s.reason AS request_reason, s.requested_at,
               s.decided_at
        FROM applications a
        JOIN accounts ON accounts.id = a.account_id
        LEFT JOIN sender_requests s
          ON s.id = (
              SELECT MAX(r.id)
              FROM sender_requests r WHERE r.application_id = a.id AND r.status <> 'replaced')
",
            $rest
        )
    };
}

statements! {
    const BY_ACCOUNT: Sql = Sql::same(listed!("WHERE a.account_id = $1 ORDER BY a.id"));
    const BY_REFERENCE: Sql = Sql::same(listed!("WHERE a.reference = $1"));
    const ALL: Sql = Sql::same(listed!("ORDER BY a.id"));
    const INSERT: Sql = Sql::same(r"
        INSERT INTO applications (account_id, category, reference, live_hash, test_hash, status,
            sender_state, balance, test_balance, test_day, created_at)
        VALUES ($1, $2, $3, $4, $5, 'Pending', $6, 0, 0, -1, $7)
        ON CONFLICT DO NOTHING RETURNING id");
    const HAS_CATEGORY: Sql = Sql::same(r"
        SELECT id FROM applications WHERE account_id = $1 AND category = $2");
    const HAS_SENDERLESS: Sql = Sql::same(r"
        SELECT id FROM applications WHERE account_id = $1 AND sender_state = 'none'");
    const SET_STATUS: Sql = Sql::same(r"
        UPDATE applications SET status = $3, status_before = $4, suspend_reason = $5
        WHERE id = $1 AND status = $2");
    const SET_ACTIVATION: Sql = Sql::same(r"
        UPDATE applications SET activation_requested_at = $2 WHERE id = $1 AND status = 'Pending'");
    const SET_LOST_ANSWER: Sql = Sql::same(r"
        UPDATE applications SET lost_answer = $2 WHERE id = $1");
    const SET_SENDER: Sql = Sql::same(r"
        UPDATE applications SET sender_state = $2, sender_name = $3 WHERE id = $1");
    const SET_LIVE_HASH: Sql = Sql::same("UPDATE applications SET live_hash = $2 WHERE id = $1");
    const SET_TEST_HASH: Sql = Sql::same("UPDATE applications SET test_hash = $2 WHERE id = $1");
    const KEYS_BY_REFERENCE: Sql = Sql::same(r"
        SELECT id, category, status, live_hash, test_hash, sender_state, sender_name, balance,
               test_balance, test_day
        FROM applications WHERE reference = $1");
    const ADD_BALANCE: Sql = Sql::same(r"
        UPDATE applications SET balance = balance + $2 WHERE id = $1 RETURNING balance");
    const BALANCES: Sql = Sql::same(r"
        SELECT id, test_balance, test_day, balance FROM applications WHERE id = $1");
    const IDS_BY_ACCOUNT: Sql = Sql::same(r"
        SELECT id, reference FROM applications WHERE account_id = $1");
    const KEYS_BY_REFERENCES: Sql = Sql {
        sqlite: r"
            SELECT id, category, status, live_hash, test_hash, sender_state, sender_name,
                   balance, test_balance, test_day
            FROM applications WHERE reference = ?1",
        postgres: r"
            -- Locked until the commit: who charges decides by what stands here.
            SELECT id, reference, category, status, live_hash, test_hash, sender_state,
                   sender_name, balance, test_balance, test_day
            FROM applications
            WHERE reference = ANY (
                ARRAY(SELECT value FROM jsonb_array_elements_text($1::text::jsonb)))
            ORDER BY id FOR UPDATE",
    };
}

/// An application with what only the server may know.
pub(crate) struct ApplicationRow {
    pub(crate) id: ApplicationId,
    pub(crate) account_id: i64,
    pub(crate) status_before: Option<ApplicationStatus>,
    pub(crate) sender_state: SenderState,
    pub(crate) test_day: i64,
    pub(crate) record: ApplicationRecord,
}

/// What decides whether a key may send.
pub(crate) struct KeyRow {
    pub(crate) id: ApplicationId,
    pub(crate) category: Category,
    pub(crate) status: ApplicationStatus,
    pub(crate) live_hash: String,
    pub(crate) test_hash: String,
    pub(crate) sender_state: SenderState,
    pub(crate) sender_name: Option<String>,
    pub(crate) balance: Money,
    pub(crate) test_balance: Money,
    pub(crate) test_day: i64,
}

impl KeyRow {
    pub(crate) const fn sending(&self) -> SendingApplication {
        SendingApplication {
            category: self.category,
            status: self.status,
            sender: self.sender_state,
        }
    }
}

fn status(row: &Row, column: &'static str) -> Result<ApplicationStatus> {
    row::word(row, "applications", column, ApplicationStatus::parse)
}

fn reference(row: &Row) -> Result<Reference> {
    row::word(row, "applications", "reference", |text| {
        Reference::parse(text).ok()
    })
}

fn sender_state(row: &Row) -> Result<SenderState> {
    row::word(row, "applications", "sender_state", SenderState::parse)
}

fn category(row: &Row) -> Result<Category> {
    row::word(row, "applications", "category", Category::parse)
}

/// Reads the columns of [`KEYS_BY_REFERENCE`].
pub(crate) fn key_row(row: &Row) -> Result<KeyRow> {
    Ok(KeyRow {
        id: row::application(row, "id")?,
        category: category(row)?,
        status: status(row, "status")?,
        live_hash: row::text(row, "live_hash")?,
        test_hash: row::text(row, "test_hash")?,
        sender_state: sender_state(row)?,
        sender_name: row::opt_text(row, "sender_name")?,
        balance: Money::from_micros(row::int(row, "balance")?),
        test_balance: Money::from_micros(row::int(row, "test_balance")?),
        test_day: row::int(row, "test_day")?,
    })
}

fn listed(row: &Row) -> Result<ApplicationRow> {
    let before = row::opt_text(row, "status_before")?;
    let record = ApplicationRecord {
        reference: reference(row)?,
        category: category(row)?,
        status: status(row, "status")?,
        sender_name: row::opt_text(row, "sender_name")?,
        requested_sender: requested_sender(row)?,
        balance: Money::from_micros(row::int(row, "balance")?),
        test_balance: Money::from_micros(row::int(row, "test_balance")?),
        created_at: Timestamp::from_unix_ms(row::int(row, "created_at")?),
        activation_requested_at: row::opt_int(row, "activation_requested_at")?
            .map(Timestamp::from_unix_ms),
        lost_answer: row::word(row, "applications", "lost_answer", LostAnswer::parse)?,
        suspend_reason: row::opt_text(row, "suspend_reason")?,
        email: row::text(row, "email")?,
    };
    Ok(ApplicationRow {
        id: row::application(row, "id")?,
        account_id: row::int(row, "account_id")?,
        status_before: before.as_deref().and_then(ApplicationStatus::parse),
        sender_state: sender_state(row)?,
        test_day: row::int(row, "test_day")?,
        record,
    })
}

/// The newest request, unless it is the accepted name that the application shows anyway.
fn requested_sender(row: &Row) -> Result<Option<SenderRequestRecord>> {
    let Some(id) = row::opt_int(row, "request_id")? else {
        return Ok(None);
    };
    let status = row::word(
        row,
        "sender_requests",
        "request_status",
        SenderStatus::parse,
    )?;
    if status == SenderStatus::Accepted {
        return Ok(None);
    }
    Ok(Some(SenderRequestRecord {
        id,
        reference: reference(row)?,
        name: row::text(row, "request_name")?,
        status,
        reason: row::opt_text(row, "request_reason")?,
        requested_at: Timestamp::from_unix_ms(row::int(row, "requested_at")?),
        decided_at: row::opt_int(row, "decided_at")?.map(Timestamp::from_unix_ms),
    }))
}

pub(crate) async fn by_account(
    conn: &mut dyn Connection,
    account_id: i64,
) -> Result<Vec<ApplicationRow>> {
    query(BY_ACCOUNT)
        .bind(account_id)
        .fetch_all(conn)
        .await?
        .iter()
        .map(listed)
        .collect()
}

pub(crate) async fn by_reference(
    conn: &mut dyn Connection,
    reference: Reference,
) -> Result<Option<ApplicationRow>> {
    let row = query(BY_REFERENCE)
        .bind(reference.as_str())
        .fetch_optional(conn)
        .await?;
    row.map(|row| listed(&row)).transpose()
}

pub(crate) async fn all(conn: &mut dyn Connection) -> Result<Vec<ApplicationRow>> {
    query(ALL)
        .fetch_all(conn)
        .await?
        .iter()
        .map(listed)
        .collect()
}

/// A new application.
pub(crate) struct NewRow<'a> {
    pub(crate) account_id: i64,
    pub(crate) category: Category,
    pub(crate) reference: Reference,
    pub(crate) live_hash: &'a str,
    pub(crate) test_hash: &'a str,
    pub(crate) sender_state: SenderState,
}

/// Stores an application and returns its id; `None` when its category, its missing sender name or
/// its reference is taken.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    new: &NewRow<'_>,
    now: Timestamp,
) -> Result<Option<ApplicationId>> {
    let row = query(INSERT)
        .bind(new.account_id)
        .bind(new.category.as_str())
        .bind(new.reference.as_str())
        .bind(new.live_hash)
        .bind(new.test_hash)
        .bind(new.sender_state.as_str())
        .bind(now.unix_ms())
        .fetch_optional(conn)
        .await?;
    row.map(|row| row::application(&row, "id")).transpose()
}

pub(crate) async fn has_category(
    conn: &mut dyn Connection,
    account_id: i64,
    category: Category,
) -> Result<bool> {
    let row = query(HAS_CATEGORY)
        .bind(account_id)
        .bind(category.as_str())
        .fetch_optional(conn)
        .await?;
    Ok(row.is_some())
}

pub(crate) async fn has_senderless(conn: &mut dyn Connection, account_id: i64) -> Result<bool> {
    Ok(query(HAS_SENDERLESS)
        .bind(account_id)
        .fetch_optional(conn)
        .await?
        .is_some())
}

/// What a change of status writes.
pub(crate) struct StatusChange<'a> {
    pub(crate) from: ApplicationStatus,
    pub(crate) to: ApplicationStatus,
    pub(crate) before: Option<ApplicationStatus>,
    pub(crate) suspend_reason: Option<&'a str>,
}

/// Changes the status; false when it isn't any more what it was when it was read.
pub(crate) async fn set_status(
    conn: &mut dyn Connection,
    id: ApplicationId,
    change: &StatusChange<'_>,
) -> Result<bool> {
    let done = query(SET_STATUS)
        .bind(id)
        .bind(change.from.as_str())
        .bind(change.to.as_str())
        .bind(change.before.map(ApplicationStatus::as_str))
        .bind(change.suspend_reason)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn set_lost_answer(
    conn: &mut dyn Connection,
    id: ApplicationId,
    policy: LostAnswer,
) -> Result<()> {
    query(SET_LOST_ANSWER)
        .bind(id)
        .bind(policy.as_str())
        .execute(conn)
        .await?;
    Ok(())
}

/// Requests the activation; false unless the application is Pending.
pub(crate) async fn set_activation(
    conn: &mut dyn Connection,
    id: ApplicationId,
    now: Timestamp,
) -> Result<bool> {
    let done = query(SET_ACTIVATION)
        .bind(id)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(crate) async fn set_sender(
    conn: &mut dyn Connection,
    id: ApplicationId,
    state: SenderState,
    name: Option<&str>,
) -> Result<()> {
    let done = query(SET_SENDER)
        .bind(id)
        .bind(state.as_str())
        .bind(name)
        .execute(conn)
        .await?;
    row::touched("applications", 1, done.rows_affected())
}

pub(crate) async fn set_live_hash(
    conn: &mut dyn Connection,
    id: ApplicationId,
    hash: &str,
) -> Result<()> {
    let done = query(SET_LIVE_HASH)
        .bind(id)
        .bind(hash)
        .execute(conn)
        .await?;
    row::touched("applications", 1, done.rows_affected())
}

pub(crate) async fn set_test_hash(
    conn: &mut dyn Connection,
    id: ApplicationId,
    hash: &str,
) -> Result<()> {
    let done = query(SET_TEST_HASH)
        .bind(id)
        .bind(hash)
        .execute(conn)
        .await?;
    row::touched("applications", 1, done.rows_affected())
}

/// What decides whether this application's keys may send.
pub(crate) async fn keys_by_reference(
    conn: &mut dyn Connection,
    reference: Reference,
) -> Result<Option<KeyRow>> {
    let row = query(KEYS_BY_REFERENCE)
        .bind(reference.as_str())
        .fetch_optional(conn)
        .await?;
    row.map(|row| key_row(&row)).transpose()
}

/// Adds to the balance, and returns it.
pub(crate) async fn add_balance(
    conn: &mut dyn Connection,
    id: ApplicationId,
    amount: Money,
) -> Result<Money> {
    let row = query(ADD_BALANCE)
        .bind(id)
        .bind(amount.micros())
        .fetch_one(conn)
        .await?;
    Ok(Money::from_micros(row::int(&row, "balance")?))
}

/// What an application has.
pub(crate) struct Balances {
    pub(crate) balance: Money,
    pub(crate) test_balance: Money,
    /// The day of the play money.
    pub(crate) test_day: i64,
}

pub(crate) async fn balances(
    conn: &mut dyn Connection,
    id: ApplicationId,
) -> Result<Option<Balances>> {
    let Some(row) = query(BALANCES).bind(id).fetch_optional(conn).await? else {
        return Ok(None);
    };
    Ok(Some(Balances {
        balance: Money::from_micros(row::int(&row, "balance")?),
        test_balance: Money::from_micros(row::int(&row, "test_balance")?),
        test_day: row::int(&row, "test_day")?,
    }))
}

/// What names an application.
pub(crate) struct ApplicationIds {
    pub(crate) id: ApplicationId,
    pub(crate) reference: Reference,
}

/// What names an account's applications.
pub(crate) async fn ids_by_account(
    conn: &mut dyn Connection,
    account_id: i64,
) -> Result<Vec<ApplicationIds>> {
    let rows = query(IDS_BY_ACCOUNT)
        .bind(account_id)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(ApplicationIds {
                id: row::application(row, "id")?,
                reference: reference(row)?,
            })
        })
        .collect()
}

/// What decides whether the keys of these applications may send; duplicates are fine. Where others
/// write at the same time, the applications are locked.
pub(crate) async fn keys_by_references(
    conn: &mut dyn Connection,
    references: &[Reference],
) -> Result<Vec<(Reference, KeyRow)>> {
    if let Conn::File(conn) = conn.conn() {
        return keys_in_file(given(conn)?, references);
    }
    let rows = query(KEYS_BY_REFERENCES)
        .bind(json(&references)?)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| Ok((reference(row)?, key_row(row)?)))
        .collect()
}

fn keys_in_file(
    conn: &rusqlite::Connection,
    references: &[Reference],
) -> Result<Vec<(Reference, KeyRow)>> {
    let distinct: BTreeSet<&str> = references.iter().map(Reference::as_str).collect();
    let distinct = distinct
        .into_iter()
        .filter_map(|text| Reference::parse(text).ok());
    look_up(
        conn,
        KEYS_BY_REFERENCES,
        distinct,
        |s, r| s.query([r.as_str()]),
        |reference, row| {
            let word = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
            let row = KeyRow {
                id: ApplicationId(row.get(0)?),
                category: known("category", word(1)?, Category::parse)?,
                status: known("status", word(2)?, ApplicationStatus::parse)?,
                live_hash: row.get(3)?,
                test_hash: row.get(4)?,
                sender_state: known("sender_state", word(5)?, SenderState::parse)?,
                sender_name: row.get(6)?,
                balance: Money::from_micros(row.get(7)?),
                test_balance: Money::from_micros(row.get(8)?),
                test_day: row.get(9)?,
            };
            Ok((*reference, row))
        },
    )
}

/// A word of an application's row.
fn known<T>(column: &'static str, value: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    parse(value).ok_or_else(|| {
        Error::Failed(Fault::Corrupt {
            table: "applications",
            column,
            value: value.to_owned(),
        })
    })
}
