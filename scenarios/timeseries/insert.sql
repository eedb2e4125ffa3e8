SELECT series_roll(:scale * 100000000::bigint);
INSERT INTO series SELECT clock_timestamp(), i, random(), repeat('n', 40) FROM generate_series(1, 50) AS i;
