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

# The line of nextest alone: what a test prints, of its first try too, may hold the same words.
summary=$(sed -n 's/^ *Summary \[[^]]*\]//p' "$out" | tail -n 1)
passed=$(echo "$summary" | sed -n 's/.* \([0-9]*\) passed.*/\1/p')
failed=$(echo "$summary" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
skipped=$(sed -n '/^ *skipped: /p' "$out" | sort -u | wc -l)
sed -n 's/^ *FLAKY 2\/2 *\[[^]]*\] *\(([^)]*)\)* */only at the second try: /p' "$out" | sort -u
[ $status = 0 ] || [ "${failed:-0}" != 0 ] || failed=1
echo
echo "${passed:-0} passed, ${failed:-0} failed, ${skipped:-0} skipped"
exit $status
