#!/bin/busybox sh
# shellcheck disable=SC2034 # $target and $skip are for the callers
# Builds stacks, several side by side, and takes them down again.
#
#   disks DISKS MIB        so many SCSI disks of this size; of the other kinds there are enough
#   up NAME MEDIUM LAYER FILESYSTEM OPTIONS
#                          sets $target: the folder /mnt/NAME, or a device; or $why, and $skip where
#                          that is no failure. Takes disks that no stack has yet
#   alone NAME …           the same on disks of its own
#   down                   takes down all that is up
#
# Each step pushes its undoing on $undo, and down runs them in reverse.

export DM_DISABLE_UDEV=1
undo=
target=
why=
skip=
scsi_now=
stacks=0

defer() {
	undo="$*
$undo"
}

# Runs a command; on failure keeps its last words in $why.
try() {
	"$@" >/tmp/said 2>&1 && return 0
	why="$1: $(tail -n 1 /tmp/said)"
	cat /tmp/said
	return 1
}

# lvm DEVICE VERB …: without udev, which would make its device nodes and tell it of devices; it looks
# at no other device.
lvm() {
	only=$1
	verb=$2
	shift 2
	command lvm "$verb" --config "activation{udev_sync=0 udev_rules=0 monitoring=0} devices{use_devicesfile=0 filter=[\"a|^$only\$|\",\"r|.*|\"]} backup{backup=0 archive=0}" "$@"
}

# The block devices of the NVMe controllers whose serial numbers begin so, in order of namespace.
namespaces() {
	for controller in /sys/class/nvme/nvme*; do
		case $(tr -d ' ' <"$controller/serial") in "$1"*) ;; *) continue ;; esac
		subsystem=$(cat "$controller/subsysnqn")
		for head in /sys/block/nvme*n*; do
			case $head in *nvme*c*n*) continue ;; esac
			nqn=$(cat "$head/device/subsysnqn" 2>/dev/null)
			[ "$nqn" = "$subsystem" ] && echo "$(cat "$head/nsid") /dev/${head##*/}"
		done
	done | sort -n | cut -d ' ' -f 2
}

# scsi_disks COUNT MIB: scsi_debug's disks are memory.
scsi_disks() {
	[ "$*" = "$scsi_now" ] && return
	scsi_now=
	tries=0
	while [ -d /sys/module/scsi_debug ] && ! try modprobe -r scsi_debug; do
		# what was unmounted just now may still be on its way out
		sleep 0.2
		tries=$((tries + 1))
		[ $tries -lt 50 ] || return
	done
	why=
	if [ "$1" != 0 ]; then
		try modprobe scsi_debug delay=0 per_host_store=1 "add_host=$1" "dev_size_mb=$2" || return
	fi
	tries=0
	until [ "$(scsi_list | wc -l)" = "$1" ]; do
		sleep 0.1
		tries=$((tries + 1))
		if [ $tries -gt 100 ]; then
			why="scsi_debug's disks did not appear"
			return
		fi
	done
	scsi_now=$*
}

scsi_list() {
	for disk in /sys/block/sd*; do
		[ "$(cat "$disk/device/vendor" 2>/dev/null)" = "Linux   " ] && echo "/dev/${disk##*/}"
	done
}

disks() {
	undo=
	why=
	scsi_disks "$1" "$2"
	no_scsi=$why
	free_scsi=
	[ -n "$no_scsi" ] || free_scsi=$(scsi_list)
	all_fdp=${all_fdp:-$(namespaces labfdp)}
	all_nvme=${all_nvme:-$(namespaces labplain)}
	free_fdp=$all_fdp
	free_nvme=$all_nvme
	free_virtio=$(ls /dev/vd?)
}

# take MEDIUM COUNT: sets $taken to so many free disks
take() {
	taken=
	still=$2
	rest=
	free=
	eval "free=\$free_$1"
	for disk in $free; do
		if [ "$still" -gt 0 ]; then
			taken="$taken $disk"
			still=$((still - 1))
		else
			rest="$rest $disk"
		fi
	done
	eval "free_$1=\$rest"
	[ "$still" = 0 ] && return
	[ "$1" = scsi ] && why=$no_scsi
	why=${why:-"no free $1 disk"}
	return 1
}

# Disks under a layer.
needs() {
	case $1 in raid5) echo 3 ;; raid*) echo 2 ;; *) echo 1 ;; esac
}

wipe() {
	for disk in "$@"; do
		dd if=/dev/zero "of=$disk" bs=1M count=4 2>/dev/null
		mdadm --zero-superblock "$disk" 2>/dev/null
	done
	sync
}

# Puts a layer on the disks given and sets $device.
layer() {
	kind=$1
	shift
	device=$1
	case $kind in
	-) ;;
	part)
		echo 'start=2048, type=83' | try sfdisk -q "$device" || return 1
		case $device in *[0-9]) part=${device}p1 ;; *) part=${device}1 ;; esac
		wait_for "$part" || return 1
		defer sfdisk -q --delete "$device"
		device=$part
		;;
	lvm)
		group=lab$stacks
		try lvm "$device" vgcreate $group "$device" || return 1
		defer lvm "$device" vgremove -f -y $group
		try lvm "$device" lvcreate -y -Wn -Zn -n data -l 100%FREE $group || return 1
		defer lvm "$device" vgchange -an $group
		device=/dev/mapper/$group-data
		wait_for "$device"
		;;
	luks)
		printf secret >/tmp/key
		try cryptsetup -q luksFormat --type luks2 --disable-locks --pbkdf pbkdf2 \
			--pbkdf-force-iterations 1000 --key-file /tmp/key "$device" || return 1
		try cryptsetup open --disable-locks --key-file /tmp/key "$device" labcrypt$stacks || return 1
		defer cryptsetup close labcrypt$stacks
		device=/dev/mapper/labcrypt$stacks
		;;
	raid*)
		array=/dev/md$stacks
		try mdadm --create "$array" --run --assume-clean -e 1.2 -l "${kind#raid}" -n $# "$@" || return 1
		defer mdadm --zero-superblock "$@"
		defer mdadm --stop "$array"
		device=$array
		;;
	loop)
		outer=$mount.outer
		mkdir -p "$outer"
		try mkfs.ext4 -q -F "$device" || return 1
		try mount -t ext4 "$device" "$outer" || return 1
		defer umount "$outer"
		dd if=/dev/zero "of=$outer/image" bs=1M count=200 2>/dev/null
		device=$(losetup -f)
		try losetup "$device" "$outer/image" || return 1
		defer losetup -d "$device"
		;;
	*)
		why="no layer $kind"
		return 1
		;;
	esac
}

wait_for() {
	tries=0
	until [ -b "$1" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 50 ]; then
			why="$1 did not appear"
			return 1
		fi
		sleep 0.1
	done
}

alone() {
	# XFS wants 300 MB
	disks "$(needs "$3")" 330
	up "$@"
}

up() {
	why=
	skip=
	stacks=$((stacks + 1))
	mount=/mnt/$1
	medium=$2 kind=$3 filesystem=$4 options=$5
	take "$medium" "$(needs "$kind")" || return 1
	# shellcheck disable=SC2086 # a list of devices
	set -- $taken
	wipe "$@"
	layer "$kind" "$@" || return 1
	below=$mount
	[ "$filesystem" = overlay ] && below=$mount.below
	mkdir -p "$mount" "$below"
	target=
	with=
	[ "$options" = - ] || with="-o $options"
	type=$filesystem
	extra=
	case $filesystem in
	raw)
		target=$device
		return 0
		;;
	ext4 | overlay)
		type=ext4
		try mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -J size=8 "$device" || return 1
		;;
	# of the oldest kernel: a newer format can't be mounted there
	xfs) try mkfs.xfs -q -f -c options=/etc/xfs-format "$device" || return 1 ;;
	xfs-zoned)
		type=xfs
		# a conventional device as the zoned part, the rest on another
		take nvme 1 || return 1
		small=${taken# }
		try mkfs.xfs -q -f -r "zoned=1,rtdev=$device" "$small" || return 1
		extra="-o rtdev=$device"
		device=$small
		# not every kernel has it
		skip=skipped
		;;
	btrfs) try mkfs.btrfs -q -f "$device" || return 1 ;;
	f2fs) try mkfs.f2fs -q -f "$device" || return 1 ;;
	esac
	# shellcheck disable=SC2086 # lists of words
	try mount -t $type $with $extra "$device" "$below" || return 1
	defer umount "$below"
	if [ "$filesystem" = overlay ]; then
		mkdir -p "$below/lower" "$below/upper" "$below/work"
		try mount -t overlay -o "lowerdir=$below/lower,upperdir=$below/upper,workdir=$below/work" \
			overlay "$mount" || return 1
		defer umount "$mount"
	fi
	target=$mount
}

down() {
	sync
	printf '%s' "$undo" | while read -r line; do
		# shellcheck disable=SC2086 # a command with its words
		$line >/tmp/said 2>&1 || { echo "down: $line: $(cat /tmp/said)"; }
	done
	undo=
}
