//! What the block layer issued, seen by the recorder's BPF program.
//!
//! Invariant: an issue counts for a probe if the kernel's structures lead to its inode; only where
//! they lead to none of the probes' files in its time does the time alone decide.

use std::path::Path;

use shelflife_record::{Seen, Target, Watch};

use super::{Sight, names};
use crate::leaf::Leaf;

/// A watch over the drives.
pub(super) struct Blocks(Watch);

/// Writes of one hint and stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Issued {
    pub(super) hint: u8,
    pub(super) stream: u16,
    pub(super) bytes: u64,
}

impl Blocks {
    pub(super) fn start(drives: &[Leaf]) -> Result<Blocks, String> {
        let said = |error: shelflife_record::Error| format!("block layer: {error}");
        let mut all: Option<Target> = None;
        for name in names(drives) {
            let target = Target::of_device(&Path::new("/dev").join(name)).map_err(said)?;
            match &mut all {
                Some(all) => {
                    let more = target.leaves.into_iter();
                    let known: Vec<String> = all.leaves.iter().map(|l| l.name.clone()).collect();
                    all.leaves.extend(more.filter(|leaf| !known.contains(&leaf.name)));
                }
                None => all = Some(target),
            }
        }
        let target = all.ok_or("block layer: there is no drive to watch")?;
        Watch::start(&target).map(Blocks).map_err(said)
    }

    pub(super) fn stop(self) -> Result<Seen, String> {
        self.0.stop().map_err(|error| format!("block layer: {error}"))
    }
}

/// What was issued for a probe, by hint and stream; whether its file was known.
pub(super) fn issued(seen: &Seen, sight: &Sight) -> (Vec<Issued>, bool) {
    let mine = |issue: &&shelflife_record::Issue| {
        issue.whose.file().is_some_and(|key| {
            let device = rustix::fs::makedev(key.device.major, key.device.minor);
            (device, key.inode) == sight.file
        })
    };
    let within = |issue: &&shelflife_record::Issue| {
        sight.windows.iter().any(|(from, to)| (*from..=*to).contains(&issue.time))
    };
    let writes = || seen.events.iter().filter(|issue| issue.op == shelflife_trace::Op::Write);
    // In its time: the number of an inode is given to another file later.
    let known = writes().any(|issue| mine(&issue) && within(&issue));
    let mut sums: Vec<Issued> = Vec::new();
    for issue in writes().filter(|issue| within(issue) && (!known || mine(issue))) {
        let (hint, stream) = (issue.hint as u8, u16::from(issue.stream));
        match sums.iter_mut().find(|sum| (sum.hint, sum.stream) == (hint, stream)) {
            Some(sum) => sum.bytes += issue.length,
            None => sums.push(Issued { hint, stream, bytes: issue.length }),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.bytes));
    (sums, known)
}
