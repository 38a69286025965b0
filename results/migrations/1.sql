-- Times are UTC with nine decimals, so that they sort as text. Durations are in nanoseconds. NULL stands for unknown.

CREATE TABLE runs (
  number          INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order in which they began
  id              TEXT NOT NULL UNIQUE,
  experiment      TEXT NOT NULL,
  kind            TEXT NOT NULL CHECK (kind IN ('session', 'probe', 'epochs')),
  args            TEXT NOT NULL, -- the command line, a JSON array
  status          TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed', 'interrupted')),
  started         TEXT NOT NULL,
  finished        TEXT,
  error           TEXT NOT NULL DEFAULT '',
  version         TEXT NOT NULL, -- of pipectl
  seed            TEXT NOT NULL, -- unsigned, 64 bits
  path            TEXT NOT NULL, -- of the experiment's file or folder
  file            TEXT NOT NULL, -- its text
  fingerprint     TEXT NOT NULL, -- of its settings
  hostname        TEXT NOT NULL,
  host_key        TEXT NOT NULL, -- the same on hosts alike in what bears on speed
  host            TEXT NOT NULL, -- JSON
  verdict         TEXT NOT NULL DEFAULT '',
  bottleneck      TEXT NOT NULL DEFAULT '',
  baseline_median REAL, -- steps/s
  baseline_low    REAL,
  baseline_high   REAL,
  report          TEXT -- JSON, without the rounds
) STRICT;

CREATE INDEX runs_by_experiment ON runs (experiment, number);

CREATE TABLE tags (
  name TEXT NOT NULL PRIMARY KEY,
  run  INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_run ON tags (run);

CREATE TABLE settings (
  run       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  position  INTEGER NOT NULL,
  address   TEXT NOT NULL,
  attribute TEXT NOT NULL,
  value     TEXT NOT NULL, -- as HCL
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE stages (
  run        INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  position   INTEGER NOT NULL, -- boundary k lies before the stage at position k
  address    TEXT NOT NULL,
  checkpoint TEXT NOT NULL, -- the name of the one that stands after it, or ''
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE probes (
  probe      INTEGER PRIMARY KEY,
  run        INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  cache_from INTEGER NOT NULL, -- the stages from here on …
  cache_to   INTEGER NOT NULL, -- … to before this one cost nothing
  UNIQUE (run, cache_from, cache_to)
) STRICT;

CREATE TABLE rounds (
  round       INTEGER PRIMARY KEY,
  probe       INTEGER NOT NULL REFERENCES probes ON DELETE CASCADE,
  started     TEXT NOT NULL,
  steps       INTEGER NOT NULL,
  samples     INTEGER NOT NULL,
  elapsed     INTEGER NOT NULL,
  first_batch INTEGER NOT NULL,
  starved     INTEGER NOT NULL,
  skipped     INTEGER NOT NULL,
  cpu         REAL -- cores kept busy
) STRICT;

CREATE INDEX rounds_by_probe ON rounds (probe);

CREATE TABLE accounts (
  round    INTEGER NOT NULL REFERENCES rounds ON DELETE CASCADE,
  position INTEGER NOT NULL,
  address  TEXT NOT NULL,
  workers  INTEGER NOT NULL,
  items    INTEGER NOT NULL,
  busy     INTEGER NOT NULL,
  wait_in  INTEGER NOT NULL,
  wait_out INTEGER NOT NULL,
  queue    REAL, -- mean occupancy, 0 to 1
  PRIMARY KEY (round, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE skipped (
  run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  address TEXT NOT NULL,
  item    INTEGER NOT NULL,
  name    TEXT NOT NULL,
  reason  TEXT NOT NULL,
  PRIMARY KEY (run, address, item)
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (
  note INTEGER PRIMARY KEY,
  run  INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  code TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (run, code, text)
) STRICT;
