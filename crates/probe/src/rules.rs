//! What Linux does with a write hint since which version, in one table.
//!
//! Invariant: every rule that depends on the kernel's version stands here with its source, and no
//! other module compares versions. `lab/` puts each of them to the test.

use std::fmt;
use std::str::FromStr;

/// A kernel's version: major and minor are all that the rules need.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Version(pub u16, pub u16);

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Version {
    type Err = std::num::ParseIntError;

    /// From a release: `6.12.95+deb12-amd64`.
    fn from_str(release: &str) -> Result<Version, Self::Err> {
        let number = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text[..end].parse()
        };
        let (major, rest) = release.split_once('.').unwrap_or((release, "0"));
        Ok(Version(number(major)?, number(rest)?))
    }
}

/// Something that the kernel does from one version on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    /// Its name in `--json` and in the documentation.
    pub name: &'static str,
    /// The first version that does it.
    pub since: Version,
    /// What it does.
    pub what: &'static str,
    /// The commit or the file that says so.
    pub source: &'static str,
}

/// The call exists.
pub const CALL: Rule = Rule {
    name: "call",
    since: Version(4, 13),
    what: "fcntl F_SET_RW_HINT",
    source: "c75b1d9421f8",
};

/// Write streams of NVMe (directives) and everything that fed them are gone.
pub const STREAMS_REMOVED: Rule = Rule {
    name: "streams-removed",
    since: Version(5, 18),
    what: "block layer, NVMe driver and file systems forget the hints of 4.13",
    source: "c75e707fe1aa, b179c98f7697, 41d36a9f3e53",
};

/// f2fs chooses its log by the hint.
pub const F2FS_LOGS: Rule = Rule {
    name: "f2fs-logs",
    since: Version(4, 17),
    what: "f2fs puts short into its hot log, extreme into its cold log, the rest into its warm log",
    source: "fs/f2fs/segment.c f2fs_rw_hint_to_seg_type",
};

/// Block requests carry a hint again, and all that writes through buffer heads, mpage or iomap
/// fills it.
pub const BLOCK_HINT: Rule = Rule {
    name: "block-hint",
    since: Version(6, 9),
    what: "block requests carry a hint; XFS, raw devices, direct I/O and simple file systems set it",
    source: "449813515d3e",
};

/// The SCSI disk driver sends the hint as GROUP NUMBER.
pub const SCSI_GROUP: Rule = Rule {
    name: "scsi-group",
    since: Version(6, 9),
    what: "the SCSI disk driver sends the hint as GROUP NUMBER to drives with permanent streams",
    source: "4f53138fffc2, 96b171d6dba6",
};

/// f2fs sends its logs' hints without a mount option.
pub const F2FS_HINT: Rule = Rule {
    name: "f2fs-hint",
    since: Version(6, 10),
    what: "f2fs sends a hint for each log: short for hot, none set for warm, extreme for cold data",
    source: "7643f3fe2772",
};

/// ext4's writeback carries the hint.
pub const EXT4_BUFFERED: Rule = Rule {
    name: "ext4-buffered",
    since: Version(6, 13),
    what: "ext4 passes the hint on when it writes back the page cache",
    source: "813f85360404",
};

/// Only the owner may set a hint.
pub const OWNER_ONLY: Rule = Rule {
    name: "owner-only",
    since: Version(6, 13),
    what: "only a file's owner, or CAP_FOWNER, may set its hint",
    source: "b6512519496e",
};

/// btrfs' writeback carries the hint.
pub const BTRFS_BUFFERED: Rule = Rule {
    name: "btrfs-buffered",
    since: Version(6, 14),
    what: "btrfs passes the hint on for what it writes back uncompressed",
    source: "2fa07d7a0f00",
};

/// Zoned XFS chooses the zone by the hint.
pub const XFS_ZONES: Rule = Rule {
    name: "xfs-zones",
    since: Version(6, 15),
    what: "zoned XFS puts data of like lifetime into the same zone",
    source: "64d0361114fd",
};

/// NVMe FDP: requests carry a stream, raw devices set it for direct I/O.
pub const NVME_STREAMS: Rule = Rule {
    name: "nvme-streams",
    since: Version(6, 16),
    what: "the NVMe driver sends a write stream as FDP placement identifier; direct I/O on a whole \
           raw device makes the hint its stream",
    source: "block/fops.c, drivers/nvme/host/core.c nvme_query_fdp_info",
};

/// f2fs' data logs are FDP streams.
pub const F2FS_STREAMS: Rule = Rule {
    name: "f2fs-streams",
    since: Version(7, 2),
    what: "f2fs writes its hot, warm and cold data logs as streams 1, 2 and 3",
    source: "pull f2fs-for-7.2-rc1, 09ca8dc7d634",
};

/// btrfs' direct I/O is one, for files with checksums too.
pub const BTRFS_DIRECT: Rule = Rule {
    name: "btrfs-direct",
    since: Version(7, 3),
    what: "btrfs writes checksummed files by direct I/O, and then uncompressed, instead of through the \
           page cache",
    source: "btrfs: use IOMAP_DIO_BOUNCE flag instead of falling back to buffered IO (June 2026)",
};

/// All of them, in the order of versions.
pub const ALL: [Rule; 13] = [
    CALL,
    F2FS_LOGS,
    STREAMS_REMOVED,
    BLOCK_HINT,
    SCSI_GROUP,
    F2FS_HINT,
    EXT4_BUFFERED,
    OWNER_ONLY,
    BTRFS_BUFFERED,
    XFS_ZONES,
    NVME_STREAMS,
    F2FS_STREAMS,
    BTRFS_DIRECT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_this_table() {
        let rows: Vec<String> = ALL
            .iter()
            .map(|r| format!("| {} | {} | {} | {} |", r.name, r.since, r.what, r.source))
            .collect();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
        let page = std::fs::read_to_string(page).expect("docs/doctor.md");
        let rows = rows.join("\n");
        assert!(page.contains(&rows), "docs/doctor.md should have:\n{rows}");
    }

    #[test]
    fn releases_are_read() {
        let read = |text: &str| text.parse::<Version>().ok();
        assert_eq!(read("6.12.95+deb12-amd64"), Some(Version(6, 12)));
        assert_eq!(read("7.2-rc1"), Some(Version(7, 2)));
        assert_eq!(read("6.18.44-fc-v657"), Some(Version(6, 18)));
        assert_eq!(read("7"), Some(Version(7, 0)));
        assert_eq!(read("x.y"), None);
        assert!(Version(6, 9) < Version(6, 13));
    }
}
