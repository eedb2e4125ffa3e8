#!/bin/sh
# Compiles the BPF program and generates its skeleton anew, in place of those that are checked in.
#
#   src/bpf/update.sh     (in crates/record, with clang 14 and llvm-strip)
set -eu
cd "$(dirname "$0")/../.."
SHELFLIFE_UPDATE=1 cargo test -q -p shelflife-record --test it object::
