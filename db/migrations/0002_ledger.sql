-- Signed statements, append-only. Format: docs/formats/certificate.md.

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
