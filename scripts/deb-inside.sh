#!/bin/sh
# Inside the chroot of deb-chroot.sh: install, work, remove, purge.
#
#   deb-inside.sh PACKAGE
#
# Exit: 0 all is well; 4 dependencies could not be fetched; else something is wrong, and said.
set -eu

bad() {
	echo "deb-chroot: $*" >&2
	exit 1
}

# equals WHAT IS EXPECTED
equals() {
	[ "$2" = "$3" ] || bad "$1: $2, not $3"
}

# hint_of FILE [PROGRAM]
hint_of() {
	"${2:-shelflife}" hint get --json "$1" | tr -d ' \n' | sed 's/.*"hint":"\([a-z-]*\)".*/\1/'
}

# All files, but what a package manager keeps for itself, and processes.
files() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log \
		-o -path /var/lib/apt -o -path /tmp -o -path /srv \) -prune -o -print | sort
}

apt-get -qq update >/dev/null 2>&1 || exit 4
# Its dependencies stay, as they do everywhere until somebody asks for autoremove; so they come first.
depends=$(dpkg-deb -f "$1" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/,/ /g')
# shellcheck disable=SC2086 # a list of words
apt-get -qq install -y --no-install-recommends $depends >/dev/null 2>&1 || exit 4
files >/tmp/before

dpkg -i "$1" >/tmp/dpkg.log 2>&1 || {
	cat /tmp/dpkg.log >&2
	bad "it does not install"
}
echo "installed: $(shelflife --version), $(dpkg-query -W -f '${Installed-Size}' shelflife) KiB, depends on: $depends"

# --- it works --------------------------------------------------------------------------------------

echo x >/srv/file
shelflife hint set short /srv/file >/dev/null
equals "a hint that was set" "$(hint_of /srv/file)" short
shelflife hint clear /srv/file >/dev/null

cat >/tmp/paths.toml <<'P'
name = "young"
layout = "paths"

[[rule]]
path = "young-*"
lifetime = "short"
P
shelflife run --policy /tmp/paths.toml -- sh -c 'cd /srv && echo x >young-file && echo x >other-file'
equals "a file made under the hook" "$(hint_of /srv/young-file)" short
equals "another one" "$(hint_of /srv/other-file)" not-set
shelflife policy check wal-first >/dev/null || bad "a shipped policy has faults"

# A data folder without a server, a daemon, and a program that lives on under the hook.
mkdir -p /srv/data/base/5 /srv/data/global
echo 15 >/srv/data/PG_VERSION
echo x >/srv/data/base/5/16384
echo x >/srv/data/global/1262
chown -R daemon:daemon /srv/data
shelflife watch /srv/data --policy temp-vs-rest --name watched >/tmp/watch.log 2>&1 &
watcher=$!
tries=0
until grep -q ' swept in ' /tmp/watch.log; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || bad "the daemon does not sweep: $(cat /tmp/watch.log)"
	sleep 0.1
done
equals "a file that the daemon found" "$(hint_of /srv/data/base/5/16384)" extreme
shelflife run --policy /tmp/paths.toml --name hooked -- sleep 1000 &
hooked=$!
tries=0
until [ -e /run/shelflife/hooked/page ]; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || bad "no run is registered"
	sleep 0.1
done
shelflife status >/tmp/status || true
for run in hooked watched; do
	grep -q "run $run" /tmp/status || bad "status: $(cat /tmp/status)"
done

# --- remove and purge, beside what still lives ------------------------------------------------------

cp /usr/bin/shelflife /tmp/shelflife
dpkg -r shelflife >/tmp/dpkg.log 2>&1 || bad "it is not removed: $(cat /tmp/dpkg.log)"
equals "a file of a live daemon after the removal" "$(hint_of /srv/data/base/5/16384 /tmp/shelflife)" not-set
dpkg -P shelflife >/tmp/dpkg.log 2>&1 || bad "it is not purged: $(cat /tmp/dpkg.log)"
for path in "/proc/$watcher" "/proc/$hooked" /run/shelflife/hooked/page /run/shelflife/watched/page; do
	[ -e "$path" ] || bad "the purge took $path, which still lives"
done
files | grep -v '^/run/shelflife' >/tmp/after
cmp -s /tmp/before /tmp/after || bad "left behind: $(diff /tmp/before /tmp/after)"

# --- and when they are over ------------------------------------------------------------------------

kill "$watcher" "$hooked"
wait "$watcher" "$hooked" 2>/dev/null || true
dpkg -i "$1" >/tmp/dpkg.log 2>&1 || bad "it does not install again: $(cat /tmp/dpkg.log)"
dpkg -P shelflife >/tmp/dpkg.log 2>&1 || bad "it is not purged: $(cat /tmp/dpkg.log)"
files >/tmp/after
cmp -s /tmp/before /tmp/after || bad "left behind in the end: $(diff /tmp/before /tmp/after)"
equals "segments of shared memory" "$(sed 1d /proc/sysvipc/shm)" ""
echo "removed and purged beside a live daemon and a live run: hints off, their records kept; then purged with nothing left"
