#!/bin/sh
# Compiles the BPF program anew, in place of the object that is checked in.
#
#   src/bpf/update.sh     (in crates/record, with clang 14 and llvm-strip)
set -eu
cd "$(dirname "$0")/../.."
SHELFLIFE_UPDATE=1 cargo test -q -p shelflife-record --test it object::
