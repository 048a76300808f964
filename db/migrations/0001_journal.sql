-- What was planned and what happened, append-only. Payloads: docs/formats/journal.md.
-- Times are microseconds since the Unix epoch, UTC. Digests are "sha256:<hex>".
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

-- Two jobs for one attempt must be impossible: the intent is committed once, before the submit call.
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

-- INSERT OR REPLACE removes rows without firing the triggers above, so whatever it could replace is
-- looked for first.
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
