CREATE TABLE rewritten AS SELECT * FROM pgbench_accounts WHERE aid <= 20000 * :scale;
ALTER TABLE rewritten ADD PRIMARY KEY (aid);
CREATE TABLE parted (part int, id bigint, filler text) PARTITION BY LIST (part);
CREATE SEQUENCE part_number;
