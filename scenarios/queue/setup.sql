CREATE TABLE jobs (id bigserial PRIMARY KEY, state int NOT NULL DEFAULT 0, payload text);
CREATE INDEX ON jobs (state, id);
INSERT INTO jobs (payload) SELECT repeat('p', 200) FROM generate_series(1, 1000 * :scale);
