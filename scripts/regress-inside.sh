#!/bin/sh
# One suite of PostgreSQL's tests inside a run: called by regress.sh as the command of
# `shelflife run`, so that this shell carries the hook too and keeps the run alive to its end.
#
#   regress-inside.sh NAME PREFIX COMMAND…
#
# While COMMAND runs, hints are switched once a second and every process of $bindir/postgres is
# looked at. Leaves PREFIX.seen and PREFIX.bare (server processes with and without the hook),
# PREFIX.switches and PREFIX.status; exits as COMMAND did.
#
# With $watched, a data folder that COMMAND is going to make, there is no hook: a daemon is attached as
# soon as the folder is there. Then PREFIX.seen has a line for each look that found the daemon alive,
# PREFIX.bare one for each that did not, and PREFIX.daemon what it said.
set -u
: "${bindir:?}"
name=$1
prefix=$2
shift 2

tool() {
	env -u LD_PRELOAD shelflife "$@"
}

# What it counted, before its run ends with it.
detach() {
	[ -n "${watched:-}" ] || return 0
	tool status --run "$name" --json >"$prefix.status"
	kill "$daemon"
	wait "$daemon" || echo "FAILED: the daemon's end, exit $?"
}

carries() {
	grep -q libshelflife_preload "$1/maps" 2>/dev/null
}

# Starts the daemon when there is a data folder; it is ended by this shell, whose child it stays.
attach() {
	until [ -s "$watched/global/pg_control" ]; do
		sleep 0.1
		[ ! -e "$prefix.stop" ] || return 1
	done
	shelflife watch "$watched" --policy temp-vs-rest --name "$name" >"$prefix.daemon" 2>&1 &
	daemon=$!
	until grep -q ' swept in ' "$prefix.daemon"; do
		sleep 0.1
		kill -0 "$daemon" 2>/dev/null || return 1
	done
}

look_at_daemon() {
	if kill -0 "$daemon" 2>/dev/null; then
		date +%s.%N >>"$prefix.seen"
	else
		echo "the daemon is gone" >>"$prefix.bare"
	fi
}

look() {
	if [ -n "${watched:-}" ]; then
		look_at_daemon
		return
	fi
	find /proc -maxdepth 2 -name exe -lname "$bindir/postgres" 2>/dev/null | while read -r exe; do
		process=${exe%/exe}
		if ! carries "$process"; then
			# It may just be loading its libraries, or be gone.
			sleep 0.3
			if ! carries "$process"; then
				[ "$(readlink "$exe")" != "$bindir/postgres" ] || {
					tr '\0' ' ' <"$process/cmdline"
					echo "(${process#/proc/})"
				} >>"$prefix.bare"
				continue
			fi
		fi
		echo "${process#/proc/}" >>"$prefix.seen"
	done
}

watch() {
	if [ -n "${watched:-}" ]; then
		attach || {
			echo "FAILED: the daemon does not start: $(cat "$prefix.daemon" 2>/dev/null)"
			return
		}
	fi
	while :; do
		for to in off wal-first temp-vs-rest; do
			sleep 1
			if [ -e "$prefix.stop" ]; then
				detach
				return
			fi
			look
			tool switch "$to" --run "$name" || echo "FAILED: switch $to, exit $?"
		done
	done
}

: >"$prefix.seen"
: >"$prefix.bare"
watch >"$prefix.switches" 2>&1 &
"$@"
result=$?
: >"$prefix.stop"
wait
[ -n "${watched:-}" ] || tool status --run "$name" --json >"$prefix.status"
exit $result
