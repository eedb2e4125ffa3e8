//! A file system for the trial alone, in a file on a loop device: small enough to be written over
//! several times, filled as real ones are, and with as little room for dirty pages as is wished.
//! Or on a whole device, for an epoch.
//!
//! Invariant: what was mounted is unmounted, detached and (unless the trial is kept) removed when
//! the value goes, however the trial ends but by `kill -9`; then `--resume` does it. A device is
//! trimmed then, and carries nothing.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use shelflife_postgres::Cancel;
use shelflife_report::bytes;

use crate::error::{Error, Result};
use crate::machine::free_space;

/// The image, in the trial's folder.
const IMAGE: &str = "fs.img";
/// Where it is mounted, in the trial's folder.
const MOUNT: &str = "fs";
/// Cold data, in the file system.
const ARCHIVE: &str = "archive";

/// What can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// ext4
    Ext4,
    /// XFS, of 300 MB or more
    Xfs,
    /// btrfs
    Btrfs,
    /// f2fs
    F2fs,
}

impl Kind {
    /// The kernel's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
            Kind::F2fs => "f2fs",
        }
    }

    /// mkfs without discarding: the image is new (or the device was trimmed), and the trace begins
    /// later. Nothing is kept for root: the server is somebody else, and should be able to fill it.
    /// What a trimmed device still shows is written over. The label follows.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Kind::Ext4 => {
                const LATER: &str = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
                &["-q", "-F", "-m", "0", "-E", LATER, "-L"]
            }
            Kind::Xfs | Kind::Btrfs => &["-q", "-K", "-f", "-L"],
            Kind::F2fs => &["-q", "-t", "0", "-f", "-l"],
        }
    }
}

/// A file system that a trial is to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Which.
    pub kind: Kind,
    /// The whole device that it is made on, anew for each epoch; in a file on a loop device if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<PathBuf>,
    /// Its size in bytes; that of the device, if it has one.
    pub size: u64,
    /// Before the rounds, cold data are added until so much of it is in use, 0 to 0.98.
    pub fill: Option<f64>,
    /// Dirty bytes of this file system above which writers are made to wait
    /// (`/sys/class/bdi/*/max_bytes` with `strict_limit`, Linux 6.2 and later).
    pub dirty: Option<u64>,
    /// How it is mounted, as `mount -o` has it: `discard`.
    pub mount_options: String,
}

impl Wanted {
    /// That this process may mount.
    pub(crate) fn check_permitted() -> Result<()> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        Err(Error::Filesystem {
            what: "only root can make and mount a file system".into(),
            told: String::new(),
        })
    }

    /// With the size of its device, where it is to fill one.
    pub(crate) fn sized(mut self) -> Result<Wanted> {
        if let Some(device) = &self.device {
            self.size = crate::epoch::device_size(device)?;
        }
        Ok(self)
    }

    /// Bytes of cold data, at most.
    pub(crate) fn cold_bytes(&self) -> u64 {
        self.fill.map_or(0, |fill| (self.size as f64 * fill) as u64)
    }

    /// That the figures make sense.
    pub(crate) fn check(&self) -> Result<()> {
        const SMALLEST: u64 = 512 << 20;
        // A drive is as large as it is: if that is too small, mkfs says so.
        if self.device.is_none() && !(SMALLEST..=1 << 46).contains(&self.size) {
            return Err(Error::Spec(format!("--size {}: 512 MiB to 64 TiB", bytes(self.size))));
        }
        if let Some(fill) = self.fill
            && !(0.0..=0.98).contains(&fill)
        {
            return Err(Error::Spec(format!("--fill {:.0}%: 0 to 98 make sense", fill * 100.0)));
        }
        if self.dirty.is_some_and(|dirty| dirty < 1 << 20) {
            return Err(Error::Spec("--dirty: at least 1MiB".to_owned()));
        }
        Ok(())
    }
}

/// It, mounted.
#[derive(Debug)]
pub(crate) struct Mounted {
    folder: PathBuf,
    /// The file behind a loop device; a whole device has none.
    image: Option<PathBuf>,
    device: PathBuf,
    keep: bool,
}

/// The label of a file system in a file.
const LABEL: &str = "shelflife";

/// Where the trial's cluster goes: the file system of its own, if there is one.
pub(crate) fn home(dir: &Path) -> PathBuf {
    let mounted = dir.join(MOUNT);
    if mounted.is_dir() { mounted } else { dir.to_owned() }
}

impl Mounted {
    /// Makes the image, the file system, and mounts it.
    pub(crate) fn make(wanted: &Wanted, dir: &Path) -> Result<Mounted> {
        release(dir)?;
        let free = free_space(dir)?;
        let needed = wanted.size + (wanted.size >> 6);
        if free < needed {
            return Err(Error::LowSpace { path: dir.to_owned(), free, needed });
        }
        let image = dir.join(IMAGE);
        let failed = || Error::io("cannot make", &image);
        let file = File::create(&image).map_err(failed())?;
        file.set_len(wanted.size).map_err(failed())?;
        drop(file);
        Mounted::attach(image, dir, false)?.made(wanted, LABEL)
    }

    /// Trims all of `device`, makes the file system on it, labelled `label`, and mounts it.
    pub(crate) fn on_device(
        wanted: &Wanted,
        device: &Path,
        label: &str,
        dir: &Path,
    ) -> Result<Mounted> {
        release(dir)?;
        clear(device)?;
        let (folder, device) = (dir.join(MOUNT), device.to_owned());
        Mounted { folder, image: None, device, keep: false }.made(wanted, label)
    }

    fn attach(image: PathBuf, dir: &Path, keep: bool) -> Result<Mounted> {
        let device = tell(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        let (folder, device) = (dir.join(MOUNT), device.into());
        Ok(Mounted { folder, image: Some(image), device, keep })
    }

    fn made(mut self, wanted: &Wanted, label: &str) -> Result<Mounted> {
        let mkfs = format!("mkfs.{}", wanted.kind.name());
        tell(Command::new(mkfs).args(wanted.kind.arguments()).arg(label).arg(&self.device))?;
        self.mount(wanted)?;
        Ok(self)
    }

    /// Mounts the file system of an earlier trial in the same folder, if it has one.
    pub(crate) fn again(wanted: &Wanted, dir: &Path) -> Result<Mounted> {
        let image = dir.join(IMAGE);
        if !image.is_file() {
            return Mounted::make(wanted, dir);
        }
        release(dir)?;
        let mut mounted = Mounted::attach(image, dir, true)?;
        mounted.mount(wanted)?;
        Ok(mounted)
    }

    /// Where it is mounted.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the image stays when this goes.
    pub(crate) fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    fn mount(&mut self, wanted: &Wanted) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(Error::io("cannot make", &self.folder))?;
        let options = &wanted.mount_options;
        let mut mount = Command::new("mount");
        mount.args(["-t", wanted.kind.name(), "-o", options]).arg(&self.device).arg(&self.folder);
        tell(&mut mount)?;
        if let Some(dirty) = wanted.dirty {
            self.limit(dirty)?;
        }
        Ok(())
    }

    /// Limits the dirty pages of this device alone: nothing else on the machine changes.
    fn limit(&self, dirty: u64) -> Result<()> {
        let device = fs::metadata(&self.device).map_err(Error::io("cannot read", &self.device))?;
        let (major, minor) = (rustix::fs::major(device.rdev()), rustix::fs::minor(device.rdev()));
        let folder = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}"));
        for (name, value) in [("strict_limit", "1".to_owned()), ("max_bytes", dirty.to_string())] {
            let path = folder.join(name);
            fs::write(&path, value).map_err(Error::io("cannot limit dirty pages by", path))?;
        }
        Ok(())
    }

    /// Bytes of it, and of these in use.
    pub(crate) fn usage(&self) -> Result<(u64, u64)> {
        let stat = rustix::fs::statvfs(&self.folder)
            .map_err(|errno| Error::io("cannot look at", &self.folder)(errno.into()))?;
        let size = stat.f_blocks * stat.f_frsize;
        Ok((size, size - stat.f_bfree * stat.f_frsize))
    }

    /// Adds cold data until `fill` of the file system is in use; gives the bytes written.
    pub(crate) fn fill(&self, fill: f64, cancel: &Cancel) -> Result<u64> {
        // One that was broken off would count as used.
        self.remove_archive()?;
        let (size, used) = self.usage()?;
        self.archive(((size as f64 * fill) as u64).saturating_sub(used), cancel)
    }

    fn remove_archive(&self) -> Result<()> {
        let archive = self.folder.join(ARCHIVE);
        match fs::remove_file(&archive) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("cannot remove", archive)(error))
            }
            _ => Ok(()),
        }
    }

    /// Adds so many bytes of cold data; gives the bytes written.
    ///
    /// Real bytes, not holes: an archive takes room on the drive because it was written there.
    pub(crate) fn archive(&self, wanted: u64, cancel: &Cancel) -> Result<u64> {
        const CHUNK: usize = 1 << 20;
        let archive = self.folder.join(ARCHIVE);
        let failed = || Error::io("cannot write", &archive);
        let mut file = File::create(&archive).map_err(failed())?;
        // Not zeros: a file system or a drive may pass over these. (SplitMix64.)
        let mut state = 1_u64;
        let chunk: Vec<u8> = (0..CHUNK / 8)
            .flat_map(|_| {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z ^ (z >> 31)).to_le_bytes()
            })
            .collect();
        let mut written = 0;
        while written < wanted {
            cancel.check()?;
            let part = (wanted - written).min(CHUNK as u64);
            file.write_all(&chunk[..part as usize]).map_err(failed())?;
            written += part;
        }
        file.sync_all().map_err(failed())?;
        Ok(written)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = tell(Command::new("umount").arg(&self.folder));
        let _ = fs::remove_dir(&self.folder);
        let Some(image) = &self.image else {
            let _ = clear(&self.device);
            return;
        };
        let _ = tell(Command::new("losetup").arg("--detach").arg(&self.device));
        if !self.keep {
            let _ = fs::remove_file(image);
        }
    }
}

/// Takes everything off a device: trims it, and writes over the signatures that a drive may still show
/// of trimmed blocks. Neither does anything to a device that is in use.
fn clear(device: &Path) -> Result<()> {
    tell(Command::new("blkdiscard").arg(device))?;
    tell(Command::new("wipefs").args(["--all", "--quiet"]).arg(device)).map(drop)
}

/// Unmounts and detaches what a trial that was killed left in `dir`.
fn release(dir: &Path) -> Result<()> {
    let (folder, image) = (dir.join(MOUNT), dir.join(IMAGE));
    if folder.is_dir() {
        if is_mount(&folder, dir) {
            tell(Command::new("umount").arg(&folder))?;
        }
        fs::remove_dir(&folder).map_err(Error::io("cannot remove", &folder))?;
    }
    if image.exists() {
        let list =
            tell(Command::new("losetup").args(["--noheadings", "-O", "NAME", "-j"]).arg(&image))?;
        for device in list.split_whitespace() {
            tell(Command::new("losetup").args(["--detach", device]))?;
        }
    }
    Ok(())
}

/// Removes what a trial that was killed left in `dir`.
pub(crate) fn remove(dir: &Path) -> Result<()> {
    release(dir)?;
    let image = dir.join(IMAGE);
    match fs::remove_file(&image) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove", image)(error))
        }
        _ => Ok(()),
    }
}

fn is_mount(folder: &Path, dir: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    device(folder) != device(dir)
}

/// Runs a command of the system to its end; gives its output.
pub(crate) fn tell(command: &mut Command) -> Result<String> {
    const PACKAGES: &str = "util-linux, e2fsprogs, xfsprogs, btrfs-progs, f2fs-tools";
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Error::Filesystem {
        what: format!("cannot run {name} (packages {PACKAGES})"),
        told: source.to_string(),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Filesystem { what: format!("{name} failed"), told })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(name: &str, reason: &str) {
        let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
    }

    /// Of a loop device for the drive.
    #[test]
    fn root_a_device_is_mounted_with_its_label_and_left_empty() {
        let name = "root_a_device_is_mounted_with_its_label_and_left_empty";
        if Wanted::check_permitted().is_err() {
            return skip(name, "only root can mount a file system");
        }
        if !Path::new("/dev/loop-control").exists() {
            return skip(name, "this kernel has no loop devices");
        }
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let outer = Mounted::attach(image, &dir.path().join("nowhere"), true).unwrap();
        let device = outer.device.clone();
        let labels = || {
            tell(Command::new("wipefs").args(["--noheadings", "-O", "LABEL"]).arg(&device)).unwrap()
        };
        let wanted = Wanted {
            kind: Kind::Ext4,
            device: Some(device.clone()),
            size: 64 << 20,
            fill: Some(0.5),
            dirty: None,
            mount_options: "discard".to_owned(),
        };
        let mounted = Mounted::on_device(&wanted, &device, "sl-1", dir.path()).unwrap();
        assert_eq!(labels(), "sl-1");
        assert!(mounted.fill(0.5, &Cancel::never()).unwrap() > 10 << 20);
        assert!(clear(&device).is_err(), "what is mounted is not trimmed");
        drop(mounted);
        assert_eq!(labels(), "");
        assert!(!dir.path().join(MOUNT).exists());
    }
}
