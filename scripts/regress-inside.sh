#!/bin/sh
# One suite of PostgreSQL's tests inside a run: called by regress.sh as the command of
# `shelflife run`, so that this shell carries the hook too and keeps the run alive to its end.
#
#   regress-inside.sh NAME PREFIX COMMAND…
#
# While COMMAND runs, hints are switched once a second and every process of $bindir/postgres is
# looked at. Leaves PREFIX.seen and PREFIX.bare (server processes with and without the hook),
# PREFIX.switches and PREFIX.status; exits as COMMAND did.
set -u
: "${bindir:?}"
name=$1
prefix=$2
shift 2

tool() {
	env -u LD_PRELOAD shelflife "$@"
}

carries() {
	grep -q libshelflife_preload "$1/maps" 2>/dev/null
}

look() {
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
	while :; do
		for to in off wal-first temp-vs-rest; do
			sleep 1
			[ ! -e "$prefix.stop" ] || return
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
tool status --run "$name" --json >"$prefix.status"
exit $result
