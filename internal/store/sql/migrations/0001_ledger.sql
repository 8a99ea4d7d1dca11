-- The ledger and its projections. TEXT and BIGINT only, so that SQLite and
-- PostgreSQL read the same file. Never edited after a release.

CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
);

CREATE TABLE entries (
	seq       BIGINT PRIMARY KEY CHECK (seq > 0),
	time      TEXT NOT NULL,
	kind      TEXT NOT NULL,
	body      TEXT NOT NULL,
	leaf_hash TEXT NOT NULL
);
CREATE INDEX entries_by_kind ON entries (kind, seq);

-- Stored hashes of the Merkle tree; idx is the storage index of tlog.
CREATE TABLE tree_hashes (
	idx  BIGINT PRIMARY KEY,
	hash TEXT NOT NULL
);

CREATE TABLE checkpoints (
	size BIGINT PRIMARY KEY,
	note TEXT NOT NULL
);

-- Projections: derived from entries only, rebuilt at will.

CREATE TABLE runs (
	digest   TEXT PRIMARY KEY,
	seq      BIGINT NOT NULL UNIQUE,
	purpose  TEXT NOT NULL,
	snapshot TEXT NOT NULL,
	started  TEXT NOT NULL
);

CREATE TABLE certificates (
	digest        TEXT PRIMARY KEY,
	seq           BIGINT NOT NULL UNIQUE,
	language      TEXT NOT NULL,
	project       TEXT NOT NULL,
	unit          TEXT NOT NULL,
	symbol        TEXT NOT NULL,
	symbol_digest TEXT NOT NULL,
	test          TEXT NOT NULL,
	snapshot      TEXT NOT NULL
);
CREATE INDEX certificates_by_project ON certificates (language, project, seq);

CREATE TABLE measurements (
	seq      BIGINT PRIMARY KEY,
	digest   TEXT NOT NULL,
	language TEXT NOT NULL,
	project  TEXT NOT NULL,
	symbol   TEXT NOT NULL,
	inputs   TEXT NOT NULL,
	word     TEXT NOT NULL,
	reason   TEXT NOT NULL
);
CREATE INDEX measurements_by_symbol ON measurements (language, project, symbol, seq);
CREATE INDEX measurements_by_digest ON measurements (digest);

CREATE TABLE probes (
	digest TEXT PRIMARY KEY,
	seq    BIGINT NOT NULL,
	symbol TEXT NOT NULL
);
CREATE INDEX probes_by_seq ON probes (seq, digest);

CREATE TABLE waivers (
	probe     TEXT PRIMARY KEY,
	seq       BIGINT NOT NULL UNIQUE,
	reason    TEXT NOT NULL,
	until     TEXT NOT NULL,
	principal TEXT NOT NULL
);

CREATE TABLE starts (
	seq        BIGINT PRIMARY KEY,
	run_key    TEXT NOT NULL,
	invocation TEXT NOT NULL,
	result     TEXT NOT NULL,
	tree       TEXT NOT NULL,
	repo       TEXT NOT NULL
);
CREATE INDEX starts_by_key ON starts (run_key, seq);
CREATE INDEX starts_by_repo ON starts (repo, seq);
