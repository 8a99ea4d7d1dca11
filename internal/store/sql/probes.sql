-- name: probe_insert
INSERT INTO probes (digest, seq, symbol) VALUES ($1, $2, $3)
ON CONFLICT (digest) DO NOTHING;

-- name: probe_seq
SELECT seq FROM probes WHERE digest = $1;

-- name: probes_page
SELECT digest, seq, symbol FROM probes
WHERE seq > $1 OR (seq = $1 AND digest > $2) ORDER BY seq, digest LIMIT $3;

-- name: probes_clear
DELETE FROM probes;

-- name: probes_between
SELECT digest FROM probes WHERE digest >= $1 AND digest < $2 ORDER BY digest LIMIT $3;
