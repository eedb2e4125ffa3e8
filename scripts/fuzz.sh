#!/bin/sh
# Runs every fuzz target for so many seconds (default 20) on the stable toolchain.
#
#   scripts/fuzz.sh [SECONDS]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
tools=$PWD/target/tools

if ! command -v cargo-fuzz >/dev/null && [ ! -x "$tools/bin/cargo-fuzz" ]; then
	cargo install --locked -q --root "$tools" cargo-fuzz
fi
PATH=$tools/bin:$PATH

targets=$(cargo fuzz list)
for target in $targets; do
	mkdir -p "fuzz/corpus/$target"
	# what the project has of good input is where fuzzing begins
	case $target in
	policy) cp policies/*.toml "fuzz/corpus/$target/" ;;
	results)
		for version in 1 2; do
			head -c 8000 "crates/trial/tests/fixtures/results-v$version.jsonl" >"fuzz/corpus/$target/sample$version"
		done
		;;
	# a first byte chooses the format, in the order of the list, or the file
	import)
		byte=0
		for sample in msr.csv alibaba.csv tencent.csv blkparse.txt vscsi1.bin vscsi2.bin fio.log \
			mqsim.trace generic.csv; do
			for choice in $byte 15 $((byte + 16)); do
				{
					# shellcheck disable=SC2059 # the byte is an octal escape
					printf "\\$(printf %o "$choice")"
					cat "crates/trace/samples/$sample"
				} >"fuzz/corpus/import/$sample-$choice"
			done
			byte=$((byte + 1))
		done
		;;
	trace)
		byte=0
		for sample in meta.json files.parquet events-0000.parquet; do
			{
				# shellcheck disable=SC2059
				printf "\\$(printf %o "$byte")"
				cat "crates/trace/samples/trace-v1/$sample"
			} >"fuzz/corpus/trace/$sample"
			byte=$((byte + 1))
		done
		;;
	esac
	# the sanitizers want a nightly compiler; the assertions of the targets do not
	cargo fuzz run --sanitizer none "$target" -- -max_total_time="$seconds" -max_len=8192 \
		-print_final_stats=1 >"target/fuzz-$target.log" 2>&1 || {
		tail -n 40 "target/fuzz-$target.log"
		echo "fuzz target $target failed"
		exit 1
	}
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "target/fuzz-$target.log")
	echo "fuzz $target: ${runs:-?} inputs in $seconds s, no failure"
done
