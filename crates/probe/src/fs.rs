//! What a file system makes of a file's hint.
//!
//! Invariant: what is said of a file system depends on its type, its mount options, the file's
//! attributes and the rules of [`crate::rules`]; one that is not known here is unknown, not lost.

use shelflife_lifetime::Lifetime;
use shelflife_mounts::Mount;

use crate::kernel::Kernel;
use crate::rules::{self, Rule};
use crate::signal::{Grid, Mode, Signal};
use crate::step::{Effect, Step};

/// `FS_COMPR_FL`, `include/uapi/linux/fs.h`.
const COMPRESSED: u32 = 0x4;
/// `FS_JOURNAL_DATA_FL`.
const JOURNAL_DATA: u32 = 0x4000;
/// `FS_NOCOW_FL`: on btrfs also no checksums.
const NO_COW: u32 = 0x0080_0000;

/// File systems whose writes go through `fs/buffer.c`, `fs/mpage.c` and `fs/direct-io.c` only.
const SIMPLE: [&str; 5] = ["ext2", "vfat", "msdos", "exfat", "udf"];

/// File systems that write no block requests of their own for a file, and why.
const NEVER: [(&str, &str); 20] = [
    ("nfs", "the protocol has no field for a hint"),
    ("nfs4", "the protocol has no field for a hint"),
    ("cifs", "the protocol has no field for a hint"),
    ("smb3", "the protocol has no field for a hint"),
    ("9p", "the protocol has no field for a hint"),
    ("virtiofs", "the protocol has no field for a hint"),
    ("ceph", "the protocol has no field for a hint"),
    ("glusterfs", "the protocol has no field for a hint"),
    ("lustre", "the protocol has no field for a hint"),
    ("beegfs", "the protocol has no field for a hint"),
    ("fuse", "the protocol has no field for a hint"),
    ("fuseblk", "the protocol has no field for a hint"),
    ("tmpfs", "it lives in memory"),
    ("ramfs", "it lives in memory"),
    ("devtmpfs", "it lives in memory"),
    ("hugetlbfs", "it lives in memory"),
    ("proc", "it holds no data"),
    ("sysfs", "it holds no data"),
    ("zfs", "it makes its own requests and ignores the hint of the inode"),
    ("squashfs", "it is not written"),
];

/// What the file system does with the hint for itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Use {
    /// Its logs: for each lifetime one of `hot`, `warm`, `cold`.
    Logs([&'static str; 6]),
    /// Its zones.
    Zones,
}

/// What comes out below the file system.
#[derive(Debug)]
pub(crate) struct Produced {
    pub(crate) signals: Grid<Signal>,
    pub(crate) step: Step,
    pub(crate) uses: Option<Use>,
    /// Whether its data never becomes block requests that carry the file's hint: the walk ends.
    pub(crate) ends: bool,
}

/// What the file system sees of the file and of the device below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) mount: &'a Mount,
    /// `FS_IOC_GETFLAGS` of the file, if it could be asked.
    pub(crate) attributes: Option<u32>,
    /// Whether `mountstats` shows zones.
    pub(crate) zoned: bool,
    /// `max_write_streams` of the device that it stands on.
    pub(crate) streams: Option<u16>,
}

impl Ground<'_> {
    fn has(&self, attribute: u32) -> bool {
        self.attributes.is_some_and(|all| all & attribute != 0)
    }
}

/// Follows the hints `given`, one for each way and lifetime (`None`: not known), through the file
/// system.
pub(crate) fn produce(ground: &Ground<'_>, given: &Grid<Option<u8>>) -> Produced {
    let kind = ground.mount.file_system.as_str();
    if let Some((_, why)) = NEVER.iter().find(|(name, _)| *name == kind || is_fuse(kind, name)) {
        let why = format!("{why}: the call succeeds, and nothing leaves the file system");
        let step = step(ground, Effect::Drops, why).source(format!("no write_hint in fs/{kind}"));
        return ended(step.change("put the files on a local file system"), Signal::NOTHING);
    }
    if kind == "overlay" {
        return ended(overlay(ground), Signal::NOTHING);
    }
    if let Some(early) = before_hints(ground, given) {
        return early;
    }
    if let Some("" | "always") = ground.mount.option("dax") {
        let step = step(ground, Effect::Drops, "dax: files are memory, there are no requests");
        return ended(step.source("fs/dax.c"), Signal::NOTHING);
    }
    match kind {
        "ext4" | "ext3" => ext4(ground, given),
        "xfs" => xfs(ground, given),
        "btrfs" => btrfs(ground, given),
        "f2fs" => f2fs(ground, given),
        _ if SIMPLE.contains(&kind) => {
            let why = format!("{kind} writes through the generic code, which passes the hint on");
            let step = step(ground, Effect::Keeps, why);
            through(ground, given, step, &rules::BLOCK_HINT, &rules::BLOCK_HINT)
        }
        _ => {
            let step = step(ground, Effect::Unknown, format!("{kind} was not examined"))
                .missing(format!("what {kind} does with a hint; `shelflife prove` shows it"));
            Produced { signals: Grid::all(Signal::UNKNOWN), step, uses: None, ends: false }
        }
    }
}

fn is_fuse(kind: &str, name: &str) -> bool {
    name == "fuse" && kind.starts_with("fuse.")
}

fn step(ground: &Ground<'_>, effect: Effect, why: impl Into<String>) -> Step {
    let mount = ground.mount;
    Step::new("file system", &mount.file_system, effect, why).from(format!(
        "/proc/self/mountinfo: {} on {}",
        mount.source.display(),
        mount.point.display()
    ))
}

fn ended(step: Step, signal: Signal) -> Produced {
    Produced { signals: Grid::all(signal), step, uses: None, ends: true }
}

fn overlay(ground: &Ground<'_>) -> Step {
    let upper = ground.mount.option("upperdir").unwrap_or("the upper folder");
    step(
        ground,
        Effect::Drops,
        "the hint stays on the overlay's inode; the file below, which is written, never gets it",
    )
    .source("no write_hint in fs/overlayfs")
    .change(format!(
        "put the data on a volume (a bind mount) instead of the container's own layer; or set \
         hints from the host, on the files below {upper}"
    ))
}

/// Kernels between 5.18 and 6.8, where block requests have no hint, and those before.
fn before_hints(ground: &Ground<'_>, given: &Grid<Option<u8>>) -> Option<Produced> {
    let kernel = ground.kernel;
    if kernel.does(&rules::BLOCK_HINT) != Some(false) {
        return None;
    }
    if kernel.does(&rules::STREAMS_REMOVED) == Some(false) {
        // 4.13 to 5.17: hints went as far as NVMe streams, if the driver was told to use them.
        if kernel.streams_parameter == Some(true) {
            let step = step(ground, Effect::Unknown, "kernels of NVMe streams were not examined")
                .missing("what this kernel does; `shelflife prove` shows it");
            let signals = Grid::all(Signal::UNKNOWN);
            return Some(Produced { signals, step, uses: None, ends: false });
        }
        let signals = Grid::all(Signal { hint: None, stream: Some(0) });
        let step = step(ground, Effect::Keeps, "passes hints to NVMe streams, which are off");
        return Some(Produced { signals, step, uses: None, ends: false });
    }
    let uses = match ground.mount.file_system.as_str() {
        "f2fs" => f2fs_logs(ground, given),
        _ => None,
    };
    let why = format!(
        "Linux 5.18 to 6.8 have no hint in block requests: the call succeeds, {}",
        if uses.is_some() {
            "f2fs chooses its log by it, and nothing leaves"
        } else {
            "nothing leaves"
        }
    );
    let step = step(ground, Effect::Drops, why)
        .source(format!("{}; {}", rules::STREAMS_REMOVED.source, rules::BLOCK_HINT.source))
        .change(format!("Linux {} or later", needed(&ground.mount.file_system).since));
    Some(Produced { signals: Grid::all(Signal::NOTHING), step, uses, ends: false })
}

/// The rule that a file system's writeback needs.
fn needed(kind: &str) -> &'static Rule {
    match kind {
        "ext4" | "ext3" => &rules::EXT4_BUFFERED,
        "btrfs" => &rules::BTRFS_BUFFERED,
        "f2fs" => &rules::F2FS_HINT,
        _ => &rules::BLOCK_HINT,
    }
}

/// The plain case: each way of writing carries the hint from one version on.
fn through(
    ground: &Ground<'_>,
    given: &Grid<Option<u8>>,
    step: Step,
    buffered: &Rule,
    direct: &Rule,
) -> Produced {
    let carries = |mode| match mode {
        Mode::Buffered => ground.kernel.does(buffered),
        Mode::Direct => ground.kernel.does(direct),
    };
    let signals = Grid::new(|mode, lifetime| match carries(mode) {
        Some(true) => Signal { hint: at(given, mode, lifetime), stream: Some(0) },
        Some(false) => Signal::NOTHING,
        None => Signal { hint: None, stream: Some(0) },
    });
    let mut step = step;
    if step.source.is_empty() {
        step.source = format!("{} ({})", buffered.source, buffered.since);
    }
    match (carries(Mode::Buffered), carries(Mode::Direct)) {
        (Some(false), Some(true)) => {
            step.effect = Effect::DirectOnly;
            step.why = format!(
                "writes back the page cache without the hint before Linux {}; direct I/O has it",
                buffered.since
            );
            step.change = Some(format!("Linux {} or later", buffered.since));
        }
        (Some(false), _) => {
            step.effect = Effect::Drops;
            step.why = format!("passes no hint on before Linux {}", buffered.since);
            step.change = Some(format!("Linux {} or later", buffered.since));
        }
        (None, _) => {
            step.effect = Effect::Unknown;
            step.missing = Some("the kernel's version".to_owned());
        }
        (Some(true), _) => {}
    }
    Produced { signals, step, uses: None, ends: false }
}

fn at(given: &Grid<Option<u8>>, mode: Mode, lifetime: Lifetime) -> Option<u8> {
    given.of(mode)[lifetime as usize]
}

fn ext4(ground: &Ground<'_>, given: &Grid<Option<u8>>) -> Produced {
    let journalled = ground.mount.option("data") == Some("journal") || ground.has(JOURNAL_DATA);
    if journalled {
        let why = "data=journal: each block is written twice; the journal's copy carries no hint, \
                   the copy at the checkpoint does";
        let step = step(ground, Effect::Keeps, why);
        // Direct I/O on journalled data falls back to the page cache.
        let rule = &rules::EXT4_BUFFERED;
        return through(ground, given, step, rule, rule);
    }
    let why = "data carries the hint at writeback; journal and metadata carry none";
    let step = step(ground, Effect::Keeps, why);
    through(ground, given, step, &rules::EXT4_BUFFERED, &rules::BLOCK_HINT)
}

fn xfs(ground: &Ground<'_>, given: &Grid<Option<u8>>) -> Produced {
    let why = "data carries the hint at writeback; log and metadata carry none";
    let step = step(ground, Effect::Keeps, why);
    let mut done = through(ground, given, step, &rules::BLOCK_HINT, &rules::BLOCK_HINT);
    if ground.zoned {
        let off = ground.mount.option("nolifetime").is_some();
        if off {
            done.step.why += "; nolifetime: zones are chosen without it";
        } else if ground.kernel.does(&rules::XFS_ZONES) != Some(false) {
            done.step.why += "; zones are chosen by it";
            done.step.source += &format!(", {}", rules::XFS_ZONES.source);
            done.uses = Some(Use::Zones);
        }
    }
    done
}

fn btrfs(ground: &Ground<'_>, given: &Grid<Option<u8>>) -> Produced {
    let mount = ground.mount;
    let forced = mount.option("compress-force").is_some_and(|v| v != "no" && v != "none");
    let asked = mount.option("compress").is_some_and(|v| v != "no" && v != "none");
    let no_cow = mount.option("nodatacow").is_some() || ground.has(NO_COW);
    // Checksummed files had no true direct I/O: it fell back (968f19c5b1b7, also in 6.12.y).
    let checksums = mount.option("nodatasum").is_none() && !no_cow;
    let direct = match (checksums, ground.kernel.does(&rules::BTRFS_DIRECT)) {
        (true, Some(false)) => &rules::BTRFS_BUFFERED,
        _ => &rules::BLOCK_HINT,
    };
    let why = "data carries the hint at writeback; metadata carries none";
    let mut done =
        through(ground, given, step(ground, Effect::Keeps, why), &rules::BTRFS_BUFFERED, direct);
    if (forced || asked || ground.has(COMPRESSED)) && !no_cow {
        done.signals.buffered = [Signal::NOTHING; 6];
        let is_direct = *direct == rules::BLOCK_HINT;
        if !is_direct {
            done.signals.direct = [Signal::NOTHING; 6];
        }
        done.step = step(
            ground,
            if is_direct { Effect::DirectOnly } else { Effect::Drops },
            "compressed extents are written without the hint; only data that does not compress \
             carries it",
        )
        .source("fs/btrfs/compression.c has no write_hint")
        .change("mount without compression, or `chattr +C` the folder before its files are made");
    }
    done
}

/// Which log the hint chooses; `None` where f2fs has fewer than six logs and so no choice.
fn f2fs_logs(ground: &Ground<'_>, given: &Grid<Option<u8>>) -> Option<Use> {
    if logs_of(ground) != 6 || ground.kernel.does(&rules::F2FS_LOGS) == Some(false) {
        return None;
    }
    Some(Use::Logs(given.buffered.map(|hint| log_of(hint.unwrap_or(0)).0)))
}

fn logs_of(ground: &Ground<'_>) -> u8 {
    ground.mount.option("active_logs").and_then(|n| n.parse().ok()).unwrap_or(6)
}

/// Log, block hint and stream for an inode's hint (`f2fs_rw_hint_to_seg_type`,
/// `f2fs_io_type_to_rw_hint`, `fs/f2fs/segment.c`).
fn log_of(hint: u8) -> (&'static str, u8, u16) {
    match hint {
        2 => ("hot", 2, 1),
        5 => ("cold", 5, 3),
        _ => ("warm", 0, 2),
    }
}

fn f2fs(ground: &Ground<'_>, given: &Grid<Option<u8>>) -> Produced {
    // Fewer logs leave no choice: all data is cold with four, hot with two.
    let fixed = match logs_of(ground) {
        6 => None,
        4 => Some(5),
        _ => Some(2),
    };
    let hints = ground.kernel.does(&rules::F2FS_HINT);
    let maps = ground.kernel.does(&rules::F2FS_STREAMS);
    let signals = given.map(|hint| {
        let Some(hint) = fixed.or(hint) else { return Signal::UNKNOWN };
        let (_, block, log) = log_of(hint);
        let stream = match (maps, ground.streams) {
            (Some(false), _) | (_, Some(0)) => Some(0),
            (Some(true), Some(streams)) => Some(match (streams, log) {
                (3.., log) => log,
                (streams, 3) => streams,
                _ => 1,
            }),
            (_, None) if ground.kernel.does(&rules::NVME_STREAMS) == Some(false) => Some(0),
            _ => None,
        };
        let hint = match hints {
            Some(true) => Some(block),
            Some(false) => Some(0),
            None => None,
        };
        Signal { hint, stream }
    });
    let uses = f2fs_logs(ground, given);
    let source =
        format!("fs/f2fs/segment.c; {} ({})", rules::F2FS_HINT.source, rules::F2FS_HINT.since);
    let step = if fixed.is_some() {
        let why = "active_logs below 6: all data goes into one log, whatever its hint";
        step(ground, Effect::Drops, why).change("mount with active_logs=6, the default")
    } else if hints == Some(false) {
        let why =
            format!("chooses its log by the hint; sends none before {}", rules::F2FS_HINT.since);
        let change = format!("Linux {} or later", rules::F2FS_HINT.since);
        step(ground, Effect::Drops, why).change(change)
    } else {
        let why = "three logs: short hot, extreme cold, all else warm; what is written back in 16 blocks \
             or fewer is hot whatever its hint, what the cleaner moves is cold";
        step(ground, Effect::Keeps, why)
    };
    Produced { signals, step: step.source(source), uses, ends: false }
}
