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
name=deb-chroot
place=${CARGO_TARGET_DIR:-target}/deb-chroot

skip() {
	echo "skipped: deb-chroot: $*"
	exit 0
}

# shellcheck source=scripts/chroot.sh
. scripts/chroot.sh
new_root "$own_release"

# The machine's package sources, for what the package depends on.
cp -r /etc/apt/. "$root/etc/apt/"
for key in /usr/share/keyrings/*; do
	cp -L "$key" "$root/usr/share/keyrings/" 2>/dev/null || true
done
cp "$package" "$root/shelflife.deb"
cp scripts/deb-inside.sh "$root/deb-inside.sh"

status=0
inside chroot "$root" sh /deb-inside.sh /shelflife.deb || status=$?
case $status in
0) ;;
4) skip "what the package depends on could not be fetched" ;;
*)
	echo "deb-chroot: failed ($status)" >&2
	exit 1
	;;
esac
