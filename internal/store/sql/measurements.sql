-- name: measurement_insert
INSERT INTO measurements (seq, digest, language, project, symbol, inputs, word, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: measurement_seq
SELECT seq FROM measurements WHERE digest = $1 ORDER BY seq DESC LIMIT 1;

-- name: measurements_of_project
SELECT e.seq, e.time, e.kind, e.body, e.leaf_hash
FROM measurements m JOIN entries e ON e.seq = m.seq
WHERE m.language = $1 AND m.project = $2 ORDER BY m.seq DESC;

-- name: symbols_since
SELECT symbol FROM certificates WHERE seq > $1
UNION SELECT symbol FROM measurements WHERE seq > $1;

-- name: measurements_page
SELECT seq, digest, language, project, symbol, inputs, word, reason
FROM measurements WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: measurements_clear
DELETE FROM measurements;

-- name: measurements_between
SELECT DISTINCT digest FROM measurements WHERE digest >= $1 AND digest < $2 ORDER BY digest LIMIT $3;
