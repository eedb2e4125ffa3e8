-- One client at a time.
SELECT pg_try_advisory_lock(1)::int AS mine \gset
\if :mine
VACUUM FULL rewritten;
REINDEX TABLE rewritten;
CHECKPOINT;
SELECT pg_advisory_unlock(1);
\endif
