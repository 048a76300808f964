-- The records as an RFC 6962 log. Format: docs/formats/log.md.

-- Hashes of complete subtrees: 2^level leaves from leaf position * 2^level on. Derived from the
-- records; kept so that a proof costs a few rows and not all of them.
CREATE TABLE tree_node (
  level    INTEGER NOT NULL CHECK (level BETWEEN 0 AND 62),
  position INTEGER NOT NULL CHECK (position >= 0),
  hash     BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (level, position)
) STRICT, WITHOUT ROWID;

-- Signed checkpoints (C2SP tlog-checkpoint): what the log has committed itself to.
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
