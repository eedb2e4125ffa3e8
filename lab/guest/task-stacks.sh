#!/bin/busybox sh
# shellcheck disable=SC2154 # $target, $skip and $why are set by stacks.sh
# Goes through the batches of /lab/stacks: builds each stack, judges it, asks doctor; then asks prove once
# for all stacks of the batch, as what it loads takes long here.
#
#   begin NAME / … / said doctor … / end NAME
#   said prove …            of all stacks of the batch that are up
#   batch                   all of it is down
#
# The list: "batch DISKS MIB", then "NAME MEDIUM LAYER FILESYSTEM OPTIONS all|ask".

places=

finish() {
	if [ -n "$places" ]; then
		# shellcheck disable=SC2086 # a list of folders
		say prove shelflife prove --json $places
		places=
	fi
	down
	echo batch >&3
}

one() {
	echo "begin $1" >&3
	if up "$1" "$2" "$3" "$4" "$5"; then
		[ "$6" = ask ] || judge "$2"
		say doctor shelflife doctor --json "$target"
		[ -b "$target" ] || places="$places $target"
	else
		echo "${skip:-failed} $why" >&3
	fi
	echo "end $1" >&3
}

begun=
while read -r name first second rest; do
	if [ "$name" = batch ]; then
		[ -z "$begun" ] || finish
		begun=yes
		disks "$first" "$second"
	else
		# shellcheck disable=SC2086 # words
		one "$name" "$first" "$second" $rest
	fi
done </lab/stacks
finish
