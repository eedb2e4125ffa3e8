#!/bin/sh
# Installs the Debian package in a clean chroot, lets it work, removes and purges it, and looks at what is left.
#
#   scripts/deb-chroot.sh PACKAGE.deb
#
# The chroot is a minimal Debian of this machine's release, fetched from this machine's own package sources into
# target/deb-chroot and removed afterwards; what was fetched is kept there. It has its own processes, mounts and
# shared memory, so that nothing of the machine is touched.
#
# Exit: 0 all is well, or a line `skipped: deb-chroot: reason` where such a system cannot be had; 1 something is
# wrong with the package; 3 root is needed.
set -eu
package=$(realpath "$1")
cd "$(dirname "$0")/.."
place=${CARGO_TARGET_DIR:-target}/deb-chroot

skip() {
	echo "skipped: deb-chroot: $*"
	exit 0
}

[ "$(id -u)" = 0 ] || {
	echo "deb-chroot: needs root" >&2
	exit 3
}
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
unshare --mount --pid --ipc --fork true 2>/dev/null || skip "no namespaces are to be had here"

# shellcheck disable=SC1091 # every Debian has it
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# shellcheck disable=SC2016 # these are apt's own variables
mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages' |
	sed -n "s/^$release main //p" | head -n 1)
[ -n "$mirror" ] || skip "apt knows no package source of $release"
# What apt goes through, its downloads go through.
eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
[ -z "${http_proxy:-}" ] || export http_proxy
[ -z "${https_proxy:-}" ] || export https_proxy

mkdir -p "$place/cache"
place=$(realpath "$place")
root=$place/root
clean() {
	trap '' INT TERM HUP
	rm -rf --one-file-system "$root"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP
rm -rf --one-file-system "$root"

debootstrap --variant=minbase --cache-dir="$place/cache" "$release" "$root" "$mirror" \
	>"$place/debootstrap.log" 2>&1 || skip "a minimal $release could not be fetched: $(
	tail -n 1 "$place/debootstrap.log" | sed 's#[a-z]*://[^ ]*##g')"

# The machine's package sources, for what the package depends on.
cp -r /etc/apt/. "$root/etc/apt/"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
for key in /usr/share/keyrings/*; do
	cp -L "$key" "$root/usr/share/keyrings/" 2>/dev/null || true
done
cp "$package" "$root/shelflife.deb"
cp scripts/deb-inside.sh "$root/deb-inside.sh"

status=0
unshare --mount --pid --ipc --fork --kill-child --mount-proc="$root/proc" \
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
	${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
	chroot "$root" sh /deb-inside.sh /shelflife.deb || status=$?
case $status in
0) ;;
4) skip "what the package depends on could not be fetched" ;;
*)
	echo "deb-chroot: failed ($status)" >&2
	exit 1
	;;
esac
