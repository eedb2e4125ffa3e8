DROP TABLE IF EXISTS bulk_load_:client_id;
BEGIN;
CREATE TABLE bulk_load_:client_id (LIKE pgbench_accounts);
COPY bulk_load_:client_id FROM PROGRAM 'cat bulk-load.dat';
CREATE INDEX ON bulk_load_:client_id (filler, aid);
CREATE INDEX ON bulk_load_:client_id (md5(aid::text));
COMMIT;
