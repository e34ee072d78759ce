//! Inbound messages, the parts of those that aren't complete yet, and the deliveries of the last
//! minutes.

use domain::inbound::InboundRecord;
use domain::opt_out::Command;
use domain::records::UnassignedRecord;
use domain::{ApplicationId, InboundId, Timestamp, ids};
use serde::Deserialize;

use super::query::{Conn, Row, query};
use super::row::{self, from_row, touched};
use super::sql::{Sql, statements};
use crate::error::Result;

macro_rules! listed {
    ($condition:literal) => {
        Sql::in_shard(concat!(
            r"
        SELECT id, test, number, recipient, body, segments, keyword, optout FROM inbound_messages
        WHERE application_id = $1 AND test = $2 AND id >= $3 AND id < $4
          AND ($8 = '' OR LOWER(body) LIKE $8 ESCAPE '\')",
            $condition,
            "{ AND shard = $shard} ORDER BY id DESC LIMIT $5",
        ))
    };
}

statements! {
    /// Returns the fingerprints that weren't stored, or had expired at the time `$2`. `$1` is
    /// `[[fingerprint, when it expires]]`.
    const NOTE: Sql = Sql {
        sqlite: r"
            INSERT INTO inbound_seen (fingerprint, expires_at) VALUES (?1, ?2)
            ON CONFLICT (fingerprint) DO UPDATE SET expires_at = ?2 WHERE expires_at < ?3
            RETURNING fingerprint",
        postgres: r"
            WITH new AS (
                INSERT INTO inbound_seen (fingerprint, expires_at)
                SELECT (value ->> 0)::bigint, (value ->> 1)::bigint
                FROM jsonb_array_elements($1::text::jsonb)
                ON CONFLICT (fingerprint) DO UPDATE SET expires_at = excluded.expires_at
                WHERE inbound_seen.expires_at < $2
                RETURNING fingerprint)
            SELECT COALESCE(json_agg(json_build_array(fingerprint)), '[]')::text AS found FROM new",
        ..Sql::ANYWHERE
    };
    const FORGET_SEEN: Sql = Sql::same(r"
        DELETE FROM inbound_seen WHERE fingerprint IN (
            SELECT fingerprint
            FROM inbound_seen WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)");
    const KEEP_PARTS: Sql = Sql::same(r"
        INSERT INTO inbound_parts (id, number, recipient, reference, total, sequence, esm_class,
            data_coding, alphabet, payload, carrier, received_at)
        {values int text text int int int int int text text common common}");
    /// Locks the parts of messages, and returns them in the order in which they came. `$1` is
    /// `[[carrier, number, recipient, reference, total]]`.
    const PARTS: Sql = Sql {
        sqlite: r"
            SELECT id, carrier, number, recipient, reference, total, sequence, esm_class,
                   data_coding, alphabet, payload, received_at
            FROM inbound_parts
            WHERE carrier = ?1 AND number = ?2 AND recipient = ?3 AND reference = ?4 AND total = ?5
            ORDER BY id",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                id, carrier, number, recipient, reference, total, sequence, esm_class, data_coding,
                alphabet, payload, received_at) ORDER BY id), '[]')::text AS found
            FROM (
                SELECT p.* FROM inbound_parts p
                WHERE (p.carrier, p.number, p.recipient, p.reference, p.total) IN (
                    SELECT value ->> 0, value ->> 1, value ->> 2, (value ->> 3)::bigint,
                           (value ->> 4)::bigint
                    FROM jsonb_array_elements($1::text::jsonb))
                ORDER BY p.id FOR UPDATE) l",
        ..Sql::ANYWHERE
    };
    /// `$1` is `[ID]`.
    const DROP_PARTS: Sql = Sql {
        sqlite: "DELETE FROM inbound_parts WHERE id = ?1",
        postgres: r"
            DELETE FROM inbound_parts WHERE id = ANY ({ids})",
        ..Sql::ANYWHERE
    };
    /// Messages whose parts may be complete, or whose first part came before `$1`. Transactions
    /// that store two parts at the same time don't see each other's part.
    const DUE: Sql = Sql::same(r"
        SELECT carrier, number, recipient, reference, total FROM inbound_parts
        GROUP BY carrier, number, recipient, reference, total
        HAVING COUNT(DISTINCT sequence) >= total OR MIN(received_at) < $1
        ORDER BY MIN(id) LIMIT $2");
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO inbound_messages (id, application_id, test, number, recipient, body, segments,
            keyword, optout{, shard})
        {values int int int text text text int text text shard}");
    const KEEP: Sql = Sql::same(r"
        INSERT INTO unassigned_inbound (id, carrier, number, recipient, body, segments)
        {values int text text text text int}");
    const UNASSIGNED: Sql = Sql::same(r"
        SELECT id, carrier, number, recipient, body, segments
        FROM unassigned_inbound WHERE id < $1 ORDER BY id DESC LIMIT $2");
    const UNASSIGNED_TO: Sql = Sql::same(r"
        SELECT id, carrier, number, recipient, body, segments
        FROM unassigned_inbound WHERE recipient = $1 AND id > $2 ORDER BY id LIMIT $3");
    /// `$1` is `[ID]`.
    const DROP_UNASSIGNED: Sql = Sql {
        sqlite: "DELETE FROM unassigned_inbound WHERE id = ?1",
        postgres: r"
            DELETE FROM unassigned_inbound WHERE id = ANY ({ids})",
        ..Sql::ANYWHERE
    };
    const ALL: Sql = listed!(" AND $6 = '' AND $7 = ''");
    const OF_NUMBER: Sql = listed!(" AND number = $6 AND ($7 = '' OR recipient = $7)");
    const OF_RECIPIENT: Sql = listed!(" AND recipient = $7 AND ($6 = '' OR number = $6)");
    /// `$1` is `[ID]`.
    const BY_IDS: Sql = Sql {
        sqlite: r"
            SELECT id, test, number, recipient, body, segments, keyword, optout
            FROM inbound_messages WHERE id = ?1",
        postgres: r"
            SELECT id, test, number, recipient, body, segments, keyword, optout
            FROM inbound_messages WHERE id = ANY ({ids}) AND shard = $2",
        ..Sql::IN_SHARD
    };
    const NTH_AFTER: Sql = Sql::in_shard(r"
        SELECT id FROM inbound_messages
        WHERE id >= $1{ AND shard = $shard} ORDER BY id LIMIT 1 OFFSET $2");
    const GREATEST: Sql = Sql::in_shard(
        "SELECT MAX(id) AS id FROM inbound_messages{ WHERE shard = $shard}");
    const GREATEST_ELSEWHERE: Sql = Sql::same(r"
        SELECT MAX(id) AS id
        FROM (
            SELECT MAX(id) AS id
            FROM unassigned_inbound
            UNION ALL SELECT MAX(id) FROM inbound_parts) m");
    const DROP_OLD: Sql = Sql::in_shard(r"
        DELETE FROM inbound_messages WHERE id IN (
            SELECT id FROM inbound_messages WHERE id < $1{ AND shard = $shard}
            ORDER BY id LIMIT $2){ AND shard = $shard}");
    const DROP_OLD_UNASSIGNED: Sql = Sql::same(r"
        DELETE FROM unassigned_inbound
        WHERE id IN (SELECT id FROM unassigned_inbound WHERE id < $1 ORDER BY id LIMIT $2)");
}

/// The fields that all parts of a message share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartsKey {
    pub carrier: String,
    /// The handset's number.
    pub number: String,
    /// Our number.
    pub recipient: String,
    pub reference: i64,
    /// The number of parts.
    pub total: i64,
}

impl PartsKey {
    fn columns(&self) -> (&str, &str, &str, i64, i64) {
        (&self.carrier, &self.number, &self.recipient, self.reference, self.total)
    }
}

/// A part as the carrier delivered it. The fields are in the order of [`PARTS`].
#[derive(Clone, Deserialize)]
pub struct StoredPart {
    pub id: i64,
    pub carrier: String,
    pub number: String,
    pub recipient: String,
    pub reference: i64,
    pub total: i64,
    pub sequence: i64,
    pub esm_class: i64,
    pub data_coding: i64,
    /// The carrier's default alphabet.
    pub alphabet: String,
    /// Hexadecimal.
    pub payload: String,
    #[serde(deserialize_with = "row::timestamp_from_number")]
    pub received_at: Timestamp,
}

impl StoredPart {
    pub fn key(&self) -> PartsKey {
        PartsKey {
            carrier: self.carrier.clone(),
            number: self.number.clone(),
            recipient: self.recipient.clone(),
            reference: self.reference,
            total: self.total,
        }
    }
}

/// Selects the messages of a list.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    pub application_id: ApplicationId,
    pub test: bool,
    /// The least ID.
    pub from: i64,
    /// Greater than every ID.
    pub below: i64,
    pub number: &'a str,
    pub recipient: &'a str,
    /// A part of the text. Empty for all texts.
    pub text: &'a str,
}

impl Listed<'_> {
    /// Returns the pattern that texts with the part match in lower case.
    fn pattern(&self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let mut pattern = "%".to_owned();
        for c in self.text.to_lowercase().chars() {
            if matches!(c, '\\' | '%' | '_') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern + "%"
    }
}

fn record(row: &Row<'_>) -> Result<InboundRecord> {
    let id: i64 = row.get("id")?;
    let optout: Option<String> = row.get("optout")?;
    from_row!(row => InboundRecord {
        inboundid: InboundId(id), test, number, recipient, message: row.get("body")?, segments,
        keyword,
        optout: optout.and_then(|command| Command::parse(&command)),
        received_at: Timestamp::from_unix_ms(ids::id_unix_ms(id)),
    })
}

fn unassigned(row: &Row<'_>) -> Result<UnassignedRecord> {
    let id: i64 = row.get("id")?;
    from_row!(row => UnassignedRecord {
        inboundid: InboundId(id), carrier, number, recipient, message: row.get("body")?, segments,
        received_at: Timestamp::from_unix_ms(ids::id_unix_ms(id)),
    })
}

/// Stores the fingerprints of deliveries, each with the time when it expires. Returns the
/// fingerprints that weren't stored yet. `notes` must be sorted and distinct, so that two
/// transactions can't wait for each other.
pub async fn note(
    conn: Conn<'_>,
    notes: impl IntoIterator<Item = (i64, Timestamp)>,
    now: Timestamp,
) -> Result<Vec<i64>> {
    let new: Vec<(i64,)> = query(NOTE, now).find_each(conn, notes, "inbound_seen").await?;
    Ok(new.into_iter().map(|(fingerprint,)| fingerprint).collect())
}

/// Deletes fingerprints that expired before this time. Returns whether there may be more.
pub async fn forget_seen(conn: Conn<'_>, before: Timestamp, limit: i64) -> Result<bool> {
    let forgotten = query(FORGET_SEEN, (before, limit)).execute(conn).await?;
    Ok(forgotten >= limit.unsigned_abs())
}

pub async fn keep_parts(
    conn: Conn<'_>,
    parts: &[StoredPart],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let rows = parts.iter().map(|part| {
        let place = (part.reference, part.total, part.sequence);
        let coding = (part.esm_class, part.data_coding, &part.alphabet);
        (
            part.id,
            &part.number,
            &part.recipient,
            place.0,
            place.1,
            place.2,
            coding.0,
            coding.1,
            coding.2,
            &part.payload,
        )
    });
    let kept = query(KEEP_PARTS, (carrier, now)).execute_each(conn, rows).await?;
    touched("inbound_parts", parts.len(), kept)
}

/// Returns the stored parts of messages in the order in which they came, and locks them.
pub async fn parts(conn: Conn<'_>, keys: &[PartsKey]) -> Result<Vec<StoredPart>> {
    query(PARTS, ()).find_each(conn, keys.iter().map(PartsKey::columns), "inbound_parts").await
}

pub async fn drop_parts(conn: Conn<'_>, ids: &[i64]) -> Result<()> {
    let dropped = query(DROP_PARTS, ()).execute_each(conn, ids.iter().copied()).await?;
    touched("inbound_parts", ids.len(), dropped)
}

/// Returns messages that may be complete, or whose first part came before `before`.
pub async fn due(conn: Conn<'_>, before: Timestamp, limit: i64) -> Result<Vec<PartsKey>> {
    let read =
        |row: &Row<'_>| from_row!(row => PartsKey { carrier, number, recipient, reference, total });
    query(DUE, (before, limit)).fetch_all(conn, read).await
}

/// Stores messages of applications of the connection's shard.
pub async fn insert(conn: Conn<'_>, messages: &[(ApplicationId, InboundRecord)]) -> Result<()> {
    let rows = messages.iter().map(|(application_id, it)| {
        let (id, optout) = (it.inboundid.0, it.optout.map(Command::as_str));
        let (number, recipient, text) = (&it.number, &it.recipient, &it.message);
        let whose = (*application_id, it.test);
        (id, whose.0, whose.1, number, recipient, text, it.segments, &it.keyword, optout)
    });
    let stored = query(INSERT, ()).execute_each(conn, rows).await?;
    touched("inbound_messages", messages.len(), stored)
}

/// Keeps messages to numbers that no application has.
pub async fn keep(conn: Conn<'_>, messages: &[UnassignedRecord]) -> Result<()> {
    let rows = messages.iter().map(|it| {
        (it.inboundid.0, &it.carrier, &it.number, &it.recipient, &it.message, it.segments)
    });
    let kept = query(KEEP, ()).execute_each(conn, rows).await?;
    touched("unassigned_inbound", messages.len(), kept)
}

/// Returns messages to numbers that no application had, newest first, with IDs below `below`.
pub async fn unassigned_below(
    conn: Conn<'_>,
    below: i64,
    limit: i64,
) -> Result<Vec<UnassignedRecord>> {
    query(UNASSIGNED, (below, limit)).fetch_all(conn, unassigned).await
}

/// Returns messages to a number that no application had, oldest first, with IDs above `above`.
pub async fn unassigned_to(
    conn: Conn<'_>,
    recipient: &str,
    above: i64,
    limit: i64,
) -> Result<Vec<UnassignedRecord>> {
    query(UNASSIGNED_TO, (recipient, above, limit)).fetch_all(conn, unassigned).await
}

/// Deletes messages that were assigned to applications.
pub async fn drop_unassigned(conn: Conn<'_>, ids: &[InboundId]) -> Result<()> {
    let rows = ids.iter().map(|id| id.0);
    let dropped = query(DROP_UNASSIGNED, ()).execute_each(conn, rows).await?;
    touched("unassigned_inbound", ids.len(), dropped)
}

/// Returns messages of an application, newest first.
pub async fn list(conn: Conn<'_>, listed: Listed<'_>, limit: i64) -> Result<Vec<InboundRecord>> {
    let pattern = listed.pattern();
    let Listed { application_id, test, from, below, number, recipient, text: _ } = listed;
    let sql = match (number.is_empty(), recipient.is_empty()) {
        (false, _) => OF_NUMBER,
        (true, false) => OF_RECIPIENT,
        (true, true) => ALL,
    };
    let values = (application_id, test, from, below, limit, number, recipient, pattern);
    query(sql, values).fetch_all(conn, record).await
}

/// Returns the messages with these IDs, in any order.
pub async fn by_ids(conn: Conn<'_>, ids: &[InboundId]) -> Result<Vec<InboundRecord>> {
    query(BY_IDS, ()).fetch_each(conn, ids.iter().map(|id| id.0), record).await
}

/// Returns the ID of the message at position `count`, from 0, among the messages whose IDs are at
/// least `from`.
pub async fn nth_after(conn: Conn<'_>, from: i64, count: i64) -> Result<Option<i64>> {
    query(NTH_AFTER, (from, count)).fetch_optional(conn, |row| row.get("id")).await
}

/// Returns the greatest ID of the shard's messages, the unassigned messages and the parts.
pub async fn greatest(conn: Conn<'_>) -> Result<i64> {
    let mut greatest = 0;
    for sql in [GREATEST, GREATEST_ELSEWHERE] {
        let found: Option<i64> = query(sql, ()).fetch_one(conn, |row| row.get("id")).await?;
        greatest = greatest.max(found.unwrap_or_default());
    }
    Ok(greatest)
}

/// Deletes messages with IDs below `below`. Returns whether there may be more.
pub async fn drop_old(conn: Conn<'_>, below: i64, limit: i64) -> Result<bool> {
    let dropped = query(DROP_OLD, (below, limit)).execute(&mut *conn).await?;
    let unassigned = query(DROP_OLD_UNASSIGNED, (below, limit)).execute(conn).await?;
    Ok(dropped.max(unassigned) >= limit.unsigned_abs())
}
