//! What the block layer issued, seen by the recorder's BPF program.
//!
//! Invariant: an issue counts for a probe if the kernel's structures lead to its inode; only where
//! they lead to none of the probes' files in its time does the time alone decide.

use std::collections::BTreeMap;
use std::path::Path;

use shelflife_record::{Issue, Seen, Target, Watch};

use super::Sight;
use super::proof::Requests;
use crate::leaf::Leaf;

/// For each drive where its devices stand among those that are watched, or why it is not.
type Drives = BTreeMap<String, Result<Vec<u16>, String>>;

/// A watch over the drives of all paths.
pub(super) struct Blocks {
    watch: Watch,
    drives: Drives,
}

/// What a watch saw.
pub(super) struct Watched {
    seen: Seen,
    drives: Drives,
}

/// What it saw of some drives.
pub(super) struct Issues<'w> {
    seen: &'w Seen,
    /// As [`Issue::device`] has them.
    devices: Vec<u16>,
}

fn said(error: shelflife_record::Error) -> String {
    format!("block layer: {error}")
}

impl Blocks {
    pub(super) fn start<'d>(drives: impl Iterator<Item = &'d Leaf>) -> Result<Blocks, String> {
        let mut all: Option<Target> = None;
        let mut known = Drives::new();
        for leaf in drives {
            let name = &leaf.drive.device;
            if !known.contains_key(name) {
                let target = Target::of_device(&Path::new("/dev").join(name)).map_err(said);
                known.insert(name.clone(), target.map(|target| add(&mut all, target)));
            }
        }
        let Some(target) = all else {
            let why = known.into_values().find_map(Result::err);
            return Err(why.unwrap_or_else(|| NO_DRIVE.to_owned()));
        };
        Watch::start(&target).map(|watch| Blocks { watch, drives: known }).map_err(said)
    }

    /// Whether all of these are watched, or why not.
    pub(super) fn watches(&self, drives: &[Leaf]) -> Result<(), String> {
        devices(&self.drives, drives).map(|_| ())
    }

    pub(super) fn stop(self) -> Result<Watched, String> {
        let seen = self.watch.stop().map_err(said)?;
        Ok(Watched { seen, drives: self.drives })
    }
}

const NO_DRIVE: &str = "block layer: there is no drive to watch";

/// Adds a drive's devices to those that are watched and says where they stand.
fn add(all: &mut Option<Target>, one: Target) -> Vec<u16> {
    let Some(all) = all else {
        let places = 0..u16::try_from(one.leaves.len()).unwrap_or(u16::MAX);
        *all = Some(one);
        return places.collect();
    };
    let mut places = Vec::new();
    for leaf in one.leaves {
        let known = all.leaves.iter().position(|other| other.name == leaf.name);
        let at = known.unwrap_or_else(|| {
            all.leaves.push(leaf);
            all.leaves.len() - 1
        });
        // More than a watch takes; it is refused at its start.
        places.push(u16::try_from(at).unwrap_or(u16::MAX));
    }
    places
}

fn devices(known: &Drives, drives: &[Leaf]) -> Result<Vec<u16>, String> {
    let mut all = Vec::new();
    for leaf in drives {
        match known.get(&leaf.drive.device) {
            Some(Ok(places)) => all.extend(places),
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(NO_DRIVE.to_owned()),
        }
    }
    if all.is_empty() { Err(NO_DRIVE.to_owned()) } else { Ok(all) }
}

impl Watched {
    /// What was seen of these drives; nothing if one of them was not watched.
    pub(super) fn of(&self, drives: &[Leaf]) -> Option<Issues<'_>> {
        let devices = devices(&self.drives, drives).ok()?;
        Some(Issues { seen: &self.seen, devices })
    }
}

impl Issues<'_> {
    /// Events that were lost, or more than a watch keeps, of whatever drive.
    pub(super) fn lost(&self) -> u64 {
        self.seen.tally.lost.saturating_add(self.seen.not_kept)
    }
}

/// What was issued for a probe, by hint and stream; whether its file was known.
pub(super) fn issued(issues: &Issues<'_>, sight: &Sight) -> (Vec<Requests>, bool) {
    let mine = |issue: &&Issue| {
        issue.whose.file().is_some_and(|key| {
            let device = rustix::fs::makedev(key.device.major, key.device.minor);
            (device, key.inode) == sight.file
        })
    };
    let within =
        |issue: &&Issue| sight.windows.iter().any(|(from, to)| (*from..=*to).contains(&issue.time));
    let writes = || {
        let events = issues.seen.events.iter().filter(within);
        events.filter(|issue| {
            issue.op == shelflife_trace::Op::Write && issues.devices.contains(&issue.device)
        })
    };
    // In its time: the number of an inode is given to another file later.
    let known = writes().any(|issue| mine(&issue));
    let mut sums: Vec<Requests> = Vec::new();
    for issue in writes().filter(|issue| !known || mine(issue)) {
        let (hint, stream) = (issue.hint as u8, u16::from(issue.stream));
        match sums.iter_mut().find(|sum| (sum.hint, sum.stream) == (hint, stream)) {
            Some(sum) => sum.bytes += issue.length,
            None => sums.push(Requests { hint, stream, bytes: issue.length }),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.bytes));
    (sums, known)
}
