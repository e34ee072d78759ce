//! Statements in PostgreSQL's own words.
//!
//! Rows go both ways in one JSON value, as with SQLite. A batch of 512 messages comes in within 1.1
//! ms as `jsonb` and within 0.8 ms as an array for each column, which would need a second way to
//! write every parameter.
//!
//! Statements over what grows with traffic name the application or the carrier, so that a
//! PostgreSQL that is spread over machines can go to the right one: the applications of a
//! transaction are their last parameter.
//!
//! Whoever writes locks in one order: messages, the queue, segments, applications, counts; each by
//! its key. What can't keep to it is a receipt for a message that is being claimed or whose lease
//! ends: PostgreSQL ends one of both, and it is tried again. Messages are found between a least and
//! a greatest id, so that only their days' partitions are looked at.

use std::fmt::Write as _;

use domain::Timestamp;

use super::dialect::Batch;
use super::history::Range;
use super::query::{Connection, query, run_of};
use crate::error::Result;
use domain::ids::id_of_day;

/// Sets up a connection. A statement that takes longer than this is a fault; a transaction that is
/// left open, by a process that was stopped, would keep others from its rows and vacuum from its
/// work. Plans are made each time: one for all cases would look at every day's table.
pub(super) const SESSION: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '5s'; SET default_transaction_isolation = 'read committed'; \
    SET synchronous_commit = on; SET plan_cache_mode = force_custom_plan; SET TIME ZONE 'UTC'; SET client_min_messages = warning; SET application_name = 'heliograph'";

/// Sets up a transaction that recounts all rows. That takes its time; and tables that grew since
/// PostgreSQL looked at them last, which it takes for small, must not be joined row by row.
pub(super) const RECOUNT: &str = "SET LOCAL statement_timeout = 0; SET LOCAL enable_nestloop = off; SET LOCAL random_page_cost = 4";

/// Sets up a connection that reads, besides. A list wants the newest few of many: by the index that
/// leads to them alone. At the usual cost of pages out of order PostgreSQL goes through all of a
/// day in its order, since it takes what is asked for as spread over the day, and finds it at the
/// day's other end.
pub(super) const READER: &str = "SET random_page_cost = 0.1";

/// Begins a transaction of a verb that people call. These run one at a time, as with SQLite,
/// whichever process they come to: they read, decide and write, and none of them is frequent.
pub(super) const BEGIN_VERB: &str = "BEGIN; SELECT pg_advisory_xact_lock(4825176, 0)";

/// Whether a connection was given back inside a transaction: the time stands still within one. As a
/// simple query, since each message of an extended one has a time of its own.
pub(super) const IN_TRANSACTION: &str =
    "SELECT CASE WHEN now() = statement_timestamp() THEN 0 ELSE 1 END::bigint AS n";

/// Takes a chore until the transaction ends, unless another one has it. Batches' ids stand for
/// their expansion.
pub(super) const TRY_LOCK: &str =
    "SELECT CASE WHEN pg_try_advisory_xact_lock($1) THEN 1 ELSE 0 END::bigint AS mine";

/// The server's clock. The processes go by it, so that theirs may differ.
pub(super) const CLOCK: &str =
    "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint) AS ms";

/// How long the oldest transaction has been open; a prepared one keeps vacuum from its work just as
/// well.
pub(super) const OLDEST: &str = "SELECT COALESCE(CAST(MAX(EXTRACT(EPOCH FROM clock_timestamp() - at)) * 1000 AS bigint), \
    0) AS ms FROM (SELECT xact_start AS at FROM pg_stat_activity WHERE xact_start IS NOT NULL \
                   AND backend_type <> 'autovacuum worker' \
                   UNION ALL SELECT prepared FROM pg_prepared_xacts) t";

/// The name of the running transaction, null as long as it wrote nothing; and since when the server
/// has not crashed: a crash changes one of these moments, whether the whole server went down or one
/// of its processes.
pub(super) const TRANSACTION: &str = "SELECT pg_current_xact_id_if_assigned()::text AS id, \
    concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time()) AS server";

/// Begins a transaction and gives it its number at once.
pub(super) const BEGIN_NAMED: &str = "BEGIN; SELECT pg_current_xact_id()::text AS id, \
    concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time()) AS server";

/// What became of a transaction. A server that crashed forgets the numbers of transactions of which
/// nothing was written, and gives them again: that one of this number is committed says nothing
/// then.
pub(super) const OUTCOME: &str = "\
    SELECT CASE WHEN server = $2 THEN pg_xact_status(id) \
                WHEN id >= pg_snapshot_xmax(pg_current_snapshot()) THEN 'aborted' \
                WHEN pg_xact_status(id) = 'committed' THEN 'forgotten' \
                ELSE 'aborted' END AS outcome \
    FROM (SELECT $1::text::xid8 AS id, \
                 concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time()) AS server) t";

/// A day may have millions of messages to add up.
pub(super) const TAKE_TIME: &str = "SET LOCAL statement_timeout = '15min'";

/// For changes of tables that everybody uses: who can't have them soon tries again later, instead
/// of keeping everybody waiting behind it.
const SHORT_WAIT: &str = "SET LOCAL lock_timeout = '500ms'";

/// What the names of a day's tables end in.
pub(super) fn day_name(day: i64) -> String {
    let start = Timestamp::from_unix_ms(day * 86_400_000).to_string();
    let date = start
        .split_once('T')
        .map_or(start.as_str(), |(date, _)| date);
    date.replace('-', "")
}

/// Whether a day has tables.
pub(super) async fn has_day(conn: &mut dyn Connection, name: &str) -> Result<bool> {
    let row = query("SELECT CASE WHEN to_regclass($1) IS NULL THEN 0 ELSE 1 END::bigint AS n")
        .bind(format!("messages_{name}"))
        .fetch_one(conn)
        .await?;
    Ok(row.get::<i64>("n")? == 1)
}

/// Makes the tables of a day, unless they are there, or rows of that day are in the table for all
/// others. They are made beside and then attached, which keeps nobody from writing.
pub(super) async fn make_day(conn: &mut dyn Connection, day: i64) -> Result<bool> {
    let name = day_name(day);
    let (from, below) = (id_of_day(day), id_of_day(day + 1));
    if has_day(&mut *conn, &name).await? || has_strays(&mut *conn, from, below).await? {
        return Ok(false);
    }
    let mut statements = SHORT_WAIT.to_owned();
    for (table, options) in [
        ("messages", "WITH (fillfactor = 60)"),
        ("message_events", ""),
    ] {
        // Writing to a String can't fail.
        let _ = write!(
            statements,
            "; CREATE TABLE {table}_{name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) {options}; \
             ALTER TABLE {table} ATTACH PARTITION {table}_{name} FOR VALUES FROM ({from}) TO ({below})"
        );
    }
    run_of(conn, statements).await?;
    Ok(true)
}

/// Whether rows of these ids are in the table for all days without one.
async fn has_strays(conn: &mut dyn Connection, from: i64, below: i64) -> Result<bool> {
    let found = query(
        "SELECT id FROM messages_other WHERE id >= $1 AND id < $2 \
         UNION ALL SELECT message_id FROM message_events_other WHERE message_id >= $1 AND message_id < $2 LIMIT 1",
    );
    let found = found.bind(from).bind(below);
    Ok(found.fetch_optional(conn).await?.is_some())
}

pub(super) async fn drop_day(conn: &mut dyn Connection, name: &str) -> Result<()> {
    let statements =
        format!("{SHORT_WAIT}; DROP TABLE messages_{name}; DROP TABLE message_events_{name}");
    run_of(conn, statements).await?;
    Ok(())
}

/// Forgets which of these messages are unknown, failed, expired or were rejected.
pub(super) async fn forget_unusual(conn: &mut dyn Connection, range: Range) -> Result<()> {
    query("DELETE FROM unusual_messages WHERE message_id >= $1 AND message_id < $2")
        .bind(range.from)
        .bind(range.below)
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) const BATCH: Batch = Batch {
    lock_applications: Some(
        "\
        SELECT COUNT(*) AS n FROM ( \
            SELECT 1 FROM applications \
            WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
               OR reference = ANY (ARRAY(SELECT value FROM jsonb_array_elements_text($2::text::jsonb))) \
            ORDER BY id FOR UPDATE) a",
    ),
    // Locked until the commit: who charges decides by what stands here.
    applications_by_reference: "\
        SELECT id, reference, category, status, live_hash, test_hash, sender_state, sender_name, \
               balance, test_balance, test_day \
        FROM applications \
        WHERE reference = ANY (ARRAY(SELECT value FROM jsonb_array_elements_text($1::text::jsonb))) \
        ORDER BY id FOR UPDATE",
    charge_applications: "\
        UPDATE applications SET balance = (r.value ->> 2)::bigint, test_balance = (r.value ->> 3)::bigint, \
               test_day = (r.value ->> 4)::bigint \
        FROM jsonb_array_elements($1::text::jsonb) AS r \
        WHERE applications.id = (r.value ->> 0)::bigint AND applications.balance = (r.value ->> 1)::bigint \
          AND applications.status = r.value ->> 5 AND applications.live_hash = r.value ->> 6 \
          AND applications.test_hash = r.value ->> 7 AND applications.sender_state = r.value ->> 8 \
          AND applications.test_balance = (r.value ->> 9)::bigint",
    insert_messages: "\
        INSERT INTO messages (id, application_id, test, number, kind, sender, body, requestid, pages, \
                              segments, unit_price, cost, created_at, sending_at, status, released) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint, value ->> 3, value ->> 4, \
               value ->> 5, value ->> 6, value ->> 7, (value ->> 8)::bigint, (value ->> 9)::bigint, \
               (value ->> 10)::bigint, (value ->> 11)::bigint, (value ->> 12)::bigint, (value ->> 13)::bigint, \
               (value ->> 14)::bigint, 0 \
        FROM jsonb_array_elements($1::text::jsonb)",
    // In the order of the parameter, which is that of the balances.
    insert_transfers: "\
        INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id, \
                               message_id, balance_after, batch_id, created_at) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint, (value ->> 3)::bigint, \
               (value ->> 4)::bigint, (value ->> 5)::bigint, (value ->> 6)::bigint, (value ->> 7)::bigint, $2 \
        FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS r (value, place) ORDER BY place",
    insert_queue: "\
        INSERT INTO queue (message_id, application_id, carrier, held, bulk, due_at, lease_token, attempts) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, value ->> 2, $3, $2, (value ->> 3)::bigint, \
               (value ->> 4)::bigint, 0 \
        FROM jsonb_array_elements($1::text::jsonb)",
    // The rows' ids follow each other as in `ids::nth_id`, and carry the moment.
    expand_messages: "\
        INSERT INTO messages (id, application_id, test, number, kind, sender, body, requestid, batch_id, \
                              pages, segments, unit_price, cost, created_at, status, released) \
        SELECT id, $2, $3, digits, kind, $4, body, $5, $6, pages, segments, \
               price, pages * price, (id >> 21) + $12, 0, 0 \
        FROM (SELECT $1 + ((($13 + place - 1) >> 11) << 21) + (($13 + place - 1) & 2047) AS id, \
                     value ->> 0 AS digits, \
                     CASE value ->> 1 WHEN '1' THEN 'local' ELSE 'international' END AS kind, \
                     CASE value ->> 1 WHEN '1' THEN $7::bigint ELSE $8::bigint END AS price, \
                     COALESCE(value ->> 2, $9) AS body, COALESCE((value ->> 3)::bigint, $10) AS pages, \
                     COALESCE((value ->> 4)::bigint, $11) AS segments \
              FROM jsonb_array_elements($14::text::jsonb) WITH ORDINALITY AS r (value, place)) m",
    put_aside: "\
        UPDATE queue SET held = 1 FROM jsonb_array_elements_text($1::text::jsonb) AS r \
        WHERE message_id = r.value::bigint AND application_id = ANY ($2::text::bigint[]) \
          AND application_id IN (SELECT id FROM applications WHERE status = 'Suspended')",
    kept_answers: "\
        SELECT i.application_id, i.test, i.key, i.digest, i.answer \
        FROM jsonb_array_elements($1::text::jsonb) AS r JOIN idempotency i \
          ON i.application_id = (r.value ->> 0)::bigint AND i.test = (r.value ->> 1)::bigint AND i.key = r.value ->> 2 \
        WHERE i.created_at > $2",
    keep_answers: "\
        INSERT INTO idempotency (application_id, test, key, digest, answer, created_at) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, value ->> 2, value ->> 3, value ->> 4, $2 \
        FROM jsonb_array_elements($1::text::jsonb) \
        ON CONFLICT (application_id, test, key) DO UPDATE \
        SET digest = excluded.digest, answer = excluded.answer, created_at = excluded.created_at",
    lock_messages: Some(
        "\
        SELECT COUNT(*) AS n FROM ( \
            SELECT 1 FROM messages \
            WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
              AND id BETWEEN $2 AND $3 AND application_id = ANY ($4::text::bigint[]) ORDER BY id FOR UPDATE) m",
    ),
    open_messages: "\
        SELECT COALESCE(json_agg(json_build_array(id, application_id, test, batch_id, created_at, status, cost)), \
                        '[]')::text AS found \
        FROM (SELECT id, application_id, test, batch_id, created_at, status, cost FROM messages \
              WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
                AND id BETWEEN $2 AND $3 AND application_id = ANY ($4::text::bigint[]) \
                AND status < 4 ORDER BY id FOR UPDATE) m",
    // Rows are looked up in an object by id rather than joined: of ids that are newer than its
    // statistics PostgreSQL expects one, and would compare each message with each row.
    finish_messages: "\
        WITH r AS MATERIALIZED (SELECT jsonb_object_agg(value ->> 0, value) AS by_id \
                                FROM jsonb_array_elements($1::text::jsonb)) \
        UPDATE messages SET status = (by_id -> id::text ->> 1)::bigint, error = by_id -> id::text ->> 2, final_at = $2, \
               submitted_at = CASE WHEN by_id -> id::text ->> 4 = '1' THEN COALESCE(submitted_at, $2) ELSE submitted_at END, \
               released = CASE WHEN by_id -> id::text ->> 3 = '1' THEN cost ELSE 0 END \
        FROM r \
        WHERE id = ANY (ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb))) \
          AND id BETWEEN $3 AND $4 AND application_id = ANY ($5::text::bigint[]) \
           AND status < 4",
    submit_messages: "\
        WITH r AS MATERIALIZED (SELECT jsonb_object_agg(value ->> 0, value) AS by_id \
                                FROM jsonb_array_elements($1::text::jsonb)) \
        UPDATE messages SET status = 3, carrier = $2, \
               segments = COALESCE((by_id -> id::text ->> 1)::bigint, segments), submitted_at = COALESCE(submitted_at, $3) \
        FROM r \
        WHERE id = ANY (ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb))) \
          AND id BETWEEN $4 AND $5 AND application_id = ANY ($6::text::bigint[]) \
           AND status < 3",
    begin_messages: "\
        WITH r AS MATERIALIZED (SELECT jsonb_object_agg(value ->> 0, value) AS by_id \
                                FROM jsonb_array_elements($1::text::jsonb)) \
        UPDATE messages SET carrier = $2, status = CASE by_id -> id::text ->> 1 WHEN '1' THEN 2 ELSE status END, \
               submitted_at = CASE by_id -> id::text ->> 2 WHEN '1' THEN COALESCE(submitted_at, $3) ELSE submitted_at END \
        FROM r \
        WHERE id = ANY (ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb))) \
          AND id BETWEEN $4 AND $5 AND application_id = ANY ($6::text::bigint[]) \
           AND status < 3",
    start_messages: "\
        UPDATE messages SET status = 1, sending_at = $2 \
        WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
          AND id BETWEEN $3 AND $4 AND application_id = ANY ($5::text::bigint[]) AND status < 2",
    // What another process is about to claim is passed over. An application's row may have left
    // many old versions behind: it is looked up once, not for each message.
    due: "\
        WITH drained AS (SELECT 1 FROM carriers WHERE name = $1 AND drained_at IS NOT NULL), \
        singles AS MATERIALIZED ( \
            SELECT message_id, application_id, begun, due_at, 0 AS bulk FROM queue \
            WHERE carrier = $1 AND held = 0 AND bulk = 0 AND due_at BETWEEN $6 AND $2 AND message_id >= $3 \
              AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained) \
            ORDER BY due_at, message_id LIMIT $4 FOR UPDATE SKIP LOCKED), \
        of_batches AS MATERIALIZED ( \
            SELECT message_id, application_id, begun, due_at, 1 AS bulk FROM queue \
            WHERE carrier = $1 AND held = 0 AND bulk = 1 AND due_at BETWEEN $7 AND $2 AND message_id >= $3 \
              AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained) \
            ORDER BY due_at, message_id LIMIT $5 - (SELECT COUNT(*) FROM singles) FOR UPDATE SKIP LOCKED), \
        due AS (SELECT * FROM singles UNION ALL SELECT * FROM of_batches), \
        suspended AS MATERIALIZED ( \
            SELECT id FROM applications \
            WHERE id = ANY (ARRAY(SELECT DISTINCT application_id FROM due)) AND status = 'Suspended') \
        SELECT COALESCE(json_agg(json_build_array(message_id, begun, \
                   CASE WHEN application_id IN (SELECT id FROM suspended) THEN 1 ELSE 0 END, due_at, bulk, \
                   application_id)), \
               '[]')::text AS found FROM due",
    claim: "\
        UPDATE queue SET due_at = $2, lease_token = $3 \
        WHERE message_id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
          AND application_id = ANY ($4::text::bigint[])",
    claimed_messages: "\
        SELECT COALESCE(json_agg(json_build_array( \
                   json_build_array(id, application_id, test, batch_id, created_at, status, cost), \
                   number, kind, sender, body)), '[]')::text AS found \
        FROM (SELECT * FROM messages \
              WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
                AND id BETWEEN $2 AND $3 AND application_id = ANY ($4::text::bigint[]) \
                AND status < 3 \
              ORDER BY id FOR UPDATE) m",
    leased: "\
        SELECT COALESCE(json_agg(json_build_array(q.message_id, q.begun, q.attempts, \
                                 CASE a.lost_answer WHEN 'resend' THEN 1 ELSE 0 END)), '[]')::text AS found \
        FROM (SELECT q.message_id, q.begun, q.attempts, q.application_id \
              FROM jsonb_array_elements($1::text::jsonb) AS r \
              JOIN queue q ON q.message_id = (r.value ->> 0)::bigint AND q.lease_token = (r.value ->> 1)::bigint \
              WHERE q.application_id = ANY ($2::text::bigint[]) \
              ORDER BY q.message_id FOR UPDATE OF q) q \
        JOIN applications a ON a.id = q.application_id",
    ended_leases: "\
        SELECT q.message_id, q.carrier, q.begun, q.application_id, m.segments, a.lost_answer \
        FROM queue q JOIN messages m ON m.id = q.message_id JOIN applications a ON a.id = q.application_id \
        WHERE q.lease_token <> 0 AND q.due_at <= $1 AND m.id >= $3 LIMIT $2 FOR UPDATE OF q SKIP LOCKED",
    unclaimed: "\
        SELECT message_id, application_id FROM queue WHERE carrier = $1 AND message_id > $2 AND lease_token = 0 \
          AND begun = 0 ORDER BY message_id LIMIT $3 FOR UPDATE SKIP LOCKED",
    unrouted: "\
        SELECT message_id, application_id FROM queue WHERE carrier = $1 AND lease_token = 0 AND begun = 0 LIMIT $2 \
        FOR UPDATE SKIP LOCKED",
    drop_queued: "\
        DELETE FROM queue \
        WHERE message_id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
          AND application_id = ANY ($2::text::bigint[])",
    requeue: "\
        UPDATE queue SET due_at = (r.value ->> 1)::bigint, attempts = attempts + (r.value ->> 2)::bigint, \
               begun = (r.value ->> 3)::bigint, carrier = COALESCE(r.value ->> 4, carrier), \
               refused_by = refused_by || (r.value ->> 5), lease_token = 0 \
        FROM jsonb_array_elements($1::text::jsonb) AS r \
        WHERE queue.message_id = (r.value ->> 0)::bigint AND queue.application_id = ANY ($2::text::bigint[])",
    insert_segments: "\
        INSERT INTO segments (message_id, segment, segments, application_id, carrier, carrier_message_id, status, \
                              submits, submitted_at) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint, (value ->> 3)::bigint, $2, \
               value ->> 4, (value ->> 5)::bigint, 1, $3 \
        FROM jsonb_array_elements($1::text::jsonb) \
        ON CONFLICT (message_id, segment) DO UPDATE \
        SET carrier_message_id = COALESCE(excluded.carrier_message_id, segments.carrier_message_id), \
            status = CASE segments.status WHEN 2 THEN excluded.status ELSE segments.status END, submits = 2, \
            submitted_at = excluded.submitted_at",
    name_segments: "\
        INSERT INTO segments (message_id, segment, segments, application_id, carrier, carrier_message_id, status, \
                              submits, submitted_at) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint, (value ->> 3)::bigint, $2, \
               value ->> 4, 2, 1, $3 \
        FROM jsonb_array_elements($1::text::jsonb) \
        ON CONFLICT (message_id, segment) DO UPDATE \
        SET carrier_message_id = COALESCE(segments.carrier_message_id, excluded.carrier_message_id)",
    segments_of: "\
        SELECT COALESCE(json_agg(json_build_array(message_id, segment, segments, status, error, submits, \
                   CASE WHEN carrier_message_id IS NULL THEN 0 ELSE 1 END)), '[]')::text AS found \
        FROM segments \
        WHERE message_id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
          AND application_id = ANY ($2::text::bigint[])",
    segments_named: "\
        SELECT COALESCE(json_agg(json_build_array(r.place - 1, s.message_id, s.segment, s.segments, \
                   s.application_id, s.status) ORDER BY s.message_id), '[]')::text AS found \
        FROM jsonb_array_elements_text($1::text::jsonb) WITH ORDINALITY AS r (value, place) \
        JOIN segments s ON s.carrier = $2 AND s.carrier_message_id = r.value",
    unanswered_segments: "\
        SELECT COALESCE(json_agg(json_build_array(message_id, segment, segments, application_id, submitted_at, \
                   sender, address)), '[]')::text AS found \
        FROM (SELECT s.message_id, s.segment, s.segments, s.application_id, s.submitted_at, m.sender, \
                     CASE m.kind WHEN 'local' THEN $3 || m.number ELSE m.number END AS address \
              FROM segments s JOIN messages m ON m.id = s.message_id AND m.id >= $4 \
              WHERE s.carrier = $2 AND s.status = 2 AND s.carrier_message_id IS NULL) u \
        WHERE address IN (SELECT value FROM jsonb_array_elements_text($1::text::jsonb))",
    finish_segments: "\
        UPDATE segments SET status = (r.value ->> 2)::bigint, error = r.value ->> 3 FROM jsonb_array_elements($1::text::jsonb) AS r \
        WHERE segments.message_id = (r.value ->> 0)::bigint AND segments.segment = (r.value ->> 1)::bigint \
          AND segments.application_id = ANY ($2::text::bigint[]) AND status < 4",
    park_receipts: "\
        INSERT INTO parked_receipts (carrier, carrier_message_id, status, error, received_at) \
        SELECT $2, value ->> 0, (value ->> 1)::bigint, value ->> 2, $3 FROM jsonb_array_elements($1::text::jsonb)",
    parked_receipts: "\
        SELECT COALESCE(json_agg(json_build_array(p.id, p.carrier_message_id, p.status, p.error) ORDER BY p.id), \
                        '[]')::text AS found \
        FROM jsonb_array_elements_text($1::text::jsonb) AS r JOIN parked_receipts p \
          ON p.carrier = $2 AND p.carrier_message_id = r.value AND p.received_at > $3",
    drop_parked: "\
        DELETE FROM parked_receipts \
        WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) AND carrier = $2",
    routed_messages: "\
        SELECT COALESCE(json_agg(json_build_array(q.message_id, m.number, m.kind, m.sender, a.reference, \
                   q.refused_by)), '[]')::text AS found \
        FROM queue q JOIN messages m ON m.id = q.message_id JOIN applications a ON a.id = q.application_id \
        WHERE q.message_id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
          AND q.application_id = ANY ($4::text::bigint[]) AND m.application_id = ANY ($4::text::bigint[]) \
          AND m.id BETWEEN $2 AND $3 AND m.test = 0",
    move_queued: "\
        UPDATE queue SET carrier = r.value ->> 1, due_at = GREATEST(due_at, $2) FROM jsonb_array_elements($1::text::jsonb) AS r \
        WHERE queue.message_id = (r.value ->> 0)::bigint AND lease_token = 0 AND begun = 0 \
          AND queue.application_id = ANY ($3::text::bigint[])",
    write_connections: "\
        INSERT INTO connections (carrier, number, state, since, in_flight, window_size, rate, throttled, \
                                 last_error, updated_at, node) \
        SELECT value ->> 0, (value ->> 1)::bigint, value ->> 2, (value ->> 3)::bigint, (value ->> 4)::bigint, \
               (value ->> 5)::bigint, (value ->> 6)::bigint, (value ->> 7)::bigint, value ->> 8, $2, $3 \
        FROM jsonb_array_elements($1::text::jsonb)",
    insert_events: "\
        INSERT INTO message_events (message_id, application_id, status, detail, at) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint, value ->> 3, $2 \
        FROM jsonb_array_elements($1::text::jsonb)",
    // Play money never exceeds a day's, also when yesterday's message is given back today.
    settle_applications: "\
        UPDATE applications SET balance = (r.value ->> 2)::bigint, \
               test_balance = LEAST(test_balance + (r.value ->> 3)::bigint, $2) \
        FROM jsonb_array_elements($1::text::jsonb) AS r \
        WHERE applications.id = (r.value ->> 0)::bigint AND applications.balance = (r.value ->> 1)::bigint",
    add_days: "\
        INSERT INTO message_days (application_id, test, day, status, n, node, writer) \
        SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint, (value ->> 3)::bigint, \
               (value ->> 4)::bigint, $2, $3 \
        FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS r (value, place) ORDER BY place \
        ON CONFLICT (application_id, test, day, status, node, writer) \
        DO UPDATE SET n = message_days.n + excluded.n",
    lock_batches: Some(
        "\
        SELECT COUNT(*) AS n FROM ( \
            SELECT 1 FROM batches \
            WHERE id = ANY (ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb))) \
              AND application_id = ANY ($2::text::bigint[]) \
            ORDER BY id FOR UPDATE) b",
    ),
    move_batches: "\
        UPDATE batches SET queued = queued + (r.value #>> '{1,0}')::bigint, \
               sending = sending + (r.value #>> '{1,1}')::bigint, unknown = unknown + (r.value #>> '{1,2}')::bigint, \
               submitted = submitted + (r.value #>> '{1,3}')::bigint, \
               delivered = delivered + (r.value #>> '{1,4}')::bigint, failed = failed + (r.value #>> '{1,5}')::bigint, \
               expired = expired + (r.value #>> '{1,6}')::bigint, rejected = rejected + (r.value #>> '{1,7}')::bigint, \
               done_at = CASE WHEN expanded_at IS NOT NULL \
                   AND rows = delivered + failed + expired + rejected + (r.value #>> '{1,4}')::bigint \
                              + (r.value #>> '{1,5}')::bigint + (r.value #>> '{1,6}')::bigint \
                              + (r.value #>> '{1,7}')::bigint \
                   THEN COALESCE(done_at, $2) ELSE done_at END \
        FROM jsonb_array_elements($1::text::jsonb) AS r \
        WHERE batches.id = (r.value ->> 0)::bigint AND batches.application_id = ANY ($3::text::bigint[])",
    listed_messages: "\
        SELECT COALESCE(json_agg(json_build_array(id, application_id, test, number, kind, sender, body, requestid, \
                                                  batch_id, status, pages, segments, unit_price, cost, released, \
                                                  error, carrier, created_at, sending_at, submitted_at, \
                                                  final_at)), '[]')::text AS found",
    through_index: None,
    unusual: "(SELECT message_id AS id, application_id, test, status FROM unusual_messages) d",
    // One after the other, in their order, until there are enough: a join that PostgreSQL is free
    // to choose may read all messages of the days.
    their_messages: "\
        CROSS JOIN LATERAL (SELECT * FROM messages WHERE id = d.id AND id >= $3 AND id < $4 OFFSET 0) m",
    by_day: true,
    balances: "\
        SELECT id, balance FROM applications \
        WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
        ORDER BY id FOR UPDATE",
};
