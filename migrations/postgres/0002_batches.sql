-- The same as for SQLite; what a column holds is said there.

-- Counts change with each claim and each result of the batch's messages.
CREATE TABLE batches (
    id             BIGINT PRIMARY KEY,
    application_id BIGINT NOT NULL,
    test           BIGINT NOT NULL CHECK (test IN (0, 1)),
    sender         TEXT,
    requestid      TEXT,
    body           TEXT,
    rows           BIGINT NOT NULL CHECK (rows > 0),
    pages          BIGINT NOT NULL,
    cost           BIGINT NOT NULL CHECK (cost > 0),
    price_local    BIGINT NOT NULL,
    price_international BIGINT NOT NULL,
    first_message_id BIGINT NOT NULL,
    last_message_id  BIGINT NOT NULL UNIQUE,
    spool          TEXT NOT NULL,
    spool_offset   BIGINT NOT NULL,
    expanded_rows  BIGINT NOT NULL,
    expanded_cost  BIGINT NOT NULL,
    queued         BIGINT NOT NULL CHECK (queued >= 0),
    sending        BIGINT NOT NULL CHECK (sending >= 0),
    unknown        BIGINT NOT NULL CHECK (unknown >= 0),
    submitted      BIGINT NOT NULL CHECK (submitted >= 0),
    delivered      BIGINT NOT NULL CHECK (delivered >= 0),
    failed         BIGINT NOT NULL CHECK (failed >= 0),
    expired        BIGINT NOT NULL CHECK (expired >= 0),
    rejected       BIGINT NOT NULL CHECK (rejected >= 0),
    created_at     BIGINT NOT NULL,
    expanded_at    BIGINT,
    done_at        BIGINT,
    CHECK (queued + sending + unknown + submitted + delivered + failed + expired + rejected = rows),
    CHECK (expanded_rows <= rows AND expanded_cost <= cost)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX batches_by_application ON batches (application_id, test, id);
CREATE INDEX batches_unexpanded ON batches (id) WHERE expanded_at IS NULL;

CREATE TABLE message_days (
    application_id BIGINT NOT NULL,
    test           BIGINT NOT NULL CHECK (test IN (0, 1)),
    day            BIGINT NOT NULL,
    status         TEXT NOT NULL,
    n              BIGINT NOT NULL,
    PRIMARY KEY (application_id, test, day, status)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE TABLE idempotency (
    application_id BIGINT NOT NULL,
    test           BIGINT NOT NULL CHECK (test IN (0, 1)),
    key            TEXT NOT NULL,
    digest         TEXT NOT NULL,
    answer         TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (application_id, test, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);

ALTER TABLE transfers ADD COLUMN batch_id BIGINT;
ALTER TABLE transfers DROP CONSTRAINT transfers_kind_check;
ALTER TABLE transfers ADD CONSTRAINT transfers_kind_check
    CHECK (kind IN ('deposit', 'unmatched', 'charge', 'settle', 'release'));
CREATE INDEX transfers_by_batch ON transfers (batch_id, kind) WHERE batch_id IS NOT NULL;
CREATE UNIQUE INDEX transfers_batch_once ON transfers (batch_id, kind) WHERE kind IN ('charge', 'release');

ALTER TABLE queue ADD COLUMN bulk BIGINT NOT NULL DEFAULT 0 CHECK (bulk IN (0, 1));
-- What is claimed leaves the index of what may be.
CREATE INDEX queue_due ON queue (carrier, held, bulk, due_at, message_id) WHERE lease_token = 0;
CREATE INDEX queue_held ON queue (application_id) WHERE held = 1;
