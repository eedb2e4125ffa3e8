CREATE UNLOGGED TABLE sessions AS SELECT aid AS id, 0 AS hits, repeat('s', 200) AS data FROM pgbench_accounts;
ALTER TABLE sessions ADD PRIMARY KEY (id);
