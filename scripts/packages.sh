#!/bin/sh
# Installs the Debian packages that a make target needs, if any is missing.
#
#   scripts/packages.sh PACKAGE…
#
# As root it installs them. Otherwise it prints the one line to run and exits with 3.
set -eu

missing=
for package in "$@"; do
	status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
	case $status in
	ii*) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "missing packages; run this once:" >&2
	echo "  sudo apt-get install -y$missing" >&2
	exit 3
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 || {
	apt-get update -qq
	apt-get install -y --no-install-recommends $missing >/dev/null
}
