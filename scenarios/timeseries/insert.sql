\set roll random(1, 500)
\if :roll = 1
SELECT series_roll();
\endif
INSERT INTO series SELECT clock_timestamp(), i, random(), repeat('n', 40) FROM generate_series(1, 50) AS i;
