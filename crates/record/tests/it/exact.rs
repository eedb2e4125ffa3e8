//! What a test writes once between two syncs is in the trace byte for byte: per file and hint.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use shelflife_lifetime::Lifetime;
use shelflife_record::{Options, Recorder, Target};
use shelflife_trace::Op;

use crate::disk::{Disk, MIB, run, skip_unless_root};
use crate::reading::Whole;

/// Page-aligned memory for O_DIRECT, anonymous or shared.
pub struct Aligned {
    memory: Vec<u8>,
    from: usize,
}

impl Aligned {
    pub fn new(bytes: usize) -> Aligned {
        let memory = vec![0xa5; bytes + 4096];
        let from = memory.as_ptr().align_offset(4096);
        Aligned { memory, from }
    }

    pub fn bytes(&self, length: usize) -> &[u8] {
        &self.memory[self.from..self.from + length]
    }
}

fn create(path: &Path, hint: Lifetime, direct: bool) -> File {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file =
        OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path);
    let file = file.unwrap();
    if hint != Lifetime::NotSet {
        shelflife_lifetime::set(file.as_fd(), hint).unwrap();
    }
    file
}

/// Writes two files a hint, one through the page cache and one direct, each block once.
fn exact(kind: &str, mkfs: &[&str]) {
    let disk = Disk::with(kind, 320 * MIB, mkfs, "");
    let trace = disk.trace("trace");
    let target = Target::of_path(disk.place()).unwrap();
    assert_eq!(target.names(), disk.device.name());
    let recorder = Recorder::start(Options::new(&trace, target)).unwrap();
    let memory = Aligned::new(1 << 20);
    let mut expected = BTreeMap::new();
    let mut wrote = |path: &Path, hint, bytes: usize| {
        expected.insert((path.to_str().unwrap().to_owned(), hint), bytes as u64);
    };
    for hint in Lifetime::ALL {
        let at = usize::try_from(hint.raw()).unwrap() + 1;
        let path = disk.file(&format!("buffered-{hint}"));
        let file = create(&path, hint, false);
        // several writes, of which the kernel makes large folios and few bios
        for part in 0..at {
            file.write_all_at(memory.bytes(256 << 10), (part * (256 << 10)) as u64).unwrap();
        }
        file.sync_all().unwrap();
        wrote(&path, hint, at * (256 << 10));
        let path = disk.file(&format!("direct-{hint}"));
        let file = create(&path, hint, true);
        // the first is split in several bios
        file.write_all_at(memory.bytes(1 << 20), 0).unwrap();
        file.write_all_at(memory.bytes(at * 4096), 1 << 20).unwrap();
        file.sync_all().unwrap();
        wrote(&path, hint, (1 << 20) + at * 4096);
    }
    let summary = recorder.stop().unwrap();
    assert_eq!(summary.tally.lost, 0);
    let whole = Whole::read(&trace);
    assert_eq!(whole.by_file(), expected, "{kind}");
    let classes = whole.by_class(Op::Write);
    assert_eq!(classes.get("unknown"), None, "{kind}: {classes:?}");
    assert_eq!(summary.attributed(), Some(1.0));
    let own = if kind == "btrfs" { "fs-metadata" } else { "fs-journal" };
    assert!(classes.get(own).is_some_and(|bytes| *bytes > 0), "{kind}: {classes:?}");
}

#[test]
fn root_bpf_every_byte_and_hint_on_ext4() {
    skip_unless_root!("root_bpf_every_byte_and_hint_on_ext4");
    exact("ext4", &[]);
}

#[test]
fn root_bpf_every_byte_and_hint_on_xfs() {
    skip_unless_root!("root_bpf_every_byte_and_hint_on_xfs");
    exact("xfs", &[]);
}

#[test]
fn root_bpf_every_byte_and_hint_on_btrfs() {
    skip_unless_root!("root_bpf_every_byte_and_hint_on_btrfs");
    exact("btrfs", &["-d", "single", "-m", "single"]);
}

#[test]
fn root_bpf_btrfs_without_copy_on_write() {
    skip_unless_root!("root_bpf_btrfs_without_copy_on_write");
    let disk = Disk::new("btrfs");
    let folder = disk.file("nocow");
    std::fs::create_dir(&folder).unwrap();
    run("chattr", &["+C", folder.to_str().unwrap()]);
    let trace = disk.trace("trace");
    let target = Target::of_path(&folder).unwrap();
    let recorder = Recorder::start(Options::new(&trace, target)).unwrap();
    let memory = Aligned::new(1 << 20);
    let mut expected = BTreeMap::new();
    for (name, direct) in [("buffered", false), ("direct", true)] {
        let path = folder.join(name);
        let file = create(&path, Lifetime::Long, direct);
        // twice over the same blocks, which stay where they are
        for _ in 0..2 {
            file.write_all_at(memory.bytes(1 << 20), 0).unwrap();
            file.sync_all().unwrap();
        }
        expected.insert((path.to_str().unwrap().to_owned(), Lifetime::Long), 2 << 20);
    }
    recorder.stop().unwrap();
    let whole = Whole::read(&trace);
    assert_eq!(whole.by_file(), expected);
    for name in ["buffered", "direct"] {
        let mut offsets: Vec<u64> = whole
            .events
            .iter()
            .filter(|(_, file)| file.path.as_deref().is_some_and(|path| path.ends_with(name)))
            .map(|(event, _)| event.offset)
            .collect();
        let all = offsets.len();
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets.len() * 2, all, "{name}");
    }
}
