-- name: run_insert
INSERT INTO runs (digest, seq, purpose, snapshot, started) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (digest) DO NOTHING;

-- name: run_seq
SELECT seq FROM runs WHERE digest = $1;

-- name: runs_page
SELECT digest, seq, purpose, snapshot, started FROM runs WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: runs_clear
DELETE FROM runs;

-- The digits of a digest are 0-9 and a-f, which every collation orders alike.
-- name: runs_between
SELECT digest FROM runs WHERE digest >= $1 AND digest < $2 ORDER BY digest LIMIT $3;
