//! Mounted file systems: `/proc/self/mountinfo` and the zones of `/proc/self/mountstats`.
//!
//! Invariant: lines that are not understood are left out; nothing is guessed from them.

use std::path::{Path, PathBuf};

/// One line of `mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Mount {
    /// Number of the device: major, minor; major 0 for those without one.
    pub(crate) device: (u32, u32),
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
    /// What is mounted: `/dev/nvme0n1p2`, `overlay`.
    pub(crate) source: String,
    /// Options of the mount, then of the superblock.
    pub(crate) options: Vec<String>,
}

impl Mount {
    /// The value of `name=VALUE`; empty for an option without a value.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find_map(|option| {
            let value = option.strip_prefix(name)?;
            if value.is_empty() { Some("") } else { value.strip_prefix('=') }
        })
    }
}

pub(crate) fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

/// The mount that `path` lies on: of those with its device number the one with the longest mount
/// point above it; if none has the number (btrfs), the longest of all. The last of equals hides the
/// others.
pub(crate) fn of<'a>(mounts: &'a [Mount], path: &Path, device: (u32, u32)) -> Option<&'a Mount> {
    let above = || mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let longest = |mount: &&Mount| mount.point.as_os_str().len();
    above()
        .filter(|m| m.device == device)
        .max_by_key(longest)
        .or_else(|| above().max_by_key(longest))
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let (major, minor) = left.nth(2)?.split_once(':')?;
    let point = unescape(left.nth(1)?);
    let own = left.next()?;
    let mut right = right.split(' ');
    let kind = right.next()?.to_owned();
    let source = unescape(right.next()?);
    let options = own.split(',').chain(right.next().unwrap_or("").split(','));
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        point: point.into(),
        kind,
        source,
        options: options.filter(|o| !o.is_empty()).map(unescape).collect(),
    })
}

/// Blanks, line breaks and backslashes are written as three octal digits.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|d| d.iter().all(|c| (b'0'..=b'7').contains(c)));
        let code = digits.map(|d| d.iter().fold(0u32, |n, c| n * 8 + u32::from(c - b'0')));
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code) if *first == b'\\' => {
                out.push(code);
                rest = &tail[3..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether `mountstats` shows zones for the XFS mounted at `point`
/// (`fs/xfs/xfs_zone_info.c`: a line `zone N, wp …` or `max open zones: N`).
pub(crate) fn has_zones(mountstats: &str, point: &Path) -> bool {
    zones_of(mountstats, point).next().is_some()
}

/// The lines about zones of the file system mounted at `point`.
pub(crate) fn zones_of<'a>(mountstats: &'a str, point: &Path) -> impl Iterator<Item = &'a str> {
    let wanted = format!(" mounted on {} with fstype xfs", point.display());
    let mut inside = false;
    mountstats.lines().filter(move |line| {
        if line.starts_with("device ") || line.starts_with("no device ") {
            inside = unescape(line).contains(&wanted);
            return false;
        }
        let line = line.trim_start();
        inside && (line.starts_with("zone ") || line.contains("open zones"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 259:3 / /srv/my\\040data rw,noatime shared:1 - xfs /dev/nvme0n1p3 rw,attr2
41 27 0:50 /sub /srv/b rw - btrfs /dev/sda1 rw,compress-force=zstd:3,subvol=/sub
42 27 254:0 /x /srv/bind rw - ext4 /dev/vda rw
nonsense
";

    #[test]
    fn the_mount_is_found_by_number_and_by_place() {
        let mounts = parse(INFO);
        let found = |path: &str, device| {
            let mount = of(&mounts, Path::new(path), device).unwrap();
            format!("{} {}", mount.source, mount.point.display())
        };
        assert_eq!(found("/srv/x", (254, 0)), "/dev/vda /");
        assert_eq!(found("/srv/bind/y", (254, 0)), "/dev/vda /srv/bind");
        assert_eq!(found("/srv/my data/y", (259, 3)), "/dev/nvme0n1p3 /srv/my data");
        assert_eq!(found("/srv/b/y", (0, 77)), "/dev/sda1 /srv/b");
    }

    #[test]
    fn options_have_values_or_none() {
        let mounts = parse(INFO);
        assert_eq!(mounts[3].option("compress-force"), Some("zstd:3"));
        assert_eq!(mounts[3].option("compress"), None);
        assert_eq!(mounts[1].option("discard"), Some(""));
        assert_eq!(unescape(r"a\134b\04\777"), r"a\b\04\777");
    }

    #[test]
    fn zones_belong_to_their_mount() {
        let stats = "\
device /dev/vda mounted on / with fstype ext4
device /dev/sdb mounted on /srv/z with fstype xfs
\tmax open zones: 10
\tzone 3, wp 4096, written 4096, used 4096, hint SHORT
device /dev/sdc mounted on /srv/plain with fstype xfs
";
        assert!(has_zones(stats, Path::new("/srv/z")));
        assert_eq!(zones_of(stats, Path::new("/srv/z")).count(), 2);
        assert!(!has_zones(stats, Path::new("/srv/plain")));
        assert!(!has_zones(stats, Path::new("/srv")));
    }
}
