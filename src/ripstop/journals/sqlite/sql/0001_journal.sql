-- A journal: runs, their records, and what is open. Times are microseconds since 1970-01-01 UTC.

CREATE TABLE runs (
    key           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    style         TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    length        INTEGER NOT NULL,          -- number of the last record …
    last          INTEGER,                   -- … its position …
    head          BLOB    NOT NULL,          -- … and its hash
    parent        TEXT,                      -- the run that started this one …
    parent_number INTEGER,                   -- … and its command
    fork_of       TEXT,                      -- the run that this one shares records with …
    fork_at       INTEGER NOT NULL DEFAULT 0 -- … up to this number
);

-- Append-only: `position` has no gaps, and nothing is ever updated or deleted.
-- A run is read by following `before` from its last record. There is no index to keep: two hundred
-- runs that move at once would touch two hundred of its pages in every commit.
CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    run      INTEGER NOT NULL REFERENCES runs (key),
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    before   INTEGER,                        -- position of the run's record before this one; a fork's
                                             -- first record points to the last one that it shares
    body     TEXT    NOT NULL,               -- the event as JSON
    hash     BLOB    NOT NULL                -- SHA-256 over the hash before it and this record
);

-- How many records there are, counted apart, so that removing the last ones tells too.
CREATE TABLE total (records INTEGER NOT NULL);
INSERT INTO total VALUES (0);

-- Content that records refer to by hash, each kept once.
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
);

-- Derived from the records, in the same transaction; only open commands stand here.
CREATE TABLE outbox (
    run     INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    record  INTEGER NOT NULL,                -- position of the record that asks
    waits   TEXT    NOT NULL,                -- for: worker, person, clock, run
    due     INTEGER,                         -- when a worker may take it; NULL: not now
    holder  INTEGER,                         -- the worker that has it
    state   INTEGER NOT NULL DEFAULT 0,      -- 0 not begun, 1 begun, 2 begun by one who is gone
    attempt INTEGER NOT NULL DEFAULT 0,      -- attempts begun so far
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (due) WHERE holder IS NULL AND due IS NOT NULL;
CREATE INDEX outbox_people ON outbox (run, number) WHERE waits = 'person';

-- Who works on this journal. AUTOINCREMENT: an id is never used twice, so it can fence.
CREATE TABLE workers (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    until INTEGER NOT NULL                   -- alive at least until then
);
