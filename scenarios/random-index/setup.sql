CREATE FUNCTION new_key() RETURNS uuid LANGUAGE sql VOLATILE AS $$
SELECT CASE current_setting('shelflife.keys') WHEN 'v7' THEN
  -- RFC 9562 §5.7: 48 bits of milliseconds, then random bits.
  (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
    || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
ELSE gen_random_uuid() END $$;
CREATE TABLE keyed (id uuid PRIMARY KEY, payload text);
INSERT INTO keyed SELECT new_key(), repeat('k', 60) FROM generate_series(1, 50000 * :scale);
