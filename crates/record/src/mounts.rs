//! Mounted file systems, as `/proc/self/mountinfo` lists them.
//!
//! Invariant: a path inside a file system becomes a path of this machine only through a mount that
//! shows it; without one it is not made up.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::device::DevNumber;

/// One mount (`proc_pid_mountinfo(5)`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mount {
    /// The file system's device number; of btrfs and of what has no device, one of major 0.
    pub device: DevNumber,
    /// The folder of the file system that is shown.
    pub root: PathBuf,
    /// Where it is shown.
    pub point: PathBuf,
    /// Type of the file system.
    pub file_system: String,
    /// What was mounted, mostly a device.
    pub source: PathBuf,
    /// Options of the mount and of the file system.
    pub options: String,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = std::str::from_utf8(fields.nth(2)?).ok()?.parse().ok()?;
        let root = path(fields.next()?);
        let point = path(fields.next()?);
        let of_mount = String::from_utf8_lossy(fields.next()?).into_owned();
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        let file_system = String::from_utf8_lossy(fields.next()?).into_owned();
        let source = path(fields.next()?);
        let of_super = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
        let options = if of_super.is_empty() { of_mount } else { format!("{of_mount},{of_super}") };
        Some(Mount { device, root, point, file_system, source, options })
    }

    /// The value of option `name`, as in `logdev=/dev/sdb`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.split(',').find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Spaces and the like stand as `\040`.
fn path(field: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        if let [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] = rest {
            out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = &rest[4..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// All mounts, in the order in which they were made.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// From the text of a `mountinfo`. Lines that are none are passed over.
    pub fn parse(text: &[u8]) -> Mounts {
        Mounts(text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect())
    }

    /// Reads `mountinfo`.
    ///
    /// # Errors
    ///
    /// The system refused.
    pub fn read(mountinfo: &Path) -> std::io::Result<Mounts> {
        Ok(Mounts::parse(&std::fs::read(mountinfo)?))
    }

    /// The mount that `path` (absolute, no links) lies on: of the longest mount points above it
    /// the one mounted last.
    pub fn of_path(&self, path: &Path) -> Option<&Mount> {
        self.0
            .iter()
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len())
            .map(|deepest| {
                self.0.iter().rev().find(|mount| mount.point == deepest.point).unwrap_or(deepest)
            })
    }

    /// The first mount of `device`, or of a source in `/dev` called `name`.
    pub fn first_of(&self, device: DevNumber, name: &str) -> Option<&Mount> {
        self.0.iter().find(|mount| {
            mount.device == device
                || mount.source.starts_with("/dev") && mount.source.ends_with(name)
        })
    }

    /// Whether a file system with this device number is mounted.
    pub fn has(&self, device: DevNumber) -> bool {
        self.0.iter().any(|mount| mount.device == device)
    }

    /// Where `inside`, a path from the root of the file system `device`, is on this machine: by a
    /// mount above `near` if there is one, else by the mount that shows most.
    pub fn place(&self, device: DevNumber, inside: &Path, near: Option<&Path>) -> Option<PathBuf> {
        let shown = self.0.iter().filter_map(|mount| {
            let below = inside.strip_prefix(&mount.root).ok()?;
            (mount.device == device).then_some((mount, below))
        });
        let (mount, below) = shown.max_by_key(|(mount, _)| {
            let is_near = near.is_some_and(|near| near.starts_with(&mount.point));
            (is_near, std::cmp::Reverse(mount.root.as_os_str().as_bytes().len()))
        })?;
        Some(mount.point.join(below))
    }

    /// Takes over all of `newer`, and keeps those whose file system is not there any more: files
    /// of a lazily unmounted one are still written.
    pub fn refresh(&mut self, newer: Mounts) {
        let gone: Vec<Mount> = self.0.drain(..).filter(|old| !newer.has(old.device)).collect();
        self.0 = newer.0;
        self.0.extend(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
30 22 7:3 / /srv/my\\040data rw,noatime - xfs /dev/loop3 rw,logdev=/dev/loop4,noquota\n\
31 22 0:35 /sub /srv/b rw - btrfs /dev/loop5 rw,subvol=/sub\n\
32 22 0:35 / /srv/all rw - btrfs /dev/loop5 rw,subvol=/\n\
33 30 0:40 / /srv/my\\040data rw - tmpfs tmpfs rw\n\
garbage\n";

    #[test]
    fn the_deepest_and_the_last_mount_counts() {
        let mounts = Mounts::parse(TEXT);
        let kind = |path: &str| mounts.of_path(Path::new(path)).unwrap().file_system.clone();
        assert_eq!(kind("/etc"), "ext4");
        assert_eq!(kind("/srv/my data/x"), "tmpfs"); // over the xfs
        assert_eq!(kind("/srv/my database"), "ext4");
        assert_eq!(kind("/srv/b/x"), "btrfs");
        assert_eq!(Mounts::parse(b"").of_path(Path::new("/")), None);
    }

    #[test]
    fn options_of_both_kinds_are_found() {
        let mounts = Mounts::parse(TEXT);
        let xfs = mounts.0.iter().find(|m| m.file_system == "xfs").unwrap();
        assert_eq!(xfs.option("logdev"), Some("/dev/loop4"));
        assert_eq!(xfs.option("log"), None);
        assert!(xfs.options.starts_with("rw,noatime,"));
    }

    #[test]
    fn a_place_needs_a_mount_that_shows_it() {
        let mounts = Mounts::parse(TEXT);
        let dev = |text: &str| text.parse().unwrap();
        let place = |device, inside: &str, near: Option<&str>| {
            mounts.place(dev(device), Path::new(inside), near.map(Path::new))
        };
        assert_eq!(place("0:35", "/sub/a/f", None), Some("/srv/all/sub/a/f".into()));
        assert_eq!(place("0:35", "/sub/a/f", Some("/srv/b/a")), Some("/srv/b/a/f".into()));
        assert_eq!(place("0:35", "/other/f", Some("/srv/b")), Some("/srv/all/other/f".into()));
        assert_eq!(place("254:0", "/etc/x", None), Some("/etc/x".into()));
        assert_eq!(place("8:1", "/etc/x", None), None);
    }

    #[test]
    fn an_unmounted_file_system_keeps_its_names() {
        let mut mounts = Mounts::parse(TEXT);
        mounts.refresh(Mounts::parse(b"22 1 254:0 / /new rw - ext4 /dev/vda rw\n"));
        let place = |device: &str| mounts.place(device.parse().unwrap(), Path::new("/f"), None);
        assert_eq!(place("7:3"), Some("/srv/my data/f".into()));
        assert_eq!(place("254:0"), Some("/new/f".into()));
    }
}
