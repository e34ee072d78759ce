//! Messages: written in batches, read by reports.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use rusqlite::params;
use serde::Deserialize;

use super::query::{Conn, Connection, each, given, look_up, query};
use domain::{
    ApplicationStatus, BatchId, Category, Kind, MessageStatus, MessageText, Money, Number,
    Reference, SenderState, Timestamp, Transid,
};

use super::applications::{KeyRow, key_row};
use super::batches::UnexpandedBatch;
use super::dialect::Batch;
use super::row::{self, Ids, json, touched};
use super::tally::{OpenMessage, open_messages};
use super::transfers::TransferKind;
use super::{WriteTx, statements};
use crate::error::{Error, Fault, Result};

statements! {
    EXISTS = "SELECT id FROM messages WHERE id = $1";
    FIRST = "SELECT MIN(id) AS id FROM messages WHERE id >= $1 AND id < $2";
    NTH_AFTER = "SELECT id FROM messages WHERE id >= $1 ORDER BY id LIMIT 1 OFFSET $2";
    STATUS = "SELECT status FROM messages WHERE id = $1";
    GREATEST = "SELECT MAX(id) AS id FROM messages";
}

/// For a SQLite file, whose rows are bound one by one: on a connection of the calling thread that
/// costs half of what a JSON parameter does.
mod file {
    pub(super) const APPLICATION: &str = "\
        SELECT id, category, status, live_hash, test_hash, sender_state, sender_name, balance, test_balance, \
               test_day \
        FROM applications WHERE reference = ?1";
    /// The row can't have changed since it was read in this transaction: nobody else writes
    /// meanwhile.
    pub(super) const CHARGE: &str =
        "UPDATE applications SET balance = ?2, test_balance = ?3, test_day = ?4 WHERE id = ?1";
    pub(super) const INSERT: &str = "\
        INSERT INTO messages (id, application_id, test, number, kind, sender, body, requestid, pages, segments, \
                              unit_price, cost, created_at, sending_at, status, released) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0)";
    pub(super) const EXPAND: &str = "\
        INSERT INTO messages (id, application_id, test, number, kind, sender, body, requestid, batch_id, pages, \
                              segments, unit_price, cost, created_at, status, released) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0, 0)";
    pub(super) const TRANSFER: &str = "\
        INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id, message_id, \
                               balance_after, batch_id, created_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    pub(super) const FINISH: &str = "\
        UPDATE messages SET status = ?2, error = ?3, final_at = ?4, \
               submitted_at = CASE WHEN ?6 = 1 THEN COALESCE(submitted_at, ?4) ELSE submitted_at END, \
               released = CASE WHEN ?5 = 1 THEN cost ELSE 0 END \
        WHERE id = ?1 AND status < 4";
}

/// A message as it is accepted.
pub(crate) struct NewMessage {
    pub(crate) id: Transid,
    pub(crate) application_id: i64,
    pub(crate) test: bool,
    pub(crate) number: Number,
    pub(crate) sender: Option<String>,
    pub(crate) body: MessageText,
    pub(crate) requestid: Option<String>,
    pub(crate) pages: usize,
    pub(crate) segments: usize,
    pub(crate) unit_price: Money,
    pub(crate) cost: Money,
    /// Set where a connection has a place for it: it is stored as claimed.
    pub(crate) sending_at: Option<Timestamp>,
}

/// An application whose money a batch of sends changed.
pub(crate) struct ChargedApplication {
    /// As it was read in this transaction.
    pub(crate) before: KeyRow,
    pub(crate) balance: Money,
    pub(crate) test_balance: Money,
    pub(crate) test_day: i64,
}

/// What money moves for.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    Message(Transid),
    Batch(BatchId),
}

impl Subject {
    /// The message and the batch.
    fn ids(self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Message(id) => (Some(id.0), None),
            Self::Batch(id) => (None, Some(id.0)),
        }
    }
}

/// A charge, a release, or a reservation that is settled.
pub(crate) struct MessageTransfer {
    pub(crate) debit: i64,
    pub(crate) credit: i64,
    pub(crate) amount: Money,
    pub(crate) kind: TransferKind,
    pub(crate) subject: Subject,
    /// Whose statement it is on, and the balance after it; `None` between the house's own accounts.
    pub(crate) application: Option<(i64, Money)>,
}

/// The applications with these references; duplicates are fine.
pub(crate) async fn applications(
    conn: &mut dyn Connection,
    batch: &Batch,
    references: &[Reference],
) -> Result<Vec<(Reference, KeyRow)>> {
    if let Conn::File(conn) = conn.conn() {
        return applications_in_file(given(conn)?, references);
    }
    let rows = query(batch.applications_by_reference)
        .bind(json(&references)?)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            let text = row::text(row, "reference")?;
            let reference = Reference::parse(&text).map_err(|_| {
                Error::Failed(Fault::Corrupt {
                    table: "applications",
                    column: "reference",
                    value: text,
                })
            })?;
            Ok((reference, key_row(row)?))
        })
        .collect()
}

fn applications_in_file(
    conn: &rusqlite::Connection,
    references: &[Reference],
) -> Result<Vec<(Reference, KeyRow)>> {
    let distinct: BTreeSet<&str> = references.iter().map(Reference::as_str).collect();
    let distinct = distinct
        .into_iter()
        .filter_map(|text| Reference::parse(text).ok());
    let run = file::APPLICATION;
    look_up(
        conn,
        run,
        distinct,
        |s, r| s.query([r.as_str()]),
        |reference, row| {
            let word = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
            let row = KeyRow {
                id: row.get(0)?,
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

/// Writes the balances, where key, status and balance still are what they were.
pub(crate) async fn charge_applications(
    conn: &mut dyn Connection,
    batch: &Batch,
    changed: &[ChargedApplication],
) -> Result<()> {
    if let Conn::File(conn) = conn.conn() {
        let written = each(given(conn)?, file::CHARGE, changed, |statement, c| {
            let (balance, play) = (c.balance.micros(), c.test_balance.micros());
            statement.execute((c.before.id, balance, play, c.test_day))
        })?;
        return touched("applications", changed.len(), written);
    }
    let rows: Vec<_> = changed
        .iter()
        .map(|c| {
            let status: ApplicationStatus = c.before.status;
            (
                c.before.id,
                c.before.balance.micros(),
                c.balance.micros(),
                c.test_balance.micros(),
                c.test_day,
                status.as_str(),
                &c.before.live_hash,
                &c.before.test_hash,
                c.before.sender_state.as_str(),
                c.before.test_balance.micros(),
            )
        })
        .collect();
    let done = query(batch.charge_applications)
        .bind(json(&rows)?)
        .execute(conn)
        .await?;
    touched("applications", rows.len(), done.rows_affected())
}

pub(crate) async fn insert(
    conn: &mut dyn Connection,
    batch: &Batch,
    messages: &[&NewMessage],
) -> Result<()> {
    if let Conn::File(conn) = conn.conn() {
        let written = each(given(conn)?, file::INSERT, messages, |statement, m| {
            statement.execute(params![
                m.id.0,
                m.application_id,
                i64::from(m.test),
                m.number.digits(),
                m.number.kind().as_str(),
                m.sender,
                m.body.as_str(),
                m.requestid,
                m.pages.cast_signed() as i64,
                m.segments.cast_signed() as i64,
                m.unit_price.micros(),
                m.cost.micros(),
                domain::ids::id_unix_ms(m.id.0),
                m.sending_at.map(Timestamp::unix_ms),
                m.status().code(),
            ])
        })?;
        return touched("messages", messages.len(), written);
    }
    let rows: Vec<_> = messages
        .iter()
        .map(|m| {
            (
                m.id.0,
                m.application_id,
                i64::from(m.test),
                m.number.digits(),
                m.number.kind().as_str(),
                &m.sender,
                m.body.as_str(),
                &m.requestid,
                m.pages,
                m.segments,
                m.unit_price.micros(),
                m.cost.micros(),
                domain::ids::id_unix_ms(m.id.0),
                m.sending_at.map(Timestamp::unix_ms),
                m.status().code(),
            )
        })
        .collect();
    let done = query(batch.insert_messages)
        .bind(json(&rows)?)
        .execute(conn)
        .await?;
    touched("messages", rows.len(), done.rows_affected())
}

pub(crate) async fn insert_transfers(
    conn: &mut dyn Connection,
    batch: &Batch,
    transfers: &[MessageTransfer],
    now: Timestamp,
) -> Result<()> {
    if let Conn::File(conn) = conn.conn() {
        let written = each(given(conn)?, file::TRANSFER, transfers, |statement, t| {
            let (message, batch) = t.subject.ids();
            statement.execute(params![
                t.debit,
                t.credit,
                t.amount.micros(),
                t.kind.code(),
                t.application.map(|(id, _)| id),
                message,
                t.application.map(|(_, balance)| balance.micros()),
                batch,
                now.unix_ms(),
            ])
        })?;
        return touched("transfers", transfers.len(), written);
    }
    let rows: Vec<_> = transfers
        .iter()
        .map(|t| {
            let (message, batch) = t.subject.ids();
            (
                t.debit,
                t.credit,
                t.amount.micros(),
                t.kind.code(),
                t.application.map(|(id, _)| id),
                message,
                t.application.map(|(_, balance)| balance.micros()),
                batch,
            )
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let done = query(batch.insert_transfers)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    touched("transfers", rows.len(), done.rows_affected())
}

pub(crate) async fn exists(conn: &mut dyn Connection, id: Transid) -> Result<bool> {
    Ok(query(EXISTS)
        .bind(id.0)
        .fetch_optional(conn)
        .await?
        .is_some())
}

pub(crate) async fn status(
    conn: &mut dyn Connection,
    id: Transid,
) -> Result<Option<MessageStatus>> {
    let row = query(STATUS).bind(id.0).fetch_optional(conn).await?;
    row.map(|row| row::status(&row, "messages")).transpose()
}

/// The first message of a range of ids.
pub(crate) async fn first(conn: &mut dyn Connection, from: i64, below: i64) -> Result<Option<i64>> {
    let found = query(FIRST).bind(from).bind(below);
    row::opt_int(&found.fetch_one(conn).await?, "id")
}

/// The id so many messages after another one.
pub(crate) async fn nth_after(
    conn: &mut dyn Connection,
    from: i64,
    count: i64,
) -> Result<Option<i64>> {
    let found = query(NTH_AFTER).bind(from).bind(count);
    let found = found.fetch_optional(conn).await?;
    found.map(|row| row::int(&row, "id")).transpose()
}

/// The greatest id given so far; 0 without messages.
pub(crate) async fn greatest(conn: &mut dyn Connection) -> Result<i64> {
    Ok(row::opt_int(&query(GREATEST).fetch_one(conn).await?, "id")?.unwrap_or(0))
}

/// A row of an upload as a frame of its spool has it: digits, and 1 for a local number; then text,
/// pages and segments, where each row has its own text.
#[derive(Deserialize)]
pub(crate) struct FrameRow<'a>(
    #[serde(borrow)] Cow<'a, str>,
    i64,
    #[serde(default)] Option<String>,
    #[serde(default)] Option<usize>,
    #[serde(default)] Option<usize>,
);

impl<'a> FrameRow<'a> {
    /// Reads the rows of a frame.
    pub(crate) fn parse_all(json: &'a str) -> Result<Vec<Self>> {
        serde_json::from_str(json).map_err(|error| Error::Failed(error.into()))
    }

    pub(crate) fn digits(&self) -> &str {
        &self.0
    }

    pub(crate) const fn kind(&self) -> Kind {
        if self.1 == 1 {
            Kind::Local
        } else {
            Kind::International
        }
    }
}

/// Turns rows of a batch into messages: those of a frame, of which the first has this place in the
/// batch.
pub(crate) async fn expand(
    conn: &mut dyn Connection,
    batch: &Batch,
    upload: &UnexpandedBatch,
    text: Option<(usize, usize)>,
    first: i64,
    rows: String,
) -> Result<u64> {
    if let Conn::File(conn) = conn.conn() {
        return expand_in_file(given(conn)?, upload, text, first, &rows);
    }
    let done = query(batch.expand_messages)
        .bind(upload.first_message_id)
        .bind(upload.application_id)
        .bind(i64::from(upload.test))
        .bind(upload.sender.clone())
        .bind(upload.requestid.clone())
        .bind(upload.id.0)
        .bind(upload.prices.local.micros())
        .bind(upload.prices.international.micros())
        .bind(upload.body.clone())
        .bind(text.map(|(pages, _)| pages.cast_signed() as i64))
        .bind(text.map(|(_, segments)| segments.cast_signed() as i64))
        .bind(domain::ids::id_unix_ms(0))
        .bind(first)
        .bind(rows)
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}

fn expand_in_file(
    conn: &rusqlite::Connection,
    upload: &UnexpandedBatch,
    text: Option<(usize, usize)>,
    first: i64,
    rows: &str,
) -> Result<u64> {
    let shared = (upload.body.as_deref(), text.unwrap_or((1, 1)));
    let rows = FrameRow::parse_all(rows)?;
    let rows = rows.iter().zip(first..);
    each(conn, file::EXPAND, rows, |statement, (row, place)| {
        let FrameRow(digits, _, own_text, own_pages, own_segments) = row;
        let id = domain::ids::nth_id(upload.first_message_id, place);
        let price = upload.prices.per_page(row.kind()).micros();
        let (shared_body, (shared_pages, shared_segments)) = shared;
        let pages = own_pages.unwrap_or(shared_pages).cast_signed() as i64;
        statement.execute(params![
            id,
            upload.application_id,
            i64::from(upload.test),
            digits,
            row.kind().as_str(),
            upload.sender,
            own_text.as_deref().or(shared_body),
            upload.requestid,
            upload.id.0,
            pages,
            own_segments.unwrap_or(shared_segments).cast_signed() as i64,
            price,
            // At most what was reserved for the whole upload.
            pages * price,
            domain::ids::id_unix_ms(id),
        ])
    })
}

/// Locks messages that are about to be changed, in their order. False where nobody else writes, so
/// that there is nothing to lock.
pub(crate) async fn lock(tx: &mut WriteTx<'_>, batch: &Batch, ids: &[i64]) -> Result<bool> {
    if let Some(statement) = batch.lock_messages.filter(|_| !ids.is_empty()) {
        let ids = Ids::new(ids)?;
        query(statement)
            .bind(ids.json)
            .bind(ids.least)
            .bind(ids.greatest)
            .bind(tx.named())
            .fetch_one(tx)
            .await?;
    }
    Ok(batch.lock_messages.is_some())
}

/// How a message ends.
pub(crate) struct Ending {
    pub(crate) id: Transid,
    pub(crate) status: domain::MessageStatus,
    pub(crate) error: Option<String>,
    /// Give its price back: no carrier took it.
    pub(crate) release: bool,
    /// This end shows that a carrier took it, even if its submit isn't recorded.
    pub(crate) taken: bool,
}

/// A message that became final just now.
pub(crate) struct Ended {
    pub(crate) id: Transid,
    pub(crate) application_id: i64,
    pub(crate) test: bool,
    pub(crate) released: Money,
}

/// Makes messages final; those that were final before are left alone and not returned. Of several
/// endings for one message the first counts.
pub(crate) async fn finish(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    endings: &[Ending],
    now: Timestamp,
) -> Result<Vec<Ended>> {
    let ids: Vec<i64> = endings.iter().map(|ending| ending.id.0).collect();
    let mut open: HashMap<i64, OpenMessage> = open_messages(tx, batch, &ids)
        .await?
        .into_iter()
        .map(|message| (message.id, message))
        .collect();
    let (mut ended, mut rows) = (Vec::new(), Vec::new());
    for ending in endings {
        let Some(message) = open.remove(&ending.id.0) else {
            continue;
        };
        tx.tally.change(&message, ending.status, now);
        let release = i64::from(ending.release);
        let status = ending.status.code();
        rows.push((
            message.id,
            status,
            &ending.error,
            release,
            i64::from(ending.taken),
        ));
        ended.push(Ended {
            id: ending.id,
            application_id: message.application_id,
            test: message.test == 1,
            released: if ending.release {
                Money::from_micros(message.cost)
            } else {
                Money::ZERO
            },
        });
    }
    if rows.is_empty() {
        return Ok(ended);
    }
    if let Conn::File(conn) = tx.conn() {
        let written = each(given(conn)?, file::FINISH, &rows, |statement, row| {
            let (id, status, error, release, taken) = row;
            statement.execute(params![id, status, error, now.unix_ms(), release, taken])
        })?;
        return touched("messages", rows.len(), written).map(|()| ended);
    }
    let ids = Ids::new(&ids)?;
    let done = query(batch.finish_messages)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(tx)
        .await?;
    touched("messages", rows.len(), done.rows_affected())?;
    Ok(ended)
}
