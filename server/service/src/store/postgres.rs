//! A PostgreSQL server: how connections and transactions are set up, and the tables by day.
//!
//! The order of locks depends on where a transaction begins:
//!
//! - Results and receipts that are stored by statements, and the expiry sweep: messages, their rows
//!   in the queue and their segments, applications, counts of days, batches.
//! - Ended leases and rerouting: rows of the queue, their messages and segments, applications,
//!   counts of days, batches.
//! - A call of `run_commit_group`: for results rows of the queue, their messages and segments; for
//!   receipts messages and their segments; for sends applications; for claims rows of the queue and
//!   their messages; at the end counts of days, batches.
//! - What a person asks for: applications, batches.
//!
//! Applications and batches are locked in the order of their ids, and ended leases, rerouting and
//! claims pass over rows of the queue that are locked. Deadlocks are left where two transactions
//! meet over a message and its row in the queue, or over a message and its application: a receipt
//! in one process and the result or the claim of the same message in another. PostgreSQL then ends
//! one of the two transactions. Nothing of it is stored, and its work is repeated: at once
//! ([`crate::error::Error::is_conflict`]), or by the next run of a job.
//!
//! Statements name a least and a greatest id of messages, so that only the partitions of their days
//! are looked at.

use domain::Timestamp;

use super::history::{MessageTables, Partition, Range};
use super::query::{Connection, Row, query, run, run_of};
use super::sql::{Sql, statements};
use crate::error::Result;

/// Sets up a connection. A statement that takes longer than this is a fault; a transaction that a
/// stopped process left open would keep others from its rows and vacuum from its work. A plan is
/// made at each execution: a generic plan for all parameters would look at every day's table.
pub(super) const SESSION: &str = r"
    SET statement_timeout = '30s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '5s';
    SET default_transaction_isolation = 'read committed';
    SET synchronous_commit = on;
    SET plan_cache_mode = force_custom_plan;
    SET TIME ZONE 'UTC';
    SET client_min_messages = warning;
    SET application_name = 'heliograph'";

/// Sets up the connection of commit groups, after [`SESSION`]. Their statements are planned once
/// for any parameters, except those over messages, which are planned at each execution anyway. Such
/// plans must hold when a table has grown: without sequential scans, which suit an empty table.
///
/// In a distributed database the call of a commit group is planned at each execution, so that Citus
/// knows the shard and sends the call to the server that has it. The session on that server is set
/// up like this one by `run_commit_group` itself.
pub(super) const GROUP_SESSION: &str = r"
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET jit = off;
    SELECT set_config('plan_cache_mode', 'force_custom_plan', false)
    FROM installation WHERE distribution = 'done'";

/// Sets up a transaction that recounts all rows. Recounting takes long, and must not join by nested
/// loops: PostgreSQL chooses these for tables that have grown since it last analyzed them, because
/// it takes such tables for small.
pub(super) const RECOUNT: &str = r"
    SET LOCAL statement_timeout = 0;
    SET LOCAL enable_nestloop = off;
    SET LOCAL random_page_cost = 4";

/// Sets up a connection that only reads, after [`SESSION`]. A list shows the newest few of many
/// messages, which an index leads to. With the usual cost of random pages PostgreSQL scans the
/// messages of a day in the order of their ids instead: it expects the listed messages to be spread
/// over the day.
pub(super) const READER: &str = "SET random_page_cost = 0.1";

/// Begins the transaction of a verb. Verbs run one at a time, as with SQLite, whichever process
/// they come to: they read, decide and write, and none of them is frequent.
pub(super) const BEGIN_VERB: &str = "BEGIN; SELECT pg_advisory_xact_lock(4825176, 0)";

/// Whether a connection was released inside a transaction: `now()` stands still within a
/// transaction. The statement is run as a simple query, since each message of an extended query has
/// a time of its own.
pub(super) const IN_TRANSACTION: &str =
    "SELECT CASE WHEN now() = statement_timestamp() THEN 0 ELSE 1 END::bigint AS n";

/// The number of the running transaction, null as long as it wrote nothing; and two times: a
/// crash changes one of them, whether the whole server went down or one of its processes.
pub(super) const TRANSACTION: &str = r"
    SELECT pg_current_xact_id_if_assigned()::text AS id,
           concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time())
               AS server";

/// What became of a transaction. A server that crashed forgets the numbers of transactions of which
/// nothing was written, and gives these numbers to others: that the transaction with a number is
/// committed says nothing then.
pub(super) const OUTCOME: &str = r"
    SELECT CASE WHEN server = $2 THEN pg_xact_status(id)
                WHEN id >= pg_snapshot_xmax(pg_current_snapshot()) THEN 'aborted'
                WHEN pg_xact_status(id) = 'committed' THEN 'forgotten'
                ELSE 'aborted' END AS outcome
    FROM (SELECT $1::text::xid8 AS id,
                 concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time())
                     AS server) t";

/// Has a transaction of a distributed database committed in two phases if it wrote on a worker. It
/// wrote on the coordinator too, in tables that Citus doesn't know, so that Citus would commit on
/// the one worker first and on the coordinator afterwards, each by itself. Citus keeps `sessions`
/// on the coordinator alone, and a change of it makes Citus take two phases, even of no row.
pub(super) const TWO_PHASES: &str = "DELETE FROM sessions WHERE id = -1";

/// Raises the time limit of statements: a table may have millions of messages to add up.
pub(super) const TAKE_TIME: &str = "SET LOCAL statement_timeout = '15min'";

/// Lets the commit return before it is on the disk. A crash of the server shortly afterwards
/// undoes such a transaction, as if the server had crashed before it. Whatever is committed after
/// it and waits for the disk waits for it as well, since the server's log is written in order.
pub(super) const COMMIT_WITHOUT_WAITING: &str = "SET LOCAL synchronous_commit = off";

/// Shortens the wait for a lock, for changes of tables that every transaction uses: all other
/// transactions would wait behind such a change. A change that doesn't get its lock is tried again
/// later.
const SHORT_WAIT: &str = "SET LOCAL lock_timeout = '500ms'";

statements! {
    /// Locks a chore until the transaction ends, unless another transaction has it. The number of
    /// an expansion is the batch's id.
    const TRY_LOCK: Sql = Sql::postgres(r"
        SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END::bigint AS mine");
    /// The server's clock. All processes go by this clock, so that their own may differ.
    const CLOCK: Sql = Sql::postgres(r"
        SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint) AS ms");
    /// How long the oldest transaction has been open. A prepared transaction counts, since it keeps
    /// vacuum from its work just as well.
    const OLDEST: Sql = Sql::postgres(r"
        SELECT COALESCE(
            CAST(MAX(EXTRACT(EPOCH FROM clock_timestamp() - at)) * 1000 AS bigint), 0) AS ms
        FROM (
            SELECT xact_start AS at
            FROM pg_stat_activity
            WHERE xact_start IS NOT NULL AND backend_type <> 'autovacuum worker'
            UNION ALL SELECT prepared FROM pg_prepared_xacts) t");
    /// A partition that has ids of a range. The default partition has no bounds.
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
        UNION ALL SELECT message_id FROM message_events_other
        WHERE message_id >= $1 AND message_id < $2
        LIMIT 1");
    const FORGET_UNUSUAL: Sql = Sql::postgres_in_shard(r"
        DELETE FROM unusual_messages WHERE message_id >= $1 AND message_id < $2 AND shard = $3");
}

/// Locks a chore until the transaction ends; false while another transaction has it.
pub(super) async fn try_lock(conn: &mut dyn Connection, chore: i64) -> Result<bool> {
    query(TRY_LOCK, chore)
        .fetch_one(conn, |row| row.get("mine"))
        .await
}

/// The server's clock in unix milliseconds.
pub(super) async fn clock_ms(conn: &mut dyn Connection) -> Result<i64> {
    query(CLOCK, ()).fetch_one(conn, |row| row.get("ms")).await
}

/// How long the oldest transaction has been open, in milliseconds.
pub(super) async fn oldest_ms(conn: &mut dyn Connection) -> Result<i64> {
    query(OLDEST, ()).fetch_one(conn, |row| row.get("ms")).await
}

/// The day as the names of tables have it.
fn day_name(day: i64) -> String {
    let start = Timestamp::from_unix_ms(day * 86_400_000).to_string();
    let date = start
        .split_once('T')
        .map_or(start.as_str(), |(date, _)| date);
    date.replace('-', "")
}

/// A partition that has ids of this range.
async fn partition(conn: &mut dyn Connection, range: Range) -> Result<Option<Partition>> {
    let finding = query(PARTITION, (range.from, range.below));
    let read = |row: &Row<'_>| {
        Ok(Partition {
            suffix: row.get("suffix")?,
            range: Range {
                from: row.get("low")?,
                below: row.get("below")?,
            },
        })
    };
    finding.fetch_optional(conn, read).await
}

/// The partition that has the messages of a day, among others where it is a week's.
pub(super) async fn day_table(conn: &mut dyn Connection, day: i64) -> Result<Option<Partition>> {
    partition(conn, Range::of_days(day, day + 1)).await
}

/// Makes the tables of a day, unless they exist or the default partition has rows of that day; or
/// those of its week, unless this holds for any day of the week.
pub(super) async fn make_day(
    conn: &mut dyn Connection,
    day: i64,
    tables: MessageTables,
) -> Result<bool> {
    let mut made = Partition {
        suffix: day_name(day),
        range: Range::of_days(day, day + 1),
    };
    if !is_free(&mut *conn, made.range).await? {
        return Ok(false);
    }
    if tables == MessageTables::Week {
        // 1970-01-01 was a Thursday.
        let monday = day - (day + 3).rem_euclid(7);
        let week = Range::of_days(monday, monday + 7);
        if is_free(&mut *conn, week).await? {
            made = Partition {
                suffix: format!("{}_week", day_name(monday)),
                range: week,
            };
        }
    }
    make_partition(conn, &made).await?;
    Ok(true)
}

/// Whether these ids have no table, and the default partition has no rows with them.
async fn is_free(conn: &mut dyn Connection, range: Range) -> Result<bool> {
    Ok(partition(&mut *conn, range).await?.is_none()
        && !query(STRAYS, (range.from, range.below)).finds(conn).await?)
}

/// Makes a table of messages and that of their events. They are created on their own and then
/// attached, which keeps nobody from writing.
async fn make_partition(conn: &mut dyn Connection, partition: &Partition) -> Result<()> {
    let Partition { suffix, range } = partition;
    // Each statement is run on its own: Citus hands a text with several statements on as a whole
    // for each of them.
    run(&mut *conn, SHORT_WAIT).await?;
    for (table, options) in [
        ("messages", "WITH (fillfactor = 60)"),
        ("message_events", ""),
    ] {
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

pub(super) async fn drop_tables(conn: &mut dyn Connection, partition: &Partition) -> Result<()> {
    run(&mut *conn, SHORT_WAIT).await?;
    for table in ["messages", "message_events"] {
        run_of(
            &mut *conn,
            format!("DROP TABLE {table}_{}", partition.suffix),
        )
        .await?;
    }
    Ok(())
}

/// Deletes these messages from the table of messages that are unknown, failed, expired or rejected.
pub(super) async fn forget_unusual(conn: &mut dyn Connection, range: Range) -> Result<()> {
    query(FORGET_UNUSUAL, (range.from, range.below))
        .execute(conn)
        .await
        .map(drop)
}
