#!/bin/busybox sh
# shellcheck disable=SC2154 # $bin, … are set by the other scripts
# A trial whose rounds are epochs on a whole namespace with FDP, broken off in its second epoch and resumed;
# before it, what must be refused. The emulated drive collects no garbage: this is about everything else.
#
#   begin epoch / said taken … / said unheard … / said broken … / left MOUNTS SIGNATURES / said resumed … /
#   handle N BEFORE AFTER / result LINE / end epoch; meanwhile: alive RESULTS SECTORS

disks 0 0
device=$(echo "$all_fdp" | tail -n 1)
other=$(echo "$all_fdp" | head -n 1)
dir=/tmp/trial

# The load: much is written for what is computed, and the table does not grow.
cat >/tmp/update.sql <<'END'
\set from random(1, 97000)
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid BETWEEN :from AND :from + 3000;
VACUUM pgbench_accounts;
SELECT count(pg_logical_emit_message(false, '', repeat(md5(n::text), 30000))) FROM generate_series(1, 8) n;
END

# Nobody takes a guest at work for one that hangs.
while sleep 30; do
	echo "alive $(cat $dir/results.jsonl 2>/dev/null | wc -l) $(awk '{ print $7 }' "/sys/class/block/${device##*/}/stat")" >&3
done &
alive=$!

plan="--policies off,wal-first --fill 70% --rounds 1 --seconds 10 --scale 1 --clients 1 --jobs 1
	--script /tmp/update.sql --set max_wal_size=48MB --set min_wal_size=32MB --set timezone=GMT
	--set log_timezone=GMT --seed 1
	--pg-bindir $bin --dir $dir --yes --json"

# Ends it as Ctrl-C does, some time into the second epoch.
broken() {
	# shellcheck disable=SC2086 # words
	shelflife trial --fs f2fs --device "$device" $plan &
	trial=$!
	until grep -q '"record":"round"' $dir/results.jsonl 2>/dev/null && grep -q " $dir/fs " /proc/mounts; do
		kill -0 $trial 2>/dev/null || break
		sleep 1
	done
	sleep 45
	kill -TERM $trial
	wait $trial
}

# What is still mounted, and what the device still carries.
left() {
	echo "left $(grep -c " $dir" /proc/mounts) $(wipefs --noheadings "$device" | wc -l)" >&3
}

echo "begin epoch" >&3
mkfs.ext4 -q -F -L data "$other" >/tmp/said 2>&1
# shellcheck disable=SC2086
say taken shelflife trial --fs f2fs --device "$other" $plan
# shellcheck disable=SC2086
say unheard shelflife trial --fs ext4 --device "$device" $plan
handles >/tmp/before
say broken broken
left
say resumed shelflife trial --resume "$dir" --pg-bindir "$bin" --json
moved
left
sed 's/^/result /' "$dir/results.jsonl" >&3
kill $alive
echo "end epoch" >&3
