-- name: flow_entry_insert
INSERT INTO flow_entries (seq, run, kind, stage, idem) VALUES ($1, $2, $3, $4, $5);

-- name: flow_entries_page
SELECT seq, run, kind, stage, idem FROM flow_entries WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: flow_entries_of_run
SELECT f.seq, COALESCE(e.time, ''), COALESCE(e.kind, ''), COALESCE(e.body, ''), COALESCE(e.leaf_hash, '')
FROM flow_entries f LEFT JOIN entries e ON e.seq = f.seq
WHERE f.run = $1 AND f.seq > $2 ORDER BY f.seq LIMIT $3;

-- name: flow_entry_by_idem
SELECT seq FROM flow_entries WHERE idem = $1 AND run = $2;

-- A run that is opened again under the same key has another id.
-- name: flow_opened_by_idem
SELECT seq FROM flow_entries WHERE idem = $1 AND kind = 'flow.opened' ORDER BY seq LIMIT 1;

-- name: flow_entries_clear
DELETE FROM flow_entries;

-- name: flow_run_insert
INSERT INTO flow_runs (run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: flow_run_update
UPDATE flow_runs SET last_seq = $2, updated = $3, repo = $4, target = $5, status = $6, reason = $7, current_stage = $8, needs = $9, expires = $10
WHERE run = $1;

-- name: flow_run
SELECT run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task
FROM flow_runs WHERE run = $1;

-- name: flow_run_latest
SELECT run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task
FROM flow_runs ORDER BY opened_seq DESC LIMIT 1;

-- name: flow_run_latest_of_repo
SELECT run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task
FROM flow_runs WHERE repo = $1 ORDER BY opened_seq DESC LIMIT 1;

-- Lists go from the run that moved last to the one that rested longest.
-- name: flow_runs_page
SELECT run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task
FROM flow_runs WHERE updated >= $1 AND last_seq < $2 ORDER BY last_seq DESC LIMIT $3;

-- name: flow_runs_page_of_status
SELECT run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task
FROM flow_runs WHERE updated >= $1 AND last_seq < $2 AND status = $4 ORDER BY last_seq DESC LIMIT $3;

-- name: flow_runs_page_of_project
SELECT run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task
FROM flow_runs WHERE updated >= $1 AND last_seq < $2 AND project = $4 ORDER BY last_seq DESC LIMIT $3;

-- name: flow_runs_page_of_status_and_project
SELECT run, opened_seq, last_seq, opened, updated, project, repo, target, status, reason, current_stage, needs, expires, task
FROM flow_runs WHERE updated >= $1 AND last_seq < $2 AND status = $4 AND project = $5 ORDER BY last_seq DESC LIMIT $3;

-- One row a run, so a scan is cheap enough. ULIDs hold no wildcards.
-- name: flow_runs_ending
SELECT run FROM flow_runs WHERE run LIKE '%' || $1 ORDER BY run LIMIT $2;

-- name: flow_runs_clear
DELETE FROM flow_runs;
