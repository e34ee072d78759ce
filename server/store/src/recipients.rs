//! How many messages recipients got recently. Applications can limit this number.

use domain::limits::RecentMessages;
use domain::pumping::{CountryOutcomes, VARIED_DIGITS};
use domain::{ApplicationId, Kind, Money, Number, Timestamp, ids};

use super::opt_outs::OptedOut;
use super::query::{Conn, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::Tx;
use crate::error::Result;

const MINUTE_MS: i64 = 60_000;

statements! {
    /// `$1` is `[[application, test, number, local form]]`: the number as carriers get it, and the
    /// digits of the same number without country code, or null. PostgreSQL looks the two up by
    /// separate queries, because it might filter by a list of both instead of searching the index.
    /// `test + 0` is in no index. Otherwise PostgreSQL might choose `messages_by_application` and
    /// read all of the day's messages for each number: until the first ANALYZE of a day's table, it
    /// expects one message either way. `commit_group_sends` repeats the statement.
    const RECENT: Sql = Sql {
        sqlite: r"
            SELECT ?1 AS application_id, ?2 AS test, ?3 AS number,
                   COUNT(*) FILTER (WHERE m.id >= ?5) AS hour, COUNT(*) AS day
            FROM messages m
            WHERE m.application_id = ?1 AND m.test = ?2 AND m.number IN (?3, ?4) AND m.id >= ?6
              AND m.kind = CASE m.number WHEN ?3 THEN 'international' ELSE 'local' END
              AND m.released = 0 AND m.unit_price > 0",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                       (r.value ->> 0)::bigint, (r.value ->> 1)::bigint, r.value ->> 2,
                       m.hour, m.day)), '[]')::text AS found
            FROM jsonb_array_elements($1::text::jsonb) AS r
            CROSS JOIN LATERAL (
                SELECT COUNT(*) FILTER (WHERE f.id >= $2) AS hour, COUNT(*) AS day
                FROM (
                    SELECT i.id FROM messages i
                    WHERE i.application_id = (r.value ->> 0)::bigint
                      AND i.test + 0 = (r.value ->> 1)::bigint
                      AND i.number = r.value ->> 2 AND i.id >= $3
                      AND i.kind = 'international' AND i.released = 0 AND i.unit_price > 0
                      AND i.shard = $4
                    UNION ALL
                    SELECT l.id FROM messages l
                    WHERE l.application_id = (r.value ->> 0)::bigint
                      AND l.test + 0 = (r.value ->> 1)::bigint
                      AND l.number = r.value ->> 3 AND l.id >= $3
                      AND l.kind = 'local' AND l.released = 0 AND l.unit_price > 0
                      AND l.shard = $4) f
                OFFSET 0) m",
        ..Sql::IN_SHARD
    };
    /// Locks the counts of an application's recipients for expansions until the commit. Otherwise
    /// two uploads that are expanded at once would both find room for a message.
    const LOCK_COUNTS: Sql = Sql::postgres(r"
        SELECT COUNT(*) AS n
        FROM (SELECT pg_advisory_xact_lock(hashtextextended('recipients', $1))) l");
    /// The newest messages of a live key.
    const SENT: Sql = Sql::in_shard(r"
        SELECT id, number, kind, cost FROM messages
        WHERE application_id = $1 AND test = 0 AND id >= $2 AND released = 0
          AND unit_price > 0{ AND shard = $shard} ORDER BY id DESC LIMIT $3");
    /// Numbers between these two may also be longer. The limit bounds the work.
    const SIMILAR: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT id FROM messages
            WHERE application_id = $1 AND test = $2 AND number BETWEEN $3 AND $4 AND kind = $5
              AND id >= $6 AND released = 0 AND LENGTH(number) = LENGTH($3){ AND shard = $shard}
              LIMIT 20000) m");
    /// Messages whose price was released never went to the country. The limit bounds the work. The
    /// expression of the number keeps SQLite from reading all messages to the country instead of
    /// those of the last hour.
    const TO_COUNTRY: Sql = Sql::in_shard(r"
        SELECT COUNT(CASE WHEN m.id >= $5 THEN 1 END) AS recent,
               COUNT(CASE WHEN m.status >= {delivered} THEN 1 END) AS ended,
               COUNT(CASE WHEN m.status = {delivered} THEN 1 END) AS delivered
        FROM (
            SELECT id, status FROM messages
            WHERE application_id = $1 AND test = $2 AND kind = 'international'
              AND number || '' BETWEEN $3 AND $4 AND id >= $6 AND released = 0{ AND shard = $shard}
              LIMIT 20000) m");
}

/// A recipient: the application that sends to it, whether it does so with the test key, and the
/// number as carriers get it.
pub type Recipient = OptedOut;

/// Returns how many messages these recipients got recently. Messages whose price was released, and
/// free ones, don't count.
pub async fn recent(
    conn: Conn<'_>,
    recipients: &[Recipient],
    country_code: &str,
    now: Timestamp,
) -> Result<Vec<(Recipient, RecentMessages)>> {
    let rows = recipients.iter().map(|(application_id, test, number)| {
        (*application_id, *test, number, local_digits(number, country_code))
    });
    let (hour_from, day_from) = windows(now);
    let found: Vec<(ApplicationId, i64, String, i64, i64)> =
        query(RECENT, (hour_from, day_from)).find_each(conn, rows, "messages").await?;
    let recent = found.into_iter().map(|(application_id, test, number, hour, day)| {
        ((application_id, test == 1, number), RecentMessages { hour, day })
    });
    Ok(recent.collect())
}

/// Keeps other expansions from counting messages to an application's recipients until the commit.
pub async fn lock(tx: &mut Tx<'_>, application_id: ApplicationId) -> Result<()> {
    if tx.must_lock() {
        query(LOCK_COUNTS, application_id).finds(tx).await?;
    }
    Ok(())
}

/// Returns the least IDs of the messages of the last hour and of the last day.
pub fn windows(now: Timestamp) -> (i64, i64) {
    let (hour, day) = RecentMessages::since(now);
    let first = |at: Timestamp| ids::compose_id(at.unix_ms(), 0);
    (first(hour), first(day))
}

/// Returns the digits of a number, as carriers get it, in the form that is charged as local.
pub fn local_digits<'a>(number: &'a str, country_code: &str) -> Option<&'a str> {
    let digits = number.strip_prefix(country_code)?;
    (digits.len() == domain::number::LOCAL_DIGITS).then_some(digits)
}

/// A stored message, with the time of its acceptance.
pub struct StoredMessage {
    pub at: Timestamp,
    pub number: Number,
    pub cost: Money,
}

/// Returns at most `limit` of the charged live messages that an application has sent since a time,
/// newest first.
pub async fn sent_since(
    conn: Conn<'_>,
    application_id: ApplicationId,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<StoredMessage>> {
    let first = ids::compose_id(since.unix_ms(), 0);
    query(SENT, (application_id, first, limit))
        .fetch_all(conn, |row| {
            let kind = row::word(row, "messages", "kind", Kind::parse)?;
            Ok(StoredMessage {
                at: Timestamp::from_unix_ms(ids::id_unix_ms(row.get("id")?)),
                number: Number::from_stored(row.get("number")?, kind),
                cost: row.get("cost")?,
            })
        })
        .await
}

/// Returns how many messages of an application and a kind of key went to a block of numbers within
/// the last 10 minutes. These numbers, as carriers get them, are `block` and [`VARIED_DIGITS`] more
/// digits.
pub async fn similar(
    conn: Conn<'_>,
    (application_id, test): (ApplicationId, bool),
    block: &str,
    country_code: &str,
    now: Timestamp,
) -> Result<u32> {
    let since = ids::compose_id(now.plus_ms(-10 * MINUTE_MS).unix_ms(), 0);
    let (first, last) = (varied(block, "0"), varied(block, "9"));
    let local = local_digits(&first, country_code).zip(local_digits(&last, country_code));
    let forms =
        [Some((&*first, &*last, Kind::International)), local.map(|(a, b)| (a, b, Kind::Local))];
    let mut count = 0;
    for (first, last, kind) in forms.into_iter().flatten() {
        let counting = query(SIMILAR, (application_id, test, first, last, kind.as_str(), since));
        count += counting.fetch_one(conn, |row| row.get::<i64>("n")).await?;
    }
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns a number of a block: the common digits, followed by this digit for each of the others.
fn varied(block: &str, digit: &str) -> String {
    format!("{block}{}", digit.repeat(VARIED_DIGITS))
}

/// Returns the outcomes of an application's messages to the country with this code.
pub async fn to_country(
    conn: Conn<'_>,
    application_id: ApplicationId,
    test: bool,
    code: &str,
    now: Timestamp,
) -> Result<CountryOutcomes> {
    // No number is longer, and in every collation digits sort like this.
    let last = format!("{code}{}", "9".repeat(15));
    let first = |ms: i64| ids::compose_id(now.plus_ms(-ms).unix_ms(), 0);
    let (recent, hour) = (first(10 * MINUTE_MS), first(60 * MINUTE_MS));
    query(TO_COUNTRY, (application_id, test, code, last, recent, hour))
        .fetch_one(conn, |row| from_row!(row => CountryOutcomes { recent, ended, delivered }))
        .await
}
