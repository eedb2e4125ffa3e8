//! Which stacks stand side by side in a guest: prove is asked once for all of them, as what it loads
//! into the kernel takes long under emulation.
//!
//! Invariant: a batch wants no more disks, and no more memory for them, than a guest has.

use std::fmt::Write;

use crate::qemu::SCSI_MEMORY;
use crate::stacks::{Medium, Stack};
use crate::store::Outcome;

/// MiB of a SCSI disk.
const DISK: u64 = 256;
/// MiB of one for XFS, which wants 300.
const XFS_DISK: u64 = 330;

/// One stack to run on a kernel.
pub struct Work {
    /// Which.
    pub stack: &'static Stack,
    /// What is known of it but for what the program under test says.
    pub known: Option<Outcome>,
}

/// Stacks that are up at the same time.
#[derive(Default)]
struct Batch<'w> {
    work: Vec<&'w Work>,
    /// SCSI disks of all of them.
    disks: u64,
    /// MiB of each.
    size: u64,
}

impl<'w> Batch<'w> {
    /// Takes `work` if there is room for it.
    fn takes(&mut self, work: &'w Work) -> bool {
        let stack = work.stack;
        let (mut disks, mut size) = (self.disks, self.size);
        if stack.medium == Medium::Scsi {
            disks += stack.disks();
            size = size.max(if stack.filesystem == "xfs" { XFS_DISK } else { DISK });
        }
        // one stack fits in any case
        if disks * size > SCSI_MEMORY && !self.work.is_empty() {
            return false;
        }
        (self.disks, self.size) = (disks, size);
        self.work.push(work);
        true
    }
}

/// The guest's list: for each batch a line with number and size of its SCSI disks, then its stacks:
/// name, device, layer, file system, options, and whether all is to be done or only the program to
/// be asked.
pub fn list(work: &[Work]) -> String {
    let mut text = String::new();
    for batch in batches(work) {
        let _ = writeln!(text, "batch {} {}", batch.disks, batch.size);
        for w in batch.work {
            let (s, what) = (w.stack, if w.known.is_some() { "ask" } else { "all" });
            let medium = s.medium.word();
            let _ = writeln!(
                text,
                "{} {medium} {} {} {} {what}",
                s.name, s.layer, s.filesystem, s.options
            );
        }
    }
    text
}

fn batches(work: &[Work]) -> Vec<Batch<'_>> {
    let mut all: Vec<Batch<'_>> = Vec::new();
    for w in work {
        if !all.last_mut().is_some_and(|batch| batch.takes(w)) {
            let mut batch = Batch::default();
            batch.takes(w);
            all.push(batch);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qemu::DISKS;
    use crate::stacks::STACKS;

    fn all(quick: bool) -> Vec<Work> {
        let wanted = STACKS.iter().filter(|stack| !quick || stack.quick);
        wanted.map(|stack| Work { stack, known: None }).collect()
    }

    #[test]
    fn every_stack_is_in_one_batch_that_has_its_disks() {
        let work = all(false);
        let batches = batches(&work);
        let names: Vec<&str> = batches.iter().flat_map(|b| &b.work).map(|w| w.stack.name).collect();
        assert_eq!(names, STACKS.map(|stack| stack.name));
        for batch in &batches {
            assert!(batch.disks * batch.size <= SCSI_MEMORY);
            for (kind, number, _) in DISKS {
                let of = |w: &&&Work| match (kind, w.stack.medium) {
                    ("fdp", Medium::Fdp) | ("plain", Medium::Nvme) | ("virtio", Medium::Virtio) => {
                        w.stack.disks()
                    }
                    // the unzoned part of a zoned XFS
                    ("plain", _) => u64::from(w.stack.filesystem == "xfs-zoned"),
                    _ => 0,
                };
                let wanted: u64 = batch.work.iter().map(|w| of(&w)).sum();
                assert!(wanted <= number as u64, "{wanted} {kind} disks");
            }
        }
        assert!(batches.len() <= 4, "{} batches", batches.len());
    }

    #[test]
    fn the_quick_ones_are_one_batch() {
        let text = list(&all(true));
        assert_eq!(text.lines().filter(|line| line.starts_with("batch ")).count(), 1, "{text}");
        assert!(text.starts_with("batch 7 256\nscsi-ext4 scsi - ext4 - all\n"), "{text}");
    }
}
