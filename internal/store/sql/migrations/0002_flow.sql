-- Projections of the entries of runs of a flow. Never edited after a release.

-- One row an entry of kind flow.* or principal.*; those of principals belong to
-- no run.
CREATE TABLE flow_entries (
	seq   BIGINT PRIMARY KEY,
	run   TEXT NOT NULL,
	kind  TEXT NOT NULL,
	stage TEXT NOT NULL,
	idem  TEXT NOT NULL
);
CREATE INDEX flow_entries_by_run ON flow_entries (run, seq);
CREATE UNIQUE INDEX flow_entries_by_idem ON flow_entries (idem, run) WHERE idem <> '';

-- One row a run, as its last entry leaves it. Times are nanoseconds since 1970.
CREATE TABLE flow_runs (
	run           TEXT PRIMARY KEY,
	opened_seq    BIGINT NOT NULL UNIQUE,
	last_seq      BIGINT NOT NULL UNIQUE,
	opened        BIGINT NOT NULL,
	updated       BIGINT NOT NULL,
	project       TEXT NOT NULL,
	repo          TEXT NOT NULL,
	target        TEXT NOT NULL,
	status        TEXT NOT NULL,
	reason        TEXT NOT NULL,
	current_stage TEXT NOT NULL,
	needs         TEXT NOT NULL, -- principals, a list in canonical form
	expires       TEXT NOT NULL,
	task          TEXT NOT NULL  -- its beginning
);
CREATE INDEX flow_runs_by_status ON flow_runs (status, last_seq);
CREATE INDEX flow_runs_by_project ON flow_runs (project, last_seq);
