//! Mails that the service sends on its own: to customers about low balances and finished batches,
//! and to staff about pending work.

use domain::decision::Work;
use domain::{ApplicationId, BatchId, Money, Reference, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

macro_rules! waiting {
    ($since:literal, $rest:literal) => {
        concat!(
            "SELECT COUNT(*) AS waiting, CAST(COALESCE(SUM(CASE WHEN ",
            $since,
            " > $2 THEN 1 ELSE 0 END), 0) AS BIGINT) AS fresh, MIN(",
            $since,
            ") AS oldest ",
            $rest
        )
    };
}

statements! {
    const SET: Sql = Sql::in_shard(r"
        UPDATE applications SET low_balance = $2, low_balance_at = NULL, batch_mails_since = $3
        WHERE id = $1{ AND shard = $shard}");
    const LOW: Sql = Sql::in_shard(r"
        SELECT a.id, a.account_id, a.reference, a.name, accounts.email, a.balance, a.low_balance
        FROM applications a
        JOIN accounts ON accounts.id = a.account_id
        WHERE a.low_balance IS NOT NULL AND a.low_balance_at IS NULL
          AND a.balance < a.low_balance{ AND a.shard = $shard}");
    const NOTE_LOW: Sql = Sql::in_shard(r"
        UPDATE applications SET low_balance_at = $2
        WHERE id = $1 AND low_balance_at IS NULL AND balance < low_balance{ AND shard = $shard}");
    const RISEN: Sql = Sql::in_shard(r"
        SELECT id FROM applications
        WHERE low_balance IS NOT NULL AND low_balance_at IS NOT NULL
          AND balance >= low_balance{ AND shard = $shard}");
    const NOTE_RISEN: Sql = Sql::in_shard(r"
        UPDATE applications SET low_balance_at = NULL
        WHERE id = $1 AND balance >= low_balance{ AND shard = $shard}");
    /// Reads only the batches that were accepted lately. Their IDs are at least `$1`.
    const DONE: Sql = Sql::in_shard(r"
        SELECT b.id, a.account_id, a.reference, a.name, accounts.email, b.rows, c.n AS delivered
        FROM applications a
        JOIN accounts ON accounts.id = a.account_id
        JOIN batches b ON b.application_id = a.id
        JOIN batch_counts c ON c.batch_id = b.id AND c.status = {delivered}
        WHERE a.batch_mails_since IS NOT NULL AND b.test = 0 AND b.id >= $1
          AND b.done_at >= a.batch_mails_since
          AND b.mailed_at IS NULL{ AND a.shard = $shard AND b.shard = $shard
          AND c.shard = $shard}");
    const NOTE_DONE: Sql = Sql::in_shard(r"
        UPDATE batches SET mailed_at = $2
        WHERE id = $1 AND mailed_at IS NULL{ AND shard = $shard}");
    const REMINDED: Sql = Sql::same("SELECT mailed_at FROM reminders WHERE kind = $1");
    /// Updates no row if another process has reminded staff after `$3`.
    const REMIND: Sql = Sql::same(r"
        INSERT INTO reminders (kind, mailed_at)
        VALUES ($1, $2)
        ON CONFLICT (kind) DO UPDATE SET mailed_at = $2 WHERE reminders.mailed_at <= $3");
    /// Inserts no row if staff know already.
    const NOTE_CARRIER: Sql = Sql::same(r"
        INSERT INTO reminders (kind, mailed_at) VALUES ($1, $2)
        ON CONFLICT (kind) DO NOTHING");
    const FORGET_CARRIER: Sql = Sql::same("DELETE FROM reminders WHERE kind = $1");
    const CARRIERS: Sql = Sql::same(r"
        SELECT kind FROM reminders WHERE kind LIKE 'carrier:%'");
    const ACTIVATIONS: Sql = Sql::in_shard(concat!(
        waiting!(
            "activation_requested_at",
            "FROM applications WHERE status = 'Pending' AND activation_requested_at <= $1"
        ),
        "{ AND shard = $shard}",
    ));
    const SENDER_NAMES: Sql = Sql::in_shard(concat!(
        waiting!(
            "requested_at",
            "FROM sender_requests WHERE status = 'pending' AND requested_at <= $1"
        ),
        "{ AND shard = $shard}",
    ));
    const DEPOSITS: Sql = Sql::same(waiting!(
        "received_at",
        "FROM deposits
        WHERE application_id IS NULL AND returned_at IS NULL AND received_at <= $1"
    ));
    /// The `due_at` of a failed mail is the time when the service gave up on it. Mails to staff
    /// about pending work aren't counted: a mail about a failed mail would fail too.
    const MAILS: Sql = Sql::same(waiting!(
        "due_at",
        "FROM outbox WHERE state = 'failed' AND kind NOT IN ('waiting', 'carrier') AND due_at <= $1"
    ));
    /// Without a mail server, mails stay in the outbox. When staff make a link, the request is
    /// deleted.
    const RESETS: Sql = Sql::same(waiting!(
        "created_at",
        "FROM outbox WHERE state IN ('queued', 'kept') AND kind = 'reset' AND created_at <= $1"
    ));
    /// Lines of bank statements that couldn't be credited.
    const BANK_LINES: Sql = Sql::same(waiting!(
        "confirmed_at",
        "FROM bank_statement_lines l JOIN bank_statements s ON s.id = l.statement_id
        WHERE l.handled_at IS NULL
          AND (l.outcome = 'conflict' OR l.outcome = 'refused' OR l.outcome = 'other-currency')
          AND (l.outcome <> 'other-currency' OR s.done_at IS NOT NULL)
          AND s.confirmed_at <= $1"
    ));
    const INBOUND: Sql = Sql::same(waiting!(
        "((id >> 21) + 1704067200000)",
        "FROM unassigned_inbound WHERE (id >> 21) + 1704067200000 <= $1"
    ));
}

/// The recipient of a mail: the owner of an application.
pub struct Owner {
    pub account_id: i64,
    pub email: String,
    pub reference: Reference,
    /// The application's display name, if its owner has set one.
    pub name: Option<String>,
}

fn owner(row: &Row<'_>) -> Result<Owner> {
    from_row!(row => Owner { account_id, email, reference: row::reference(row)?, name })
}

/// An application whose balance is below its threshold.
pub struct Low {
    pub id: ApplicationId,
    pub owner: Owner,
    pub balance: Money,
    pub threshold: Money,
}

/// A finished batch.
pub struct Done {
    pub id: BatchId,
    pub owner: Owner,
    pub rows: i64,
    pub delivered: i64,
}

/// Stores which mails an application's owner wants. `None` turns a kind of mail off.
pub async fn set(
    conn: Conn<'_>,
    id: ApplicationId,
    low_balance: Option<Money>,
    batch_mails_since: Option<Timestamp>,
) -> Result<()> {
    let set = query(SET, (id, low_balance, batch_mails_since)).execute(conn).await?;
    row::touched("applications", 1, set)
}

/// Returns the applications whose balance is below the threshold and whose owners haven't been
/// mailed about it yet.
pub async fn low(conn: Conn<'_>) -> Result<Vec<Low>> {
    let read = |row: &Row<'_>| {
        from_row!(row => Low {
            id, owner: owner(row)?, balance, threshold: row.get("low_balance")?,
        })
    };
    query(LOW, ()).fetch_all(conn, read).await
}

/// Stores when the owner was mailed about the low balance. Returns false if that was stored before
/// or if the balance is no longer low.
pub async fn note_low(conn: Conn<'_>, id: ApplicationId, now: Timestamp) -> Result<bool> {
    Ok(query(NOTE_LOW, (id, now)).execute(conn).await? == 1)
}

/// Returns the applications whose balance was low and has reached the threshold again.
pub async fn risen(conn: Conn<'_>) -> Result<Vec<ApplicationId>> {
    query(RISEN, ()).fetch_all(conn, |row| row.get("id")).await
}

pub async fn note_risen(conn: Conn<'_>, id: ApplicationId) -> Result<()> {
    query(NOTE_RISEN, id).execute(conn).await.map(drop)
}

/// Returns the finished batches with at least this ID whose owners want a mail and haven't got it
/// yet.
pub async fn done(conn: Conn<'_>, least_id: i64) -> Result<Vec<Done>> {
    let read = |row: &Row<'_>| from_row!(row => Done { id, owner: owner(row)?, rows, delivered });
    query(DONE, least_id).fetch_all(conn, read).await
}

/// Stores that the mail about a batch has been written. Returns false if that was stored before.
pub async fn note_done(conn: Conn<'_>, id: BatchId, now: Timestamp) -> Result<bool> {
    Ok(query(NOTE_DONE, (id, now)).execute(conn).await? == 1)
}

/// Whether this kind of work is counted per shard.
pub const fn is_of_shards(work: Work) -> bool {
    matches!(work, Work::Activations | Work::SenderNames)
}

/// The pending work of one kind.
#[derive(Clone, Copy, Default)]
pub struct Waiting {
    pub count: i64,
    /// How much of it arrived after a given time.
    pub fresh: i64,
    pub oldest: Option<Timestamp>,
}

impl Waiting {
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            fresh: self.fresh + other.fresh,
            oldest: self.oldest.into_iter().chain(other.oldest).min(),
        }
    }
}

/// Counts the work that has been pending since `before`, and how much of it arrived after `after`.
pub async fn waiting(
    conn: Conn<'_>,
    work: Work,
    before: Timestamp,
    after: Timestamp,
) -> Result<Waiting> {
    let statement = match work {
        Work::Activations => ACTIVATIONS,
        Work::SenderNames => SENDER_NAMES,
        Work::Deposits => DEPOSITS,
        Work::Mails => MAILS,
        Work::Inbound => INBOUND,
        Work::Resets => RESETS,
        Work::BankLines => BANK_LINES,
    };
    let read =
        |row: &Row<'_>| from_row!(row => Waiting { count: row.get("waiting")?, fresh, oldest });
    query(statement, (before, after)).fetch_one(conn, read).await
}

/// Returns when staff were last mailed about a kind of work.
pub async fn reminded(conn: Conn<'_>, work: Work) -> Result<Option<Timestamp>> {
    query(REMINDED, work.as_str()).fetch_optional(conn, |row| row.get("mailed_at")).await
}

/// The prefix of the kind of a reminder about a carrier.
const CARRIER: &str = "carrier:";

/// Returns the carriers that staff were mailed about and that haven't recovered since.
pub async fn failing_carriers(conn: Conn<'_>) -> Result<Vec<String>> {
    let kinds: Vec<String> = query(CARRIERS, ()).fetch_all(conn, |row| row.get("kind")).await?;
    Ok(kinds.iter().filter_map(|kind| kind.strip_prefix(CARRIER)).map(str::to_owned).collect())
}

/// Stores that staff are mailed about a carrier now. Returns false if they know already.
pub async fn note_carrier(conn: Conn<'_>, carrier: &str, now: Timestamp) -> Result<bool> {
    Ok(query(NOTE_CARRIER, (format!("{CARRIER}{carrier}"), now)).execute(conn).await? == 1)
}

/// Stores that a carrier has recovered. Returns false if another process has stored that already.
pub async fn forget_carrier(conn: Conn<'_>, carrier: &str) -> Result<bool> {
    Ok(query(FORGET_CARRIER, format!("{CARRIER}{carrier}")).execute(conn).await? == 1)
}

/// Stores that staff are mailed now. Returns false if they were already mailed after `since`.
pub async fn remind(conn: Conn<'_>, work: Work, now: Timestamp, since: Timestamp) -> Result<bool> {
    let noting = query(REMIND, (work.as_str(), now, since));
    Ok(noting.execute(conn).await? == 1)
}
