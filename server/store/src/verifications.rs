//! Verifications of numbers by one-time codes. The codes themselves aren't stored.

use domain::ids::compose_id;
use domain::verify::{COOL_DOWN_MS, Locale, Verification};
use domain::{ApplicationId, EventStream, Kind, Money, Timestamp, VerifyId};
use serde::Deserialize;

use super::query::{Conn, Row, query};
use super::row::{self, from_row, touched};
use super::sql::{Sql, statements};
use super::transaction::Tx;
use crate::error::{Fault, Result};

statements! {
    const INSERT: Sql = Sql::sqlite(r"
        INSERT INTO verifications (id, application_id, test, number, kind, country, nonce, digits,
            locale, name, created_at, expires_at, attempts, resends, sent_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, 0, ?13)");
    const RESEND: Sql = Sql::sqlite(r"
        UPDATE verifications SET resends = resends + 1, sent_at = ?2 WHERE id = ?1");
    /// Finds the verifications whose codes must not be sent. A row is application, test, number,
    /// ID, and how often the code was sent again, or null for a new verification.
    /// `commit_group_sends` repeats the statement.
    const STALE: Sql = Sql::sqlite(r"
        SELECT ?4 AS id
        WHERE CASE WHEN ?5 IS NULL
            THEN EXISTS (
                SELECT 1 FROM verifications
                WHERE application_id = ?1 AND test = ?2 AND number = ?3 AND sent_at > ?6)
            ELSE NOT EXISTS (
                SELECT 1 FROM verifications
                WHERE id = ?4 AND resends = ?5 AND attempts < 5 AND verified_at IS NULL
                  AND expires_at > ?7)
            END");
    const ONE: Sql = Sql::in_shard(r"
        SELECT id, application_id, test, number, kind, country, nonce, digits, locale, name,
            created_at,
               expires_at, attempts, verified_at, resends, sent_at
        FROM verifications WHERE id = $1 AND application_id = $2
          AND test = $3{ AND shard = $shard}");
    const LIST: Sql = Sql::in_shard(r"
        SELECT id, number, locale, name, created_at, expires_at, attempts, verified_at, resends
        FROM verifications WHERE application_id = $1 AND test = $2 AND id > $3{ AND shard = $shard}
        ORDER BY id LIMIT $4");
    const LAST_SENT: Sql = Sql::in_shard(r"
        SELECT MAX(sent_at) AS sent_at FROM verifications WHERE application_id = $1 AND test = $2
          AND number = $3{ AND shard = $shard}");
    const CHECKED: Sql = Sql {
        sqlite: r"
            SELECT id, application_id, test, nonce, digits, expires_at, attempts, verified_at,
                   resends, sent_at
            FROM verifications WHERE id = ?1",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                id, application_id, test, nonce, digits, expires_at, attempts, verified_at,
                resends, sent_at)), '[]')::text AS found
            FROM (
                SELECT * FROM verifications
                WHERE id = ANY ({ids}) AND shard = $2 ORDER BY id FOR UPDATE) v",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[ID, attempts, time of the right attempt or null]]`.
    const SET_CHECKED: Sql = Sql {
        sqlite: "UPDATE verifications SET attempts = ?2, verified_at = ?3 WHERE id = ?1",
        postgres: r"
            UPDATE verifications SET attempts = (r.value ->> 1)::bigint,
                verified_at = (r.value ->> 2)::bigint
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE id = (r.value ->> 0)::bigint AND shard = $2",
        ..Sql::IN_SHARD
    };
    const DELETE: Sql = Sql::in_shard(r"
        DELETE FROM verifications WHERE id IN (
            SELECT id FROM verifications WHERE id < $1{ AND shard = $shard}
            ORDER BY id LIMIT $2){ AND shard = $shard}");
    /// By country and day. `$3` is the least ID of verifications and of messages.
    const FIGURES: Sql = Sql::in_shard(r"
        WITH sent AS (
            SELECT verification_id, COUNT(*) AS n, MAX(CASE status WHEN {delivered} THEN 1 ELSE 0
                   END) AS delivered, SUM(cost - released) AS cost
            FROM messages WHERE application_id = $1 AND test = $2 AND id >= $3
              AND verification_id IS NOT NULL{ AND shard = $shard}
            GROUP BY verification_id)
        SELECT v.country, v.created_at / 86400000 AS day, COUNT(*) AS starts,
               CAST(COALESCE(SUM(sent.n), 0) AS BIGINT) AS messages,
               CAST(COALESCE(SUM(sent.delivered), 0) AS BIGINT) AS delivered,
               COUNT(v.verified_at) AS verified,
               CAST(COALESCE(SUM(sent.cost), 0) AS BIGINT) AS cost
        FROM verifications v
        LEFT JOIN sent ON sent.verification_id = v.id
        WHERE v.application_id = $1 AND v.test = $2 AND v.id >= $3{ AND v.shard = $shard}
        GROUP BY v.country, v.created_at / 86400000
        ORDER BY day DESC, starts DESC, v.country");
}

/// A verification whose code a send contains.
#[derive(Clone, Debug)]
pub struct CodeRow {
    pub id: VerifyId,
    pub application_id: ApplicationId,
    pub test: bool,
    /// As carriers get it.
    pub number: String,
    /// The kind that the number is charged as.
    pub kind: Kind,
    /// The country code of the number. Empty if no country has it.
    pub country: String,
    /// Random. The code is derived from it and the ID.
    pub nonce: i64,
    /// The number of digits of the code.
    pub digits: usize,
    pub locale: Locale,
    /// The name in the text.
    pub name: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// How often the code was sent again before. `None` if the send starts the verification.
    pub resends: Option<i64>,
}

pub struct StoredVerification {
    pub row: CodeRow,
    pub state: Verification,
}

/// A verification that is checked. The fields are in the order of [`CHECKED`].
#[derive(Deserialize)]
struct CheckedFields {
    id: i64,
    application_id: ApplicationId,
    test: i64,
    nonce: i64,
    digits: usize,
    expires_at: i64,
    attempts: u32,
    verified_at: Option<i64>,
    resends: u32,
    sent_at: i64,
}

/// A verification that is checked. On PostgreSQL, the transaction has locked it.
pub struct CheckedVerification {
    pub id: VerifyId,
    pub stream: EventStream,
    pub nonce: i64,
    pub digits: usize,
    pub state: Verification,
    pub verified_at: Option<Timestamp>,
}

/// A verification as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerificationRecord {
    pub id: VerifyId,
    /// As carriers get it.
    pub number: String,
    pub locale: Locale,
    /// The name in the text.
    pub name: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub attempts: i64,
    pub verified_at: Option<Timestamp>,
    /// How often the code was sent again.
    pub resends: i64,
}

/// The figures of an application's verifications that were started on a day, for one country.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyFigures {
    /// The country code. Empty if no country has it.
    pub country: String,
    /// Counted since 1970-01-01 UTC.
    pub day: i64,
    pub starts: i64,
    /// All messages, including those that sent a code again.
    pub messages: i64,
    /// The verifications of which a code was delivered.
    pub delivered: i64,
    pub verified: i64,
    /// The price of the messages, without what was released.
    pub cost: Money,
}

/// Stores that sends start these verifications, or send their codes again. Only for SQLite.
pub async fn put(tx: &mut Tx<'_>, codes: &[&CodeRow], now: Timestamp) -> Result<()> {
    let (new, again): (Vec<&CodeRow>, Vec<&CodeRow>) =
        codes.iter().partition(|code| code.resends.is_none());
    let rows = new.iter().map(|code| {
        (
            code.id,
            code.application_id,
            code.test,
            &code.number,
            code.kind.as_str(),
            &code.country,
            code.nonce,
            code.digits,
            code.locale.as_str(),
            &code.name,
            code.created_at,
            code.expires_at,
        )
    });
    let written = query(INSERT, now).execute_each(tx, rows).await?;
    touched("verifications", new.len(), written)?;
    let ids = again.iter().map(|code| code.id);
    let written = query(RESEND, now).execute_each(tx, ids).await?;
    touched("verifications", again.len(), written)
}

/// Returns the verifications whose codes must not be sent: the number got another code within the
/// cool-down, the code was sent again meanwhile, or the verification has ended. Only for SQLite.
pub async fn stale(conn: Conn<'_>, codes: &[&CodeRow], now: Timestamp) -> Result<Vec<VerifyId>> {
    let rows = codes
        .iter()
        .map(|code| (code.application_id, code.test, &code.number, code.id, code.resends));
    let finding = query(STALE, (now.plus_ms(-COOL_DOWN_MS), now));
    let found: Vec<(i64,)> = finding.find_each(conn, rows, "verifications").await?;
    Ok(found.into_iter().map(|(id,)| VerifyId(id)).collect())
}

/// Returns a verification of an application's live key or of its test key.
pub async fn one(
    conn: Conn<'_>,
    stream: EventStream,
    id: VerifyId,
) -> Result<Option<StoredVerification>> {
    query(ONE, (id, stream.application_id, stream.test)).fetch_optional(conn, stored).await
}

/// Returns at most `limit` verifications after one, oldest first.
pub async fn list(
    conn: Conn<'_>,
    stream: EventStream,
    after: VerifyId,
    limit: i64,
) -> Result<Vec<VerificationRecord>> {
    query(LIST, (stream.application_id, stream.test, after.0, limit))
        .fetch_all(conn, |row| {
            from_row!(row => VerificationRecord {
                id: VerifyId(row.get("id")?), number,
                locale: row::word(row, "verifications", "locale", Locale::parse)?,
                name, created_at, expires_at, attempts, verified_at, resends,
            })
        })
        .await
}

fn stored(row: &Row<'_>) -> Result<StoredVerification> {
    let small = |column| -> Result<u32> {
        let value: i64 = row.get(column)?;
        u32::try_from(value).map_err(|_| corrupt(column, value))
    };
    Ok(StoredVerification {
        row: CodeRow {
            id: VerifyId(row.get("id")?),
            application_id: ApplicationId(row.get("application_id")?),
            test: row.get::<i64>("test")? == 1,
            number: row.get("number")?,
            kind: row::word(row, "verifications", "kind", Kind::parse)?,
            country: row.get("country")?,
            nonce: row.get("nonce")?,
            digits: small("digits")? as usize,
            locale: row::word(row, "verifications", "locale", Locale::parse)?,
            name: row.get("name")?,
            created_at: row.get("created_at")?,
            expires_at: row.get("expires_at")?,
            resends: Some(row.get("resends")?),
        },
        state: Verification {
            sent_at: row.get("sent_at")?,
            expires_at: row.get("expires_at")?,
            resends: small("resends")?,
            attempts: small("attempts")?,
            is_verified: row.get::<Option<Timestamp>>("verified_at")?.is_some(),
        },
    })
}

fn corrupt(column: &'static str, value: i64) -> crate::error::Error {
    let (column, value) = (column.into(), value.to_string());
    Fault::Corrupt { table: "verifications", column, value }.into()
}

/// Returns when an application last sent a code to a number.
pub async fn last_sent(
    conn: Conn<'_>,
    stream: EventStream,
    number: &str,
) -> Result<Option<Timestamp>> {
    query(LAST_SENT, (stream.application_id, stream.test, number))
        .fetch_one(conn, |row| row.get("sent_at"))
        .await
}

/// Returns the verifications among `ids` that exist. On PostgreSQL, locks them until the commit.
pub async fn for_check(tx: &mut Tx<'_>, ids: &[VerifyId]) -> Result<Vec<CheckedVerification>> {
    let finding = query(CHECKED, ());
    let found: Vec<CheckedFields> =
        finding.find_each(tx, ids.iter().copied(), "verifications").await?;
    let found = found.into_iter().map(CheckedVerification::from);
    Ok(found.collect())
}

impl From<CheckedFields> for CheckedVerification {
    fn from(fields: CheckedFields) -> Self {
        let CheckedFields {
            id,
            application_id,
            test,
            nonce,
            digits,
            expires_at,
            attempts,
            verified_at,
            resends,
            sent_at,
        } = fields;
        Self {
            id: VerifyId(id),
            stream: EventStream { application_id, test: test == 1 },
            nonce,
            digits,
            state: Verification {
                sent_at: Timestamp::from_unix_ms(sent_at),
                expires_at: Timestamp::from_unix_ms(expires_at),
                resends,
                attempts,
                is_verified: verified_at.is_some(),
            },
            verified_at: verified_at.map(Timestamp::from_unix_ms),
        }
    }
}

/// Stores the attempts of checked verifications, and which of them were right.
pub async fn set_checked(tx: &mut Tx<'_>, checked: &[&CheckedVerification]) -> Result<()> {
    let rows = checked.iter().map(|it| (it.id, i64::from(it.state.attempts), it.verified_at));
    let written = query(SET_CHECKED, ()).execute_each(tx, rows).await?;
    touched("verifications", checked.len(), written)
}

/// Deletes at most `limit` verifications that were started before a time. Returns their number.
pub async fn delete(conn: Conn<'_>, before: Timestamp, limit: i64) -> Result<u64> {
    query(DELETE, (compose_id(before.unix_ms(), 0), limit)).execute(conn).await
}

/// Returns the figures of an application's verifications that were started from a day on, newest
/// first.
pub async fn figures(
    conn: Conn<'_>,
    stream: EventStream,
    from_day: i64,
) -> Result<Vec<VerifyFigures>> {
    let least = domain::ids::id_of_day(from_day);
    query(FIGURES, (stream.application_id, stream.test, least))
        .fetch_all(conn, |row| {
            from_row!(row => VerifyFigures {
                country, day, starts, messages, delivered, verified, cost,
            })
        })
        .await
}
