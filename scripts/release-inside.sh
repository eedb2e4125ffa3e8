#!/bin/sh
# Inside the chroot of release.sh.
#
#   release-inside.sh build ARCH    builds program and hook for ARCH (x86_64, aarch64) into /build
#   release-inside.sh try           unpacks /release.tar.gz and lets it work
#
# Exit: 0 all is well; 4 a linker or libraries for ARCH could not be fetched; else something is wrong, and said.
set -eu

build() {
	rust=$1-unknown-linux-gnu
	export PATH="/rust/bin:$PATH" CARGO_HOME=/cargo CARGO_TARGET_DIR=/build
	export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols
	if [ "$1" != "$(uname -m)" ]; then
		case $1 in
		x86_64) debian=amd64 ;;
		*) debian=arm64 ;;
		esac
		gcc=$1-linux-gnu-gcc
		dpkg --add-architecture $debian
		apt-get -qq update || exit 4
		apt-get -qq install -y --no-install-recommends "gcc-$(echo "$1" | tr _ -)-linux-gnu" \
			libc6-dev:$debian libelf-dev:$debian zlib1g-dev:$debian || exit 4
		variable=$(echo "$rust" | tr a-z- A-Z_)
		export "CARGO_TARGET_${variable}_LINKER=$gcc" "CC_$(echo "$rust" | tr - _)=$gcc"
	fi
	cd /src
	cargo build -q --offline --locked --target "$rust" --release -p shelflife
	cargo build -q --offline --locked --target "$rust" --profile hook -p shelflife-preload
}

# works PROGRAM: it gives a hint, and its hook does.
works() {
	"$1" --version
	folder=$(mktemp -d)
	(cd "$folder" && "$1" run --policy /paths.toml -- sh -c 'echo x >young-file')
	hint=$("$1" hint get "$folder/young-file")
	case $hint in
	*short*) ;;
	*)
		echo "release: a file made under the hook of $1: $hint" >&2
		exit 1
		;;
	esac
}

try() {
	cat >/paths.toml <<'P'
name = "young"
layout = "paths"

[[rule]]
path = "young-*"
lifetime = "short"
P
	tar -C /usr/local --strip-components=1 -xzf /release.tar.gz
	works /usr/local/bin/shelflife
	echo "the tarball works with $(ldd --version | head -n 1)"
}

"$@"
