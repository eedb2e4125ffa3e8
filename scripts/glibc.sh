#!/bin/sh
# Says which glibc programs and libraries need, by the versions of the symbols that they import.
#
#   scripts/glibc.sh VERSION FILE…
#
# Exit: 0 none needs a newer one than VERSION; 1 one does, and its symbols are named, or it imports none at all and so
# is not what was meant.
set -eu
limit=$1
shift
status=0
for file; do
	# NAME@GLIBC_2.17, NAME@GLIBC_PRIVATE
	symbols=$(nm -D --with-symbol-versions "$file" | sed -n 's/.* \([^ ]*\)@\{1,2\}GLIBC_\([0-9A-Z.]*\)$/\2 \1/p')
	newest=$(echo "$symbols" | cut -d ' ' -f 1 | sort -uV | tail -n 1)
	if [ -z "$newest" ]; then
		echo "$file: imports nothing from glibc" >&2
		status=1
	elif [ "$(printf '%s\n' "$limit" "$newest" | sort -V | tail -n 1)" != "$limit" ]; then
		echo "$file: needs glibc $newest, not $limit, for $(echo "$symbols" | sed -n "s/^$newest //p" | tr '\n' ' ')" >&2
		status=1
	else
		echo "$file: needs glibc $newest"
	fi
done
exit $status
