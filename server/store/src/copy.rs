//! Copies all rows of a SQLite database to PostgreSQL.
//!
//! Rows are copied as JSON objects with a key per column. Tables and columns have the same names in
//! both databases, so one statement works for every table. SQLite is only read and PostgreSQL is
//! only written: the other direction isn't needed.

use std::collections::BTreeMap;

use super::messages;
use super::query::{Argument, Conn, Row, query, query_of, run, run_of};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;
use domain::ids::Shard;
use domain::ledger::TransferKind;
use domain::{Timestamp, ids};

/// The tables that are copied. Each table comes after the tables that it refers to. The other
/// tables hold the state of running processes.
pub const TABLES: [&str; 66] = [
    "installation",
    "prices",
    "accounts",
    "second_factors",
    "recovery_codes",
    "passkeys",
    "sessions",
    "security_events",
    "password_resets",
    "confirmations",
    "outbox",
    "reminders",
    "known_devices",
    "applications",
    "api_keys",
    "api_key_calls",
    "api_key_clients",
    "api_calls",
    "replaced_keys",
    "sender_requests",
    "sender_name_owners",
    "staff_lists",
    "incidents",
    "approvals",
    "batches",
    "batch_counts",
    "transfers",
    "deposits",
    "bank_statements",
    "bank_statement_lines",
    "bank_columns",
    "bank_files",
    "messages",
    "message_timeline",
    "queue",
    "segments",
    "unmatched_receipts",
    "raw_receipts",
    "receipt_counts",
    "carrier_figures",
    "carriers",
    "message_days",
    "message_quarters",
    "margin_days",
    "dropped_days",
    "inbound_numbers",
    "inbound_seen",
    "inbound_parts",
    "inbound_messages",
    "unassigned_inbound",
    "events",
    "event_streams",
    "webhooks",
    "webhook_retries",
    "webhook_replays",
    "webhook_attempts",
    "opt_outs",
    "test_clocks",
    "verifications",
    "limit_alarms",
    "limit_refusals",
    "idempotency",
    "audit",
    "audit_chains",
    "account_notes",
    "billing_details",
];

/// The copied tables whose rows belong to an application and have its shard.
const OF_APPLICATIONS: [&str; 20] = [
    "sender_requests",
    "batches",
    "transfers",
    "messages",
    "message_timeline",
    "queue",
    "segments",
    "message_days",
    "message_quarters",
    "dropped_days",
    "inbound_messages",
    "events",
    "event_streams",
    "webhooks",
    "opt_outs",
    "test_clocks",
    "verifications",
    "limit_alarms",
    "limit_refusals",
    "idempotency",
];

/// The number of rows in memory at a time. The longest rows have a few kilobytes.
const CHUNK_ROWS: usize = 2000;

/// Lifts the usual time limits, which are meant for verbs. The copy is one transaction, and it
/// takes longer the more rows there are.
const NO_TIME_LIMITS: &str =
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0";

statements! {
    /// The columns of a table, and their positions in its primary key.
    const COLUMNS: Sql = Sql::sqlite("SELECT name, pk FROM pragma_table_info($1) ORDER BY cid");
    /// All tables except partitions, which are parts of their tables.
    const EVERY_TABLE: Sql = Sql::postgres(r"
        SELECT c.relname::text AS name FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT c.relispartition");
    /// The tables whose IDs come from a sequence, each with its sequence.
    const NUMBERED: Sql = Sql::postgres(r"
        SELECT c.table_name::text AS name,
               COALESCE(
                   pg_get_serial_sequence(quote_ident(c.table_name), 'id'),
                   c.table_name || '_id') AS sequence
        FROM information_schema.columns c
        WHERE c.table_schema = current_schema() AND c.column_name = 'id'
          AND (c.is_identity = 'YES' OR c.column_default LIKE 'nextval(%')");
    const FILL_REFERENCES: Sql = Sql::postgres(r"
        INSERT INTO reference_shards (reference, shard, application_id, account_id)
        SELECT reference, shard, id, account_id FROM applications");
    const NUMBER_TRANSFERS: Sql = Sql::postgres(r"
        UPDATE applications a SET last_transfer_id = COALESCE(
            (SELECT MAX(t.id)
             FROM transfers t WHERE t.shard = a.shard AND t.application_id = a.id), 0)");
    const NOTE_UNUSUAL: Sql = Sql::postgres(r"
        INSERT INTO unusual_messages (shard, application_id, test, status, message_id)
        SELECT shard, application_id, test, status, id
        FROM messages WHERE status > {delivered} OR status = {unknown}");
    const SET_NUMBER: Sql = Sql::postgres("SELECT setval($1::text::regclass, $2)");
    const BY_KIND: Sql = Sql::same(r"
        SELECT kind, CAST(SUM(amount) AS BIGINT) AS amount FROM transfers GROUP BY kind");
    const BY_ACCOUNT: Sql = Sql::same(r"
        SELECT account, CAST(SUM(amount) AS BIGINT) AS amount
        FROM (
            SELECT credit_account AS account, amount
            FROM transfers
            UNION ALL SELECT debit_account, -amount FROM transfers) t
        GROUP BY account");
    const BALANCES: Sql = Sql::same(r"
        SELECT CAST(COALESCE(SUM(balance), 0) AS BIGINT) AS amount FROM applications");
    /// The days that still have messages. `$1` is the first such day, because `message_days` also
    /// has older days, whose messages were dropped.
    const DAYS: Sql = Sql::sqlite(r"
        SELECT DISTINCT day FROM message_days WHERE day >= $1 ORDER BY day");
    const SHARD_OF_SPOOL: Sql = Sql::postgres("SELECT shard FROM batches WHERE spool = $1");
    const WAITING: Sql = Sql::sqlite(r"
        SELECT spool, spool_offset, rows - expanded_rows AS waiting, first_message_id, expires_at
        FROM batches WHERE expanded_at IS NULL ORDER BY id");
}

/// Returns whether a PostgreSQL database is empty. A database counts as empty if it has no tables
/// at all, or if it has our schema and no table has rows.
pub async fn is_empty(conn: Conn<'_>) -> Result<bool> {
    let mut tables: Vec<String> =
        query(EVERY_TABLE, ()).fetch_all(conn, |row| row.get("name")).await?;
    let found = tables.len();
    tables.retain(|name| name != "_sqlx_migrations");
    if tables.len() == found {
        return Ok(found == 0);
    }
    for name in tables {
        let any = format!("SELECT 1::bigint AS n FROM \"{name}\" LIMIT 1");
        if query_of(any, ()).finds(conn).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Locks out all other writers of a PostgreSQL database until this transaction ends.
pub async fn take_over(conn: Conn<'_>) -> Result<()> {
    run(&mut *conn, NO_TIME_LIMITS).await?;
    // PostgreSQL refuses to lock these three tables, because nobody has the privilege to change
    // their rows. Every transaction that writes to them also writes to another table.
    let lockable =
        TABLES.iter().filter(|name| !["transfers", "audit", "account_notes"].contains(name));
    let lockable = lockable.copied().collect::<Vec<_>>().join(", ");
    let lock = format!("LOCK TABLE {lockable}, nodes IN EXCLUSIVE MODE");
    run_of(conn, lock).await?;
    Ok(())
}

/// Consecutive rows of a table.
pub struct Chunk {
    pub rows: usize,
    json: String,
}

/// Reads the rows of a SQLite table in the order of its primary key.
pub struct Reader {
    /// The statement for the first rows, and the statement for the rows after a key.
    statements: [String; 2],
    /// The key of the last row that was read.
    after: Option<String>,
    pub columns: Vec<String>,
}

impl Reader {
    pub async fn of(conn: Conn<'_>, table: &str) -> Result<Self> {
        let read = |row: &Row<'_>| Ok((row.get("name")?, row.get("pk")?));
        let columns: Vec<(String, i64)> = query(COLUMNS, table).fetch_all(conn, read).await?;
        let (mut values, mut keys) = (Vec::new(), BTreeMap::new());
        for (name, place) in &columns {
            values.push(format!("'{name}', \"{name}\""));
            if *place > 0 {
                keys.insert(*place, format!("\"{name}\""));
            }
        }
        let keys: Vec<String> = keys.into_values().collect();
        let last = (0..keys.len()).map(|place| format!("$1 ->> {place}"));
        let last = last.collect::<Vec<_>>().join(", ");
        let (values, keys) = (values.join(", "), keys.join(", "));
        let statement = |after: &str| {
            format!(
                "SELECT COUNT(*) AS n, json_group_array(json_object({values})) AS found, \
                        json_group_array(json_array({keys})) ->> '$[#-1]' AS last \
                 FROM (SELECT * FROM {table} {after} ORDER BY {keys} LIMIT {CHUNK_ROWS})"
            )
        };
        let next = format!("WHERE ({keys}) > ({last})");
        Ok(Self {
            statements: [statement(""), statement(&next)],
            after: None,
            columns: columns.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// Returns the next rows, or `None` after the last row.
    pub async fn next(&mut self, conn: Conn<'_>) -> Result<Option<Chunk>> {
        let statement = &self.statements[usize::from(self.after.is_some())];
        let query = query_of(statement.clone(), ());
        let query = query.bind(self.after.as_deref().map(Argument::from));
        let read = |row: &Row<'_>| {
            let rows = usize::try_from(row.get::<i64>("n")?).unwrap_or_default();
            let json = row.get("found")?;
            Ok((row.get("last")?, Chunk { rows, json }))
        };
        let (last, chunk) = query.fetch_one(conn, read).await?;
        self.after = last;
        Ok(Some(chunk).filter(|chunk| chunk.rows > 0))
    }
}

/// Returns an expression for the shard of a table's rows, and the join that it needs. Returns
/// `None` if the rows have no shard. An account has a shard, and everything that belongs to the
/// account has the same shard.
pub(crate) fn shard_of(table: &str) -> Option<(&'static str, &'static str)> {
    match table {
        "accounts" => Some(("1 + r.id % i.shards", "CROSS JOIN installation i")),
        "applications" => Some(("a.shard", "JOIN accounts a ON a.id = r.account_id")),
        "batch_counts" => Some(("b.shard", "JOIN batches b ON b.id = r.batch_id")),
        "webhook_retries" | "webhook_replays" | "webhook_attempts" => {
            Some(("w.shard", "JOIN webhooks w ON w.id = r.webhook_id"))
        }
        // A settlement belongs to a batch, not to an application.
        "transfers" => Some((
            "COALESCE(h.shard, b.shard, 1)",
            "LEFT JOIN reference_shards h ON h.application_id = r.application_id \
             LEFT JOIN batches b ON b.id = r.batch_id",
        )),
        _ if OF_APPLICATIONS.contains(&table) => {
            Some(("h.shard", "JOIN reference_shards h ON h.application_id = r.application_id"))
        }
        _ => None,
    }
}

/// Writes rows into the table of the same name in a PostgreSQL database.
pub async fn write(
    conn: Conn<'_>,
    table: &'static str,
    columns: &[String],
    chunk: Chunk,
) -> Result<()> {
    let quoted = |before: &str| -> String {
        let columns = columns.iter().map(|name| format!("{before}\"{name}\""));
        columns.collect::<Vec<_>>().join(", ")
    };
    let (into, (value, join)) = match shard_of(table) {
        Some((value, join)) => (", shard", (format!(", {value}"), join)),
        None => ("", (String::new(), "")),
    };
    let insert = format!(
        "INSERT INTO {table} ({}{into}) SELECT {}{value} \
         FROM json_populate_recordset(NULL::{table}, $1::text::json) r {join}",
        quoted(""),
        quoted("r."),
    );
    let written = query_of(insert, chunk.json).execute(conn).await?;
    row::touched(table, chunk.rows, written)
}

/// Fills the tables and columns that SQLite doesn't have, from a table that was just copied.
pub async fn complete(conn: Conn<'_>, table: &str) -> Result<()> {
    let statement = match table {
        "applications" => FILL_REFERENCES,
        "transfers" => NUMBER_TRANSFERS,
        "messages" => NOTE_UNUSUAL,
        _ => return Ok(()),
    };
    query(statement, ()).execute(conn).await.map(drop)
}

/// Advances PostgreSQL's sequences past the copied rows, and past the greatest ID that SQLite ever
/// assigned in each table. A rollback doesn't undo this, which leaves no more than a gap.
pub async fn number_on(from: Conn<'_>, to: Conn<'_>) -> Result<()> {
    let read = |row: &Row<'_>| Ok((row.get("name")?, row.get("sequence")?));
    let numbered: Vec<(String, String)> = query(NUMBERED, ()).fetch_all(to, read).await?;
    for (name, sequence) in numbered {
        if !TABLES.contains(&name.as_str()) {
            continue;
        }
        let last = format!(
            "SELECT MAX(COALESCE((SELECT MAX(id) FROM {name}), 0), \
                        COALESCE((SELECT seq FROM sqlite_sequence WHERE name = '{name}'), 0)) AS id"
        );
        let last: i64 = query_of(last, ()).fetch_one(from, |row| row.get("id")).await?;
        if last > 0 {
            query(SET_NUMBER, (sequence, last)).execute(to).await?;
        }
    }
    Ok(())
}

/// Makes PostgreSQL collect statistics. With statistics, one statement of the check takes three
/// seconds on a million messages. Without them, it was still running after a minute.
pub async fn analyze(conn: Conn<'_>) -> Result<()> {
    let analyze = format!("ANALYZE {}", TABLES.join(", "));
    run_of(conn, analyze).await?;
    Ok(())
}

pub async fn count(conn: Conn<'_>, table: &str) -> Result<i64> {
    let count = format!("SELECT COUNT(*) AS n FROM {table}");
    query_of(count, ()).fetch_one(conn, |row| row.get("n")).await
}

/// Returns the days (since 1970-01-01 UTC) that have messages.
pub async fn days(conn: Conn<'_>) -> Result<Vec<i64>> {
    let Some(first) = messages::first(conn, 0, i64::MAX).await? else {
        return Ok(Vec::new());
    };
    let first = Timestamp::from_unix_ms(ids::id_unix_ms(first)).day();
    query(DAYS, first).fetch_all(conn, |row| row.get("day")).await
}

/// The sums of the ledger, in micro-units.
pub struct Ledger {
    pub by_kind: BTreeMap<String, i64>,
    pub by_account: BTreeMap<i64, i64>,
    /// The sum of the balances of all applications.
    pub balances: i64,
}

pub async fn ledger(conn: Conn<'_>) -> Result<Ledger> {
    let by_kind = |row: &Row<'_>| {
        let kind = row::code(row, "transfers", "kind", TransferKind::from_code)?;
        Ok((kind.as_str().to_owned(), row.get("amount")?))
    };
    let by_account = |row: &Row<'_>| Ok((row.get("account")?, row.get("amount")?));
    let by_kind = query(BY_KIND, ()).fetch_all(conn, by_kind).await?;
    let by_account = query(BY_ACCOUNT, ()).fetch_all(conn, by_account).await?;
    let balances = query(BALANCES, ()).fetch_one(conn, |row| row.get("amount")).await?;
    Ok(Ledger {
        by_kind: by_kind.into_iter().collect(),
        by_account: by_account.into_iter().collect(),
        balances,
    })
}

/// A batch whose rows aren't all messages yet.
pub struct Waiting {
    pub spool: String,
    /// The spool offset of the first row that isn't a message yet.
    pub offset: i64,
    pub rows: i64,
    pub first_message_id: i64,
    /// As in [`super::batches::UnexpandedBatch`].
    pub expires_at: Option<Timestamp>,
}

/// Returns the shard of the copied batch that has this spool.
pub async fn shard_of_spool(conn: Conn<'_>, spool: &str) -> Result<Shard> {
    query(SHARD_OF_SPOOL, spool).fetch_one(conn, |row| row.get("shard").map(Shard)).await
}

pub async fn waiting(conn: Conn<'_>) -> Result<Vec<Waiting>> {
    let waiting = |row: &Row<'_>| {
        from_row!(row => Waiting {
            spool, offset: row.get("spool_offset")?, rows: row.get("waiting")?, first_message_id,
            expires_at,
        })
    };
    query(WAITING, ()).fetch_all(conn, waiting).await
}

#[cfg(test)]
mod tests;
