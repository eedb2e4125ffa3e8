//! From paths down to the devices that issue requests, on trees of sysfs as stacks have them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use shelflife_record::{Error, System, Target};
use tempfile::TempDir;

/// A made-up machine.
struct Machine {
    root: TempDir,
    mounts: String,
}

impl Machine {
    fn new() -> Machine {
        let root = tempfile::tempdir().unwrap();
        for folder in ["sys/dev/block", "sys/block", "sys/class/block", "sys/fs/btrfs", "proc/self"]
        {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Machine { root, mounts: String::new() }
    }

    fn folder(&self, device: &str) -> PathBuf {
        self.root.path().join("sys/devices").join(device)
    }

    /// A device in `sys/devices/PATH`; of those below it, its slaves.
    fn device(&self, path: &str, number: Option<&str>, queues: bool, slaves: &[&str]) -> &Machine {
        let folder = self.folder(path);
        let name = folder.file_name().unwrap();
        fs::create_dir_all(folder.join("slaves")).unwrap();
        fs::create_dir_all(folder.join("holders")).unwrap();
        fs::write(folder.join("size"), "2048\n").unwrap();
        fs::write(folder.join("diskseq"), "7\n").unwrap();
        if queues {
            fs::create_dir(folder.join("mq")).unwrap();
        }
        for slave in slaves {
            let slave = self.folder(slave);
            symlink(&slave, folder.join("slaves").join(slave.file_name().unwrap())).unwrap();
        }
        let system = self.root.path().join("sys");
        symlink(&folder, system.join("class/block").join(name)).unwrap();
        symlink(&folder, system.join("block").join(name)).unwrap();
        if let Some(number) = number {
            symlink(&folder, system.join("dev/block").join(number)).unwrap();
        }
        self
    }

    fn partition(&self, path: &str, number: &str) -> &Machine {
        self.device(path, Some(number), false, &[]);
        fs::write(self.folder(path).join("partition"), "1\n").unwrap();
        self
    }

    fn mount(&mut self, number: &str, point: &str, kind: &str, source: &str, options: &str) {
        self.mounts += &format!("1 1 {number} / {point} rw - {kind} {source} {options}\n");
    }

    fn of(&self, path: &str) -> Result<Target, Error> {
        fs::write(self.root.path().join("proc/self/mountinfo"), &self.mounts).unwrap();
        System::at(self.root.path()).of_path(Path::new(path))
    }

    fn names(&self, path: &str) -> String {
        self.of(path).unwrap().names()
    }
}

#[test]
fn a_partition_is_its_whole_drive() {
    let mut machine = Machine::new();
    machine.device("pci/sda", Some("8:0"), true, &[]).partition("pci/sda/sda2", "8:2");
    machine.mount("8:2", "/", "ext4", "/dev/sda2", "rw");
    let target = machine.of("/srv/pg").unwrap();
    assert_eq!(target.names(), "sda");
    assert_eq!(target.leaves[0].bytes, Some(2048 * 512));
    assert_eq!(target.leaves[0].disks[0].sequence, Some(7));
    assert_eq!(target.mount.unwrap().point, Path::new("/"));
}

#[test]
fn mapped_and_mirrored_devices_lead_to_all_their_leaves() {
    let mut machine = Machine::new();
    machine
        .device("pci/sda", Some("8:0"), true, &[])
        .partition("pci/sda/sda1", "8:1")
        .partition("pci/sda/sda2", "8:2")
        .device("pci/sdb", Some("8:16"), true, &[])
        .device("virtual/md0", Some("9:0"), false, &["pci/sda/sda1", "pci/sdb"])
        .device("virtual/dm-0", Some("253:0"), false, &["virtual/md0"])
        .device("virtual/dm-1", Some("253:1"), false, &["virtual/dm-0", "pci/sda/sda2"]);
    machine.mount("253:1", "/srv", "xfs", "/dev/mapper/vg-pg", "rw");
    assert_eq!(machine.names("/srv/pg"), "sda, sdb");
}

#[test]
fn a_multipath_nvme_is_one_device_with_the_names_of_its_paths() {
    let mut machine = Machine::new();
    machine
        .device("virtual/nvme0n1", Some("259:0"), false, &[])
        .device("pci/nvme0c0n1", None, true, &[])
        .device("pci/nvme0c1n1", None, true, &[])
        .device("pci/nvme0c1n12", None, true, &[])
        .device("pci/nvme1n1", Some("259:9"), true, &[]);
    machine.mount("259:0", "/srv", "ext4", "/dev/nvme0n1", "rw");
    machine.mount("259:9", "/one", "ext4", "/dev/nvme1n1", "rw");
    let target = machine.of("/srv").unwrap();
    assert_eq!(target.names(), "nvme0n1");
    let disks: Vec<&str> = target.leaves[0].disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(disks, ["nvme0n1", "nvme0c0n1", "nvme0c1n1"]);
    assert_eq!(machine.of("/one").unwrap().leaves[0].disks.len(), 1);
}

#[test]
fn a_btrfs_is_on_all_its_devices() {
    let mut machine = Machine::new();
    machine
        .device("pci/sdc", Some("8:32"), true, &[])
        .device("pci/sdd", Some("8:48"), true, &[])
        .device("pci/sde", Some("8:64"), true, &[]);
    let devices = machine.root.path().join("sys/fs/btrfs/0815/devices");
    fs::create_dir_all(&devices).unwrap();
    for name in ["sdc", "sdd"] {
        symlink(machine.folder(&format!("pci/{name}")), devices.join(name)).unwrap();
    }
    machine.mount("0:35", "/srv", "btrfs", "/dev/sdd", "rw,subvol=/");
    machine.mount("0:36", "/alone", "btrfs", "/dev/sde", "rw");
    assert_eq!(machine.names("/srv/x"), "sdc, sdd");
    assert_eq!(machine.names("/alone"), "sde");
}

#[test]
fn an_xfs_has_its_log_elsewhere() {
    let mut machine = Machine::new();
    machine
        .device("pci/sda", Some("8:0"), true, &[])
        .device("pci/sdb", Some("8:16"), true, &[])
        .partition("pci/sdb/sdb1", "8:17");
    machine.mount("8:0", "/srv", "xfs", "/dev/sda", "rw,logdev=/dev/sdb1,noquota");
    assert_eq!(machine.names("/srv"), "sda, sdb");
}

#[test]
fn what_issues_no_requests_is_refused_with_a_reason() {
    let mut machine = Machine::new();
    machine.device("virtual/zram0", Some("252:0"), false, &[]);
    machine.mount("252:0", "/ram", "ext4", "/dev/zram0", "rw");
    machine.mount("0:40", "/tmp", "tmpfs", "tmpfs", "rw");
    machine.mount("0:41", "/box", "overlay", "overlay", "rw,upperdir=/srv/u");
    let told = |path: &str| {
        let error = machine.of(path).unwrap_err();
        assert!(error.is_denied());
        error.to_string()
    };
    assert!(told("/ram").starts_with("zram0 takes bios"), "{}", told("/ram"));
    assert_eq!(told("/tmp/x"), "/tmp/x lies on tmpfs, which has no block device here");
    assert!(told("/box").ends_with("(its upperdir)"));
    assert!(matches!(machine.of("/"), Err(Error::NoDevice { .. })));
}

#[test]
fn a_stack_without_end_ends() {
    let mut machine = Machine::new();
    machine.device("virtual/dm-0", Some("253:0"), false, &["virtual/dm-0"]);
    machine.mount("253:0", "/srv", "ext4", "/dev/dm-0", "rw");
    // no leaf: nothing to record
    assert!(machine.of("/srv").is_err());
}
