-- name: entry_insert
INSERT INTO entries (seq, time, kind, body, leaf_hash) VALUES ($1, $2, $3, $4, $5);

-- name: entry_by_seq
SELECT seq, time, kind, body, leaf_hash FROM entries WHERE seq = $1;

-- name: entries_page
SELECT seq, time, kind, body, leaf_hash FROM entries
WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3;

-- name: entries_page_of_kind
SELECT seq, time, kind, body, leaf_hash FROM entries
WHERE kind = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4;

-- name: entries_last
SELECT coalesce(max(seq), 0) FROM entries;

-- name: tree_hash_insert
INSERT INTO tree_hashes (idx, hash) VALUES ($1, $2);

-- name: tree_hash
SELECT hash FROM tree_hashes WHERE idx = $1;

-- name: tree_hashes_page
SELECT idx, hash FROM tree_hashes WHERE idx > $1 ORDER BY idx LIMIT $2;

-- name: checkpoint_insert
INSERT INTO checkpoints (size, note) VALUES ($1, $2);

-- name: checkpoint_last
SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1;

-- name: checkpoint_at_least
SELECT size, note FROM checkpoints WHERE size >= $1 ORDER BY size LIMIT 1;

-- name: checkpoints_page
SELECT size, note FROM checkpoints WHERE size > $1 ORDER BY size LIMIT $2;
