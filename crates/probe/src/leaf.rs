//! The drive at the end of the way: what its driver sends, and what it can take.
//!
//! Invariant: the arithmetic is the driver's own (`drivers/scsi/sd.c`, `drivers/nvme/host/core.c`);
//! what could not be asked is `None`, and said.

use serde::Serialize;

use crate::block::{Block, Drive, Kind};
use crate::fdp::{self, Fdp};
use crate::host::{Host, ScsiCommand};
use crate::kernel::Kernel;
use crate::rules;
use crate::scsi;
use crate::signal::{Grid, Signal};
use crate::step::{Effect, Step};

/// What arrives at a drive for one lifetime.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Arrival {
    /// `bi_write_hint` of the requests to the drive; `None` if not known.
    pub hint: Option<u8>,
    /// `bi_write_stream` of them.
    pub stream: Option<u16>,
    /// SCSI: GROUP NUMBER of the write commands; `None` if not known, or for other drives.
    pub group: Option<u8>,
    /// NVMe: placement identifier of the write commands; `None` if none is sent, or not known.
    pub placement: Option<u16>,
    /// NVMe: the reclaim unit handle that takes the data, also by default; `None` if not known.
    pub handle: Option<u16>,
    /// Where the drive puts it, for comparing lifetimes with each other.
    #[serde(skip)]
    pub(crate) slot: Slot,
}

/// A place that a drive keeps apart from others.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Slot {
    #[default]
    Unknown,
    /// Where everything goes.
    Default,
    Group(u8),
    Stream(u16),
    Handle(u16),
}

/// A drive at the end of a way.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Leaf {
    /// What it is.
    #[serde(flatten)]
    pub drive: Drive,
    /// Flexible Data Placement of an NVMe drive, if it could be asked.
    pub fdp: Option<Fdp>,
    #[serde(skip)]
    pub(crate) arrivals: Grid<Arrival>,
}

/// What stands above the drive, for its advice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above<'a> {
    pub(crate) kernel: &'a Kernel,
    /// The file system; `None` for a raw device.
    pub(crate) file_system: Option<&'a str>,
    /// Whether it stands on the whole drive itself.
    pub(crate) whole: bool,
    /// Whether devices may be asked.
    pub(crate) ask: bool,
}

/// The end of the way.
pub(crate) struct Reached {
    pub(crate) leaf: Leaf,
    pub(crate) step: Step,
    /// What root would learn more.
    pub(crate) root: Option<&'static str>,
}

pub(crate) fn reach(host: &Host, block: &Block, given: &Grid<Signal>, above: Above<'_>) -> Reached {
    match &block.kind {
        Kind::Nvme => nvme(host, block, given, above),
        Kind::Scsi { .. } => scsi_disk(host, block, given, above),
        Kind::Other(driver) => {
            let drive = block.drive(host);
            let why = format!("{driver} has no field for a hint");
            let step = drive_step(&drive, Effect::Drops, why).change(match *driver {
                "virtio-blk" => {
                    "hand the host's NVMe controller or SCSI disk through to this \
                                 machine (vfio-pci, virtio-scsi with passthrough)"
                }
                _ => "a drive with FDP or streams",
            });
            let step = step.from(block.shown(""));
            lost(drive, given, step)
        }
        _ => {
            let drive = block.drive(host);
            let why = "the driver is not known here";
            let step = drive_step(&drive, Effect::Unknown, why)
                .from(block.shown(""))
                .missing(format!("what the driver of {} does with a hint", block.name));
            let arrivals = given.map(|s| arrival(s, Slot::Unknown));
            Reached { leaf: Leaf { drive, fdp: None, arrivals }, step, root: None }
        }
    }
}

fn arrival(signal: Signal, slot: Slot) -> Arrival {
    Arrival { hint: signal.hint, stream: signal.stream, slot, ..Arrival::default() }
}

fn lost(drive: Drive, given: &Grid<Signal>, step: Step) -> Reached {
    let arrivals = given.map(|signal| arrival(signal, Slot::Default));
    Reached { leaf: Leaf { drive, fdp: None, arrivals }, step, root: None }
}

fn drive_step(drive: &Drive, effect: Effect, why: impl Into<String>) -> Step {
    let what = drive.cloud.map_or_else(|| drive.model.clone(), str::to_owned);
    let name = if what.is_empty() {
        format!("{} ({})", drive.device, drive.transport)
    } else {
        format!("{} ({what}, {})", drive.device, drive.transport)
    };
    Step::new("drive", name, effect, why)
}

/// RSCS of the cached VPD page B7h; `None` without the page.
pub(crate) fn reduced_streams(host: &Host, block: &Block) -> Option<bool> {
    let page = host.read(block.folder.join("device/vpd_pgb7")).ok()?;
    scsi::reduced_stream_control(&page).ok()
}

fn scsi_disk(host: &Host, block: &Block, given: &Grid<Signal>, above: Above<'_>) -> Reached {
    let mut drive = block.drive(host);
    let evidence = block.shown("device/vpd_pgb7");
    let source = rules::SCSI_GROUP.source;
    if drive.transport == "usb" {
        let step = drive_step(&drive, Effect::Drops, "Linux asks no USB disk for streams")
            .source("57619f3cdeb5, drivers/usb/storage/scsiglue.c BLIST_SKIP_IO_HINTS")
            .change("a drive that is attached otherwise")
            .from(block.shown(""));
        return lost(drive, given, step);
    }
    if above.kernel.does(&rules::SCSI_GROUP) == Some(false) {
        let why = format!("Linux sends no hint to SCSI drives before {}", rules::SCSI_GROUP.since);
        let step = drive_step(&drive, Effect::Drops, why)
            .source(source)
            .from("/proc/sys/kernel/osrelease")
            .change(format!(
                "Linux {} or later, and a drive with permanent streams",
                rules::SCSI_GROUP.since
            ));
        return lost(drive, given, step);
    }
    if drive.reduced_streams != Some(true) {
        let why = match (drive.cloud, drive.transport.as_str()) {
            (Some(cloud), _) => format!("an {cloud} offers no streams"),
            (_, "sata") => "SATA has no streams".to_owned(),
            _ => "the drive offers no permanent streams".to_owned(),
        };
        let why = why.replace("an Google", "a Google");
        let step = drive_step(&drive, Effect::Drops, why)
            .source("drivers/scsi/sd.c sd_read_block_limits_ext")
            .from(match drive.reduced_streams {
                Some(_) => format!("{evidence}: RSCS is 0"),
                None => format!("{evidence}: no such page"),
            })
            .change(other_drive());
        return lost(drive, given, step);
    }
    let asked = above.ask.then(|| permanent_streams(host, &block.name));
    let count = asked.as_ref().and_then(|asked| asked.as_ref().ok()).copied();
    drive.permanent_streams = count;
    let arrivals = given.map(|signal| {
        let group = match (signal.hint, count) {
            (Some(0), _) => Some(0),
            (Some(hint), Some(count)) => Some(u16::from(hint).min(count).min(0x3f) as u8),
            _ => None,
        };
        let slot = group.map_or(Slot::Unknown, |group| match group {
            0 => Slot::Default,
            group => Slot::Group(group),
        });
        Arrival { group, ..arrival(signal, slot) }
    });
    let step = match count {
        None => {
            drive_step(&drive, Effect::Unknown, "it offers streams; how many, only root may ask")
                .missing(
                    "the number of permanent streams: run as root, or look for `permanent stream \
                      count` in the kernel log",
                )
        }
        Some(0) => drive_step(&drive, Effect::Drops, "it says RSCS, but has no permanent stream")
            .change(other_drive()),
        Some(count) => {
            let why = format!("writes carry the hint as GROUP NUMBER, at most {count}");
            drive_step(&drive, Effect::Delivers, why)
        }
    };
    let step =
        step.source(format!("{source}, drivers/scsi/sd.c sd_group_number")).from(match count {
            Some(_) => format!("{evidence}, mode page 0Ah/05h, GET STREAM STATUS"),
            None => evidence,
        });
    let root = count.is_none().then_some("the number of permanent streams of a SCSI drive");
    Reached { leaf: Leaf { drive, fdp: None, arrivals }, step, root }
}

/// As `sd_read_io_hints` counts: enabled and permanent streams, up to the first that is not.
fn permanent_streams(host: &Host, name: &str) -> std::io::Result<u16> {
    // SD_BUF_SIZE, the kernel's own buffer.
    let mut page = [0u8; 512];
    let len = match host.calls().scsi(name, &ScsiCommand::advice_groups(512), &mut page) {
        Ok(len) => len,
        // A drive that refuses the page has no streams; one that may not be asked may have some.
        Err(error) if error.kind() == std::io::ErrorKind::Other => return Ok(0),
        Err(error) => return Err(error),
    };
    let enabled = scsi::advice_groups(&page[..len.min(512)]).unwrap_or_default();
    let mut count = 0;
    for (stream, _) in (0u16..).zip(enabled.iter().take_while(|enabled| **enabled)) {
        let mut status = [0u8; 16];
        let asked = host.calls().scsi(name, &ScsiCommand::stream_status(stream), &mut status);
        let permanent = asked.is_ok_and(|len| {
            scsi::is_permanent(status.get(..len).unwrap_or(&status)).unwrap_or(false)
        });
        if !permanent {
            break;
        }
        count = stream + 1;
    }
    Ok(count)
}

/// What a drive must have.
fn other_drive() -> String {
    format!(
        "a drive that can: NVMe with Flexible Data Placement (then f2fs on the whole namespace and \
         Linux {}), or SCSI/UFS with permanent streams",
        rules::F2FS_STREAMS.since
    )
}

fn nvme(host: &Host, block: &Block, given: &Grid<Signal>, above: Above<'_>) -> Reached {
    let drive = block.drive(host);
    let streams = drive.write_streams;
    let fdp = above.ask.then(|| fdp::ask(host, block)).and_then(Result::ok);
    let placements = fdp.as_ref().map_or(&[][..], |fdp| &fdp.placements);
    let file = block.shown("queue/max_write_streams");
    let evidence = match (streams, &fdp) {
        (Some(n), None) => format!("{file}: {n}"),
        (Some(n), Some(_)) => format!("{file}: {n}; Identify, feature 1Dh, log page 20h"),
        (None, _) => format!("{file}: not there"),
    };
    let arrivals = given.map(|signal| {
        // A write without a stream goes where stream 1 goes: to the first placement handle.
        let effective = signal.stream.map(|stream| stream.max(1));
        let entry = effective.and_then(|n| placements.get(usize::from(n) - 1));
        let slot = match (effective, streams) {
            (_, None | Some(0)) => Slot::Default,
            (None, _) => Slot::Unknown,
            (Some(stream), _) => match entry {
                Some(entry) => Slot::Handle(entry.handle),
                None => Slot::Stream(stream),
            },
        };
        Arrival {
            placement: entry.filter(|_| signal.stream != Some(0)).map(|entry| entry.placement),
            handle: entry.map(|entry| entry.handle),
            ..arrival(signal, slot)
        }
    });
    let sends = [given.buffered, given.direct].concat().iter().any(|s| s.stream != Some(0));
    let step = match streams {
        Some(n) if n > 0 && sends => {
            let why = format!(
                "FDP: a write stream is a placement identifier, {n} of them; what has none, as the \
                 file system's own blocks, goes where stream 1 goes"
            );
            drive_step(&drive, Effect::Delivers, why)
                .source("drivers/nvme/host/core.c nvme_setup_rw")
        }
        Some(n) if n > 0 => {
            let producer = match above.file_system {
                Some("f2fs") => {
                    "f2fs sets one only on a whole namespace, since Linux 7.2".to_owned()
                }
                Some(fs) => format!("{fs} sets none"),
                None => "a partition or a stacked device sets none".to_owned(),
            };
            let why = format!(
                "the drive has FDP with {n} handles, but NVMe takes write streams, not hints, and \
                 {producer}"
            );
            drive_step(&drive, Effect::Drops, why)
                .source("drivers/nvme/host/core.c nvme_setup_rw; block/fops.c")
                .change(nvme_change(above))
        }
        streams => without_streams(&drive, streams, fdp.as_ref(), above),
    };
    let root = (above.ask && fdp.is_none())
        .then_some("whether an NVMe drive has FDP, whether it is on, its handles and counters");
    Reached { leaf: Leaf { drive, fdp, arrivals }, step: step.from(evidence), root }
}

fn nvme_change(above: Above<'_>) -> String {
    let since = rules::F2FS_STREAMS.since;
    match (above.file_system, above.whole) {
        (None, _) => "the whole drive, opened with O_DIRECT".to_owned(),
        (Some("f2fs"), true) => format!("Linux {since} or later"),
        (Some("f2fs"), false) => format!("f2fs on the whole namespace instead, with Linux {since}"),
        _ => format!("f2fs directly on the whole namespace, with Linux {since} or later"),
    }
}

/// An NVMe drive to which Linux has no stream.
fn without_streams(
    drive: &Drive,
    streams: Option<u16>,
    fdp: Option<&Fdp>,
    above: Above<'_>,
) -> Step {
    let source = "drivers/nvme/host/core.c nvme_query_fdp_info";
    let drops = |why: String| drive_step(drive, Effect::Drops, why).source(source);
    if let Some(cloud) = drive.cloud {
        let article = if cloud.starts_with('A') { "an" } else { "a" };
        return drops(format!("{article} {cloud} offers no data placement")).change(
            "a machine with a drive of its own that has FDP; nothing on this disk will do",
        );
    }
    match fdp {
        Some(fdp) if fdp.supported && fdp.on == Some(false) => drops(format!(
            "the drive has FDP, but it is off in endurance group {}",
            fdp.endurance_group
        ))
        .change(format!(
            "switch FDP on: back up, delete the namespaces of the group, `nvme fdp feature -e {}`, \
             make the namespace anew with placement handles (`nvme create-ns -n`); then {}",
            fdp.endurance_group,
            nvme_change(above)
        )),
        Some(fdp) if fdp.supported && fdp.reclaim_groups.is_some_and(|n| n > 1) => drops(format!(
            "FDP is on with {} reclaim groups, and Linux takes one only",
            fdp.reclaim_groups.unwrap_or(0)
        ))
        .change(match fdp.single_group {
            Some(index) => format!("configuration {index} of log page 20h, which has one group"),
            None => other_drive(),
        }),
        Some(fdp) if fdp.supported && streams.is_none() => {
            drops(format!("Linux knows no FDP before {}", rules::NVME_STREAMS.since))
                .change(nvme_change(above))
        }
        Some(fdp) if fdp.supported => {
            drops("FDP is on, but this namespace has no placement handle".to_owned())
                .change("make the namespace anew with placement handles (`nvme create-ns -n`)")
        }
        Some(_) => {
            drops("the drive has no Flexible Data Placement".to_owned()).change(other_drive())
        }
        None if streams.is_none() => {
            drops(format!("Linux sends NVMe drives nothing before {}", rules::NVME_STREAMS.since))
                .change(format!("Linux {} and {}", rules::F2FS_STREAMS.since, other_drive()))
        }
        None => drops("Linux finds no FDP on it: the drive has none, or it is off".to_owned())
            .change(other_drive()),
    }
}

/// For the list of devices: whether a hint can leave the host through it.
pub(crate) fn hears(kernel: &Kernel, block: &Block, drive: &Drive) -> String {
    let text = match &block.kind {
        Kind::Nvme => match drive.write_streams {
            Some(0) => "no: no FDP, or it is off",
            Some(n) => return format!("FDP, {n} handles"),
            None => "no: kernel before 6.16",
        },
        Kind::Scsi { .. } => match (drive.transport.as_str(), drive.reduced_streams) {
            ("usb", _) => "no: USB",
            _ if kernel.does(&rules::SCSI_GROUP) == Some(false) => "no: kernel before 6.9",
            (_, Some(true)) => "streams",
            _ => "no: no streams",
        },
        Kind::Other(_) => "no: no field for it",
        Kind::Unknown => "?",
        Kind::Loop { .. } => "no: a loop device",
        Kind::Mapper { .. } | Kind::Raid { .. } | Kind::Bcache { .. } | Kind::Drbd => {
            "see its drives"
        }
    };
    text.to_owned()
}
