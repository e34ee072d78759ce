-- Several processes on one database (PostgreSQL alone), and history that is dropped by day.

-- Processes that serve. A number is given again to whoever comes when nobody else was longer without it.
CREATE TABLE nodes (
    slot           INTEGER PRIMARY KEY CHECK (slot BETWEEN 0 AND 511), -- stands in the ids that the process makes
    token          INTEGER NOT NULL,  -- whose it is; 0: nobody's, its last process ended
    name           TEXT NOT NULL,     -- of the process, for people
    started_at     INTEGER NOT NULL,
    seen_at        INTEGER NOT NULL   -- renewed every few seconds while the process lives
) STRICT;

-- Each process has connections of its own. The table is rewritten every few seconds anyway.
DROP TABLE connections;
CREATE TABLE connections (
    carrier        TEXT NOT NULL,
    node           INTEGER NOT NULL,  -- slot of the process
    number         INTEGER NOT NULL,  -- from 1
    state          TEXT NOT NULL CHECK (state IN ('connecting', 'bound', 'probing', 'waiting', 'closed')),
    since          INTEGER NOT NULL,  -- when it came into this state
    in_flight      INTEGER NOT NULL,  -- submits that wait for an answer
    window_size    INTEGER NOT NULL,  -- the most of them at a time
    rate           INTEGER NOT NULL,  -- answers in the last second
    throttled      INTEGER NOT NULL,  -- answers since the start that asked for a slower pace
    last_error     TEXT,
    updated_at     INTEGER NOT NULL,  -- when this was written
    PRIMARY KEY (carrier, node, number)
) STRICT;

ALTER TABLE installation ADD COLUMN history_low_id INTEGER NOT NULL DEFAULT 0; -- messages below this id were dropped

-- What the dropped messages of a day come to: their transfers stay, and the check adds up both.
CREATE TABLE dropped_days (
    day            INTEGER NOT NULL,  -- since 1970-01-01 UTC, of the messages' acceptance
    application_id INTEGER NOT NULL,
    charged        INTEGER NOT NULL,  -- the price of single live messages: each has a transfer of its own
    released       INTEGER NOT NULL,  -- what was given back for live messages, those of uploads too
    PRIMARY KEY (day, application_id)
) STRICT;
