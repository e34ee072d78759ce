-- The whole schema. SQLite and PostgreSQL share this vocabulary: whole numbers and text. Money is
-- in micro-units of the installation's currency, time in unix milliseconds; a day is counted since
-- 1970-01-01 UTC. There are no booleans (a time says more). STRICT tables know the whole number
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
    -- every message below this id is final; the expiry sweep starts here
    sweep_low_id INTEGER NOT NULL,
    swept_at   INTEGER NOT NULL,     -- when the expiry sweep last made sure of sweep_low_id
    history_low_id INTEGER NOT NULL DEFAULT 0, -- messages below this id were dropped
    test_low_id INTEGER NOT NULL DEFAULT 0, -- messages of test keys below this id are being dropped
    form_key   TEXT NOT NULL,        -- secret: seals forms that come back to browsers without scripts
    -- what secrets are sealed with; null where a file of the data folder has it
    sealing_key TEXT
) STRICT;

-- Changes of prices. The newest one of the base prices, and of each prefix, that has come into
-- force is in force; no row is ever changed.
CREATE TABLE prices (
    id            INTEGER PRIMARY KEY,  -- grows with each change
    -- digits with which international numbers begin; null: the row sets the base prices
    prefix        TEXT,
    local         INTEGER CHECK (local > 0), -- per page to a local number; null: of a prefix
    -- per page to an international number, or to one with the prefix; null: from then on the
    -- prefix has no price of its own
    international INTEGER CHECK (international > 0),
    in_force_at   INTEGER NOT NULL,     -- the time from which it is in force
    set_at        INTEGER NOT NULL,     -- when it was set
    set_by        TEXT NOT NULL,        -- as the actor in audit; 'settings': a start of the service
    CHECK (CASE WHEN prefix IS NULL
           THEN local IS NOT NULL AND international IS NOT NULL AND international > local
           ELSE local IS NULL END)
) STRICT;

CREATE TABLE accounts (
    id                  INTEGER PRIMARY KEY,  -- names the account in other tables
    email               TEXT NOT NULL UNIQUE, -- lower case
    password_hash       TEXT NOT NULL,        -- argon2id in PHC string format
    -- what the account may do
    role                TEXT NOT NULL CHECK (role IN ('customer', 'staff')),
    created_at          INTEGER NOT NULL,     -- registration
    password_changed_at INTEGER NOT NULL,     -- when the password was last set
    -- when the owner confirmed the email; null: not yet. Who doesn't say is confirmed: accounts
    -- made where no mail is sent, or on behalf of somebody.
    confirmed_at        INTEGER DEFAULT 0,
    confirm_mailed_at   INTEGER,              -- when the last mail to confirm was written
    disabled_at         INTEGER,              -- when staff disabled it; null unless disabled
    disabled_reason     TEXT,                 -- for staff; null unless disabled
    theme               TEXT NOT NULL DEFAULT 'system', -- the portal's colours: system, light, dark
    -- the IANA name of the zone in which the portal shows times; null: the browser's
    time_zone           TEXT,
    new_email           TEXT,                 -- asked for, until it takes effect; null: none
    -- when the new email takes effect; null until the owner of that address confirmed it
    new_email_at        INTEGER,
    -- the kinds of mails that the owner doesn't want, with a space between them
    unwanted_mails      TEXT NOT NULL DEFAULT '',
    closed_at           INTEGER               -- when its owner closed it for good; null: never
) STRICT;
CREATE INDEX accounts_by_new_email ON accounts (new_email_at) WHERE new_email_at IS NOT NULL;

-- The authenticator apps (TOTP, RFC 6238) of accounts that have set up two-factor.
CREATE TABLE second_factors (
    account_id INTEGER PRIMARY KEY REFERENCES accounts (id), -- whose it is
    secret     TEXT NOT NULL,     -- sealed for this account
    created_at INTEGER NOT NULL,  -- when a first code showed that the app has the secret
    last_step  INTEGER NOT NULL,  -- codes of this step of 30 s and of earlier ones are used up
    wrong_codes INTEGER NOT NULL DEFAULT 0, -- wrong codes in a row, after the right password
    wrong_at   INTEGER NOT NULL DEFAULT 0 -- when the last of them was given
) STRICT;

-- The recovery codes that weren't used yet.
CREATE TABLE recovery_codes (
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- whose it is
    code_hash  TEXT NOT NULL,     -- SHA-256 of the code, hexadecimal
    PRIMARY KEY (account_id, code_hash)
) STRICT;

-- Passkeys (WebAuthn), taken in place of codes. Only an account with an app in `second_factors` has
-- some.
CREATE TABLE passkeys (
    id              INTEGER PRIMARY KEY AUTOINCREMENT, -- names it in forms; never used again
    account_id      INTEGER NOT NULL REFERENCES accounts (id), -- whose it is
    credential_hash TEXT NOT NULL UNIQUE, -- SHA-256 of the credential's id, hexadecimal
    name            TEXT NOT NULL,    -- as its owner calls it
    credential      TEXT NOT NULL,    -- public key and counter, JSON as webauthn-rs writes it
    counter         INTEGER NOT NULL, -- the highest count that was shown; 0 where it never counts
    created_at      INTEGER NOT NULL, -- when it was added
    used_at         INTEGER           -- when it was last taken; null: never
) STRICT;
CREATE INDEX passkeys_by_account ON passkeys (account_id);

-- Signed-in browsers, and browsers whose sign-in or registration is under way.
CREATE TABLE sessions (
    -- identifies the device in forms; never used again; gives no access
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash   TEXT NOT NULL UNIQUE, -- SHA-256 of the cookie's token, hexadecimal
    account_id   INTEGER REFERENCES accounts (id), -- null until signed in
    -- JSON of what the portal keeps; secrets in it are encrypted with the token
    data         TEXT NOT NULL,
    user_agent   TEXT NOT NULL,        -- of the browser at sign-in
    address      TEXT NOT NULL,        -- of the client at sign-in
    created_at   INTEGER NOT NULL,     -- the absolute limit counts from here
    last_seen_at INTEGER NOT NULL,     -- the idle limit counts from here; exact to a minute
    -- the account whose password was given, while its code is awaited
    awaited_account_id INTEGER REFERENCES accounts (id),
    -- when a code, or without second factor the password, last confirmed who is signed in
    stepped_up_at    INTEGER,
    -- what a passkey that is asked for has to answer, sealed; null unless one is
    passkey_asked TEXT
) STRICT;
CREATE INDEX sessions_by_account ON sessions (account_id);
CREATE INDEX sessions_by_age ON sessions (last_seen_at);

-- What happened to the security of accounts: sign-ins, failures, resets, keys.
CREATE TABLE security_events (
    id         INTEGER PRIMARY KEY,  -- in the order in which it happened
    at         INTEGER NOT NULL,     -- when it happened; deleted after 180 days
    account_id INTEGER REFERENCES accounts (id), -- whose it is; null: of no account
    kind       TEXT NOT NULL,        -- a stable word, e.g. sign_in_failed
    address    TEXT NOT NULL,        -- of the client; empty: the service itself
    network    TEXT NOT NULL,        -- the /64 of an IPv6 address, or the IPv4 address itself
    user_agent TEXT NOT NULL,        -- of the client
    detail     TEXT                  -- a reference, a page, the sum of throttled attempts; no secret
) STRICT;
CREATE INDEX security_events_by_account ON security_events (account_id, id);
CREATE INDEX security_events_by_age ON security_events (at);

CREATE TABLE password_resets (
    token_hash TEXT PRIMARY KEY,     -- SHA-256 of the link's token, hexadecimal
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- whose password the link sets
    created_at INTEGER NOT NULL,     -- when the link was asked for
    expires_at INTEGER NOT NULL,     -- from this time on the link doesn't work
    used_at    INTEGER,              -- when the link was used, since it works once; null before
    -- where the link was mailed to: it works while the account has that email; null: not mailed
    email      TEXT
) STRICT;

-- Links by which the owners of email addresses confirm them.
CREATE TABLE confirmations (
    token_hash TEXT PRIMARY KEY,     -- SHA-256 of the link's token, hexadecimal
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- whose email the link is about
    expires_at INTEGER NOT NULL,     -- from this time on the link doesn't work
    email      TEXT NOT NULL,        -- where the link was mailed to
    -- confirm: the email that the account has; change: a new one; stop: ends such a change
    purpose    TEXT NOT NULL
        CHECK (purpose = 'confirm' OR purpose = 'change' OR purpose = 'stop')
) STRICT;

-- Mails until they are sent, and for a while after that. A mail's secret link is never stored: its
-- token is made when the mail is sent.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY,  -- in the order in which they were written
    account_id INTEGER REFERENCES accounts (id), -- whom the mail is for
    kind       TEXT NOT NULL,        -- what the mail is about
    recipient  TEXT NOT NULL,        -- email address
    subject    TEXT NOT NULL,        -- of the mail
    body       TEXT NOT NULL,        -- paragraphs; emptied when the mail is sent
    path       TEXT,                 -- the page that the mail links to, as '/applications'
    created_at INTEGER NOT NULL,     -- when the mail was written
    -- sending: a process hands it to the mail server; kept: no mail server was set up
    state      TEXT NOT NULL
        CHECK (state = 'queued' OR state = 'sending' OR state = 'sent' OR state = 'kept'
               OR state = 'failed'),
    -- when a queued mail is tried next; of one that is being sent, the end of its lease
    due_at     INTEGER NOT NULL,
    attempts      INTEGER NOT NULL,     -- attempts since it was queued, or queued again by staff
    last_error TEXT                  -- why the last attempt failed
) STRICT;
CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 'queued' OR state = 'sending';
CREATE INDEX outbox_by_recipient ON outbox (recipient, created_at);

-- When staff were last mailed about each kind of work that has waited for an hour.
CREATE TABLE reminders (
    kind       TEXT PRIMARY KEY,     -- e.g. activations
    mailed_at  INTEGER NOT NULL      -- what had waited for an hour by then was counted
) STRICT;

-- Browsers and networks that accounts signed in from: a sign-in from another one is mailed to the
-- account's owner.
CREATE TABLE known_devices (
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- who signed in
    fingerprint TEXT NOT NULL,       -- SHA-256 of the browser's name and the network, hexadecimal
    seen_at    INTEGER NOT NULL,     -- the last sign-in; forgotten after 90 days
    name       TEXT,                 -- as the owner calls it; null: it has no name
    network    TEXT NOT NULL,        -- the /64 of an IPv6 address, or the IPv4 address itself
    PRIMARY KEY (account_id, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE applications (
    id                      INTEGER PRIMARY KEY, -- the number of its ledger account too
    account_id              INTEGER NOT NULL REFERENCES accounts (id), -- whose application it is
    -- what it is for: the customer chose it from a list
    category                TEXT NOT NULL,
    reference               TEXT NOT NULL UNIQUE, -- first 6 digits of both keys, for its whole life
    live_hash               TEXT NOT NULL,        -- SHA-256 of the live key, hexadecimal
    test_hash               TEXT NOT NULL,        -- SHA-256 of the test key, hexadecimal
    status                  TEXT NOT NULL         -- whether its live key works: Active alone sends
        CHECK (status = 'Pending' OR status = 'Active' OR status = 'Suspended'),
    -- the status that reinstating brings back; null unless suspended
    status_before           TEXT,
    suspend_reason          TEXT,                 -- shown to the customer; null unless suspended
    activation_requested_at INTEGER,              -- when the customer asked for activation
    -- none: it has no name and asks for none; requested: it asks for one, and sends meanwhile;
    -- pending, rejected: it was created with a name, and doesn't send; accepted: sender_name is in
    -- use
    sender_state            TEXT NOT NULL
        CHECK (sender_state = 'none' OR sender_state = 'requested' OR sender_state = 'pending'
               OR sender_state = 'rejected' OR sender_state = 'accepted'),
    sender_name             TEXT,                 -- the accepted name; null unless accepted
    -- the sum of the ledger account's transfers
    balance                 INTEGER NOT NULL CHECK (balance >= 0),
    -- play money of the test key, outside the ledger
    test_balance            INTEGER NOT NULL CHECK (test_balance >= 0),
    -- the day on which the test balance was last filled up
    test_day                INTEGER NOT NULL,
    -- how many messages the test key sent on that day
    test_sent               INTEGER NOT NULL DEFAULT 0,
    created_at              INTEGER NOT NULL,     -- when the customer made it
    -- what becomes of a message when a carrier's answer is lost
    lost_answer             TEXT NOT NULL DEFAULT 'hold'
        CHECK (lost_answer IN ('hold', 'resend')),
    -- the customer is mailed when the balance falls below this; null: never
    low_balance             INTEGER CHECK (low_balance > 0),
    -- when that was; null again once the balance is not below
    low_balance_at          INTEGER,
    -- since when the customer wants a mail when a batch is done; null: doesn't
    batch_mails_since       INTEGER,
    disabled_at             INTEGER,              -- the same as its account's
    activated_at            INTEGER,              -- when staff first approved it; null before
    paid_at                 INTEGER               -- the account's first deposit; null: there was none
) STRICT;
-- The status stands first, though it is the same in all: SQLite would read and sort all that are
-- Pending otherwise.
CREATE INDEX applications_waiting ON applications (status, activation_requested_at, id)
    WHERE status = 'Pending' AND activation_requested_at IS NOT NULL;
CREATE INDEX applications_by_status ON applications (status, id);
CREATE INDEX applications_by_activation ON applications (activated_at) WHERE activated_at IS NOT NULL;
CREATE INDEX applications_with_threshold ON applications (id) WHERE low_balance IS NOT NULL;
CREATE INDEX applications_with_batch_mails ON applications (id) WHERE batch_mails_since IS NOT NULL;
-- The two rules of "My Applications", held by the database however many forms arrive at once.
CREATE UNIQUE INDEX applications_one_per_category ON applications (account_id, category);
CREATE UNIQUE INDEX applications_one_without_sender ON applications (account_id)
    WHERE sender_state = 'none';

-- What owners are shown of their applications' keys; never a key. There is no foreign key: with
-- PostgreSQL applications are distributed.
CREATE TABLE api_keys (
    reference TEXT NOT NULL,         -- of the application
    kind      TEXT NOT NULL CHECK (kind = 'live' OR kind = 'test'), -- which of its two keys
    last_four TEXT NOT NULL,         -- the key's last 4 characters
    made_at   INTEGER NOT NULL,      -- when it was made
    used_at   INTEGER,               -- when it was last used; written once a minute at most
    used_from TEXT,                  -- the address of the client that used it last
    PRIMARY KEY (reference, kind)
) STRICT, WITHOUT ROWID;

-- How many calls had a key, by the hour.
CREATE TABLE api_key_calls (
    reference TEXT NOT NULL,         -- of the application
    kind      TEXT NOT NULL,         -- which of its two keys
    hour      INTEGER NOT NULL,      -- since 1970-01-01; forgotten after a day
    calls     INTEGER NOT NULL,      -- with the key that is in force
    PRIMARY KEY (reference, kind, hour)
) STRICT, WITHOUT ROWID;

-- The last 50 calls of each application, for its owner.
CREATE TABLE api_calls (
    id        INTEGER PRIMARY KEY,   -- in the order in which they were stored
    reference TEXT NOT NULL,         -- of the application
    at        INTEGER NOT NULL,      -- when it was answered
    kind      TEXT NOT NULL CHECK (kind = 'live' OR kind = 'test'), -- of the key that it had
    call      TEXT NOT NULL,         -- method and template of the path, without the key
    client    TEXT,                  -- the client's address
    recipient TEXT,                  -- the number that a message is for, masked
    reason    TEXT,                  -- why it was refused; null: it was not
    detail    TEXT                   -- what was wrong; nothing that the client sent
) STRICT;
CREATE INDEX api_calls_by_application ON api_calls (reference, at, id);

-- Keys that were replaced within a day: calls with them are shown to their owner.
CREATE TABLE replaced_keys (
    hash        TEXT PRIMARY KEY,    -- the key's SHA-256, hexadecimal
    reference   TEXT NOT NULL,       -- of the application
    replaced_at INTEGER NOT NULL     -- when another key took its place
) STRICT, WITHOUT ROWID;

CREATE TABLE sender_requests (
    id             INTEGER PRIMARY KEY, -- in the order in which they were made
    -- the application that is to have the name
    application_id INTEGER NOT NULL REFERENCES applications (id),
    name           TEXT NOT NULL,     -- as the customer wrote it
    status         TEXT NOT NULL      -- replaced: the customer asked for another name meanwhile
        CHECK (status = 'pending' OR status = 'accepted'
               OR status = 'rejected' OR status = 'replaced' OR status = 'withdrawn'),
    reason         TEXT,              -- why it was rejected; shown to the customer
    requested_at   INTEGER NOT NULL,  -- when the customer asked
    decided_at     INTEGER            -- null while pending
) STRICT;
CREATE INDEX sender_requests_by_application ON sender_requests (application_id, id);
CREATE UNIQUE INDEX sender_requests_one_pending ON sender_requests (application_id)
    WHERE status = 'pending';
CREATE INDEX sender_requests_waiting ON sender_requests (id) WHERE status = 'pending';
CREATE INDEX sender_requests_decided ON sender_requests (decided_at) WHERE decided_at IS NOT NULL;

-- A name accepted for one account is never accepted for another.
CREATE TABLE sender_name_owners (
    folded     TEXT PRIMARY KEY,     -- the name in lower case
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- whose name it is
    looks      TEXT NOT NULL         -- the same for names that people take for each other
) STRICT;
CREATE INDEX sender_name_owners_by_looks ON sender_name_owners (looks);

-- Lists that staff keep. A list that isn't here is as it was at first.
CREATE TABLE staff_lists (
    list       TEXT PRIMARY KEY,     -- a stable word, e.g. reject-reasons
    lines      TEXT NOT NULL         -- its entries, a line each
) STRICT;

-- Staff who view a case that waits for a decision.
CREATE TABLE case_viewers (
    kind       TEXT NOT NULL,        -- application or sender
    case_name  TEXT NOT NULL,        -- reference of the application, or id of the sender's request
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- who views it
    seen_at    INTEGER NOT NULL,     -- exact to a minute; deleted after a few minutes
    PRIMARY KEY (kind, case_name, account_id)
) STRICT, WITHOUT ROWID;

-- Open notes about incidents, which customers read. An ended one is deleted; the audit log has it.
CREATE TABLE incidents (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again
    text       TEXT NOT NULL,        -- as customers read it
    carrier    TEXT,                 -- the carrier that it is about; null: no certain one
    began_at   INTEGER NOT NULL      -- when staff wrote it
) STRICT;

-- What a member of staff asked for and a second one has to approve. What was decided is deleted;
-- the audit log has it.
CREATE TABLE approvals (
    id       INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again
    act      TEXT NOT NULL,      -- what was asked for, as JSON
    asked_by INTEGER NOT NULL REFERENCES accounts (id), -- who asked
    asked_at INTEGER NOT NULL    -- when; it ends a week later
) STRICT;

-- The ledger account of an application has the application's id. Our own ledger accounts are
-- negative: -1 the bank (where deposits come from), -2 unmatched deposits, -3 revenue, -4 reserved.
-- The price of a batch is charged to the reserved account when the upload is accepted, settled from
-- there to revenue as rows become messages, and released for rows that can't become messages.
CREATE TABLE transfers (
    -- grows with each commit: the order of an account's transfers
    id             INTEGER PRIMARY KEY,
    debit_account  INTEGER NOT NULL,    -- the ledger account that pays
    -- the ledger account that is paid
    credit_account INTEGER NOT NULL CHECK (credit_account <> debit_account),
    amount         INTEGER NOT NULL CHECK (amount > 0), -- how much moves
    -- 0 deposit, 1 unmatched (deposit), 2 charge, 3 settle, 4 release
    kind           INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 4),
    -- whose statement it is on; 0 between our own ledger accounts
    application_id INTEGER NOT NULL,
    -- the message of a charge or release; null if that is for a batch
    message_id     INTEGER,
    -- the batch of a charge, settle or release; null if that is for a message
    batch_id       INTEGER,
    bank_id        TEXT,                -- the bank's id of a deposit
    balance_after  INTEGER,             -- of the application; null between our own ledger accounts
    created_at     INTEGER NOT NULL     -- when it was committed
) STRICT;
CREATE INDEX transfers_by_application ON transfers (application_id, id);
-- What a customer looks for among many charges. Charges, of which each send has one, aren't in it.
CREATE INDEX transfers_not_charges ON transfers (application_id, kind, id, amount)
    WHERE kind IN (0, 4);
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
    -- whose balance it went to; null while unmatched
    application_id INTEGER REFERENCES applications (id),
    received_at    INTEGER NOT NULL,  -- when it was entered
    credited_at    INTEGER            -- when it went to the balance; null while unmatched
) STRICT;
CREATE INDEX deposits_by_time ON deposits (received_at, bank_id);
CREATE INDEX deposits_unmatched ON deposits (received_at, bank_id) WHERE application_id IS NULL;

-- Bank statements that staff imported by file.
CREATE TABLE bank_statements (
    id           INTEGER PRIMARY KEY, -- in the order in which they were imported
    created_at   INTEGER NOT NULL,    -- when the file was imported
    loaded_at    INTEGER,             -- when the last line was stored; null: not whole
    confirmed_at INTEGER,             -- when staff confirmed it; null: nothing is credited
    confirmed_by INTEGER REFERENCES accounts (id), -- who confirmed it
    asked_by     INTEGER REFERENCES accounts (id), -- who asked for that, where it took two
    last_line    INTEGER NOT NULL,    -- the lines up to this one are credited
    done_at      INTEGER              -- when the last line was credited
) STRICT;

CREATE TABLE bank_statement_lines (
    statement_id INTEGER NOT NULL REFERENCES bank_statements (id), -- the statement it is of
    line         INTEGER NOT NULL,    -- its number in the file
    bank_id      TEXT NOT NULL,       -- the bank's id of the payment
    reference    TEXT NOT NULL,       -- as the payer wrote it
    amount       INTEGER NOT NULL,    -- what was paid; 0 for a line that is skipped
    outcome      TEXT NOT NULL        -- what became of it, e.g. waiting or credited
        CHECK (outcome = 'waiting' OR outcome = 'credited' OR outcome = 'unmatched'
               OR outcome = 'known' OR outcome = 'conflict' OR outcome = 'refused'
               OR outcome = 'debit' OR outcome = 'other-currency'),
    PRIMARY KEY (statement_id, line)
) STRICT, WITHOUT ROWID;

-- Which columns of bank statements are which, by the header line.
CREATE TABLE bank_columns (
    header       TEXT PRIMARY KEY,    -- the header line
    bank_id      INTEGER NOT NULL,    -- the place of the bank's id, from 0
    reference    INTEGER NOT NULL,    -- the place of the reference
    amount       INTEGER NOT NULL,    -- the place of the amount
    currency     INTEGER              -- the place of the currency; null: there is none
) STRICT;

CREATE TABLE messages (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count: in the order of acceptance
    application_id INTEGER NOT NULL,  -- who sent it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    number         TEXT NOT NULL,     -- digits
    kind           TEXT NOT NULL CHECK (kind IN ('local', 'international')), -- of the number
    -- the accepted name at acceptance; null: the installation's default
    sender         TEXT,
    body           TEXT,              -- the text; null: that of the batch, which all its rows share
    requestid      TEXT,              -- the caller's own id, if any
    batch_id       INTEGER,           -- the batch that it is a row of; null for a single send
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7), -- as at the top
    pages          INTEGER NOT NULL,  -- billed
    segments       INTEGER NOT NULL,  -- on air
    unit_price     INTEGER NOT NULL,  -- per page, in force at acceptance
    cost           INTEGER NOT NULL,  -- pages × unit_price
    released       INTEGER NOT NULL,  -- what was released: 0 or cost
    error          TEXT,              -- why it wasn't delivered, in a stable word
    carrier        TEXT,              -- who took it
    created_at     INTEGER NOT NULL,  -- the milliseconds in id
    sending_at     INTEGER,           -- when it was last claimed
    submitted_at   INTEGER,           -- when the carrier took it
    final_at       INTEGER            -- when the status became final; never changes after
) STRICT;
-- SQLite ends each entry of an index with the row's id: reports read these indexes from the newest
-- message on.
CREATE INDEX messages_by_application ON messages (application_id, test);
CREATE INDEX messages_by_number ON messages (application_id, test, number);
CREATE INDEX messages_by_requestid ON messages (application_id, test, requestid)
    WHERE requestid IS NOT NULL;
-- Messages that are unknown, failed, expired or rejected. They are few: a message that is delivered
-- has no entry.
CREATE INDEX messages_unusual ON messages (application_id, test, status)
    WHERE status > 4 OR status = 2;

-- What a message's own row doesn't show: retries, receipts that came late.
CREATE TABLE message_events (
    id             INTEGER PRIMARY KEY, -- in the order in which they happened
    message_id     INTEGER NOT NULL,  -- the message that it happened to
    application_id INTEGER NOT NULL,  -- of the message
    -- what the message became, or stayed
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7),
    at             INTEGER NOT NULL,  -- when it happened
    detail         TEXT               -- what happened, in words
) STRICT;
CREATE INDEX message_events_by_message ON message_events (message_id, id);

-- Messages that no carrier has taken yet. The rows are narrow and short-lived. Rows of a suspended
-- application are deferred when they are claimed and not when it is suspended, which would write
-- all of them.
CREATE TABLE queue (
    message_id     INTEGER PRIMARY KEY, -- the message that waits
    application_id INTEGER NOT NULL,  -- of the message
    carrier        TEXT NOT NULL,     -- the carrier that is to take it
    -- 1: deferred, since the application is suspended
    deferred           INTEGER NOT NULL CHECK (deferred IN (0, 1)),
    -- 1: of a batch; single sends don't wait behind these
    bulk           INTEGER NOT NULL CHECK (bulk IN (0, 1)),
    -- when it may be claimed; of a claimed row, the end of its lease
    due_at         INTEGER NOT NULL,
    lease_token    INTEGER NOT NULL,  -- which claim holds it; 0: none
    attempts       INTEGER NOT NULL,  -- submits that the carrier asked to repeat
    -- 0: no carrier has any of its segments. 1: a carrier has, or may have, some of them; the
    -- others go to the same carrier. 2: the carrier's answer was lost, and the message is sent once
    -- more.
    submission      INTEGER NOT NULL DEFAULT 0 CHECK (submission BETWEEN 0 AND 2),
    refused_by     TEXT NOT NULL DEFAULT '' -- carriers that refused it, e.g. ' acme beta'
) STRICT;
CREATE INDEX queue_due ON queue (carrier, deferred, bulk, due_at) WHERE lease_token = 0;
CREATE INDEX queue_deferred ON queue (application_id) WHERE deferred = 1;
CREATE INDEX queue_leased ON queue (carrier, due_at) WHERE lease_token <> 0;

-- What carriers were handed: a row for each segment, or one for a message that is submitted as a
-- whole. Messages to the sandbox have no row: it names them by their own ids.
CREATE TABLE segments (
    message_id     INTEGER NOT NULL,  -- the message that it is a segment of
    segment        INTEGER NOT NULL,  -- its number, from 1
    segments       INTEGER NOT NULL,  -- how many the message has, as it was submitted
    application_id INTEGER NOT NULL,  -- of the message
    carrier        TEXT NOT NULL,     -- the carrier that was handed it
    carrier_message_id TEXT,          -- as the carrier's receipts name it; null: not known
    -- as of a message, from unknown to expired
    status         INTEGER NOT NULL CHECK (status BETWEEN 2 AND 6),
    error          TEXT,              -- why it wasn't delivered
    submits        INTEGER NOT NULL,  -- how often it was, or may have been, submitted: 2 at most
    submitted_at   INTEGER NOT NULL,  -- when it was last submitted
    PRIMARY KEY (message_id, segment)
) STRICT, WITHOUT ROWID;
CREATE INDEX segments_by_carrier_id ON segments (carrier, carrier_message_id)
    WHERE carrier_message_id IS NOT NULL;
CREATE INDEX segments_unanswered ON segments (carrier, message_id)
    WHERE status = 2 AND carrier_message_id IS NULL;

-- Receipts that name no known message: the answer to the submit may come after them.
CREATE TABLE unmatched_receipts (
    id             INTEGER PRIMARY KEY, -- in the order in which they came
    carrier        TEXT NOT NULL,     -- the carrier that sent it
    carrier_message_id TEXT NOT NULL, -- the carrier's name for the message
    -- the status that it reports: delivered, failed or expired
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7),
    error          TEXT,              -- why it wasn't delivered
    received_at    INTEGER NOT NULL   -- when it came
) STRICT;
CREATE INDEX unmatched_receipts_by_carrier_id ON unmatched_receipts (carrier, carrier_message_id);
CREATE INDEX unmatched_receipts_by_age ON unmatched_receipts (received_at);

CREATE TABLE carriers (
    name           TEXT PRIMARY KEY,  -- as in the settings
    drained_at     INTEGER            -- since when it is handed nothing; null: it is in use
) STRICT;

-- Receipts by carrier.
CREATE TABLE receipt_counts (
    carrier        TEXT PRIMARY KEY,
    unmatched         INTEGER NOT NULL,  -- how many were kept as unmatched so far
    matched        INTEGER NOT NULL   -- how many of them were matched later
) STRICT;

-- The state of the workers' connections, rewritten every few seconds for the pages of staff.
CREATE TABLE connections (
    carrier        TEXT NOT NULL,     -- the carrier that it leads to
    node           INTEGER NOT NULL,  -- slot of the node
    number         INTEGER NOT NULL,  -- among the node's connections to the carrier, from 1
    -- bound: it can submit; probing: it submits one at a time until an answer comes; waiting: it is
    -- tried again in a few seconds
    state          TEXT NOT NULL
        CHECK (state = 'connecting' OR state = 'bound' OR state = 'waiting' OR state = 'closed'
               OR state = 'probing'),
    since          INTEGER NOT NULL,  -- when it came into this state
    in_flight      INTEGER NOT NULL,  -- submits that wait for an answer
    window_size    INTEGER NOT NULL,  -- how many may wait for an answer at a time
    rate           INTEGER NOT NULL,  -- answers in the last second
    throttled      INTEGER NOT NULL,  -- answers since the start that asked for a slower pace
    last_error     TEXT,              -- the last error; null: there was none
    updated_at     INTEGER NOT NULL,  -- when this was written
    PRIMARY KEY (carrier, node, number)
) STRICT;

-- Accepted uploads. The price of a batch is reserved, and its rows become messages step by step.
CREATE TABLE batches (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count: in the order of acceptance
    application_id INTEGER NOT NULL,  -- who uploaded it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: uploaded with the test key
    -- the accepted name at acceptance; null: the installation's default
    sender         TEXT,
    requestid      TEXT,              -- the caller's own id, if any
    body           TEXT,              -- the message to every number; null when each row has its own
    rows           INTEGER NOT NULL CHECK (rows > 0), -- how many it has
    pages          INTEGER NOT NULL,  -- billed, of all rows
    cost           INTEGER NOT NULL CHECK (cost > 0), -- the sum of the rows' prices
    price_local    INTEGER NOT NULL,  -- per page to a local number, in force at acceptance
    price_international INTEGER NOT NULL, -- per page to any other number, in force at acceptance
    price_id       INTEGER NOT NULL,  -- the newest change of prices that was known at acceptance
    first_message_id INTEGER NOT NULL, -- of the first row; those of the other rows follow
    last_message_id  INTEGER NOT NULL UNIQUE, -- of the last row
    -- the spool of the rows until they are messages: a file in the data folder
    spool          TEXT NOT NULL,
    spool_offset   INTEGER NOT NULL,  -- how many bytes of the spool are messages already
    expanded_rows  INTEGER NOT NULL,  -- how many rows are messages already
    expanded_cost  INTEGER NOT NULL,  -- the price of these rows, which has left the reservation
    -- The rows by status; the counts always add up to all rows.
    -- together with the rows that are no messages yet
    queued         INTEGER NOT NULL CHECK (queued >= 0),
    sending        INTEGER NOT NULL CHECK (sending >= 0),   -- claimed by a connection
    unknown        INTEGER NOT NULL CHECK (unknown >= 0),   -- submitted, without an answer
    submitted      INTEGER NOT NULL CHECK (submitted >= 0), -- taken by a carrier
    delivered      INTEGER NOT NULL CHECK (delivered >= 0), -- final: arrived
    failed         INTEGER NOT NULL CHECK (failed >= 0),    -- final: the network gave up
    expired        INTEGER NOT NULL CHECK (expired >= 0),   -- final: their time ran out
    rejected       INTEGER NOT NULL CHECK (rejected >= 0),  -- final: no carrier took them
    released       INTEGER NOT NULL,  -- what was released of the cost
    created_at     INTEGER NOT NULL,  -- acceptance
    expanded_at    INTEGER,           -- when every row was a message, or given up
    done_at        INTEGER,           -- when every row was final
    mailed_at      INTEGER,           -- when a mail about its end was written
    CHECK (queued + sending + unknown + submitted + delivered + failed + expired + rejected = rows),
    CHECK (expanded_rows <= rows AND expanded_cost <= cost AND released <= cost)
) STRICT;
CREATE INDEX batches_by_application ON batches (application_id, test, id);
CREATE INDEX batches_by_requestid ON batches (application_id, test, requestid)
    WHERE requestid IS NOT NULL;
CREATE INDEX batches_unexpanded ON batches (id) WHERE expanded_at IS NULL;
CREATE INDEX batches_of_tests ON batches (last_message_id) WHERE test = 1;

-- How many messages of a day have which status, for charts. Several rows add up to a count, so that
-- transactions that count at the same time don't wait for one row; a single row can be negative. A
-- chore folds the rows of a day into one once all messages of the day are final.
CREATE TABLE message_days (
    application_id INTEGER NOT NULL,  -- whose messages
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    day            INTEGER NOT NULL,  -- the day of their acceptance
    status         INTEGER NOT NULL CHECK (status BETWEEN 0 AND 7), -- as at the top
    node           INTEGER NOT NULL,  -- slot of the node that counted; 0 after folding
    -- 0: sends, claims, results and receipts; 1: everything else
    writer         INTEGER NOT NULL CHECK (writer IN (0, 1)),
    n              INTEGER NOT NULL,  -- how many, to be added to the other rows
    PRIMARY KEY (application_id, test, day, status, node, writer)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_days_unfolded ON message_days (day) WHERE node <> 0 OR writer <> 1;
CREATE INDEX message_days_of_tests ON message_days (day) WHERE test = 1;

-- Figures of the messages of a quarter hour, for charts by hour and by the days of a time zone: how
-- many there are and what they cost, how many have which final status, and how soon they were
-- delivered. Several rows add up to a figure, as with the counts by day.
CREATE TABLE message_quarters (
    application_id INTEGER NOT NULL,  -- whose messages
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    quarter        INTEGER NOT NULL,  -- of their acceptance: quarter hours since 1970-01-01, UTC
    -- 0: all messages; 5, 6, 7: those with that status; 100 and more: those that were delivered,
    -- 100 within a second, the next ones later
    figure         INTEGER NOT NULL
        CHECK (figure = 0 OR figure BETWEEN 5 AND 7 OR figure BETWEEN 100 AND 114),
    node           INTEGER NOT NULL,  -- slot of the node that counted; 0 after folding
    -- 0: sends, claims, results and receipts; 1: everything else
    writer         INTEGER NOT NULL CHECK (writer IN (0, 1)),
    n              INTEGER NOT NULL,  -- how many, to be added to the other rows
    -- of all messages: what they cost, without what was released; to be added
    cost           INTEGER NOT NULL,
    PRIMARY KEY (application_id, test, quarter, figure, node, writer)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_quarters_unfolded ON message_quarters (quarter)
    WHERE node <> 0 OR writer <> 1;

-- Figures of live messages by day, for the report of margins. A chore counts a day once it is over,
-- and again once all of its messages are final.
CREATE TABLE margin_days (
    day            INTEGER NOT NULL,  -- the day of the messages' acceptance
    reference      TEXT NOT NULL,     -- of the application whose messages these are
    -- what their price was by: local, international, or the digits of a prefix
    rule           TEXT NOT NULL,
    carrier        TEXT NOT NULL,     -- the carrier that took them; empty: none did
    is_final       INTEGER NOT NULL CHECK (is_final IN (0, 1)), -- 1: it isn't counted again
    messages       INTEGER NOT NULL,  -- how many
    pages          INTEGER NOT NULL,  -- billed, without those that were given back
    segments       INTEGER NOT NULL,  -- submitted
    unpriced       INTEGER NOT NULL,  -- segments whose route has no cost in the settings
    charged        INTEGER NOT NULL,  -- the messages' prices, without what was released
    cost           INTEGER NOT NULL,  -- what the carrier charges for the segments
    PRIMARY KEY (day, reference, rule, carrier)
) STRICT, WITHOUT ROWID;

-- The sums of a day's dropped messages: their transfers stay, and the check compares the two.
CREATE TABLE dropped_days (
    day            INTEGER NOT NULL,  -- the day of the messages' acceptance
    application_id INTEGER NOT NULL,  -- whose messages
    -- the price of single live messages, each of which has a transfer
    charged        INTEGER NOT NULL,
    released       INTEGER NOT NULL,  -- what was released for live messages, those of batches too
    PRIMARY KEY (day, application_id)
) STRICT;

-- Answers to requests with an Idempotency-Key: a repeated request gets the same answer again.
CREATE TABLE idempotency (
    application_id INTEGER NOT NULL,  -- the application that asked
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: with the test key
    key            TEXT NOT NULL,     -- SHA-256 of the idempotency key, hexadecimal
    digest         TEXT NOT NULL,     -- SHA-256 of the parsed request, hexadecimal
    answer         TEXT NOT NULL,     -- JSON of what was answered
    created_at     INTEGER NOT NULL,  -- when it was answered; it is kept for 24 hours from then on
    PRIMARY KEY (application_id, test, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Processes that serve. A slot can be taken again once no process has had it for an hour.
CREATE TABLE nodes (
    -- a part of the ids that the node makes
    slot           INTEGER PRIMARY KEY CHECK (slot BETWEEN 0 AND 511),
    -- identifies the process that has the slot; 0: its last process ended
    token          INTEGER NOT NULL,
    name           TEXT NOT NULL,     -- of the process, for people
    started_at     INTEGER NOT NULL,  -- when the process took the slot
    seen_at        INTEGER NOT NULL   -- renewed every few seconds while the process lives
) STRICT;

-- What staff, customers and the command line did.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY, -- in the order in which it happened
    at      INTEGER NOT NULL,    -- when it was done
    actor   TEXT NOT NULL,       -- 'command line (USER)', 'system', or 'account ID'
    address TEXT,                -- of the client; null: done on the machine itself
    action  TEXT NOT NULL,       -- a stable word, e.g. application.approve
    subject TEXT NOT NULL,       -- what it was done to
    before  TEXT,                -- what was changed, before the change; never a secret
    after   TEXT,                -- what was changed, after the change; never a secret
    detail  TEXT,                -- a reason, an amount; never a secret
    chain   INTEGER NOT NULL,    -- the account that did it; 0: the operator, or the service itself
    number  INTEGER NOT NULL,    -- in its chain, from 1
    hash    TEXT NOT NULL        -- SHA-256 of the hash before it in the chain and of this entry
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, id);
CREATE UNIQUE INDEX audit_by_chain ON audit (chain, number);
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_never_goes BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- Where each chain of the audit log ends: an entry that is missing at the end is missed by it.
CREATE TABLE audit_chains (
    chain  INTEGER PRIMARY KEY,
    number INTEGER NOT NULL, -- of the last entry
    hash   TEXT NOT NULL     -- of the last entry
) STRICT;

-- What staff write down about an account; its owner doesn't see it. There is no foreign key: Citus
-- rewrites a table that refers to accounts, which a table that is never changed refuses.
CREATE TABLE account_notes (
    id         INTEGER PRIMARY KEY, -- in the order in which they were written
    account_id INTEGER NOT NULL,    -- whom the note is about
    at         INTEGER NOT NULL,    -- when it was written
    author     TEXT NOT NULL,       -- as the actor in the audit log
    text       TEXT NOT NULL        -- the note, of 2000 characters at most
) STRICT;
CREATE INDEX account_notes_by_account ON account_notes (account_id, id);
CREATE TRIGGER account_notes_never_change BEFORE UPDATE ON account_notes
BEGIN SELECT RAISE(ABORT, 'notes are append-only'); END;
CREATE TRIGGER account_notes_never_go BEFORE DELETE ON account_notes
BEGIN SELECT RAISE(ABORT, 'notes are append-only'); END;
