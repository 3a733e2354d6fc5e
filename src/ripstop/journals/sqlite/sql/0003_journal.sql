-- A journal: runs, their records, and what is open. Times are microseconds since 1970-01-01 UTC.
-- The first version of format 2; versions 1 and 2 belong to ripstop 0.1 and are refused.

-- What lists are filtered by comes first in the row: SQLite reads a row up to the last column that it needs.
CREATE TABLE runs (
    key           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    status        TEXT    NOT NULL,
    set_aside     TEXT,                      -- why workers leave it alone
    gist          TEXT    NOT NULL DEFAULT '',
    style         TEXT    NOT NULL,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    length        INTEGER NOT NULL,          -- number of the last record …
    last          INTEGER,                   -- … the position of its row …
    head          BLOB    NOT NULL,          -- … and its hash
    root          TEXT    NOT NULL,          -- the run at the top of the family
    parent        TEXT,                      -- the run that started this one …
    parent_number INTEGER,                   -- … and its command
    fork_of       TEXT,                      -- the run that this one shares records with …
    fork_at       INTEGER NOT NULL DEFAULT 0,-- … up to this number
    tokens        INTEGER NOT NULL DEFAULT 0,
    money         REAL    NOT NULL DEFAULT 0
);
CREATE INDEX runs_root ON runs (root);
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_fork ON runs (fork_of) WHERE fork_of IS NOT NULL;

-- Append-only. A row holds a whole step: `number` is that of its first record, `body` a JSON array of its events.
-- A run is read by following `before` from its last row. There is no index to keep: two hundred runs that move at
-- once would touch two hundred of its pages in every commit.
CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    run      INTEGER NOT NULL REFERENCES runs (key),
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    before   INTEGER,                        -- position of the run's row before this one; a fork's first row
                                             -- points to the one that holds the last record that it shares
    body     TEXT    NOT NULL,
    hash     BLOB    NOT NULL                -- SHA-256 over the hash before it and this row
);

-- How many runs were ever started, counted apart, so that removing a whole run tells; and the last position that runs
-- which were forgotten can have had: no position is used twice, because followers keep the last one they saw.
CREATE TABLE total (runs INTEGER NOT NULL, position INTEGER NOT NULL);
INSERT INTO total VALUES (0, 0);

-- Content that records refer to by hash, each kept once, and which runs use it.
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
);
CREATE TABLE blob_uses (
    run  INTEGER NOT NULL,
    hash TEXT    NOT NULL,
    PRIMARY KEY (run, hash)
) WITHOUT ROWID;
CREATE INDEX blob_uses_hash ON blob_uses (hash);

-- Derived from the records, in the same transaction: open commands, and those that are not needed any more but that
-- a worker has in hand.
CREATE TABLE outbox (
    run     INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    record  INTEGER NOT NULL,                -- position of the row that asks
    waits   TEXT    NOT NULL,                -- for: worker, person, clock, run
    due     INTEGER,                         -- when a worker may take it; NULL: not now
    holder  INTEGER,                         -- the worker that has it
    state   INTEGER NOT NULL DEFAULT 0,      -- 0 not begun, 1 begun, 2 begun and not repeatable, 3 in doubt, 4 superseded
    attempt INTEGER NOT NULL DEFAULT 0,      -- attempts begun so far
    needs   TEXT    NOT NULL DEFAULT '',     -- what a worker must offer to take it; '': any can
    awaits  TEXT,                            -- the run whose end makes it due
    woken   INTEGER NOT NULL DEFAULT 0,      -- how often that has happened
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (needs, due) WHERE holder IS NULL AND due IS NOT NULL;
CREATE INDEX outbox_people ON outbox (record, number) WHERE waits = 'person';
CREATE INDEX outbox_awaits ON outbox (awaits) WHERE awaits IS NOT NULL;
CREATE INDEX outbox_superseded ON outbox (holder) WHERE state = 4;

-- What styles project from their runs for others to read. It can be built again from the records.
CREATE TABLE documents (
    collection TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    run        INTEGER NOT NULL,
    number     INTEGER NOT NULL,             -- the record that it was projected after
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE INDEX documents_run ON documents (run);

-- Who works on this journal. AUTOINCREMENT: an id is never used twice, so it can fence.
CREATE TABLE workers (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    until INTEGER NOT NULL                   -- alive at least until then
);

-- How far those who follow the whole journal have come.
CREATE TABLE followers (
    name   TEXT PRIMARY KEY,
    cursor TEXT NOT NULL
) WITHOUT ROWID;

-- What is left of runs that were forgotten.
CREATE TABLE tombstones (
    id     TEXT PRIMARY KEY,
    at     INTEGER NOT NULL,
    status TEXT    NOT NULL,
    length INTEGER NOT NULL,
    head   BLOB    NOT NULL
) WITHOUT ROWID;
