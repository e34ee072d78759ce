//! Applications: the fields that the portal shows, their keys and their balances.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::admission::SendingApplication;
use domain::decision::ApplicationList;
use domain::ids::Shard;
use domain::limits::{DEFAULT_LIMITS, SendLimits};
use domain::records::{ApplicationRecord, SenderRequestRecord};
use domain::support::Owner;
use domain::verify::{Locale, WebOtpDomain};
use domain::{
    ApplicationId, ApplicationStatus, Category, EventStream, KeyKind, LostAnswer, Money, Reference,
    SenderState, SenderStatus, Timestamp,
};

use super::query::{Argument, Conn, Row, query};
use super::row::{self, from_row, touched};
use super::sql::{Sql, statements};
use super::transaction::Tx;
use crate::error::Result;

/// The columns of a listed application, with its newest request for a sender name that wasn't
/// replaced or withdrawn. [`requested_sender`] leaves out an accepted request, because the
/// application already has that sender name.
macro_rules! listed {
    ($rest:literal) => {
        Sql::in_shard(concat!(
            r"
        SELECT a.id, a.account_id, a.reference, a.name, a.category, a.status, a.status_before,
               a.suspend_reason, a.lost_answer, a.activation_requested_at, a.sender_name,
               a.sender_state, a.balance, a.test_balance, a.test_day, a.created_at,
               a.low_balance, a.batch_mails_since, accounts.email, accounts.closed_at,
               accounts.disabled_at,
               s.id AS request_id, s.name AS request_name,
               s.status AS request_status, s.reason AS request_reason, s.requested_at,
               s.decided_at
        FROM applications a
        JOIN accounts ON accounts.id = a.account_id AND a.deleted_at IS NULL
        LEFT JOIN sender_requests s
          ON s.id = (
              SELECT MAX(r.id) FROM sender_requests r WHERE r.application_id = a.id
                AND r.status NOT IN ('replaced', 'withdrawn'){ AND r.shard = $shard}
          ){ AND s.shard = $shard}",
            $rest,
        ))
    };
}

statements! {
    /// PostgreSQL only: SQLite has one shard.
    const SHARD_OF: Sql = Sql::postgres(r"
        SELECT shard FROM reference_shards WHERE application_id = $1");
    const ADDRESS_OF: Sql = Sql::postgres(r"
        SELECT shard, application_id FROM reference_shards WHERE reference = $1");
    const BY_ACCOUNT: Sql = listed!(" WHERE a.account_id = $1{ AND a.shard = $shard} ORDER BY a.id");
    const BY_REFERENCE: Sql = listed!(" WHERE a.reference = $1{ AND a.shard = $shard}");
    const ALL: Sql = listed!("{ WHERE a.shard = $shard} ORDER BY a.id");
    const WAITING: Sql = listed!(r"
        WHERE a.status = 'Pending' AND a.activation_requested_at IS NOT NULL
          AND (a.activation_requested_at, a.id) > ($1, $2){ AND a.shard = $shard}
        ORDER BY a.activation_requested_at, a.id LIMIT $3");
    const WITH_STATUS: Sql = listed!(r"
        WHERE a.status = $1 AND a.id > $2{ AND a.shard = $shard} ORDER BY a.id LIMIT $3");
    const AFTER: Sql = listed!(" WHERE a.id > $1{ AND a.shard = $shard} ORDER BY a.id LIMIT $2");
    /// Applications with the lower-case text `$1` in their reference, name or sender name, or in
    /// the sender name that they requested last.
    const WITH_PART: Sql = listed!(r"
        WHERE (REPLACE(a.reference, $1, '') <> a.reference
            OR REPLACE(LOWER(a.name), $1, '') <> LOWER(a.name)
            OR REPLACE(LOWER(a.sender_name), $1, '') <> LOWER(a.sender_name)
            OR REPLACE(LOWER(s.name), $1, '') <> LOWER(s.name)){ AND a.shard = $shard}
        ORDER BY a.id LIMIT $2");
    const OWNER: Sql = Sql::in_shard(r"
        SELECT a.reference, a.account_id, accounts.email
        FROM applications a
        JOIN accounts ON accounts.id = a.account_id
        WHERE a.id = $1{ AND a.shard = $shard}");
    const SENDING: Sql = Sql::in_shard(r"
        SELECT reference, sender_name, effective_status AS status
        FROM applications WHERE id = $1{ AND shard = $shard}");
    const SET_ACTIVATED: Sql = Sql::in_shard(r"
        UPDATE applications SET activated_at = $2
        WHERE id = $1 AND activated_at IS NULL{ AND shard = $shard}");
    /// Assigns a reference and an ID to a new application. Verbs run one at a time, so no other
    /// transaction takes the same ID.
    const TAKE_REFERENCE: Sql = Sql::postgres_in_shard(r"
        INSERT INTO reference_shards (reference, shard, account_id, application_id)
        SELECT $1, $3, $2, COALESCE(MAX(application_id), 0) + 1 FROM reference_shards
        ON CONFLICT (reference) DO NOTHING RETURNING application_id AS id");
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO applications (account_id, category, reference, live_hash, test_hash, status,
            sender_state, balance, test_balance, test_day, created_at{, id, shard})
        VALUES ($1, $2, $3, $4, $5, 'Pending', $6, 0, 0, -1, $7{, $8, $shard})
        ON CONFLICT DO NOTHING RETURNING id");
    const HAS_CATEGORY: Sql = Sql::in_shard(r"
        SELECT id FROM applications WHERE account_id = $1 AND category = $2
          AND deleted_at IS NULL{ AND shard = $shard}");
    const HAS_SENDERLESS: Sql = Sql::in_shard(r"
        SELECT id FROM applications
        WHERE account_id = $1 AND sender_state = 'none'
          AND deleted_at IS NULL{ AND shard = $shard}");
    const SET_STATUS: Sql = Sql::in_shard(r"
        UPDATE applications SET status = $3, status_before = $4, suspend_reason = $5
        WHERE id = $1 AND status = $2{ AND shard = $shard}");
    const SET_ACTIVATION: Sql = Sql::in_shard(r"
        UPDATE applications SET activation_requested_at = $2
        WHERE id = $1 AND status = 'Pending'{ AND shard = $shard}");
    /// No key has an empty hash.
    const DELETE: Sql = Sql::in_shard(r"
        UPDATE applications SET deleted_at = $2, live_hash = '', test_hash = '',
            activation_requested_at = NULL, low_balance = NULL, batch_mails_since = NULL
        WHERE id = $1 AND deleted_at IS NULL AND balance = 0{ AND shard = $shard}");
    const SET_NAME: Sql = Sql::in_shard(
        "UPDATE applications SET name = $2 WHERE id = $1{ AND shard = $shard}");
    const SET_LOST_ANSWER: Sql = Sql::in_shard(
        "UPDATE applications SET lost_answer = $2 WHERE id = $1{ AND shard = $shard}");
    /// The clock of another process may already show the next day.
    const ADD_WITHDRAWN: Sql = Sql::in_shard(r"
        UPDATE applications SET
            withdrawn_live = CASE WHEN withdrawn_day >= $2 THEN withdrawn_live ELSE 0 END + $3,
            withdrawn_test = CASE WHEN withdrawn_day >= $2 THEN withdrawn_test ELSE 0 END + $4,
            withdrawn_day = CASE WHEN withdrawn_day > $2 THEN withdrawn_day ELSE $2 END
        WHERE id = $1{ AND shard = $shard}");
    const WITHDRAWN: Sql = Sql::in_shard(r"
        SELECT CASE WHEN $3 = 0 THEN withdrawn_live ELSE withdrawn_test END AS n
        FROM applications WHERE id = $1 AND withdrawn_day >= $2{ AND shard = $shard}");
    const SET_LIMITS: Sql = Sql::in_shard(
        "UPDATE applications SET limits = $2 WHERE id = $1{ AND shard = $shard}");
    const SET_CODE_SETTINGS: Sql = Sql::in_shard(r"
        UPDATE applications SET code_locale = $2, code_domain = $3
        WHERE id = $1{ AND shard = $shard}");
    const LIMITS_BY_ACCOUNT: Sql = Sql::in_shard(r"
        SELECT id, limits FROM applications
        WHERE account_id = $1 AND limits IS NOT NULL{ AND shard = $shard}");
    const SET_SENDER: Sql = Sql::in_shard(r"
        UPDATE applications SET sender_state = $2, sender_name = $3
        WHERE id = $1{ AND shard = $shard}");
    const SET_LIVE_HASH: Sql = Sql::in_shard(
        "UPDATE applications SET live_hash = $2 WHERE id = $1{ AND shard = $shard}");
    const SET_TEST_HASH: Sql = Sql::in_shard(
        "UPDATE applications SET test_hash = $2 WHERE id = $1{ AND shard = $shard}");
    const KEYS_BY_REFERENCE: Sql = Sql::in_shard(r"
        SELECT id, category, effective_status AS status, live_hash, test_hash, sender_state,
               sender_name, balance, test_balance, test_day, test_sent, paid_at, limits, spent_day,
               spent_today, code_locale, code_domain
        FROM applications WHERE reference = $1{ AND shard = $shard}");
    const ADD_BALANCE: Sql = Sql {
        sqlite: r"
            UPDATE applications SET balance = balance + $2
            WHERE id = $1 RETURNING balance, 0 AS last_transfer_id",
        postgres: r"
            UPDATE applications SET balance = balance + $2, last_transfer_id = last_transfer_id + 1
            WHERE id = $1 AND shard = $3 RETURNING balance, last_transfer_id",
        ..Sql::IN_SHARD
    };
    /// Each application has a copy of the time of its account's first deposit, so that a charging
    /// transaction doesn't have to read the account.
    const SET_PAID: Sql = Sql::in_shard(r"
        UPDATE applications SET paid_at = $2 WHERE paid_at IS NULL AND account_id = (
            SELECT account_id
            FROM applications WHERE id = $1{ AND shard = $shard}){ AND shard = $shard}");
    const INHERIT_PAID: Sql = Sql::in_shard(r"
        UPDATE applications SET paid_at = (
            SELECT MIN(paid_at) FROM applications WHERE account_id = $2{ AND shard = $shard})
        WHERE id = $1{ AND shard = $shard}");
    const BALANCES: Sql = Sql::in_shard(r"
        SELECT id, test_balance, test_day, balance FROM applications
        WHERE id = $1{ AND shard = $shard}");
    const SET_DISABLED: Sql = Sql::in_shard(
        "UPDATE applications SET disabled_at = $2 WHERE account_id = $1{ AND shard = $shard}");
    const IDS_BY_ACCOUNT: Sql = Sql::in_shard(r"
        SELECT id, reference FROM applications
        WHERE account_id = $1 AND deleted_at IS NULL{ AND shard = $shard}");
    const KEYS_BY_REFERENCES: Sql = Sql {
        sqlite: r"
            SELECT id, reference, category,
                   effective_status AS status,
                   live_hash, test_hash, sender_state, sender_name, balance, test_balance, test_day,
                   test_sent, paid_at, limits, spent_day, spent_today
            FROM applications WHERE reference = ?1",
        postgres: r"
            -- Locked until the commit, because the charge depends on these columns.
            SELECT id, reference, category,
                   effective_status AS status,
                   live_hash, test_hash, sender_state, sender_name, balance, test_balance, test_day,
                   test_sent, paid_at, limits, spent_day, spent_today
            FROM applications WHERE reference = ANY (
                ARRAY(SELECT value FROM jsonb_array_elements_text($1::text::jsonb)))
              AND shard = $2
            ORDER BY id FOR UPDATE",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[ID, balance, test balance, test day, balance before, status, live hash, test
    /// hash, sender state, test balance before, test messages of the day, day of the spend, spend
    /// of the day, limits]]`.
    const CHARGE: Sql = Sql {
        sqlite: r"
            -- The row hasn't changed since this transaction read it: SQLite has only one writer at
            -- a time.
            UPDATE applications SET balance = ?2, test_balance = ?3, test_day = ?4, test_sent = ?11,
                spent_day = ?12, spent_today = ?13
            WHERE id = ?1",
        postgres: r"
            -- The columns that the charge depends on must be unchanged.
            UPDATE applications SET balance = (r.value ->> 1)::bigint,
                test_balance = (r.value ->> 2)::bigint, test_day = (r.value ->> 3)::bigint,
                test_sent = (r.value ->> 10)::bigint, spent_day = (r.value ->> 11)::bigint,
                spent_today = (r.value ->> 12)::bigint
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE applications.id = (r.value ->> 0)::bigint
              AND applications.balance = (r.value ->> 4)::bigint
              AND applications.effective_status = r.value ->> 5
              AND applications.live_hash = r.value ->> 6
              AND applications.test_hash = r.value ->> 7
              AND applications.sender_state = r.value ->> 8
              AND applications.test_balance = (r.value ->> 9)::bigint
              AND applications.limits IS NOT DISTINCT FROM r.value ->> 13
              AND applications.shard = $2",
        ..Sql::IN_SHARD
    };
}

/// An application, including the fields that only the server uses.
pub struct ApplicationRow {
    pub id: ApplicationId,
    pub account_id: i64,
    pub status_before: Option<ApplicationStatus>,
    pub test_day: i64,
    pub record: ApplicationRecord,
}

/// The fields of an application that decide whether its keys may send.
#[derive(Clone)]
pub struct KeyRow {
    pub id: ApplicationId,
    pub category: Category,
    /// The application's status; `Suspended` while its account is disabled.
    pub status: ApplicationStatus,
    pub live_hash: String,
    pub test_hash: String,
    pub sender_state: SenderState,
    pub sender_name: Option<String>,
    pub balance: Money,
    pub test_balance: Money,
    pub test_day: i64,
    /// The number of messages that the test key sent on `test_day`.
    pub test_sent: i64,
    /// Whether the account ever had a deposit.
    pub paid: bool,
    pub limits: Option<Arc<StoredLimits>>,
    /// The day of the account's time zone on which a live message was last accepted.
    pub spent_day: i64,
    /// The cost of the live messages that were accepted on `spent_day`.
    pub spent_today: Money,
}

/// The settings of an application for one-time codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSettings {
    /// The language of the texts.
    pub locale: Locale,
    /// The website into which browsers may fill the codes.
    pub domain: Option<WebOtpDomain>,
}

/// The limits that the owner of an application has set.
pub struct StoredLimits {
    pub text: String,
    pub limits: SendLimits,
}

impl StoredLimits {
    /// Parses the text in the database.
    pub fn read(text: Option<String>) -> Result<Option<Arc<Self>>> {
        let read = |text: String| {
            let limits = row::parse_json("applications", "limits", &text)?;
            Ok(Arc::new(Self { text, limits }))
        };
        text.map(read).transpose()
    }
}

impl KeyRow {
    /// Returns the application's limits.
    pub fn limits(&self) -> &SendLimits {
        self.limits.as_ref().map_or(&DEFAULT_LIMITS, |stored| &stored.limits)
    }

    /// Returns how much the application has spent on a day of its account's time zone.
    pub fn spent_on(&self, day: i64) -> Money {
        if self.spent_day < day { Money::ZERO } else { self.spent_today }
    }

    /// Whether `key` is the application's key of its kind.
    pub fn holds(&self, key: &domain::ApiKey) -> bool {
        self.holds_hash(key.kind(), &key.hash())
    }

    /// Whether `hash` is the hash of the application's key of this kind.
    pub fn holds_hash(&self, kind: KeyKind, hash: &str) -> bool {
        self.hash_of(kind) == hash
    }

    /// Returns the hash of the application's key of this kind.
    pub fn hash_of(&self, kind: KeyKind) -> &str {
        match kind {
            KeyKind::Live => &self.live_hash,
            KeyKind::Test => &self.test_hash,
        }
    }

    /// Returns how many messages the test key has sent on the day of `now`. A new day starts at 0.
    pub fn test_sent_on(&self, now: Timestamp) -> i64 {
        if self.test_day < now.day() { 0 } else { self.test_sent }
    }

    pub const fn sending(&self) -> SendingApplication {
        SendingApplication {
            category: self.category,
            status: self.status,
            sender: self.sender_state,
        }
    }
}

fn status(row: &Row<'_>, column: &'static str) -> Result<ApplicationStatus> {
    row::word(row, "applications", column, ApplicationStatus::parse)
}

fn sender_state(row: &Row<'_>) -> Result<SenderState> {
    row::word(row, "applications", "sender_state", SenderState::parse)
}

fn category(row: &Row<'_>) -> Result<Category> {
    row::word(row, "applications", "category", Category::parse)
}

/// Reads a key row from the columns of [`KEYS_BY_REFERENCE`].
pub fn key_row(row: &Row<'_>) -> Result<KeyRow> {
    from_row!(row => KeyRow {
        id, category: category(row)?, status: status(row, "status")?, live_hash, test_hash,
        sender_state: sender_state(row)?, sender_name, balance, test_balance, test_day, test_sent,
        paid: row.get::<Option<Timestamp>>("paid_at")?.is_some(),
        limits: StoredLimits::read(row.get("limits")?)?,
        spent_day, spent_today,
    })
}

fn listed(row: &Row<'_>) -> Result<ApplicationRow> {
    let before: Option<String> = row.get("status_before")?;
    let record = ApplicationRecord {
        reference: row::reference(row)?,
        name: row.get("name")?,
        category: category(row)?,
        status: status(row, "status")?,
        sender_name: row.get("sender_name")?,
        sender_state: sender_state(row)?,
        requested_sender: requested_sender(row)?,
        balance: row.get("balance")?,
        test_balance: row.get("test_balance")?,
        created_at: row.get("created_at")?,
        activation_requested_at: row.get("activation_requested_at")?,
        lost_answer: row::word(row, "applications", "lost_answer", LostAnswer::parse)?,
        suspend_reason: row.get("suspend_reason")?,
        low_balance: row.get("low_balance")?,
        batch_mails_since: row.get("batch_mails_since")?,
        email: row.get("email")?,
        account_closed: row.get::<Option<Timestamp>>("closed_at")?.is_some(),
        account_disabled: row.get::<Option<Timestamp>>("disabled_at")?.is_some(),
    };
    Ok(ApplicationRow {
        id: row.get("id")?,
        account_id: row.get("account_id")?,
        status_before: before.as_deref().and_then(ApplicationStatus::parse),
        test_day: row.get("test_day")?,
        record,
    })
}

/// Reads the newest request for a sender name. Returns `None` if it is accepted: the application
/// shows that name anyway.
fn requested_sender(row: &Row<'_>) -> Result<Option<SenderRequestRecord>> {
    let Some(id) = row.get("request_id")? else {
        return Ok(None);
    };
    let status = row::word(row, "sender_requests", "request_status", SenderStatus::parse)?;
    if status == SenderStatus::Accepted {
        return Ok(None);
    }
    Ok(Some(SenderRequestRecord {
        id,
        reference: row::reference(row)?,
        name: row.get("request_name")?,
        status,
        reason: row.get("request_reason")?,
        requested_at: row.get("requested_at")?,
        decided_at: row.get("decided_at")?,
    }))
}

pub async fn shard_of(conn: Conn<'_>, id: ApplicationId) -> Result<Shard> {
    query(SHARD_OF, id).fetch_one(conn, |row| row.get("shard").map(Shard)).await
}

/// The shard and the ID of an application. They never change.
#[derive(Clone, Copy)]
pub struct Address {
    pub shard: Shard,
    pub application_id: ApplicationId,
}

pub async fn address_of(conn: Conn<'_>, reference: Reference) -> Result<Option<Address>> {
    let read = |row: &Row<'_>| {
        Ok(Address { shard: Shard(row.get("shard")?), application_id: row.get("application_id")? })
    };
    query(ADDRESS_OF, reference.as_str()).fetch_optional(conn, read).await
}

pub async fn by_account(conn: Conn<'_>, account_id: i64) -> Result<Vec<ApplicationRow>> {
    query(BY_ACCOUNT, account_id).fetch_all(conn, listed).await
}

pub async fn by_reference(conn: Conn<'_>, reference: Reference) -> Result<Option<ApplicationRow>> {
    query(BY_REFERENCE, reference.as_str()).fetch_optional(conn, listed).await
}

pub async fn all(conn: Conn<'_>) -> Result<Vec<ApplicationRow>> {
    query(ALL, ()).fetch_all(conn, listed).await
}

pub async fn owner(conn: Conn<'_>, id: ApplicationId) -> Result<Owner> {
    let read = |row: &Row<'_>| from_row!(row => Owner { account_id, email, reference: row::reference(row)? });
    query(OWNER, id).fetch_one(conn, read).await
}

/// The fields of an application that its messages are sent with.
pub struct SendingRow {
    pub reference: Reference,
    pub sender: Option<String>,
    /// `Suspended` while the account is disabled.
    pub status: ApplicationStatus,
}

pub async fn sending(conn: Conn<'_>, id: ApplicationId) -> Result<SendingRow> {
    let read = |row: &Row<'_>| {
        Ok(SendingRow {
            reference: row::reference(row)?,
            sender: row.get("sender_name")?,
            status: status(row, "status")?,
        })
    };
    query(SENDING, id).fetch_one(conn, read).await
}

pub struct NewRow<'a> {
    pub account_id: i64,
    pub category: Category,
    pub reference: Reference,
    pub live_hash: &'a str,
    pub test_hash: &'a str,
    pub sender_state: SenderState,
}

/// Stores an application and returns its ID. Returns `None` if the account already has an
/// application of this category or without a sender name, or if the reference is taken.
pub async fn insert(
    conn: Conn<'_>,
    new: &NewRow<'_>,
    now: Timestamp,
) -> Result<Option<ApplicationId>> {
    let mut id: Option<i64> = None;
    if conn.dialect().is_shared() {
        let taking = query(TAKE_REFERENCE, (new.reference.as_str(), new.account_id));
        id = taking.fetch_optional(&mut *conn, |row| row.get("id")).await?;
        if id.is_none() {
            return Ok(None);
        }
    }
    let values = (
        new.account_id,
        new.category.as_str(),
        new.reference.as_str(),
        new.live_hash,
        new.test_hash,
        new.sender_state.as_str(),
        now,
    );
    let stored: Option<ApplicationId> = query(INSERT, values)
        .bind(id.map(Argument::from))
        .fetch_optional(&mut *conn, |row| row.get("id"))
        .await?;
    if let Some(id) = stored {
        query(INHERIT_PAID, (id, new.account_id)).execute(conn).await?;
    }
    Ok(stored)
}

pub async fn has_category(conn: Conn<'_>, account_id: i64, category: Category) -> Result<bool> {
    query(HAS_CATEGORY, (account_id, category.as_str())).finds(conn).await
}

pub async fn has_senderless(conn: Conn<'_>, account_id: i64) -> Result<bool> {
    query(HAS_SENDERLESS, account_id).finds(conn).await
}

pub struct StatusChange<'a> {
    pub from: ApplicationStatus,
    pub to: ApplicationStatus,
    pub before: Option<ApplicationStatus>,
    pub suspend_reason: Option<&'a str>,
}

/// Changes the status of an application. Returns false if the status is no longer `from`.
pub async fn set_status(
    conn: Conn<'_>,
    id: ApplicationId,
    change: &StatusChange<'_>,
) -> Result<bool> {
    let values = (
        id,
        change.from.as_str(),
        change.to.as_str(),
        change.before.map(ApplicationStatus::as_str),
        change.suspend_reason,
    );
    Ok(query(SET_STATUS, values).execute(conn).await? == 1)
}

/// Returns a page of a list that staff see. `after` is the time and the ID of the last application
/// of the previous page; only the list of waiting applications uses the time.
pub async fn list(
    conn: Conn<'_>,
    list: ApplicationList,
    after: (i64, i64),
    limit: i64,
) -> Result<Vec<ApplicationRow>> {
    let (at, id) = after;
    let listing = match list {
        ApplicationList::Waiting => query(WAITING, (at, id, limit)),
        ApplicationList::All => query(AFTER, (id, limit)),
        ApplicationList::Pending => query(WITH_STATUS, ("Pending", id, limit)),
        ApplicationList::Active => query(WITH_STATUS, ("Active", id, limit)),
        ApplicationList::Suspended => query(WITH_STATUS, ("Suspended", id, limit)),
    };
    listing.fetch_all(conn, listed).await
}

/// Returns at most `limit` applications that have the lower-case text `part` in their reference,
/// name or sender name, or in the sender name that they requested last.
pub async fn with_part(conn: Conn<'_>, part: &str, limit: i64) -> Result<Vec<ApplicationRow>> {
    query(WITH_PART, (part, limit)).fetch_all(conn, listed).await
}

/// Stores when an application was first approved.
pub async fn set_activated(conn: Conn<'_>, id: ApplicationId, now: Timestamp) -> Result<()> {
    query(SET_ACTIVATED, (id, now)).execute(conn).await.map(drop)
}

/// Disables the keys of an account's applications, or enables them if `disabled_at` is `None`. The
/// column `disabled_at` duplicates the account's, so that a charging transaction doesn't have to
/// read the account.
pub async fn set_disabled(
    conn: Conn<'_>,
    account_id: i64,
    disabled_at: Option<Timestamp>,
) -> Result<()> {
    query(SET_DISABLED, (account_id, disabled_at)).execute(conn).await.map(drop)
}

/// Deletes an application without a balance: its keys are unknown from then on, and no list shows
/// it.
pub async fn delete(conn: Conn<'_>, id: ApplicationId, now: Timestamp) -> Result<()> {
    let deleted = query(DELETE, (id, now)).execute(conn).await?;
    touched("applications", 1, deleted)
}

/// Stores the display name of an application. `None` restores the default one.
pub async fn set_name(conn: Conn<'_>, id: ApplicationId, name: Option<&str>) -> Result<()> {
    query(SET_NAME, (id, name)).execute(conn).await.map(drop)
}

pub async fn set_lost_answer(conn: Conn<'_>, id: ApplicationId, policy: LostAnswer) -> Result<()> {
    query(SET_LOST_ANSWER, (id, policy.as_str())).execute(conn).await.map(drop)
}

pub async fn set_limits(conn: Conn<'_>, id: ApplicationId, limits: &SendLimits) -> Result<()> {
    let set = query(SET_LIMITS, (id, row::json(limits)?)).execute(conn).await?;
    touched("applications", 1, set)
}

/// Adds to the number of messages that were withdrawn on a day.
pub async fn add_withdrawn(
    conn: Conn<'_>,
    whose: EventStream,
    messages: i64,
    day: i64,
) -> Result<()> {
    let (live, test) = if whose.test { (0, messages) } else { (messages, 0) };
    query(ADD_WITHDRAWN, (whose.application_id, day, live, test)).execute(conn).await.map(drop)
}

/// Returns the number of messages that were withdrawn on a day.
pub async fn withdrawn(conn: Conn<'_>, whose: EventStream, day: i64) -> Result<i64> {
    let found = query(WITHDRAWN, (whose.application_id, day, i64::from(whose.test)));
    Ok(found.fetch_optional(conn, |row| row.get("n")).await?.unwrap_or(0))
}

/// Stores the time zone of an account's limits. `None` stands for UTC.
pub async fn set_zone_of_limits(conn: Conn<'_>, account_id: i64, zone: Option<&str>) -> Result<()> {
    let read = |row: &Row<'_>| Ok((row.get("id")?, StoredLimits::read(row.get("limits")?)?));
    let found: Vec<(ApplicationId, _)> =
        query(LIMITS_BY_ACCOUNT, account_id).fetch_all(&mut *conn, read).await?;
    for (id, stored) in found {
        if let Some(stored) = stored {
            let limits = SendLimits { zone: zone.map(str::to_owned), ..stored.limits.clone() };
            set_limits(conn, id, &limits).await?;
        }
    }
    Ok(())
}

/// Sets when the activation of an application was requested, or withdraws the request. Returns
/// false if the application isn't Pending.
pub async fn set_activation(
    conn: Conn<'_>,
    id: ApplicationId,
    requested_at: Option<Timestamp>,
) -> Result<bool> {
    Ok(query(SET_ACTIVATION, (id, requested_at)).execute(conn).await? == 1)
}

pub async fn set_sender(
    conn: Conn<'_>,
    id: ApplicationId,
    state: SenderState,
    name: Option<&str>,
) -> Result<()> {
    let set = query(SET_SENDER, (id, state.as_str(), name)).execute(conn).await?;
    touched("applications", 1, set)
}

/// Stores the hash of a new key.
pub async fn set_hash(conn: Conn<'_>, id: ApplicationId, kind: KeyKind, hash: &str) -> Result<()> {
    let statement = match kind {
        KeyKind::Live => SET_LIVE_HASH,
        KeyKind::Test => SET_TEST_HASH,
    };
    let set = query(statement, (id, hash)).execute(conn).await?;
    touched("applications", 1, set)
}

/// Returns the fields that decide whether the keys with this reference may send.
pub async fn keys_by_reference(conn: Conn<'_>, reference: Reference) -> Result<Option<KeyRow>> {
    query(KEYS_BY_REFERENCE, reference.as_str()).fetch_optional(conn, key_row).await
}

/// Like [`keys_by_reference`]. Also returns the settings for codes.
pub async fn keys_and_code_settings(
    conn: Conn<'_>,
    reference: Reference,
) -> Result<Option<(KeyRow, CodeSettings)>> {
    let read = |row: &Row<'_>| {
        let domain: Option<String> = row.get("code_domain")?;
        let settings = CodeSettings {
            locale: row::word(row, "applications", "code_locale", Locale::parse)?,
            domain: domain.and_then(|domain| WebOtpDomain::parse(&domain).ok()),
        };
        Ok((key_row(row)?, settings))
    };
    query(KEYS_BY_REFERENCE, reference.as_str()).fetch_optional(conn, read).await
}

/// Stores the settings of an application for one-time codes.
pub async fn set_code_settings(
    conn: Conn<'_>,
    id: ApplicationId,
    settings: &CodeSettings,
) -> Result<()> {
    let domain = settings.domain.as_ref().map(WebOtpDomain::as_str);
    let set = query(SET_CODE_SETTINGS, (id, settings.locale.as_str(), domain));
    touched("applications", 1, set.execute(conn).await?)
}

/// Adds a deposit to the balance of an application. Returns the new balance, and the ID for the
/// transfer that records the deposit. The ID is 0 on SQLite, which assigns the IDs of transfers
/// itself.
pub async fn add_balance(
    conn: Conn<'_>,
    id: ApplicationId,
    amount: Money,
    now: Timestamp,
) -> Result<(Money, i64)> {
    query(SET_PAID, (id, now)).execute(&mut *conn).await?;
    query(ADD_BALANCE, (id, amount))
        .fetch_one(conn, |row| Ok((row.get("balance")?, row.get("last_transfer_id")?)))
        .await
}

pub struct Balances {
    pub balance: Money,
    pub test_balance: Money,
    pub test_day: i64,
}

pub async fn balances(conn: Conn<'_>, id: ApplicationId) -> Result<Option<Balances>> {
    let read = |row: &Row<'_>| from_row!(row => Balances { balance, test_balance, test_day });
    query(BALANCES, id).fetch_optional(conn, read).await
}

pub struct ApplicationIds {
    pub id: ApplicationId,
    pub reference: Reference,
}

/// Returns the IDs and the references of an account's applications.
pub async fn ids_by_account(conn: Conn<'_>, account_id: i64) -> Result<Vec<ApplicationIds>> {
    query(IDS_BY_ACCOUNT, account_id)
        .fetch_all(conn, |row| {
            Ok(ApplicationIds { id: row.get("id")?, reference: row::reference(row)? })
        })
        .await
}

/// Returns the fields that decide whether the keys with these references may send. A reference may
/// occur twice. On PostgreSQL the transaction locks the applications, because others write at the
/// same time.
pub async fn keys_by_references(
    tx: &mut Tx<'_>,
    references: &[Reference],
) -> Result<Vec<(Reference, KeyRow)>> {
    let distinct: BTreeSet<&str> = references.iter().map(Reference::as_str).collect();
    let read = |row: &Row<'_>| Ok((row::reference(row)?, key_row(row)?));
    query(KEYS_BY_REFERENCES, ()).fetch_each(tx, distinct, read).await
}

/// An application whose balances a commit group or an upload changes.
pub struct ChargedApplication {
    /// The application as it was read in this transaction.
    pub before: KeyRow,
    pub balance: Money,
    pub test_balance: Money,
    pub test_day: i64,
    pub test_sent: i64,
    pub spent_day: i64,
    pub spent_today: Money,
}

/// Writes the new balances. Fails if the keys, the status, the limits or the balances are no longer
/// those that the charge was based on.
pub async fn charge(conn: Conn<'_>, changed: &[ChargedApplication]) -> Result<()> {
    let rows = changed.iter().map(|c| {
        let before = &c.before;
        (
            before.id,
            c.balance,
            c.test_balance,
            c.test_day,
            before.balance,
            before.status.as_str(),
            &before.live_hash,
            &before.test_hash,
            before.sender_state.as_str(),
            before.test_balance,
            c.test_sent,
            c.spent_day,
            c.spent_today,
            before.limits.as_ref().map(|stored| stored.text.as_str()),
        )
    });
    let written = query(CHARGE, ()).execute_each(conn, rows).await?;
    touched("applications", changed.len(), written)
}
