#!/bin/busybox sh
# shellcheck disable=SC2154 # $why, … are set by the other scripts
# What does a drive with FDP hear of PostgreSQL under wal-first? Two phases on each file system:
# commits, which write WAL and nothing else, and a checkpoint, which writes relations.
#
#   begin FILESYSTEM / said doctor … / phase wal|checkpoint / bytes N / write … / handle … /
#   said status … / end FILESYSTEM

# phase NAME COMMAND…: what the drive is told meanwhile
phase() {
	echo "phase $1" >&3
	shift
	sync
	handles >/tmp/before
	watch
	"$@" >/tmp/said 2>&1 || echo "failed $1: $(tail -n 1 /tmp/said)" >&3
	unwatch
	writes >&3
	moved
}

commits() {
	"$bin/pgbench" -n -N -c 2 -t 250
}

checkpoint() {
	sql checkpoint
	sync
}

scenario() {
	make_cluster || return
	say doctor shelflife doctor --json "$data"
	start_server || return
	"$bin/pgbench" -i -q -s 3 >/tmp/said 2>&1 || {
		why="pgbench -i: $(tail -n 1 /tmp/said)"
		return
	}
	checkpoint >/dev/null
	from=$(sql 'select pg_current_wal_lsn()')
	phase wal commits
	echo "bytes $(sql "select pg_wal_lsn_diff(pg_current_wal_lsn(), '$from')")" >&3
	phase checkpoint checkpoint
	say status su postgres -s /bin/sh -c 'shelflife status --json'
	stop_server
}

# shellcheck disable=SC2034 # for watch()
medium=fdp
for filesystem in f2fs ext4; do
	echo "begin $filesystem" >&3
	if alone file fdp - $filesystem -; then
		scenario
	fi
	[ -z "$why" ] || echo "failed $why" >&3
	down
	echo "end $filesystem" >&3
done
