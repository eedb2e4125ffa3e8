//! What the devices counted: reclaim unit handles, FDP statistics, SCSI groups, zones of XFS.
//!
//! Invariant: counters are read, never reset.

use std::path::{Path, PathBuf};

use super::proof::Moved;
use crate::answer::Answer;
use crate::block::Block;
use crate::fdp;
use crate::host::{Host, ScsiCommand};
use crate::leaf::Leaf;
use crate::mountstats;
use crate::nvme::Statistics;
use crate::scsi;

/// `scsi_debug`'s write commands by group, of all its disks.
const DEBUG_GROUPS: &str = "/sys/bus/pseudo/drivers/scsi_debug/group_number_stats";

/// What there is to count.
pub(super) struct Counters<'a> {
    host: &'a Host,
    /// NVMe drives with FDP on: name, namespace, endurance group.
    fdp: Vec<(String, u32, u16)>,
    /// SCSI drives that keep a log page by group.
    scsi: Vec<String>,
    debug: bool,
    zoned: Option<PathBuf>,
    before: Vec<Count>,
}

/// One counter.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Count {
    device: String,
    /// `handle` or `group`.
    what: &'static str,
    number: u16,
    value: u64,
}

impl<'a> Counters<'a> {
    pub(super) fn new(host: &'a Host, answer: &Answer, folder: &Path) -> Counters<'a> {
        let on = |leaf: &&Leaf| leaf.fdp.as_ref().is_some_and(|f| f.on == Some(true));
        let fdp = answer.drives.iter().filter(on).filter_map(|leaf| {
            let name = leaf.drive.device.clone();
            let block = Block::named(host, &name)?;
            let group = leaf.fdp.as_ref()?.endurance_group;
            Some((name, host.number(block.folder.join("nsid"))?, group))
        });
        let disks = answer.drives.iter().filter(|leaf| leaf.drive.reduced_streams == Some(true));
        let debug = answer.drives.iter().any(|leaf| leaf.drive.transport == "scsi_debug");
        let mounts = crate::walk::mounts(host);
        let place = host.calls().locate(folder).ok();
        let mount = place.and_then(|place| mounts.of_file(&place.path, place.device).cloned());
        let mut counters = Counters {
            host,
            fdp: fdp.collect(),
            scsi: disks.map(|leaf| leaf.drive.device.clone()).collect(),
            debug: debug && host.exists(DEBUG_GROUPS),
            zoned: mount.filter(|mount| mount.file_system == "xfs").map(|mount| mount.point),
            before: Vec::new(),
        };
        counters.scsi.retain(|name| !group_log(host, name).is_empty());
        counters
    }

    /// Whether a device counts by handle or group.
    pub(super) fn any(&self) -> bool {
        self.debug || !self.fdp.is_empty() || !self.scsi.is_empty()
    }

    pub(super) fn begin(&mut self) {
        self.before = self.read();
    }

    /// What moved since.
    pub(super) fn end(&self) -> Vec<Moved> {
        let after = self.read();
        let moved = after.iter().filter_map(|now| {
            let then = self.before.iter().find(|then| {
                (&then.device, then.what, then.number) == (&now.device, now.what, now.number)
            })?;
            // What a handle's unit still takes falls, and begins anew with the next unit.
            let by = match now.what {
                "handle" if now.value <= then.value => then.value - now.value,
                "handle" => 1,
                _ => now.value.wrapping_sub(then.value),
            };
            (by > 0).then(|| Moved {
                device: now.device.clone(),
                what: now.what,
                number: now.number,
                by,
            })
        });
        moved.collect()
    }

    fn read(&self) -> Vec<Count> {
        let mut all = Vec::new();
        for (name, nsid, _) in &self.fdp {
            let placements = fdp::placements(self.host, name, *nsid).unwrap_or_default();
            all.extend(placements.iter().map(|one| Count {
                device: name.clone(),
                what: "handle",
                number: one.handle,
                value: one.writable,
            }));
        }
        for name in &self.scsi {
            let groups = group_log(self.host, name);
            all.extend(groups.into_iter().map(|(group, value)| Count {
                device: name.clone(),
                what: "group",
                number: group,
                value,
            }));
        }
        let text = if self.debug { self.host.text(DEBUG_GROUPS) } else { None };
        all.extend(text.iter().flat_map(|text| text.lines()).filter_map(|line| {
            let (group, count) = line.split_once(' ')?;
            Some(Count {
                device: "scsi_debug".to_owned(),
                what: "group",
                number: group.parse().ok()?,
                value: count.trim().parse().ok()?,
            })
        }));
        all
    }

    /// FDP statistics of the first drive that has them.
    pub(super) fn totals(&self) -> Option<Statistics> {
        let (name, _, group) = self.fdp.first()?;
        let page = fdp::log(self.host, name, 0x22, *group, 64)?;
        Statistics::decode(&page).ok()
    }

    /// Hints of the zones that XFS has open, by name.
    pub(super) fn zones(&self) -> Vec<String> {
        let Some(point) = &self.zoned else { return Vec::new() };
        let stats = self.host.text("/proc/self/mountstats").unwrap_or_default();
        mountstats::hints(&stats, point)
    }
}

/// Write commands by group in log page 19h; empty if the drive has none.
fn group_log(host: &Host, name: &str) -> Vec<(u16, u64)> {
    let groups = 1u8..=6;
    groups
        .map_while(|group| {
            let mut page = [0u8; 128];
            let len = host.calls().scsi(name, &ScsiCommand::group_statistics(group), &mut page);
            let page = page.get(..len.ok()?)?;
            Some((u16::from(group), scsi::group_writes(page, group).ok()??))
        })
        .collect()
}

/// Sums what moved.
pub(super) fn add(sums: &mut Vec<Moved>, more: Vec<Moved>) {
    for one in more {
        let same = |sum: &&mut Moved| {
            (&sum.device, sum.what, sum.number) == (&one.device, one.what, one.number)
        };
        match sums.iter_mut().find(same) {
            Some(sum) => sum.by = sum.by.saturating_add(one.by),
            None => sums.push(one),
        }
    }
}
