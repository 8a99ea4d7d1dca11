-- name: meta_value
SELECT value FROM meta WHERE key = $1;

-- name: meta_set
INSERT INTO meta (key, value) VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
