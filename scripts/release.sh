#!/bin/sh
# Releases: for this machine's architecture, and for the other one of x86_64 and aarch64 where Rust's library for it and
# a linker are to be had.
#
#   scripts/release.sh
#
# Built in a minimal Debian 11, whose glibc is 2.31, with this machine's Rust toolchain: what is linked there runs there
# and on everything newer. Below target/release-ARCH is a tarball (for /usr/local); that of this machine's architecture is
# then tried in that Debian 11. No Debian package: its dependencies would be those of this machine's libraries.
#
# Exit: 0 all is well, or a line `skipped: release: reason` for what cannot be had; 1 it does not build, needs a newer
# glibc, or does not work; 3 root is needed.
set -eu
cd "$(dirname "$0")/.."
name=release
target=${CARGO_TARGET_DIR:-target}
place=$target/release-build
old=bullseye
glibc=2.31

skip() {
	echo "skipped: release: $*"
	exit 0
}

# shellcheck source=scripts/chroot.sh
. scripts/chroot.sh

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
sysroot=$(rustc --print sysroot)
crates=${CARGO_HOME:-$HOME/.cargo}/registry
machine=$(uname -m)

# build ARCH: program and hook below $place/target. The sources, the toolchain and the crates are read-only there.
build() {
	mkdir -p "$place/target" "$root/src" "$root/rust" "$root/cargo/registry" "$root/build"
	# shellcheck disable=SC2016 # expanded by that shell
	inside sh -euc '
		mount --bind -o ro "$2" "$1/src"
		mount --bind -o ro "$3" "$1/rust"
		mount --bind -o ro "$4" "$1/cargo/registry"
		mount --bind "$5" "$1/build"
		exec chroot "$1" sh /src/scripts/release-inside.sh build "$6"
	' sh "$root" "$PWD" "$sysroot" "$crates" "$place/target" "$1"
}

# licences ARCH FOLDER: those of all crates that are linked into the program.
licences() {
	mkdir -p "$2"
	cargo tree --locked -p shelflife -e normal --target "$1-unknown-linux-gnu" --prefix none -f '{p}|{l}' |
		sed 's# (\*)$##; s# ([^|]*)|#|#; s#|# #' | sort -u >"$2/CRATES"
	while read -r crate its_version _; do
		from=$(find "$crates/src" -mindepth 2 -maxdepth 2 -name "$crate-${its_version#v}" | head -n 1)
		[ -n "$from" ] || continue # it is ours
		# One level down is what a crate brings of others: libbpf, zstd.
		find "$from" -maxdepth 2 -type f \( -name 'LICEN[CS]E*' -o -name 'COPYING*' -o -name 'NOTICE*' \) |
			while read -r file; do
				install -D -m 644 "$file" "$2/$crate-${its_version#v}/${file#"$from"/}"
			done
	done <"$2/CRATES"
}

# tarball ARCH: checks what was built, and packs it.
tarball() {
	built=$place/target/$1-unknown-linux-gnu
	out=$target/release-$1
	base=shelflife-$version-$1-linux-gnu
	at=$out/$base
	rm -rf "$out"
	install -D -m 755 "$built/release/shelflife" "$at/bin/shelflife"
	install -D -m 644 "$built/hook/libshelflife_preload.so" "$at/lib/shelflife/libshelflife_preload.so"
	scripts/glibc.sh $glibc "$at/bin/shelflife" "$at/lib/shelflife/libshelflife_preload.so"
	install -D -m 644 -t "$at/share/shelflife/policies" policies/*.toml
	install -D -m 644 -t "$at/share/shelflife/drives" drives/*.toml
	install -D -m 644 -t "$at/share/man/man1" packaging/man/*.1
	install -D -m 644 packaging/completions/shelflife.bash "$at/share/bash-completion/completions/shelflife"
	install -D -m 644 -t "$at/share/fish/vendor_completions.d" packaging/completions/shelflife.fish
	install -D -m 644 -t "$at/share/zsh/site-functions" packaging/completions/_shelflife
	install -D -m 644 packaging/shelflife.tmpfiles "$at/lib/tmpfiles.d/shelflife.conf"
	install -D -m 644 packaging/shelflife-watch.service "$at/lib/systemd/system/shelflife-watch.service"
	sed -i 's#/usr/\(bin\|share\)/#/usr/local/\1/#' "$at/lib/systemd/system/shelflife-watch.service"
	install -D -m 644 -t "$at/share/doc/shelflife" README.md LICENSE-MIT LICENSE-APACHE docs/operate.md
	install -D -m 644 -t "$at/share/doc/shelflife/examples" examples/*
	licences "$1" "$at/share/doc/shelflife/licences"
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct 2>/dev/null || date +%s)" \
		-C "$out" -czf "$at.tar.gz" "$base"
	rm -rf "$at"
	echo "$at.tar.gz: $(du -k "$at.tar.gz" | cut -f 1) KiB"
}

cargo fetch -q --locked --target x86_64-unknown-linux-gnu --target aarch64-unknown-linux-gnu
new_root $old --include=gcc,libc6-dev,make,pkg-config,libelf-dev,zlib1g-dev

build "$machine"
tarball "$machine"
cp "$target/release-$machine"/*.tar.gz "$root/release.tar.gz"
cp scripts/release-inside.sh "$root/"
inside chroot "$root" sh /release-inside.sh try

case $machine in
x86_64) other=aarch64 ;;
*) other=x86_64 ;;
esac
if ! [ -d "$sysroot/lib/rustlib/$other-unknown-linux-gnu/lib" ]; then
	skip "$other: Rust's library for it is missing (rustup target add $other-unknown-linux-gnu)"
fi
status=0
build "$other" || status=$?
case $status in
0) tarball "$other" ;;
4) skip "$other: no linker and libraries for it could be fetched" ;;
*) exit 1 ;;
esac
