INSERT INTO keyed SELECT new_key(), repeat('k', 60) FROM generate_series(1, 10);
DELETE FROM keyed WHERE id IN (SELECT id FROM keyed WHERE id >= gen_random_uuid() ORDER BY id LIMIT 10);
