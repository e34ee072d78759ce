//! PostgreSQL: how connections and transactions are set up, and the partitions of messages.
//!
//! The lock order depends on the kind of transaction:
//!
//! - Results and receipts that aren't stored by `run_commit_group`, and the expiry sweep: messages,
//!   their queue rows and segments, applications, day counts, batches.
//! - Expired leases and rerouting: queue rows, their messages and segments, applications, day
//!   counts, batches.
//! - A call of `run_commit_group`: queue rows, their messages and segments for results; messages
//!   and their segments for receipts; applications for sends; queue rows and their messages for
//!   claims; then day counts and batches.
//! - Verbs: applications, batches.
//! - The outcomes of deliveries to an endpoint: event streams, the endpoint, its retries.
//!
//! A transaction that adds events locks their streams and then makes the endpoints due, all just
//! before it commits. Applications, batches and streams are locked in the order of their IDs. The
//! lock of a batch also protects its counts. Transactions for expired leases, rerouting, claims and
//! leases of endpoints skip locked rows. Two transactions can still deadlock over a message
//! and its queue row, or over a message and its application. An example is a receipt in one
//! process, and the result or the claim of the same message in another. PostgreSQL then aborts one
//! of the two. Its changes are rolled back, and its work is retried: at once
//! ([`crate::error::Error::is_conflict`]), or by the next run of a job.
//!
//! Statements over messages name the least and the greatest message ID, so that PostgreSQL reads
//! only the partitions between the two.

use std::time::Duration;

use domain::Timestamp;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnection;
use sqlx::{Executor as _, Postgres, Row as _};

use super::history::{MessageTables, Partition, Range};
use super::query::{Conn, Row, query, run, run_of};
use super::sql::{Sql, statements};
use crate::error::{Result, timed_out};

/// The timeout for testing a connection that is released to its pool.
const REUSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets up a connection. A statement that exceeds the timeout is a fault. A transaction that a
/// stopped process leaves open would block its rows and hold back vacuum. Statements are planned at
/// each execution, because a generic plan would open all partitions.
pub(crate) const SESSION: &str = r"
    SET statement_timeout = '30s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '5s';
    SET default_transaction_isolation = 'read committed';
    SET synchronous_commit = on;
    SET plan_cache_mode = force_custom_plan;
    SET TIME ZONE 'UTC';
    SET client_min_messages = warning;
    SET application_name = 'heliograph'";

/// Sets up the connection of commit groups, after [`SESSION`]. Their statements get generic plans,
/// except for those over messages, which are planned at each execution anyway. Sequential scans are
/// disabled: a generic plan that was made for an empty table must still be good when the table has
/// grown.
///
/// In a distributed database the call of a commit group is planned at each execution. Citus then
/// knows the shard and sends the call to the worker that has it. On the worker, `run_commit_group`
/// sets these options itself.
pub(crate) const GROUP_SESSION: &str = r"
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET jit = off;
    SELECT set_config('plan_cache_mode', 'force_custom_plan', false)
    FROM installation WHERE distribution = 'done'";

/// Sets up a transaction that recounts all rows, which takes long. Nested loops are disabled:
/// PostgreSQL would choose them for tables that have grown since their last ANALYZE, because it
/// still estimates these tables to be small. `random_page_cost` is set back to its default, see
/// [`READER`].
pub(crate) const RECOUNT: &str = r"
    SET LOCAL statement_timeout = 0;
    SET LOCAL enable_nestloop = off;
    SET LOCAL random_page_cost = 4";

/// Sets up a connection that only reads, after [`SESSION`]. A list shows the few newest of many
/// messages, and an index finds them. With the default cost of random pages PostgreSQL would scan a
/// day's messages in the order of their IDs instead, because it expects the listed messages to be
/// spread over the day.
pub(crate) const READER: &str = "SET random_page_cost = 0.1";

/// Begins a read-only transaction. All its statements see the same snapshot.
pub(crate) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Begins the transaction of a verb. Only one verb runs at a time over all processes, as on SQLite.
/// Verbs read, decide and write, and they are rare.
pub(crate) const BEGIN_VERB: &str = "BEGIN; SELECT pg_advisory_xact_lock(4825176, 0)";

/// Returns 1 if a connection was released to its pool inside a transaction, where `now()` doesn't
/// advance. The statement must be a simple query, because each message of an extended query has its
/// own `statement_timestamp()`.
const IN_TRANSACTION: &str =
    "SELECT CASE WHEN now() = statement_timestamp() THEN 0 ELSE 1 END::bigint AS n";

/// Returns the ID of the running transaction (null if it has written nothing) and two timestamps of
/// the server. Any crash changes one of the timestamps, whether the whole server crashes or one of
/// its processes.
pub(crate) const TRANSACTION: &str = r"
    SELECT pg_current_xact_id_if_assigned()::text AS id,
           concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time())
               AS server";

/// Returns the outcome of a transaction. A crashed server loses the IDs of transactions that never
/// reached the disk, and assigns them again. After a crash, `committed` may therefore be the status
/// of another transaction with the same ID.
pub(crate) const OUTCOME: &str = r"
    SELECT CASE WHEN server = $2 THEN pg_xact_status(id)
                WHEN id >= pg_snapshot_xmax(pg_current_snapshot()) THEN 'aborted'
                WHEN pg_xact_status(id) = 'committed' THEN 'forgotten'
                ELSE 'aborted' END AS outcome
    FROM (SELECT $1::text::xid8 AS id,
                 concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time())
                     AS server) t";

/// Makes Citus commit in two phases if the transaction wrote on a worker. Such a transaction also
/// wrote on the coordinator, in tables that Citus doesn't know. Citus would commit first on the
/// worker and then on the coordinator, independently. Citus keeps `sessions` on the coordinator
/// only, and a statement that changes this table makes Citus use two phases, even if it changes no
/// row.
pub(crate) const TWO_PHASES: &str = "DELETE FROM sessions WHERE id = -1";

/// Raises the statement timeout: a table may have millions of messages to sum up.
pub(crate) const TAKE_TIME: &str = "SET LOCAL statement_timeout = '15min'";

/// Lets the commit return before it is on disk. If the server crashes shortly afterwards, the
/// transaction is lost, as if the crash had come first. A later commit that waits for the disk
/// makes this one durable too, because the server writes its log in order.
pub(crate) const COMMIT_WITHOUT_WAITING: &str = "SET LOCAL synchronous_commit = off";

/// Shortens the lock timeout, for changes of tables that every transaction uses: all other
/// transactions would wait behind such a change. A change that doesn't get its lock is retried
/// later.
const SHORT_WAIT: &str = "SET LOCAL lock_timeout = '500ms'";

statements! {
    /// Locks a chore until the transaction ends, unless another transaction has locked it. `$1` is
    /// the number of the chore's lock ([`super::chore::Chore::number`]).
    const TRY_LOCK: Sql = Sql::postgres(r"
        SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END::bigint AS mine");
    /// The server's clock. All processes use this clock, so their own clocks may differ.
    const CLOCK: Sql = Sql::postgres(r"
        SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint) AS ms");
    /// The age of the oldest open transaction. Prepared transactions count, because they hold back
    /// vacuum too.
    const OLDEST: Sql = Sql::postgres(r"
        SELECT COALESCE(
            CAST(MAX(EXTRACT(EPOCH FROM clock_timestamp() - at)) * 1000 AS bigint), 0) AS ms
        FROM (
            SELECT xact_start AS at FROM pg_stat_activity
            WHERE xact_start IS NOT NULL AND backend_type <> 'autovacuum worker'
            UNION ALL SELECT prepared FROM pg_prepared_xacts) t");
    /// A partition that overlaps a range of IDs. The default partition has no bounds.
    const PARTITION: Sql = Sql::postgres(r"
        SELECT substr(c.relname, length('messages_') + 1) AS suffix,
               bounds[1]::bigint AS low, bounds[2]::bigint AS below
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        CROSS JOIN regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                '''(-?\d+)''.*''(-?\d+)''') bounds
        WHERE i.inhparent = 'messages'::regclass
          AND bounds[1]::bigint < $2 AND bounds[2]::bigint > $1
        LIMIT 1");
    const STRAYS: Sql = Sql::postgres(r"
        SELECT id
        FROM messages_other WHERE id >= $1 AND id < $2
        UNION ALL SELECT message_id FROM message_timeline_other
        WHERE message_id >= $1 AND message_id < $2 LIMIT 1");
    const FORGET_UNUSUAL: Sql = Sql::postgres_in_shard(r"
        DELETE FROM unusual_messages WHERE message_id >= $1 AND message_id < $2 AND shard = $3");
}

/// Returns the options of a pool of connections. `session` sets up each of them.
pub(crate) fn pool_options(
    connections: u32,
    session: &'static [&'static str],
) -> PoolOptions<Postgres> {
    PoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(move |conn: &mut PgConnection, _| {
            Box::pin(async move {
                for statements in session {
                    conn.execute(*statements).await?;
                }
                Ok(())
            })
        })
        .after_release(|conn: &mut PgConnection, _| Box::pin(is_reusable(conn)))
}

/// Returns whether a connection can be reused. `BEGIN` can be interrupted at a point where sqlx
/// doesn't know about the transaction yet. The next user of the connection would then be inside
/// that transaction.
async fn is_reusable(conn: &mut PgConnection) -> std::result::Result<bool, sqlx::Error> {
    let asked = async {
        let row = sqlx::raw_sql(IN_TRANSACTION).fetch_one(conn).await?;
        row.try_get::<i64, _>("n")
    };
    // Without a timeout, a connection that died silently would keep its slot in the pool.
    let asked = tokio::time::timeout(REUSE_TIMEOUT, asked).await;
    Ok(asked.map_err(|_| timed_out("testing a connection"))?? == 0)
}

/// Locks a chore until the transaction ends. Returns false if another transaction has locked it.
pub(crate) async fn try_lock(conn: Conn<'_>, chore: i64) -> Result<bool> {
    query(TRY_LOCK, chore).fetch_one(conn, |row| row.get("mine")).await
}

/// Returns the server's clock in Unix milliseconds.
pub(crate) async fn clock_ms(conn: Conn<'_>) -> Result<i64> {
    query(CLOCK, ()).fetch_one(conn, |row| row.get("ms")).await
}

/// Returns the age of the oldest open transaction, in milliseconds.
pub(crate) async fn oldest_ms(conn: Conn<'_>) -> Result<i64> {
    query(OLDEST, ()).fetch_one(conn, |row| row.get("ms")).await
}

/// Returns the day as table names have it, for example `20250131`.
fn day_name(day: i64) -> String {
    let start = Timestamp::from_unix_ms(day * 86_400_000).to_string();
    let date = start.split_once('T').map_or(start.as_str(), |(date, _)| date);
    date.replace('-', "")
}

/// Returns a partition that overlaps this range of IDs.
async fn partition(conn: Conn<'_>, range: Range) -> Result<Option<Partition>> {
    let finding = query(PARTITION, (range.from, range.below));
    let read = |row: &Row<'_>| {
        Ok(Partition {
            suffix: row.get("suffix")?,
            range: Range { from: row.get("low")?, below: row.get("below")? },
        })
    };
    finding.fetch_optional(conn, read).await
}

/// Returns the partition that has the messages of a day: the day's own or that of its week.
pub(crate) async fn day_table(conn: Conn<'_>, day: i64) -> Result<Option<Partition>> {
    partition(conn, Range::of_days(day, day + 1)).await
}

/// Creates the partitions of a day. Returns false if the day already has partitions, or if the
/// default partition has rows of the day. With [`MessageTables::Week`], creates the partitions of
/// the whole week instead, provided that no other day of the week has partitions or such rows.
pub(crate) async fn make_day(conn: Conn<'_>, day: i64, tables: MessageTables) -> Result<bool> {
    let mut made = Partition { suffix: day_name(day), range: Range::of_days(day, day + 1) };
    if !is_free(&mut *conn, made.range).await? {
        return Ok(false);
    }
    if tables == MessageTables::Week {
        // 1970-01-01 was a Thursday.
        let monday = day - (day + 3).rem_euclid(7);
        let week = Range::of_days(monday, monday + 7);
        if is_free(&mut *conn, week).await? {
            made = Partition { suffix: format!("{}_week", day_name(monday)), range: week };
        }
    }
    make_partition(conn, &made).await?;
    Ok(true)
}

/// Returns whether no partition overlaps these IDs and the default partition has no rows with them.
async fn is_free(conn: Conn<'_>, range: Range) -> Result<bool> {
    Ok(partition(&mut *conn, range).await?.is_none()
        && !query(STRAYS, (range.from, range.below)).finds(conn).await?)
}

/// Creates a partition of messages and one of their events. Each is created as a table and then
/// attached, which doesn't block writers.
async fn make_partition(conn: Conn<'_>, partition: &Partition) -> Result<()> {
    let Partition { suffix, range } = partition;
    // The statements run one at a time, because Citus would forward a script of several statements
    // as a whole, once for each statement.
    run(&mut *conn, SHORT_WAIT).await?;
    for (table, options) in [("messages", "WITH (fillfactor = 60)"), ("message_timeline", "")] {
        let make = format!(
            "CREATE TABLE {table}_{suffix} \
             (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) {options}"
        );
        run_of(&mut *conn, make).await?;
        let attach = format!(
            "ALTER TABLE {table} ATTACH PARTITION {table}_{suffix} \
             FOR VALUES FROM ({}) TO ({})",
            range.from, range.below
        );
        run_of(&mut *conn, attach).await?;
    }
    Ok(())
}

pub(crate) async fn drop_tables(conn: Conn<'_>, partition: &Partition) -> Result<()> {
    run(&mut *conn, SHORT_WAIT).await?;
    for table in ["messages", "message_timeline"] {
        run_of(&mut *conn, format!("DROP TABLE {table}_{}", partition.suffix)).await?;
    }
    Ok(())
}

/// Deletes these messages from `unusual_messages`.
pub(crate) async fn forget_unusual(conn: Conn<'_>, range: Range) -> Result<()> {
    query(FORGET_UNUSUAL, (range.from, range.below)).execute(conn).await.map(drop)
}
