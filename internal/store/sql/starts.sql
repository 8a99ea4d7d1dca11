-- name: start_insert
INSERT INTO starts (seq, run_key, invocation, result, tree, repo) VALUES ($1, $2, $3, $4, $5, $6);

-- name: start_of_repo
SELECT seq, run_key, invocation, result, tree, repo FROM starts
WHERE repo = $1 ORDER BY seq DESC LIMIT 1;

-- name: starts_of_repo
SELECT e.seq, e.time, e.kind, e.body, e.leaf_hash
FROM starts s JOIN entries e ON e.seq = s.seq
WHERE s.repo = $1 ORDER BY s.seq DESC;

-- name: starts_page
SELECT seq, run_key, invocation, result, tree, repo FROM starts WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: starts_clear
DELETE FROM starts;

-- One row an invocation, so a scan is cheap enough. ULIDs hold no wildcards.
-- name: invocations_ending
SELECT DISTINCT invocation FROM starts
WHERE invocation LIKE '%' || $1 ORDER BY invocation LIMIT $2;
