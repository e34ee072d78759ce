//! The erasure of one phone number, and the masking of old numbers. Facts and money stay.

use domain::{ApplicationId, EventStream, Kind, Reference, Timestamp, Transid};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The text that replaces an erased number, cut to the number's length. No prefix of a price or
/// of a route begins with it.
pub const MASK: &str = "•••••••••••••••";

/// A statement on the attempts to deliver events about a number. `$3` and `$4` are the number as
/// messages have it, `$5` as carriers get it, and `$6` a pattern for the data of events about it.
macro_rules! attempts_about {
    ($start:literal $(, $end:literal)? $(,)?) => {
        Sql::in_shard(concat!(
            $start,
            r"webhook_id IN (
            SELECT id FROM webhooks WHERE application_id = $1 AND test = $2{ AND shard = $shard})
              AND event_id IN (
                SELECT id FROM events
                WHERE application_id = $1 AND test = $2 AND (data LIKE $6 OR subject IN (
                    SELECT id FROM messages
                    WHERE application_id = $1 AND test = $2 AND number = $3
                      AND kind = $4{ AND shard = $shard}
                    UNION ALL SELECT id
                    FROM inbound_messages WHERE application_id = $1 AND test = $2
                      AND number = $5{ AND shard = $shard}
              )){ AND shard = $shard}){ AND shard = $shard}",
            $($end,)?
        ))
    };
}

statements! {
    /// All applications of an account, including deleted ones.
    const APPLICATIONS: Sql = Sql::in_shard(r"
        SELECT id, reference FROM applications
        WHERE account_id = $1{ AND shard = $shard} ORDER BY id");
    const OPEN_MESSAGES: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n FROM messages
        WHERE application_id = $1 AND test = $2 AND number = $3 AND kind = $4
          AND status < {delivered}{ AND shard = $shard}");
    const OPEN_CODES: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n FROM verifications
        WHERE application_id = $1 AND test = $2 AND number = $3
          AND expires_at > $4{ AND shard = $shard}");
    const OPEN_UPLOADS: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n FROM batches WHERE application_id = $1 AND test = $2
          AND expanded_at IS NULL{ AND shard = $shard}");
    const FORGET_ANSWERS: Sql = attempts_about!(
        "UPDATE webhook_attempts SET answer = NULL WHERE answer IS NOT NULL AND "
    );
    /// `$5` is a pattern for the digits. Carriers write some of the details.
    const ERASE_DETAILS: Sql = Sql::in_shard(r"
        UPDATE message_timeline SET detail = NULL WHERE detail LIKE $5 AND message_id IN (
            SELECT id FROM messages
            WHERE application_id = $1 AND test = $2 AND number = $3
              AND kind = $4{ AND shard = $shard}){ AND shard = $shard}");
    const ERASE_MESSAGES: Sql = Sql::in_shard(r"
        UPDATE messages
        SET number = SUBSTR(CAST($6 AS TEXT), 1, LENGTH(number)), body = '', requestid = NULL
        WHERE id IN (
            SELECT id FROM messages
            WHERE application_id = $1 AND test = $2 AND number = $3 AND kind = $4
              AND status >= {delivered}{ AND shard = $shard} LIMIT $5){ AND shard = $shard}");
    const ERASE_INBOUND: Sql = Sql::in_shard(r"
        UPDATE inbound_messages
        SET number = SUBSTR(CAST($4 AS TEXT), 1, LENGTH(number)), body = ''
        WHERE application_id = $1 AND test = $2 AND number = $3{ AND shard = $shard}");
    const ERASE_CODES: Sql = Sql::in_shard(r"
        UPDATE verifications SET number = SUBSTR(CAST($5 AS TEXT), 1, LENGTH(number))
        WHERE application_id = $1 AND test = $2 AND number = $3
          AND expires_at <= $4{ AND shard = $shard}");
    /// `$3` is the number as the data has it, and `$5` a pattern for it.
    const ERASE_EVENTS: Sql = Sql::in_shard(r"
        UPDATE events SET data = REPLACE(data, $3, $4)
        WHERE application_id = $1 AND test = $2 AND data LIKE $5{ AND shard = $shard}");
    const ERASE_MAILS: Sql = Sql::same(r"
        UPDATE outbox
        SET subject = REPLACE(subject, $2, $3), body = REPLACE(body, $2, $3)
        WHERE account_id = $1 AND (subject LIKE $4 OR body LIKE $4)");
    /// The first carrier with raw receipts after another one in the alphabet.
    const NEXT_CARRIER: Sql = Sql::same(r"
        SELECT MIN(carrier) AS carrier FROM raw_receipts WHERE carrier > $1");
    const DELETE_RECEIPT: Sql = Sql::same("DELETE FROM raw_receipts WHERE id = $1");
    const DELETE_RAW: Sql = Sql::same(
        "DELETE FROM raw_receipts WHERE carrier = $1 AND number = $2",
    );
    const ERASE_UNMATCHED: Sql = Sql::same(
        "UPDATE unmatched_receipts SET number = '' WHERE number = $1",
    );
    const ERASE_UNASSIGNED: Sql = Sql::same(r"
        UPDATE unassigned_inbound
        SET number = SUBSTR(CAST($2 AS TEXT), 1, LENGTH(number)), body = '' WHERE number = $1");
    const CODES: Sql = Sql::in_shard(r"
        SELECT id, created_at, expires_at, attempts, verified_at
        FROM verifications WHERE application_id = $1 AND test = $2
          AND number = $3{ AND shard = $shard} ORDER BY id");
    const ANSWERS: Sql = attempts_about!(
        "SELECT at, event_id, status, error, answer FROM webhook_attempts WHERE ",
        " ORDER BY at, webhook_id, id",
    );
    const MESSAGE_IDS: Sql = Sql::in_shard(r"
        SELECT id FROM messages
        WHERE application_id = $1 AND test = $2 AND number = $3
          AND kind = $4{ AND shard = $shard}");
    /// The carrier message IDs of the segments of messages to the number.
    const CARRIER_IDS: Sql = Sql::in_shard(r"
        SELECT carrier, carrier_message_id FROM segments
        WHERE carrier_message_id IS NOT NULL AND message_id IN (
            SELECT id FROM messages
            WHERE application_id = $1 AND test = $2 AND number = $3
              AND kind = $4{ AND shard = $shard}){ AND shard = $shard}");
}

/// A phone number of one key of an application.
#[derive(Clone, Copy)]
pub struct NumberOf<'a> {
    pub stream: EventStream,
    /// As messages have it.
    pub digits: &'a str,
    pub kind: Kind,
    pub for_carrier: &'a str,
}

pub struct CodeOfNumber {
    pub id: i64,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub attempts: i64,
    pub verified_at: Option<Timestamp>,
}

/// An attempt to deliver an event about a number.
pub struct AttemptOfNumber {
    pub at: Timestamp,
    pub event_id: i64,
    pub status: Option<i64>,
    pub error: Option<String>,
    pub answer: Option<String>,
}

/// Returns all applications of an account, including deleted ones.
pub async fn applications(
    conn: Conn<'_>,
    account_id: i64,
) -> Result<Vec<(ApplicationId, Reference)>> {
    let read = |row: &Row<'_>| Ok((row.get("id")?, row::reference(row)?));
    query(APPLICATIONS, account_id).fetch_all(conn, read).await
}

impl NumberOf<'_> {
    /// Returns a pattern for JSON that has the number as a text.
    fn pattern(&self) -> String {
        format!("%\"{}\"%", self.for_carrier)
    }

    /// Returns the number of messages that aren't final yet.
    pub async fn open_messages(&self, conn: Conn<'_>) -> Result<i64> {
        let EventStream { application_id, test } = self.stream;
        query(OPEN_MESSAGES, (application_id, test, self.digits, self.kind.as_str()))
            .fetch_one(conn, |row| row.get("n"))
            .await
    }

    /// Returns the number of verifications whose code is still accepted.
    pub async fn open_codes(&self, conn: Conn<'_>, now: Timestamp) -> Result<i64> {
        let EventStream { application_id, test } = self.stream;
        query(OPEN_CODES, (application_id, test, self.for_carrier, now))
            .fetch_one(conn, |row| row.get("n"))
            .await
    }

    /// Returns the number of uploads with rows that aren't messages yet. Their files may contain
    /// the number.
    pub async fn open_uploads(&self, conn: Conn<'_>) -> Result<i64> {
        let EventStream { application_id, test } = self.stream;
        query(OPEN_UPLOADS, (application_id, test)).fetch_one(conn, |row| row.get("n")).await
    }

    /// Erases the answers of endpoints to events about the number, and the carriers' texts in the
    /// timelines of its messages. Must run before the messages are erased.
    pub async fn erase_traces(&self, conn: Conn<'_>) -> Result<()> {
        let EventStream { application_id, test } = self.stream;
        let (number, pattern) = ((self.digits, self.kind.as_str()), self.pattern());
        query(
            FORGET_ANSWERS,
            (application_id, test, number.0, number.1, self.for_carrier, pattern.as_str()),
        )
        .execute(&mut *conn)
        .await?;
        let digits = format!("%{}%", self.digits);
        query(ERASE_DETAILS, (application_id, test, number.0, number.1, digits.as_str()))
            .execute(conn)
            .await
            .map(drop)
    }

    /// Erases the number, text and request ID of at most `limit` final messages. Returns how many
    /// messages it erased.
    pub async fn erase_messages(&self, conn: Conn<'_>, limit: i64) -> Result<u64> {
        let EventStream { application_id, test } = self.stream;
        let values = (application_id, test, self.digits, self.kind.as_str(), limit, MASK);
        query(ERASE_MESSAGES, values).execute(conn).await
    }

    pub async fn erase_inbound(&self, conn: Conn<'_>) -> Result<u64> {
        let EventStream { application_id, test } = self.stream;
        query(ERASE_INBOUND, (application_id, test, self.for_carrier, MASK)).execute(conn).await
    }

    /// Erases the number in verifications that have ended.
    pub async fn erase_codes(&self, conn: Conn<'_>, now: Timestamp) -> Result<u64> {
        let EventStream { application_id, test } = self.stream;
        query(ERASE_CODES, (application_id, test, self.for_carrier, now, MASK)).execute(conn).await
    }

    /// Erases the number in events about opt-outs.
    pub async fn erase_events(&self, conn: Conn<'_>) -> Result<()> {
        let EventStream { application_id, test } = self.stream;
        let (number, pattern) = (format!("\"{}\"", self.for_carrier), self.pattern());
        let values = (application_id, test, number.as_str(), "null", pattern.as_str());
        query(ERASE_EVENTS, values).execute(conn).await.map(drop)
    }

    pub async fn codes(&self, conn: Conn<'_>) -> Result<Vec<CodeOfNumber>> {
        let EventStream { application_id, test } = self.stream;
        query(CODES, (application_id, test, self.for_carrier))
            .fetch_all(conn, |row| {
                from_row!(row => CodeOfNumber { id, created_at, expires_at, attempts, verified_at })
            })
            .await
    }

    /// Returns the attempts to deliver events about the number, oldest first.
    pub async fn attempts(&self, conn: Conn<'_>) -> Result<Vec<AttemptOfNumber>> {
        let EventStream { application_id, test } = self.stream;
        let (kind, pattern) = (self.kind.as_str(), self.pattern());
        query(
            ANSWERS,
            (application_id, test, self.digits, kind, self.for_carrier, pattern.as_str()),
        )
        .fetch_all(
            conn,
            |row| from_row!(row => AttemptOfNumber { at, event_id, status, error, answer }),
        )
        .await
    }

    pub async fn message_ids(&self, conn: Conn<'_>) -> Result<Vec<Transid>> {
        let EventStream { application_id, test } = self.stream;
        query(MESSAGE_IDS, (application_id, test, self.digits, self.kind.as_str()))
            .fetch_all(conn, |row| Ok(Transid(row.get("id")?)))
            .await
    }

    /// Returns the carriers and carrier message IDs of the messages' segments.
    pub async fn carrier_ids(&self, conn: Conn<'_>) -> Result<Vec<(String, String)>> {
        let EventStream { application_id, test } = self.stream;
        query(CARRIER_IDS, (application_id, test, self.digits, self.kind.as_str()))
            .fetch_all(conn, |row| Ok((row.get("carrier")?, row.get("carrier_message_id")?)))
            .await
    }
}

/// Replaces digits in an account's mails by a mask.
pub async fn erase_mails(conn: Conn<'_>, account_id: i64, digits: &str) -> Result<()> {
    let mask: String = MASK.chars().take(digits.len()).collect();
    let pattern = format!("%{digits}%");
    let values = (account_id, digits, mask.as_str(), pattern.as_str());
    query(ERASE_MAILS, values).execute(conn).await.map(drop)
}

/// Returns the carriers of which raw receipts or answers are stored.
pub async fn carriers(conn: Conn<'_>) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    loop {
        let after = found.last().map_or("", String::as_str);
        let next: Option<String> =
            query(NEXT_CARRIER, after).fetch_one(&mut *conn, |row| row.get("carrier")).await?;
        match next {
            Some(next) => found.push(next),
            None => return Ok(found),
        }
    }
}

/// Deletes raw receipts by their IDs.
pub async fn delete_receipts(conn: Conn<'_>, ids: &[i64]) -> Result<()> {
    for id in ids {
        query(DELETE_RECEIPT, *id).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Deletes a carrier's raw receipts and answers for messages to a number, as the carrier wrote it.
pub async fn delete_raw(conn: Conn<'_>, carrier: &str, number: &str) -> Result<u64> {
    query(DELETE_RAW, (carrier, number)).execute(conn).await
}

/// Erases a number, as carriers wrote it, in receipts that match no message.
pub async fn erase_unmatched(conn: Conn<'_>, number: &str) -> Result<u64> {
    query(ERASE_UNMATCHED, number).execute(conn).await
}

/// Erases messages from a handset to numbers that no application has.
pub async fn erase_unassigned(conn: Conn<'_>, number: &str) -> Result<u64> {
    query(ERASE_UNASSIGNED, (number, MASK)).execute(conn).await
}
