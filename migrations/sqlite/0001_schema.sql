-- The whole schema. The two databases have integers and text in common. Money is in micro-units of
-- the installation's currency. Times are in Unix milliseconds, and days are counted from 1970-01-01
-- UTC. Flags are 0 or 1, but an event such as disabling an account is stored as its time instead.
-- SQLite's STRICT tables call the integer type INTEGER, and PostgreSQL calls it BIGINT.
--
-- The status of a message or of a segment is a number. Here its name stands in braces, and
-- `app/domain/src/status.rs` describes it. From `delivered` on it is final.
--
-- No CHECK has an IN list of more than two constants, because SQLite builds a b-tree for such a
-- list at every execution.

CREATE TABLE installation (
    id         INTEGER PRIMARY KEY CHECK (id = 1), -- there is one row
    currency   TEXT NOT NULL,                      -- ISO 4217 code, fixed at first start
    created_at INTEGER NOT NULL,                   -- when the service first started
    -- every message below this ID is final; the expiry sweep starts here
    sweep_low_id INTEGER NOT NULL,
    swept_at   INTEGER NOT NULL,     -- when the expiry sweep last confirmed sweep_low_id
    history_low_id INTEGER NOT NULL DEFAULT 0, -- messages below this ID were dropped
    test_low_id INTEGER NOT NULL DEFAULT 0, -- test messages below this ID are being dropped
    masked_low_id INTEGER NOT NULL DEFAULT 0, -- numbers of messages below this ID are masked
    text_low_id INTEGER NOT NULL DEFAULT 0, -- texts of messages below this ID are erased
    form_key   TEXT NOT NULL,        -- secret; seals the forms of browsers without scripts
    -- key that seals secrets; null if it is in a file of the data folder
    sealing_key TEXT,
    -- the file or the server that holds this database. A copy at another place is an old state, so
    -- nothing is submitted from it; null until the first start
    place      TEXT,
    backed_up_at INTEGER             -- when `heliograph backup` last succeeded; null: never
) STRICT;

-- Price changes. Rows are never updated. For the base prices and for each prefix, the newest change
-- that has come into force applies, unless it was cancelled before.
CREATE TABLE prices (
    id            INTEGER PRIMARY KEY,  -- grows with each change
    -- first digits of international numbers; null if the row sets the base prices
    prefix        TEXT,
    local         INTEGER CHECK (local > 0), -- per page to a local number; null for a prefix
    -- per page to an international number, or to a number with the prefix; null if the prefix no
    -- longer has a price of its own
    international INTEGER CHECK (international > 0),
    in_force_at   INTEGER NOT NULL,     -- when it comes into force
    set_at        INTEGER NOT NULL,     -- when it was set
    -- like the actor in audit; 'settings' if the service set it when it started
    set_by        TEXT NOT NULL,
    -- the change that this row cancels before it comes into force; such a row has no prices
    cancels       INTEGER UNIQUE,
    CHECK (CASE WHEN cancels IS NOT NULL
           THEN prefix IS NULL AND local IS NULL AND international IS NULL
           WHEN prefix IS NULL
           THEN local IS NOT NULL AND international IS NOT NULL AND international > local
           ELSE local IS NULL END)
) STRICT;

CREATE TABLE accounts (
    id                  INTEGER PRIMARY KEY,  -- identifies the account in other tables
    email               TEXT NOT NULL UNIQUE, -- lower case
    password_hash       TEXT NOT NULL,        -- argon2id in PHC string format
    role                TEXT NOT NULL CHECK (role IN ('customer', 'staff')),
    created_at          INTEGER NOT NULL,     -- registration
    password_changed_at INTEGER NOT NULL,     -- when the password was last set
    -- when the owner confirmed the email; null until then. The default 0 counts as confirmed, for
    -- accounts that are created without a mail server or on somebody's behalf.
    confirmed_at        INTEGER DEFAULT 0,
    confirm_mailed_at   INTEGER,              -- when the last confirmation mail was written
    disabled_at         INTEGER,              -- when staff disabled it; null if it isn't disabled
    disabled_reason     TEXT,                 -- for staff; null if it isn't disabled
    theme               TEXT NOT NULL DEFAULT 'system', -- the portal's colours: system, light, dark
    -- IANA name of the time zone of pages; null for the browser's
    time_zone           TEXT,
    new_email           TEXT,                 -- requested, not in effect yet; null if there is none
    -- when new_email takes effect; null until its owner confirms it
    new_email_at        INTEGER,
    -- mail kinds that the owner has turned off, separated by spaces
    unwanted_mails      TEXT NOT NULL DEFAULT '',
    closed_at           INTEGER               -- when its owner closed it permanently
) STRICT;
CREATE INDEX accounts_by_new_email ON accounts (new_email_at) WHERE new_email_at IS NOT NULL;

-- Authenticator apps (TOTP, RFC 6238). An account has a row once it has set up two-factor.
CREATE TABLE second_factors (
    account_id INTEGER PRIMARY KEY REFERENCES accounts (id), -- the owner
    secret     TEXT NOT NULL,     -- sealed for this account
    created_at INTEGER NOT NULL,  -- when the first code confirmed the app
    last_step  INTEGER NOT NULL,  -- codes of this 30-second step and of earlier steps are used up
    wrong_codes INTEGER NOT NULL DEFAULT 0, -- consecutive wrong codes after a correct password
    wrong_at   INTEGER NOT NULL DEFAULT 0 -- when the last of them was entered
) STRICT;

-- Unused recovery codes.
CREATE TABLE recovery_codes (
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- the owner
    code_hash  TEXT NOT NULL,     -- SHA-256 of the code, hexadecimal
    PRIMARY KEY (account_id, code_hash)
) STRICT;

-- Passkeys (WebAuthn), which are accepted instead of codes. Only accounts in `second_factors` have
-- passkeys.
CREATE TABLE passkeys (
    id              INTEGER PRIMARY KEY AUTOINCREMENT, -- identifies it in forms; never reused
    account_id      INTEGER NOT NULL REFERENCES accounts (id), -- the owner
    credential_hash TEXT NOT NULL UNIQUE, -- SHA-256 of the credential ID, hexadecimal
    name            TEXT NOT NULL,    -- chosen by the owner
    credential      TEXT NOT NULL,    -- public key and counter; JSON in the format of webauthn-rs
    counter         INTEGER NOT NULL, -- highest count so far; 0 if the passkey doesn't count
    created_at      INTEGER NOT NULL, -- when it was added
    used_at         INTEGER           -- when it was last used; null if never
) STRICT;
CREATE INDEX passkeys_by_account ON passkeys (account_id);

-- Browsers that are signed in, and browsers in the middle of a sign-in or registration.
CREATE TABLE sessions (
    -- identifies the device in forms; never reused; gives no access
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash   TEXT NOT NULL UNIQUE, -- SHA-256 of the cookie's token, hexadecimal
    account_id   INTEGER REFERENCES accounts (id), -- null until signed in
    -- JSON of the portal's data; secrets in it are encrypted with the token
    data         TEXT NOT NULL,
    user_agent   TEXT NOT NULL,        -- of the browser at sign-in
    address      TEXT NOT NULL,        -- of the client at sign-in
    created_at   INTEGER NOT NULL,     -- start of the absolute time limit
    last_seen_at INTEGER NOT NULL,     -- start of the idle time limit; accurate to a minute
    -- account whose password was entered, while its code is pending
    awaited_account_id INTEGER REFERENCES accounts (id),
    -- last step-up authentication: by a code, or by the password if there is no second factor
    stepped_up_at    INTEGER,
    -- sealed passkey challenge; null if none is pending
    passkey_challenge TEXT
) STRICT;
CREATE INDEX sessions_by_account ON sessions (account_id);
CREATE INDEX sessions_by_age ON sessions (last_seen_at);

-- Security events of accounts: sign-ins, failures, resets, keys.
CREATE TABLE security_events (
    id         INTEGER PRIMARY KEY,  -- in chronological order
    at         INTEGER NOT NULL,     -- when it happened; kept for security_event_days
    account_id INTEGER REFERENCES accounts (id), -- null if the event belongs to no account
    kind       TEXT NOT NULL,        -- stable code, for example sign_in_failed
    address    TEXT NOT NULL,        -- of the client; empty for the service itself
    network    TEXT NOT NULL,        -- /64 of an IPv6 address, or the IPv4 address itself
    user_agent TEXT NOT NULL,        -- of the client
    detail     TEXT -- a reference, a page, the number of throttled attempts; never a secret
) STRICT;
CREATE INDEX security_events_by_account ON security_events (account_id, id);
CREATE INDEX security_events_by_age ON security_events (at);

CREATE TABLE password_resets (
    token_hash TEXT PRIMARY KEY,     -- SHA-256 of the link's token, hexadecimal
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- account whose password the link sets
    created_at INTEGER NOT NULL,     -- when the link was requested
    expires_at INTEGER NOT NULL,     -- the link is invalid from this time on
    used_at    INTEGER,              -- when the link was used; it works only once
    -- where the link was mailed to; it works while the account has this email; null if not mailed
    email      TEXT
) STRICT;

-- Links that confirm email addresses.
CREATE TABLE confirmations (
    token_hash TEXT PRIMARY KEY,     -- SHA-256 of the link's token, hexadecimal
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- account that the link belongs to
    expires_at INTEGER NOT NULL,     -- the link is invalid from this time on
    email      TEXT NOT NULL,        -- where the link was mailed to
    -- confirm: the account's current email; change: its new email; stop: cancels such a change
    purpose    TEXT NOT NULL
        CHECK (purpose = 'confirm' OR purpose = 'change' OR purpose = 'stop')
) STRICT;

-- Mails, until they are sent and for some time afterwards. Secret links are never stored: a mail's
-- token is made when the mail is sent.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY,  -- in the order in which they were written
    account_id INTEGER REFERENCES accounts (id), -- account that the mail is for
    kind       TEXT NOT NULL,        -- what the mail is about
    recipient  TEXT NOT NULL,        -- email address
    subject    TEXT NOT NULL,        -- of the mail
    body       TEXT NOT NULL,        -- paragraphs; deleted when the mail is sent
    path       TEXT,                 -- page that the mail links to, for example '/applications'
    created_at INTEGER NOT NULL,     -- when the mail was written
    -- sending: a process is passing it to the mail server; kept: there was no mail server
    state      TEXT NOT NULL
        CHECK (state = 'queued' OR state = 'sending' OR state = 'sent' OR state = 'kept'
               OR state = 'failed'),
    -- time of the next attempt; end of the lease while the mail is being sent
    due_at     INTEGER NOT NULL,
    attempts      INTEGER NOT NULL, -- attempts since it was queued, or since staff queued it again
    last_error TEXT                  -- why the last attempt failed
) STRICT;
CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 'queued' OR state = 'sending';
CREATE INDEX outbox_by_recipient ON outbox (recipient, created_at);

-- When staff were last mailed about each kind of work that has been pending for an hour.
CREATE TABLE reminders (
    kind       TEXT PRIMARY KEY,     -- for example activations
    -- when the last mail was written; it counted all work that had been pending for an hour
    mailed_at  INTEGER NOT NULL
) STRICT;

-- Browsers and networks that accounts have signed in from. The owner gets a mail about a sign-in
-- from any other browser or network.
CREATE TABLE known_devices (
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- account that signed in
    fingerprint TEXT NOT NULL,       -- SHA-256 of user agent and network, hexadecimal
    seen_at    INTEGER NOT NULL,     -- last sign-in; the row is deleted after 90 days
    name       TEXT,                 -- chosen by the owner; null if none
    network    TEXT NOT NULL,        -- /64 of an IPv6 address, or the IPv4 address itself
    PRIMARY KEY (account_id, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE applications (
    id                      INTEGER PRIMARY KEY, -- also the number of its ledger account
    account_id              INTEGER NOT NULL REFERENCES accounts (id), -- the owner
    -- purpose, which the customer chose from a list
    category                TEXT NOT NULL,
    reference               TEXT NOT NULL UNIQUE, -- first 6 digits of both keys; never changes
    live_hash               TEXT NOT NULL,        -- SHA-256 of the live key, hexadecimal
    test_hash               TEXT NOT NULL,        -- SHA-256 of the test key, hexadecimal
    status                  TEXT NOT NULL         -- whether its live key works: only Active sends
        CHECK (status = 'Pending' OR status = 'Active' OR status = 'Suspended'),
    -- status to restore after a suspension; null unless suspended
    status_before           TEXT,
    suspend_reason          TEXT,                 -- shown to the customer; null unless suspended
    activation_requested_at INTEGER,              -- when the customer requested the activation
    -- none: it has no name and requests none. requested: it requests a name, and sends in the
    -- meantime. pending, rejected: it was created with a name, and doesn't send. accepted: it uses
    -- sender_name.
    sender_state            TEXT NOT NULL
        CHECK (sender_state = 'none' OR sender_state = 'requested' OR sender_state = 'pending'
               OR sender_state = 'rejected' OR sender_state = 'accepted'),
    sender_name             TEXT,                 -- accepted name; null unless accepted
    -- sum of the transfers of its ledger account
    balance                 INTEGER NOT NULL CHECK (balance >= 0),
    -- test money, which isn't in the ledger
    test_balance            INTEGER NOT NULL CHECK (test_balance >= 0),
    -- day on which the test balance was last refilled
    test_day                INTEGER NOT NULL,
    -- number of messages that the test key sent on that day
    test_sent               INTEGER NOT NULL DEFAULT 0,
    created_at              INTEGER NOT NULL,     -- when the customer created it
    -- what to do with a message if the carrier's answer is lost
    lost_answer             TEXT NOT NULL DEFAULT 'hold'
        CHECK (lost_answer IN ('hold', 'resend')),
    -- the customer is mailed when the balance falls below this threshold; null if never
    low_balance             INTEGER CHECK (low_balance > 0),
    -- when the customer was mailed about it; null while the balance isn't below the threshold
    low_balance_at          INTEGER,
    -- since when the customer wants a mail for each finished batch; null if not wanted
    batch_mails_since       INTEGER,
    disabled_at             INTEGER,              -- copied from its account
    -- the status by which messages are accepted and submitted: an application of a disabled account
    -- counts as suspended
    effective_status        TEXT NOT NULL GENERATED ALWAYS AS
        (CASE WHEN disabled_at IS NULL THEN status ELSE 'Suspended' END) VIRTUAL,
    activated_at            INTEGER,              -- when staff first approved it; null before
    paid_at                 INTEGER,              -- first deposit of its account; null if none
    limits                  TEXT,                 -- JSON; null if the owner set none
    -- language of the texts with one-time codes, and website that browsers may hand the codes to
    code_locale             TEXT NOT NULL DEFAULT 'en',
    code_domain             TEXT,                 -- null for none
    -- day of the account's time zone on which a live message was last accepted
    spent_day               INTEGER NOT NULL DEFAULT 0,
    -- price of the live messages that were accepted on that day
    spent_today             INTEGER NOT NULL DEFAULT 0,
    -- UTC day of the last live message to an international number that alarms have seen
    international_day       INTEGER,
    -- UTC day on which messages were last withdrawn: cancelled, or rejected for a limit or an opt-out
    withdrawn_day           INTEGER NOT NULL DEFAULT 0,
    -- numbers of live and of test messages that were withdrawn on that day
    withdrawn_live          INTEGER NOT NULL DEFAULT 0,
    withdrawn_test          INTEGER NOT NULL DEFAULT 0,
    name                    TEXT,                 -- display name; null for the default one
    -- when its owner deleted it; the row stays, so that its reference is never given out again
    deleted_at              INTEGER
) STRICT;
-- The status comes first although all entries have the same one. Otherwise SQLite would read and
-- sort all Pending applications.
CREATE INDEX applications_waiting ON applications (status, activation_requested_at, id)
    WHERE status = 'Pending' AND activation_requested_at IS NOT NULL;
CREATE INDEX applications_by_status ON applications (status, id);
CREATE INDEX applications_by_activation ON applications (activated_at) WHERE activated_at IS NOT NULL;
CREATE INDEX applications_with_threshold ON applications (id) WHERE low_balance IS NOT NULL;
CREATE INDEX applications_with_batch_mails ON applications (id) WHERE batch_mails_since IS NOT NULL;
CREATE INDEX applications_by_account ON applications (account_id); -- deleted ones too
-- An account has at most one application per category, and at most one without a sender name. The
-- database enforces both rules, even if several forms arrive at once.
CREATE UNIQUE INDEX applications_one_per_category ON applications (account_id, category)
    WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX applications_one_without_sender ON applications (account_id)
    WHERE sender_state = 'none' AND deleted_at IS NULL;

-- Information about keys for their owners, but never a key. There is no foreign key because
-- applications can be distributed on PostgreSQL.
CREATE TABLE api_keys (
    reference TEXT NOT NULL,         -- of the application
    -- which of the application's two keys
    kind      TEXT NOT NULL CHECK (kind = 'live' OR kind = 'test'),
    last_four TEXT NOT NULL,         -- last 4 characters of the key
    made_at   INTEGER NOT NULL,      -- when it was made
    used_at   INTEGER,               -- last use; written at most once a minute
    used_from TEXT,                  -- client address of the last use
    PRIMARY KEY (reference, kind)
) STRICT, WITHOUT ROWID;

-- Number of calls per key and hour.
CREATE TABLE api_key_calls (
    reference TEXT NOT NULL,         -- of the application
    kind      TEXT NOT NULL,         -- which of the application's two keys
    hour      INTEGER NOT NULL,      -- hours since 1970-01-01 UTC; the row is deleted after a day
    calls     INTEGER NOT NULL,      -- calls with the current key
    PRIMARY KEY (reference, kind, hour)
) STRICT, WITHOUT ROWID;

-- The client addresses that used a key, by day.
CREATE TABLE api_key_clients (
    reference TEXT NOT NULL,         -- of the application
    kind      TEXT NOT NULL,         -- which of the application's two keys
    day       INTEGER NOT NULL,      -- days since 1970-01-01 UTC; the row is deleted after 30 days
    client    TEXT NOT NULL,         -- address; empty for those beyond the first 100 of a day
    calls     INTEGER NOT NULL,      -- calls with the current key
    first_at  INTEGER NOT NULL,      -- first of these calls
    last_at   INTEGER NOT NULL,      -- last of these calls
    PRIMARY KEY (reference, kind, day, client)
) STRICT, WITHOUT ROWID;

-- The last 50 calls of each application, for its owner.
CREATE TABLE api_calls (
    id        INTEGER PRIMARY KEY,   -- in the order in which they were stored
    reference TEXT NOT NULL,         -- of the application
    at        INTEGER NOT NULL,      -- when the call was answered
    kind      TEXT NOT NULL CHECK (kind = 'live' OR kind = 'test'), -- kind of the call's key
    call      TEXT NOT NULL,         -- method and path template, without the key
    client    TEXT,                  -- address of the client
    recipient TEXT,                  -- the message's number, masked
    reason    TEXT,                  -- why the call was refused; null if it wasn't
    detail    TEXT                   -- details of the reason; nothing that the client sent
) STRICT;
CREATE INDEX api_calls_by_application ON api_calls (reference, at, id);

-- Keys that were replaced in the last day. Owners can see calls with these keys.
CREATE TABLE replaced_keys (
    hash        TEXT PRIMARY KEY,    -- the key's SHA-256, hexadecimal
    reference   TEXT NOT NULL,       -- of the application
    replaced_at INTEGER NOT NULL     -- when the key was replaced
) STRICT, WITHOUT ROWID;

CREATE TABLE sender_requests (
    id             INTEGER PRIMARY KEY, -- in the order in which they were made
    -- application that requests the name
    application_id INTEGER NOT NULL REFERENCES applications (id),
    name           TEXT NOT NULL,     -- as the customer entered it
    status         TEXT NOT NULL      -- replaced: the customer has requested another name
        CHECK (status = 'pending' OR status = 'accepted'
               OR status = 'rejected' OR status = 'replaced' OR status = 'withdrawn'),
    reason         TEXT,              -- why it was rejected; shown to the customer
    requested_at   INTEGER NOT NULL,  -- when the customer requested it
    decided_at     INTEGER            -- null while pending
) STRICT;
CREATE INDEX sender_requests_by_application ON sender_requests (application_id, id);
CREATE UNIQUE INDEX sender_requests_one_pending ON sender_requests (application_id)
    WHERE status = 'pending';
CREATE INDEX sender_requests_waiting ON sender_requests (id) WHERE status = 'pending';
CREATE INDEX sender_requests_decided ON sender_requests (decided_at) WHERE decided_at IS NOT NULL;

-- A name that was accepted for one account is never accepted for another.
CREATE TABLE sender_name_owners (
    folded     TEXT PRIMARY KEY,     -- the name in lower case
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- the owner
    looks      TEXT NOT NULL         -- the same for names that people can mistake for each other
) STRICT;
CREATE INDEX sender_name_owners_by_looks ON sender_name_owners (looks);

-- Lists that staff edit. A list without a row has its initial entries.
CREATE TABLE staff_lists (
    list       TEXT PRIMARY KEY,     -- stable code, for example reject-reasons
    lines      TEXT NOT NULL         -- the entries, one per line
) STRICT;

-- Staff members who are viewing a pending case.
CREATE TABLE case_viewers (
    kind       TEXT NOT NULL,        -- application or sender
    case_name  TEXT NOT NULL, -- reference of the application, or ID of the sender name request
    account_id INTEGER NOT NULL REFERENCES accounts (id), -- the viewer
    seen_at    INTEGER NOT NULL,     -- accurate to a minute; the row is deleted after a few minutes
    PRIMARY KEY (kind, case_name, account_id)
) STRICT, WITHOUT ROWID;

-- Open notes about incidents, which customers can read. A note is deleted when its incident ends;
-- the audit log keeps it.
CREATE TABLE incidents (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused
    text       TEXT NOT NULL,        -- shown to customers
    carrier    TEXT,                 -- affected carrier; null if no particular one
    began_at   INTEGER NOT NULL      -- when staff wrote it
) STRICT;

-- Requests of a staff member that a second one has to approve. A request is deleted after the
-- decision; the audit log keeps it.
CREATE TABLE approvals (
    id       INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused
    act      TEXT NOT NULL,      -- requested action, as JSON
    asked_by INTEGER NOT NULL REFERENCES accounts (id), -- who requested it
    asked_at INTEGER NOT NULL    -- when; the request expires after a week
) STRICT;

-- An application's ledger account has the application's ID. The service's own ledger accounts are
-- negative: bank (-1), where deposits come from, unmatched deposits (-2), revenue (-3) and reserved
-- (-4). When an upload is accepted, the price of its batch is charged to the reserved account. It
-- is settled to revenue as rows become messages, and released for rows that can't become messages.
CREATE TABLE transfers (
    -- grows with each commit, so an account's transfers are in order
    id             INTEGER PRIMARY KEY,
    debit_account  INTEGER NOT NULL,    -- ledger account that pays
    -- ledger account that is paid
    credit_account INTEGER NOT NULL CHECK (credit_account <> debit_account),
    amount         INTEGER NOT NULL CHECK (amount > 0),
    -- the codes are in app/domain/src/ledger.rs
    kind           INTEGER NOT NULL CHECK (kind BETWEEN {first_kind} AND 5),
    -- application whose statement shows it; 0 between the service's own accounts
    application_id INTEGER NOT NULL,
    -- message of a charge or release; null if it is for a batch
    message_id     INTEGER,
    -- batch of a charge, settle or release; null if it is for a message
    batch_id       INTEGER,
    bank_id        TEXT,                -- the bank's ID of a deposit
    balance_after  INTEGER, -- of the application; null between the service's own accounts
    created_at     INTEGER NOT NULL     -- when it was committed
) STRICT;
CREATE INDEX transfers_by_application ON transfers (application_id, id);
-- Finds the few other transfers among many charges. Charges aren't in this index, which would have
-- to be written for each send.
CREATE INDEX transfers_not_charges ON transfers (application_id, kind, id, amount)
    WHERE kind IN ({deposit}, {release});
CREATE INDEX transfers_by_batch ON transfers (batch_id, kind) WHERE batch_id IS NOT NULL;
CREATE UNIQUE INDEX transfers_one_release ON transfers (message_id) WHERE kind = {release};
CREATE UNIQUE INDEX transfers_batch_once ON transfers (batch_id, kind)
    WHERE kind IN ({charge}, {release});
CREATE UNIQUE INDEX transfers_bank_once ON transfers (bank_id, kind) WHERE bank_id IS NOT NULL;
CREATE TRIGGER transfers_never_change BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;
CREATE TRIGGER transfers_never_go BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;

CREATE TABLE deposits (
    bank_id        TEXT PRIMARY KEY,  -- the bank's ID of the payment, which is credited only once
    reference      TEXT NOT NULL,     -- as the payer wrote it
    amount         INTEGER NOT NULL CHECK (amount > 0),
    -- application that was credited; null while unmatched
    application_id INTEGER REFERENCES applications (id),
    received_at    INTEGER NOT NULL,  -- when it was entered
    credited_at    INTEGER,           -- when the balance was credited; null while unmatched
    payer          TEXT,              -- name of the payer in the bank statement; null if unknown
    purpose        TEXT,              -- purpose in the bank statement; null if unknown
    paid_on        TEXT,              -- day in the bank statement, like 2026-11-27; null if unknown
    returned_at    INTEGER,           -- when staff returned it to the bank; null if they didn't
    return_note    TEXT,              -- why staff returned it
    CHECK (application_id IS NULL OR returned_at IS NULL)
) STRICT;
CREATE INDEX deposits_by_time ON deposits (received_at, bank_id);
CREATE INDEX deposits_unmatched ON deposits (received_at, bank_id)
    WHERE application_id IS NULL AND returned_at IS NULL;

-- Bank statements that staff imported from files.
CREATE TABLE bank_statements (
    id           INTEGER PRIMARY KEY, -- in the order in which they were imported
    created_at   INTEGER NOT NULL,    -- when the file was imported
    loaded_at    INTEGER,             -- when the last line was stored; null while lines are missing
    confirmed_at INTEGER,             -- when staff confirmed it; nothing is credited before
    -- who confirmed it; null for the command line
    confirmed_by INTEGER REFERENCES accounts (id),
    -- who requested the confirmation, if it took two people
    asked_by     INTEGER REFERENCES accounts (id),
    last_line    INTEGER NOT NULL,    -- number of the last credited line
    done_at      INTEGER              -- when the last line was credited
) STRICT;

CREATE TABLE bank_statement_lines (
    statement_id INTEGER NOT NULL REFERENCES bank_statements (id),
    line         INTEGER NOT NULL,    -- its number in the file
    bank_id      TEXT NOT NULL,       -- the bank's ID of the payment
    reference    TEXT NOT NULL,       -- as the payer wrote it
    amount       INTEGER NOT NULL,    -- as in the file; negative if money went out
    outcome      TEXT NOT NULL        -- for example waiting or credited
        CHECK (outcome = 'waiting' OR outcome = 'credited' OR outcome = 'unmatched'
               OR outcome = 'known' OR outcome = 'conflict' OR outcome = 'refused'
               OR outcome = 'debit' OR outcome = 'other-currency'),
    payer        TEXT,                -- name of the payer; null if the file has none
    purpose      TEXT,                -- purpose of the payment; null if the file has none
    paid_on      TEXT,                -- day like 2026-11-27; null if the file has none
    currency     TEXT,                -- of the amount, if it isn't the installation's
    -- when staff marked the line as done; only of lines that couldn't be credited
    handled_at   INTEGER,
    PRIMARY KEY (statement_id, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX bank_statement_lines_open ON bank_statement_lines (statement_id, line)
    WHERE handled_at IS NULL
      AND (outcome = 'conflict' OR outcome = 'refused' OR outcome = 'other-currency');

-- Files whose columns staff are choosing, in parts. Deleted once the columns are chosen.
CREATE TABLE bank_files (
    id           INTEGER NOT NULL,
    part         INTEGER NOT NULL,    -- from 0
    content      TEXT NOT NULL,       -- some of the file's lines
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (id, part)
) STRICT, WITHOUT ROWID;

-- The order of the columns of bank statements, by their header line.
CREATE TABLE bank_columns (
    header       TEXT PRIMARY KEY,
    bank_id      INTEGER NOT NULL,    -- position of the bank's ID, from 0
    reference    INTEGER NOT NULL,    -- position of the reference
    amount       INTEGER NOT NULL,    -- position of the amount, or of money that came in
    debit        INTEGER,             -- position of money that went out; null if amount has it
    currency     INTEGER,             -- position of the currency; null if there is none
    payer        INTEGER,             -- position of the payer's name; null if there is none
    purpose      INTEGER,             -- position of the purpose; null if there is none
    paid_on      INTEGER              -- position of the day; null if there is none
) STRICT;

CREATE TABLE messages (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count; grows with acceptance
    application_id INTEGER NOT NULL,  -- application that sent it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    number         TEXT NOT NULL,     -- digits; • for each one that was erased
    kind           TEXT NOT NULL CHECK (kind IN ('local', 'international')), -- of the number
    -- sender name in use at acceptance; null for the installation's default
    sender         TEXT,
    -- text; null if it is that of the batch, empty once erased. A one-time code is masked in it
    body           TEXT,
    verification_id INTEGER,          -- the verification whose code it brings, if it brings one
    requestid      TEXT,              -- the caller's own ID, if any
    batch_id       INTEGER,           -- the batch, if it is a row of one
    status         INTEGER NOT NULL CHECK (status BETWEEN {first_status} AND 9),
    pages          INTEGER NOT NULL,  -- billed
    segments       INTEGER NOT NULL,  -- as sent over the air
    unit_price     INTEGER NOT NULL,  -- per page, in force at acceptance
    cost           INTEGER NOT NULL,  -- pages × unit_price
    released       INTEGER NOT NULL,  -- released amount: 0 or cost
    send_at        INTEGER,           -- when it was scheduled for; null if it was due at once
    error          TEXT,              -- why it wasn't delivered, as a stable code
    carrier        TEXT,              -- carrier that accepted it
    created_at     INTEGER NOT NULL,  -- the milliseconds in id
    sending_at     INTEGER,           -- when it was last claimed
    submitted_at   INTEGER,           -- when the carrier accepted it
    final_at       INTEGER            -- when the status became final; never changes
) STRICT;
-- SQLite ends each index entry with the row's ID, so reports read these indexes starting with the
-- newest message.
CREATE INDEX messages_by_application ON messages (application_id, test);
CREATE INDEX messages_by_number ON messages (application_id, number, test);
CREATE INDEX messages_by_requestid ON messages (application_id, test, requestid)
    WHERE requestid IS NOT NULL;
-- The scheduled messages of an application in the order of their times, and those of all
-- applications for the expiry sweep.
CREATE INDEX messages_scheduled ON messages (application_id, test, send_at)
    WHERE send_at IS NOT NULL;
CREATE INDEX messages_by_send_at ON messages (send_at) WHERE send_at IS NOT NULL;
-- The messages with codes of an application, for the page about verifications.
CREATE INDEX messages_with_codes ON messages (application_id, test) WHERE verification_id IS NOT NULL;
-- Messages that are unknown, failed, expired or rejected. They are few, because a delivered message
-- has no entry.
CREATE INDEX messages_unusual ON messages (application_id, test, status)
    WHERE status > {delivered} OR status = {unknown};

-- Entries of messages' timelines that the messages' own rows don't show: retries, late receipts.
CREATE TABLE message_timeline (
    id             INTEGER PRIMARY KEY, -- in chronological order
    message_id     INTEGER NOT NULL,
    application_id INTEGER NOT NULL,  -- of the message
    -- new or unchanged status of the message
    status         INTEGER NOT NULL CHECK (status BETWEEN {first_status} AND 9),
    at             INTEGER NOT NULL,  -- when it happened
    detail         TEXT               -- description of what happened
) STRICT;
CREATE INDEX message_timeline_by_message ON message_timeline (message_id, id);

-- Messages that no carrier has accepted yet. Rows are narrow and short-lived. The rows of a
-- suspended application are deferred when they are claimed. Deferring them at the suspension would
-- write all of them. A scheduled message is in the queue from its acceptance on.
CREATE TABLE queue (
    message_id     INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL,  -- of the message
    carrier        TEXT NOT NULL,     -- carrier that will send it
    -- 1: deferred because the application is suspended. 2: deferred because the batch is paused or
    -- cancelled
    deferred           INTEGER NOT NULL CHECK (deferred BETWEEN 0 AND 2),
    -- 1: of a batch; single sends don't wait for these. A row that was claimed when its batch was
    -- cancelled has 0 from then on, because it goes on.
    bulk           INTEGER NOT NULL CHECK (bulk IN (0, 1)),
    -- when it may be claimed; end of the lease if it is claimed
    due_at         INTEGER NOT NULL,
    lease_token    INTEGER NOT NULL,  -- token of its claim; 0 if unclaimed
    attempts       INTEGER NOT NULL,  -- submits that the carrier asked to retry
    -- 0: no carrier has any of its segments. 1: a carrier has, or may have, some of them; the
    -- others go to the same carrier. 2: the carrier's answer was lost, and the message is sent
    -- again.
    submission      INTEGER NOT NULL DEFAULT 0 CHECK (submission BETWEEN 0 AND 2),
    refused_by     TEXT NOT NULL DEFAULT '', -- carriers that refused it, for example ' acme beta'
    -- from when on it may no longer be claimed; null: 48 hours after acceptance
    expires_at     INTEGER
) STRICT;
CREATE INDEX queue_due ON queue (carrier, deferred, bulk, due_at) WHERE lease_token = 0;
CREATE INDEX queue_deferred ON queue (application_id) WHERE deferred = 1;
CREATE INDEX queue_leased ON queue (carrier, due_at) WHERE lease_token <> 0;
CREATE INDEX queue_held ON queue (message_id) WHERE deferred = 2;
CREATE INDEX queue_begun ON queue (message_id) WHERE submission <> 0;
CREATE INDEX queue_expiring ON queue (expires_at) WHERE expires_at IS NOT NULL;

-- Segments that were submitted to carriers: a row for each segment, or one row for a message that
-- is submitted as a whole. Messages to the sandbox have no row, because the sandbox uses our
-- message IDs.
CREATE TABLE segments (
    message_id     INTEGER NOT NULL,
    segment        INTEGER NOT NULL,  -- its number, from 1
    segments       INTEGER NOT NULL,  -- number of segments that the message was submitted in
    application_id INTEGER NOT NULL,  -- of the message
    carrier        TEXT NOT NULL,     -- carrier that it was submitted to
    carrier_message_id TEXT,          -- as in the carrier's receipts; null if unknown
    -- like a message's, from unknown to expired
    status         INTEGER NOT NULL CHECK (status BETWEEN {unknown} AND {expired}),
    error          TEXT,              -- why it wasn't delivered
    -- number of submits that happened or may have happened; at most 2
    submits        INTEGER NOT NULL,
    submitted_at   INTEGER NOT NULL,  -- last submit
    PRIMARY KEY (message_id, segment)
) STRICT, WITHOUT ROWID;
CREATE INDEX segments_by_carrier_id ON segments (carrier, carrier_message_id)
    WHERE carrier_message_id IS NOT NULL;
CREATE INDEX segments_unanswered ON segments (carrier, message_id)
    WHERE status IN ({submitted}, {unknown}) AND carrier_message_id IS NULL;

-- Receipts that match no message yet: the answer to the submit may come later. A receipt has a row
-- for each carrier message ID that it may mean.
CREATE TABLE unmatched_receipts (
    id             INTEGER PRIMARY KEY, -- in the order in which they came
    receipt        INTEGER NOT NULL,  -- the same in all rows of a receipt
    carrier        TEXT NOT NULL,     -- carrier that sent it
    carrier_message_id TEXT NOT NULL, -- empty if the receipt has none
    -- reported status: delivered, failed or expired
    status         INTEGER NOT NULL CHECK (status BETWEEN {first_status} AND 9),
    error          TEXT,              -- why it wasn't delivered
    received_at    INTEGER NOT NULL,  -- when it came
    -- the carrier's setting message_id when it was last compared with messages; empty if the
    -- carrier has no such setting, and new if it was never compared
    form           TEXT NOT NULL,
    text_id        TEXT,              -- the ID in its text, as the carrier wrote it
    parameter_id   TEXT,              -- the ID in its parameter, as the carrier wrote it
    state          TEXT NOT NULL,     -- its state, as the carrier wrote it
    number         TEXT NOT NULL,     -- the recipient; empty if the receipt doesn't prove it
    sender         TEXT NOT NULL,
    user_reference INTEGER,           -- the reference that it echoes
    submitted_at   INTEGER            -- when the carrier accepted the message, as it says
) STRICT;
CREATE INDEX unmatched_receipts_by_carrier_id ON unmatched_receipts (carrier, carrier_message_id);
CREATE INDEX unmatched_receipts_by_age ON unmatched_receipts (received_at);
CREATE INDEX unmatched_receipts_by_receipt ON unmatched_receipts (carrier, receipt);
CREATE INDEX unmatched_receipts_by_form ON unmatched_receipts (carrier, form, receipt);

-- Receipts as carriers sent them, for staff, and answers to submits unless these accept a message
-- with an ID. They are kept for raw_receipts_days.
CREATE TABLE raw_receipts (
    id             INTEGER PRIMARY KEY, -- begins with the time of arrival, like a message's
    carrier        TEXT NOT NULL,     -- carrier that sent it
    kind           TEXT NOT NULL,     -- whether it says how a message ended; an answer's meaning
    written_id     TEXT,              -- the ID in its text, otherwise the one in its parameter
    parameter_id   TEXT,              -- the ID in its parameter
    number         TEXT NOT NULL,     -- the recipient
    state          TEXT NOT NULL,     -- its state, as the carrier wrote it; an answer's status
    -- its error as a stable code, or as the carrier wrote it if the state isn't known; null if none
    error          TEXT,
    raw            TEXT NOT NULL,     -- its first bytes; others than ASCII are escaped
    message_id     INTEGER            -- message that it is for; null if not known
) STRICT;
CREATE INDEX raw_receipts_by_carrier ON raw_receipts (carrier, id)
    WHERE kind = 'final' OR kind = 'intermediate' OR kind = 'unknown_state';
CREATE INDEX raw_receipts_answers ON raw_receipts (carrier, id)
    WHERE kind <> 'final' AND kind <> 'intermediate' AND kind <> 'unknown_state';
CREATE INDEX raw_receipts_unknown ON raw_receipts (carrier, state, id)
    WHERE kind = 'unknown_state';
CREATE INDEX raw_receipts_by_written_id ON raw_receipts (carrier, written_id, id);
CREATE INDEX raw_receipts_by_number ON raw_receipts (carrier, number, id);

CREATE TABLE carriers (
    name           TEXT PRIMARY KEY,  -- as in the settings; * for all, while messages are held
    drained_at     INTEGER            -- since when nothing is submitted to it; null if it is in use
) STRICT;

-- Counts of receipts by carrier.
CREATE TABLE receipt_counts (
    carrier        TEXT PRIMARY KEY,
    unmatched         INTEGER NOT NULL,  -- receipts that were unmatched at first
    matched        INTEGER NOT NULL,  -- receipts of these that were matched later
    unknown_state  INTEGER NOT NULL DEFAULT 0 -- receipts with a state that we don't know
) STRICT;

-- Counts of carriers' answers and receipts. Each is counted for its minute and for its hour.
CREATE TABLE carrier_figures (
    period_ms      INTEGER NOT NULL,  -- length of the period
    began_at       INTEGER NOT NULL,
    carrier        TEXT NOT NULL,
    name           TEXT NOT NULL,     -- what is counted
    count          INTEGER NOT NULL,
    PRIMARY KEY (period_ms, began_at, carrier, name)
) STRICT, WITHOUT ROWID;

-- Commands that every running process carries out.
CREATE TABLE carrier_commands (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused
    command    TEXT NOT NULL,        -- JSON; empty once a command with a message is over
    asked_at   INTEGER NOT NULL,
    taken_by   INTEGER               -- slot of the node, if only one carries it out
) STRICT;

CREATE TABLE carrier_command_answers (
    command_id INTEGER NOT NULL,
    node       INTEGER NOT NULL,     -- slot of the node
    number     INTEGER NOT NULL,     -- among the node's answers, from 1
    answered_at INTEGER NOT NULL,
    -- going: more answers follow. refused: the node did nothing, or failed.
    state      TEXT NOT NULL
        CHECK (state = 'going' OR state = 'done' OR state = 'refused'),
    text       TEXT NOT NULL,        -- what was done, or why nothing was
    PRIMARY KEY (command_id, node, number)
) STRICT, WITHOUT ROWID;

-- The state of the workers' connections to carriers. It is rewritten every few seconds for the
-- staff pages.
CREATE TABLE connections (
    carrier        TEXT NOT NULL,
    node           INTEGER NOT NULL,  -- slot of the node
    number         INTEGER NOT NULL,  -- among the node's connections to the carrier, from 1
    -- bound: it can submit. probing: it submits one message at a time until an answer comes.
    -- waiting: it reconnects in a few seconds.
    state          TEXT NOT NULL
        CHECK (state = 'connecting' OR state = 'bound' OR state = 'waiting' OR state = 'closed'
               OR state = 'probing' OR state = 'degraded'),
    since          INTEGER NOT NULL,  -- start of this state
    in_flight      INTEGER NOT NULL,  -- submits that are waiting for an answer
    window_size    INTEGER NOT NULL,  -- maximum number of submits that may wait for an answer
    rate           INTEGER NOT NULL,  -- answers in the last second
    throttled      INTEGER NOT NULL,  -- number of throttling answers since the start
    last_error     TEXT,              -- null if there was none
    last_error_at  INTEGER,           -- when it was last seen
    updated_at     INTEGER NOT NULL,  -- when this row was written
    PRIMARY KEY (carrier, node, number)
) STRICT;

-- The processes that refused to reload their settings, because these have an error. A process
-- deletes its row once it has reloaded them, and when it starts.
CREATE TABLE refused_reloads (
    node           INTEGER PRIMARY KEY, -- slot of the node
    refused_at     INTEGER NOT NULL,
    error          TEXT NOT NULL
) STRICT;

-- Accepted uploads. The price of a batch is reserved, and its rows become messages step by step.
CREATE TABLE batches (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count; grows with acceptance
    application_id INTEGER NOT NULL,  -- application that uploaded it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: uploaded with the test key
    -- sender name in use at acceptance; null for the installation's default
    sender         TEXT,
    requestid      TEXT,              -- the caller's own ID, if any
    -- text for every number; null if each row has its own, and empty once erased
    body           TEXT,
    rows           INTEGER NOT NULL CHECK (rows > 0), -- number of rows
    pages          INTEGER NOT NULL,  -- billed, of all rows
    cost           INTEGER NOT NULL CHECK (cost > 0), -- sum of the rows' prices
    price_local    INTEGER NOT NULL,  -- per page to a local number, in force at acceptance
    price_international INTEGER NOT NULL, -- per page to any other number, in force at acceptance
    price_id       INTEGER NOT NULL,  -- newest price change known at acceptance
    first_message_id INTEGER NOT NULL, -- of the first row; the IDs of the other rows follow
    last_message_id  INTEGER NOT NULL UNIQUE, -- of the last row
    -- spool with the rows until they are messages: a file in the data folder
    spool          TEXT NOT NULL,
    spool_offset   INTEGER NOT NULL,  -- bytes of the spool that are messages already
    expanded_rows  INTEGER NOT NULL,  -- rows that are messages already
    expanded_cost  INTEGER NOT NULL,  -- price of these rows, which is no longer reserved
    open           INTEGER NOT NULL CHECK (open >= 0), -- rows that aren't final
    released       INTEGER NOT NULL,  -- released part of the cost
    created_at     INTEGER NOT NULL,  -- when it was accepted
    expanded_at    INTEGER,           -- when every row had become a message or had been given up
    done_at        INTEGER,           -- when every row was final
    mailed_at      INTEGER,           -- when the mail about its end was written
    send_at        INTEGER,           -- when it was scheduled for; null if it was due at once
    -- send_at until its rows begin to become messages; then null. The rows then get new message
    -- IDs, so that the IDs' times are those of the messages' creation.
    waits_until    INTEGER,
    -- from when on its rows may no longer be submitted; null: 48 hours after their message IDs
    expires_at     INTEGER,
    paused_at      INTEGER,           -- when it was paused; null if it isn't
    -- how its owner paused it; null if only staff did. Owner and staff each end only their own pause
    paused_by      TEXT,
    pause_reason   TEXT,              -- why staff paused it; null if they haven't
    -- when it was resumed, until its rows are in the queue again
    resumed_at     INTEGER,
    cancelled_at   INTEGER,           -- when it was cancelled
    cancelled_by   TEXT,              -- who cancelled it, like the actor in audit
    -- rows that the cancellation stopped and their price, counted once claims and expansion stopped
    cancelled_rows INTEGER,
    cancelled_cost INTEGER,
    -- 1: rows of the cancelled batch still have to become cancelled
    cancelling     INTEGER NOT NULL DEFAULT 0 CHECK (cancelling IN (0, 1)),
    CHECK (open <= rows AND expanded_rows <= rows AND expanded_cost <= cost AND released <= cost)
) STRICT;
CREATE INDEX batches_by_application ON batches (application_id, test, id);
CREATE INDEX batches_by_requestid ON batches (application_id, test, requestid)
    WHERE requestid IS NOT NULL;
CREATE INDEX batches_unexpanded ON batches (id) WHERE expanded_at IS NULL;
CREATE INDEX batches_of_tests ON batches (last_message_id) WHERE test = 1;
CREATE INDEX batches_with_texts ON batches (last_message_id) WHERE body <> '';
-- Claims skip the rows of these batches.
CREATE INDEX batches_stopped ON batches (first_message_id)
    WHERE cancelling = 1 OR paused_at IS NOT NULL;
CREATE INDEX batches_followed ON batches (id) WHERE cancelling = 1 OR resumed_at IS NOT NULL;
CREATE INDEX batches_waiting ON batches (waits_until) WHERE waits_until IS NOT NULL;
CREATE INDEX batches_scheduled ON batches (application_id, test, id)
    WHERE waits_until IS NOT NULL;

-- Number of a batch's rows by status. A batch has a count for every status from the start, so that
-- later changes only update counts. The counts add up to all rows. Rows that aren't messages yet
-- count as queued.
CREATE TABLE batch_counts (
    batch_id       INTEGER NOT NULL,
    status         INTEGER NOT NULL CHECK (status BETWEEN {first_status} AND 9),
    n              INTEGER NOT NULL CHECK (n >= 0),
    PRIMARY KEY (batch_id, status)
) STRICT, WITHOUT ROWID;

-- Number of messages by day and status, for charts. A count is the sum of several rows, so that
-- transactions that count at the same time don't wait for one row. A single row can be negative. A
-- chore folds a past day's rows into one. If messages of that day were scheduled for later, they
-- add rows again.
CREATE TABLE message_days (
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    day            INTEGER NOT NULL,  -- day of acceptance
    status         INTEGER NOT NULL CHECK (status BETWEEN {first_status} AND 9),
    node           INTEGER NOT NULL,  -- slot of the counting node; 0 after folding
    -- 0: sends, claims, results and receipts; 1: everything else
    writer         INTEGER NOT NULL CHECK (writer IN (0, 1)),
    n              INTEGER NOT NULL,  -- to be added to the other rows
    PRIMARY KEY (application_id, test, day, status, node, writer)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_days_unfolded ON message_days (day) WHERE node <> 0 OR writer <> 1;
CREATE INDEX message_days_of_tests ON message_days (day) WHERE test = 1;

-- Figures of messages by quarter hour, for charts by hour and by day in any time zone. They are the
-- number of messages, their cost, the number with each final status, and the times to delivery. A
-- figure is the sum of several rows, like the counts by day.
CREATE TABLE message_quarters (
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: sent with the test key
    quarter        INTEGER NOT NULL,  -- of acceptance: quarter hours since 1970-01-01 UTC
    -- 0: all messages. From 100 on: delivered messages, 100 for those delivered within a second, and
    -- higher numbers for slower ones. Other numbers: messages with this final status.
    figure         INTEGER NOT NULL
        CHECK (figure = 0 OR figure BETWEEN {failed} AND 9
            OR figure BETWEEN 100 AND 114),
    node           INTEGER NOT NULL,  -- slot of the counting node; 0 after folding
    -- 0: sends, claims, results and receipts; 1: everything else
    writer         INTEGER NOT NULL CHECK (writer IN (0, 1)),
    n              INTEGER NOT NULL,  -- to be added to the other rows
    -- for figure 0: the messages' cost without released amounts, to be added to the other rows
    cost           INTEGER NOT NULL,
    PRIMARY KEY (application_id, test, quarter, figure, node, writer)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_quarters_unfolded ON message_quarters (quarter)
    WHERE node <> 0 OR writer <> 1;

-- Daily figures of live messages, for the margin report. A chore computes them when the day is
-- over. It computes them again when all messages of the day except scheduled ones are final, and
-- whenever some of the scheduled ones have become final.
CREATE TABLE margin_days (
    day            INTEGER NOT NULL,  -- day of acceptance
    reference      TEXT NOT NULL,     -- of the application that sent the messages
    -- price rule: local, international, or the digits of a prefix
    rule           TEXT NOT NULL,
    carrier        TEXT NOT NULL,     -- carrier that accepted them; empty if none did
    -- number of scheduled messages that weren't final when the figures were computed; 0: they
    -- aren't computed again. Null while other messages weren't final either
    unfinished     INTEGER CHECK (unfinished >= 0),
    messages       INTEGER NOT NULL,  -- number of messages
    pages          INTEGER NOT NULL,  -- billed, without released pages
    segments       INTEGER NOT NULL,  -- submitted
    unpriced       INTEGER NOT NULL,  -- segments whose route has no cost in the settings
    charged        INTEGER NOT NULL,  -- prices of the messages, without released amounts
    cost           INTEGER NOT NULL,  -- the carrier's price for the segments
    PRIMARY KEY (day, reference, rule, carrier)
) STRICT, WITHOUT ROWID;

-- Daily sums of dropped messages. Their transfers stay, and `heliograph check` compares the two.
CREATE TABLE dropped_days (
    day            INTEGER NOT NULL,  -- day of acceptance
    application_id INTEGER NOT NULL,
    -- price of single live messages, each of which has a transfer
    charged        INTEGER NOT NULL,
    released       INTEGER NOT NULL,  -- released for live messages, including those of batches
    PRIMARY KEY (day, application_id)
) STRICT;

-- Numbers that handsets send messages to, and the applications that get the messages.
CREATE TABLE inbound_numbers (
    number         TEXT NOT NULL,     -- as carriers write it
    -- first word of the messages; empty for messages that start with no other keyword
    keyword        TEXT NOT NULL,
    application_id INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (number, keyword)
) STRICT, WITHOUT ROWID;

-- Deliveries of inbound messages that the carrier may repeat, because it missed the
-- acknowledgement.
CREATE TABLE inbound_seen (
    fingerprint    INTEGER PRIMARY KEY, -- hash of the delivery
    expires_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX inbound_seen_by_expiry ON inbound_seen (expires_at);

-- Parts of long inbound messages of which other parts are missing.
CREATE TABLE inbound_parts (
    id             INTEGER PRIMARY KEY, -- in the order in which they came
    carrier        TEXT NOT NULL,     -- carrier that delivered it
    number         TEXT NOT NULL,     -- of the handset
    recipient      TEXT NOT NULL,     -- our number
    reference      INTEGER NOT NULL,  -- equal for all parts of a message
    total          INTEGER NOT NULL,  -- number of the message's parts
    sequence       INTEGER NOT NULL,  -- number of this part, from 1
    esm_class      INTEGER NOT NULL,
    data_coding    INTEGER NOT NULL,
    -- the carrier's default alphabet
    alphabet       TEXT NOT NULL
        CHECK (alphabet = 'gsm7' OR alphabet = 'gsm7-packed' OR alphabet = 'latin1'),
    payload        TEXT NOT NULL,     -- octets as delivered, hexadecimal
    received_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX inbound_parts_by_message
    ON inbound_parts (carrier, number, recipient, reference, total, id);
CREATE INDEX inbound_parts_by_age ON inbound_parts (received_at, id);

-- Messages from handsets. They never change, but number and body can be erased.
CREATE TABLE inbound_messages (
    id             INTEGER PRIMARY KEY, -- milliseconds, node, count; grows with arrival
    application_id INTEGER NOT NULL,  -- application that got it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: simulated with the test key
    number         TEXT NOT NULL,     -- of the handset, as carriers write it
    recipient      TEXT NOT NULL,     -- our number
    body           TEXT NOT NULL,
    segments       INTEGER NOT NULL,  -- as sent over the air
    keyword        TEXT,              -- keyword by which the application got it
    optout         TEXT               -- command that it is
        CHECK (optout = 'stop' OR optout = 'start' OR optout = 'help')
) STRICT;
CREATE INDEX inbound_messages_by_application ON inbound_messages (application_id, test, id);
CREATE INDEX inbound_messages_by_number ON inbound_messages (application_id, test, number, id);
CREATE INDEX inbound_messages_by_recipient
    ON inbound_messages (application_id, test, recipient, id);

-- Messages from handsets to numbers that no application had. Staff assign them later.
CREATE TABLE unassigned_inbound (
    id             INTEGER PRIMARY KEY, -- like that of an inbound message
    carrier        TEXT NOT NULL,     -- carrier that delivered it
    number         TEXT NOT NULL,     -- of the handset
    recipient      TEXT NOT NULL,     -- our number
    body           TEXT NOT NULL,
    segments       INTEGER NOT NULL   -- as sent over the air
) STRICT;
CREATE INDEX unassigned_inbound_by_recipient ON unassigned_inbound (recipient, id);

-- Events that programs poll and endpoints get. The events of an application and a kind of key are a
-- stream, and their IDs grow in the order of the commits that stored them.
CREATE TABLE events (
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: for the test key
    id             INTEGER NOT NULL,  -- milliseconds and count; unique in the stream alone
    type           INTEGER NOT NULL,  -- code of the type; for a message, that of its new status
    subject        INTEGER,           -- the message, batch or endpoint that the event is about
    -- JSON of the event's data; null if the subject's row has the data
    data           TEXT,
    PRIMARY KEY (application_id, test, id)
) STRICT, WITHOUT ROWID;

-- The state of each stream of events. A transaction that adds events locks the row.
CREATE TABLE event_streams (
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: for the test key
    last_id        INTEGER NOT NULL,  -- of the newest event; 0 if there was none
    dropped_id     INTEGER NOT NULL,  -- of the newest deleted event; 0 if none was deleted
    -- since when events of messages are stored; null if nobody has asked for them
    since          INTEGER,
    PRIMARY KEY (application_id, test)
) STRICT, WITHOUT ROWID;

-- Endpoints that get events. A process leases an endpoint to deliver its events.
CREATE TABLE webhooks (
    id             INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: gets the test key's events
    url            TEXT NOT NULL,
    secret         TEXT NOT NULL,     -- signs deliveries; encrypted
    old_secret     TEXT,              -- secret before the last rotation; encrypted
    old_until      INTEGER,           -- until when the old secret signs too
    types          TEXT,              -- types of events, comma-separated; null for the default ones
    created_at     INTEGER NOT NULL,
    disabled_at    INTEGER,           -- null while the endpoint is active
    disabled_reason TEXT,             -- 'gone' or 'failing'
    removed_at     INTEGER,           -- when it was removed; its rows are deleted later
    position       INTEGER NOT NULL,  -- ID of the last event that had its first attempt
    failures       INTEGER NOT NULL,  -- failed attempts since the last success
    failing_since  INTEGER,           -- when the first of these failed
    due_at         INTEGER NOT NULL,  -- when there is something to deliver
    lease_token    INTEGER NOT NULL,  -- of the process that delivers; 0 if none does
    lease_until    INTEGER NOT NULL   -- until when the others leave the endpoint to it
) STRICT;
CREATE INDEX webhooks_by_application ON webhooks (application_id, test);
CREATE INDEX webhooks_due ON webhooks (due_at) WHERE disabled_at IS NULL AND removed_at IS NULL;
CREATE INDEX webhooks_removed ON webhooks (removed_at) WHERE removed_at IS NOT NULL;

-- Events that an endpoint gets again at a set time.
CREATE TABLE webhook_retries (
    webhook_id     INTEGER NOT NULL,
    event_id       INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,  -- failed attempts so far
    due_at         INTEGER NOT NULL,  -- when to attempt it next
    PRIMARY KEY (webhook_id, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_retries_due ON webhook_retries (webhook_id, due_at);

-- Ranges of events to replay to an endpoint. Events that it has taken are skipped.
CREATE TABLE webhook_replays (
    id             INTEGER PRIMARY KEY,
    webhook_id     INTEGER NOT NULL,
    position       INTEGER NOT NULL,  -- ID of the last event that was replayed
    last_id        INTEGER NOT NULL   -- ID of the last event to replay
) STRICT;
CREATE INDEX webhook_replays_by_webhook ON webhook_replays (webhook_id);

-- Attempts to deliver events.
CREATE TABLE webhook_attempts (
    webhook_id     INTEGER NOT NULL,
    id             INTEGER NOT NULL,  -- in the order in which they were stored
    at             INTEGER NOT NULL,
    event_id       INTEGER NOT NULL,
    type           INTEGER NOT NULL,  -- of the event
    delivered      INTEGER NOT NULL CHECK (delivered IN (0, 1)), -- 1: the endpoint took the event
    status         INTEGER,           -- HTTP status; null if there was no answer
    latency_ms     INTEGER NOT NULL,
    error          TEXT,              -- why it failed, in words
    answer         TEXT,              -- the first KiB of the answer
    next_at        INTEGER,           -- when the event is attempted again; null if it isn't
    PRIMARY KEY (webhook_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_attempts_by_event ON webhook_attempts (webhook_id, event_id, delivered);
CREATE INDEX webhook_attempts_failed ON webhook_attempts (webhook_id, id) WHERE delivered = 0;

-- Numbers that want no messages from an application.
CREATE TABLE opt_outs (
    application_id INTEGER NOT NULL,
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: of the test key
    -- digits, as carriers get them. For an erased number: x and the first half of an HMAC of the
    -- digits, hexadecimal
    number         TEXT NOT NULL,
    source         TEXT NOT NULL      -- who added it
        CHECK (source = 'reply' OR source = 'api' OR source = 'portal'),
    id             INTEGER NOT NULL,  -- begins with the milliseconds; orders lists
    PRIMARY KEY (application_id, test, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX opt_outs_by_id ON opt_outs (application_id, test, id);

-- The clocks of applications' test keys. The clock of an application without a row shows real time.
CREATE TABLE test_clocks (
    application_id INTEGER PRIMARY KEY,
    -- JSON: the moves since it last showed real time, each with its real time and how far the clock
    -- is ahead since then
    moves          TEXT NOT NULL,
    -- JSON: how far the rows that wait have followed the newest move; null once all have
    following      TEXT
) STRICT;

-- Verifications: a code goes to a number, and the owner of the phone types it. The code isn't
-- stored. It is derived from the row and the server's secret. Kept for 30 days.
CREATE TABLE verifications (
    id             INTEGER PRIMARY KEY, -- begins with the milliseconds
    application_id INTEGER NOT NULL,  -- application that sent it
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: of the test key
    number         TEXT NOT NULL,     -- digits, as carriers get them
    kind           TEXT NOT NULL CHECK (kind IN ('local', 'international')), -- as it is charged
    country        TEXT NOT NULL,     -- country code of the number; empty if no country has it
    nonce          INTEGER NOT NULL,  -- random, so that the code can't be guessed from the ID
    digits         INTEGER NOT NULL CHECK (digits BETWEEN 4 AND 10), -- of the code
    locale         TEXT NOT NULL,     -- language of the text
    name           TEXT NOT NULL,     -- name in the text
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,  -- from when on the code isn't accepted
    attempts       INTEGER NOT NULL CHECK (attempts BETWEEN 0 AND 5),
    verified_at    INTEGER,           -- when the code was typed correctly; null before
    resends        INTEGER NOT NULL CHECK (resends BETWEEN 0 AND 3), -- of the same code
    sent_at        INTEGER NOT NULL   -- when the code was last sent
) STRICT;
CREATE INDEX verifications_by_application ON verifications (application_id, test);
CREATE INDEX verifications_by_number ON verifications (application_id, test, number, sent_at);

-- Alarms about the use of applications. Kept for 90 days.
CREATE TABLE limit_alarms (
    application_id INTEGER NOT NULL,
    id             INTEGER NOT NULL,  -- begins with the milliseconds
    kind           TEXT NOT NULL,     -- limit that it is about, for example leaked_key
    count          INTEGER NOT NULL,  -- messages or requests that caused it
    example        TEXT,              -- masked numbers; null if it isn't about numbers
    detail         TEXT,              -- what happened, as sentences
    read_at        INTEGER,           -- when the owner marked it as read; null if not read
    PRIMARY KEY (application_id, id)
) STRICT, WITHOUT ROWID;

-- How many requests and rows of uploads the limits of applications refused. Kept for a week.
CREATE TABLE limit_refusals (
    application_id INTEGER NOT NULL,
    reason         TEXT NOT NULL,     -- code of the refusal
    day            INTEGER NOT NULL,  -- counted since 1970-01-01 UTC
    n              INTEGER NOT NULL,  -- refused on that day
    PRIMARY KEY (application_id, reason, day)
) STRICT, WITHOUT ROWID;

-- Answers to requests with an idempotency key. A repeated request gets the stored answer.
CREATE TABLE idempotency (
    application_id INTEGER NOT NULL,  -- application that made the request
    test           INTEGER NOT NULL CHECK (test IN (0, 1)), -- 1: with the test key
    key            TEXT NOT NULL,     -- SHA-256 of the idempotency key, hexadecimal
    digest         TEXT NOT NULL,     -- SHA-256 of the parsed request, hexadecimal
    answer         TEXT NOT NULL,     -- JSON of the answer
    created_at     INTEGER NOT NULL,  -- when the request was answered; the row is kept for 24 hours
    PRIMARY KEY (application_id, test, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- The processes that serve the database. A slot is reused when no process has had it for an hour.
CREATE TABLE nodes (
    -- part of the IDs that the node makes
    slot           INTEGER PRIMARY KEY CHECK (slot BETWEEN 0 AND 511),
    -- identifies the process that has the slot; 0 if the slot is free
    token          INTEGER NOT NULL,
    name           TEXT NOT NULL,     -- name of the process, for people
    started_at     INTEGER NOT NULL,  -- when the process took the slot
    seen_at        INTEGER NOT NULL   -- updated every few seconds while the process lives
) STRICT;

-- Actions of staff, customers and the command line.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY, -- in chronological order
    at      INTEGER NOT NULL,    -- when it was done
    actor   TEXT NOT NULL,       -- 'command line (USER)', 'system', or 'account ID'
    address TEXT,                -- of the client; null if done on the machine itself
    action  TEXT NOT NULL,       -- stable code, for example application.approve
    subject TEXT NOT NULL,       -- object of the action
    before  TEXT,                -- values before the change; never a secret
    after   TEXT,                -- values after the change; never a secret
    detail  TEXT,                -- for example a reason or an amount; never a secret
    chain   INTEGER NOT NULL,    -- account that did it; 0 for the operator and the service itself
    number  INTEGER NOT NULL,    -- position in its chain, from 1
    hash    TEXT NOT NULL,       -- SHA-256 of the previous hash in the chain and of this entry
    -- reference of the application whose message or batch the subject is; for the filter alone, and
    -- not part of the hash
    application TEXT
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, id);
CREATE INDEX audit_by_application ON audit (application, id) WHERE application IS NOT NULL;
CREATE UNIQUE INDEX audit_by_chain ON audit (chain, number);
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_never_goes BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- The end of each chain of the audit log, which reveals missing entries at the end.
CREATE TABLE audit_chains (
    chain  INTEGER PRIMARY KEY,
    number INTEGER NOT NULL, -- of the last entry
    hash   TEXT NOT NULL     -- of the last entry
) STRICT;

-- The customer's name and address on receipts and statements.
CREATE TABLE billing_details (
    account_id   INTEGER PRIMARY KEY REFERENCES accounts (id),
    name         TEXT NOT NULL,
    address      TEXT NOT NULL,       -- in lines; empty if unknown
    tax_number   TEXT NOT NULL        -- empty if there is none
) STRICT;

-- Notes that staff write about accounts. The account's owner can't see them. There is no foreign
-- key: Citus would have to rewrite a table that refers to accounts, and an append-only table
-- refuses that.
CREATE TABLE account_notes (
    id         INTEGER PRIMARY KEY, -- in the order in which they were written
    account_id INTEGER NOT NULL,    -- account that the note is about
    at         INTEGER NOT NULL,    -- when it was written
    author     TEXT NOT NULL,       -- like the actor in the audit log
    text       TEXT NOT NULL        -- at most 2000 characters
) STRICT;
CREATE INDEX account_notes_by_account ON account_notes (account_id, id);
CREATE TRIGGER account_notes_never_change BEFORE UPDATE ON account_notes
BEGIN SELECT RAISE(ABORT, 'notes are append-only'); END;
CREATE TRIGGER account_notes_never_go BEFORE DELETE ON account_notes
BEGIN SELECT RAISE(ABORT, 'notes are append-only'); END;
