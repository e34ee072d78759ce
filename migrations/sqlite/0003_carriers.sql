-- Carriers: what was handed to them and what they answered, in the units that they are handed.

ALTER TABLE applications ADD COLUMN lost_answer TEXT NOT NULL DEFAULT 'hold'
    CHECK (lost_answer IN ('hold', 'resend')); -- what becomes of a message when a carrier's answer is lost

-- A carrier's name for what it took stands with each segment.
ALTER TABLE messages DROP COLUMN carrier_message_id;

-- 0: nothing of it is with a carrier. 1: some segments are, or may be: the others follow them to the same
-- carrier. 2: the carrier's answer was lost, and the message is sent once more.
ALTER TABLE queue ADD COLUMN begun INTEGER NOT NULL DEFAULT 0 CHECK (begun IN (0, 1, 2));
ALTER TABLE queue ADD COLUMN refused_by TEXT NOT NULL DEFAULT ''; -- carriers that refused it: ' acme beta '
CREATE INDEX queue_leased ON queue (carrier, due_at) WHERE lease_token <> 0;

-- What carriers were handed: a row per radio segment, or one for a message that is handed over whole. The
-- sandbox keeps none: it has the message's own id.
CREATE TABLE segments (
    message_id     INTEGER NOT NULL,
    segment        INTEGER NOT NULL,  -- from 1
    segments       INTEGER NOT NULL,  -- of the message, as it was handed over
    application_id INTEGER NOT NULL,
    carrier        TEXT NOT NULL,
    carrier_message_id TEXT,          -- as the carrier's receipts name it; null: not known
    status         TEXT NOT NULL CHECK (status IN ('unknown', 'submitted', 'delivered', 'failed', 'expired')),
    error          TEXT,              -- why it wasn't delivered
    submits        INTEGER NOT NULL,  -- how often it was, or may have been, handed over: 2 at most
    submitted_at   INTEGER NOT NULL,  -- when it was, last
    PRIMARY KEY (message_id, segment)
) STRICT, WITHOUT ROWID;
CREATE INDEX segments_by_carrier_id ON segments (carrier, carrier_message_id) WHERE carrier_message_id IS NOT NULL;
CREATE INDEX segments_unanswered ON segments (carrier, message_id)
    WHERE status = 'unknown' AND carrier_message_id IS NULL;

-- Receipts that name nothing we know: the submit's answer may be behind them.
CREATE TABLE parked_receipts (
    id             INTEGER PRIMARY KEY,
    carrier        TEXT NOT NULL,
    carrier_message_id TEXT NOT NULL,
    status         TEXT NOT NULL,     -- what it says: delivered, failed, expired
    error          TEXT,
    received_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX parked_receipts_by_carrier_id ON parked_receipts (carrier, carrier_message_id);
CREATE INDEX parked_receipts_by_age ON parked_receipts (received_at);

CREATE TABLE carriers (
    name           TEXT PRIMARY KEY,
    drained_at     INTEGER,           -- since when nothing is handed to it; null: it is in use
    receipts_parked  INTEGER NOT NULL, -- receipts for unknown ids so far
    receipts_matched INTEGER NOT NULL  -- those of them that were matched later
) STRICT;

-- How the dispatcher's connections are: rewritten every few seconds, for people who look.
CREATE TABLE connections (
    carrier        TEXT NOT NULL,
    number         INTEGER NOT NULL,  -- from 1
    state          TEXT NOT NULL CHECK (state IN ('connecting', 'bound', 'waiting', 'closed')),
    since          INTEGER NOT NULL,  -- when it came into this state
    in_flight      INTEGER NOT NULL,  -- submits that wait for an answer
    window_size    INTEGER NOT NULL,  -- the most of them at a time
    rate           INTEGER NOT NULL,  -- answers in the last second
    throttled      INTEGER NOT NULL,  -- answers since the start that asked for a slower pace
    last_error     TEXT,
    updated_at     INTEGER NOT NULL,  -- when this was written
    PRIMARY KEY (carrier, number)
) STRICT;
