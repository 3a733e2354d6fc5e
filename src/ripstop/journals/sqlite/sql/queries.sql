-- Every statement of the SQLite journal, by name. Two lists of columns are written by `sql.queries`, so that a new
-- column of `runs` need not be named here: /* run columns */, those of `RunInfo`; and /* listed columns */, those
-- that every entry sets (`ports.LISTED`), each with a parameter.

-- name: create_run
-- A new run; no row changes if the id is taken.
INSERT INTO runs (id, style, status, created, updated, length, last, head, root, parent, parent_number, fork_of, fork_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: is_forgotten
-- Whether there was a run with this id.
SELECT 1 FROM tombstones WHERE id = ?;

-- name: advance_run
-- The optimistic check: no row changes if somebody else appended first. Who appends can work on the run.
UPDATE runs SET length = ?, last = ?, head = ?, updated = ?, set_aside = NULL, /* listed columns */
WHERE key = ? AND length = ? AND head = ?;

-- name: head_of
-- Where a run ends, for the next step.
SELECT key, length, last, head FROM runs WHERE id = ?;

-- name: add_record
-- A row for a whole step.
INSERT INTO records (position, run, number, at, before, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: last_position
-- Of all steps, those of forgotten runs included.
SELECT max(coalesce((SELECT max(position) FROM records), 0), (SELECT position FROM total));

-- name: record_hash
-- The hash of the row at a position.
SELECT hash FROM records WHERE position = ?;

-- name: heads
-- The hash of the last step of every run.
SELECT id, head FROM runs ORDER BY id;

-- name: is_written
-- Whether anything was ever written, but for the identity.
SELECT EXISTS (SELECT 1 FROM runs) OR EXISTS (SELECT 1 FROM records) OR EXISTS (SELECT 1 FROM outbox)
OR EXISTS (SELECT 1 FROM blobs) OR EXISTS (SELECT 1 FROM blob_uses) OR EXISTS (SELECT 1 FROM documents)
OR EXISTS (SELECT 1 FROM followers) OR EXISTS (SELECT 1 FROM tombstones) OR EXISTS (SELECT 1 FROM workers)
OR EXISTS (SELECT 1 FROM sqlite_sequence WHERE seq <> 0)
OR (SELECT count(*) <> 1 OR sum(runs <> 0 OR position <> 0) <> 0 FROM total);

-- name: last_worker
-- The highest number that a worker of this journal has had.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'workers'), 0);

-- name: identity
-- Who the journal is.
SELECT id, copied FROM identity;

-- name: forget_identity
-- Before another one is written.
DELETE FROM identity;

-- name: keep_identity
-- Who the journal is from now on.
INSERT INTO identity (id, copied) VALUES (?, ?);

-- name: mark_copy
-- The file is a copy, made then; one that is a copy already stays as old as it is.
UPDATE identity SET copied = ? WHERE copied = 0;

-- name: mark_unknown_copy
-- The same for a journal without an id.
INSERT INTO identity (id, copied) SELECT '', ? WHERE NOT EXISTS (SELECT 1 FROM identity);

-- name: keep_position
-- Before records are removed.
UPDATE total SET position = max(position, coalesce((SELECT max(position) FROM records), 0));

-- name: keep_blob
-- Content that a step brings; what is kept already stays.
INSERT INTO blobs (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING;

-- name: use_blob
-- A run uses this content.
INSERT INTO blob_uses (hash, run) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: is_used
-- Whether a run uses this content.
SELECT 1 FROM blob_uses WHERE run = ? AND hash = ?;

-- name: blob
-- Content by its hash.
SELECT body FROM blobs WHERE hash = ?;

-- name: keep_document
-- What a style projects from a run now.
INSERT INTO documents (collection, key, body, run, number) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (collection, key) DO UPDATE SET body = excluded.body, run = excluded.run, number = excluded.number;

-- name: drop_document
-- The style projects it no longer.
DELETE FROM documents WHERE collection = ? AND key = ?;

-- name: document
-- One document of a collection.
SELECT body FROM documents WHERE collection = ? AND key = ?;

-- name: documents
-- A page of a collection, by key.
SELECT key, body FROM documents WHERE collection = ? AND key > ? ORDER BY key LIMIT ?;

-- name: open_command
-- A command that a step asks for, in the hands of the worker that takes it at once, if one does.
INSERT INTO outbox (run, number, record, waits, due, holder, state, attempt, needs, awaits)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_on
-- An answered command makes room for the next one of the same worker; no row changes unless that holds it still.
-- For commands that any worker can take and that await no run: what they need stays as it is.
UPDATE outbox SET number = ?1, record = ?2, waits = ?3, due = ?4, state = ?5, attempt = ?5
WHERE run = ?6 AND number = ?7 AND holder = ?8 AND awaits IS NULL;

-- name: move_on_with_needs
-- The same where the next command needs something of a worker, or awaits a run.
UPDATE outbox SET number = ?1, record = ?2, waits = ?3, due = ?4, state = ?5, attempt = ?5,
needs = ?9, awaits = ?10, woken = 0
WHERE run = ?6 AND number = ?7 AND holder = ?8;

-- name: still_held
-- No row changes unless the worker still holds the command that it answers.
UPDATE outbox SET holder = holder WHERE run = ? AND number = ? AND holder = ?;

-- name: close_command
-- It was answered.
DELETE FROM outbox WHERE run = ? AND number = ?;

-- name: drop_unheld
-- Not needed any more, no worker has it in hand, and nothing has to be undone.
DELETE FROM outbox WHERE run = ? AND number = ? AND holder IS NULL AND awaits IS NULL;

-- name: supersede
-- The attempts that it keeps say that it was at work, or in doubt.
UPDATE outbox SET state = 4, needs = '', attempt = CASE state WHEN 0 THEN 0 ELSE attempt END, due = CASE WHEN :undo OR awaits IS NOT NULL THEN :at END
WHERE run = :run AND number = :number;

-- name: hold_command
-- In doubt: stays open, but no worker may take it.
UPDATE outbox SET due = NULL, holder = NULL, state = 3 WHERE run = ? AND number = ?;

-- name: release_command
-- Not in doubt any more: a worker can take it again. If the last parameter is true, one that has it in hand keeps it, and
-- what was begun stays begun.
UPDATE outbox SET due = ?, holder = NULL, state = 0
WHERE run = ? AND number = ? AND NOT (? AND (holder IS NOT NULL OR state IN (1, 2)));

-- name: wake
-- A run has ended with its family: every command that awaits it is due, to be answered; but not what is in doubt.
UPDATE outbox SET due = CASE state WHEN 3 THEN NULL ELSE ? END, woken = woken + 1 WHERE awaits = ?;

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
SELECT records.number, records.at, records.body FROM story JOIN records ON records.position = story.position
WHERE story.number < :before;

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

-- name: since
-- Steps of all runs behind a position, for those who follow the journal.
SELECT records.position, runs.id, records.number, records.at, records.body
FROM records JOIN runs ON runs.key = records.run
WHERE records.position > ? ORDER BY records.position LIMIT ?;

-- name: follower
-- How far one who follows the journal has come.
SELECT cursor FROM followers WHERE name = ?;

-- name: keep_follower
-- It has come this far.
INSERT INTO followers (name, cursor) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor;

-- name: style_of
-- The style of a run; a fork has the same.
SELECT style FROM runs WHERE id = ?;

-- name: root_of
-- The top of a run's family; its children have the same.
SELECT root FROM runs WHERE id = ?;

-- name: runs
-- The newest first. `lists` puts the filters in that are wanted.
SELECT key, /* run columns */ FROM runs
WHERE key < :before /* filters */
ORDER BY key DESC LIMIT :size;

-- name: filter_statuses
-- Only runs with one of these statuses, as people see them.
AND CASE WHEN set_aside IS NULL THEN status ELSE 'set_aside' END IN (SELECT value FROM json_each(:statuses));

-- name: filter_styles
-- Only runs of these styles.
AND style IN (SELECT value FROM json_each(:styles));

-- name: filter_text
-- Only runs with this text in their id or gist.
AND (instr(id, :text) > 0 OR instr(gist, :text) > 0);

-- name: filter_parentless
-- Only runs that no other run started.
AND parent IS NULL;

-- name: filter_since
-- Only runs that have changed since then.
AND updated >= :since;

-- name: run
-- One run, as lists show it.
SELECT key, /* run columns */ FROM runs WHERE id = ?;

-- name: children
-- The runs that a run started, the newest first.
SELECT key, /* run columns */ FROM runs WHERE parent = :parent AND key < :before ORDER BY key DESC;

-- name: family
-- A run with its descendants, the newest first.
SELECT key, /* run columns */ FROM runs WHERE root = :root AND key < :before ORDER BY key DESC;

-- name: forks
-- The runs that share records with a run, the oldest first.
SELECT key, /* run columns */ FROM runs WHERE fork_of = ? ORDER BY key;

-- name: counts
-- How many runs of the list have each status; the filters are those of `runs`.
SELECT CASE WHEN set_aside IS NULL THEN status ELSE 'set_aside' END, count(*) FROM runs
WHERE key < :before /* filters */
GROUP BY 1;

-- name: desk
-- The oldest first, by the position of what asks; forks share that, and the number.
SELECT outbox.record, outbox.number, outbox.run, runs.id, runs.style, records.number, records.at, records.body
FROM outbox INDEXED BY outbox_people JOIN runs ON runs.key = outbox.run
JOIN records ON records.position = outbox.record
WHERE outbox.waits = 'person' AND outbox.state <> 4
AND (outbox.record, outbox.number, outbox.run) > (:record, :number, :run)
ORDER BY outbox.record, outbox.number, outbox.run LIMIT :size;

-- name: desk_of
-- The same, of one family.
SELECT outbox.record, outbox.number, outbox.run, runs.id, runs.style, records.number, records.at, records.body
FROM runs JOIN outbox ON outbox.run = runs.key JOIN records ON records.position = outbox.record
WHERE runs.root = :root AND outbox.waits = 'person' AND outbox.state <> 4
AND (outbox.record, outbox.number, outbox.run) > (:record, :number, :run)
ORDER BY outbox.record, outbox.number, outbox.run LIMIT :size;

-- name: desk_count
-- How many questions wait for a person.
SELECT count(*) FROM outbox WHERE waits = 'person' AND state <> 4;

-- name: enrol
-- A new worker; its id is the number that fences.
INSERT INTO workers (until) VALUES (?);

-- name: workers
-- Every worker, and until when it counts as alive.
SELECT id, until FROM workers;

-- name: latest
-- The time of the last record, and until when the workers' leases last.
SELECT (SELECT at FROM records ORDER BY position DESC LIMIT 1), (SELECT max(until) FROM workers);

-- name: is_enrolled
-- Whether a worker is in the list.
SELECT 1 FROM workers WHERE id = ?;

-- name: heartbeat
-- A worker is alive until then.
UPDATE workers SET until = ? WHERE id = ?;

-- name: release_all
-- A worker is gone: what it had begun is doubtful now, and what is not needed any more is reported by another.
UPDATE outbox SET holder = NULL, due = CASE state WHEN 4 THEN :now ELSE due END WHERE holder = :holder;

-- name: forget_worker
-- A worker that is gone, once what it held is released.
DELETE FROM workers WHERE id = ?;

-- name: due_now
-- What is due and can be taken by a worker that offers what it needs, and has not refused the run.
SELECT outbox.run, runs.id, outbox.number, outbox.attempt, outbox.state, outbox.woken, outbox.due, outbox.awaits,
runs.set_aside IS NOT NULL FROM outbox INDEXED BY outbox_due JOIN runs ON runs.key = outbox.run
WHERE outbox.holder IS NULL AND outbox.due IS NOT NULL AND outbox.needs = :needs AND outbox.due <= :now
AND (runs.set_aside IS NULL OR (:refused IS NOT NULL AND runs.id NOT IN (SELECT value FROM json_each(:refused))))
ORDER BY outbox.due, outbox.run, outbox.number LIMIT :room;

-- name: due_now_in
-- The same, of the families in a JSON array of roots, refused or not.
SELECT outbox.run, runs.id, outbox.number, outbox.attempt, outbox.state, outbox.woken, outbox.due, outbox.awaits,
runs.set_aside IS NOT NULL FROM json_each(:roots) AS root JOIN runs ON runs.root = root.value JOIN outbox ON outbox.run = runs.key
WHERE outbox.holder IS NULL AND outbox.due IS NOT NULL AND outbox.due <= :now
AND outbox.needs IN (SELECT value FROM json_each(:offers))
ORDER BY outbox.due, outbox.run, outbox.number LIMIT :room;

-- name: due_now_named
-- The same, of the runs whose ids are in a range.
SELECT outbox.run, runs.id, outbox.number, outbox.attempt, outbox.state, outbox.woken, outbox.due, outbox.awaits,
runs.set_aside IS NOT NULL FROM runs JOIN outbox ON outbox.run = runs.key
WHERE runs.id >= :first AND runs.id < :behind
AND (runs.set_aside IS NULL OR (:refused IS NOT NULL AND runs.id NOT IN (SELECT value FROM json_each(:refused))))
AND outbox.holder IS NULL AND outbox.due IS NOT NULL AND outbox.due <= :now
AND outbox.needs IN (SELECT value FROM json_each(:offers))
ORDER BY outbox.due, outbox.run, outbox.number LIMIT :room;

-- name: awaited_roots
-- The families of the runs that those of one family await.
SELECT DISTINCT awaited.root FROM runs JOIN outbox ON outbox.run = runs.key AND outbox.awaits IS NOT NULL
JOIN runs AS awaited ON awaited.id = outbox.awaits WHERE runs.root = ?;

-- name: take
-- A worker claims a command that is due.
UPDATE outbox SET holder = ? WHERE run = ? AND number = ?;

-- name: begin_attempt
-- Counts an attempt before it begins; no row changes if the worker has lost the command.
UPDATE outbox SET attempt = ?, state = ?
WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ? AND state <> 4;

-- name: is_superseded
-- Whether a command that a worker holds is not needed any more.
SELECT 1 FROM outbox WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ? AND state = 4;

-- name: retry
-- An attempt has failed; the command is due again later.
UPDATE outbox SET holder = NULL, state = 0, due = ?
WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ? AND state <> 4;

-- name: give_back
-- A worker releases a command that it has not begun, or need not perform.
UPDATE outbox SET holder = NULL WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ?;

-- name: await_run
-- The end of this run makes the command due.
UPDATE outbox SET awaits = ? WHERE run = (SELECT key FROM runs WHERE id = ?) AND number = ? AND holder = ?;

-- name: park
-- Due at once if the run that it awaits has ended since it was looked at, or if it is not needed any more since then.
UPDATE outbox SET holder = NULL, state = CASE state WHEN 4 THEN 4 ELSE 0 END, attempt = 0,
due = CASE WHEN woken <> :seen OR (state = 4 AND NOT :superseded) THEN :now END
WHERE run = (SELECT key FROM runs WHERE id = :run) AND number = :number AND holder = :holder;

-- name: superseded
-- The commands that a worker holds and that are not needed any more.
SELECT runs.id, outbox.number FROM outbox JOIN runs ON runs.key = outbox.run
WHERE outbox.holder = ? AND outbox.state = 4;

-- name: held
-- The commands of a run that workers hold.
SELECT number FROM outbox WHERE run = (SELECT key FROM runs WHERE id = ?) AND holder IS NOT NULL;

-- name: begun
-- The commands of a run that a worker has begun, and not answered.
SELECT number FROM outbox WHERE run = (SELECT key FROM runs WHERE id = ?) AND state IN (1, 2) ORDER BY number;

-- name: next_due
-- When the first command falls due that `due_now` would find.
SELECT outbox.due FROM outbox INDEXED BY outbox_due JOIN runs ON runs.key = outbox.run
WHERE outbox.holder IS NULL AND outbox.due IS NOT NULL AND outbox.needs = :needs
AND (runs.set_aside IS NULL OR (:refused IS NOT NULL AND runs.id NOT IN (SELECT value FROM json_each(:refused))))
ORDER BY outbox.due LIMIT 1;

-- name: next_due_in
-- The same, of the families in a JSON array of roots.
SELECT min(outbox.due) FROM json_each(:roots) AS root JOIN runs ON runs.root = root.value
JOIN outbox ON outbox.run = runs.key
WHERE outbox.holder IS NULL AND outbox.due IS NOT NULL AND outbox.needs IN (SELECT value FROM json_each(:offers));

-- name: next_due_named
-- The same, of the runs whose ids are in a range.
SELECT min(outbox.due) FROM runs JOIN outbox ON outbox.run = runs.key
WHERE runs.id >= :first AND runs.id < :behind
AND (runs.set_aside IS NULL OR (:refused IS NOT NULL AND runs.id NOT IN (SELECT value FROM json_each(:refused))))
AND outbox.holder IS NULL AND outbox.due IS NOT NULL AND outbox.needs IN (SELECT value FROM json_each(:offers));

-- name: left_waiting
-- One pass over the outbox: what a worker holds that died is in no index.
SELECT DISTINCT runs.id FROM outbox JOIN runs ON runs.key = outbox.run
WHERE (outbox.due <= ? OR (outbox.state = 4 AND outbox.holder IS NOT NULL)) AND outbox.needs = ''
AND runs.status = 'waiting' AND runs.set_aside IS NULL;

-- name: is_busy
-- Whether a worker has a command of a run in hand, or a child that it started has not ended.
SELECT 1 FROM outbox WHERE run = :key AND (holder IS NOT NULL OR waits = 'run') LIMIT 1;

-- name: undelivered
-- What the open commands of a run need of a worker, but for those that are not needed any more.
SELECT needs FROM outbox WHERE run = (SELECT key FROM runs WHERE id = :run) AND state <> 4 ORDER BY number;

-- name: awaiting
-- The runs that wait for the end of one.
SELECT runs.id FROM outbox JOIN runs ON runs.key = outbox.run WHERE outbox.awaits = ?;

-- name: set_aside
-- Why a worker leaves a run alone; NULL: none does.
UPDATE runs SET set_aside = ? WHERE id = ?;

-- name: bury
-- What is left of a run that is forgotten.
INSERT INTO tombstones (id, at, status, length, head) SELECT id, :now, status, length, head FROM runs WHERE key = :key;

-- name: tombstones
-- Every run that was forgotten, the oldest first.
SELECT id, at, status, length FROM tombstones ORDER BY at, id;

-- name: tombstone
-- One run that was forgotten.
SELECT id, at, status, length FROM tombstones WHERE id = ?;

-- name: forget_records
-- The rows of a run; those that it shares belong to another.
DELETE FROM records WHERE position IN (
    WITH RECURSIVE own (position, before) AS (
        SELECT position, before FROM records WHERE position = (SELECT last FROM runs WHERE key = :key) AND run = :key
        UNION ALL
        SELECT records.position, records.before FROM own
        JOIN records ON records.position = own.before AND records.position < own.position AND records.run = :key
    )
    SELECT position FROM own);

-- name: forget_outbox
-- The open commands of a run.
DELETE FROM outbox WHERE run = :key;

-- name: forget_documents
-- What was projected from a run.
DELETE FROM documents WHERE run = :key;

-- name: forget_blobs
-- Content that no other run uses.
DELETE FROM blobs WHERE hash IN (
    SELECT mine.hash FROM blob_uses AS mine WHERE mine.run = :key
    AND NOT EXISTS (SELECT 1 FROM blob_uses AS other WHERE other.hash = mine.hash AND other.run <> :key));

-- name: forget_blob_uses
-- Which content a run used.
DELETE FROM blob_uses WHERE run = :key;

-- name: forget_run
-- Its line in the list of runs.
DELETE FROM runs WHERE key = :key;

-- name: all_runs
-- Every run, with what only the store needs, in the order of `RUN_COLUMNS`.
SELECT key, /* run columns */, last, head, parent_number FROM runs ORDER BY key;

-- name: runs_behind
-- A run, the one that it shares records with, and so on; as `all_runs`.
WITH RECURSIVE behind (id) AS (
    SELECT :run UNION SELECT runs.fork_of FROM behind JOIN runs ON runs.id = behind.id WHERE runs.fork_of IS NOT NULL
)
SELECT key, /* run columns */, last, head, parent_number FROM runs WHERE id IN (SELECT id FROM behind) ORDER BY key;

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
-- The commands of one run; as `all_open`.
SELECT run, number, record, waits, due, holder, attempt, state, needs, awaits, woken FROM outbox
WHERE run = (SELECT key FROM runs WHERE id = :run);

-- name: all_open
-- The whole outbox, in the order of `OpenRow`.
SELECT run, number, record, waits, due, holder, attempt, state, needs, awaits, woken FROM outbox;

-- name: all_records
-- Every row, in the order in which they were written.
SELECT position, run, number, at, before, body, hash FROM records ORDER BY position;

-- name: count_run
-- One more run was started.
UPDATE total SET runs = runs + 1;

-- name: totals
-- How many runs were started, and the last position of runs that were forgotten.
SELECT runs, position FROM total;

-- name: all_tombstones
-- Every run that was forgotten, with the hash of its end.
SELECT id, at, status, length, head FROM tombstones;

-- name: all_blobs
-- All content.
SELECT hash, body FROM blobs;

-- name: unused_blobs
-- Content that no run uses.
SELECT hash FROM blobs WHERE NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.hash = blobs.hash);

-- name: stray_uses
-- Uses of content by runs that are not in the list, or of content that is not in the file.
SELECT run, hash FROM blob_uses WHERE run NOT IN (SELECT key FROM runs) OR hash NOT IN (SELECT hash FROM blobs);

-- name: all_documents
-- Every document, and the record that it was projected after.
SELECT collection, key, body, run, number FROM documents;

-- name: projected
-- The records that documents were projected after.
SELECT DISTINCT run, number FROM documents;

-- name: last_workers
-- The highest number of a worker so far, by name of the table that counts; SQLite keeps it.
SELECT name, seq FROM sqlite_sequence;

-- name: all_followers
-- Everyone who follows the journal, and how far they have come.
SELECT name, cursor FROM followers;
