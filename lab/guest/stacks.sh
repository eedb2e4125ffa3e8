#!/bin/busybox sh
# shellcheck disable=SC2034 # $target and $skip are for the callers
# Builds a stack and takes it down again.
#
#   up MEDIUM LAYER FILESYSTEM OPTIONS   sets $target: the folder or device to write to; or $why,
#                                        and $skip where that is no failure
#   down
#
# Each step pushes its undoing on $undo, and down runs them in reverse.

export DM_DISABLE_UDEV=1
undo=
target=
why=
skip=
scsi_now=

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

# LVM without udev, which would make its device nodes and tell it of devices.
lvm() {
	verb=$1
	shift
	command lvm "$verb" --config 'activation{udev_sync=0 udev_rules=0 monitoring=0} devices{use_devicesfile=0} backup{backup=0 archive=0}' "$@"
}

# The block devices of the NVMe controller with this serial number, in order of namespace.
namespaces() {
	for controller in /sys/class/nvme/nvme*; do
		[ "$(tr -d ' ' <"$controller/serial")" = "$1" ] || continue
		subsystem=$(cat "$controller/subsysnqn")
		for head in /sys/block/nvme*n*; do
			case $head in *nvme*c*n*) continue ;; esac
			nqn=$(cat "$head/device/subsysnqn" 2>/dev/null)
			[ "$nqn" = "$subsystem" ] && echo "$(cat "$head/nsid") /dev/${head##*/}"
		done
	done | sort -n | cut -d ' ' -f 2
}

# scsi_debug's disks are memory: one big one (XFS wants 300 MB) or three small ones.
scsi_disks() {
	[ "$1" = "$scsi_now" ] && return
	scsi_now=
	tries=0
	while [ -d /sys/module/scsi_debug ] && ! try modprobe -r scsi_debug; do
		# what was unmounted just now may still be on its way out
		sleep 0.2
		tries=$((tries + 1))
		[ $tries -lt 50 ] || return
	done
	why=
	size=330
	[ "$1" = 1 ] || size=80
	try modprobe scsi_debug delay=0 per_host_store=1 "add_host=$1" "dev_size_mb=$size" || return
	tries=0
	until [ "$(scsi_list | wc -l)" = "$1" ]; do
		sleep 0.1
		tries=$((tries + 1))
		if [ $tries -gt 100 ]; then
			why="scsi_debug's disks did not appear"
			return
		fi
	done
	scsi_now=$1
}

scsi_list() {
	for disk in /sys/block/sd*; do
		[ "$(cat "$disk/device/vendor" 2>/dev/null)" = "Linux   " ] && echo "/dev/${disk##*/}"
	done
}

# disks MEDIUM COUNT: sets $disks
disks() {
	disks=
	case $1 in
	scsi)
		scsi_disks "$2"
		[ -z "$scsi_now" ] || disks=$(scsi_list)
		;;
	fdp) if [ "$2" = 1 ]; then disks=$(namespaces labfdp | head -n 1); else disks=$(namespaces labfdp | tail -n +2); fi ;;
	nvme) disks=$(namespaces labplain | head -n 1) ;;
	virtio) disks=/dev/vda ;;
	esac
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
		try lvm vgcreate lab "$device" || return 1
		defer lvm vgremove -f -y lab
		try lvm lvcreate -y -Wn -Zn -n data -l 100%FREE lab || return 1
		defer lvm vgchange -an lab
		device=/dev/mapper/lab-data
		wait_for $device
		;;
	luks)
		printf secret >/tmp/key
		try cryptsetup -q luksFormat --type luks2 --disable-locks --pbkdf pbkdf2 \
			--pbkdf-force-iterations 1000 --key-file /tmp/key "$device" || return 1
		try cryptsetup open --disable-locks --key-file /tmp/key "$device" labcrypt || return 1
		defer cryptsetup close labcrypt
		device=/dev/mapper/labcrypt
		;;
	raid*)
		count=$#
		[ "$kind" = raid5 ] || { count=2; set -- "$1" "$2"; }
		try mdadm --create /dev/md9 --run --assume-clean -e 1.2 -l "${kind#raid}" -n "$count" "$@" || return 1
		defer mdadm --zero-superblock "$@"
		defer mdadm --stop /dev/md9
		device=/dev/md9
		;;
	loop)
		mkdir -p /mnt/outer
		try mkfs.ext4 -q -F "$device" || return 1
		try mount -t ext4 "$device" /mnt/outer || return 1
		defer umount /mnt/outer
		dd if=/dev/zero of=/mnt/outer/image bs=1M count=200 2>/dev/null
		try losetup /dev/loop0 /mnt/outer/image || return 1
		defer losetup -d /dev/loop0
		device=/dev/loop0
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

up() {
	undo=
	why=
	skip=
	count=1
	case $2 in raid*) count=3 ;; esac
	[ "$3" = xfs-zoned ] && count=1
	disks "$1" $count
	kind=$2 filesystem=$3 options=$4
	# shellcheck disable=SC2086 # a list of devices
	set -- $disks
	if [ $# = 0 ]; then
		why=${why:-"no device"}
		return 1
	fi
	wipe "$@"
	layer "$kind" "$@" || return 1
	mkdir -p /mnt/file /mnt/merged
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
		# not every kernel has it
		skip=skipped
		# a conventional device as the zoned part: the largest namespace; the rest on another
		small=$(namespaces labplain | head -n 1)
		try mkfs.xfs -q -f -r "zoned=1,rtdev=$device" "$small" || return 1
		extra="-o rtdev=$device"
		device=$small
		;;
	btrfs) try mkfs.btrfs -q -f "$device" || return 1 ;;
	f2fs) try mkfs.f2fs -q -f "$device" || return 1 ;;
	esac
	# shellcheck disable=SC2086 # lists of words
	try mount -t $type $with $extra "$device" /mnt/file || return 1
	defer umount /mnt/file
	target=/mnt/file
	if [ "$filesystem" = overlay ]; then
		mkdir -p /mnt/file/lower /mnt/file/upper /mnt/file/work
		try mount -t overlay -o lowerdir=/mnt/file/lower,upperdir=/mnt/file/upper,workdir=/mnt/file/work \
			overlay /mnt/merged || return 1
		defer umount /mnt/merged
		target=/mnt/merged
	fi
}

down() {
	sync
	printf '%s' "$undo" | while read -r line; do
		# shellcheck disable=SC2086 # a command with its words
		$line >/tmp/said 2>&1 || { echo "down: $line: $(cat /tmp/said)"; }
	done
	undo=
}
