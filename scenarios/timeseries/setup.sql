CREATE TABLE series (at timestamptz NOT NULL, sensor int NOT NULL, value float8, note text) PARTITION BY RANGE (at);
CREATE INDEX ON series (sensor, at);
-- Partitions of 2 s: makes those of now and of the next 12 s, drops the oldest once all take more than `most` bytes, so
-- that the load fits a file system however fast it is. What another client made while this one waited for the lock may
-- not be seen yet.
CREATE FUNCTION series_roll(most bigint) RETURNS void LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE
  now_at bigint := floor(extract(epoch FROM clock_timestamp()) / 2) * 2;
  part text;
  slot bigint;
BEGIN
  IF to_regclass('series_' || now_at) IS NOT NULL AND to_regclass('series_' || now_at + 10) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(3);
  FOR slot IN SELECT generate_series(now_at, now_at + 12, 2) LOOP
    IF to_regclass('series_' || slot) IS NULL THEN
      EXECUTE format('CREATE TABLE IF NOT EXISTS series_%s PARTITION OF series FOR VALUES FROM (%L) TO (%L)',
        slot, to_timestamp(slot), to_timestamp(slot + 2));
    END IF;
  END LOOP;
  FOR part IN SELECT relname FROM (
      SELECT relname, sum(pg_total_relation_size(oid)) OVER (ORDER BY relname DESC) AS taken
      FROM pg_class WHERE relkind = 'r' AND relname ~ '^series_\d+$'
    ) AS parts WHERE taken > most AND substr(relname, 8)::bigint < now_at
  LOOP
    EXECUTE format('DROP TABLE IF EXISTS %I', part);
  END LOOP;
END $$;
