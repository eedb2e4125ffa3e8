//! Mounted file systems, as `/proc/self/mountinfo` lists them (`proc_pid_mountinfo(5)`).
//!
//! Pure: the caller reads the text, of this machine or a recorded one.
//!
//! Invariant: a path inside a file system becomes a path of this machine only through a mount that
//! shows it; without one it is not made up. Lines that are not understood are passed over.

use std::ffi::OsString;
use std::fmt;
use std::num::ParseIntError;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Number of a device.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DevNumber {
    /// 0 to 4095; 0 for what has no device.
    pub major: u32,
    /// 0 to 1048575.
    pub minor: u32,
}

impl DevNumber {
    /// From what `stat` says.
    pub const fn from_stat(number: u64) -> DevNumber {
        // glibc's `gnu_dev_major` and `gnu_dev_minor`
        let major = (number >> 8 & 0xfff) | (number >> 32 & !0xfff);
        let minor = (number & 0xff) | (number >> 12 & !0xff);
        DevNumber { major: major as u32, minor: minor as u32 }
    }

    /// From the kernel's own form, 12 and 20 bits (`include/linux/kdev_t.h`).
    pub const fn from_kernel(number: u32) -> DevNumber {
        DevNumber { major: number >> 20, minor: number & 0xf_ffff }
    }
}

impl fmt::Display for DevNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DevNumber {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<DevNumber, ParseIntError> {
        let (major, minor) = text.trim().split_once(':').unwrap_or((text, ""));
        Ok(DevNumber { major: major.parse()?, minor: minor.parse()? })
    }
}

/// One mount.
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
    /// Options of the mount, then those of the file system.
    pub options: Vec<String>,
}

impl Mount {
    /// `36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = std::str::from_utf8(fields.nth(2)?).ok()?.parse().ok()?;
        let (root, point) = (path(fields.next()?), path(fields.next()?));
        let of_mount = fields.next()?;
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        let file_system = String::from_utf8_lossy(fields.next()?).into_owned();
        let source = path(fields.next()?);
        let options = [of_mount, fields.next().unwrap_or_default()];
        let options = options.iter().flat_map(|list| list.split(|byte| *byte == b','));
        let options = options.filter(|option| !option.is_empty());
        let options = options.map(|option| String::from_utf8_lossy(&unescape(option)).into_owned());
        Some(Mount { device, root, point, file_system, source, options: options.collect() })
    }

    /// The value of option `name`, as in `logdev=/dev/sdb`; empty for one without a value. The last
    /// one of a name counts.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find_map(|option| {
            let value = option.strip_prefix(name)?;
            if value.is_empty() { Some("") } else { value.strip_prefix('=') }
        })
    }
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// The bytes of a field: blanks, line breaks and backslashes stand as three octal digits (`\\040`).
pub fn unescape(field: &[u8]) -> Vec<u8> {
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
    out
}

/// All mounts, in the order in which they were made.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// From the text of a `mountinfo`. Lines that are none are passed over.
    pub fn parse(text: &[u8]) -> Mounts {
        Mounts(text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// The mount that `path` (absolute, no links) lies on: of the longest mount points above it
    /// the one mounted last.
    pub fn of_path(&self, path: &Path) -> Option<&Mount> {
        // of equals `max_by_key` takes the last
        self.above(path).max_by_key(|mount| mount.point.as_os_str().len())
    }

    /// The mount that `path` lies on, whose device number is known: of those with that number the
    /// deepest; if none has it (btrfs), as [`Mounts::of_path`].
    pub fn of_file(&self, path: &Path, device: DevNumber) -> Option<&Mount> {
        self.above(path)
            .filter(|mount| mount.device == device)
            .max_by_key(|mount| mount.point.as_os_str().len())
            .or_else(|| self.of_path(path))
    }

    fn above(&self, path: &Path) -> impl Iterator<Item = &Mount> {
        self.0.iter().filter(move |mount| path.starts_with(&mount.point))
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
34 22 254:0 /x /srv/bind rw - ext4 /dev/vda rw\n\
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
        assert_eq!((xfs.option("log"), xfs.option("noquota")), (None, Some("")));
        assert_eq!(xfs.options[..2], ["rw", "noatime"]);
        assert_eq!(unescape(br"a\134b\04\777"), br"a\b\04\777");
    }

    #[test]
    fn a_known_number_decides_between_mounts_above() {
        let mounts = Mounts::parse(TEXT);
        let found = |path: &str, device: &str| {
            let mount = mounts.of_file(Path::new(path), device.parse().unwrap()).unwrap();
            mount.file_system.clone()
        };
        assert_eq!(found("/srv/my data/x", "7:3"), "xfs"); // the tmpfs over it is younger
        assert_eq!(found("/srv/b/x", "0:77"), "btrfs");
        assert_eq!(found("/etc", "254:0"), "ext4");
        let bind = mounts.of_file(Path::new("/srv/bind/y"), "254:0".parse().unwrap());
        assert_eq!(bind.unwrap().point, Path::new("/srv/bind"));
    }

    #[test]
    fn numbers_are_those_of_stat_and_of_the_kernel() {
        // MAJOR 259, MINOR 0x12345
        let number = DevNumber { major: 259, minor: 0x12345 };
        assert_eq!(DevNumber::from_kernel(259 << 20 | 0x12345), number);
        assert_eq!(DevNumber::from_stat(0x45 | 259 << 8 | 0x123 << 20), number);
        assert_eq!(number.to_string().parse(), Ok(number));
        assert!("259".parse::<DevNumber>().is_err());
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
