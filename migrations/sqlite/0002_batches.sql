-- Bulk uploads, requests that may be repeated, and counts that lists and charts need without counting.

-- Bulk uploads: accepted whole, their price reserved, turned into messages bit by bit.
CREATE TABLE batches (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count: newest first is the key's order
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: uploaded with the test key
    sender         TEXT,              -- the accepted name at acceptance; null: the installation's default
    requestid      TEXT,              -- the caller's
    body           TEXT,              -- the message to every number; null when each row has its own
    rows           INTEGER NOT NULL CHECK (rows > 0),
    pages          INTEGER NOT NULL,  -- billed, of all rows
    cost           INTEGER NOT NULL CHECK (cost > 0), -- the sum of the rows' prices
    price_local    INTEGER NOT NULL,  -- per page, in force at acceptance
    price_international INTEGER NOT NULL,
    first_message_id INTEGER NOT NULL, -- of the first row; the others' follow
    last_message_id  INTEGER NOT NULL UNIQUE,
    spool          TEXT NOT NULL,     -- file in the data folder that holds the rows until they are messages
    spool_offset   INTEGER NOT NULL,  -- bytes of the spool file that are messages already
    expanded_rows  INTEGER NOT NULL,  -- rows that are messages already
    expanded_cost  INTEGER NOT NULL,  -- their price: what left the reservation
    -- Rows by status, always adding up to all of them; rows that are no message yet are queued.
    queued         INTEGER NOT NULL CHECK (queued >= 0),
    sending        INTEGER NOT NULL CHECK (sending >= 0),
    unknown        INTEGER NOT NULL CHECK (unknown >= 0),
    submitted      INTEGER NOT NULL CHECK (submitted >= 0),
    delivered      INTEGER NOT NULL CHECK (delivered >= 0),
    failed         INTEGER NOT NULL CHECK (failed >= 0),
    expired        INTEGER NOT NULL CHECK (expired >= 0),
    rejected       INTEGER NOT NULL CHECK (rejected >= 0),
    created_at     INTEGER NOT NULL,  -- acceptance
    expanded_at    INTEGER,           -- when every row was a message, or given up
    done_at        INTEGER,           -- when every row was final
    CHECK (queued + sending + unknown + submitted + delivered + failed + expired + rejected = rows),
    CHECK (expanded_rows <= rows AND expanded_cost <= cost)
) STRICT;
CREATE INDEX batches_by_application ON batches (application_id, test, id);
CREATE INDEX batches_unexpanded ON batches (id) WHERE expanded_at IS NULL;

-- Messages by the day (since 1970-01-01 UTC) of their acceptance and status: what the chart draws.
CREATE TABLE message_days (
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)),
    day            INTEGER NOT NULL,
    status         TEXT NOT NULL,
    n              INTEGER NOT NULL,
    PRIMARY KEY (application_id, test, day, status)
) STRICT;
INSERT INTO message_days (application_id, test, day, status, n)
SELECT application_id, test, created_at / 86400000, status, COUNT(*) FROM messages GROUP BY 1, 2, 3, 4;

-- Answers to requests with an Idempotency-Key: a repeated request is given them again.
CREATE TABLE idempotency (
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)),
    key            TEXT NOT NULL,     -- SHA-256 of the caller's, hexadecimal
    digest         TEXT NOT NULL,     -- SHA-256 of the request's meaning, hexadecimal
    answer         TEXT NOT NULL,     -- JSON of what was answered
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (application_id, test, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- A transfer can be for a batch: its price goes to account -4, what is reserved, when it is accepted
-- ('charge'), from there to revenue as its rows become messages ('settle'), and back for rows that can't
-- ('release'). SQLite can't change a CHECK, so that the table is made anew.
DROP TRIGGER transfers_never_change;
DROP TRIGGER transfers_never_go;
ALTER TABLE transfers RENAME TO transfers_before;
DROP INDEX transfers_by_application;
DROP INDEX transfers_one_release;
DROP INDEX transfers_bank_once;
CREATE TABLE transfers (
    id             INTEGER PRIMARY KEY, -- grows with each commit: the order of an account's transfers
    debit_account  INTEGER NOT NULL,
    credit_account INTEGER NOT NULL CHECK (credit_account <> debit_account),
    amount         INTEGER NOT NULL CHECK (amount > 0),
    kind           TEXT NOT NULL CHECK (kind IN ('deposit', 'unmatched', 'charge', 'settle', 'release')),
    application_id INTEGER,             -- whose statement it is on; null for the house's alone
    message_id     INTEGER,             -- what a charge or release is for
    batch_id       INTEGER,             -- likewise
    bank_id        TEXT,                -- what a deposit is for
    balance_after  INTEGER,             -- of the application; null for the house's alone
    created_at     INTEGER NOT NULL
) STRICT;
INSERT INTO transfers (id, debit_account, credit_account, amount, kind, application_id, message_id, bank_id,
                       balance_after, created_at)
SELECT id, debit_account, credit_account, amount, kind, application_id, message_id, bank_id,
       balance_after, created_at FROM transfers_before;
DROP TABLE transfers_before;
CREATE INDEX transfers_by_application ON transfers (application_id, id);
CREATE INDEX transfers_by_batch ON transfers (batch_id, kind) WHERE batch_id IS NOT NULL;
CREATE UNIQUE INDEX transfers_one_release ON transfers (message_id) WHERE kind = 'release';
CREATE UNIQUE INDEX transfers_batch_once ON transfers (batch_id, kind) WHERE kind IN ('charge', 'release');
CREATE UNIQUE INDEX transfers_bank_once ON transfers (bank_id, kind) WHERE bank_id IS NOT NULL;
CREATE TRIGGER transfers_never_change BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;
CREATE TRIGGER transfers_never_go BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;

-- One message to one person doesn't wait behind a file of a million. And a suspended application's rows
-- are put aside when they are claimed, not when it is suspended: that would have to touch all of them.
DROP INDEX queue_due;
ALTER TABLE queue ADD COLUMN bulk INTEGER NOT NULL DEFAULT 0 CHECK (bulk IN (0, 1)); -- 1: of a batch
CREATE INDEX queue_due ON queue (carrier, held, bulk, due_at);
CREATE INDEX queue_held ON queue (application_id) WHERE held = 1;
