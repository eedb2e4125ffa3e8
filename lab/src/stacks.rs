//! The stacks: what lies between a file and the flash, from the device up.
//!
//! Invariant: a stack's name is its row in the matrix and its file among the results; it is unique
//! and never reused for something else.

/// What a stack ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// `scsi_debug`: six streams, five of them permanent, counters per group number.
    Scsi,
    /// NVMe with Flexible Data Placement: eight handles, one group.
    Fdp,
    /// NVMe without it.
    Nvme,
    /// A virtio-blk disk, as in a virtual machine.
    Virtio,
}

impl Medium {
    /// As the guest's script calls it.
    pub fn word(self) -> &'static str {
        match self {
            Medium::Scsi => "scsi",
            Medium::Fdp => "fdp",
            Medium::Nvme => "nvme",
            Medium::Virtio => "virtio",
        }
    }

    /// As the matrix calls it.
    pub fn title(self) -> &'static str {
        match self {
            Medium::Scsi => "SCSI with permanent streams",
            Medium::Fdp => "NVMe with FDP",
            Medium::Nvme => "NVMe without FDP",
            Medium::Virtio => "virtio-blk",
        }
    }
}

/// One stack.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    /// Its name.
    pub name: &'static str,
    /// What it ends in.
    pub medium: Medium,
    /// Between device and file system: `-`, `part`, `lvm`, `luks`, `raid0`, `raid1`, `raid5`, `loop`.
    pub layer: &'static str,
    /// `ext4`, `xfs`, `btrfs`, `f2fs`, `overlay` (on ext4), `xfs-zoned`, or `raw` for none.
    pub filesystem: &'static str,
    /// Mount options, or `-`.
    pub options: &'static str,
    /// Among the ten of the quick lab.
    pub quick: bool,
}

impl Stack {
    /// How many disks of its medium are under it.
    pub fn disks(&self) -> u64 {
        match self.layer {
            "raid5" => 3,
            "raid0" | "raid1" => 2,
            _ => 1,
        }
    }

    /// For people: "ext4 on LVM".
    pub fn title(&self) -> String {
        let base = match self.filesystem {
            "raw" => "the device itself".to_owned(),
            "xfs" => "XFS".to_owned(),
            "xfs-zoned" => "zoned XFS".to_owned(),
            "overlay" => "overlayfs on ext4".to_owned(),
            other => other.to_owned(),
        };
        let options =
            if self.options == "-" { String::new() } else { format!(" ({})", self.options) };
        let layer = match self.layer {
            "-" => String::new(),
            "part" => " on a partition".to_owned(),
            "lvm" => " on LVM".to_owned(),
            "luks" => " on LUKS".to_owned(),
            "loop" => " in a file on ext4 (loop)".to_owned(),
            raid => format!(" on md {}", raid.to_uppercase().replace("RAID", "RAID ")),
        };
        if self.filesystem == "raw" && self.layer == "part" {
            return "a partition itself".to_owned();
        }
        format!("{base}{options}{layer}")
    }
}

const fn stack(
    name: &'static str,
    medium: Medium,
    layer: &'static str,
    filesystem: &'static str,
    options: &'static str,
    quick: bool,
) -> Stack {
    Stack { name, medium, layer, filesystem, options, quick }
}

const Q: bool = true;
const O: bool = false;

/// All stacks, grouped by device so that a guest reloads its disks seldom.
pub const STACKS: [Stack; 40] = [
    stack("scsi-ext4", Medium::Scsi, "-", "ext4", "-", Q),
    stack("scsi-ext4-journal", Medium::Scsi, "-", "ext4", "data=journal", O),
    stack("scsi-xfs", Medium::Scsi, "-", "xfs", "-", O),
    stack("scsi-btrfs", Medium::Scsi, "-", "btrfs", "-", Q),
    stack("scsi-btrfs-zstd", Medium::Scsi, "-", "btrfs", "compress-force=zstd", O),
    stack("scsi-f2fs", Medium::Scsi, "-", "f2fs", "-", Q),
    stack("scsi-raw", Medium::Scsi, "-", "raw", "-", Q),
    stack("scsi-ext4-part", Medium::Scsi, "part", "ext4", "-", O),
    stack("scsi-f2fs-part", Medium::Scsi, "part", "f2fs", "-", O),
    stack("scsi-raw-part", Medium::Scsi, "part", "raw", "-", O),
    stack("scsi-ext4-lvm", Medium::Scsi, "lvm", "ext4", "-", O),
    stack("scsi-xfs-lvm", Medium::Scsi, "lvm", "xfs", "-", O),
    stack("scsi-ext4-luks", Medium::Scsi, "luks", "ext4", "-", Q),
    stack("scsi-ext4-loop", Medium::Scsi, "loop", "ext4", "-", O),
    stack("scsi-ext4-overlay", Medium::Scsi, "-", "overlay", "-", O),
    stack("scsi-ext4-raid0", Medium::Scsi, "raid0", "ext4", "-", O),
    stack("scsi-ext4-raid1", Medium::Scsi, "raid1", "ext4", "-", Q),
    stack("scsi-ext4-raid5", Medium::Scsi, "raid5", "ext4", "-", O),
    stack("fdp-f2fs", Medium::Fdp, "-", "f2fs", "-", Q),
    stack("fdp-f2fs-part", Medium::Fdp, "part", "f2fs", "-", Q),
    stack("fdp-raw", Medium::Fdp, "-", "raw", "-", Q),
    stack("fdp-raw-part", Medium::Fdp, "part", "raw", "-", O),
    stack("fdp-ext4", Medium::Fdp, "-", "ext4", "-", Q),
    stack("fdp-ext4-journal", Medium::Fdp, "-", "ext4", "data=journal", O),
    stack("fdp-xfs", Medium::Fdp, "-", "xfs", "-", O),
    stack("fdp-xfs-zoned", Medium::Fdp, "-", "xfs-zoned", "-", O),
    stack("fdp-btrfs", Medium::Fdp, "-", "btrfs", "-", O),
    stack("fdp-f2fs-lvm", Medium::Fdp, "lvm", "f2fs", "-", O),
    stack("fdp-f2fs-luks", Medium::Fdp, "luks", "f2fs", "-", O),
    stack("fdp-f2fs-loop", Medium::Fdp, "loop", "f2fs", "-", O),
    stack("fdp-ext4-lvm", Medium::Fdp, "lvm", "ext4", "-", O),
    stack("fdp-ext4-overlay", Medium::Fdp, "-", "overlay", "-", O),
    stack("fdp-f2fs-raid0", Medium::Fdp, "raid0", "f2fs", "-", O),
    stack("fdp-f2fs-raid1", Medium::Fdp, "raid1", "f2fs", "-", O),
    stack("fdp-ext4-raid5", Medium::Fdp, "raid5", "ext4", "-", O),
    stack("nvme-ext4", Medium::Nvme, "-", "ext4", "-", O),
    stack("nvme-f2fs", Medium::Nvme, "-", "f2fs", "-", O),
    stack("nvme-raw", Medium::Nvme, "-", "raw", "-", O),
    stack("virtio-ext4", Medium::Virtio, "-", "ext4", "-", O),
    stack("virtio-f2fs", Medium::Virtio, "-", "f2fs", "-", O),
];

/// The stack called `name`.
pub fn by_name(name: &str) -> Option<&'static Stack> {
    STACKS.iter().find(|stack| stack.name == name)
}

/// Whether the stack called `name` ends in a device, without a file system: prove writes files.
pub fn is_raw(name: &str) -> bool {
    by_name(name).is_some_and(|stack| stack.filesystem == "raw")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_the_quick_ones_are_ten() {
        let names: BTreeSet<&str> = STACKS.iter().map(|s| s.name).collect();
        assert_eq!(names.len(), STACKS.len());
        assert_eq!(STACKS.iter().filter(|s| s.quick).count(), 10);
        let titles: BTreeSet<(String, &str)> =
            STACKS.iter().map(|s| (s.title(), s.medium.word())).collect();
        assert_eq!(titles.len(), STACKS.len());
    }
}
