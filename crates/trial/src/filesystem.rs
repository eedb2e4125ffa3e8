//! A file system for the trial alone, in a file on a loop device: small enough to be written over
//! several times, filled as real ones are, and with as little room for dirty pages as is wished.
//!
//! Invariant: what was mounted is unmounted, detached and (unless the trial is kept) removed when
//! the value goes, however the trial ends but by `kill -9`; then `--resume` does it.

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
}

impl Kind {
    /// The kernel's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// mkfs without discarding: the image is new, and the trace begins later. Nothing is kept for
    /// root: the server is somebody else, and should be able to fill it.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Kind::Ext4 => {
                &["-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
            }
            Kind::Xfs => &["-q", "-K"],
            Kind::Btrfs => &["-q", "-K"],
        }
    }
}

/// A file system that a trial is to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Which.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// Before the rounds, cold data are added until so much of it is in use, 0 to 0.98.
    pub fill: Option<f64>,
    /// Dirty bytes of this file system above which writers are made to wait
    /// (`/sys/class/bdi/*/max_bytes` with `strict_limit`, Linux 6.2 and later).
    pub dirty: Option<u64>,
    /// Mount options instead of `discard`.
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
            what: "only root can make and mount a file system (`trial` needs none without --fs)"
                .into(),
            told: String::new(),
        })
    }

    /// Bytes of cold data, at most.
    pub(crate) fn cold_bytes(&self) -> u64 {
        self.fill.map_or(0, |fill| (self.size as f64 * fill) as u64)
    }

    /// That the figures make sense.
    pub(crate) fn check(&self) -> Result<()> {
        const SMALLEST: u64 = 512 << 20;
        if self.size < SMALLEST || self.size > 1 << 46 {
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
    image: PathBuf,
    device: String,
    keep: bool,
}

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
        let device = tell(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        let mut mounted = Mounted { folder: dir.join(MOUNT), image, device, keep: false };
        let mkfs = format!("mkfs.{}", wanted.kind.name());
        tell(Command::new(mkfs).args(wanted.kind.arguments()).arg(&mounted.device))?;
        mounted.mount(wanted)?;
        Ok(mounted)
    }

    /// Mounts the file system of an earlier trial in the same folder, if it has one.
    pub(crate) fn again(wanted: &Wanted, dir: &Path) -> Result<Mounted> {
        let image = dir.join(IMAGE);
        if !image.is_file() {
            return Mounted::make(wanted, dir);
        }
        release(dir)?;
        let device = tell(Command::new("losetup").args(["--find", "--show"]).arg(&image))?;
        let mut mounted = Mounted { folder: dir.join(MOUNT), image, device, keep: true };
        mounted.mount(wanted)?;
        Ok(mounted)
    }

    /// Whether the image stays when this goes.
    pub(crate) fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    fn mount(&mut self, wanted: &Wanted) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(Error::io("cannot make", &self.folder))?;
        let options = &wanted.mount_options;
        let mut mount = Command::new("mount");
        mount.args(["-t", wanted.kind.name(), "-o", options, &self.device]).arg(&self.folder);
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
        let _ = tell(Command::new("losetup").args(["--detach", &self.device]));
        let _ = fs::remove_dir(&self.folder);
        if !self.keep {
            let _ = fs::remove_file(&self.image);
        }
    }
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
fn tell(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Error::Filesystem {
        what: format!("cannot run {name} (packages util-linux, e2fsprogs, xfsprogs, btrfs-progs)"),
        told: source.to_string(),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Filesystem { what: format!("{name} failed"), told })
}
