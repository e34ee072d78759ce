//! Statements in SQLite's own words.
//!
//! Rows go both ways in one JSON value: each row that sqlx hands over costs a switch of threads.
//!
//! A batch comes as one JSON parameter: on two cores that stored 100,000 sends a second in batches
//! of 128 where multi-row VALUES, with a parameter per value, stored 40,000.

use super::dialect::Batch;

/// What every database file begins with.
pub(super) const FILE_START: &[u8] = b"SQLite format 3\0";

/// FULL syncs the log at each commit: what was answered survives a power cut. The cache (32 MiB)
/// holds the pages that an upload of a million rows goes on writing to.
pub(super) const WRITER: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
    PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 10000; PRAGMA journal_size_limit = 67108864; \
    PRAGMA cache_size = -32768";
/// A reader that tries to write is a fault of ours: SQLite refuses it.
pub(super) const READER: &str = "PRAGMA query_only = ON; PRAGMA busy_timeout = 10000";

/// A consistent copy of the database in a file, without stopping anybody.
pub(super) const COPY: &str = "VACUUM INTO $1";

pub(super) const BATCH: Batch = Batch {
    lock_applications: None,
    applications_by_reference: "\
        SELECT id, reference, category, status, live_hash, test_hash, sender_state, sender_name, \
               balance, test_balance, test_day \
        FROM applications WHERE reference IN (SELECT value FROM json_each($1))",
    // One transaction writes at a time, so the row can't have changed since it was read; the
    // conditions stand here because on a database with many writers they decide.
    charge_applications: "\
        UPDATE applications SET balance = r.value ->> 2, test_balance = r.value ->> 3, \
               test_day = r.value ->> 4 \
        FROM json_each($1) AS r \
        WHERE applications.id = r.value ->> 0 AND applications.balance = r.value ->> 1 \
          AND applications.status = r.value ->> 5 AND applications.live_hash = r.value ->> 6 \
          AND applications.test_hash = r.value ->> 7 AND applications.sender_state = r.value ->> 8 \
          AND applications.test_balance = r.value ->> 9",
    insert_messages: "\
        INSERT INTO messages (id, application_id, test, number, kind, sender, body, requestid, pages, \
                              segments, unit_price, cost, created_at, sending_at, status, released) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, \
               value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, \
               value ->> 12, value ->> 13, value ->> 14, 0 FROM json_each($1)",
    insert_transfers: "\
        INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id, \
                               message_id, balance_after, batch_id, created_at) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, \
               value ->> 6, value ->> 7, $2 FROM json_each($1)",
    insert_queue: "\
        INSERT INTO queue (message_id, application_id, carrier, held, bulk, due_at, lease_token, attempts) \
        SELECT value ->> 0, value ->> 1, value ->> 2, $3, $2, value ->> 3, value ->> 4, 0 FROM json_each($1)",
    // The rows' ids follow each other as in `ids::nth_id`, and carry the moment.
    expand_messages: "\
        INSERT INTO messages (id, application_id, test, number, kind, sender, body, requestid, batch_id, \
                              pages, segments, unit_price, cost, created_at, status, released) \
        SELECT id, $2, $3, digits, kind, $4, body, $5, $6, pages, segments, \
               price, pages * price, (id >> 21) + $12, 0, 0 \
        FROM (SELECT $1 + ((($13 + key) >> 11) << 21) + (($13 + key) & 2047) AS id, \
                     value ->> 0 AS digits, \
                     CASE value ->> 1 WHEN 1 THEN 'local' ELSE 'international' END AS kind, \
                     CASE value ->> 1 WHEN 1 THEN $7 ELSE $8 END AS price, \
                     COALESCE(value ->> 2, $9) AS body, COALESCE(value ->> 3, $10) AS pages, \
                     COALESCE(value ->> 4, $11) AS segments FROM json_each($14))",
    put_aside: "\
        UPDATE queue SET held = 1 WHERE message_id IN (SELECT value FROM json_each($1)) \
          AND application_id IN (SELECT id FROM applications WHERE status = 'Suspended')",
    kept_answers: "\
        SELECT i.application_id, i.test, i.key, i.digest, i.answer \
        FROM json_each($1) AS r CROSS JOIN idempotency i \
          ON i.application_id = r.value ->> 0 AND i.test = r.value ->> 1 AND i.key = r.value ->> 2 \
        WHERE i.created_at > $2",
    keep_answers: "\
        INSERT INTO idempotency (application_id, test, key, digest, answer, created_at) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, $2 \
        FROM json_each($1) WHERE true \
        ON CONFLICT (application_id, test, key) DO UPDATE \
        SET digest = excluded.digest, answer = excluded.answer, created_at = excluded.created_at",
    lock_messages: None,
    open_messages: "\
        SELECT json_group_array(json_array(id, application_id, test, batch_id, created_at, status, cost)) AS found \
        FROM messages WHERE id IN (SELECT value FROM json_each($1)) \
          AND status < 4",
    finish_messages: "\
        UPDATE messages SET status = r.value ->> 1, error = r.value ->> 2, final_at = $2, \
               submitted_at = CASE WHEN r.value ->> 4 = 1 THEN COALESCE(submitted_at, $2) ELSE submitted_at END, \
               released = CASE WHEN r.value ->> 3 = 1 THEN cost ELSE 0 END \
        FROM json_each($1) AS r \
        WHERE messages.id = r.value ->> 0 \
          AND messages.status < 4",
    submit_messages: "\
        UPDATE messages SET status = 3, carrier = $2, segments = COALESCE(r.value ->> 1, segments), \
               submitted_at = COALESCE(submitted_at, $3) \
        FROM json_each($1) AS r \
        WHERE messages.id = r.value ->> 0 AND messages.status < 3",
    begin_messages: "\
        UPDATE messages SET carrier = $2, status = CASE r.value ->> 1 WHEN 1 THEN 2 ELSE status END, \
               submitted_at = CASE r.value ->> 2 WHEN 1 THEN COALESCE(submitted_at, $3) ELSE submitted_at END \
        FROM json_each($1) AS r \
        WHERE messages.id = r.value ->> 0 AND messages.status < 3",
    start_messages: "\
        UPDATE messages SET status = 1, sending_at = $2 \
        WHERE id IN (SELECT value FROM json_each($1)) AND status < 2",
    // No SKIP LOCKED: one transaction writes at a time, so nobody else holds a row.
    due: "\
        WITH drained AS (SELECT 1 FROM carriers WHERE name = $1 AND drained_at IS NOT NULL), \
        singles AS MATERIALIZED ( \
            SELECT message_id, application_id, begun, due_at, 0 AS bulk FROM queue \
            WHERE carrier = $1 AND held = 0 AND bulk = 0 AND due_at BETWEEN $6 AND $2 AND message_id >= $3 \
              AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained) \
            ORDER BY due_at, message_id LIMIT $4), \
        of_batches AS ( \
            SELECT message_id, application_id, begun, due_at, 1 AS bulk FROM queue \
            WHERE carrier = $1 AND held = 0 AND bulk = 1 AND due_at BETWEEN $7 AND $2 AND message_id >= $3 \
              AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained) \
            ORDER BY due_at, message_id LIMIT $5 - (SELECT COUNT(*) FROM singles)) \
        SELECT json_group_array(json_array(q.message_id, q.begun, a.status = 'Suspended', q.due_at, q.bulk, \
                                           q.application_id)) AS found \
        FROM (SELECT * FROM singles UNION ALL SELECT * FROM of_batches) q \
        JOIN applications a ON a.id = q.application_id",
    claim: "\
        UPDATE queue SET due_at = $2, lease_token = $3 \
        WHERE message_id IN (SELECT value FROM json_each($1))",
    claimed_messages: "\
        SELECT json_group_array(json_array( \
                   json_array(id, application_id, test, batch_id, created_at, status, cost), \
                   number, kind, sender, body)) AS found \
        FROM (SELECT * FROM messages \
              WHERE id IN (SELECT value FROM json_each($1)) AND status < 3 ORDER BY id)",
    leased: "\
        SELECT json_group_array(json_array(q.message_id, q.begun, q.attempts, a.lost_answer = 'resend')) AS found \
        FROM json_each($1) AS r CROSS JOIN queue q ON q.message_id = r.value ->> 0 AND q.lease_token = r.value ->> 1 \
        JOIN applications a ON a.id = q.application_id",
    ended_leases: "\
        SELECT q.message_id, q.carrier, q.begun, q.application_id, m.segments, a.lost_answer \
        FROM queue q JOIN messages m ON m.id = q.message_id JOIN applications a ON a.id = q.application_id \
        WHERE q.lease_token <> 0 AND q.due_at <= $1 AND m.id >= $3 LIMIT $2",
    // The plus sign keeps SQLite from sorting all that waits for the carrier, for each chunk.
    unclaimed: "\
        SELECT message_id, application_id FROM queue WHERE +carrier = $1 AND message_id > $2 AND lease_token = 0 \
          AND begun = 0 ORDER BY message_id LIMIT $3",
    unrouted: "\
        SELECT message_id, application_id FROM queue WHERE carrier = $1 AND lease_token = 0 AND begun = 0 LIMIT $2",
    drop_queued: "DELETE FROM queue WHERE message_id IN (SELECT value FROM json_each($1))",
    requeue: "\
        UPDATE queue SET due_at = r.value ->> 1, attempts = attempts + (r.value ->> 2), begun = r.value ->> 3, \
               carrier = COALESCE(r.value ->> 4, carrier), refused_by = refused_by || (r.value ->> 5), \
               lease_token = 0 \
        FROM json_each($1) AS r WHERE queue.message_id = r.value ->> 0",
    insert_segments: "\
        INSERT INTO segments (message_id, segment, segments, application_id, carrier, carrier_message_id, status, \
                              submits, submitted_at) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, $2, value ->> 4, value ->> 5, 1, $3 \
        FROM json_each($1) WHERE true \
        ON CONFLICT (message_id, segment) DO UPDATE \
        SET carrier_message_id = COALESCE(excluded.carrier_message_id, carrier_message_id), \
            status = CASE status WHEN 2 THEN excluded.status ELSE status END, submits = 2, \
            submitted_at = excluded.submitted_at",
    name_segments: "\
        INSERT INTO segments (message_id, segment, segments, application_id, carrier, carrier_message_id, status, \
                              submits, submitted_at) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, $2, value ->> 4, 2, 1, $3 \
        FROM json_each($1) WHERE true \
        ON CONFLICT (message_id, segment) DO UPDATE \
        SET carrier_message_id = COALESCE(carrier_message_id, excluded.carrier_message_id)",
    segments_of: "\
        SELECT json_group_array(json_array(message_id, segment, segments, status, error, submits, \
                                           carrier_message_id IS NOT NULL)) AS found \
        FROM segments WHERE message_id IN (SELECT value FROM json_each($1))",
    segments_named: "\
        SELECT json_group_array(json_array(r.key, s.message_id, s.segment, s.segments, s.application_id, s.status) \
                                ORDER BY s.message_id) AS found \
        FROM json_each($1) AS r CROSS JOIN segments s ON s.carrier = $2 AND s.carrier_message_id = r.value",
    unanswered_segments: "\
        SELECT json_group_array(json_array(message_id, segment, segments, application_id, submitted_at, sender, \
                                           address)) AS found \
        FROM (SELECT s.message_id, s.segment, s.segments, s.application_id, s.submitted_at, m.sender, \
                     CASE m.kind WHEN 'local' THEN $3 || m.number ELSE m.number END AS address \
              FROM segments s CROSS JOIN messages m ON m.id = s.message_id \
              WHERE s.carrier = $2 AND s.status = 2 AND s.carrier_message_id IS NULL) \
        WHERE address IN (SELECT value FROM json_each($1))",
    finish_segments: "\
        UPDATE segments SET status = r.value ->> 2, error = r.value ->> 3 FROM json_each($1) AS r \
        WHERE segments.message_id = r.value ->> 0 AND segments.segment = r.value ->> 1 \
          AND status < 4",
    park_receipts: "\
        INSERT INTO parked_receipts (carrier, carrier_message_id, status, error, received_at) \
        SELECT $2, value ->> 0, value ->> 1, value ->> 2, $3 FROM json_each($1)",
    parked_receipts: "\
        SELECT json_group_array(json_array(p.id, p.carrier_message_id, p.status, p.error) ORDER BY p.id) AS found \
        FROM json_each($1) AS r CROSS JOIN parked_receipts p \
          ON p.carrier = $2 AND p.carrier_message_id = r.value AND p.received_at > $3",
    drop_parked: "DELETE FROM parked_receipts WHERE id IN (SELECT value FROM json_each($1)) AND carrier = $2",
    routed_messages: "\
        SELECT json_group_array(json_array(q.message_id, m.number, m.kind, m.sender, a.reference, q.refused_by)) \
               AS found \
        FROM queue q JOIN messages m ON m.id = q.message_id JOIN applications a ON a.id = q.application_id \
        WHERE q.message_id IN (SELECT value FROM json_each($1)) AND m.test = 0",
    move_queued: "\
        UPDATE queue SET carrier = r.value ->> 1, due_at = MAX(due_at, $2) FROM json_each($1) AS r \
        WHERE queue.message_id = r.value ->> 0 AND lease_token = 0 AND begun = 0",
    write_connections: "\
        INSERT INTO connections (carrier, number, state, since, in_flight, window_size, rate, throttled, \
                                 last_error, updated_at, node) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, \
               value ->> 7, value ->> 8, $2, $3 FROM json_each($1)",
    insert_events: "\
        INSERT INTO message_events (message_id, application_id, status, detail, at) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, $2 FROM json_each($1)",
    // Play money never exceeds a day's, also when yesterday's message is given back today.
    settle_applications: "\
        UPDATE applications SET balance = r.value ->> 2, \
               test_balance = MIN(test_balance + (r.value ->> 3), $2) \
        FROM json_each($1) AS r \
        WHERE applications.id = r.value ->> 0 AND applications.balance = r.value ->> 1",
    add_days: "\
        INSERT INTO message_days (application_id, test, day, status, n, node, writer) \
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, $2, $3 \
        FROM json_each($1) WHERE true \
        ON CONFLICT (application_id, test, day, status, node, writer) \
        DO UPDATE SET n = message_days.n + excluded.n",
    lock_batches: None,
    move_batches: "\
        UPDATE batches SET queued = queued + (r.value ->> '$[1][0]'), sending = sending + (r.value ->> '$[1][1]'), \
               unknown = unknown + (r.value ->> '$[1][2]'), submitted = submitted + (r.value ->> '$[1][3]'), \
               delivered = delivered + (r.value ->> '$[1][4]'), failed = failed + (r.value ->> '$[1][5]'), \
               expired = expired + (r.value ->> '$[1][6]'), rejected = rejected + (r.value ->> '$[1][7]'), \
               done_at = CASE WHEN expanded_at IS NOT NULL \
                   AND rows = delivered + failed + expired + rejected + (r.value ->> '$[1][4]') \
                              + (r.value ->> '$[1][5]') + (r.value ->> '$[1][6]') + (r.value ->> '$[1][7]') \
                   THEN COALESCE(done_at, $2) ELSE done_at END \
        FROM json_each($1) AS r WHERE batches.id = r.value ->> 0",
    listed_messages: "\
        SELECT json_group_array(json_array(id, application_id, test, number, kind, sender, body, requestid, \
                                           batch_id, status, pages, segments, unit_price, cost, released, \
                                           error, carrier, created_at, sending_at, submitted_at, \
                                           final_at)) AS found",
    // Without statistics SQLite takes one index for as good as the other.
    through_index: Some("INDEXED BY "),
    unusual: "messages d INDEXED BY messages_unusual",
    their_messages: "CROSS JOIN messages m ON m.id = d.id",
    by_day: false,
    balances: "SELECT id, balance FROM applications WHERE id IN (SELECT value FROM json_each($1))",
};
