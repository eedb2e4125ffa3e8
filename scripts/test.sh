#!/bin/sh
# All tests: unit and integration tests in processes of their own, then the examples in the
# documentation. Closes with one line: how many passed, failed, and were skipped by name; before it stand
# those that passed only at the second try: each is a fault, of the test or of what it tests.
set -u

out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0

# `immediate-final` shows the output of tests that passed too: skipped parts announce themselves.
cargo nextest run --locked --workspace --no-fail-fast --success-output immediate >"$out" 2>&1 || status=1
grep -vE '^ +(PASS|SLOW) |^ *$|^──|^ *(running|test result|test ).*|stdout ──' "$out" | grep -v '^ *Compiling' || true

cargo test --locked -q --workspace --doc >"$out.doc" 2>&1 || { status=1; cat "$out.doc"; }
rm -f "$out.doc"

passed=$(sed -n 's/.* \([0-9]*\) passed.*/\1/p' "$out" | tail -n 1)
failed=$(sed -n 's/.* \([0-9]*\) failed.*/\1/p' "$out" | tail -n 1)
skipped=$(grep -c '^ *skipped: ' "$out" || true)
sed -n 's/^ *FLAKY 2\/2 *\[[^]]*\] *\(([^)]*)\)* */only at the second try: /p' "$out" | sort -u
[ $status = 0 ] || [ "${failed:-0}" != 0 ] || failed=1
echo
echo "${passed:-0} passed, ${failed:-0} failed, ${skipped:-0} skipped"
exit $status
