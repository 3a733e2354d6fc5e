-- Who a journal is, so that its user can tell it from one that came with a folder, and from a copy of it.

-- One row, written when its user first works with it; none before that.
CREATE TABLE identity (
    id     TEXT    NOT NULL,                 -- random
    copied INTEGER NOT NULL DEFAULT 0        -- when this file was copied from the journal of that id; 0: it is that one
);
