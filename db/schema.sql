-- The whole schema that db/migrations lead to; a test proves that they do. Read this one to
-- learn the tables, and the migrations for why. Nothing is built from this file.

PRAGMA application_id = 1363953241; -- 0x514C4659, "QLFY"

CREATE TABLE qualification (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,                -- "<gate>-<number>"
  gate    TEXT NOT NULL CHECK (gate <> ''),
  number  INTEGER NOT NULL CHECK (number > 0),
  bundle  TEXT NOT NULL,
  policy  TEXT NOT NULL,
  started INTEGER NOT NULL,
  UNIQUE (gate, number)
) STRICT;

CREATE TABLE event (
  sequence      INTEGER PRIMARY KEY,
  time          INTEGER NOT NULL,
  qualification TEXT REFERENCES qualification (name), -- NULL: concerns no single qualification
  run           TEXT NOT NULL,
  attempt       INTEGER NOT NULL CHECK (attempt >= 0),
  kind          TEXT NOT NULL CHECK (kind <> ''),
  payload       TEXT NOT NULL CHECK (payload GLOB '{*}')
) STRICT;

CREATE INDEX event_by_qualification ON event (qualification, sequence);

CREATE UNIQUE INDEX event_one_intent ON event (qualification, run, attempt)
  WHERE kind = 'attempt.intent';

CREATE TRIGGER qualification_no_update BEFORE UPDATE ON qualification
BEGIN SELECT RAISE(ABORT, 'append-only: a qualification cannot be changed'); END;
CREATE TRIGGER qualification_no_delete BEFORE DELETE ON qualification
BEGIN SELECT RAISE(ABORT, 'append-only: a qualification cannot be removed'); END;
CREATE TRIGGER event_no_update BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'append-only: an event cannot be changed'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'append-only: an event cannot be removed'); END;

CREATE TRIGGER qualification_no_replace BEFORE INSERT ON qualification
WHEN EXISTS (SELECT 1 FROM qualification
             WHERE id = NEW.id OR name = NEW.name OR (gate = NEW.gate AND number = NEW.number))
BEGIN SELECT RAISE(ABORT, 'exists: a qualification of this name'); END;
CREATE TRIGGER event_no_replace BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE sequence = NEW.sequence)
BEGIN SELECT RAISE(ABORT, 'exists: an event of this sequence number'); END;
CREATE TRIGGER event_no_second_intent BEFORE INSERT ON event
WHEN NEW.kind = 'attempt.intent'
 AND EXISTS (SELECT 1 FROM event
             WHERE kind = 'attempt.intent' AND qualification IS NEW.qualification
               AND run = NEW.run AND attempt = NEW.attempt)
BEGIN SELECT RAISE(ABORT, 'exists: an intent for this attempt'); END;

CREATE TABLE public_key (
  key_id TEXT NOT NULL PRIMARY KEY,                 -- hex SHA-256 of the SubjectPublicKeyInfo
  pem    TEXT NOT NULL
) STRICT;

CREATE TABLE record (
  position     INTEGER PRIMARY KEY CHECK (position >= 0), -- in the log, from 0 without gaps
  kind         TEXT NOT NULL CHECK (kind <> ''),
  id           TEXT NOT NULL UNIQUE CHECK (length(id) = 64), -- hex SHA-256 of the payload
  gate         TEXT NOT NULL,
  bundle       TEXT,                                -- NULL: speaks of no bundle
  time         INTEGER NOT NULL,
  payload_type TEXT NOT NULL,
  payload      TEXT NOT NULL,
  signature    BLOB NOT NULL,
  key_id       TEXT NOT NULL REFERENCES public_key (key_id)
) STRICT;

CREATE INDEX record_by_kind ON record (kind, gate, position);

CREATE TRIGGER public_key_no_update BEFORE UPDATE ON public_key
BEGIN SELECT RAISE(ABORT, 'append-only: a public key cannot be changed'); END;
CREATE TRIGGER public_key_no_delete BEFORE DELETE ON public_key
BEGIN SELECT RAISE(ABORT, 'append-only: a public key cannot be removed'); END;
CREATE TRIGGER public_key_no_replace BEFORE INSERT ON public_key
WHEN EXISTS (SELECT 1 FROM public_key WHERE key_id = NEW.key_id)
BEGIN SELECT RAISE(ABORT, 'exists: this public key'); END;

CREATE TRIGGER record_no_update BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'append-only: a record cannot be changed'); END;
CREATE TRIGGER record_no_delete BEFORE DELETE ON record
BEGIN SELECT RAISE(ABORT, 'append-only: a record cannot be removed'); END;
CREATE TRIGGER record_no_replace BEFORE INSERT ON record
WHEN EXISTS (SELECT 1 FROM record WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'exists: a record of this statement'); END;
CREATE TRIGGER record_no_gap BEFORE INSERT ON record
WHEN NEW.position <> (SELECT COALESCE(MAX(position) + 1, 0) FROM record)
BEGIN SELECT RAISE(ABORT, 'append-only: a record goes to the end of the log'); END;

CREATE TABLE tree_node (
  level    INTEGER NOT NULL CHECK (level BETWEEN 0 AND 62),
  position INTEGER NOT NULL CHECK (position >= 0),
  hash     BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (level, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint (
  id     INTEGER PRIMARY KEY,
  origin TEXT NOT NULL,
  size   INTEGER NOT NULL CHECK (size >= 0),
  root   BLOB NOT NULL CHECK (length(root) = 32),
  time   INTEGER NOT NULL,
  note   TEXT NOT NULL UNIQUE
) STRICT;

CREATE TRIGGER tree_node_no_update BEFORE UPDATE ON tree_node
BEGIN SELECT RAISE(ABORT, 'append-only: a node of the log cannot be changed'); END;
CREATE TRIGGER tree_node_no_delete BEFORE DELETE ON tree_node
BEGIN SELECT RAISE(ABORT, 'append-only: a node of the log cannot be removed'); END;
CREATE TRIGGER tree_node_no_replace BEFORE INSERT ON tree_node
WHEN EXISTS (SELECT 1 FROM tree_node WHERE level = NEW.level AND position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'exists: this node of the log'); END;

CREATE TRIGGER checkpoint_no_update BEFORE UPDATE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'append-only: a checkpoint cannot be changed'); END;
CREATE TRIGGER checkpoint_no_delete BEFORE DELETE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'append-only: a checkpoint cannot be removed'); END;
CREATE TRIGGER checkpoint_no_replace BEFORE INSERT ON checkpoint
WHEN EXISTS (SELECT 1 FROM checkpoint WHERE id = NEW.id OR note = NEW.note)
BEGIN SELECT RAISE(ABORT, 'exists: this checkpoint'); END;

PRAGMA user_version = 3;
