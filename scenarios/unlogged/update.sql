\set id random(1, 100000 * :scale)
UPDATE sessions SET hits = hits + 1 WHERE id = :id;
