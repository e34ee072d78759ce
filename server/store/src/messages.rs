//! Messages: inserts them, finds them by ID, and makes them final.

use std::collections::HashMap;

use domain::{
    ApplicationId, EventStream, MessageStatus, MessageText, Money, Number, Timestamp, Transid,
    VerifyId,
};

use super::query::{Conn, Row, query};
use super::recent::{self, MessageLocation};
use super::row::{self, from_row, touched};
use super::sql::{Sql, statements};
use super::tally::OpenMessage;
use super::transaction::Tx;
use crate::error::Result;

/// Selects messages that aren't final.
macro_rules! overdue {
    ($tail:literal) => {
        Sql::in_shard(concat!(
            r"
        SELECT id, status, submitted_at, send_at,
               (
                   SELECT COUNT(*) FROM queue WHERE message_id = id
                     AND lease_token <> 0{ AND shard = $shard}) AS leased,
               (
                   SELECT MAX(expires_at) FROM queue
                   WHERE message_id = id{ AND shard = $shard}) AS expires_at,
               (
                   SELECT MIN(COALESCE(s.error, ''))
                   FROM segments s WHERE s.message_id = messages.id
                     AND s.status = {failed}{ AND shard = $shard}) AS failed
        FROM messages WHERE status < {delivered}{ AND shard = $shard}",
            $tail,
        ))
    };
}

statements! {
    /// The recipients as carriers get their numbers.
    const NUMBERS: Sql = Sql {
        sqlite: r"
            SELECT id, CASE kind WHEN 'local' THEN ?2 || number ELSE number END
            FROM messages WHERE id = ?1",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                id, CASE kind WHEN 'local' THEN $2 || number ELSE number END
            )), '[]')::text AS found
            FROM messages WHERE id = ANY ({ids}) AND id BETWEEN $3 AND $4 AND shard = $5",
        ..Sql::IN_SHARD
    };
    const FIRST: Sql = Sql::in_shard(
        "SELECT MIN(id) AS id FROM messages WHERE id >= $1 AND id < $2{ AND shard = $shard}");
    const NTH_AFTER: Sql = Sql::in_shard(r"
        SELECT id FROM messages WHERE id >= $1{ AND shard = $shard} ORDER BY id LIMIT 1 OFFSET $2");
    const NTH_SCHEDULED: Sql = Sql::in_shard(r"
        SELECT send_at FROM messages
        WHERE send_at >= $1{ AND shard = $shard} ORDER BY send_at LIMIT 1 OFFSET $2");
    const STATUS: Sql = Sql::in_shard(
        "SELECT status FROM messages WHERE id = $1{ AND shard = $shard}");
    const LOCATE: Sql = Sql::in_shard(
        "SELECT id, application_id, test FROM messages WHERE id = $1{ AND shard = $shard}");
    const GREATEST: Sql = Sql::in_shard(
        "SELECT MAX(id) AS id FROM messages{ WHERE shard = $shard}");
    /// On PostgreSQL this statement stores only replies. There, `run_commit_group` stores sends.
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO messages (id, application_id, test, number, kind, sender, body,
                verification_id, requestid, pages, segments, unit_price, cost, created_at,
                sending_at, send_at, status, released)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                ?18)",
        postgres: r"
            COPY messages (id, application_id, test, number, kind, sender, body, verification_id,
                requestid, pages, segments, unit_price, cost, created_at, sending_at, send_at, status, released,
                shard)
            FROM STDIN (FORMAT binary)",
        ..Sql::IN_SHARD
    };
    /// Finds which of the applications have sent to a number, in its local form (`$2`, or an empty
    /// text) or in its international form. Replies don't count. `$1` is `[application]`.
    const SENDERS: Sql = Sql {
        sqlite: r"
            SELECT application_id FROM messages
            WHERE application_id = ?1 AND test = 0 AND number IN (?2, ?3)
              AND kind = CASE number WHEN ?2 THEN 'local' ELSE 'international' END
              AND id >= ?4 AND unit_price > 0
            LIMIT 1",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(r.value::bigint)), '[]')::text AS found
            FROM jsonb_array_elements_text($1::text::jsonb) AS r
            CROSS JOIN LATERAL (
                SELECT 1 FROM messages m
                WHERE m.application_id = r.value::bigint AND m.test = 0 AND m.number IN ($2, $3)
                  AND m.kind = CASE m.number WHEN $2 THEN 'local' ELSE 'international' END
                  AND m.id >= $4 AND m.unit_price > 0 AND m.shard = $5
                LIMIT 1) m",
        ..Sql::IN_SHARD
    };
    /// Locks the replies of an application to a number until the commit, so that two transactions
    /// can't both send the only one of a day.
    const LOCK_REPLIES: Sql = Sql::postgres(r"
        SELECT COUNT(*) AS n
        FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, $2))) l");
    const HAS_REPLIED: Sql = Sql::in_shard(r"
        SELECT id FROM messages
        WHERE application_id = $1 AND test = $2 AND number = $3 AND id >= $4 AND unit_price = 0
          AND body = $5{ AND shard = $shard} LIMIT 1");
    const LOCK: Sql = Sql::postgres_in_shard(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1 FROM messages
            WHERE id = ANY ({ids}) AND id BETWEEN $2 AND $3 AND shard = $4
            ORDER BY id FOR UPDATE) m");
    const OPEN: Sql = Sql {
        sqlite: r"
            SELECT id, application_id, test, batch_id, created_at, status, cost, send_at
            FROM messages WHERE id = ?1 AND status < {delivered}",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                id, application_id, test, batch_id, created_at, status, cost, send_at
            )), '[]')::text AS found
            FROM (
                SELECT id, application_id, test, batch_id, created_at, status, cost, send_at
                FROM messages WHERE id = ANY ({ids}) AND id BETWEEN $2 AND $3 AND shard = $4
                  AND status < {delivered}
                ORDER BY id FOR UPDATE) m",
        ..Sql::IN_SHARD
    };
    /// `$4` is the time of the hold, or 0. The rows of a scheduled batch get their IDs when it
    /// begins, so those of a batch that was accepted before the hold may have later IDs.
    const OVERDUE: Sql = overdue!(r"
          AND id >= $1 AND id < $2 AND send_at IS NULL
          AND (CAST($4 AS BIGINT) = 0 OR NOT EXISTS (
            SELECT 1
            FROM batches WHERE id = messages.batch_id AND created_at < $4{ AND shard = $shard}))
        ORDER BY id LIMIT $3");
    const OVERDUE_SCHEDULED: Sql =
        overdue!(" AND send_at >= $1 AND send_at < $2 ORDER BY send_at LIMIT $3");
    /// The plus sign keeps SQLite from reading the queue in the order of the IDs.
    const OVERDUE_IN_QUEUE: Sql = overdue!(r"
          AND id >= $2 AND id IN (
            SELECT message_id FROM queue
            WHERE expires_at <= $1 AND lease_token = 0 AND +message_id >= $2
              AND (CAST($4 AS BIGINT) = 0 OR NOT EXISTS (
                SELECT 1
                FROM messages m
                JOIN batches b ON b.id = m.batch_id
                WHERE m.id = queue.message_id
                  AND b.created_at < $4{ AND m.shard = $shard AND b.shard = $shard}
              )){ AND shard = $shard} ORDER BY expires_at LIMIT $3)");
    const OVERDUE_TESTS: Sql = overdue!(r"
          AND application_id = $4 AND test = 1 AND id >= $1 AND id < $2 AND send_at IS NULL
        ORDER BY id LIMIT $3");
    const OVERDUE_SCHEDULED_TESTS: Sql = overdue!(r"
          AND application_id = $4 AND test = 1 AND send_at >= $1 AND sending_at < $2
        ORDER BY send_at LIMIT $3");
    const LEAST_SCHEDULED: Sql = Sql::in_shard(r"
        SELECT MIN(id) AS id FROM messages WHERE send_at >= $1 AND send_at < $2
          AND status < {delivered}{ AND shard = $shard}");
    const SCHEDULED: Sql = Sql::in_shard(r"
        SELECT id, send_at FROM messages
        WHERE application_id = $1 AND test = $2 AND send_at >= $3
          AND status = {scheduled}{ AND shard = $shard} ORDER BY send_at LIMIT $4");
    const COUNT_SCHEDULED: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n FROM messages
        WHERE application_id = $1 AND test = $2 AND send_at >= $3 AND send_at < $4
          AND status = {scheduled}{ AND shard = $shard}");
    const DUE: Sql = Sql::in_shard(
        "SELECT status, send_at FROM messages WHERE id = $1{ AND shard = $shard}");
    /// `$1` is `[[ID, status, error, release 0|1, accepted by a carrier 0|1]]`.
    const FINISH: Sql = Sql {
        sqlite: r"
            UPDATE messages SET status = ?2, error = ?3, final_at = ?6,
                submitted_at = CASE WHEN ?5 = 1 THEN COALESCE(submitted_at, ?6)
                    ELSE submitted_at END,
                released = CASE WHEN ?4 = 1 THEN cost ELSE 0 END
            WHERE id = ?1 AND status < {delivered}",
        postgres: r"
            -- Rows are looked up by ID in an object instead of being joined. For IDs that are newer
            -- than its statistics, PostgreSQL expects a single row and would compare each message
            -- with each row.
            WITH r AS MATERIALIZED (
                SELECT jsonb_object_agg(value ->> 0, value) AS by_id
                FROM jsonb_array_elements($1::text::jsonb))
            UPDATE messages SET status = (by_id -> id::text ->> 1)::bigint,
                error = by_id -> id::text ->> 2, final_at = $2,
                submitted_at = CASE WHEN by_id -> id::text ->> 4 = '1'
                    THEN COALESCE(submitted_at, $2) ELSE submitted_at END,
                released = CASE WHEN by_id -> id::text ->> 3 = '1' THEN cost ELSE 0 END
            FROM r WHERE id = ANY (
                ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb)))
              AND id BETWEEN $3 AND $4 AND shard = $5
              AND status < {delivered}",
        ..Sql::IN_SHARD
    };
}

/// A newly accepted message.
pub struct NewMessage {
    pub id: Transid,
    pub application_id: ApplicationId,
    pub test: bool,
    pub number: Number,
    pub sender: Option<String>,
    /// The text as it is stored. A one-time code is masked in it.
    pub body: MessageText,
    /// The verification whose code the message contains.
    pub verification: Option<VerifyId>,
    pub requestid: Option<String>,
    pub pages: usize,
    pub segments: usize,
    pub unit_price: Money,
    pub cost: Money,
    /// When the message is to be sent. `None` if it is due at once.
    pub send_at: Option<Timestamp>,
    /// The time of the claim, if a carrier connection has a slot for the message. The message is
    /// then stored as claimed.
    pub sending_at: Option<Timestamp>,
}

impl NewMessage {
    /// Returns the status that the message is stored with.
    pub const fn status(&self) -> MessageStatus {
        match (self.sending_at, self.send_at) {
            (Some(_), _) => MessageStatus::Sending,
            (None, Some(_)) => MessageStatus::Scheduled,
            (None, None) => MessageStatus::Queued,
        }
    }
}

/// Finds a message by its ID, whichever application it belongs to.
pub async fn locate(conn: Conn<'_>, id: Transid) -> Result<Option<MessageLocation>> {
    query(LOCATE, id).fetch_optional(conn, recent::location).await
}

pub async fn insert(conn: Conn<'_>, messages: &[&NewMessage]) -> Result<()> {
    let rows = messages.iter().map(|m| {
        (
            m.id,
            m.application_id,
            m.test,
            m.number.digits(),
            m.number.kind().as_str(),
            &m.sender,
            m.body.as_str(),
            m.verification,
            &m.requestid,
            m.pages,
            m.segments,
            m.unit_price,
            m.cost,
            domain::ids::id_unix_ms(m.id.0),
            m.sending_at,
            m.send_at,
            m.status().code(),
        )
    });
    let written = query(INSERT, 0_i64).insert_each(conn, rows).await?;
    touched("messages", messages.len(), written)
}

/// The digits of a number in both forms.
#[derive(Clone, Copy)]
pub struct Recipient<'a> {
    /// Empty if the number is that of another country.
    pub local: &'a str,
    pub international: &'a str,
}

/// Returns which of the applications have sent a message to a number since the ID `from`.
pub async fn senders(
    conn: Conn<'_>,
    applications: &[ApplicationId],
    recipient: Recipient<'_>,
    from: i64,
) -> Result<Vec<ApplicationId>> {
    let finding = query(SENDERS, (recipient.local, recipient.international, from));
    let applications = applications.iter().copied();
    let found: Vec<(ApplicationId,)> = finding.find_each(conn, applications, "messages").await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// Locks the replies of an application to a number until the commit.
pub async fn lock_replies(
    tx: &mut Tx<'_>,
    application_id: ApplicationId,
    number: &Number,
) -> Result<()> {
    if tx.must_lock() {
        query(LOCK_REPLIES, (number.digits(), application_id)).finds(tx).await?;
    }
    Ok(())
}

/// Whether an application has replied to a number with this text since the ID `from`, in live or in
/// test messages.
pub async fn has_replied(
    conn: Conn<'_>,
    (application_id, test): (ApplicationId, bool),
    number: &Number,
    from: i64,
    body: &MessageText,
) -> Result<bool> {
    let finding = query(HAS_REPLIED, (application_id, test, number.digits(), from, body.as_str()));
    finding.finds(conn).await
}

/// Returns the status of a message, and the time that it was scheduled for.
pub async fn due(
    conn: Conn<'_>,
    id: Transid,
) -> Result<Option<(MessageStatus, Option<Timestamp>)>> {
    let read = |row: &Row<'_>| Ok((row::status(row, "messages")?, row.get("send_at")?));
    query(DUE, id).fetch_optional(conn, read).await
}

pub async fn status(conn: Conn<'_>, id: Transid) -> Result<Option<MessageStatus>> {
    let read = |row: &Row<'_>| row::status(row, "messages");
    query(STATUS, id).fetch_optional(conn, read).await
}

/// Returns the recipients of these messages as carriers get their numbers.
pub async fn numbers(
    tx: &mut Tx<'_>,
    ids: &[Transid],
    country_code: &str,
) -> Result<Vec<(Transid, String)>> {
    let finding = query(NUMBERS, country_code).bind(tx.among(ids));
    let found: Vec<(i64, String)> = finding.find_each(tx, ids.iter().copied(), "messages").await?;
    Ok(found.into_iter().map(|(id, number)| (Transid(id), number)).collect())
}

/// Returns the least message ID that is at least `from` and below `below`.
pub async fn first(conn: Conn<'_>, from: i64, below: i64) -> Result<Option<i64>> {
    query(FIRST, (from, below)).fetch_one(conn, |row| row.get("id")).await
}

/// Returns the ID of the message at position `count`, from 0, among the messages whose IDs are at
/// least `from`.
pub async fn nth_after(conn: Conn<'_>, from: i64, count: i64) -> Result<Option<i64>> {
    query(NTH_AFTER, (from, count)).fetch_optional(conn, |row| row.get("id")).await
}

/// Returns the time of the message at position `count`, from 0, among the messages that were
/// scheduled for `from` or later.
pub async fn nth_scheduled(
    conn: Conn<'_>,
    from: Timestamp,
    count: i64,
) -> Result<Option<Timestamp>> {
    query(NTH_SCHEDULED, (from, count)).fetch_optional(conn, |row| row.get("send_at")).await
}

/// Returns the greatest ID of a message, or 0 if there are no messages.
pub async fn greatest(conn: Conn<'_>) -> Result<i64> {
    let id: Option<i64> = query(GREATEST, ()).fetch_one(conn, |row| row.get("id")).await?;
    Ok(id.unwrap_or(0))
}

/// Returns at most `limit` scheduled messages of a key, each with its time. Leaves out times before
/// `from`.
pub async fn scheduled(
    conn: Conn<'_>,
    stream: EventStream,
    from: Timestamp,
    limit: i64,
) -> Result<Vec<(Transid, Timestamp)>> {
    let finding = query(SCHEDULED, (stream.application_id, stream.test, from, limit));
    finding.fetch_all(conn, |row| Ok((row.get("id")?, row.get("send_at")?))).await
}

/// Returns the number of messages of a key that are scheduled for `from` or later, but before
/// `until`. Reads all messages that were scheduled for these times.
pub async fn count_scheduled(
    conn: Conn<'_>,
    stream: EventStream,
    (from, until): (Timestamp, Timestamp),
) -> Result<i64> {
    let counting = query(COUNT_SCHEDULED, (stream.application_id, stream.test, from, until));
    counting.fetch_one(conn, |row| row.get("n")).await
}

/// Returns the least ID of the messages that were scheduled for `from` or later, but before
/// `until`, and that aren't final. Reads all messages that were scheduled for these times.
pub async fn least_scheduled(
    conn: Conn<'_>,
    from: Timestamp,
    until: Timestamp,
) -> Result<Option<i64>> {
    query(LEAST_SCHEDULED, (from, until)).fetch_one(conn, |row| row.get("id")).await
}

/// Locks messages before they are changed, in the order of their IDs. Returns false if the database
/// needs no locks: SQLite has only one writer.
pub async fn lock(tx: &mut Tx<'_>, ids: &[Transid]) -> Result<bool> {
    if tx.must_lock() && !ids.is_empty() {
        let locking = query(LOCK, row::numbers(ids)?).bind(tx.among(ids));
        locking.finds(tx).await?;
    }
    Ok(tx.must_lock())
}

/// The final status to give to a message.
pub struct Ending {
    pub id: Transid,
    pub status: domain::MessageStatus,
    pub error: Option<String>,
    /// Whether the price of the message is released because no carrier accepted the message.
    pub release: bool,
    /// Whether the ending shows that a carrier accepted the message. [`finish`] then sets
    /// `submitted_at`, unless an earlier submit has set it.
    pub taken: bool,
}

/// A message that just became final.
pub struct Ended {
    pub id: Transid,
    pub application_id: ApplicationId,
    pub test: bool,
    pub released: Money,
}

/// Makes messages final and returns them. Skips messages that were already final. If a message has
/// several endings, the first one counts.
pub async fn finish(tx: &mut Tx<'_>, endings: &[Ending], now: Timestamp) -> Result<Vec<Ended>> {
    let ids: Vec<Transid> = endings.iter().map(|ending| ending.id).collect();
    let mut open: HashMap<Transid, OpenMessage> =
        open_messages(tx, &ids).await?.into_iter().map(|message| (message.id, message)).collect();
    let (mut ended, mut rows) = (Vec::new(), Vec::new());
    for ending in endings {
        let Some(message) = open.remove(&ending.id) else {
            continue;
        };
        tx.tally.change(&message, ending.status, now);
        if ending.release {
            tx.tally.release(&message);
        }
        let status = ending.status.code();
        rows.push((message.id, status, &ending.error, ending.release, ending.taken));
        ended.push(Ended {
            id: ending.id,
            application_id: message.application_id,
            test: message.test == 1,
            released: if ending.release { Money::from_micros(message.cost) } else { Money::ZERO },
        });
    }
    if !rows.is_empty() {
        let finishing = query(FINISH, now).bind(tx.among(&ids));
        let written = finishing.execute_each(tx, rows).await?;
        touched("messages", ended.len(), written)?;
    }
    Ok(ended)
}

/// Returns the messages among `ids` that aren't final. On PostgreSQL, locks them.
pub(crate) async fn open_messages(tx: &mut Tx<'_>, ids: &[Transid]) -> Result<Vec<OpenMessage>> {
    let finding = query(OPEN, ()).bind(tx.among(ids));
    finding.find_each(tx, ids.iter().copied(), "messages").await
}

/// An overdue message: its time has run out, but it isn't final.
pub struct Overdue {
    pub id: Transid,
    pub status: MessageStatus,
    /// Whether a carrier has accepted the message or a part of it.
    pub taken: bool,
    /// Whether a carrier connection holds a lease on the message.
    pub leased: bool,
    /// When it was scheduled for.
    pub send_at: Option<Timestamp>,
    /// The time from which the message may no longer be submitted. `None` if that is 48 hours after
    /// its acceptance, or if it isn't in the queue.
    pub expires_at: Option<Timestamp>,
    /// Set if a receipt says that a segment wasn't delivered: the reason in that receipt, or an
    /// empty text if the receipt has none.
    pub failed: Option<String>,
}

/// Selects messages that aren't final.
#[derive(Clone, Copy, Debug)]
pub enum OverdueOf {
    /// Messages that were due at once, in the order of their IDs: from the first ID up to but not
    /// including the second.
    Ids(i64, i64),
    /// Messages that were scheduled for a time from the first up to but not including the second.
    Times(Timestamp, Timestamp),
    /// Unclaimed messages in the queue that may no longer be submitted at this time. Their IDs are
    /// at least the number.
    Queue(Timestamp, i64),
    /// Like `Ids`, of an application's test key.
    TestIds(ApplicationId, i64, i64),
    /// Messages of an application's test key that were scheduled for the first time or later, and
    /// last claimed before the second.
    TestTimes(ApplicationId, Timestamp, Timestamp),
}

/// Returns at most `limit` messages that aren't final. `held` is the time since when messages are
/// held after a restore. If it is set, leaves out messages that were accepted before it, except
/// scheduled messages whose 48 hours began after it.
pub async fn overdue(
    conn: Conn<'_>,
    which: OverdueOf,
    held: Option<Timestamp>,
    limit: i64,
) -> Result<Vec<Overdue>> {
    let since = held.map_or(0, Timestamp::unix_ms);
    let least = held.map_or(0, |since| domain::ids::compose_id(since.unix_ms(), 0));
    let (sql, from, below, more) = match which {
        OverdueOf::Ids(from, below) => (OVERDUE, from.max(least), below, Some(since.into())),
        OverdueOf::Times(from, below) => {
            let from = held.map_or(from, |since| from.max(since.plus_ms(1)));
            (OVERDUE_SCHEDULED, from.unix_ms(), below.unix_ms(), None)
        }
        OverdueOf::Queue(now, from) => {
            (OVERDUE_IN_QUEUE, now.unix_ms(), from.max(least), Some(since.into()))
        }
        OverdueOf::TestIds(of, from, below) => (OVERDUE_TESTS, from, below, Some(of.into())),
        OverdueOf::TestTimes(of, from, below) => {
            (OVERDUE_SCHEDULED_TESTS, from.unix_ms(), below.unix_ms(), Some(of.into()))
        }
    };
    query(sql, (from, below, limit))
        .bind(more)
        .fetch_all(conn, |row| {
            from_row!(row => Overdue {
                id, status: row::status(row, "messages")?,
                taken: row.get::<Option<i64>>("submitted_at")?.is_some(),
                leased: row.get::<i64>("leased")? > 0, send_at, expires_at, failed,
            })
        })
        .await
}
