//! Accounts and password reset links.

use domain::ids::Shard;
use domain::records::AccountRecord;
use domain::{MailKind, Theme, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::{Refusal, Result};

/// The columns of an account, followed by the rest of the statement.
macro_rules! account_text {
    ($($rest:expr),+) => {
        concat!(
            r"
        SELECT id, email, role, password_hash, created_at, password_changed_at, confirmed_at,
               disabled_at, disabled_reason, theme, time_zone, new_email, new_email_at,
               unwanted_mails, closed_at,
               (
                   SELECT COUNT(*)
                   FROM second_factors f WHERE f.account_id = accounts.id) AS factors
        FROM accounts",
            $($rest),+
        )
    };
}

macro_rules! account {
    ($rest:literal) => {
        Sql::same(account_text!($rest))
    };
}

macro_rules! with_part {
    ($place:literal) => {
        account_text!(" WHERE email > $1 AND ", $place, " > 0 ORDER BY email LIMIT $3")
    };
}

statements! {
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO accounts (email, password_hash, role, created_at, password_changed_at,
                confirmed_at)
            VALUES ($1, $2, $3, $4, $4, $4)
            ON CONFLICT (email) DO NOTHING RETURNING id",
        postgres: r"
            INSERT INTO accounts (id, shard, email, password_hash, role, created_at,
                password_changed_at, confirmed_at)
            SELECT a.id, 1 + a.id % i.shards, $1, $2, $3, $4, $4, $4
            FROM (SELECT nextval(pg_get_serial_sequence('accounts', 'id')) AS id) a
            CROSS JOIN installation i
            ON CONFLICT (email) DO NOTHING RETURNING id",
        ..Sql::ANYWHERE
    };
    const BY_ID: Sql = account!(" WHERE id = $1");
    const BY_EMAIL: Sql = account!(" WHERE email = $1");
    const ALL: Sql = account!(" ORDER BY email");
    /// A page of the accounts whose email contains a text, starting after an email.
    const WITH_PART: Sql = Sql {
        sqlite: with_part!("instr(email, $2)"),
        postgres: with_part!("strpos(email, $2)"),
        ..Sql::ANYWHERE
    };
    const SET_DISABLED: Sql = Sql::same(r"
        UPDATE accounts SET disabled_at = $2, disabled_reason = $3 WHERE id = $1");
    const SET_ROLE: Sql = Sql::same("UPDATE accounts SET role = $2 WHERE id = $1");
    /// The staff members who can sign in.
    const STAFF: Sql = account!(" WHERE role = 'staff' AND disabled_at IS NULL ORDER BY id");
    /// PostgreSQL only: SQLite has one shard.
    const SHARD: Sql = Sql::postgres("SELECT shard FROM accounts WHERE id = $1");
    const SET_PASSWORD: Sql = Sql::same(r"
        UPDATE accounts SET password_hash = $2, password_changed_at = $3 WHERE id = $1");
    const SET_NEW_EMAIL: Sql = Sql::same(r"
        UPDATE accounts SET new_email = $2, new_email_at = NULL WHERE id = $1");
    /// Updates no row if the change was canceled or replaced by another one, or if the new email is
    /// already confirmed.
    const SET_NEW_EMAIL_AT: Sql = Sql::same(r"
        UPDATE accounts SET new_email_at = $3
        WHERE id = $1 AND new_email = $2 AND new_email_at IS NULL");
    const NEW_EMAILS_DUE: Sql = Sql::same("SELECT id FROM accounts WHERE new_email_at <= $1");
    /// Completes a change of email after the owner has opened the link. Updates no row if the
    /// change was canceled or replaced by another one.
    const SET_EMAIL: Sql = Sql::same(r"
        UPDATE accounts SET email = $2, new_email = NULL, new_email_at = NULL, confirmed_at = $3
        WHERE id = $1 AND new_email = $2");
    const MAIL_WISHES: Sql = Sql::same(r"
        SELECT unwanted_mails, confirmed_at FROM accounts WHERE id = $1");
    const SET_UNWANTED_MAILS: Sql = Sql::same(r"
        UPDATE accounts SET unwanted_mails = $2 WHERE id = $1");
    const CLOSE: Sql = Sql::same(r"
        UPDATE accounts SET closed_at = $2, disabled_at = $2,
            disabled_reason = 'Closed by its owner.', new_email = NULL, new_email_at = NULL
        WHERE id = $1");
    const SET_THEME: Sql = Sql::same("UPDATE accounts SET theme = $2 WHERE id = $1");
    const SET_TIME_ZONE: Sql = Sql::same("UPDATE accounts SET time_zone = $2 WHERE id = $1");
    const COUNT: Sql = Sql::same("SELECT COUNT(*) AS n FROM accounts");
    const INSERT_RESET: Sql = Sql::same(r"
        INSERT INTO password_resets (token_hash, account_id, created_at, expires_at, email)
        VALUES ($1, $2, $3, $4, $5)");
    /// The account whose password a reset link sets. Returns no row for an invalid link.
    const EMAIL_OF_RESET: Sql = Sql::same(r"
        SELECT accounts.email FROM password_resets
        JOIN accounts ON accounts.id = password_resets.account_id
        WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2
          AND (password_resets.email IS NULL OR password_resets.email = accounts.email)");
    /// Marks a reset link as used. Returns no row for a link that was used before, has expired or
    /// was mailed to an address that the account no longer has.
    const USE_RESET: Sql = Sql::same(r"
        UPDATE password_resets SET used_at = $2
        WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2
          AND (email IS NULL
               OR email = (SELECT a.email FROM accounts a WHERE a.id = account_id))
        RETURNING account_id, email");
    const SPEND_RESETS: Sql = Sql::same(r"
        UPDATE password_resets SET used_at = $2 WHERE account_id = $1 AND used_at IS NULL");
    /// Also deletes mails in state `sending`: such a mail may fail, and would then be retried.
    const VOID_RESET_MAILS: Sql = Sql::same(r"
        DELETE FROM outbox
        WHERE recipient = (SELECT email FROM accounts WHERE id = $1)
          AND account_id = $1 AND kind = 'reset'
          AND (state = 'queued' OR state = 'sending' OR state = 'failed')");
}

/// An account, including the fields that only the server and staff may see.
pub struct AccountRow {
    pub record: AccountRecord,
    pub password_hash: String,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    pub disabled_reason: Option<String>,
    pub new_email: Option<String>,
    /// When the new email takes effect. `None` until the owner confirms it.
    pub new_email_at: Option<Timestamp>,
    pub unwanted_mails: Vec<MailKind>,
}

fn account(row: &Row<'_>) -> Result<AccountRow> {
    from_row!(row => AccountRow {
        record: record(row)?, password_hash, created_at, disabled_at, disabled_reason, new_email,
        new_email_at, unwanted_mails: unwanted_mails(row)?,
    })
}

/// Reads the mail kinds in the column `unwanted_mails`.
fn unwanted_mails(row: &Row<'_>) -> Result<Vec<MailKind>> {
    let words: String = row.get("unwanted_mails")?;
    Ok(words.split(' ').filter_map(MailKind::parse).collect())
}

/// Returns the shard of an account's applications.
pub async fn shard(conn: Conn<'_>, id: i64) -> Result<Shard> {
    query(SHARD, id).fetch_one(conn, |row| row.get("shard").map(Shard)).await
}

/// Reads an account from the columns `id`, `email`, `role`, `password_changed_at`, `confirmed_at`,
/// `factors`, `theme`, `time_zone` and `closed_at`.
pub(crate) fn record(row: &Row<'_>) -> Result<AccountRecord> {
    let staff = row::word(row, "accounts", "role", |role| match role {
        "staff" => Some(true),
        "customer" => Some(false),
        _ => None,
    })?;
    Ok(AccountRecord {
        id: row.get("id")?,
        email: row.get("email")?,
        staff,
        password_changed_at: row.get("password_changed_at")?,
        confirmed_at: row.get("confirmed_at")?,
        second_factor: row.get::<i64>("factors")? > 0,
        theme: row::word(row, "accounts", "theme", Theme::parse)?,
        time_zone: row.get("time_zone")?,
        closed: row.get::<Option<Timestamp>>("closed_at")?.is_some(),
    })
}

/// Stores an account and returns its ID, or `None` if the email is taken.
pub async fn insert(
    conn: Conn<'_>,
    email: &str,
    password_hash: &str,
    staff: bool,
    now: Timestamp,
) -> Result<Option<i64>> {
    let inserting = query(INSERT, (email, password_hash, role(staff), now));
    inserting.fetch_optional(conn, |row| row.get("id")).await
}

pub async fn by_id(conn: Conn<'_>, id: i64) -> Result<Option<AccountRow>> {
    query(BY_ID, id).fetch_optional(conn, account).await
}

/// Fails with `WrongPassword` if the password was changed after it was verified. `verified` is the
/// hash that it was verified against.
pub async fn still_in_force(conn: Conn<'_>, account_id: i64, verified: &str) -> Result<()> {
    match by_id(conn, account_id).await? {
        Some(row) if row.password_hash == verified => Ok(()),
        _ => Err(Refusal::WrongPassword.into()),
    }
}

pub async fn by_email(conn: Conn<'_>, email: &str) -> Result<Option<AccountRow>> {
    query(BY_EMAIL, email).fetch_optional(conn, account).await
}

/// Returns all accounts, sorted by email.
pub async fn all(conn: Conn<'_>) -> Result<Vec<AccountRow>> {
    query(ALL, ()).fetch_all(conn, account).await
}

/// Returns at most `limit` accounts, sorted by email. Their emails contain `part` and come after
/// `after`.
pub async fn with_part(
    conn: Conn<'_>,
    part: &str,
    after: &str,
    limit: i64,
) -> Result<Vec<AccountRow>> {
    query(WITH_PART, (after, part, limit)).fetch_all(conn, account).await
}

/// Disables an account, with a time and a reason, or enables it if `disabled` is `None`.
pub async fn set_disabled(
    conn: Conn<'_>,
    id: i64,
    disabled: Option<(Timestamp, &str)>,
) -> Result<()> {
    let (at, reason) = disabled.unzip();
    let set = query(SET_DISABLED, (id, at, reason)).execute(conn).await?;
    row::touched("accounts", 1, set)
}

pub async fn set_staff(conn: Conn<'_>, id: i64, staff: bool) -> Result<()> {
    let set = query(SET_ROLE, (id, role(staff))).execute(conn).await?;
    row::touched("accounts", 1, set)
}

/// Returns the staff members who can sign in.
pub async fn staff(conn: Conn<'_>) -> Result<Vec<AccountRecord>> {
    query(STAFF, ()).fetch_all(conn, record).await
}

const fn role(staff: bool) -> &'static str {
    if staff { "staff" } else { "customer" }
}

pub async fn set_password(
    conn: Conn<'_>,
    id: i64,
    password_hash: &str,
    now: Timestamp,
) -> Result<()> {
    let set = query(SET_PASSWORD, (id, password_hash, now)).execute(conn).await?;
    row::touched("accounts", 1, set)
}

/// Closes an account permanently.
pub async fn close(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<()> {
    let closed = query(CLOSE, (id, now)).execute(conn).await?;
    row::touched("accounts", 1, closed)
}

/// Returns the mail kinds that the account has turned off, and whether its email is confirmed.
pub async fn mail_wishes(conn: Conn<'_>, id: i64) -> Result<(Vec<MailKind>, bool)> {
    query(MAIL_WISHES, id)
        .fetch_one(conn, |row| {
            let confirmed = row.get::<Option<Timestamp>>("confirmed_at")?.is_some();
            Ok((unwanted_mails(row)?, confirmed))
        })
        .await
}

pub async fn set_unwanted_mails(conn: Conn<'_>, id: i64, kinds: &[MailKind]) -> Result<()> {
    let words: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
    let set = query(SET_UNWANTED_MAILS, (id, words.join(" "))).execute(conn).await?;
    row::touched("accounts", 1, set)
}

/// Stores the new email that the account gets once it is confirmed. `None` cancels the change.
pub async fn set_new_email(conn: Conn<'_>, id: i64, email: Option<&str>) -> Result<()> {
    let set = query(SET_NEW_EMAIL, (id, email)).execute(conn).await?;
    row::touched("accounts", 1, set)
}

/// Stores when a confirmed new email takes effect. Returns false if the change was canceled or
/// replaced by another one, or if the new email is already confirmed.
pub async fn set_new_email_at(conn: Conn<'_>, id: i64, email: &str, at: Timestamp) -> Result<bool> {
    let setting = query(SET_NEW_EMAIL_AT, (id, email, at));
    Ok(setting.execute(conn).await? == 1)
}

/// Returns the accounts whose new email is due to take effect.
pub async fn new_emails_due(conn: Conn<'_>, now: Timestamp) -> Result<Vec<i64>> {
    query(NEW_EMAILS_DUE, now).fetch_all(conn, |row| row.get("id")).await
}

/// Replaces an account's email with its pending new email. The caller must have checked that the
/// new email is confirmed and not taken. Returns false if the change was canceled or replaced by
/// another one.
pub async fn set_email(conn: Conn<'_>, id: i64, email: &str, now: Timestamp) -> Result<bool> {
    Ok(query(SET_EMAIL, (id, email, now)).execute(conn).await? == 1)
}

pub async fn set_theme(conn: Conn<'_>, id: i64, theme: Theme) -> Result<()> {
    let set = query(SET_THEME, (id, theme.as_str())).execute(conn).await?;
    row::touched("accounts", 1, set)
}

/// Sets the name of the account's time zone. With `None`, pages use the browser's time zone.
pub async fn set_time_zone(conn: Conn<'_>, id: i64, name: Option<&str>) -> Result<()> {
    let set = query(SET_TIME_ZONE, (id, name)).execute(conn).await?;
    row::touched("accounts", 1, set)
}

pub async fn count(conn: Conn<'_>) -> Result<i64> {
    query(COUNT, ()).fetch_one(conn, |row| row.get("n")).await
}

/// Stores a reset link. `email` is the address that the link is mailed to; `None` if it isn't
/// mailed.
pub async fn insert_reset(
    conn: Conn<'_>,
    token_hash: &str,
    account_id: i64,
    email: Option<&str>,
    (now, expires_at): (Timestamp, Timestamp),
) -> Result<()> {
    query(INSERT_RESET, (token_hash, account_id, now, expires_at, email))
        .execute(conn)
        .await
        .map(drop)
}

/// Returns the email of the account whose password a reset link sets, or `None` for an invalid
/// link.
pub async fn email_of_reset(
    conn: Conn<'_>,
    token_hash: &str,
    now: Timestamp,
) -> Result<Option<String>> {
    query(EMAIL_OF_RESET, (token_hash, now)).fetch_optional(conn, |row| row.get("email")).await
}

/// Marks a reset link as used. Returns its account and whether the link was mailed, or `None` for
/// an invalid link.
pub async fn use_reset(
    conn: Conn<'_>,
    token_hash: &str,
    now: Timestamp,
) -> Result<Option<(i64, bool)>> {
    query(USE_RESET, (token_hash, now))
        .fetch_optional(conn, |row| {
            let mailed = row.get::<Option<String>>("email")?.is_some();
            Ok((row.get("account_id")?, mailed))
        })
        .await
}

/// Invalidates all reset links of an account and deletes the reset mails that aren't sent yet.
pub async fn spend_resets(conn: Conn<'_>, account_id: i64, now: Timestamp) -> Result<()> {
    query(SPEND_RESETS, (account_id, now)).execute(&mut *conn).await?;
    query(VOID_RESET_MAILS, account_id).execute(conn).await.map(drop)
}
