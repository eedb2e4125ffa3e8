-- A new partition is filled, the fourth youngest goes; the checkpoint frees its space.
SELECT pg_try_advisory_lock(2)::int AS mine \gset
\if :mine
SELECT nextval('part_number') AS part \gset
SELECT :part - 4 AS old \gset
CREATE TABLE parted_:part PARTITION OF parted FOR VALUES IN (:part);
INSERT INTO parted SELECT :part, i, repeat('x', 80) FROM generate_series(1, 10000 * :scale) AS i;
\if :old > 0
DROP TABLE IF EXISTS parted_:old;
\endif
CHECKPOINT;
SELECT pg_advisory_unlock(2);
\endif
