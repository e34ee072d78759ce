//! Bank statements that staff imported, and the order of their columns.

use domain::records::{BankStatement, BankStatementLine, LineOutcome, OpenBankLine};
use domain::{Money, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The lines of the statement `$1`. A line that is done has its stored outcome, and a waiting line
/// has the outcome that it would get now.
macro_rules! judged {
    ($select:literal, $rest:literal) => {
        Sql {
            sqlite: judged!($select, "applications", $rest),
            // Applications can be distributed, but statements can't.
            postgres: judged!($select, "reference_shards", $rest),
            ..Sql::ANYWHERE
        }
    };
    ($select:literal, $references:literal, $rest:literal) => {
        concat!(
            $select,
            r" FROM (
            SELECT l.line, l.bank_id, l.reference, l.amount, l.payer, l.purpose, l.paid_on,
                l.currency,
                CASE WHEN l.outcome <> 'waiting' THEN l.outcome
                     WHEN d.bank_id IS NULL AND (a.reference IS NULL OR c.closed_at IS NOT NULL)
                         THEN 'unmatched'
                     WHEN d.bank_id IS NULL THEN 'credited'
                     WHEN d.reference = l.reference AND d.amount = l.amount THEN 'known'
                     ELSE 'conflict' END AS outcome
            FROM bank_statement_lines l
            LEFT JOIN deposits d ON d.bank_id = l.bank_id
            LEFT JOIN ",
            $references,
            r" a ON a.reference = l.reference
            LEFT JOIN accounts c ON c.id = a.account_id
            WHERE l.statement_id = $1) judged ",
            $rest
        )
    };
}

/// The lines that couldn't be credited and aren't marked as done. A line in another currency is one
/// of them once its statement is done: until then, it may still be marked as repeated.
macro_rules! open {
    ($rest:literal) => {
        Sql::same(concat!(
            r"
        SELECT l.statement_id, l.line, l.bank_id, l.reference, l.amount, l.payer, l.purpose,
            l.paid_on, l.currency, l.outcome, d.reference AS stored_reference, d.amount AS stored_amount
        FROM bank_statement_lines l
        JOIN bank_statements s ON s.id = l.statement_id
        LEFT JOIN deposits d ON d.bank_id = l.bank_id
        WHERE l.handled_at IS NULL AND s.confirmed_at IS NOT NULL
          AND (l.outcome = 'conflict' OR l.outcome = 'refused'
               OR l.outcome = 'other-currency')
          AND (l.outcome <> 'other-currency' OR s.done_at IS NOT NULL) ",
            $rest
        ))
    };
}

statements! {
    const INSERT: Sql = Sql::same(
        "INSERT INTO bank_statements (created_at, last_line) VALUES ($1, 0) RETURNING id");
    const INSERT_LINE: Sql = Sql::same(r"
        INSERT INTO bank_statement_lines
            (line, bank_id, reference, amount, outcome, payer, purpose, paid_on, currency,
                statement_id)
        {values int text text int text text text text text common}");
    const LOADED: Sql = Sql::same("UPDATE bank_statements SET loaded_at = $2 WHERE id = $1");
    /// A statement whose import began before `$1` and never finished.
    const ABANDONED: Sql = Sql::same(r"
        SELECT id FROM bank_statements WHERE loaded_at IS NULL AND created_at < $1 LIMIT 1");
    const FORGET_LINES: Sql = Sql::same(r"
        DELETE FROM bank_statement_lines WHERE statement_id = $1 AND line IN (
            SELECT line FROM bank_statement_lines WHERE statement_id = $1 ORDER BY line LIMIT $2)");
    const FORGET: Sql = Sql::same("DELETE FROM bank_statements WHERE id = $1");
    const CONFIRM: Sql = Sql::same(r"
        UPDATE bank_statements SET confirmed_at = $2, confirmed_by = $3, asked_by = $4
        WHERE id = $1 AND loaded_at IS NOT NULL AND confirmed_at IS NULL");
    const BY_ID: Sql = Sql::same(r"
        SELECT id, created_at, confirmed_at, done_at
        FROM bank_statements WHERE id = $1 AND loaded_at IS NOT NULL");
    const NEWEST: Sql = Sql::same(r"
        SELECT id, created_at, confirmed_at, done_at
        FROM bank_statements WHERE loaded_at IS NOT NULL ORDER BY id DESC LIMIT $1");
    /// The oldest statement that is being credited.
    const UNDER_WAY: Sql = Sql::same(r"
        SELECT id, confirmed_by, asked_by, last_line,
            (SELECT COUNT(*) FROM bank_statements WHERE done_at IS NOT NULL) AS earlier
        FROM bank_statements WHERE confirmed_at IS NOT NULL AND done_at IS NULL
        ORDER BY id LIMIT 1");
    const NEXT_LINES: Sql = Sql::same(r"
        SELECT line, bank_id, reference, amount, payer, purpose, paid_on FROM bank_statement_lines
        WHERE statement_id = $1 AND line > $2 AND outcome = 'waiting' ORDER BY line LIMIT $3");
    const SET_OUTCOME: Sql = Sql::same(r"
        UPDATE bank_statement_lines SET outcome = $3 WHERE statement_id = $1 AND line = $2");
    /// The lines that another statement has, too, which is done and couldn't credit them. A line whose
    /// balance would have become too large isn't among them: it may be credited now.
    const REPEATED: Sql = Sql::same(r"
        WITH earlier AS MATERIALIZED (
            SELECT DISTINCT e.bank_id, e.reference, e.amount, COALESCE(e.currency, '') AS currency
            FROM bank_statements s JOIN bank_statement_lines e ON e.statement_id = s.id
            WHERE s.done_at IS NOT NULL AND e.bank_id <> ''
              AND (e.outcome = 'conflict' OR e.outcome = 'other-currency'))
        SELECT l.line
        FROM bank_statement_lines l JOIN earlier e ON e.bank_id = l.bank_id
        WHERE l.statement_id = $1 AND (l.outcome = 'waiting' OR l.outcome = 'other-currency')
          AND e.reference = l.reference AND e.amount = l.amount
          AND e.currency = COALESCE(l.currency, '')
        ORDER BY l.line");
    const MARK_REPEATED: Sql = Sql::same(r"
        UPDATE bank_statement_lines SET outcome = 'known'
        WHERE statement_id = $1 AND line = $2 AND handled_at IS NULL
          AND (outcome = 'waiting' OR outcome = 'other-currency')");
    const ADVANCE: Sql = Sql::same("UPDATE bank_statements SET last_line = $2 WHERE id = $1");
    const DONE: Sql = Sql::same("UPDATE bank_statements SET done_at = $2 WHERE id = $1");
    const COUNTS: Sql = judged!(
        "SELECT outcome, COUNT(*) AS lines",
        "GROUP BY outcome ORDER BY outcome"
    );
    /// Sums units and micro-units apart, because the sum could exceed a BIGINT if staff chose a
    /// wrong column.
    const CREDITS: Sql = judged!(
        "SELECT CAST(COALESCE(SUM(amount / 1000000), 0) AS BIGINT) AS units,
            CAST(COALESCE(SUM(amount % 1000000), 0) AS BIGINT) AS micros",
        "WHERE outcome = 'credited'"
    );
    const LINES: Sql = judged!(
        "SELECT line, bank_id, reference, amount, payer, purpose, paid_on, currency, outcome",
        "WHERE line > $2 ORDER BY line LIMIT $3"
    );
    const LINES_OF: Sql = judged!(
        "SELECT line, bank_id, reference, amount, payer, purpose, paid_on, currency, outcome",
        "WHERE line > $2 AND outcome = $4 ORDER BY line LIMIT $3"
    );
    const OPEN: Sql = open!("ORDER BY l.statement_id, l.line LIMIT $1");
    const OPEN_LINE: Sql = open!("AND l.statement_id = $1 AND l.line = $2");
    const HANDLE: Sql = Sql::same(r"
        UPDATE bank_statement_lines SET handled_at = $3
        WHERE statement_id = $1 AND line = $2 AND handled_at IS NULL
          AND (outcome = 'conflict' OR outcome = 'refused' OR outcome = 'other-currency')");
    const WAITING: Sql = Sql::same(r"
        SELECT COUNT(*) AS n
        FROM bank_statement_lines l JOIN bank_statements s ON s.id = l.statement_id
        WHERE l.statement_id = $1 AND l.outcome = 'waiting' AND l.line > s.last_line");
    const COLUMNS: Sql = Sql::same(r"
        SELECT bank_id, reference, amount, debit, currency, payer, purpose, paid_on
        FROM bank_columns WHERE header = $1");
    const SET_COLUMNS: Sql = Sql::same(r"
        INSERT INTO bank_columns
            (header, bank_id, reference, amount, debit, currency, payer, purpose, paid_on)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (header) DO UPDATE SET bank_id = $2, reference = $3, amount = $4,
            debit = $5, currency = $6, payer = $7, purpose = $8, paid_on = $9");
    const KEEP_PART: Sql = Sql::same(r"
        INSERT INTO bank_files (id, part, content, created_at) VALUES ($1, $2, $3, $4)");
    const KEPT_PART: Sql = Sql::same("SELECT content FROM bank_files WHERE id = $1 AND part = $2");
    const DROP_FILE: Sql = Sql::same("DELETE FROM bank_files WHERE id = $1");
    const OLD_FILE: Sql = Sql::same("SELECT id FROM bank_files WHERE created_at < $1 LIMIT 1");
}

/// The positions of a statement's columns, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankColumns {
    pub bank_id: usize,
    pub reference: usize,
    /// The amount, which is negative if money went out. With `debit`, only money that came in.
    pub amount: usize,
    /// Money that went out, if it has a column of its own.
    pub debit: Option<usize>,
    /// `None` if every line is in the installation's currency.
    pub currency: Option<usize>,
    pub payer: Option<usize>,
    pub purpose: Option<usize>,
    /// The day of the payment.
    pub paid_on: Option<usize>,
}

impl BankColumns {
    /// Returns whether two of the fields are the same column.
    pub fn are_repeated(self) -> bool {
        let all = [
            Some(self.bank_id),
            Some(self.reference),
            Some(self.amount),
            self.debit,
            self.currency,
            self.payer,
            self.purpose,
            self.paid_on,
        ];
        let mut all: Vec<usize> = all.into_iter().flatten().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() < count
    }
}

pub struct FileLine {
    /// The number of the line in the file, from 1.
    pub line: i64,
    pub bank_id: String,
    pub reference: String,
    /// As in the file: negative if money went out.
    pub amount: Money,
    pub payer: Option<String>,
    pub purpose: Option<String>,
    /// The day of the payment like `2026-11-27`.
    pub paid_on: Option<String>,
    /// The currency of the amount, if it isn't the installation's.
    pub currency: Option<String>,
    /// Why the line is skipped, if it is.
    pub skipped: Option<LineOutcome>,
}

/// A statement that is being credited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    pub id: i64,
    /// The account that confirmed the statement. `None` for the command line.
    pub confirmed_by: Option<i64>,
    /// The account that requested the confirmation, if it took two people.
    pub asked_by: Option<i64>,
    /// The last line that was credited.
    pub last_line: i64,
    /// The number of statements that are done.
    pub earlier: i64,
}

/// A line to credit.
pub struct Waiting {
    pub line: i64,
    pub bank_id: String,
    pub reference: String,
    pub amount: Money,
    pub payer: Option<String>,
    pub purpose: Option<String>,
    pub paid_on: Option<String>,
}

fn statement(row: &Row<'_>) -> Result<BankStatement> {
    from_row!(row => BankStatement { id, created_at, confirmed_at, done_at })
}

fn outcome(row: &Row<'_>) -> Result<LineOutcome> {
    row::word(row, "bank_statement_lines", "outcome", LineOutcome::parse)
}

fn line(row: &Row<'_>) -> Result<BankStatementLine> {
    from_row!(row => BankStatementLine {
        line, bank_id, reference, amount, payer, purpose, paid_on, currency, outcome: outcome(row)?,
    })
}

fn open_line_of(row: &Row<'_>) -> Result<OpenBankLine> {
    let reference: Option<String> = row.get("stored_reference")?;
    let stored = reference.zip(row.get::<Option<Money>>("stored_amount")?);
    Ok(OpenBankLine { statement_id: row.get("statement_id")?, line: line(row)?, stored })
}

/// Stores a new statement and returns its ID. The statement is hidden until it is loaded.
pub async fn insert(conn: Conn<'_>, now: Timestamp) -> Result<i64> {
    query(INSERT, now).fetch_one(conn, |row| row.get("id")).await
}

pub async fn insert_lines(conn: Conn<'_>, statement_id: i64, lines: &[FileLine]) -> Result<()> {
    let rows = lines.iter().map(|line| {
        let outcome = line.skipped.map_or("waiting", LineOutcome::as_str);
        let (bank_id, reference) = (line.bank_id.as_str(), line.reference.as_str());
        let (payer, purpose) = (line.payer.as_deref(), line.purpose.as_deref());
        let (paid_on, currency) = (line.paid_on.as_deref(), line.currency.as_deref());
        (line.line, bank_id, reference, line.amount, outcome, payer, purpose, paid_on, currency)
    });
    let inserted = query(INSERT_LINE, statement_id).execute_each(conn, rows);
    row::touched("bank_statement_lines", lines.len(), inserted.await?)
}

/// Marks a statement as loaded: all its lines are stored.
///
/// # Errors
/// When the statement was deleted as abandoned in the meantime.
pub async fn loaded(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<()> {
    let loaded = query(LOADED, (id, now)).execute(conn).await?;
    row::touched("bank_statements", 1, loaded)
}

/// Deletes some lines of a statement whose import began before this time and never finished. If it
/// has no lines left, deletes the statement. Returns whether there may be more to delete.
pub async fn forget_abandoned(conn: Conn<'_>, before: Timestamp, limit: i64) -> Result<bool> {
    let abandoned = query(ABANDONED, before).fetch_optional(conn, |row| row.get("id"));
    let Some(id): Option<i64> = abandoned.await? else {
        return Ok(false);
    };
    if query(FORGET_LINES, (id, limit)).execute(conn).await? == 0 {
        query(FORGET, id).execute(conn).await?;
    }
    Ok(true)
}

/// Confirms a statement. Returns false if it doesn't exist or was already confirmed.
pub async fn confirm(
    conn: Conn<'_>,
    id: i64,
    now: Timestamp,
    (confirmed_by, asked_by): (Option<i64>, Option<i64>),
) -> Result<bool> {
    let values = (id, now, confirmed_by, asked_by);
    Ok(query(CONFIRM, values).execute(conn).await? == 1)
}

pub async fn by_id(conn: Conn<'_>, id: i64) -> Result<Option<BankStatement>> {
    query(BY_ID, id).fetch_optional(conn, statement).await
}

pub async fn newest(conn: Conn<'_>, limit: i64) -> Result<Vec<BankStatement>> {
    query(NEWEST, limit).fetch_all(conn, statement).await
}

pub async fn under_way(conn: Conn<'_>) -> Result<Option<UnderWay>> {
    let read = |row: &Row<'_>| from_row!(row => UnderWay { id, confirmed_by, asked_by, last_line, earlier });
    query(UNDER_WAY, ()).fetch_optional(conn, read).await
}

/// Returns the next lines of a statement to credit.
pub async fn next_lines(conn: Conn<'_>, statement: &UnderWay, limit: i64) -> Result<Vec<Waiting>> {
    let read = |row: &Row<'_>| {
        from_row!(row => Waiting {
            line, bank_id, reference, amount, payer, purpose, paid_on
        })
    };
    query(NEXT_LINES, (statement.id, statement.last_line, limit)).fetch_all(conn, read).await
}

pub async fn set_outcome(
    conn: Conn<'_>,
    statement_id: i64,
    line: i64,
    outcome: LineOutcome,
) -> Result<()> {
    let set = query(SET_OUTCOME, (statement_id, line, outcome.as_str())).execute(conn);
    row::touched("bank_statement_lines", 1, set.await?)
}

/// Returns the lines of a statement that another statement has, too, which is done and couldn't
/// credit them.
pub async fn repeated(conn: Conn<'_>, id: i64) -> Result<Vec<i64>> {
    query(REPEATED, id).fetch_all(conn, |row| row.get("line")).await
}

/// Marks a line as known, unless it was credited or handled meanwhile.
pub async fn mark_repeated(conn: Conn<'_>, id: i64, line: i64) -> Result<()> {
    query(MARK_REPEATED, (id, line)).execute(conn).await.map(drop)
}

/// Stores which line of a statement was credited last.
pub async fn advance(conn: Conn<'_>, id: i64, line: i64) -> Result<()> {
    query(ADVANCE, (id, line)).execute(conn).await.map(drop)
}

pub async fn done(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<()> {
    query(DONE, (id, now)).execute(conn).await.map(drop)
}

/// Returns how many lines of a statement have each outcome, or would get it now.
pub async fn counts(conn: Conn<'_>, id: i64) -> Result<Vec<(LineOutcome, i64)>> {
    query(COUNTS, id).fetch_all(conn, |row| Ok((outcome(row)?, row.get("lines")?))).await
}

/// Returns the sum of the lines of a statement that are credited, or would be now. Returns `None`
/// if it is too large for an amount.
pub async fn credits(conn: Conn<'_>, id: i64) -> Result<Option<Money>> {
    let read = |row: &Row<'_>| {
        let (units, micros): (i64, i64) = (row.get("units")?, row.get("micros")?);
        let sum = units.checked_mul(1_000_000).and_then(|units| units.checked_add(micros));
        Ok(sum.map(Money::from_micros))
    };
    query(CREDITS, id).fetch_one(conn, read).await
}

/// Returns how many lines of a statement are still to be credited.
pub async fn waiting(conn: Conn<'_>, id: i64) -> Result<i64> {
    query(WAITING, id).fetch_one(conn, |row| row.get("n")).await
}

/// Returns the lines of a statement after the line `after`, in the file's order. With `of`, only
/// those that have this outcome, or would get it now.
pub async fn lines(
    conn: Conn<'_>,
    id: i64,
    of: Option<LineOutcome>,
    after: i64,
    limit: i64,
) -> Result<Vec<BankStatementLine>> {
    let listing = match of {
        None => query(LINES, (id, after, limit)),
        Some(of) => query(LINES_OF, (id, after, limit, of.as_str())),
    };
    listing.fetch_all(conn, line).await
}

/// Returns the lines of all statements that couldn't be credited and aren't marked as done, at most
/// `limit`, oldest statement first.
pub async fn open_lines(conn: Conn<'_>, limit: i64) -> Result<Vec<OpenBankLine>> {
    query(OPEN, limit).fetch_all(conn, open_line_of).await
}

/// Returns a line that couldn't be credited and isn't marked as done.
pub async fn open_line(
    conn: Conn<'_>,
    statement_id: i64,
    line: i64,
) -> Result<Option<OpenBankLine>> {
    query(OPEN_LINE, (statement_id, line)).fetch_optional(conn, open_line_of).await
}

/// Marks a line that couldn't be credited as done. Returns false if that was stored before, or if
/// there is no such line.
pub async fn handle(conn: Conn<'_>, statement_id: i64, line: i64, now: Timestamp) -> Result<bool> {
    Ok(query(HANDLE, (statement_id, line, now)).execute(conn).await? == 1)
}

/// Stores a part of a file whose columns staff are choosing.
pub async fn keep_part(
    conn: Conn<'_>,
    id: i64,
    part: i64,
    content: &str,
    now: Timestamp,
) -> Result<()> {
    query(KEEP_PART, (id, part, content, now)).execute(conn).await.map(drop)
}

/// Returns a part of a kept file. `None` after the last part, or if the file isn't kept any more.
pub async fn kept_part(conn: Conn<'_>, id: i64, part: i64) -> Result<Option<String>> {
    query(KEPT_PART, (id, part)).fetch_optional(conn, |row| row.get("content")).await
}

/// Deletes a kept file. Returns false if it wasn't kept any more.
pub async fn drop_file(conn: Conn<'_>, id: i64) -> Result<bool> {
    Ok(query(DROP_FILE, id).execute(conn).await? > 0)
}

/// Deletes a file that was kept before a time. Returns whether there may be more.
pub async fn drop_old_file(conn: Conn<'_>, before: Timestamp) -> Result<bool> {
    let old = query(OLD_FILE, before).fetch_optional(&mut *conn, |row| row.get("id"));
    match old.await? {
        Some(id) => drop_file(conn, id).await,
        None => Ok(false),
    }
}

/// Returns the columns that staff chose for statements with this header line.
pub async fn columns(conn: Conn<'_>, header: &str) -> Result<Option<BankColumns>> {
    let read = |row: &Row<'_>| {
        let index = |index: i64| usize::try_from(index).unwrap_or(usize::MAX);
        let optional =
            |name| Ok::<_, crate::error::Error>(row.get::<Option<i64>>(name)?.map(index));
        Ok(BankColumns {
            bank_id: index(row.get("bank_id")?),
            reference: index(row.get("reference")?),
            amount: index(row.get("amount")?),
            debit: optional("debit")?,
            currency: optional("currency")?,
            payer: optional("payer")?,
            purpose: optional("purpose")?,
            paid_on: optional("paid_on")?,
        })
    };
    query(COLUMNS, header).fetch_optional(conn, read).await
}

pub async fn set_columns(conn: Conn<'_>, header: &str, columns: BankColumns) -> Result<()> {
    let index = |index: usize| i64::try_from(index).unwrap_or(i64::MAX);
    let values = (
        header,
        index(columns.bank_id),
        index(columns.reference),
        index(columns.amount),
        columns.debit.map(index),
        columns.currency.map(index),
        columns.payer.map(index),
        columns.purpose.map(index),
        columns.paid_on.map(index),
    );
    query(SET_COLUMNS, values).execute(conn).await.map(drop)
}
