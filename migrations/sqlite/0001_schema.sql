-- The whole schema. SQLite and PostgreSQL share this vocabulary: whole numbers and text. Money is
-- in micro-units of the installation's currency, time in unix milliseconds; a day is counted since
-- 1970-01-01 UTC. There are no booleans (a moment says more). STRICT tables know the whole number
-- as INTEGER; PostgreSQL calls it BIGINT.
--
-- The status of a message, or of a segment of it, is a number: 0 queued, 1 sending, 2 unknown, 3
-- submitted, 4 delivered, 5 failed, 6 expired, 7 rejected. From 4 on it is final.
--
-- No CHECK has an IN list of more than two constants: SQLite builds a b-tree for such a list at
-- every execution.

CREATE TABLE installation (
    id         INTEGER PRIMARY KEY CHECK (id = 1), -- there is one row
    currency   TEXT NOT NULL,                      -- ISO 4217 code, fixed at first start
    created_at INTEGER NOT NULL,                   -- first start
    sweep_low_id INTEGER NOT NULL,   -- every message below this id is final; the expiry sweep starts here
    swept_at   INTEGER NOT NULL,     -- when the expiry sweep last made sure of sweep_low_id
    history_low_id INTEGER NOT NULL DEFAULT 0 -- messages below this id were dropped
) STRICT;

CREATE TABLE prices (
    id            INTEGER PRIMARY KEY,  -- the row with the greatest id is in force
    local         INTEGER NOT NULL CHECK (local > 0),             -- per page to a local number
    international INTEGER NOT NULL CHECK (international > local), -- per page to any other number
    in_force_at   INTEGER NOT NULL      -- when a start of the service recorded these prices
) STRICT;

CREATE TABLE accounts (
    id                  INTEGER PRIMARY KEY,  -- names the account in other tables
    email               TEXT NOT NULL UNIQUE, -- lower case
    password_hash       TEXT NOT NULL,        -- argon2id in PHC string format
    role                TEXT NOT NULL CHECK (role IN ('customer', 'staff')), -- what the account may do
    created_at          INTEGER NOT NULL,     -- registration
    password_changed_at INTEGER NOT NULL      -- when the password was last set
) STRICT;

-- Signed-in browsers, and browsers whose sign-in or registration is under way.
CREATE TABLE sessions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- names the device in forms, never given again; opens nothing
    token_hash   TEXT NOT NULL UNIQUE, -- SHA-256 of the cookie's token, hexadecimal
    account_id   INTEGER REFERENCES accounts (id), -- null until signed in
    data         TEXT NOT NULL,        -- JSON of what the portal keeps; secrets in it are sealed with the token
    user_agent   TEXT NOT NULL,        -- of the browser at sign-in
    address      TEXT NOT NULL,        -- of the client at sign-in
    created_at   INTEGER NOT NULL,     -- the absolute limit counts from here
    last_seen_at INTEGER NOT NULL      -- the idle limit counts from here; exact to a minute
) STRICT;
CREATE INDEX sessions_by_account ON sessions (account_id);
CREATE INDEX sessions_by_age ON sessions (last_seen_at);

-- Counts of attempts, where there may only be so many within a time.
CREATE TABLE throttles (
    bucket            TEXT PRIMARY KEY, -- SHA-256 of what is counted, e.g. sign-in of one e-mail from one address
    window_started_at INTEGER NOT NULL, -- when this count began
    hits              INTEGER NOT NULL  -- attempts since then
) STRICT;

CREATE TABLE password_resets (
    token_hash TEXT PRIMARY KEY,     -- SHA-256 of the link's token, hexadecimal
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- whose password the link sets
    created_at INTEGER NOT NULL,     -- when the link was asked for
    expires_at INTEGER NOT NULL,     -- from when on the link doesn't work any more
    used_at    INTEGER               -- when it was used, since it works once; null before
) STRICT;

-- Mails that couldn't be handed to a mail server because none is set up; staff read them here.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY,  -- in the order in which they were written
    recipient  TEXT NOT NULL,        -- e-mail address
    subject    TEXT NOT NULL,        -- of the mail
    body       TEXT NOT NULL,        -- never holds a reset link
    created_at INTEGER NOT NULL      -- when the mail was written
) STRICT;

CREATE TABLE applications (
    id                      INTEGER PRIMARY KEY, -- also names its ledger account
    account_id              INTEGER NOT NULL REFERENCES accounts (id), -- whose application it is
    category                TEXT NOT NULL,        -- what it is for, as the customer chose from a list
    reference               TEXT NOT NULL UNIQUE, -- first 6 digits of both keys, for its whole life
    live_hash               TEXT NOT NULL,        -- SHA-256 of the live key, hexadecimal
    test_hash               TEXT NOT NULL,        -- SHA-256 of the test key, hexadecimal
    status                  TEXT NOT NULL         -- whether its live key works: Active alone sends
        CHECK (status = 'Pending' OR status = 'Active' OR status = 'Suspended'),
    status_before           TEXT,                 -- what reinstating brings back; null unless suspended
    suspend_reason          TEXT,                 -- shown to the customer; null unless suspended
    activation_requested_at INTEGER,              -- when the customer asked for activation
    sender_state            TEXT NOT NULL         -- none: never asked for one; accepted: sender_name is in use
        CHECK (sender_state = 'none' OR sender_state = 'pending' OR sender_state = 'rejected'
               OR sender_state = 'accepted'),
    sender_name             TEXT,                 -- the accepted name; null unless accepted
    balance                 INTEGER NOT NULL CHECK (balance >= 0), -- equals the ledger account's transfers
    test_balance            INTEGER NOT NULL CHECK (test_balance >= 0), -- play money, outside the ledger
    test_day                INTEGER NOT NULL,     -- day of the last top-up of play money
    created_at              INTEGER NOT NULL,     -- when the customer made it
    lost_answer             TEXT NOT NULL DEFAULT 'hold'
        CHECK (lost_answer IN ('hold', 'resend')) -- what becomes of a message when a carrier's answer is lost
) STRICT;
-- The two rules of "My Applications", held by the database however many forms arrive at once.
CREATE UNIQUE INDEX applications_one_per_category ON applications (account_id, category);
CREATE UNIQUE INDEX applications_one_without_sender ON applications (account_id) WHERE sender_state = 'none';

CREATE TABLE sender_requests (
    id             INTEGER PRIMARY KEY, -- in the order in which they were made
    application_id INTEGER NOT NULL REFERENCES applications (id), -- which one shall have the name
    name           TEXT NOT NULL,     -- as the customer wrote it
    status         TEXT NOT NULL      -- replaced: the customer asked for another name meanwhile
        CHECK (status = 'pending' OR status = 'accepted' OR status = 'rejected' OR status = 'replaced'),
    reason         TEXT,              -- why it was rejected; shown to the customer
    requested_at   INTEGER NOT NULL,  -- when the customer asked
    decided_at     INTEGER            -- null while pending
) STRICT;
CREATE INDEX sender_requests_by_application ON sender_requests (application_id, id);
CREATE UNIQUE INDEX sender_requests_one_pending ON sender_requests (application_id) WHERE status = 'pending';

-- A name accepted for one account is never accepted for another.
CREATE TABLE sender_name_owners (
    folded     TEXT PRIMARY KEY,     -- the name in lower case
    account_id INTEGER NOT NULL REFERENCES accounts (id) -- whose name it is
) STRICT;

-- An application's ledger account has the application's id; the house's accounts are negative: -1
-- the bank (what came in), -2 unmatched deposits, -3 revenue, -4 reserved. The price of an upload
-- is charged to what is reserved when it is accepted, settled from there to revenue as its rows
-- become messages, and released for rows that can't.
CREATE TABLE transfers (
    id             INTEGER PRIMARY KEY, -- grows with each commit: the order of an account's transfers
    debit_account  INTEGER NOT NULL,    -- the ledger account that pays
    credit_account INTEGER NOT NULL CHECK (credit_account <> debit_account), -- the ledger account that is paid
    amount         INTEGER NOT NULL CHECK (amount > 0), -- what moves
    kind           INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 4),
                                        -- 0 deposit, 1 unmatched (deposit), 2 charge, 3 settle, 4
                                        -- release
    application_id INTEGER,             -- whose statement it is on; null between the house's own accounts
    message_id     INTEGER,             -- what a charge or release is for; null if it is for an upload
    batch_id       INTEGER,             -- the upload that a charge, settle or release is for
    bank_id        TEXT,                -- what a deposit is for
    balance_after  INTEGER,             -- of the application; null between the house's own accounts
    created_at     INTEGER NOT NULL     -- when it was committed
) STRICT;
CREATE INDEX transfers_by_application ON transfers (application_id, id);
CREATE INDEX transfers_by_batch ON transfers (batch_id, kind) WHERE batch_id IS NOT NULL;
CREATE UNIQUE INDEX transfers_one_release ON transfers (message_id) WHERE kind = 4;
CREATE UNIQUE INDEX transfers_batch_once ON transfers (batch_id, kind) WHERE kind IN (2, 4);
CREATE UNIQUE INDEX transfers_bank_once ON transfers (bank_id, kind) WHERE bank_id IS NOT NULL;
CREATE TRIGGER transfers_never_change BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;
CREATE TRIGGER transfers_never_go BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;

CREATE TABLE deposits (
    bank_id        TEXT PRIMARY KEY,  -- the bank's id of the payment: credited once
    reference      TEXT NOT NULL,     -- as the payer wrote it
    amount         INTEGER NOT NULL CHECK (amount > 0), -- what was paid
    application_id INTEGER REFERENCES applications (id), -- whose balance it went to; null while unmatched
    received_at    INTEGER NOT NULL,  -- when it was entered
    credited_at    INTEGER            -- when it went to the balance; null while unmatched
) STRICT;
CREATE INDEX deposits_unmatched ON deposits (received_at) WHERE application_id IS NULL;

CREATE TABLE messages (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count: newest first is the key's order
    application_id INTEGER NOT NULL,  -- who sent it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    number         TEXT NOT NULL,     -- digits
    kind           TEXT NOT NULL CHECK (kind IN ('local', 'international')), -- of the number
    sender         TEXT,              -- the accepted name at acceptance; null: the installation's default
    body           TEXT NOT NULL,     -- the text
    requestid      TEXT,              -- the caller's own id, if any
    batch_id       INTEGER,           -- the upload that it is a row of; null for a single send
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7), -- as above
    pages          INTEGER NOT NULL,  -- billed
    segments       INTEGER NOT NULL,  -- on air
    unit_price     INTEGER NOT NULL,  -- per page, in force at acceptance
    cost           INTEGER NOT NULL,  -- pages × unit_price
    released       INTEGER NOT NULL,  -- given back: 0 or cost
    error          TEXT,              -- why it wasn't delivered, in a stable word
    carrier        TEXT,              -- who took it
    created_at     INTEGER NOT NULL,  -- the milliseconds in id
    sending_at     INTEGER,           -- last claimed by a dispatcher
    submitted_at   INTEGER,           -- taken by the carrier
    final_at       INTEGER            -- when the status became final; never changes after
) STRICT;
-- SQLite ends each entry of an index with the row's id: reports read these from the newest message
-- on.
CREATE INDEX messages_by_application ON messages (application_id, test);
CREATE INDEX messages_by_number ON messages (application_id, test, number);
CREATE INDEX messages_by_batch ON messages (application_id, test, batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX messages_by_requestid ON messages (application_id, test, requestid) WHERE requestid IS NOT NULL;
-- What is unknown, failed, expired or was rejected: rare, and a message that goes the usual way has
-- no entry.
CREATE INDEX messages_unusual ON messages (application_id, test, status) WHERE status > 4 OR status = 2;

-- What a message's own row can't say: retries, receipts that came late.
CREATE TABLE message_events (
    id             INTEGER PRIMARY KEY, -- in the order in which they happened
    message_id     INTEGER NOT NULL,  -- what it happened to
    application_id INTEGER NOT NULL,  -- of the message
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7), -- what the message became, or stayed
    at             INTEGER NOT NULL,  -- when it happened
    detail         TEXT               -- what happened, in words
) STRICT;
CREATE INDEX message_events_by_message ON message_events (message_id, id);

-- Messages that no carrier has taken yet. Narrow and short-lived. Rows of a suspended application
-- are put aside when they are claimed, not when it is suspended: that would have to touch all of
-- them.
CREATE TABLE queue (
    message_id     INTEGER PRIMARY KEY, -- which message waits
    application_id INTEGER NOT NULL,  -- of the message
    carrier        TEXT NOT NULL,     -- who shall take it
    held           INTEGER NOT NULL CHECK (held IN (0, 1)), -- 1: put aside, the application is suspended
    bulk           INTEGER NOT NULL CHECK (bulk IN (0, 1)), -- 1: of an upload; single sends don't wait behind those
    due_at         INTEGER NOT NULL,  -- when it may be claimed; for a claimed row the end of its lease
    lease_token    INTEGER NOT NULL,  -- which claim holds it; 0: none
    attempts       INTEGER NOT NULL,  -- submits that the carrier asked to repeat
    begun          INTEGER NOT NULL DEFAULT 0 CHECK (begun BETWEEN 0 AND 2),
                                      -- 0: nothing of it is with a carrier 1: some segments are, or
                                      -- may be: the others follow to the same carrier 2: the
                                      -- carrier's answer was lost, and the message is sent once
                                      -- more
    refused_by     TEXT NOT NULL DEFAULT '' -- carriers that refused it, e.g. ' acme beta'
) STRICT;
CREATE INDEX queue_due ON queue (carrier, held, bulk, due_at) WHERE lease_token = 0;
CREATE INDEX queue_held ON queue (application_id) WHERE held = 1;
CREATE INDEX queue_leased ON queue (carrier, due_at) WHERE lease_token <> 0;

-- What carriers were handed: a row per radio segment, or one for a message that is handed over
-- whole. The sandbox keeps none: it has the message's own id.
CREATE TABLE segments (
    message_id     INTEGER NOT NULL,  -- of which message
    segment        INTEGER NOT NULL,  -- its number, from 1
    segments       INTEGER NOT NULL,  -- how many the message has, as it was handed over
    application_id INTEGER NOT NULL,  -- of the message
    carrier        TEXT NOT NULL,     -- who was handed it
    carrier_message_id TEXT,          -- as the carrier's receipts name it; null: not known
    status         INTEGER NOT NULL CHECK (status BETWEEN 2 AND 6), -- of messages', from unknown to expired
    error          TEXT,              -- why it wasn't delivered
    submits        INTEGER NOT NULL,  -- how often it was, or may have been, handed over: 2 at most
    submitted_at   INTEGER NOT NULL,  -- when it was, last
    PRIMARY KEY (message_id, segment)
) STRICT, WITHOUT ROWID;
CREATE INDEX segments_by_carrier_id ON segments (carrier, carrier_message_id) WHERE carrier_message_id IS NOT NULL;
CREATE INDEX segments_unanswered ON segments (carrier, message_id)
    WHERE status = 2 AND carrier_message_id IS NULL;

-- Receipts that name nothing we know: the submit's answer may come after them.
CREATE TABLE parked_receipts (
    id             INTEGER PRIMARY KEY, -- in the order in which they came
    carrier        TEXT NOT NULL,     -- who sent it
    carrier_message_id TEXT NOT NULL, -- what it is for, as the carrier names it
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7), -- what it says: delivered, failed or expired
    error          TEXT,              -- why it wasn't delivered
    received_at    INTEGER NOT NULL   -- when it came
) STRICT;
CREATE INDEX parked_receipts_by_carrier_id ON parked_receipts (carrier, carrier_message_id);
CREATE INDEX parked_receipts_by_age ON parked_receipts (received_at);

CREATE TABLE carriers (
    name           TEXT PRIMARY KEY,  -- as in the settings
    drained_at     INTEGER,           -- since when nothing is handed to it; null: it is in use
    receipts_parked  INTEGER NOT NULL, -- receipts for unknown ids so far
    receipts_matched INTEGER NOT NULL  -- those of them that were matched later
) STRICT;

-- How the dispatchers' connections are: rewritten every few seconds, for people who look.
CREATE TABLE connections (
    carrier        TEXT NOT NULL,     -- to whom
    node           INTEGER NOT NULL,  -- slot of the process
    number         INTEGER NOT NULL,  -- of the carrier's connections in this process, from 1
    state          TEXT NOT NULL      -- bound: it can submit; probing: one at a time, until an answer comes; waiting: until the next try
        CHECK (state = 'connecting' OR state = 'bound' OR state = 'waiting' OR state = 'closed'
               OR state = 'probing'),
    since          INTEGER NOT NULL,  -- when it came into this state
    in_flight      INTEGER NOT NULL,  -- submits that wait for an answer
    window_size    INTEGER NOT NULL,  -- the most of them at a time
    rate           INTEGER NOT NULL,  -- answers in the last second
    throttled      INTEGER NOT NULL,  -- answers since the start that asked for a slower pace
    last_error     TEXT,              -- what went wrong last; null: nothing so far
    updated_at     INTEGER NOT NULL,  -- when this was written
    PRIMARY KEY (carrier, node, number)
) STRICT;

-- Bulk uploads: accepted whole, their price reserved, turned into messages bit by bit.
CREATE TABLE batches (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count: newest first is the key's order
    application_id INTEGER NOT NULL,  -- who uploaded it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: uploaded with the test key
    sender         TEXT,              -- the accepted name at acceptance; null: the installation's default
    requestid      TEXT,              -- the caller's own id, if any
    body           TEXT,              -- the message to every number; null when each row has its own
    rows           INTEGER NOT NULL CHECK (rows > 0), -- how many it has
    pages          INTEGER NOT NULL,  -- billed, of all rows
    cost           INTEGER NOT NULL CHECK (cost > 0), -- the sum of the rows' prices
    price_local    INTEGER NOT NULL,  -- per page to a local number, in force at acceptance
    price_international INTEGER NOT NULL, -- per page to any other number, in force at acceptance
    first_message_id INTEGER NOT NULL, -- of the first row; the others' follow
    last_message_id  INTEGER NOT NULL UNIQUE, -- of the last row
    spool          TEXT NOT NULL,     -- file in the data folder that holds the rows until they are messages
    spool_offset   INTEGER NOT NULL,  -- bytes of the spool file that are messages already
    expanded_rows  INTEGER NOT NULL,  -- rows that are messages already
    expanded_cost  INTEGER NOT NULL,  -- their price: what left the reservation
    -- Rows by status, always adding up to all of them.
    queued         INTEGER NOT NULL CHECK (queued >= 0),    -- with the rows that are no message yet
    sending        INTEGER NOT NULL CHECK (sending >= 0),   -- a dispatcher holds them
    unknown        INTEGER NOT NULL CHECK (unknown >= 0),   -- handed over, without an answer
    submitted      INTEGER NOT NULL CHECK (submitted >= 0), -- taken by a carrier
    delivered      INTEGER NOT NULL CHECK (delivered >= 0), -- final: arrived
    failed         INTEGER NOT NULL CHECK (failed >= 0),    -- final: the network gave up
    expired        INTEGER NOT NULL CHECK (expired >= 0),   -- final: their time ran out
    rejected       INTEGER NOT NULL CHECK (rejected >= 0),  -- final: no carrier took them
    created_at     INTEGER NOT NULL,  -- acceptance
    expanded_at    INTEGER,           -- when every row was a message, or given up
    done_at        INTEGER,           -- when every row was final
    CHECK (queued + sending + unknown + submitted + delivered + failed + expired + rejected = rows),
    CHECK (expanded_rows <= rows AND expanded_cost <= cost)
) STRICT;
CREATE INDEX batches_by_application ON batches (application_id, test, id);
CREATE INDEX batches_by_requestid ON batches (application_id, test, requestid) WHERE requestid IS NOT NULL;
CREATE INDEX batches_unexpanded ON batches (id) WHERE expanded_at IS NULL;

-- How many messages of a day have which status: what charts draw. Several parts add up to a count,
-- so that those who count at the same time don't wait for one row; a part alone can be negative. A
-- chore folds the parts of a day into one once all its messages are final.
CREATE TABLE message_days (
    application_id INTEGER NOT NULL,  -- whose messages
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    day            INTEGER NOT NULL,  -- of their acceptance
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7), -- as above
    node           INTEGER NOT NULL,  -- slot of the process that counted; 0 in what was folded
    writer         INTEGER NOT NULL CHECK (writer IN (0, 1)), -- 0: sends, claims, results and receipts; 1: all else
    n              INTEGER NOT NULL,  -- how many, to be added to the other parts
    PRIMARY KEY (application_id, test, day, status, node, writer)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_days_unfolded ON message_days (day) WHERE node <> 0 OR writer <> 1;

-- What the dropped messages of a day come to: their transfers stay, and the check adds up both.
CREATE TABLE dropped_days (
    day            INTEGER NOT NULL,  -- of the messages' acceptance
    application_id INTEGER NOT NULL,  -- whose messages
    charged        INTEGER NOT NULL,  -- the price of single live messages: each has a transfer of its own
    released       INTEGER NOT NULL,  -- what was given back for live messages, those of uploads too
    PRIMARY KEY (day, application_id)
) STRICT;

-- Answers to requests with an Idempotency-Key: a repeated request is given them again.
CREATE TABLE idempotency (
    application_id INTEGER NOT NULL,  -- who asked
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: with the test key
    key            TEXT NOT NULL,     -- SHA-256 of the caller's, hexadecimal
    digest         TEXT NOT NULL,     -- SHA-256 of the request's meaning, hexadecimal
    answer         TEXT NOT NULL,     -- JSON of what was answered
    created_at     INTEGER NOT NULL,  -- when it was answered; kept for a time from then on
    PRIMARY KEY (application_id, test, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Processes that serve. A slot is given again once nobody has had it for an hour.
CREATE TABLE nodes (
    slot           INTEGER PRIMARY KEY CHECK (slot BETWEEN 0 AND 511), -- stands in the ids that the process makes
    token          INTEGER NOT NULL,  -- which process has it; 0: none, its last process ended
    name           TEXT NOT NULL,     -- of the process, for people
    started_at     INTEGER NOT NULL,  -- when the process took the slot
    seen_at        INTEGER NOT NULL   -- renewed every few seconds while the process lives
) STRICT;

-- What people did: staff, and customers where money or access is concerned.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY, -- in the order in which it happened
    at      INTEGER NOT NULL,    -- when it was done
    actor   TEXT NOT NULL,       -- 'command line', 'system', or 'account ID'
    action  TEXT NOT NULL,       -- a stable word, e.g. application.approve
    subject TEXT NOT NULL,       -- what it was done to
    detail  TEXT                 -- a reason, an amount; never a secret
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, id);
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_never_goes BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
