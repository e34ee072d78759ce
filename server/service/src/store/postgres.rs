//! A PostgreSQL server: how connections and transactions are set up, and the tables by day.
//!
//! Transactions lock rows in one order: messages, the queue, segments, applications, counts; the
//! rows of each by key. A receipt for a message that is being claimed, or whose lease ends, can't
//! keep to this order: PostgreSQL ends one of the two transactions, which is then repeated.
//! Statements name a least and a greatest id of messages, so that only the partitions of their days
//! are looked at.

use domain::Timestamp;

use super::history::Range;
use super::query::{Connection, query, run, run_of};
use super::sql::{Sql, statements};
use crate::error::Result;
use domain::ids::id_of_day;

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

/// Sets up the connection of turns, after [`SESSION`]. Their statements are planned once for any
/// parameters, except those over messages, which are planned at each execution anyway. Such plans
/// must hold when a table has grown: without sequential scans, which suit an empty table.
/// Where Citus runs a turn on another server, it has to know the home as it plans the call, and the
/// other server's session is set up like this by `run_turn` itself.
pub(super) const TURN_SESSION: &str = r"
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

/// Whether a connection was given back inside a transaction: `now()` stands still within a
/// transaction. The statement is run as a simple query, since each message of an extended query has
/// a time of its own.
pub(super) const IN_TRANSACTION: &str =
    "SELECT CASE WHEN now() = statement_timestamp() THEN 0 ELSE 1 END::bigint AS n";

/// The number of the running transaction, null as long as it wrote nothing; and two moments: a
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

/// Raises the time limit of statements: a day may have millions of messages to add up.
pub(super) const TAKE_TIME: &str = "SET LOCAL statement_timeout = '15min'";

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
    const HAS_TABLE: Sql = Sql::postgres(r"
        SELECT CASE WHEN to_regclass($1) IS NULL THEN 0 ELSE 1 END::bigint AS n");
    const STRAYS: Sql = Sql::postgres(r"
        SELECT id
        FROM messages_other WHERE id >= $1 AND id < $2
        UNION ALL SELECT message_id FROM message_events_other
        WHERE message_id >= $1 AND message_id < $2
        LIMIT 1");
    const FORGET_UNUSUAL: Sql = Sql::postgres_in_home(r"
        DELETE FROM unusual_messages WHERE message_id >= $1 AND message_id < $2 AND home = $3");
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

/// The suffix of a day's tables.
pub(super) fn day_name(day: i64) -> String {
    let start = Timestamp::from_unix_ms(day * 86_400_000).to_string();
    let date = start
        .split_once('T')
        .map_or(start.as_str(), |(date, _)| date);
    date.replace('-', "")
}

/// Whether a day has tables.
pub(super) async fn has_day(conn: &mut dyn Connection, name: &str) -> Result<bool> {
    let finding = query(HAS_TABLE, format!("messages_{name}"));
    finding.fetch_one(conn, |row| row.get("n")).await
}

/// Makes the tables of a day, unless they exist or the default partition has rows of that day. The
/// tables are created on their own and then attached, which keeps nobody from writing. The statements
/// are sent one by one: Citus refuses to change a distributed table by one of several.
pub(super) async fn make_day(conn: &mut dyn Connection, day: i64) -> Result<bool> {
    let name = day_name(day);
    let (from, below) = (id_of_day(day), id_of_day(day + 1));
    if has_day(&mut *conn, &name).await? || has_strays(&mut *conn, from, below).await? {
        return Ok(false);
    }
    run(&mut *conn, SHORT_WAIT).await?;
    for (table, options) in [
        ("messages", "WITH (fillfactor = 60)"),
        ("message_events", ""),
    ] {
        let create = format!(
            "CREATE TABLE {table}_{name} \
             (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) {options}"
        );
        let attach = format!(
            "ALTER TABLE {table} ATTACH PARTITION {table}_{name} \
             FOR VALUES FROM ({from}) TO ({below})"
        );
        run_of(&mut *conn, create).await?;
        run_of(&mut *conn, attach).await?;
    }
    Ok(true)
}

/// Whether the default partition, for all days without tables, has rows with these ids.
async fn has_strays(conn: &mut dyn Connection, from: i64, below: i64) -> Result<bool> {
    query(STRAYS, (from, below)).finds(conn).await
}

pub(super) async fn drop_day(conn: &mut dyn Connection, name: &str) -> Result<()> {
    run(&mut *conn, SHORT_WAIT).await?;
    for table in ["messages", "message_events"] {
        run_of(&mut *conn, format!("DROP TABLE {table}_{name}")).await?;
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
