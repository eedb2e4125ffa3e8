#!/bin/busybox sh
# shellcheck disable=SC2154 # $why is set by the other scripts
# A server under load whose power the runner cuts, and the check of what it left.
#
#   /lab/power holds FILESYSTEM and "first" or "next".
#   cache STATE / checks: recovered, checksums, amcheck, committed N / said … / load / committed N …

read -r filesystem turn </lab/power
disks 0 0
take fdp 1
# shellcheck disable=SC2154 # set by take
device=${taken# }
mkdir -p /mnt/file

# The drive's own cache off: what it acknowledges is on the medium.
for controller in /sys/class/nvme/nvme*; do
	[ "$(tr -d ' ' <"$controller/serial")" = labfdp ] || continue
	nvme set-feature "/dev/${controller##*/}" -f 6 -V 0 >/tmp/said 2>&1 || echo "cache $(tail -n 1 /tmp/said)" >&3
done
echo "write through" >"/sys/block/${device##*/}/queue/write_cache"
echo "cache $(cat "/sys/block/${device##*/}/queue/write_cache")" >&3

check() {
	try mount -t "$filesystem" "$device" /mnt/file || return
	# crash recovery, then a clean stop: pg_checksums wants one
	start_server || return
	echo "recovered $(sql 'select coalesce(max(n), 0) from acknowledged')" >&3
	stop_server || return
	as_postgres "pg_checksums --check -D $data" >/tmp/said 2>&1 || {
		why="pg_checksums: $(grep -v '^Checksum' /tmp/said | head -n 1)"
		return
	}
	echo "checksums $(sed -n 's/^Bad checksums: *//p' /tmp/said)" >&3
	start_server || return
	as_postgres "pg_amcheck --all --heapallindexed --install-missing" >/tmp/said 2>&1 || {
		why="pg_amcheck: $(head -n 1 /tmp/said)"
		return
	}
	echo "amcheck clean" >&3
}

first() {
	wipe "$device"
	try "mkfs.$filesystem" "$([ "$filesystem" = ext4 ] && echo -F || echo -f)" -q "$device" || return
	try mount -t "$filesystem" "$device" /mnt/file || return
	make_cluster || return
	start_server || return
	"$bin/pgbench" -i -q -s 3 >/tmp/said 2>&1 || {
		why="pgbench -i: $(tail -n 1 /tmp/said)"
		return
	}
	sql 'create extension amcheck; create table acknowledged (n int primary key)' || why="psql failed"
}

# Numbers whose commit was acknowledged: none may be missing afterwards.
acknowledge() {
	n=$(sql 'select coalesce(max(n), 0) from acknowledged')
	while n=$((n + 1)) && sql "insert into acknowledged values ($n)"; do
		echo "committed $n" >&3
	done
}

load() {
	shelflife record -o /tmp/trace --path /mnt/file >/tmp/recorder 2>&1 &
	recorder=$!
	# checkpoints, too, must come under the cut
	sql "alter system set checkpoint_timeout = '30s'; alter system set max_wal_size = '64MB'"
	sql 'select pg_reload_conf()' >/dev/null
	"$bin/pgbench" -n -c 2 -T 3600 >/tmp/pgbench 2>&1 &
	acknowledge &
	sleep 3
	kill -0 $recorder 2>/dev/null || echo "recorder $(tail -n 1 /tmp/recorder)" >&3
	say status su postgres -s /bin/sh -c 'shelflife status --json'
	echo load >&3
	wait
}

if [ "$turn" = first ]; then first; else check; fi
if [ -n "$why" ]; then
	echo "failed $why" >&3
else
	load
fi
