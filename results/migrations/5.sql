-- A tag may name several runs, which count as samples of one version.
CREATE TABLE tagged (
  name TEXT NOT NULL,
  run  INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  PRIMARY KEY (name, run)
) STRICT, WITHOUT ROWID;

INSERT INTO tagged SELECT name, run FROM tags;
DROP TABLE tags;
ALTER TABLE tagged RENAME TO tags;

CREATE INDEX tags_by_run ON tags (run);

CREATE INDEX runs_in_order ON runs (number); -- many on a page, where a run with its texts takes one alone
