-- Vocabulary that SQLite and PostgreSQL share: whole numbers and text. Money is in micro-units of the
-- installation's currency, time in unix milliseconds; there are no booleans (a moment says more). STRICT
-- tables know the whole number as INTEGER; PostgreSQL calls it BIGINT.

CREATE TABLE installation (
    id         INTEGER PRIMARY KEY CHECK (id = 1), -- there is one
    currency   TEXT NOT NULL,                      -- ISO 4217 code, fixed at first start
    created_at INTEGER NOT NULL,                   -- first start
    sweep_low_id INTEGER NOT NULL,                 -- every message below this id is final; the expiry sweep starts here
    swept_at   INTEGER NOT NULL                    -- when that was last made sure of
) STRICT;

CREATE TABLE prices (
    id            INTEGER PRIMARY KEY,  -- the greatest is in force
    local         INTEGER NOT NULL CHECK (local > 0),             -- per page to a local number
    international INTEGER NOT NULL CHECK (international > local), -- per page to any other number
    in_force_at   INTEGER NOT NULL      -- when a start brought it
) STRICT;

CREATE TABLE accounts (
    id                  INTEGER PRIMARY KEY,
    email               TEXT NOT NULL UNIQUE, -- lower case
    password_hash       TEXT NOT NULL,        -- argon2id in PHC string format
    role                TEXT NOT NULL CHECK (role IN ('customer', 'staff')),
    created_at          INTEGER NOT NULL,
    password_changed_at INTEGER NOT NULL
) STRICT;

-- Signed-in browsers, and sessions on the way to it.
CREATE TABLE sessions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- names the device in forms, never another; opens nothing
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

-- Counts attempts at what must not be tried without end.
CREATE TABLE throttles (
    bucket            TEXT PRIMARY KEY, -- SHA-256 of what is counted, e.g. sign-in of one e-mail from one address
    window_started_at INTEGER NOT NULL, -- when this count began
    hits              INTEGER NOT NULL  -- attempts since
) STRICT;

CREATE TABLE password_resets (
    token_hash TEXT PRIMARY KEY,     -- SHA-256 of the link's token, hexadecimal
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER               -- a link works once
) STRICT;

-- Mails that no server is set up to take; staff read them here.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY,
    recipient  TEXT NOT NULL,
    subject    TEXT NOT NULL,
    body       TEXT NOT NULL,        -- never holds a reset link
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE applications (
    id                      INTEGER PRIMARY KEY, -- also names its ledger account
    account_id              INTEGER NOT NULL REFERENCES accounts (id),
    category                TEXT NOT NULL,
    reference               TEXT NOT NULL UNIQUE, -- first 6 digits of both keys, for its whole life
    live_hash               TEXT NOT NULL,        -- SHA-256 of the live key, hexadecimal
    test_hash               TEXT NOT NULL,        -- SHA-256 of the test key, hexadecimal
    status                  TEXT NOT NULL CHECK (status IN ('Pending', 'Active', 'Suspended')),
    status_before           TEXT,                 -- what reinstating brings back; null unless suspended
    suspend_reason          TEXT,                 -- shown to the customer; null unless suspended
    activation_requested_at INTEGER,              -- when the customer asked for activation
    sender_state            TEXT NOT NULL CHECK (sender_state IN ('none', 'pending', 'rejected', 'accepted')),
                                                  -- none: never asked for one; accepted: sender_name is in use
    sender_name             TEXT,                 -- the accepted name; null unless accepted
    balance                 INTEGER NOT NULL CHECK (balance >= 0), -- equals the ledger account's transfers
    test_balance            INTEGER NOT NULL CHECK (test_balance >= 0), -- play money, outside the ledger
    test_day                INTEGER NOT NULL,     -- day (since 1970-01-01 UTC) of the last top-up of play money
    created_at              INTEGER NOT NULL
) STRICT;
-- The two rules of "My Applications", held by the database however many forms arrive at once.
CREATE UNIQUE INDEX applications_one_per_category ON applications (account_id, category);
CREATE UNIQUE INDEX applications_one_without_sender ON applications (account_id) WHERE sender_state = 'none';

CREATE TABLE sender_requests (
    id             INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL REFERENCES applications (id),
    name           TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('pending', 'accepted', 'rejected', 'replaced')),
    reason         TEXT,              -- why it was rejected; shown to the customer
    requested_at   INTEGER NOT NULL,
    decided_at     INTEGER            -- null while pending
) STRICT;
CREATE INDEX sender_requests_by_application ON sender_requests (application_id, id);
CREATE UNIQUE INDEX sender_requests_one_pending ON sender_requests (application_id) WHERE status = 'pending';

-- A name accepted for one account is never accepted for another.
CREATE TABLE sender_name_owners (
    folded     TEXT PRIMARY KEY,     -- the name in lower case
    account_id INTEGER NOT NULL REFERENCES accounts (id)
) STRICT;

-- An application's ledger account has the application's id; the house's accounts are negative:
-- -1 the bank (what came in), -2 unmatched deposits, -3 revenue.
CREATE TABLE transfers (
    id             INTEGER PRIMARY KEY, -- grows with each commit: the order of an account's transfers
    debit_account  INTEGER NOT NULL,
    credit_account INTEGER NOT NULL CHECK (credit_account <> debit_account),
    amount         INTEGER NOT NULL CHECK (amount > 0),
    kind           TEXT NOT NULL CHECK (kind IN ('deposit', 'unmatched', 'charge', 'release')),
    application_id INTEGER,             -- whose statement it is on; null for the house's alone
    message_id     INTEGER,             -- what a charge or release is for
    bank_id        TEXT,                -- what a deposit is for
    balance_after  INTEGER,             -- of the application; null for the house's alone
    created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX transfers_by_application ON transfers (application_id, id);
CREATE UNIQUE INDEX transfers_one_release ON transfers (message_id) WHERE kind = 'release';
CREATE UNIQUE INDEX transfers_bank_once ON transfers (bank_id, kind) WHERE bank_id IS NOT NULL;
CREATE TRIGGER transfers_never_change BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;
CREATE TRIGGER transfers_never_go BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;

CREATE TABLE deposits (
    bank_id        TEXT PRIMARY KEY,  -- the bank's id of the payment: credited once
    reference      TEXT NOT NULL,     -- as the payer wrote it
    amount         INTEGER NOT NULL CHECK (amount > 0),
    application_id INTEGER REFERENCES applications (id), -- null while unmatched
    received_at    INTEGER NOT NULL,
    credited_at    INTEGER            -- null while unmatched
) STRICT;
CREATE INDEX deposits_unmatched ON deposits (received_at) WHERE application_id IS NULL;

CREATE TABLE messages (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count: newest first is the key's order
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    number         TEXT NOT NULL,     -- digits
    kind           TEXT NOT NULL CHECK (kind IN ('local', 'international')),
    sender         TEXT,              -- the accepted name at acceptance; null: the installation's default
    body           TEXT NOT NULL,
    requestid      TEXT,              -- the caller's
    batch_id       INTEGER,           -- null for a single send
    status         TEXT NOT NULL CHECK (status IN ('queued', 'sending', 'unknown', 'submitted',
                                                   'delivered', 'failed', 'expired', 'rejected')),
    pages          INTEGER NOT NULL,  -- billed
    segments       INTEGER NOT NULL,  -- on air
    unit_price     INTEGER NOT NULL,  -- per page, in force at acceptance
    cost           INTEGER NOT NULL,  -- pages × unit_price
    released       INTEGER NOT NULL,  -- given back: 0 or cost
    error          TEXT,              -- why it wasn't delivered, in a stable word
    carrier        TEXT,              -- who took it
    carrier_message_id TEXT,          -- the carrier's name for it
    created_at     INTEGER NOT NULL,  -- the milliseconds in id
    sending_at     INTEGER,           -- last claimed by a dispatcher
    submitted_at   INTEGER,           -- taken by the carrier
    final_at       INTEGER            -- never changes after
) STRICT;
CREATE INDEX messages_by_application ON messages (application_id, test, id);
CREATE INDEX messages_by_number ON messages (application_id, number, id);
CREATE INDEX messages_by_batch ON messages (application_id, batch_id, id) WHERE batch_id IS NOT NULL;
CREATE INDEX messages_by_requestid ON messages (application_id, requestid, id) WHERE requestid IS NOT NULL;

-- What a message's own row can't say: retries, receipts that came late.
CREATE TABLE message_events (
    id             INTEGER PRIMARY KEY,
    message_id     INTEGER NOT NULL,
    application_id INTEGER NOT NULL,
    status         TEXT NOT NULL,
    at             INTEGER NOT NULL,
    detail         TEXT
) STRICT;
CREATE INDEX message_events_by_message ON message_events (message_id, id);

-- Messages that no carrier has taken yet. Narrow and short-lived.
CREATE TABLE queue (
    message_id     INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL,
    carrier        TEXT NOT NULL,
    held           INTEGER NOT NULL CHECK (held IN (0, 1)), -- 1: the application is suspended
    due_at         INTEGER NOT NULL,  -- when it may be claimed; for a claimed row the end of its lease
    lease_token    INTEGER NOT NULL,  -- who claimed it last; 0: nobody
    attempts       INTEGER NOT NULL   -- submits that the carrier asked to repeat
) STRICT;
CREATE INDEX queue_due ON queue (carrier, held, due_at);

-- What people did: staff, and customers where money or access is concerned.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,   -- 'command line', 'system', or 'account ID'
    action  TEXT NOT NULL,   -- a stable word, e.g. application.approve
    subject TEXT NOT NULL,   -- what it was done to
    detail  TEXT             -- a reason, an amount; never a secret
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, id);
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_never_goes BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
