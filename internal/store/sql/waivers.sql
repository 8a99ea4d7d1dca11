-- name: waiver_upsert
INSERT INTO waivers (probe, seq, reason, until, principal) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (probe) DO UPDATE SET
	seq = excluded.seq, reason = excluded.reason, until = excluded.until, principal = excluded.principal;

-- name: waivers_page
SELECT probe, seq, reason, until, principal FROM waivers WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: waivers_clear
DELETE FROM waivers;
