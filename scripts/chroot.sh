# shellcheck shell=sh
# Sourced by scripts that want a minimal Debian of their own. It is fetched from this machine's own package source, and
# through what apt goes through; it is removed when the script ends, and what was fetched is kept.
#
# Before: `name`, of the script; `place`, a folder for it; `skip REASON…`, which ends the script.
# After: `new_root RELEASE OPTION…` makes the folder `$root` by debootstrap with these options, and `inside COMMAND…`
# runs a command with mounts, processes and shared memory of its own, whose `$root/proc` is mounted.

# shellcheck disable=SC2154 # see above
[ "$(id -u)" = 0 ] || {
	echo "$name: needs root" >&2
	exit 3
}
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
unshare --mount --pid --ipc --fork true 2>/dev/null || skip "no namespaces are to be had here"

# shellcheck disable=SC1091 # every Debian has it
own_release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# shellcheck disable=SC2016 # these are apt's own variables
mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages' |
	sed -n "s/^$own_release main //p" | head -n 1)
[ -n "$mirror" ] || skip "apt knows no package source of $own_release"
eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
[ -z "${http_proxy:-}" ] || export http_proxy
[ -z "${https_proxy:-}" ] || export https_proxy

# shellcheck disable=SC2154 # see above
mkdir -p "$place/cache"
place=$(realpath "$place")
root=$place/root
remove_root() {
	trap '' INT TERM HUP
	rm -rf --one-file-system "$root"
}
trap remove_root EXIT
trap 'exit 130' INT TERM HUP

new_root() {
	release=$1
	shift
	rm -rf --one-file-system "$root"
	debootstrap --variant=minbase --cache-dir="$place/cache" "$@" "$release" "$root" "$mirror" \
		>"$place/debootstrap.log" 2>&1 || skip "a minimal $release could not be fetched: $(
		tail -n 1 "$place/debootstrap.log" | sed 's#[a-z]*://[^ ]*##g')"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
}

inside() {
	unshare --mount --pid --ipc --fork --kill-child --mount-proc="$root/proc" \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} "$@"
}
