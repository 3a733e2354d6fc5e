-- A row of `records` holds a whole step: `number` is that of its first record, `body` a JSON array of its events.
-- Rows of version 1 hold one record each, its event as a JSON object; they are read as they are.

-- Which runs there are, counted apart, so that removing a whole run tells. What is missing in a run, its own row tells.
DROP TABLE total;
CREATE TABLE total (runs INTEGER NOT NULL);
INSERT INTO total SELECT count(*) FROM runs;
