-- At most 64 tables, the oldest goes: a trial must not fill the drive.
SELECT nextval('cold_number') AS number \gset
SELECT :number - 64 AS old \gset
CREATE TABLE cold_:number (id bigint, payload text) WITH (autovacuum_enabled = off);
INSERT INTO cold_:number SELECT i, repeat('c', 100) FROM generate_series(1, 2000 * :scale) AS i;
CHECKPOINT;
VACUUM (FREEZE) cold_:number;
\if :old > 0
DROP TABLE IF EXISTS cold_:old;
\endif
