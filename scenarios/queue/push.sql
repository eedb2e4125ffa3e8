INSERT INTO jobs (payload) SELECT repeat('p', 200) FROM generate_series(1, 10);
