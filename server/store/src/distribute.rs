//! Distributes the tables over the servers of a Citus cluster, in steps that can be repeated. The
//! statements that need Citus aren't in `statements!`, because no other database can prepare them.

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::copy;
use super::query::{Conn, Row, query, query_of, run, run_of};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

/// The version of Citus that this release is tested with.
pub const TESTED_CITUS: &str = "13.2";

/// The minimum number of Citus shards of a table. It also limits how many workers can have shards
/// later, because a Citus shard moves to another worker as a whole, and the number of Citus shards
/// never changes. Each table of a day has this many parts.
const CITUS_SHARDS_MIN: usize = 8;

/// The tables that every server has a copy of. They are small and rarely written. Commit groups
/// read them, or rows of shards refer to them. The shards of accounts can't be changed once
/// `accounts` is copied.
pub const REFERENCE_TABLES: [&str; 3] = ["accounts", "carriers", "prices"];

/// Lifts the time limits: the more rows a table has, the longer the distribution takes.
const SESSION: &str = r"
    SET statement_timeout = 0;
    SET lock_timeout = 0;
    SET idle_in_transaction_session_timeout = 0;
    SET client_min_messages = warning;
    SET application_name = 'heliograph distribute'";

/// Lets a transaction change the shards of transfers. Nothing else in the ledger changes.
const BEFORE_TRANSFERS: &str = r"
    GRANT UPDATE ON transfers TO CURRENT_USER;
    ALTER TABLE transfers DISABLE TRIGGER USER";
const AFTER_TRANSFERS: &str = r"
    ALTER TABLE transfers ENABLE TRIGGER USER;
    REVOKE UPDATE ON transfers FROM CURRENT_USER";

statements! {
    const CITUS: Sql = Sql::postgres(r"
        SELECT split_part(extversion, '-', 1) AS version
        FROM pg_extension WHERE extname = 'citus'");
    const TRY_LOCK: Sql = Sql::postgres(r"
        SELECT CASE WHEN pg_try_advisory_lock(4825176, 1) THEN 1 ELSE 0 END::bigint AS mine");
    const STATE: Sql = Sql::postgres("SELECT shards, distribution FROM installation WHERE id = 1");
    const SET_STATE: Sql = Sql::postgres(r"
        UPDATE installation SET shards = $1, distribution = $2 WHERE id = 1");
    /// The tables to distribute, `applications` first.
    const TABLES: Sql = Sql::postgres(r"
        SELECT c.relname::text AS name
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'shard'
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT c.relispartition AND c.relname NOT IN ('accounts', 'reference_shards')
        ORDER BY c.relname <> 'applications', c.relname");
    /// A table's partitions, or the table itself if it has none.
    const PARTS: Sql = Sql::postgres(r"
        SELECT relid::regclass::text AS name
        FROM pg_partition_tree($1::text::regclass) WHERE isleaf
        UNION ALL SELECT oid::regclass::text
        FROM pg_class WHERE oid = $1::text::regclass AND relkind = 'r'");
    const TRIGGERS: Sql = Sql::postgres(r"
        SELECT tgname::text AS name
        FROM pg_trigger WHERE tgrelid = $1::text::regclass AND NOT tgisinternal");
    const APPLICATIONS_ELSEWHERE: Sql = Sql::postgres(r"
        SELECT COUNT(*) AS n
        FROM applications a
        JOIN accounts c ON c.id = a.account_id
        WHERE a.shard <> 1 + c.id % $1");
    /// No process looks up these commit groups any more: a database isn't served while it is being
    /// distributed.
    const FORGET_GROUPS: Sql = Sql::postgres("DELETE FROM commit_groups");
}

const IS_COORDINATOR: &str =
    "SELECT groupid::bigint AS id FROM pg_dist_local_group WHERE groupid = 0";
const WORKERS: &str = r"
    SELECT nodename AS host, nodeport::bigint AS port FROM pg_dist_node
    WHERE groupid <> 0 AND noderole = 'primary' AND isactive AND shouldhaveshards";
/// The tables that are distributed or copied to every server. Citus also lists tables that only
/// refer to such a table.
const DISTRIBUTED: &str = r"
    SELECT logicalrelid::text AS name
    FROM pg_dist_partition WHERE partmethod = 'h' OR repmodel = 't'";
const CALLS_GROUPS: &str = r"
    SELECT objid::bigint AS id FROM pg_dist_object
    WHERE classid = 'pg_proc'::regclass AND objid = 'run_commit_group'::regproc
      AND distribution_argument_index IS NOT NULL";
const COPY_GROUP: &str = include_str!("distribute_commit_group.sql");
const SHARDS: &str = r"
    SELECT shard, p.shardid AS citus_shard, nodename AS host, nodeport::bigint AS port
    FROM generate_series(1::bigint, $1::bigint) shard
    JOIN pg_dist_shard_placement p
      ON p.shardid = get_shard_id_for_distribution_column('applications', shard)
    ORDER BY shard";

/// The progress of a database's distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All tables are on one server.
    None,
    /// Tables may be on one server or on several. Rows may be in their old shards or in the new
    /// ones.
    Begun,
    Done,
}

/// The host and the port of a worker.
pub type Address = (String, i64);

pub struct ShardPlace {
    pub shard: i64,
    pub citus_shard: i64,
    pub worker: Address,
}

/// Returns the version of the Citus extension, or `None` if the database doesn't have it.
pub async fn citus(conn: Conn<'_>) -> Result<Option<String>> {
    query(CITUS, ()).fetch_optional(conn, |row| row.get("version")).await
}

/// Returns whether a connection is to the coordinator of a cluster.
pub async fn is_coordinator(conn: Conn<'_>) -> Result<bool> {
    query_of(IS_COORDINATOR.to_owned(), ()).finds(conn).await
}

/// Returns the workers that can have shards.
pub async fn workers(conn: Conn<'_>) -> Result<Vec<Address>> {
    query_of(WORKERS.to_owned(), ()).fetch_all(conn, address).await
}

fn address(row: &Row<'_>) -> Result<Address> {
    Ok((row.get("host")?, row.get("port")?))
}

/// Takes the lock of the distribution, which the connection holds until it is closed. Returns false
/// if another connection holds the lock.
pub async fn lock(conn: Conn<'_>) -> Result<bool> {
    run(&mut *conn, SESSION).await?;
    query(TRY_LOCK, ()).fetch_one(conn, |row| row.get("mine")).await
}

/// Returns the number of shards, and the progress of the distribution.
pub async fn state(conn: Conn<'_>) -> Result<(i64, Distribution)> {
    let read = |row: &Row<'_>| {
        let state: Option<String> = row.get("distribution")?;
        let state = match state.as_deref() {
            None => Distribution::None,
            Some("done") => Distribution::Done,
            Some(_) => Distribution::Begun,
        };
        Ok((row.get("shards")?, state))
    };
    query(STATE, ()).fetch_one(conn, read).await
}

/// Stores the number of shards, which decides the shards of new accounts. Moves the existing
/// accounts to their new shards.
pub async fn begin(conn: Conn<'_>, shards: i64) -> Result<()> {
    query(SET_STATE, (shards, "begun")).execute(&mut *conn).await?;
    move_rows_of(conn, "accounts", "accounts").await.map(drop)
}

pub async fn end(conn: Conn<'_>, shards: i64) -> Result<()> {
    query(SET_STATE, (shards, "done")).execute(conn).await.map(drop)
}

/// Returns how many applications would move to another shard if there were this many shards.
pub async fn applications_elsewhere(conn: Conn<'_>, shards: i64) -> Result<i64> {
    query(APPLICATIONS_ELSEWHERE, shards).fetch_one(conn, |row| row.get("n")).await
}

/// Returns the number of Citus shards of each table in a cluster with this many workers.
pub fn citus_shards(workers: usize) -> usize {
    workers.max(CITUS_SHARDS_MIN)
}

/// Returns the tables to distribute by shard, `applications` first.
pub async fn tables(conn: Conn<'_>) -> Result<Vec<String>> {
    query(TABLES, ()).fetch_all(conn, |row| row.get("name")).await
}

/// Returns the tables that Citus has already distributed or copied to every server.
pub async fn distributed(conn: Conn<'_>) -> Result<Vec<String>> {
    query_of(DISTRIBUTED.to_owned(), ()).fetch_all(conn, |row| row.get("name")).await
}

/// Returns the parts of a table. Rows are moved one part at a time.
pub async fn parts(conn: Conn<'_>, table: &str) -> Result<Vec<String>> {
    query(PARTS, table).fetch_all(conn, |row| row.get("name")).await
}

/// Moves the rows of a part of a table to the shard of their account. Returns how many rows were in
/// another shard.
pub async fn move_rows(conn: &mut PgConnection, table: &str, part: &str) -> Result<u64> {
    let mut tx = conn.begin().await?;
    let moved = match table {
        "commit_groups" => {
            query(FORGET_GROUPS, ()).execute(&mut tx).await?;
            0
        }
        "transfers" => {
            run(&mut tx, BEFORE_TRANSFERS).await?;
            let moved = move_rows_of(&mut tx, table, part).await?;
            run(&mut tx, AFTER_TRANSFERS).await?;
            moved
        }
        _ => move_rows_of(&mut tx, table, part).await?,
    };
    tx.commit().await?;
    Ok(moved)
}

async fn move_rows_of(conn: Conn<'_>, table: &str, part: &str) -> Result<u64> {
    let Some((shard, join)) = shard_of(table) else {
        return Ok(0);
    };
    let moving = format!(
        "UPDATE {part} p SET shard = n.shard \
         FROM (SELECT r.ctid AS place, {shard} AS shard FROM {part} r {join}) n \
         WHERE n.place = p.ctid AND p.shard <> n.shard"
    );
    query_of(moving, ()).execute(conn).await
}

/// Like [`copy::shard_of`], but includes the tables that SQLite doesn't have.
fn shard_of(table: &str) -> Option<(&'static str, &'static str)> {
    match table {
        "reference_shards" => Some(("a.shard", "JOIN applications a ON a.id = r.application_id")),
        "spool_chunks" => Some(("b.shard", "JOIN batches b ON b.spool = r.spool")),
        "unusual_messages" => copy::shard_of("messages"),
        _ => copy::shard_of(table),
    }
}

/// Copies a table to every server. Later writes to the table change every copy.
pub async fn copy_to_all(conn: Conn<'_>, table: &str) -> Result<()> {
    run_of(conn, format!("SELECT create_reference_table('{table}')")).await
}

/// Distributes a table by shard. Drops its triggers, because a distributed table can't have any.
pub async fn distribute(conn: Conn<'_>, table: &str, citus_shards: usize) -> Result<()> {
    let triggers: Vec<String> =
        query(TRIGGERS, table).fetch_all(&mut *conn, |row| row.get("name")).await?;
    let drops = triggers.iter();
    let drops = drops.map(|trigger| format!("DROP TRIGGER {trigger} ON {table}; "));
    let drops = drops.collect::<Vec<_>>().concat();
    let beside = match table {
        "applications" => format!("shard_count => {citus_shards}, colocate_with => 'none'"),
        _ => "colocate_with => 'applications'".to_owned(),
    };
    let distribute = format!("SELECT create_distributed_table('{table}', 'shard', {beside})");
    run_of(conn, drops + &distribute).await
}

/// Deletes the coordinator's own copy of a table's rows, which are now on other servers.
pub async fn remove_kept(conn: Conn<'_>, table: &str) -> Result<()> {
    let removing = format!("SELECT truncate_local_data_after_distributing_table('{table}')");
    let removing = match table {
        "transfers" => format!(
            "GRANT TRUNCATE ON transfers TO CURRENT_USER; {removing}; \
             REVOKE TRUNCATE ON transfers FROM CURRENT_USER"
        ),
        _ => removing,
    };
    run_of(conn, removing).await
}

/// Makes each commit group run on the server that has its shard. Returns false if commit groups
/// already do.
pub async fn distribute_commit_groups(conn: Conn<'_>) -> Result<bool> {
    if query_of(CALLS_GROUPS.to_owned(), ()).finds(&mut *conn).await? {
        return Ok(false);
    }
    run(conn, COPY_GROUP).await?;
    Ok(true)
}

pub async fn places(conn: Conn<'_>, shards: i64) -> Result<Vec<ShardPlace>> {
    let read =
        |row: &Row<'_>| from_row!(row => ShardPlace { shard, citus_shard, worker: address(row)? });
    query_of(SHARDS.to_owned(), shards).fetch_all(conn, read).await
}

/// Moves a Citus shard of `applications` to another worker, together with the colocated Citus
/// shards of other tables.
pub async fn move_citus_shard(
    conn: Conn<'_>,
    citus_shard: i64,
    (from, from_port): &Address,
    (to, to_port): &Address,
) -> Result<()> {
    let moving = format!(
        "SELECT citus_move_shard_placement({citus_shard}, '{from}', {from_port}, '{to}', {to_port}, \
         'block_writes')"
    );
    run_of(conn, moving).await
}
