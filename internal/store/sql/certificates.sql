-- name: certificate_insert
INSERT INTO certificates (digest, seq, language, project, unit, symbol, symbol_digest, test, snapshot)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (digest) DO NOTHING;

-- name: certificate_seq
SELECT seq FROM certificates WHERE digest = $1;

-- name: certificates_of_project
SELECT e.seq, e.time, e.kind, e.body, e.leaf_hash
FROM certificates c JOIN entries e ON e.seq = c.seq
WHERE c.language = $1 AND c.project = $2 ORDER BY c.seq;

-- name: certificates_page
SELECT digest, seq, language, project, unit, symbol, symbol_digest, test, snapshot
FROM certificates WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: certificates_clear
DELETE FROM certificates;

-- name: certificates_between
SELECT digest FROM certificates WHERE digest >= $1 AND digest < $2 ORDER BY digest LIMIT $3;
