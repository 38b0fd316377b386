-- The read models. Times are nanoseconds since 1970 in UTC, money is millionths
-- of the installation's currency; both are exact. Whoever changes a table or
-- the meaning of a column raises schemaVersion in open.go: old files are then
-- made again from the log.

-- How far the log was read, and the last commit that was folded in.
CREATE TABLE position (
  one          INTEGER PRIMARY KEY CHECK (one = 1),
  seq          INTEGER NOT NULL,
  commit_seq   INTEGER NOT NULL,
  tenant       TEXT NOT NULL,
  conversation TEXT NOT NULL,
  version      INTEGER NOT NULL,
  hash         BLOB NOT NULL
) STRICT;

-- How far conversations went in a log that filled this file before. It stays
-- when the rest is made again: by it a lost tail is noticed.
CREATE TABLE IF NOT EXISTS tails (
  tenant  TEXT NOT NULL,
  id      TEXT NOT NULL,
  name    TEXT NOT NULL,
  version INTEGER NOT NULL,
  -- Where the log ended when it was begun anew: before that is read, nobody can
  -- say that a conversation is shorter than it was.
  until   INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  conv        INTEGER PRIMARY KEY,
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  name        TEXT NOT NULL,
  contract    TEXT NOT NULL,
  status      TEXT NOT NULL,
  version     INTEGER NOT NULL,
  opened      INTEGER NOT NULL,
  updated     INTEGER NOT NULL,
  answer      TEXT NOT NULL,
  answer_hash TEXT NOT NULL,
  answer_size INTEGER NOT NULL,
  answer_at   INTEGER NOT NULL,
  -- Set aside: the code and the words of what is wrong with its log.
  fault       TEXT NOT NULL,
  fault_why   TEXT NOT NULL,
  UNIQUE (tenant, id)
) STRICT;

-- The folded State of each conversation.
CREATE TABLE states (
  conv  INTEGER PRIMARY KEY,
  state BLOB NOT NULL
) STRICT;

CREATE TABLE members (
  conv        INTEGER NOT NULL,
  ordinal     INTEGER NOT NULL,
  id          TEXT NOT NULL,
  name        TEXT NOT NULL,
  role        TEXT NOT NULL,
  agent_type  TEXT NOT NULL,
  team        TEXT NOT NULL,
  status      TEXT NOT NULL,
  since       INTEGER NOT NULL,
  held        INTEGER NOT NULL,
  unread      INTEGER NOT NULL,
  run         TEXT NOT NULL,
  last_reason TEXT NOT NULL,
  last_code   TEXT NOT NULL,
  last_detail TEXT NOT NULL,
  PRIMARY KEY (conv, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  conv         INTEGER NOT NULL,
  ordinal      INTEGER NOT NULL,
  id           TEXT NOT NULL,
  title        TEXT NOT NULL,
  description  TEXT NOT NULL,
  owner        TEXT NOT NULL,
  dependencies TEXT NOT NULL,
  creator      TEXT NOT NULL,
  team         TEXT NOT NULL,
  status       TEXT NOT NULL,
  reason       TEXT NOT NULL,
  failure      TEXT NOT NULL,
  result       TEXT NOT NULL,
  paths        TEXT NOT NULL,
  completed_by TEXT NOT NULL,
  revision     INTEGER NOT NULL,
  stale        INTEGER NOT NULL,
  stale_reason TEXT NOT NULL,
  created      INTEGER NOT NULL,
  updated      INTEGER NOT NULL,
  PRIMARY KEY (conv, id)
) STRICT;

CREATE TABLE needs_operator (
  conv    INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  id      TEXT NOT NULL,
  PRIMARY KEY (conv, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE mail (
  conv           INTEGER NOT NULL,
  id             TEXT NOT NULL,
  version        INTEGER NOT NULL,
  event          INTEGER NOT NULL,
  time           INTEGER NOT NULL,
  kind           TEXT NOT NULL,
  sender         TEXT NOT NULL,
  recipient      TEXT NOT NULL,
  mode           TEXT NOT NULL,
  topic          TEXT NOT NULL,
  task           TEXT NOT NULL,
  about          TEXT NOT NULL,
  reply_to       TEXT NOT NULL,
  wait_for_reply INTEGER NOT NULL,
  body           TEXT NOT NULL,
  body_hash      TEXT NOT NULL,
  body_size      INTEGER NOT NULL,
  -- The run that consumed it and the version of that commit; '' and 0 before.
  run            TEXT NOT NULL,
  read_version   INTEGER NOT NULL,
  read_time      INTEGER NOT NULL,
  -- How often it was consumed without an answer and became unread again.
  returned       INTEGER NOT NULL,
  PRIMARY KEY (conv, id)
) STRICT;
CREATE INDEX mail_by_place ON mail (conv, version, event);
CREATE INDEX mail_by_recipient ON mail (conv, recipient, version, event);

CREATE TABLE runs (
  conv             INTEGER NOT NULL,
  id               TEXT NOT NULL,
  member           TEXT NOT NULL,
  status           TEXT NOT NULL,
  woken_by         TEXT NOT NULL,
  agent_hash       TEXT NOT NULL,
  started          INTEGER NOT NULL,
  started_version  INTEGER NOT NULL,
  finished         INTEGER NOT NULL,
  finished_version INTEGER NOT NULL,
  reason           TEXT NOT NULL,
  code             TEXT NOT NULL,
  detail           TEXT NOT NULL,
  undelivered      TEXT NOT NULL,
  steps            INTEGER NOT NULL,
  calls_started    INTEGER NOT NULL,
  calls_failed     INTEGER NOT NULL,
  tool_calls       INTEGER NOT NULL,
  tool_errors      INTEGER NOT NULL,
  resumes          INTEGER NOT NULL,
  PRIMARY KEY (conv, id)
) STRICT;
CREATE INDEX runs_by_start ON runs (conv, started_version);

-- One row a model's reply.
CREATE TABLE usage (
  conv          INTEGER NOT NULL,
  version       INTEGER NOT NULL,
  event         INTEGER NOT NULL,
  time          INTEGER NOT NULL,
  run           TEXT NOT NULL,
  member        TEXT NOT NULL,
  step          INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  model         TEXT NOT NULL,
  finish        TEXT NOT NULL,
  request_hash  TEXT NOT NULL,
  input_tokens  INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  cost_micros   INTEGER NOT NULL,
  estimated     INTEGER NOT NULL,
  PRIMARY KEY (conv, version, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_run ON usage (conv, run);

CREATE TABLE files (
  conv    INTEGER NOT NULL,
  member  TEXT NOT NULL,
  path    TEXT NOT NULL,
  hash    TEXT NOT NULL,
  size    INTEGER NOT NULL,
  version INTEGER NOT NULL,
  time    INTEGER NOT NULL,
  PRIMARY KEY (conv, member, path)
) STRICT, WITHOUT ROWID;

INSERT INTO position VALUES (1, 0, 0, '', '', 0, x'');
