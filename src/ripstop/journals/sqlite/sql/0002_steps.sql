-- A row of `records` holds a whole step: `number` is that of its first record, `body` a JSON array of its events.
-- Rows of version 1 hold one record each, its event as a JSON object; they are read as they are.

-- Which runs there are, counted apart, so that removing a whole run tells. What is missing in a run, its own row tells.
-- If records were missing before, a run too many is counted, so that it goes on to tell.
ALTER TABLE total RENAME COLUMN records TO runs;
UPDATE total SET runs = (SELECT count(*) FROM runs) + (total.runs <> (SELECT count(*) FROM records));
