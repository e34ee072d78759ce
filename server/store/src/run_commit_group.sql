-- A commit group stores the sends, results and receipts that arrive within a short time, and claims
-- messages for carriers. Normally a group is one call of `run_commit_group`, which is one
-- transaction. Before the call, the process decides about the inputs by the rows that it has
-- cached. The call reads these rows, stores only the decisions that still hold, and returns the
-- rows. If a row has changed, the process decides its sends again and makes another call. The
-- comment at the top of `postgres.rs` lists the order in which rows are locked.
--
-- EXECUTE runs the statements over messages, so that PostgreSQL plans each of them with its IDs. A
-- generic plan would open all partitions. A statement finds rows by `= ANY` with a list of IDs, or
-- by a LATERAL query per row. OFFSET 0 keeps PostgreSQL from merging that query into a join.
-- PostgreSQL's statistics don't cover the newest rows, so PostgreSQL would otherwise read whole
-- tables and join them. `= ANY` needs a list of IDs, so rows that get the same new values are
-- updated together.
--
-- These functions repeat rules of the service, because the rules depend on rows that only the call
-- locks. Reading the rows before the call would cost each group a round trip. These rules are among
-- them:
--
-- - A test key's balance and number of messages are reset each day.
-- - An application's balance must cover its sends.
-- - Until its account has had a deposit, a test key has a daily limit of messages.
-- - An application's owner may limit its spend of a day, and the messages to a recipient.
-- - A result moves a message from `sending` to `submitted`.
-- - A receipt moves a message from `submitted` to the receipt's status and updates the counts.
--   Unless the message was delivered, it gets a row in `unusual_messages`.
--
-- The conformance tests check that the functions and the service decide alike.

-- A change that a group makes to the counts. The change adds `n` messages to the count of a status,
-- or removes them if `n` is negative. If `figure` isn't null, the change also adds the messages and
-- their cost to that figure of the quarter hour.
CREATE TYPE counted AS (
    application_id BIGINT,
    test           BIGINT,
    quarter        BIGINT,
    batch_id       BIGINT,
    status         BIGINT,
    n              BIGINT,
    figure         BIGINT,
    cost           BIGINT
);

-- An event that a change causes, before it has a number. Events of the same stream are numbered in
-- the order of `step` and `subject`.
CREATE TYPE caused AS (
    application_id BIGINT,
    test           BIGINT,
    step           BIGINT,
    type           BIGINT,
    subject        BIGINT
);

-- The commit groups that stored something. With Citus, also other transactions whose outcome a
-- process may have to look up. Rows are deleted after an hour. If a call gets no answer, the
-- process inserts the group's ID itself, with a null `answer`. That insert waits while the original
-- call is still running. Either the call commits or the insert succeeds, but never both.
CREATE TABLE commit_groups (
    shard       BIGINT NOT NULL,
    id         BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    answer     TEXT,
    PRIMARY KEY (id, shard)
);
CREATE INDEX commit_groups_by_age ON commit_groups (created_at);

-- The parameters of `run_commit_group` are rows, with an array for each column. `submitted_rows`
-- has the messages that a carrier accepted as a whole at the first submit. `tokens` are the tokens
-- of the leases under which the messages were submitted. If `segment_counts` is null, the stored
-- number of segments stays.
CREATE TYPE submitted_rows AS (
    ids BIGINT[], tokens BIGINT[], carriers TEXT[], segment_counts BIGINT[]
);
-- The segments of these messages, except for messages that the sandbox accepted. `message_ids` are
-- the carrier message IDs.
CREATE TYPE segment_rows AS (
    ids BIGINT[], numbers BIGINT[], segment_counts BIGINT[], applications BIGINT[],
    carriers TEXT[], message_ids TEXT[]
);
-- Receipts that identify a message by its transid.
CREATE TYPE receipt_rows AS (ids BIGINT[], statuses BIGINT[], errors TEXT[]);
-- Receipts that identify a segment by its carrier message ID, which is in `message_ids`. A receipt
-- has a row for each format in which the carrier may have returned the ID. These rows have the same
-- number in `receipts`.
CREATE TYPE identified_receipt_rows AS (
    receipts BIGINT[], carriers TEXT[], message_ids TEXT[], statuses BIGINT[], errors TEXT[]
);
-- The applications of the sends, as the process has cached them. If an application isn't cached,
-- its status, hashes and sender are null. `totals` and `test_totals` are the total costs of the
-- live and the test sends. `transfers` and `tests` are the numbers of these sends. `limits` are the
-- cached limits, `spend_days` the current days of the accounts' time zones, and `spend_maxes` the
-- most that the applications may spend on these days, or null.
CREATE TYPE application_rows AS (
    ids BIGINT[], statuses TEXT[], live_hashes TEXT[], test_hashes TEXT[], sender_states TEXT[],
    sender_names TEXT[], totals BIGINT[], test_totals BIGINT[], transfers BIGINT[], tests BIGINT[],
    limits TEXT[], spend_days BIGINT[], spend_maxes BIGINT[]
);
-- The idempotency keys of sends. `answers` has the answers to store for accepted sends. The call
-- sets the balance in them. For other sends, `answers` is null, and the call only looks up the key.
-- `spent` is as in `send_rows`.
CREATE TYPE key_rows AS (
    applications BIGINT[], tests BIGINT[], keys TEXT[], digests TEXT[], answers TEXT[],
    spent BIGINT[]
);
-- The recipients of sends to look up among the opt-outs. `numbers` are as carriers get them.
CREATE TYPE recipient_rows AS (applications BIGINT[], tests BIGINT[], numbers TEXT[]);
-- The recipients of sends whose application limits the messages to a recipient. `local_numbers` are
-- the same numbers without country code, or null. The sends may be stored if the recipients got at
-- most `hour_maxes` messages within an hour and `day_maxes` within a day.
CREATE TYPE limited_rows AS (
    applications BIGINT[], tests BIGINT[], numbers TEXT[], local_numbers TEXT[],
    hour_maxes BIGINT[], day_maxes BIGINT[]
);
-- Accepted sends. `spent` is the total cost of the application's live sends, or of its test sends,
-- up to and including this send. `transfers` is the number of its live sends up to and including
-- this send.
CREATE TYPE send_rows AS (
    ids BIGINT[], applications BIGINT[], tests BIGINT[], numbers TEXT[], kinds TEXT[],
    senders TEXT[], bodies TEXT[], verifications BIGINT[], requestids TEXT[], pages BIGINT[], segment_counts BIGINT[],
    unit_prices BIGINT[], costs BIGINT[], spent BIGINT[], transfers BIGINT[], created_ats BIGINT[],
    sending_ats BIGINT[], send_ats BIGINT[], carriers TEXT[], due_ats BIGINT[], tokens BIGINT[],
    expires_ats BIGINT[]
);
-- The verifications whose codes accepted sends contain. If `resends` is null, the send starts the
-- verification. Otherwise it sends the code again, and `resends` is how often that was done before.
CREATE TYPE code_rows AS (
    ids BIGINT[], applications BIGINT[], tests BIGINT[], numbers TEXT[], kinds TEXT[],
    countries TEXT[], nonces BIGINT[], digits BIGINT[], locales TEXT[], names TEXT[], created_ats BIGINT[],
    expires_ats BIGINT[], resends BIGINT[]
);
-- The carriers to claim messages for. `all_max` is the maximum number of rows for a carrier, and
-- `singles_max` is the maximum number of single messages among them. The search leaves out single
-- messages that are due before `singles_from`, and messages of batches that are due before
-- `batches_from`.
CREATE TYPE claim_rows AS (
    carriers TEXT[], all_max BIGINT[], singles_max BIGINT[], singles_from BIGINT[],
    batches_from BIGINT[]
);

-- Stores that carriers accepted messages as a whole at the first submit. Skips messages whose lease
-- is no longer valid. Removes the other messages from the queue, stores their segments, and returns
-- their IDs in `held`.
CREATE FUNCTION commit_group_submitted(
    of_shard BIGINT, now_ms BIGINT, submitted submitted_rows, parts segment_rows,
    OUT held BIGINT[], OUT counts counted[], OUT causes caused[]) LANGUAGE plpgsql AS $$
DECLARE
    of_one RECORD;
    more counted[];
    more_causes caused[];
BEGIN
    FOR of_one IN
        SELECT r.token, array_agg(r.id) AS ids
        FROM unnest(submitted.ids, submitted.tokens) AS r (id, token)
        GROUP BY r.token
    LOOP
        WITH left_queue AS (
            DELETE FROM queue
            WHERE message_id = ANY (of_one.ids) AND lease_token = of_one.token AND submission = 0
            RETURNING message_id)
        SELECT held || array_agg(message_id) INTO held FROM left_queue;
    END LOOP;
    IF held IS NULL THEN
        RETURN;
    END IF;
    FOR of_one IN
        SELECT r.carrier, r.segments, array_agg(r.id) AS ids
        FROM unnest(submitted.ids, submitted.carriers, submitted.segment_counts)
            AS r (id, carrier, segments)
        WHERE r.id = ANY (held)
        GROUP BY r.carrier, r.segments
    LOOP
        EXECUTE $statement$
            WITH moved AS (
                UPDATE messages SET status = {submitted}, carrier = $3,
                    segments = COALESCE($4, segments),
                    submitted_at = COALESCE(submitted_at, $2)
                WHERE id = ANY ($1) AND status = {sending}
                RETURNING id, application_id, test, created_at / 900000 AS quarter, batch_id)
            SELECT (SELECT array_agg(
                        ROW(application_id, test, quarter, batch_id, s.status, s.sign * n,
                            NULL, 0)::counted)
                    FROM (
                        SELECT application_id, test, quarter, batch_id, COUNT(*) AS n
                        FROM moved GROUP BY application_id, test, quarter, batch_id) summed,
                        (VALUES ({sending}, -1), ({submitted}, 1)) AS s (status, sign)),
                   (SELECT array_agg(ROW(application_id, test, 0, {submitted}, id)::caused)
                    FROM moved)
            $statement$
            INTO more, more_causes USING of_one.ids, now_ms, of_one.carrier, of_one.segments;
        counts := counts || more;
        causes := causes || more_causes;
    END LOOP;
    IF parts.ids <> '{}' THEN
        INSERT INTO segments AS s (shard, message_id, segment, segments, application_id, carrier,
            carrier_message_id, status, submits, submitted_at)
        SELECT of_shard, r.id, r.number, r.segments, r.application, r.carrier, r.message_id,
               {submitted}, 1, now_ms
        FROM unnest(parts.ids, parts.numbers, parts.segment_counts, parts.applications,
            parts.carriers, parts.message_ids)
            AS r (id, number, segments, application, carrier, message_id)
        WHERE r.id = ANY (held)
        ON CONFLICT (shard, message_id, segment)
        DO UPDATE SET carrier_message_id = COALESCE(
            excluded.carrier_message_id, s.carrier_message_id),
            status = CASE s.status WHEN {unknown} THEN excluded.status ELSE s.status END,
            submits = CASE WHEN s.carrier_message_id = excluded.carrier_message_id
                THEN s.submits ELSE 2 END,
            submitted_at = excluded.submitted_at;
    END IF;
END $$;

-- Makes messages final according to receipts. A receipt has a transid, or the carrier message ID of
-- a message's only segment. Only messages that are `submitted` become final here. `done` has these
-- messages, and `done_receipts` has the receipts with a carrier message ID that made one of them
-- final.
CREATE FUNCTION commit_group_receipts(
    of_shard BIGINT, now_ms BIGINT, of_messages receipt_rows, by_id identified_receipt_rows,
    OUT done BIGINT[], OUT done_receipts BIGINT[], OUT counts counted[], OUT causes caused[])
LANGUAGE plpgsql AS $$
DECLARE
    -- The receipts whose segment was found and isn't final, each with its message, status and
    -- error.
    receipts BIGINT[];
    identified BIGINT[];
    identified_statuses BIGINT[];
    identified_errors TEXT[];
    of_one RECORD;
    ended BIGINT[];
    more counted[];
    more_causes caused[];
BEGIN
    IF by_id.receipts <> '{}' THEN
        -- If a carrier has used an ID again, the receipt is for the newest message with this ID. If
        -- a message has several receipts, this function stores only the first of them.
        SELECT array_agg(receipt), array_agg(message_id), array_agg(status), array_agg(error)
        INTO receipts, identified, identified_statuses, identified_errors
        FROM (
            SELECT DISTINCT ON (message_id) *
            FROM (
                SELECT DISTINCT ON (r.receipt) r.receipt, r.status, r.error, s.*
                FROM unnest(by_id.receipts, by_id.carriers, by_id.message_ids,
                    by_id.statuses, by_id.errors)
                    AS r (receipt, carrier, message_id, status, error)
                CROSS JOIN LATERAL (
                    SELECT message_id, segments, status AS segment_status
                    FROM segments
                    WHERE shard = of_shard AND carrier = r.carrier
                      AND carrier_message_id = r.message_id
                    OFFSET 0) s
                ORDER BY r.receipt, s.message_id DESC) f
            WHERE segments = 1 AND segment_status < {delivered}
            ORDER BY message_id, receipt) o;
    END IF;
    FOR of_one IN
        SELECT r.status, r.error, array_agg(r.id) AS ids
        FROM unnest(of_messages.ids || identified, of_messages.statuses || identified_statuses,
            of_messages.errors || identified_errors) AS r (id, status, error)
        GROUP BY r.status, r.error
    LOOP
        EXECUTE $statement$
            WITH moved AS (
                UPDATE messages SET status = $4, error = $5, final_at = $3, released = 0,
                    submitted_at = COALESCE(submitted_at, $3)
                WHERE id = ANY ($2) AND status = {submitted}
                RETURNING id, application_id, test, created_at / 900000 AS quarter, batch_id,
                    -- Like `Figure::of_ending`: counts the limits that the delivery time exceeds.
                    CASE status WHEN {delivered} THEN 100 + (
                        SELECT COUNT(*) FROM (VALUES {delivery_times}) AS d
                        WHERE d.column1 < final_at - COALESCE(send_at, created_at))
                        ELSE status END AS figure),
            -- Like `Tally`: unless a message was delivered, reports find it by this row.
            noted AS (
                INSERT INTO unusual_messages (shard, application_id, test, status, message_id)
                SELECT $1, application_id, test, $4, id FROM moved WHERE $4 > {delivered})
            SELECT (SELECT array_agg(id) FROM moved),
                   (SELECT array_agg(
                        ROW(application_id, test, quarter, batch_id, s.status, s.sign * n,
                            CASE s.sign WHEN 1 THEN figure END, 0)::counted)
                    FROM (
                        SELECT application_id, test, quarter, batch_id, figure, COUNT(*) AS n
                        FROM moved
                        GROUP BY application_id, test, quarter, batch_id, figure) summed,
                        (VALUES ({submitted}, -1), ($4, 1)) AS s (status, sign)),
                   (SELECT array_agg(ROW(application_id, test, 1, $4, id)::caused) FROM moved)
            $statement$
            INTO ended, more, more_causes USING of_shard, of_one.ids, now_ms, of_one.status, of_one.error;
        IF identified IS NOT NULL AND ended IS NOT NULL THEN
            UPDATE segments SET status = of_one.status, error = of_one.error
            WHERE message_id = ANY (ended) AND segment = 1 AND status < {delivered};
        END IF;
        done := done || ended;
        counts := counts || more;
        causes := causes || more_causes;
    END LOOP;
    IF identified IS NOT NULL AND done IS NOT NULL THEN
        SELECT array_agg(r.receipt) INTO done_receipts
        FROM unnest(receipts, identified) AS r (receipt, id) WHERE r.id = ANY (done);
    END IF;
END $$;

-- Stores sends. The sends of an application are stored if all of the following is true:
--
-- - The application's row is still as the process has cached it, apart from the balances.
-- - The application's balances cover the sends.
-- - None of the sends' idempotency keys has a stored answer.
-- - None of the recipients has opted out, or got too many messages.
-- - No send starts a verification of a number that got a code after `cool_from`.
-- - No send repeats a code that another send has repeated in the meantime, or whose verification
--   has ended.
-- - With these sends, the application spends at most what its owner allows on a day. The test key
--   has spent the difference between its full test balance and its current one.
-- - With these sends, the test key sends at most `test_max` messages on this day, or the account
--   has had a deposit.
--
-- Returns:
-- - the rows as they were before the charge, each with a flag that is true if the row is as cached
-- - the applications whose sends are stored
-- - the answers that were already stored for the keys
-- - the recipients that have opted out, or got too many messages
-- - the verifications whose codes must not be sent
CREATE FUNCTION commit_group_sends(
    of_shard BIGINT, now_ms BIGINT, today BIGINT, test_money_max BIGINT, kept_since BIGINT,
    test_max BIGINT, cached application_rows, keys key_rows, recipients recipient_rows,
    limited limited_rows, hour_from BIGINT, day_from BIGINT,
    sends send_rows, codes code_rows, cool_from BIGINT,
    OUT read JSON, OUT kept JSON, OUT opted_out JSON, OUT flooded JSON, OUT stale_codes JSON,
    OUT charged BIGINT[], OUT counts counted[])
LANGUAGE plpgsql AS $$
DECLARE
    -- For each application whose sends are stored: its balances and its last transfer before the
    -- charge.
    balances BIGINT[];
    test_balances BIGINT[];
    last_transfers BIGINT[];
    -- The applications with a send that can't be stored: its answer is already stored, its
    -- recipient has opted out or got too many messages, or its code may not be sent.
    repeated BIGINT[];
    stopped BIGINT[];
    flooding BIGINT[];
    too_early BIGINT[];
BEGIN
    -- This statement locks the applications, and a later statement reads the keys. A single
    -- statement couldn't do both, because it wouldn't see the rows that were committed while it
    -- waited for a lock.
    SELECT json_agg(
               json_build_array(id, same, balance, test_balance, test_day, test_sent,
                   paid_at IS NOT NULL, spent_day, spent_today,
                   CASE WHEN NOT same THEN json_build_array(category, effective_status, live_hash,
                       test_hash, sender_state, sender_name, limits) END)),
           array_agg(id) FILTER (WHERE pays), array_agg(balance) FILTER (WHERE pays),
           array_agg(test_money) FILTER (WHERE pays),
           array_agg(last_transfer_id) FILTER (WHERE pays)
    INTO read, charged, balances, test_balances, last_transfers
    FROM (
        SELECT *, same AND balance >= total AND test_money >= test_total
                  AND transfers + tests > 0
                  AND (tests = 0 OR paid_at IS NOT NULL OR sent_today + tests <= test_max)
                  AND (spend_max IS NULL
                       OR (total = 0 OR spent + total <= spend_max)
                          AND (test_total = 0
                               OR test_money_max - test_money + test_total <= spend_max)) AS pays
        FROM (
            SELECT a.*, r.total, r.test_total, r.transfers, r.tests,
                   r.spend_max,
                   CASE WHEN a.spent_day < r.spend_day THEN 0 ELSE a.spent_today END AS spent,
                   CASE WHEN a.test_day < today THEN 0 ELSE a.test_sent END AS sent_today,
                   CASE WHEN a.test_day < today THEN test_money_max
                        ELSE a.test_balance END AS test_money,
                   r.status IS NOT NULL
                     AND a.effective_status = r.status
                     AND a.live_hash = r.live_hash AND a.test_hash = r.test_hash
                     AND a.sender_state = r.sender_state
                     AND a.sender_name IS NOT DISTINCT FROM r.sender_name
                     AND a.limits IS NOT DISTINCT FROM r.limits AS same
            FROM unnest(cached.ids, cached.statuses, cached.live_hashes,
                cached.test_hashes, cached.sender_states, cached.sender_names,
                cached.totals, cached.test_totals, cached.transfers,
                cached.tests, cached.limits, cached.spend_days, cached.spend_maxes)
                AS r (id, status, live_hash, test_hash, sender_state, sender_name, total,
                      test_total, transfers, tests, limits, spend_day, spend_max)
            JOIN applications a ON a.id = ANY (cached.ids) AND a.id = r.id
            ORDER BY a.id FOR NO KEY UPDATE OF a) l) p;
    IF keys.keys <> '{}' THEN
        SELECT json_agg(json_build_array(i.application_id, i.test, i.key, i.digest, i.answer)),
               array_agg(i.application_id)
        INTO kept, repeated
        FROM unnest(keys.applications, keys.tests, keys.keys) AS r (application, test, key)
        CROSS JOIN LATERAL (
            SELECT *
            FROM idempotency
            WHERE application_id = r.application AND test = r.test
              AND key = r.key AND created_at > kept_since
            OFFSET 0) i;
    END IF;
    IF recipients.numbers <> '{}' THEN
        SELECT json_agg(json_build_array(o.application_id, o.test, o.number)),
               array_agg(o.application_id)
        INTO opted_out, stopped
        FROM unnest(recipients.applications, recipients.tests, recipients.numbers)
            AS r (application, test, number)
        CROSS JOIN LATERAL (
            SELECT *
            FROM opt_outs
            WHERE application_id = r.application AND test = r.test AND number = r.number
            OFFSET 0) o;
    END IF;
    IF limited.numbers <> '{}' THEN
        EXECUTE $statement$
            SELECT json_agg(json_build_array(r.application, r.test, r.number, m.hour, m.day)),
                   array_agg(r.application)
            FROM unnest($1, $2, $3, $4, $5, $6)
                AS r (application, test, number, local_number, hour_max, day_max)
            CROSS JOIN LATERAL (
                SELECT COUNT(*) FILTER (WHERE f.id >= $7) AS hour, COUNT(*) AS day
                FROM (
                    SELECT i.id
                    FROM messages i
                    WHERE i.application_id = r.application AND i.test + 0 = r.test
                      AND i.number = r.number AND i.id >= $8
                      AND i.kind = 'international' AND i.released = 0 AND i.unit_price > 0
                    UNION ALL
                    SELECT l.id
                    FROM messages l
                    WHERE l.application_id = r.application AND l.test + 0 = r.test
                      AND l.number = r.local_number AND l.id >= $8
                      AND l.kind = 'local' AND l.released = 0 AND l.unit_price > 0) f
                OFFSET 0) m
            WHERE m.hour > r.hour_max OR m.day > r.day_max
            $statement$
            INTO flooded, flooding
            USING limited.applications, limited.tests, limited.numbers, limited.local_numbers,
                limited.hour_maxes, limited.day_maxes, hour_from, day_from;
    END IF;
    IF codes.ids <> '{}' THEN
        SELECT json_agg(r.id), array_agg(r.application)
        INTO stale_codes, too_early
        FROM unnest(codes.ids, codes.applications, codes.tests, codes.numbers, codes.resends)
            AS r (id, application, test, number, resends)
        CROSS JOIN LATERAL (
            SELECT EXISTS (
                       SELECT 1
                       FROM verifications v
                       WHERE v.application_id = r.application AND v.test = r.test
                         AND v.number = r.number AND v.sent_at > cool_from) AS is_cooling,
                   EXISTS (
                       SELECT 1
                       FROM verifications v
                       WHERE v.id = r.id AND v.resends = r.resends AND v.attempts < 5
                         AND v.verified_at IS NULL AND v.expires_at > now_ms) AS is_open
            OFFSET 0) v
        WHERE CASE WHEN r.resends IS NULL THEN v.is_cooling ELSE NOT v.is_open END;
    END IF;
    IF repeated IS NOT NULL OR stopped IS NOT NULL OR flooding IS NOT NULL
        OR too_early IS NOT NULL THEN
        SELECT array_agg(r.id), array_agg(r.balance), array_agg(r.test_money),
               array_agg(r.last_transfer)
        INTO charged, balances, test_balances, last_transfers
        FROM unnest(charged, balances, test_balances, last_transfers)
            AS r (id, balance, test_money, last_transfer)
        WHERE r.id <> ALL (repeated || stopped || flooding || too_early);
    END IF;
    IF charged IS NULL THEN
        RETURN;
    END IF;
    UPDATE applications a SET balance = a.balance - r.total,
        test_balance = c.test_money - r.test_total,
        test_sent = CASE WHEN a.test_day < today THEN 0 ELSE a.test_sent END + r.tests,
        test_day = GREATEST(a.test_day, today),
        spent_today = CASE WHEN a.spent_day < r.spend_day THEN 0 ELSE a.spent_today END + r.total,
        spent_day = GREATEST(a.spent_day, r.spend_day),
        last_transfer_id = a.last_transfer_id + r.transfers
    FROM unnest(charged, test_balances) AS c (id, test_money)
    JOIN unnest(cached.ids, cached.totals, cached.test_totals, cached.transfers,
        cached.tests, cached.spend_days)
        AS r (id, total, test_total, transfers, tests, spend_day) ON r.id = c.id
    WHERE a.id = ANY (charged) AND a.id = c.id;
    INSERT INTO messages (shard, id, application_id, test, number, kind, sender, body,
        verification_id, requestid, pages, segments, unit_price, cost, created_at, sending_at, send_at, status, released)
    SELECT of_shard, m.*, CASE WHEN m.sending_at IS NOT NULL THEN {sending}
               WHEN m.send_at IS NOT NULL THEN {scheduled} ELSE {queued} END, 0
    FROM unnest(sends.ids, sends.applications, sends.tests, sends.numbers, sends.kinds,
        sends.senders, sends.bodies, sends.verifications, sends.requestids, sends.pages,
        sends.segment_counts, sends.unit_prices, sends.costs, sends.created_ats,
        sends.sending_ats, sends.send_ats)
        AS m (id, application_id, test, number, kind, sender, body, verification_id, requestid,
              pages, segments, unit_price, cost, created_at, sending_at, send_at)
    WHERE m.application_id = ANY (charged);
    INSERT INTO transfers (shard, application_id, id, debit_account, credit_account, amount, kind,
        message_id, balance_after, created_at)
    SELECT of_shard, m.application, c.last_transfer + m.transfer, m.application, {REVENUE}, m.cost,
           {charge}, m.id, c.balance - m.spent, now_ms
    FROM unnest(sends.ids, sends.applications, sends.tests, sends.costs, sends.spent,
        sends.transfers)
        AS m (id, application, test, cost, spent, transfer)
    JOIN unnest(charged, balances, last_transfers) AS c (id, balance, last_transfer)
      ON c.id = m.application
    WHERE m.test = 0;
    INSERT INTO queue (shard, message_id, application_id, carrier, deferred, bulk, due_at,
        lease_token, attempts, expires_at)
    SELECT of_shard, m.id, m.application, m.carrier, 0, 0, m.due_at, m.token, 0, m.expires_at
    FROM unnest(sends.ids, sends.applications, sends.carriers, sends.due_ats, sends.tokens,
        sends.expires_ats)
        AS m (id, application, carrier, due_at, token, expires_at)
    WHERE m.application = ANY (charged);
    IF codes.ids <> '{}' THEN
        INSERT INTO verifications (shard, id, application_id, test, number, kind, country, nonce,
            digits, locale, name, created_at, expires_at, attempts, resends, sent_at)
        SELECT of_shard, r.id, r.application, r.test, r.number, r.kind, r.country, r.nonce,
               r.digits, r.locale, r.name, r.created_at, r.expires_at, 0, 0, now_ms
        FROM unnest(codes.ids, codes.applications, codes.tests, codes.numbers, codes.kinds,
            codes.countries, codes.nonces, codes.digits, codes.locales, codes.names, codes.created_ats,
            codes.expires_ats, codes.resends)
            AS r (id, application, test, number, kind, country, nonce, digits, locale, name,
                  created_at, expires_at, resends)
        WHERE r.resends IS NULL AND r.application = ANY (charged);
        UPDATE verifications SET resends = resends + 1, sent_at = now_ms
        WHERE id = ANY (ARRAY(
            SELECT r.id
            FROM unnest(codes.ids, codes.applications, codes.resends)
                AS r (id, application, resends)
            WHERE r.resends IS NOT NULL AND r.application = ANY (charged)));
    END IF;
    IF keys.keys <> '{}' THEN
        INSERT INTO idempotency (shard, application_id, test, key, digest, answer, created_at)
        SELECT of_shard, k.application, k.test, k.key, k.digest,
               jsonb_set(k.answer::jsonb, '{balance}', to_jsonb(
                   CASE k.test WHEN 1 THEN c.test_money ELSE c.balance END - k.spent))::text,
               now_ms
        FROM unnest(keys.applications, keys.tests, keys.keys, keys.digests, keys.answers,
            keys.spent)
            AS k (application, test, key, digest, answer, spent)
        JOIN unnest(charged, balances, test_balances) AS c (id, balance, test_money)
          ON c.id = k.application
        WHERE k.answer IS NOT NULL
        ON CONFLICT (shard, application_id, test, key)
        DO UPDATE SET digest = excluded.digest, answer = excluded.answer,
            created_at = excluded.created_at;
    END IF;
    SELECT array_agg(ROW(application, test, quarter, NULL, status, n, 0, cost)::counted)
    INTO counts
    FROM (
        SELECT application, test, created_at / 900000 AS quarter,
               CASE WHEN sending_at IS NOT NULL THEN {sending}
                   WHEN send_at IS NOT NULL THEN {scheduled} ELSE {queued} END AS status,
               COUNT(*) AS n,
               SUM(cost) AS cost
        FROM unnest(sends.applications, sends.tests, sends.created_ats, sends.sending_ats,
            sends.send_ats, sends.costs)
            AS m (application, test, created_at, sending_at, send_at, cost)
        WHERE application = ANY (charged)
        GROUP BY 1, 2, 3, 4) s;
END $$;

-- Claims rows of a carrier that are due: at most `all_max` rows, and at most `singles_max` single
-- messages among them. Some of these rows aren't claimed:
-- - Rows of suspended applications, and of paused or cancelled batches, are deferred.
-- - Messages whose recipients have opted out are returned, so that the process rejects them. If the
--   process dies before that, they are due again when the lease would have ended. Replies, which
--   are free, are claimed all the same, and so are messages of which a carrier has or may have a
--   segment.
--
-- Also returns all rows that were found, the claimed messages, and those of their segments that a
-- carrier has or may have. If fewer rows than `all_max` and fewer single messages than
-- `singles_max` were found, returns when the next row is due.
CREATE FUNCTION commit_group_claims(
    of_shard BIGINT, now_ms BIGINT, of_carrier TEXT, singles_max BIGINT, all_max BIGINT,
    singles_from BIGINT, batches_from BIGINT, least_id BIGINT, new_token BIGINT, lease_until BIGINT,
    country_code TEXT, OUT answer JSON, OUT counts counted[]) LANGUAGE plpgsql AS $$
DECLARE
    due_rows JSON;
    due_count BIGINT;
    singles_count BIGINT;
    suspended_ids BIGINT[];
    -- The rows of batches that are paused or cancelled.
    held_ids BIGINT[];
    due BIGINT[];
    -- The rows among `due` that aren't claimed if their batch is paused or cancelled.
    due_of_batches BIGINT[];
    begun BIGINT[];
    -- The messages of applications that have opt-outs, and those whose recipients have opted out.
    looked_up BIGINT[];
    stopped BIGINT[];
    start CONSTANT TEXT := $statement$
        WITH started AS (
            UPDATE messages SET status = COALESCE($5, status),
                sending_at = CASE WHEN status < {unknown} THEN $2 ELSE sending_at END
            WHERE id = ANY ($1) AND status BETWEEN $3 AND $4
            RETURNING id, application_id, test, batch_id, created_at, status, cost, send_at,
                number, kind, sender,
                COALESCE(body, (SELECT b.body FROM batches b WHERE b.id = batch_id))
                AS body, verification_id),
        -- Looked up once per application, like those in the statement below.
        senders AS MATERIALIZED (
            SELECT a.id AS sender_id, a.reference
            FROM applications a
            WHERE a.id = ANY (ARRAY(SELECT DISTINCT application_id FROM started)))
        SELECT (SELECT json_agg(
                    json_build_array(
                        json_build_array(
                            id, application_id, test, batch_id, created_at, status, cost,
                            send_at),
                        number, kind, sender, body, verification_id, nonce, digits,
                        -- A join would change the order of the messages.
                        (SELECT reference FROM senders WHERE sender_id = application_id)))
                FROM started
                LEFT JOIN LATERAL (
                    SELECT v.nonce, v.digits
                    FROM verifications v WHERE v.id = verification_id OFFSET 0) c ON TRUE),
               (SELECT array_agg(id) FROM started),
               (SELECT array_agg(
                    ROW(application_id, test, quarter, batch_id, s.status, s.sign * n,
                        NULL, 0)::counted)
                FROM (
                    SELECT application_id, test, created_at / 900000 AS quarter, batch_id,
                           COUNT(*) AS n
                    FROM started WHERE $5 IS NOT NULL
                    GROUP BY 1, 2, 3, 4) summed,
                    (VALUES ($3, -1), ($5, 1)) AS s (status, sign))
        $statement$;
    started JSON;
    started_scheduled JSON;
    started_before JSON;
    ids BIGINT[];
    more counted[];
    submitted_segments JSON;
    next_due BIGINT;
BEGIN
    EXECUTE $statement$
        WITH singles AS MATERIALIZED (
            SELECT message_id, application_id, submission, due_at, 0 AS bulk, expires_at
            FROM queue
            WHERE shard = $1 AND carrier = $2 AND deferred = 0 AND bulk = 0
              AND due_at BETWEEN $6 AND $3 AND lease_token = 0
              AND (expires_at > $3 OR expires_at IS NULL AND message_id >= $8)
            ORDER BY due_at, message_id LIMIT $4 FOR UPDATE SKIP LOCKED),
        of_batches AS MATERIALIZED (
            SELECT message_id, application_id, submission, due_at, 1 AS bulk, expires_at
            FROM queue
            WHERE shard = $1 AND carrier = $2 AND deferred = 0 AND bulk = 1
              AND due_at BETWEEN $7 AND $3 AND lease_token = 0
              AND (expires_at > $3 OR expires_at IS NULL AND message_id >= $8)
            ORDER BY due_at, message_id LIMIT $5 - (SELECT COUNT(*) FROM singles)
            FOR UPDATE SKIP LOCKED),
        due AS (SELECT * FROM singles UNION ALL SELECT * FROM of_batches),
        -- The applications are looked up once and not for each message, because an application's
        -- row may have many dead versions.
        suspended AS MATERIALIZED (
            SELECT id
            FROM applications
            WHERE id = ANY (ARRAY(SELECT DISTINCT application_id FROM due))
              AND effective_status = 'Suspended'),
        stopping AS MATERIALIZED (
            SELECT a.id
            FROM unnest(ARRAY(SELECT DISTINCT application_id FROM due)) AS a (id)
            CROSS JOIN LATERAL (
                SELECT 1 FROM opt_outs o WHERE o.application_id = a.id LIMIT 1) o),
        held AS MATERIALIZED (
            SELECT first_message_id, last_message_id
            FROM batches
            WHERE shard = $1 AND (cancelling = 1 OR paused_at IS NOT NULL)
              AND first_message_id <= (SELECT MAX(message_id) FROM of_batches)),
        judged AS (
            SELECT *, CASE WHEN application_id IN (SELECT id FROM suspended) THEN 1
                WHEN bulk = 1 AND EXISTS (
                    SELECT 1
                    FROM held
                    WHERE message_id BETWEEN first_message_id AND last_message_id
                      -- Other processes' batches have IDs in this range, with another slot.
                      AND (message_id & {slot_bits}) = (first_message_id & {slot_bits})) THEN 2
                ELSE 0 END AS hold,
                submission = 0 AND application_id IN (SELECT id FROM stopping) AS is_looked_up
            FROM due)
        SELECT json_agg(
                   json_build_array(message_id, submission, hold, due_at, bulk, expires_at)),
               COUNT(*), COUNT(*) FILTER (WHERE bulk = 0),
               array_agg(message_id) FILTER (WHERE hold = 1),
               array_agg(message_id) FILTER (WHERE hold = 2),
               array_agg(message_id ORDER BY message_id) FILTER (WHERE hold = 0),
               array_agg(message_id) FILTER (WHERE hold = 0 AND bulk = 1),
               array_agg(message_id) FILTER (WHERE hold = 0 AND submission <> 0),
               array_agg(message_id) FILTER (WHERE hold = 0 AND is_looked_up)
        FROM judged
        $statement$
        INTO due_rows, due_count, singles_count, suspended_ids, held_ids, due, due_of_batches,
            begun, looked_up
        USING of_shard, of_carrier, now_ms, singles_max, all_max, singles_from, batches_from,
            least_id;
    IF suspended_ids IS NOT NULL THEN
        UPDATE queue SET deferred = 1 WHERE message_id = ANY (suspended_ids);
    END IF;
    IF held_ids IS NOT NULL THEN
        UPDATE queue SET deferred = 2 WHERE message_id = ANY (held_ids);
    END IF;
    IF looked_up IS NOT NULL THEN
        EXECUTE $statement$
            SELECT array_agg(m.id)
            FROM messages m
            CROSS JOIN LATERAL (
                SELECT 1
                FROM opt_outs o
                WHERE o.application_id = m.application_id AND o.test = m.test
                  AND o.number = CASE m.kind WHEN 'local' THEN $2 || m.number ELSE m.number END
                OFFSET 0) o
            WHERE m.id = ANY ($1) AND m.unit_price > 0
            $statement$
            INTO stopped USING looked_up, country_code;
    END IF;
    IF stopped IS NOT NULL THEN
        UPDATE queue SET due_at = lease_until WHERE message_id = ANY (stopped);
        due := NULLIF(ARRAY(SELECT id FROM unnest(due) AS id WHERE id <> ALL (stopped)), '{}');
    END IF;
    IF due IS NOT NULL THEN
        UPDATE queue SET due_at = lease_until, lease_token = new_token
        WHERE message_id = ANY (due);
        -- Nearly all messages are `queued`. The others were scheduled, or were claimed before and
        -- keep their status.
        EXECUTE start INTO started, ids, counts USING due, now_ms, {queued}, {queued}, {sending};
        IF COALESCE(cardinality(ids), 0) < cardinality(due) THEN
            due := ARRAY(SELECT id FROM unnest(due) AS id WHERE id <> ALL (COALESCE(ids, '{}')));
            EXECUTE start INTO started_scheduled, ids, more
            USING due, now_ms, {scheduled}, {scheduled}, {sending};
            counts := counts || more;
        END IF;
        IF COALESCE(cardinality(ids), 0) < cardinality(due) THEN
            due := ARRAY(SELECT id FROM unnest(due) AS id WHERE id <> ALL (COALESCE(ids, '{}')));
            EXECUTE start INTO started_before, ids, more
            USING due, now_ms, {sending}, {unknown}, NULL::bigint;
            -- Changes no count. `commit_group_counts` checks that the batches haven't been stopped.
            IF due_of_batches IS NOT NULL THEN
                EXECUTE $statement$
                    SELECT array_agg(
                        ROW(application_id, test, 0, batch_id, {sending}, 0, NULL, 0)::counted)
                    FROM messages
                    WHERE id = ANY ($1) AND id = ANY ($2) AND batch_id IS NOT NULL
                    $statement$
                    INTO more USING due, due_of_batches;
                counts := counts || more;
            END IF;
        END IF;
    END IF;
    IF begun IS NOT NULL THEN
        SELECT json_agg(
            json_build_array(message_id, segment, segments, status, error, submits,
                CASE WHEN carrier_message_id IS NULL THEN 0 ELSE 1 END))
        INTO submitted_segments
        FROM segments WHERE message_id = ANY (begun);
    END IF;
    IF due_count < all_max AND singles_count < singles_max THEN
        EXECUTE $statement$
            SELECT LEAST(
                (SELECT MIN(due_at)
                 FROM queue
                 WHERE shard = $1 AND carrier = $2 AND deferred = 0 AND bulk = 0
                   AND (expires_at > $6 OR expires_at IS NULL AND message_id >= $5)
                   AND lease_token = 0 AND due_at >= $3),
                (SELECT MIN(due_at)
                 FROM queue
                 WHERE shard = $1 AND carrier = $2 AND deferred = 0 AND bulk = 1
                   AND (expires_at > $6 OR expires_at IS NULL AND message_id >= $5)
                   AND lease_token = 0 AND due_at >= $4))
            $statement$
            INTO next_due USING of_shard, of_carrier, singles_from, batches_from, least_id,
                now_ms;
    END IF;
    answer := json_build_object('found', due_rows, 'started', started,
        'started_scheduled', started_scheduled, 'started_before', started_before,
        'submitted_segments', submitted_segments,
        'opted_out', stopped, 'next_due', next_due);
END $$;

-- Adds the changes that a group makes to the counts.
CREATE FUNCTION commit_group_counts(of_shard BIGINT, now_ms BIGINT, of_node BIGINT,
    counts counted[])
RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    batch_ids BIGINT[] := ARRAY(
        SELECT DISTINCT batch_id FROM unnest(counts) WHERE batch_id IS NOT NULL);
    stopped BIGINT[];
BEGIN
    INSERT INTO message_days AS d (shard, application_id, test, day, status, node, writer, n)
    SELECT of_shard, application_id, test, quarter / 96 AS day, status, of_node, 0, SUM(n)
    FROM unnest(counts)
    GROUP BY application_id, test, quarter / 96, status
    HAVING SUM(n) <> 0
    ORDER BY application_id, test, quarter / 96, status
    ON CONFLICT (shard, application_id, test, day, status, node, writer)
    DO UPDATE SET n = d.n + excluded.n;
    INSERT INTO message_quarters AS q (shard, application_id, test, quarter, figure, node, writer,
        n, cost)
    SELECT of_shard, application_id, test, quarter, figure, of_node, 0, SUM(n), SUM(cost)
    FROM unnest(counts)
    WHERE figure IS NOT NULL
    GROUP BY application_id, test, quarter, figure
    ORDER BY application_id, test, quarter, figure
    ON CONFLICT (shard, application_id, test, quarter, figure, node, writer)
    DO UPDATE SET n = q.n + excluded.n, cost = q.cost + excluded.cost;
    IF batch_ids = '{}' THEN
        RETURN;
    END IF;
    -- A transaction changes the counts of a batch only while it holds the lock on the batch's row.
    SELECT array_agg(id) FILTER (WHERE cancelling = 1 OR paused_at IS NOT NULL) INTO stopped
    FROM (
        SELECT id, cancelling, paused_at
        FROM batches WHERE id = ANY (batch_ids) ORDER BY id FOR NO KEY UPDATE) l;
    -- The claims of this call looked for stopped batches before they had this lock. If a batch was
    -- stopped in between, its rows must not be claimed, so the whole call is rolled back and made
    -- again.
    IF stopped IS NOT NULL AND EXISTS (
        SELECT 1
        FROM unnest(counts)
        WHERE batch_id = ANY (stopped) AND status = {sending} AND n >= 0) THEN
        RAISE EXCEPTION 'a batch was stopped' USING ERRCODE = 'serialization_failure';
    END IF;
    UPDATE batch_counts b SET n = b.n + c.n
    FROM (
        SELECT batch_id, status, SUM(n)::bigint AS n
        FROM unnest(counts)
        GROUP BY batch_id, status
        HAVING SUM(n) <> 0) c
    WHERE b.batch_id = ANY (batch_ids) AND b.batch_id = c.batch_id AND b.status = c.status;
    UPDATE batches b SET open = b.open - c.n,
        done_at = CASE WHEN b.open = c.n THEN COALESCE(b.done_at, now_ms) END,
        paused_at = CASE WHEN b.open > c.n THEN b.paused_at END
    FROM (
        SELECT batch_id, SUM(n)::bigint AS n
        FROM unnest(counts) WHERE status >= {delivered}
        GROUP BY batch_id) c
    WHERE b.id = ANY (batch_ids) AND b.id = c.batch_id;
END $$;

-- Stores the events of messages that became `submitted` or final, and of batches that are done, for
-- the streams that keep them. Locks the streams until the commit, so that the IDs of a stream's
-- events grow in the order of the commits. Makes the endpoints of these streams due. `first_id` is
-- the first ID of this millisecond. Runs after `commit_group_counts`.
CREATE FUNCTION commit_group_events(
    of_shard BIGINT, now_ms BIGINT, first_id BIGINT, counts counted[], causes caused[])
RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    of_applications BIGINT[];
    tests BIGINT[];
    lasts BIGINT[];
BEGIN
    SELECT array_agg(application_id), array_agg(test), array_agg(GREATEST(last_id, first_id - 1))
    INTO of_applications, tests, lasts
    FROM (
        SELECT s.application_id, s.test, s.last_id
        FROM event_streams s
        WHERE s.shard = of_shard AND s.since IS NOT NULL
          AND s.application_id = ANY (ARRAY(
              SELECT DISTINCT c.application_id FROM unnest(causes) c))
        ORDER BY s.application_id, s.test FOR NO KEY UPDATE) l;
    IF of_applications IS NULL THEN
        RETURN;
    END IF;
    EXECUTE $statement$
        WITH streams AS MATERIALIZED (
            SELECT * FROM unnest($5, $6, $7) AS s (application_id, test, last_id)),
        causes AS (
            SELECT * FROM unnest($3)
            UNION ALL
            SELECT application_id, test, 2, {batch_done}, id
            FROM batches
            WHERE open = 0 AND id = ANY (ARRAY(
                SELECT DISTINCT batch_id
                FROM unnest($4) WHERE n > 0 AND status >= {delivered} AND batch_id IS NOT NULL))),
        stored AS (
            INSERT INTO events (shard, application_id, test, id, type, subject)
            SELECT $1, application_id, test,
                   last_id + ROW_NUMBER() OVER (
                       PARTITION BY application_id, test ORDER BY step, subject), type, subject
            FROM causes c JOIN streams USING (application_id, test)
            RETURNING application_id, test, id),
        advanced AS (
            UPDATE event_streams s SET last_id = e.last_id
            FROM (
                SELECT application_id, test, MAX(id) AS last_id
                FROM stored GROUP BY application_id, test) e
            WHERE s.shard = $1 AND s.application_id = ANY ($5)
              AND s.application_id = e.application_id AND s.test = e.test
            RETURNING s.application_id, s.test)
        UPDATE webhooks w SET due_at = $2
        FROM advanced a
        WHERE w.shard = $1 AND w.application_id = ANY ($5)
          AND w.application_id = a.application_id AND w.test = a.test
          AND w.due_at > $2 AND w.disabled_at IS NULL
        $statement$
        USING of_shard, now_ms, causes, counts, of_applications, tests, lasts;
END $$;

-- Stores a group. The process decided the sends and the claims by the prices and the drained
-- carriers that it has cached. If there is a newer price change, or if other carriers are drained,
-- this function stores no sends and claims nothing. The answer has these fields:
--
-- - `missing`: the messages of `submitted` whose lease was no longer valid.
-- - `done`: the messages that receipts made final.
-- - `done_receipts`: the receipts with a carrier message ID that made one of these messages final.
-- - `prices`: all price changes, if the process hasn't cached the newest one.
-- - `drained`: the drained carriers, if the process's prices or drained carriers are outdated.
-- - `applications`, `charged`, `kept`, `opted_out`, `flooded` and `stale_codes`: see
--   `commit_group_sends`.
-- - `claims`: see `commit_group_claims`.
--
-- `first_event` is the first ID of an event in this millisecond. `country_code` precedes local
-- numbers in opt-outs. `hour_from` and `day_from` are the least IDs of messages of the last hour
-- and of the last day. A number that got a code after `cool_from` gets no code of another
-- verification.
CREATE FUNCTION run_commit_group(
    of_shard BIGINT, group_id BIGINT, now_ms BIGINT, of_node BIGINT, least_id BIGINT,
    submitted submitted_rows, parts segment_rows, receipts receipt_rows,
    identified_receipts identified_receipt_rows,
    known_price BIGINT, known_drained TEXT[], test_money_max BIGINT, kept_since BIGINT,
    test_max BIGINT, applications application_rows, keys key_rows, recipients recipient_rows,
    limited limited_rows, sends send_rows, claims claim_rows, lease_token BIGINT,
    lease_until BIGINT, first_event BIGINT, country_code TEXT, hour_from BIGINT, day_from BIGINT,
    codes code_rows, cool_from BIGINT)
RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    answer JSONB := '{}';
    claimed JSON[];
    one JSON;
    counts counted[];
    more counted[];
    causes caused[];
    more_causes caused[];
    held BIGINT[];
    done BIGINT[];
    done_receipts BIGINT[];
    read JSON;
    kept JSON;
    opted_out JSON;
    flooded JSON;
    stale_codes JSON;
    charged BIGINT[];
    newest_price BIGINT;
    all_prices JSON;
    drained TEXT[];
    unchanged BOOLEAN := TRUE;
    is_stored BOOLEAN;
BEGIN
    IF submitted.ids <> '{}' THEN
        SELECT * INTO held, counts, causes
        FROM commit_group_submitted(of_shard, now_ms, submitted, parts);
        IF held IS NULL OR cardinality(held) < cardinality(submitted.ids) THEN
            answer := jsonb_build_object('missing', ARRAY(
                SELECT id FROM unnest(submitted.ids) AS id
                WHERE id <> ALL (COALESCE(held, '{}'))));
        END IF;
    END IF;
    IF receipts.ids <> '{}' OR identified_receipts.receipts <> '{}' THEN
        SELECT * INTO done, done_receipts, more, more_causes
        FROM commit_group_receipts(of_shard, now_ms, receipts, identified_receipts);
        counts := counts || more;
        causes := causes || more_causes;
        answer := answer || jsonb_build_object('done', done, 'done_receipts', done_receipts);
    END IF;
    IF applications.ids <> '{}' OR claims.carriers <> '{}' THEN
        SELECT ARRAY(SELECT name FROM carriers WHERE drained_at IS NOT NULL ORDER BY name)
        INTO drained;
        SELECT COALESCE(MAX(id), 0) INTO newest_price FROM prices;
        unchanged := drained = known_drained AND newest_price = known_price;
        IF NOT unchanged THEN
            SELECT json_agg(
                json_build_array(
                    id, prefix, local, international, in_force_at, set_at, cancels))
            INTO all_prices
            FROM prices WHERE newest_price <> known_price;
            answer := answer || jsonb_build_object('prices', all_prices, 'drained', drained);
        END IF;
    END IF;
    IF unchanged AND applications.ids <> '{}' THEN
        SELECT * INTO read, kept, opted_out, flooded, stale_codes, charged, more
        FROM commit_group_sends(of_shard, now_ms, now_ms / 86400000, test_money_max, kept_since,
            test_max, applications, keys, recipients, limited, hour_from, day_from, sends,
            codes, cool_from);
        counts := counts || more;
        answer := answer || jsonb_build_object(
            'applications', read, 'kept', kept, 'opted_out', opted_out, 'flooded', flooded,
            'stale_codes', stale_codes, 'charged', charged);
    END IF;
    is_stored := held IS NOT NULL OR counts IS NOT NULL;
    IF unchanged THEN
        FOR i IN 1 .. cardinality(claims.carriers) LOOP
            SELECT * INTO one, more
            FROM commit_group_claims(of_shard, now_ms, claims.carriers[i], claims.singles_max[i],
                claims.all_max[i], claims.singles_from[i], claims.batches_from[i], least_id,
                lease_token, lease_until, country_code);
            is_stored := is_stored OR one ->> 'found' IS NOT NULL;
            counts := counts || more;
            claimed := claimed || one;
        END LOOP;
    END IF;
    -- If a group stored nothing, its ID isn't kept, because the group can safely run again. While
    -- nothing is sent, groups only look for pending messages and write nothing.
    IF is_stored THEN
        INSERT INTO commit_groups (shard, id, created_at, answer)
        VALUES (of_shard, group_id, now_ms, answer::text);
    END IF;
    IF counts IS NOT NULL THEN
        PERFORM commit_group_counts(of_shard, now_ms, of_node, counts);
    END IF;
    IF causes IS NOT NULL THEN
        PERFORM commit_group_events(of_shard, now_ms, first_event, counts, causes);
    END IF;
    RETURN (answer || jsonb_build_object('claims', claimed))::text;
END $$;
