-- A sort by something that no index has, of wide rows.
SELECT count(*) FROM (SELECT aid, filler FROM pgbench_accounts ORDER BY filler, md5(aid::text) OFFSET 0) AS sorted;
-- A hash join in batches.
SELECT count(*) FROM pgbench_accounts AS a JOIN pgbench_accounts AS b ON a.aid = b.aid + 1;
