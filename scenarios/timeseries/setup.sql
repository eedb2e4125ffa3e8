CREATE TABLE series (at timestamptz NOT NULL, sensor int NOT NULL, value float8, note text) PARTITION BY RANGE (at);
CREATE INDEX ON series (sensor, at);
-- Partitions of 5 s: makes those of now and of the next 10 s, drops those older than 30 s.
-- What another client made while this one waited for the lock may not be seen yet.
CREATE FUNCTION series_roll() RETURNS void LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE
  now_at bigint := floor(extract(epoch FROM clock_timestamp()) / 5) * 5;
  part text;
  slot bigint;
BEGIN
  IF to_regclass('series_' || now_at) IS NOT NULL AND to_regclass('series_' || now_at + 5) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(3);
  FOREACH slot IN ARRAY ARRAY[now_at, now_at + 5, now_at + 10] LOOP
    IF to_regclass('series_' || slot) IS NULL THEN
      EXECUTE format('CREATE TABLE IF NOT EXISTS series_%s PARTITION OF series FOR VALUES FROM (%L) TO (%L)',
        slot, to_timestamp(slot), to_timestamp(slot + 5));
    END IF;
  END LOOP;
  FOR part IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^series_\d+$'
    AND substr(relname, 8)::bigint < now_at - 30
  LOOP
    EXECUTE format('DROP TABLE IF EXISTS %I', part);
  END LOOP;
END $$;
