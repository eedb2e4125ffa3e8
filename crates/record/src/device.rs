//! From a path or a device to the devices that issue the writes: mount, then partition, device
//! mapper, md, multipath down to the leaves.
//!
//! Invariant: only reads, all below one root, so that recorded trees of other machines test it. A
//! device that issues no requests (it hands its writes on, or is memory) is never a leaf.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use shelflife_mounts::{DevNumber, Mount, Mounts};

use crate::error::Error;

/// A device that issues requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leaf {
    /// Its name in `/sys/block`.
    pub name: String,
    /// What its requests carry as name: itself, or the paths of an NVMe multipath device.
    pub disks: Vec<Disk>,
    /// Its size in bytes.
    pub bytes: Option<u64>,
}

/// A disk as the kernel's requests know it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Disk {
    /// `gendisk.disk_name`.
    pub name: String,
    /// `gendisk.diskseq` (5.15 and later): another disk of this name has another.
    pub sequence: Option<u64>,
}

/// What to record, and how it was found.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Target {
    /// The path or device that was asked for, without links.
    pub asked: PathBuf,
    /// The mount that the path lies on; of a device, one of its mounts if it has any.
    pub mount: Option<Mount>,
    /// The devices that issue the requests, whole: other partitions' writes are on the same flash.
    pub leaves: Vec<Leaf>,
}

impl Target {
    /// The devices under a file or folder.
    ///
    /// # Errors
    ///
    /// The path is not there; its file system has no device here; its device issues no requests.
    pub fn of_path(path: &Path) -> Result<Target, Error> {
        let path = fs::canonicalize(path).map_err(Error::io("find", path))?;
        System::default().of_path(&path)
    }

    /// The devices under a device.
    ///
    /// # Errors
    ///
    /// It is not there or no block device, or it issues no requests.
    pub fn of_device(device: &Path) -> Result<Target, Error> {
        let path = fs::canonicalize(device).map_err(Error::io("find", device))?;
        let meta = fs::metadata(&path).map_err(Error::io("look at", &path))?;
        if !meta.file_type().is_block_device() {
            return Err(Error::NotADevice { path });
        }
        let number = DevNumber {
            major: rustix::fs::major(meta.rdev()),
            minor: rustix::fs::minor(meta.rdev()),
        };
        System::default().of_device(&path, number)
    }

    /// The devices' names, for people.
    pub fn names(&self) -> String {
        self.leaves.iter().map(|leaf| leaf.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Where sysfs and procfs are.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
}

impl Default for System {
    fn default() -> System {
        System::at("/")
    }
}

/// Stacks are not that high; a loop in a recorded tree must end.
const MAX_DEPTH: usize = 16;

impl System {
    /// A tree with `sys` and `proc` below `root`.
    pub fn at(root: impl Into<PathBuf>) -> System {
        System { root: root.into() }
    }

    /// What is mounted.
    ///
    /// # Errors
    ///
    /// The system refused.
    pub fn mounts(&self) -> Result<Mounts, Error> {
        let path = self.root.join("proc/self/mountinfo");
        let text = fs::read(&path).map_err(Error::io("read", &path))?;
        Ok(Mounts::parse(&text))
    }

    /// As [`Target::of_path`]; `path` is absolute and has no links.
    ///
    /// # Errors
    ///
    /// As [`Target::of_path`].
    pub fn of_path(&self, path: &Path) -> Result<Target, Error> {
        let mounts = self.mounts()?;
        let nowhere = |file_system: &str, advice| Error::NoDevice {
            path: path.to_owned(),
            file_system: file_system.to_owned(),
            advice,
        };
        let mount = mounts.of_path(path).ok_or_else(|| nowhere("no file system", ""))?.clone();
        let mut folders = Vec::new();
        if mount.device.major != 0 {
            folders.push(self.by_number(mount.device)?);
        } else if mount.file_system == "btrfs" {
            folders = self.of_btrfs(&mount);
        } else if let Some(folder) = self.by_name(&mount.source) {
            folders.push(folder);
        }
        for option in ["logdev", "rtdev"] {
            let more = mount.option(option).and_then(|device| self.by_name(Path::new(device)));
            folders.extend(more);
        }
        if folders.is_empty() {
            let advice = match mount.file_system.as_str() {
                "overlay" => "; name the folder below it that is written to (its upperdir)",
                _ => "",
            };
            return Err(nowhere(&mount.file_system, advice));
        }
        let leaves = self.leaves(&folders)?;
        Ok(Target { asked: path.to_owned(), mount: Some(mount), leaves })
    }

    /// As [`Target::of_device`], for the device `number`.
    ///
    /// # Errors
    ///
    /// As [`Target::of_device`].
    pub fn of_device(&self, path: &Path, number: DevNumber) -> Result<Target, Error> {
        let folder = self.by_number(number)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mounts = self.mounts()?;
        let mount = mounts.first_of(number, &name).cloned();
        let leaves = self.leaves(&[folder])?;
        Ok(Target { asked: path.to_owned(), mount, leaves })
    }

    /// What sysfs calls a device: `loop3`, `sda1`; `None` if it is not there.
    pub(crate) fn device_name(&self, number: DevNumber) -> Option<String> {
        (number.major != 0).then(|| self.by_number(number).ok()).flatten().map(|f| name_of(&f))
    }

    /// Whether a file system or another device is on this one.
    pub(crate) fn is_in_use(&self, number: DevNumber, name: &str, mounts: &Mounts) -> bool {
        let held = || {
            let folder = self.by_number(number);
            folder.is_ok_and(|folder| !entries(&folder.join("holders")).is_empty())
        };
        let of_btrfs = || {
            let all = entries(&self.root.join("sys/fs/btrfs"));
            all.iter().any(|uuid| uuid.join("devices").join(name).exists())
        };
        mounts.first_of(number, name).is_some() || held() || of_btrfs()
    }

    fn by_number(&self, number: DevNumber) -> Result<PathBuf, Error> {
        let link = self.root.join("sys/dev/block").join(number.to_string());
        fs::canonicalize(&link).map_err(Error::io("find", &link))
    }

    fn by_name(&self, device: &Path) -> Option<PathBuf> {
        // /dev/mapper/NAME leads to the name that sysfs knows; a recorded tree has no /dev
        let real = fs::canonicalize(device).unwrap_or_else(|_| device.to_owned());
        let name = real.file_name()?;
        fs::canonicalize(self.root.join("sys/class/block").join(name)).ok()
    }

    /// All devices of the btrfs that has this one.
    fn of_btrfs(&self, mount: &Mount) -> Vec<PathBuf> {
        let Some(one) = self.by_name(&mount.source) else { return Vec::new() };
        for uuid in entries(&self.root.join("sys/fs/btrfs")) {
            let devices: Vec<PathBuf> = entries(&uuid.join("devices"))
                .iter()
                .filter_map(|link| fs::canonicalize(link).ok())
                .collect();
            if devices.contains(&one) {
                return devices;
            }
        }
        vec![one]
    }

    fn leaves(&self, folders: &[PathBuf]) -> Result<Vec<Leaf>, Error> {
        let mut found = BTreeSet::new();
        for folder in folders {
            descend(folder, MAX_DEPTH, &mut found);
        }
        if found.is_empty() {
            let device = folders.first().map(|folder| name_of(folder)).unwrap_or_default();
            return Err(Error::NoRequests { device });
        }
        found.iter().map(|folder| self.leaf(folder)).collect()
    }

    fn leaf(&self, folder: &Path) -> Result<Leaf, Error> {
        let name = name_of(folder);
        let mut disks = vec![folder.to_owned()];
        disks.extend(self.nvme_paths(&name));
        if !disks.iter().any(|disk| disk.join("mq").is_dir()) {
            return Err(Error::NoRequests { device: name });
        }
        let disks = disks
            .iter()
            .map(|disk| Disk {
                name: name_of(disk),
                sequence: text(&disk.join("diskseq")).and_then(|number| number.parse().ok()),
            })
            .collect();
        let sectors = text(&folder.join("size")).and_then(|size| size.parse::<u64>().ok());
        Ok(Leaf { name, disks, bytes: sectors.and_then(|sectors| sectors.checked_mul(512)) })
    }

    /// `nvme0c1n1` and its like: the hidden paths of the multipath device `nvme0n1`, which issue
    /// its requests.
    fn nvme_paths(&self, name: &str) -> Vec<PathBuf> {
        let Some((subsystem, namespace)) =
            name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'))
        else {
            return Vec::new();
        };
        entries(&self.root.join("sys/block"))
            .into_iter()
            .filter(|entry| {
                let other = name_of(entry);
                let rest = other.strip_prefix("nvme").and_then(|o| o.strip_prefix(subsystem));
                let path = rest.and_then(|o| o.strip_prefix('c')).and_then(|o| o.split_once('n'));
                path.is_some_and(|(controller, of)| {
                    of == namespace && controller.bytes().all(|byte| byte.is_ascii_digit())
                })
            })
            .filter_map(|entry| fs::canonicalize(entry).ok())
            .collect()
    }
}

fn descend(folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    if depth == 0 {
        return;
    }
    if folder.join("partition").is_file()
        && let Some(whole) = folder.parent()
    {
        return descend(whole, depth - 1, found);
    }
    let slaves: Vec<PathBuf> = entries(&folder.join("slaves"))
        .iter()
        .filter_map(|link| fs::canonicalize(link).ok())
        .collect();
    if slaves.is_empty() {
        found.insert(folder.to_owned());
    }
    for slave in slaves {
        descend(&slave, depth - 1, found);
    }
}

/// The entries of a folder in order of their names; none if it is not there.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn name_of(folder: &Path) -> String {
    // sysfs writes `!` for the slash of cciss!c0d0
    folder.file_name().unwrap_or_default().to_string_lossy().replace('!', "/")
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
