-- Runs that are parts of a session: the pipelines that `run --try` measures beside each other, and the searches that it goes on with.
CREATE TABLE parts (
  run     INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  session TEXT NOT NULL, -- the id of the run that they belong to
  change  TEXT NOT NULL  -- what is different from that one's pipeline, or ''
) STRICT;

UPDATE runs SET seal = NULL; -- it doesn't cover them
