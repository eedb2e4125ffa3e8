#!/bin/busybox sh
# shellcheck disable=SC2154 # $target, $filesystem, $options and $all_fdp are set by stacks.sh
# What the drive was really told, seen without shelflife's help but for the call that sets a hint:
# the tracepoints of the drivers, and the devices' own counters.
#
#   judge MEDIUM    writes to $target with every hint, buffered and direct, and says on fd 3
#     probe MODE HINT            what follows is of this write; "small" is buffered, a little at a time
#     write BUS TAG SECTORS      sectors written under this tag
#     group N COUNT              write commands that scsi_debug counted for group N
#     handle N BEFORE AFTER      what handle N says is left in its reclaim unit

tracing=/sys/kernel/tracing
groups=/sys/bus/pseudo/drivers/scsi_debug/group_number_stats
hints="not-set short medium long extreme"

judge() {
	medium=$1
	modes="buffered direct"
	[ "$filesystem" = f2fs ] && modes="buffered direct small"
	[ -b "$target" ] || files
	offset=0
	[ "$medium" = fdp ] && handles >/tmp/before
	for mode in $modes; do
		for hint in $hints; do
			probe "$mode" "$hint"
		done
	done
	case $filesystem in
	f2fs) turns ;;
	xfs-zoned) zones ;;
	esac
	# the next one's drive is watched: nothing of this one may still be on its way
	sync
}

# Makes the files, and sets their hints: an inode keeps it as long as it is in memory.
files() {
	for hint in $hints; do
		for mode in $modes turns; do
			: >"$target/$mode-$hint"
		done
		[ "$hint" = not-set ] || set_hint "$hint" "$target"/*-"$hint"
	done
}

set_hint() {
	shelflife hint set "$@" >/dev/null 2>/tmp/said || echo "refused $(tail -n 1 /tmp/said)" >&3
}

# Does the file system sort by hint itself? Files are written in turns: those of one log come to lie
# between each other. Pieces of more than 16 pages, as f2fs puts what has less to write into its hot
# log whatever the hint (fs/f2fs/data.c f2fs_write_cache_pages, min_hot_blocks).
turns() {
	for turn in 0 1 2; do
		for hint in $hints; do
			file=$target/turns-$hint
			put bs=128k count=1 seek=$turn
		done
	done
	for hint in $hints; do
		# physical blocks of each extent: first..last
		filefrag -v "$target/turns-$hint" |
			sed -n 's/^ *[0-9]*: *[0-9]*\.\. *[0-9]*: *\([0-9]*\)\.\. *\([0-9]*\):.*/\1 \2/p' |
			awk -v hint="$hint" 'NR == 1 { min = $1 } { if ($1 < min) min = $1; if ($2 > max) max = $2 }
				END { if (NR) print "log", hint, min, max }' >&3
	done
}

# Zoned XFS says for which hint a zone is open.
zones() {
	sed -n 's/.*zone [0-9]*.*hint \([A-Z]*\).*/\1/p' /proc/self/mountstats |
		tr '[:upper:]' '[:lower:]' | sort -u | sed 's/^/zone /' >&3
}

probe() {
	echo "probe $1 $2" >&3
	file=$target/$1-$2
	seek=0
	if [ -b "$target" ]; then
		file=$target
		seek=$offset
		offset=$((offset + 2))
		[ "$2" = not-set ] || set_hint "$2" "$file"
	fi
	[ -e $groups ] && echo 0 >$groups
	watch
	case $1 in
	buffered) put bs=1M count=2 seek="$seek" ;;
	direct) put bs=1M count=2 seek="$seek" oflag=direct ;;
	small) for piece in 0 1 2 3 4 5 6 7; do put bs=16k count=1 seek=$piece; done ;;
	esac
	# what a journal holds goes to its place now
	[ "$options" = data=journal ] && fsfreeze --freeze "$target" && fsfreeze --unfreeze "$target"
	unwatch
	writes >/tmp/writes
	cat /tmp/writes >&3
	if [ "$medium" = scsi ] && [ -e $groups ]; then
		awk '$2 > 0 { print "group", $1, $2 }' $groups >&3
	fi
	# only writes with a directive say which handle they want
	[ "$medium" = fdp ] && grep -q 'nvme 0x2' /tmp/writes && moved
	[ -b "$target" ] && [ "$2" != not-set ] && set_hint not-set "$file"
}

put() {
	dd if=/lab/noise "of=$file" conv=notrunc,fsync "$@" 2>/tmp/said ||
		echo "unwritten $(tail -n 1 /tmp/said)" >&3
}

# What the driver of a $medium is told, from here to unwatch, is in $tracing/trace.
watch() {
	case $medium in
	scsi) event=scsi/scsi_dispatch_cmd_start ;;
	fdp | nvme) event=nvme/nvme_setup_cmd ;;
	virtio) event=block/block_rq_issue ;;
	esac
	echo >$tracing/trace
	echo 1 >"$tracing/events/$event/enable"
}

unwatch() {
	echo 0 >"$tracing/events/$event/enable"
}

# Sums the sectors per tag.
writes() {
	case $medium in
	scsi)
		# raw= is the command block: WRITE(10) has the group in byte 6, WRITE(16) in byte 14
		sed -n 's/.*cmnd=(WRITE_\(10\|16\) .*txlen=\([0-9]*\) .*raw=\([0-9a-f ]*\)).*/\1 \2 \3/p' $tracing/trace |
			awk '{ tag = $1 == 10 ? $9 : $17; sum[tag] += $2 } END { for (t in sum) print "write scsi", t, sum[t] }'
		;;
	fdp | nvme)
		sed -n 's/.*cmd=(nvme_cmd_write .*len=\([0-9]*\), ctrl=\(0x[0-9a-f]*\), dsmgmt=\([0-9]*\).*/\1 \2:\3/p' $tracing/trace |
			awk '{ sum[$2] += $1 + 1 } END { for (t in sum) print "write nvme", t, sum[t] }'
		;;
	virtio)
		# the protocol has no field for a hint
		awk '/block_rq_issue: .* W/ { for (i = 1; i < NF; i++) if ($i == "+") sum += $(i + 1) }
			END { if (sum) print "write virtio 0", sum }' $tracing/trace
		;;
	esac
}

# Placement identifiers and what is left to write in their reclaim units.
handles() {
	# they are the same for all namespaces
	nvme fdp status "$(echo "$all_fdp" | head -n 1)" |
		awk '/Placement Identifier/ { id = $3 + 0 } /RUAMW/ { print id, $NF }'
}

# Which of them moved since /tmp/before.
moved() {
	handles >/tmp/after
	paste /tmp/before /tmp/after | awk '$2 != $4 { print "handle", $1, $2, $4 }' >&3
	mv /tmp/after /tmp/before
}

# say WORD COMMAND… : the command's answer in one line, with its exit code
say() {
	word=$1
	shift
	started=$(cut -d ' ' -f 1 /proc/uptime)
	"$@" >/tmp/answer 2>/tmp/said
	code=$?
	took=$(awk -v a="$started" '{ printf "%d", ($1 - a) * 1000 }' /proc/uptime)
	echo "said $word $code $took $(tr '\n' ' ' </tmp/answer)" >&3
	[ -s /tmp/said ] && echo "said $word-error $(tr '\n' ' ' </tmp/said | head -c 400)" >&3
}
