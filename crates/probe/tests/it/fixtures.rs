//! The machines, and what is said of each.

use std::path::Path;

use insta::{assert_json_snapshot, assert_snapshot};
use shelflife_lifetime::Lifetime;

use crate::drives::{self, fdp, fdp_drive, nvme, placements, scsi, streams};
use crate::machine::Machine;

#[test]
fn consumer_nvme() {
    let mut machine = Machine::new("6.18.5-amd64");
    let folder = nvme(&mut machine, 0, "Samsung SSD 990 PRO 2TB");
    machine.partition(&folder, "nvme0n1p2", (259, 2));
    machine.mount((259, 2), "/srv/pg", "ext4", "/dev/nvme0n1p2", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn consumer_nvme_unprivileged() {
    let mut machine = Machine::new("6.18.5-amd64").unprivileged();
    nvme(&mut machine, 0, "Samsung SSD 990 PRO 2TB");
    machine.mount((259, 0), "/srv/pg", "xfs", "/dev/nvme0n1", "attr2");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn nvme_before_streams() {
    let mut machine = Machine::new("6.12.95+deb12-amd64");
    nvme(&mut machine, 0, "ACME FDP 1.92TB");
    fdp(&mut machine, "nvme0n1", true, 1);
    machine.mount((259, 0), "/srv/pg", "f2fs", "/dev/nvme0n1", "active_logs=6");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn fdp_off() {
    let mut machine = Machine::new("7.3.4-amd64");
    nvme(&mut machine, 0, "ACME FDP 1.92TB");
    fdp(&mut machine, "nvme0n1", false, 1);
    machine.mount((259, 0), "/srv/pg", "f2fs", "/dev/nvme0n1", "active_logs=6");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn fdp_with_8_handles() {
    let mut machine = Machine::new("7.3.4-amd64");
    fdp_drive(&mut machine);
    machine.mount((259, 0), "/srv/pg", "f2fs", "/dev/nvme0n1", "active_logs=6");
    assert_snapshot!(machine.says("/srv/pg"));
    let report = machine.doctor().path(Path::new("/srv/pg")).unwrap();
    assert_json_snapshot!("fdp_with_8_handles_json", report);
}

#[test]
fn fdp_under_ext4_on_a_partition() {
    let mut machine = Machine::new("7.3.4-amd64");
    let folder = fdp_drive(&mut machine);
    machine.partition(&folder, "nvme0n1p1", (259, 1));
    machine.mount((259, 1), "/srv/pg", "ext4", "/dev/nvme0n1p1", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn fdp_as_a_raw_device() {
    let mut machine = Machine::new("6.18.5-amd64");
    fdp_drive(&mut machine);
    // The namespace shares handles: identifiers 0 to 2 only, and two of them lead to one handle.
    placements(&mut machine, "nvme0n1", &[0, 1, 1]);
    machine.file("/sys/block/nvme0n1/queue/max_write_streams", "3\n");
    assert_snapshot!(machine.says("/dev/nvme0n1"));
}

#[test]
fn reclaim_groups_more_than_one() {
    let mut machine = Machine::new("7.3.4-amd64");
    nvme(&mut machine, 0, "ACME FDP 1.92TB");
    fdp(&mut machine, "nvme0n1", true, 4);
    machine.mount((259, 0), "/srv/pg", "f2fs", "/dev/nvme0n1", "active_logs=6");
    assert_snapshot!(machine.says("/srv/pg"));
}

fn ufs(release: &str) -> Machine {
    let mut machine = Machine::new(release);
    let folder = scsi(&mut machine, 0, "ufshcd", ("SAMSUNG", "KLUFG8RHDA-B2D1"));
    streams(&mut machine, &folder, 5);
    machine.partition(&folder, "sda7", (8, 7));
    machine
}

#[test]
fn ufs_like_scsi() {
    let mut machine = ufs("6.18.5-arm64");
    machine.mount((8, 7), "/srv/pg", "ext4", "/dev/sda7", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn ufs_unprivileged() {
    let mut machine = ufs("6.18.5-arm64").unprivileged();
    machine.mount((8, 7), "/srv/pg", "ext4", "/dev/sda7", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn ufs_with_ext4_before_6_13() {
    let mut machine = ufs("6.12.95+deb13-arm64");
    machine.mount((8, 7), "/srv/pg", "ext4", "/dev/sda7", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn ufs_with_f2fs_and_two_streams() {
    let mut machine = ufs("6.18.5-arm64");
    streams(&mut machine, "/sys/block/sda", 2);
    machine.mount((8, 7), "/srv/pg", "f2fs", "/dev/sda7", "active_logs=6");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn f2fs_before_6_9() {
    let mut machine = ufs("6.1.0-40-arm64");
    machine.mount((8, 7), "/srv/pg", "f2fs", "/dev/sda7", "active_logs=6");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn zoned_xfs() {
    let mut machine = Machine::new("6.18.5-amd64");
    scsi(&mut machine, 0, "mpt3sas", ("WDC", "WSH722626ALE6L4"));
    machine.mount((8, 0), "/srv/pg", "xfs", "/dev/sda", "attr2,lifetime");
    machine.mount_stats(
        "device /dev/sda mounted on /srv/pg with fstype xfs\n\tmax open zones: 128\n\
         \tzone 3, wp 65536, written 65536, used 65536, hint SHORT\n",
    );
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn usb_disk() {
    let mut machine = Machine::new("6.18.5-amd64");
    let folder = scsi(&mut machine, 1, "uas", ("SanDisk", "Extreme 55AE"));
    streams(&mut machine, &folder, 5);
    machine.mount((8, 16), "/srv/pg", "ext4", "/dev/sdb", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn ebs() {
    let mut machine = Machine::new("6.14.0-1018-aws");
    nvme(&mut machine, 1, "Amazon Elastic Block Store");
    machine.mount((259, 10), "/srv/pg", "ext4", "/dev/nvme1n1", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn persistent_disk() {
    let mut machine = Machine::new("6.12.48+deb13-cloud-amd64");
    scsi(&mut machine, 1, "virtio_scsi", ("Google", "PersistentDisk"));
    machine.mount((8, 16), "/srv/pg", "ext4", "/dev/sdb", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn azure() {
    let mut machine = Machine::new("6.14.0-1012-azure");
    scsi(&mut machine, 2, "storvsc_host_t", ("Msft", "Virtual Disk"));
    machine.mount((8, 32), "/srv/pg", "xfs", "/dev/sdc", "attr2");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn md_raid5() {
    let mut machine = Machine::new("6.18.5-amd64");
    for n in 0..3 {
        let folder = scsi(&mut machine, n, "mpt3sas", ("KIOXIA", "PM7-V-STREAMS"));
        streams(&mut machine, &folder, 5);
    }
    let folder = machine.disk("md0", (9, 0), "virtual/block");
    machine.file(&format!("{folder}/md/level"), "raid5\n");
    machine.slaves(&folder, &["sda", "sdb", "sdc"]);
    machine.mount((9, 0), "/srv/pg", "ext4", "/dev/md0", "stripe=256");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn md_raid1() {
    let mut machine = Machine::new("6.18.5-amd64");
    for n in 0..2 {
        let folder = scsi(&mut machine, n, "mpt3sas", ("KIOXIA", "PM7-V-STREAMS"));
        streams(&mut machine, &folder, 5);
    }
    let folder = machine.disk("md0", (9, 0), "virtual/block");
    machine.file(&format!("{folder}/md/level"), "raid1\n");
    machine.slaves(&folder, &["sda", "sdb"]);
    machine.mount((9, 0), "/srv/pg", "xfs", "/dev/md0", "attr2");
    assert_snapshot!(machine.says("/srv/pg"));
}

/// A logical volume with LUKS on it, on a partition of a drive with FDP.
fn luks_on_lvm(machine: &mut Machine) {
    let drive = fdp_drive(machine);
    machine.partition(&drive, "nvme0n1p3", (259, 3));
    let volume = machine.disk("dm-0", (254, 0), "virtual/block");
    machine
        .file(&format!("{volume}/dm/uuid"), "LVM-gMMjbR3xNeqN4RgB2RdcLmCVcQWTBpGSZYqtEkHtfLwv\n");
    machine.file(&format!("{volume}/dm/name"), "vg-pg\n");
    machine.slaves(&volume, &["nvme0n1p3"]);
    let crypt = machine.disk("dm-1", (254, 1), "virtual/block");
    machine.file(&format!("{crypt}/dm/uuid"), "CRYPT-LUKS2-0f2e4d-pgdata\n");
    machine.file(&format!("{crypt}/dm/name"), "pgdata\n");
    machine.slaves(&crypt, &["dm-0"]);
    machine.mount((254, 1), "/srv/pg", "ext4", "/dev/mapper/pgdata", "discard");
}

#[test]
fn luks_on_lvm_for_root() {
    let mut machine = Machine::new("7.3.4-amd64");
    luks_on_lvm(&mut machine);
    machine.table((254, 0), &[("linear", "259:3 2048")]);
    machine.table((254, 1), &[("crypt", "aes-xts-plain64 :64:logon:x 0 254:0 32768")]);
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn luks_on_lvm_unprivileged() {
    let mut machine = Machine::new("7.3.4-amd64").unprivileged();
    luks_on_lvm(&mut machine);
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn a_mapper_device_without_a_name() {
    let mut machine = Machine::new("7.3.4-amd64").unprivileged();
    let folder = scsi(&mut machine, 0, "mpt3sas", ("KIOXIA", "PM7-V-STREAMS"));
    streams(&mut machine, &folder, 5);
    let volume = machine.disk("dm-0", (254, 0), "virtual/block");
    machine.file(&format!("{volume}/dm/uuid"), "\n");
    machine.slaves(&volume, &["sda"]);
    machine.mount((254, 0), "/srv/pg", "ext4", "/dev/mapper/x", "discard");
    assert_snapshot!(machine.says("/srv/pg"));
}

#[test]
fn lvm_raid_by_its_table() {
    let mut machine = Machine::new("7.3.4-amd64");
    let disk = scsi(&mut machine, 0, "mpt3sas", ("KIOXIA", "PM7-V-STREAMS"));
    streams(&mut machine, &disk, 5);
    let volume = machine.disk("dm-0", (254, 0), "virtual/block");
    machine.file(&format!("{volume}/dm/uuid"), "LVM-x\n");
    machine.slaves(&volume, &["sda"]);
    machine.mount((254, 0), "/srv/pg", "ext4", "/dev/mapper/x", "discard");
    machine
        .table((254, 0), &[("linear", "8:0 0"), ("raid", "raid6_zr 3 128 region_size 1024 4 -")]);
    let says = machine.says("/srv/pg");
    assert!(says.contains("dm-raid raid6"), "{says}");
    assert!(says.starts_with("Hints on /srv/pg do not reach sda"), "{says}");
    machine.table((254, 0), &[("raid", "raid1 3 0 region_size 1024 2 -")]);
    assert!(machine.says("/srv/pg").starts_with("Hints on /srv/pg reach sda"));
}

#[test]
fn multipath_nvme() {
    let mut machine = Machine::new("7.3.4-amd64");
    let head = machine.disk("nvme0n1", (259, 0), "virtual/nvme-subsystem/nvme-subsys0");
    machine.file(&format!("{head}/nsid"), "1\n");
    machine.file("/sys/devices/virtual/nvme-subsystem/nvme-subsys0/model", "ACME FDP 3.84TB\n");
    for controller in 0..2 {
        let above = format!("pci0000:00/0000:00:0{controller}.0/nvme/nvme{controller}");
        let path = machine.disk(&format!("nvme0c{controller}n1"), (259, controller + 1), &above);
        machine.file(&format!("{path}/hidden"), "1\n");
    }
    drives::identify(&mut machine, "nvme0n1", "ACME FDP 3.84TB", 1);
    machine.file(&format!("{head}/queue/max_write_streams"), "8\n");
    fdp(&mut machine, "nvme0n1", true, 1);
    placements(&mut machine, "nvme0n1", &[0, 1, 2, 3, 4, 5, 6, 7]);
    machine.mount((259, 0), "/srv/pg", "f2fs", "/dev/nvme0n1", "active_logs=6");
    assert_snapshot!(machine.says("/srv/pg"));
    let devices = machine.doctor().everything().devices;
    assert_eq!(devices.len(), 1, "paths are hidden: {devices:?}");
}

#[test]
fn a_containers_overlay() {
    let mut machine = Machine::new("7.3.4-amd64").unprivileged();
    fdp_drive(&mut machine);
    machine.mount(
        (0, 80),
        "/",
        "overlay",
        "overlay",
        "lowerdir=/var/lib/docker/overlay2/l/A:/var/lib/docker/overlay2/l/B,\
         upperdir=/var/lib/docker/overlay2/c0ffee/diff,workdir=/var/lib/docker/overlay2/c0ffee/work",
    );
    assert_snapshot!(machine.says("/"));
}

#[test]
fn the_call_is_einval() {
    let mut machine = Machine::new("4.4.0").without_hints();
    machine.mount((0, 30), "/", "9p", "none", "trans=fd");
    assert_snapshot!(machine.says("/"));
}

#[test]
fn a_loop_device_writes_with_its_files_hint() {
    let mut machine = ufs("6.18.5-arm64");
    machine.mount((8, 7), "/srv", "ext4", "/dev/sda7", "discard");
    machine.at("/srv/image", (8, 7));
    machine.hint("/srv/image", Lifetime::Medium);
    let folder = machine.disk("loop0", (7, 0), "virtual/block");
    machine.file(&format!("{folder}/loop/backing_file"), "/srv/image\n");
    machine.mount((7, 0), "/mnt", "ext4", "/dev/loop0", "discard");
    assert_snapshot!(machine.says("/mnt"));
}

#[test]
fn btrfs_on_two_devices_compressed() {
    let mut machine = ufs("6.18.5-arm64");
    let second = scsi(&mut machine, 1, "ufshcd", ("SAMSUNG", "KLUFG8RHDA-B2D1"));
    streams(&mut machine, &second, 5);
    for name in ["sda7", "sdb"] {
        machine.file(&format!("/sys/fs/btrfs/0a1b-2c3d/devices/{name}/x"), "");
    }
    machine.mount((0, 44), "/srv/pg", "btrfs", "/dev/sda7", "compress-force=zstd:3,space_cache=v2");
    machine.mount((0, 45), "/srv/plain", "btrfs", "/dev/sda7", "space_cache=v2");
    assert_snapshot!(machine.says("/srv/pg"));
    let says = machine.says("/srv/plain");
    assert!(says.starts_with("Hints on /srv/plain reach sda and sdb, which keeps"), "{says}");
}

#[test]
fn attributes_of_the_file_count() {
    let mut machine = ufs("6.18.5-arm64");
    machine.mount((8, 7), "/srv/pg", "ext4", "/dev/sda7", "discard");
    machine.attributes("/srv/pg", 0x4000);
    assert!(machine.says("/srv/pg").contains("data=journal"));
    machine.mount((0, 44), "/srv/b", "btrfs", "/dev/sda7", "space_cache=v2");
    machine.attributes("/srv/b", 0x4);
    assert!(machine.says("/srv/b").starts_with("Hints on /srv/b do not reach sda"));
    // NOCOW goes before compression.
    machine.attributes("/srv/b", 0x4 | 0x0080_0000);
    assert!(machine.says("/srv/b").starts_with("Hints on /srv/b reach sda"));
}

#[test]
fn file_systems_without_requests_of_their_own() {
    let mut machine = Machine::new("7.3.4-amd64");
    machine.mount((0, 50), "/srv/pg", "nfs4", "filer:/pg", "vers=4.2");
    machine.mount((0, 51), "/mnt/x", "fuse.sshfs", "host:", "user_id=0");
    machine.mount((0, 52), "/mnt/new", "bcachefs", "/dev/nowhere", "x");
    assert_snapshot!(machine.says("/srv/pg"));
    assert!(machine.says("/mnt/x").starts_with("Hints on /mnt/x do not reach a drive: fuse.sshfs"));
    assert!(machine.says("/mnt/new").starts_with("Whether hints on /mnt/new reach a drive is not"));
}
