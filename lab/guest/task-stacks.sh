#!/bin/busybox sh
# shellcheck disable=SC2154 # $target, $skip and $why are set by stacks.sh
# Goes through the stacks of /lab/stacks: builds each, judges it, asks doctor and prove.

while read -r name medium layer filesystem options work; do
	echo "begin $name" >&3
	if up "$medium" "$layer" "$filesystem" "$options"; then
		[ "$work" = ask ] || judge "$medium"
		say doctor shelflife doctor --json "$target"
		[ ! -e /lab/proves ] || [ -b "$target" ] || say prove shelflife prove --json "$target"
	else
		echo "${skip:-failed} $why" >&3
	fi
	down
	echo "end $name" >&3
done </lab/stacks
