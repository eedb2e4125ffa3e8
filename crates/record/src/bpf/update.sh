#!/bin/sh
# Puts the object that the build compiled in place of the one that is checked in.
#
#   src/bpf/update.sh     (in crates/record, with clang 14 and llvm-strip)
set -eu
cd "$(dirname "$0")/../.."
cargo build -q -p shelflife-record --features bpf
target=${CARGO_TARGET_DIR:-../../target}
compiled=$(ls -t "$target"/debug/build/shelflife-record-*/out/record.bpf.o | head -n 1)
llvm-strip -g -o src/bpf/record.bpf.o "$compiled"
