-- Every statement of the SQLite journal, by name.

-- name: create_run
-- A new run; no row changes if the id is taken.
INSERT INTO runs (id, style, status, created, updated, length, last, head, parent, parent_number, fork_of, fork_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: advance_run
-- The optimistic check: no row changes if somebody else appended first.
UPDATE runs SET length = ?, last = ?, head = ?, status = ?, updated = ? WHERE key = ? AND length = ? AND head = ?;

-- name: head_of
SELECT key, length, last, head FROM runs WHERE id = ?;

-- name: add_record
INSERT INTO records (position, run, number, at, before, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: last_position
SELECT coalesce(max(position), 0) FROM records;

-- name: keep_blob
INSERT INTO blobs (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING;

-- name: blob
SELECT body FROM blobs WHERE hash = ?;

-- name: open_command
INSERT INTO outbox (run, number, record, waits, due, holder, state, attempt) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_on
-- An answered command makes room for the next one of the same worker; no row changes unless that holds it still.
UPDATE outbox SET number = ?1, record = ?2, waits = ?3, due = ?4, state = ?5, attempt = ?5
WHERE run = ?6 AND number = ?7 AND holder = ?8;

-- name: still_held
-- No row changes unless the worker still holds the command that it answers.
UPDATE outbox SET holder = holder WHERE run = ? AND number = ? AND holder = ?;

-- name: close_command
DELETE FROM outbox WHERE run = ? AND number = ?;

-- name: close_all
DELETE FROM outbox WHERE run = ?;

-- name: hold_command
-- In doubt: stays open, but nobody may take it.
UPDATE outbox SET due = NULL, holder = NULL, state = 0 WHERE run = ? AND number = ?;

-- name: release_command
UPDATE outbox SET due = ?, holder = NULL, state = 0 WHERE run = ? AND number = ?;

-- name: wake_parent
-- A child has ended: the command that started it is due again, to be answered.
UPDATE outbox SET due = ? WHERE number = (SELECT parent_number FROM runs WHERE key = ?)
AND run = (SELECT p.key FROM runs AS c JOIN runs AS p ON p.id = c.parent WHERE c.key = ?);

-- name: story
-- The rows of a run that hold records behind number :after, the last one first. The first row of a fork points to the
-- one that holds the last shared record, which may hold more. Only backwards: a file that was tampered with may point
-- round in a circle.
WITH RECURSIVE story (position, before, number) AS (
    SELECT records.position, records.before, records.number FROM runs JOIN records ON records.position = runs.last
    WHERE runs.id = :run AND runs.length > :after
    UNION ALL
    SELECT records.position, records.before, records.number FROM story
    JOIN records ON records.position = story.before AND records.position < story.position WHERE story.number > :after + 1
)
SELECT records.number, records.at, records.body FROM story JOIN records ON records.position = story.position;

-- name: record_at
-- Position and hash of the row that holds a record of a run.
WITH RECURSIVE story (position, before, number) AS (
    SELECT position, before, number FROM records WHERE position = (SELECT last FROM runs WHERE id = :run)
    UNION ALL
    SELECT records.position, records.before, records.number FROM story
    JOIN records ON records.position = story.before AND records.position < story.position WHERE story.number > :number
)
SELECT records.position, records.hash FROM story JOIN records ON records.position = story.position
WHERE story.number <= :number;

-- name: style_of
SELECT style FROM runs WHERE id = ?;

-- name: runs
SELECT id, style, status, length, created, updated, parent FROM runs ORDER BY created, key;

-- name: desk
SELECT runs.id, outbox.number, records.number, records.at, records.body
FROM outbox JOIN runs ON runs.key = outbox.run
JOIN records ON records.position = outbox.record
WHERE outbox.waits = 'person' ORDER BY records.at, outbox.run, outbox.number;

-- name: enrol
INSERT INTO workers (until) VALUES (?);

-- name: workers
SELECT id, until FROM workers;

-- name: latest
-- The time of the last record, and until when the workers' leases last.
SELECT (SELECT at FROM records ORDER BY position DESC LIMIT 1), (SELECT max(until) FROM workers);

-- name: heartbeat
UPDATE workers SET until = ? WHERE id = ?;

-- name: holders
SELECT DISTINCT holder, (SELECT until FROM workers WHERE id = holder) FROM outbox
WHERE holder IS NOT NULL AND holder <> ?;

-- name: release_all
-- A worker is gone: what it had begun is doubtful now.
UPDATE outbox SET holder = NULL, state = CASE state WHEN 1 THEN 2 ELSE state END WHERE holder = ?;

-- name: forget_worker
DELETE FROM workers WHERE id = ?;

-- name: due_now
SELECT outbox.run, runs.id, outbox.number, outbox.attempt, outbox.state
FROM outbox JOIN runs ON runs.key = outbox.run
WHERE outbox.holder IS NULL AND outbox.due IS NOT NULL AND outbox.due <= :now
AND (:only IS NULL OR runs.id = :only OR substr(runs.id, 1, length(:only) + 1) = :only || '.')
ORDER BY outbox.due, outbox.run, outbox.number LIMIT :room;

-- name: take
UPDATE outbox SET holder = ? WHERE run = ? AND number = ?;

-- name: begin_attempt
UPDATE outbox SET attempt = attempt + 1, state = 1
WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ? RETURNING attempt;

-- name: retry
UPDATE outbox SET holder = NULL, state = 0, due = ?
WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ?;

-- name: park
UPDATE outbox SET holder = NULL, state = 0, attempt = 0, due = NULL
WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ?
AND NOT EXISTS (SELECT 1 FROM runs WHERE id = ? AND status IN
    ('completed', 'limit', 'stopped', 'failed', 'restart', 'transferred'));

-- name: unpark
-- The child ended while its command was being parked: due at once.
UPDATE outbox SET holder = NULL, state = 0, attempt = 0
WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ?;

-- name: next_due_of
-- The same, of one run and its children only.
SELECT min(due) FROM outbox JOIN runs ON runs.key = outbox.run WHERE holder IS NULL AND due IS NOT NULL
AND (runs.id = ? OR substr(runs.id, 1, length(?) + 1) = ? || '.');

-- name: next_due
SELECT min(due) FROM outbox WHERE holder IS NULL AND due IS NOT NULL;

-- name: all_runs
SELECT key, id, style, status, created, updated, length, last, head, parent, parent_number, fork_of, fork_at
FROM runs ORDER BY key;

-- name: runs_behind
-- A run, the one that it shares records with, and so on; as `all_runs`.
WITH RECURSIVE behind (id) AS (
    SELECT :run UNION SELECT runs.fork_of FROM behind JOIN runs ON runs.id = behind.id WHERE runs.fork_of IS NOT NULL
)
SELECT key, id, style, status, created, updated, length, last, head, parent, parent_number, fork_of, fork_at
FROM runs WHERE id IN (SELECT id FROM behind) ORDER BY key;

-- name: records_of
-- The rows of a run, and of those it shares records with, as far as it does; as `all_records`.
WITH RECURSIVE story (position, before) AS (
    SELECT records.position, records.before FROM runs JOIN records ON records.position = runs.last WHERE runs.id = :run
    UNION ALL
    SELECT records.position, records.before FROM story
    JOIN records ON records.position = story.before AND records.position < story.position
)
SELECT position, run, number, at, before, body, hash FROM records
WHERE position IN (SELECT position FROM story) ORDER BY position;

-- name: open_of
SELECT run, number, record, waits, due, holder, attempt FROM outbox WHERE run = (SELECT key FROM runs WHERE id = :run);

-- name: all_open
SELECT run, number, record, waits, due, holder, attempt FROM outbox;

-- name: all_records
SELECT position, run, number, at, before, body, hash FROM records ORDER BY position;

-- name: count_run
UPDATE total SET runs = runs + 1;

-- name: counted
SELECT runs FROM total;

-- name: all_blobs
SELECT hash, body FROM blobs;
