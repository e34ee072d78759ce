//! Checks the invariants of the data by recomputing them from the rows.
//!
//! Each statement checks one invariant and returns a row per violation. The column `what` describes
//! the violation to an operator.

use super::installation;
use super::query::{Conn, query_in_shard};
use super::sql::{Sql, statements};
use crate::error::Result;

/// An expression for the name of a message's status.
macro_rules! status_word {
    ($column:literal) => {
        concat!(
            "(SELECT named.column2 FROM (VALUES {statuses}) AS named WHERE named.column1 = ",
            $column,
            ")"
        )
    };
}

/// An expression for the index of a message's delivery time in `quarter::DELIVERY_TIMES_MS`.
macro_rules! delivery_time {
    () => {
        "(SELECT COUNT(*) FROM (VALUES {delivery_times}) AS d
          WHERE d.column1 < final_at - COALESCE(send_at, created_at))"
    };
}

/// An expression for the name of a transfer's kind.
macro_rules! kind_word {
    ($column:literal) => {
        concat!(
            "(SELECT named.column2 FROM (VALUES {transfer_kinds}) AS named WHERE named.column1 = ",
            $column,
            ")"
        )
    };
}

/// Limits the violations that each statement returns. An operator has to act after the first one.
const LISTED_MAX: &str = " LIMIT 20";

statements! {
    const BALANCE_IS_ITS_TRANSFERS: Sql = Sql::in_shard(r"
        SELECT 'application ' || a.reference || ': its balance is ' || a.balance
            || ', the sum of its transfers is ' || COALESCE(t.total, 0) AS what
        FROM applications a LEFT JOIN (
            SELECT application_id, CAST(SUM(CASE WHEN credit_account = application_id THEN amount
                                                 WHEN debit_account = application_id THEN -amount
                                                 ELSE 0 END) AS BIGINT) AS total
            FROM transfers WHERE application_id <> 0{ AND shard = $shard}
            GROUP BY application_id) t
          ON t.application_id = a.id
        WHERE (a.balance <> COALESCE(t.total, 0) OR a.balance < 0){ AND a.shard = $shard}");
    const STATEMENT_IS_UNBROKEN: Sql = Sql::in_shard(r"
        SELECT 'transfer ' || id || ' of application ' || application_id
            || ': the stored balance after it is '
            || COALESCE(CAST(balance_after AS TEXT), 'missing')
            || ', the sum of the transfers up to it is ' || counted AS what
        FROM (SELECT id, application_id, balance_after,
                     CAST(SUM(CASE WHEN credit_account = application_id THEN amount
                                   ELSE -amount END)
                          OVER (PARTITION BY application_id ORDER BY id) AS BIGINT) AS counted
              FROM transfers WHERE application_id <> 0{ AND shard = $shard}) s
        WHERE balance_after IS NULL OR balance_after <> counted");
    const TRANSFER_IS_THE_APPLICATIONS_OWN: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'transfer ' || id || ' (' || ",
        kind_word!("kind"),
        r" || ') of application ' || application_id
            || ': it is between the wrong accounts' AS what
        FROM transfers
        WHERE ((kind = {charge} AND NOT (debit_account = application_id AND credit_account
                   = CASE WHEN batch_id IS NULL THEN {REVENUE} ELSE {RESERVED} END))
           OR (kind = {release} AND NOT (credit_account = application_id AND debit_account
                   = CASE WHEN batch_id IS NULL THEN {REVENUE} ELSE {RESERVED} END))
           OR (kind = {settle} AND NOT (debit_account = {RESERVED} AND credit_account = {REVENUE}
                   AND application_id = 0 AND batch_id IS NOT NULL))
           OR (kind = {deposit} AND NOT (debit_account IN ({BANK}, {UNMATCHED})
                   AND credit_account = application_id))
           OR (kind = {unmatched} AND NOT (debit_account = {BANK}
                   AND credit_account = {UNMATCHED} AND application_id = 0))
           OR (kind = {return} AND NOT (debit_account = {UNMATCHED}
                   AND credit_account = {BANK} AND application_id = 0))
           OR (kind <> {unmatched} AND kind <> {settle} AND kind <> {return}
                   AND application_id = 0)){ AND shard = $shard}",
    ));
    /// Duplicates the rule in `domain::pricing::cost_at`.
    const MESSAGE_IS_PRICED: Sql = Sql::in_shard(r"
        SELECT 'message ' || id || ': cost ' || cost || ', pages ' || pages || ', unit price '
            || unit_price || ' and released amount ' || released
            || ' don''t fit together' AS what
        FROM messages
        WHERE (cost <> pages * unit_price OR cost < 0 OR released NOT IN (0, cost)
            OR (cost = 0 AND (batch_id IS NOT NULL OR requestid IS NOT NULL)))
          { AND shard = $shard}");
    const PRICE_WAS_IN_FORCE: Sql = Sql::in_shard(r"
        SELECT 'message ' || m.id || ': its unit price ' || m.unit_price
            || ' was never in force' AS what
        FROM messages m WHERE m.cost > 0 AND NOT EXISTS (SELECT 1 FROM prices p WHERE m.unit_price =
            CASE m.kind WHEN 'local' THEN p.local ELSE p.international END
            AND (p.prefix IS NULL OR SUBSTR(m.number, 1, LENGTH(p.prefix)) = p.prefix
              OR SUBSTR(m.number, 1, 1) = '•')
            AND NOT EXISTS (SELECT 1 FROM prices c WHERE c.cancels = p.id))
          { AND m.shard = $shard}");
    const MESSAGE_IS_CHARGED: Sql = Sql::in_shard(r"
        SELECT 'message ' || m.id || ' of application ' || m.application_id || ': it costs '
            || m.cost || ', but ' || COALESCE(t.n, 0) || ' transfers charge '
            || COALESCE(t.amount, 0)
            || COALESCE(' to application ' || t.application_id, '') AS what
        FROM messages m
        LEFT JOIN (SELECT message_id, CAST(SUM(amount) AS BIGINT) AS amount, COUNT(*) AS n,
                          MIN(application_id) AS application_id
                   FROM transfers WHERE kind = {charge}
                     AND message_id IS NOT NULL{ AND shard = $shard}
                   GROUP BY message_id) t
          ON t.message_id = m.id
        WHERE m.test = 0 AND m.batch_id IS NULL AND (m.cost > 0 OR t.n > 0)
          AND (t.n IS NULL OR t.n <> 1 OR t.amount <> m.cost
            OR t.application_id <> m.application_id){ AND m.shard = $shard}");
    const CHARGE_HAS_A_MESSAGE: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'transfer ' || t.id || ' (' || ",
        kind_word!("t.kind"),
        r" || ') of application ' || t.application_id
            || ': its message doesn''t exist' AS what
        FROM transfers t
        LEFT JOIN messages m ON m.id = t.message_id AND m.test = 0{ AND m.shard = $shard}
        WHERE t.kind IN ({charge}, {release}) AND t.batch_id IS NULL AND m.id IS NULL
          AND (t.message_id IS NULL OR t.message_id >= (SELECT history_low_id FROM installation))
          { AND t.shard = $shard}",
    ));
    /// When messages are deleted, the sums of their charges and releases are stored. These sums
    /// equal the sums of the messages' transfers.
    const DROPPED_IS_ITS_TRANSFERS: Sql = Sql::in_shard(r"
        SELECT 'application ' || application_id || ', day ' || day
            || ': the stored sums of deleted messages differ from their transfers by '
            || charged || ' (charged) and ' || released || ' (released)' AS what
        FROM (SELECT day, application_id, CAST(SUM(charged) AS BIGINT) AS charged,
                     CAST(SUM(released) AS BIGINT) AS released FROM (
                  SELECT day, application_id, charged, released
                  FROM dropped_days{ WHERE shard = $shard}
                  UNION ALL SELECT ((message_id >> 21) + 1704067200000) / 86400000,
                      application_id,
                      CASE kind WHEN {charge} THEN -amount ELSE 0 END,
                      CASE kind WHEN {release} THEN -amount ELSE 0 END
                  FROM transfers
                  WHERE message_id < (SELECT history_low_id FROM installation)
                  { AND shard = $shard}) u
              GROUP BY day, application_id) s
        WHERE charged <> 0 OR released <> 0");
    const RELEASE_IS_THE_MESSAGES: Sql = Sql::in_shard(r"
        SELECT 'message ' || m.id || ' of application ' || m.application_id
            || ': its stored released amount is ' || m.released || ', but a transfer released '
            || COALESCE(t.amount, 0)
            || COALESCE(' to application ' || t.application_id, '') AS what
        FROM messages m
        LEFT JOIN transfers t ON t.message_id = m.id AND t.kind = {release}{ AND t.shard = $shard}
        WHERE m.test = 0
          AND (m.released <> COALESCE(t.amount, 0)
                OR t.application_id <> m.application_id){ AND m.shard = $shard}");
    const RELEASE_IS_ALLOWED: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'message ' || id || ': its price was released although its status is ' || ",
        status_word!("status"),
        r"
            || COALESCE(' and the carrier ' || carrier || ' accepted it', '') AS what
        FROM messages WHERE released > 0
          AND (status < {expired} OR submitted_at IS NOT NULL){ AND shard = $shard}",
    ));
    const FAILED_IS_RELEASED: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'message ' || id || ': no carrier accepted it and its status is ' || ",
        status_word!("status"),
        r"
            || ', but its price wasn''t released' AS what
        FROM messages WHERE released = 0 AND submitted_at IS NULL AND status >= {expired}
          AND COALESCE(error, '') <> 'no_answer'{ AND shard = $shard}",
    ));
    const FINAL_HAS_ITS_TIMES: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'message ' || id || ': its status ' || ",
        status_word!("status"),
        r" || ' doesn''t fit its times: final_at is '
            || COALESCE(CAST(final_at AS TEXT), 'null') || ' and submitted_at is '
            || COALESCE(CAST(submitted_at AS TEXT), 'null') AS what
        FROM messages
        WHERE ((status >= {delivered}) <> (final_at IS NOT NULL)
           OR (status BETWEEN {submitted} AND {failed} AND submitted_at IS NULL))
          { AND shard = $shard}",
    ));
    const WAITING_IS_QUEUED: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'message ' || m.id || ': its status is ' || ",
        status_word!("m.status"),
        r"
            || ', but it isn''t in the queue' AS what
        FROM messages m LEFT JOIN queue q ON q.message_id = m.id{ AND q.shard = $shard}
        WHERE m.status < {unknown} AND q.message_id IS NULL{ AND m.shard = $shard}",
    ));
    const QUEUED_IS_WAITING: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'message ' || q.message_id || ': it is in the queue, but '
            || CASE WHEN m.id IS NULL THEN 'doesn''t exist'
                    WHEN m.application_id <> q.application_id
                    THEN 'belongs to another application than its row in the queue'
                    ELSE 'its status is ' || ",
        status_word!("m.status"),
        r" END AS what
        FROM queue q LEFT JOIN messages m ON m.id = q.message_id{ AND m.shard = $shard}
        WHERE (m.id IS NULL OR m.status >= {submitted} OR m.application_id <> q.application_id
           OR (m.status = {unknown} AND q.submission = 0)){ AND q.shard = $shard}",
    ));
    const SEGMENT_IS_A_MESSAGES: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'segment ' || s.segment || ' of message ' || s.message_id || ': ' || CASE
                   WHEN m.id IS NULL THEN 'its message doesn''t exist'
                   WHEN s.submits > 2 THEN 'it was submitted ' || s.submits || ' times'
                   WHEN s.segment > s.segments
                   THEN 'its message has only ' || s.segments || ' segments'
                   ELSE 'its status ' || ",
        status_word!("s.status"),
        r" || ' doesn''t fit the message''s status '
                       || ",
        status_word!("m.status"),
        r" END AS what
        FROM segments s
        LEFT JOIN messages m ON m.id = s.message_id
          AND m.application_id = s.application_id{ AND m.shard = $shard}
        WHERE (m.id IS NULL OR s.submits > 2 OR s.segment > s.segments
           OR (m.status = {submitted} AND s.status = {unknown} AND s.carrier_message_id IS NULL)
           OR (m.status = {delivered} AND s.status <> {delivered})
           OR (m.status < {sending} OR m.status > {expired})){ AND s.shard = $shard}",
    ));
    const BATCH_IS_CHARGED: Sql = Sql::in_shard(r"
        SELECT 'batch ' || b.id || ': it costs ' || b.cost || ', and its messages '
            || b.expanded_cost || ', but its transfers reserved ' || COALESCE(t.charged, 0)
               || ', settled ' || COALESCE(t.settled, 0) || ' and released '
                   || COALESCE(t.released, 0) AS what
        FROM batches b LEFT JOIN (
            SELECT batch_id,
                CAST(SUM(CASE kind WHEN {charge} THEN amount ELSE 0 END) AS BIGINT) AS charged,
                   CAST(SUM(CASE kind WHEN {settle} THEN amount ELSE 0 END) AS BIGINT) AS settled,
                   CAST(SUM(CASE kind WHEN {release} THEN amount ELSE 0 END) AS BIGINT) AS released,
                   MAX(application_id) AS application_id
            FROM transfers WHERE batch_id IS NOT NULL{ AND shard = $shard}
            GROUP BY batch_id) t ON t.batch_id = b.id
        WHERE b.test = 0 AND (COALESCE(t.charged, 0) <> b.cost OR t.settled <> b.expanded_cost
               OR t.application_id <> b.application_id
               OR t.released <> CASE WHEN b.expanded_at IS NULL THEN 0
                 ELSE b.cost - b.expanded_cost END){ AND b.shard = $shard}");
    const BATCH_TRANSFER_HAS_A_BATCH: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'transfer ' || t.id || ' (' || ",
        kind_word!("t.kind"),
        r" || ') of application ' || t.application_id
            || ': its batch doesn''t exist' AS what
        FROM transfers t
        LEFT JOIN batches b ON b.id = t.batch_id AND b.test = 0{ AND b.shard = $shard}
        WHERE t.batch_id IS NOT NULL AND b.id IS NULL{ AND t.shard = $shard}",
    ));
    const BATCH_IS_ITS_MESSAGES: Sql = Sql::in_shard(r"
        SELECT 'batch ' || b.id || ': its counts and amounts don''t fit its messages' AS what
        FROM batches b LEFT JOIN (
            SELECT batch_id, COUNT(*) AS n, CAST(SUM(cost) AS BIGINT) AS cost,
                   CAST(SUM(released) AS BIGINT) AS released,
                   MIN(application_id) AS application_id, MAX(application_id) AS other
            FROM messages WHERE batch_id IS NOT NULL{ AND shard = $shard}
            GROUP BY batch_id) m ON m.batch_id = b.id
        WHERE b.first_message_id >= (SELECT history_low_id FROM installation)
          AND (b.test = 0 OR b.first_message_id >= (SELECT test_low_id FROM installation)) AND (
              COALESCE(m.n, 0) <> b.expanded_rows OR COALESCE(m.cost, 0) <> b.expanded_cost
           OR b.released <> COALESCE(m.released, 0)
                          + CASE WHEN b.expanded_at IS NULL THEN 0
                            ELSE b.cost - b.expanded_cost END
           OR m.application_id <> b.application_id OR m.other <> b.application_id
           OR b.open <> (SELECT SUM(c.n)
                         FROM batch_counts c
                         WHERE c.batch_id = b.id AND c.status < {delivered}{ AND c.shard = $shard})
           OR (b.expanded_at IS NULL AND b.expanded_rows = b.rows)
           OR (b.done_at IS NOT NULL) <> (b.open = 0)){ AND b.shard = $shard}");
    /// Rows that aren't messages yet count as scheduled or queued. Rows that never become messages
    /// count as rejected, expired or cancelled. Only the counts distinguish these three statuses,
    /// so the check adds the three up.
    const BATCH_COUNTS_ARE_ITS_MESSAGES: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'batch ' || batch_id || ', ' || ",
        status_word!("status"),
        r" || ': the stored count differs by ' || n || ' from the messages' AS what
        FROM (SELECT batch_id,
                     CASE WHEN status IN ({expired}, {cancelled}) THEN {rejected} ELSE status END
                         AS status,
                     CAST(SUM(n) AS BIGINT) AS n FROM (
                  SELECT batch_id, status, n FROM batch_counts{ WHERE shard = $shard}
                  UNION ALL SELECT batch_id, status, -COUNT(*)
                  FROM messages WHERE batch_id IS NOT NULL{ AND shard = $shard}
                  GROUP BY 1, 2
                  UNION ALL SELECT id, CASE WHEN expanded_at IS NOT NULL THEN {rejected}
                                       WHEN waits_until IS NOT NULL THEN {scheduled}
                                       ELSE {queued} END, expanded_rows - rows
                  FROM batches{ WHERE shard = $shard}) u GROUP BY 1, 2) s
        WHERE n <> 0 AND batch_id IN (
            SELECT id FROM batches
            WHERE first_message_id >= (SELECT history_low_id FROM installation)
              AND (test = 0 OR first_message_id >= (SELECT test_low_id FROM installation))
              { AND shard = $shard})",
    ));
    const MESSAGE_OF_A_BATCH_HAS_ONE: Sql = Sql::in_shard(r"
        SELECT 'message ' || m.id
            || ': its batch doesn''t exist, or has other message IDs or prices' AS what
        FROM messages m LEFT JOIN batches b ON b.id = m.batch_id AND b.test = m.test
            AND m.id BETWEEN b.first_message_id AND b.last_message_id{ AND b.shard = $shard}
        WHERE m.batch_id IS NOT NULL
          AND (b.id IS NULL
            OR (m.unit_price <> CASE m.kind WHEN 'local' THEN b.price_local
                  ELSE b.price_international END
              AND NOT EXISTS (SELECT 1 FROM prices p WHERE p.id <= b.price_id
                  AND m.kind = 'international' AND p.international = m.unit_price
                  AND (SUBSTR(m.number, 1, LENGTH(p.prefix)) = p.prefix
                    OR SUBSTR(m.number, 1, 1) = '•')))){ AND m.shard = $shard}");
    const DAYS_ARE_THEIR_MESSAGES: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'application ' || application_id || ', day ' || day || ', '
            || ",
        status_word!("status"),
        r" || ': the stored count differs by ' || n || ' from the messages' AS what
        FROM (SELECT application_id, test, day, status, CAST(SUM(n) AS BIGINT) AS n FROM (
                  SELECT application_id, test, day, status, n
                  FROM message_days{ WHERE shard = $shard}
                  UNION ALL SELECT application_id, test, created_at / 86400000, status, -COUNT(*)
                  FROM messages{ WHERE shard = $shard}
                  GROUP BY 1, 2, 3, 4) u GROUP BY 1, 2, 3, 4) s
        WHERE n <> 0 AND day > (SELECT CASE history_low_id WHEN 0 THEN -1
            ELSE ((history_low_id - 1 >> 21) + 1704067200000) / 86400000 END FROM installation)
          AND (test = 0 OR day >= (
              SELECT ((test_low_id >> 21) + 1704067200000) / 86400000 FROM installation))",
    ));
    const QUARTERS_ARE_THEIR_MESSAGES: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'application ' || application_id || ', quarter hour ' || quarter || ', figure '
            || figure || ': the stored count differs by ' || n || ' and the stored cost by ' || cost
            || ' from the messages' AS what
        FROM (SELECT application_id, test, quarter, figure, CAST(SUM(n) AS BIGINT) AS n,
                     CAST(SUM(cost) AS BIGINT) AS cost FROM (
                  SELECT application_id, test, quarter, figure, n, cost
                  FROM message_quarters{ WHERE shard = $shard}
                  UNION ALL SELECT application_id, test, created_at / 900000, 0, -COUNT(*),
                      -SUM(cost - released)
                  FROM messages{ WHERE shard = $shard}
                  GROUP BY 1, 2, 3
                  UNION ALL SELECT application_id, test, quarter, figure, -COUNT(*), 0
                  FROM (SELECT application_id, test, created_at / 900000 AS quarter,
                               CASE WHEN status <> {delivered} THEN status ELSE 100 + ",
        delivery_time!(),
        r" END AS figure
                        FROM messages
                        WHERE status >= {delivered}{ AND shard = $shard}) f
                  GROUP BY 1, 2, 3, 4) u GROUP BY 1, 2, 3, 4) s
        WHERE (n <> 0 OR cost <> 0)
          AND quarter > (SELECT CASE history_low_id WHEN 0 THEN -1
              ELSE ((history_low_id - 1 >> 21) + 1704067200000) / 900000 END FROM installation)
          AND (test = 0 OR quarter >= (
              SELECT ((test_low_id >> 21) + 1704067200000) / 900000 FROM installation))",
    ));
    const DEPOSIT_IS_CREDITED: Sql = Sql::in_shard(r"
        SELECT 'deposit ' || d.bank_id || ': it is ' || d.amount || ' for '
            || COALESCE('application ' || d.application_id, 'no application') || ', but '
            || COALESCE(t.n, 0) || ' transfers credited ' || COALESCE(t.amount, 0)
            || COALESCE(' to application ' || t.application_id, '') AS what
        FROM deposits d
        LEFT JOIN (SELECT bank_id, application_id, COUNT(*) AS n,
            CAST(SUM(amount) AS BIGINT) AS amount
                                   FROM transfers WHERE kind = {deposit}{ AND shard = $shard}
                                   GROUP BY bank_id, application_id) t
          ON t.bank_id = d.bank_id
        WHERE ((d.application_id IS NULL AND t.n IS NOT NULL)
           OR (d.application_id IS NOT NULL AND (t.n IS NULL OR t.n <> 1 OR t.amount <> d.amount
                                                 OR t.application_id <> d.application_id)))
          { AND (d.application_id IS NULL OR d.application_id IN (
              SELECT application_id FROM reference_shards WHERE shard = $shard))}");
    /// A verification has one message for each time that its code was sent, unless messages were
    /// deleted.
    const VERIFICATION_IS_ITS_MESSAGES: Sql = Sql::in_shard(r"
        SELECT 'verification ' || v.id || ': it was sent ' || (v.resends + 1) || ' times, and has '
            || COALESCE(m.n, 0) || ' messages, ' || v.attempts || ' attempts and '
            || CASE WHEN v.verified_at IS NULL THEN 'no' ELSE 'a' END
            || ' success, which don''t fit together' AS what
        FROM verifications v LEFT JOIN (
            SELECT verification_id, COUNT(*) AS n, MIN(application_id) AS application_id,
                   MAX(application_id) AS other
            FROM messages WHERE verification_id IS NOT NULL{ AND shard = $shard}
            GROUP BY verification_id) m ON m.verification_id = v.id
        WHERE v.id >= (SELECT history_low_id FROM installation)
          AND (v.test = 0 OR v.id >= (SELECT test_low_id FROM installation)) AND (
              COALESCE(m.n, 0) <> v.resends + 1
           OR m.application_id <> v.application_id OR m.other <> v.application_id
           OR (v.verified_at IS NOT NULL AND v.attempts = 0)){ AND v.shard = $shard}");
    const SENDER_NAME_HAS_ITS_OWNER: Sql = Sql::in_shard(r"
        SELECT 'application ' || a.reference
            || ': its sender name belongs to another account, or to none' AS what
        FROM applications a LEFT JOIN sender_name_owners o ON o.folded = LOWER(a.sender_name)
        WHERE a.sender_name IS NOT NULL
          AND (o.account_id IS NULL OR o.account_id <> a.account_id){ AND a.shard = $shard}");
    const EVENTS_FIT_THEIR_STREAM: Sql = Sql::in_shard(r"
        SELECT 'event stream of application ' || e.application_id
            || CASE e.test WHEN 0 THEN ' (live key)' ELSE ' (test key)' END
            || ': its events have IDs outside the range that it stores' AS what
        FROM (SELECT application_id, test, MIN(id) AS first_id, MAX(id) AS last_id
              FROM events{ WHERE shard = $shard}
              GROUP BY application_id, test) e
        LEFT JOIN event_streams s ON s.application_id = e.application_id
          AND s.test = e.test{ AND s.shard = $shard}
        WHERE s.last_id IS NULL OR s.last_id < e.last_id OR s.dropped_id >= e.first_id");
    /// After the last sweep of expired messages, every message with an ID below `$1` must be final.
    /// For a scheduled message, the ID that a message of its scheduled time would have counts.
    const OVERDUE_IS_FINAL: Sql = Sql::in_shard(concat!(
        r"
        SELECT 'message ' || id || ': its status is still ' || ",
        status_word!("status"),
        r" || ', although its time is over' AS what
        FROM messages
        WHERE $1 > CASE WHEN send_at IS NULL THEN id
                   ELSE (send_at - {id_epoch}) << {id_low_bits} END
          AND status < {delivered}{ AND shard = $shard}",
    ));
}

/// Describes the violations in a shard.
pub async fn violations(conn: Conn<'_>, final_after_ms: i64) -> Result<Vec<String>> {
    // The time of the last sweep decides which messages are overdue, not the current time.
    // Otherwise a service that was down for days would have violations until its next sweep.
    let swept = installation::swept(conn).await?;
    let overdue = domain::ids::compose_id(swept.at.plus_ms(-final_after_ms).unix_ms(), 0);
    let below = overdue.max(swept.low);
    let mut found: Vec<String> = Vec::new();
    for (_, statement) in STATEMENTS {
        let values = statement.sqlite.contains("$1").then_some(below.into());
        let text = statement.of(conn.dialect());
        let listing = query_in_shard(format!("{text}{LISTED_MAX}"), ()).bind(values);
        found.extend(listing.fetch_all(conn, |row| row.get("what")).await?);
    }
    Ok(found)
}
