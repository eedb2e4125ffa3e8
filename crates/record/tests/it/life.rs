//! What happens to files: unlinked, renamed, reused numbers, discards, and buffers that are pages
//! of other files.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use shelflife_lifetime::Lifetime;
use shelflife_record::{Options, Recorder, Summary, Target, Watch};
use shelflife_trace::{Event, FileEntry, Op};

use crate::disk::{Disk, MIB, run, skip_unless_root};
use crate::exact::Aligned;
use crate::reading::Whole;

/// Records `what` on the disk.
fn recorded(disk: &Disk, what: impl FnOnce(&Disk)) -> (Whole, Summary) {
    let trace = disk.trace("trace");
    let target = Target::of_path(disk.place()).unwrap();
    let recorder = Recorder::start(Options::new(&trace, target)).unwrap();
    what(disk);
    let summary = recorder.stop().unwrap();
    assert_eq!(summary.tally.lost, 0);
    (Whole::read(&trace), summary)
}

fn writes<'w>(whole: &'w Whole, path: &'w Path) -> impl Iterator<Item = &'w (Event, FileEntry)> {
    whole.events.iter().filter(move |(event, file)| {
        event.op == Op::Write && file.path.as_deref().map(Path::new) == Some(path)
    })
}

fn bytes(whole: &Whole, path: &Path) -> u64 {
    writes(whole, path).map(|(event, _)| event.length).sum()
}

#[test]
fn root_bpf_an_unlinked_file_keeps_its_last_name() {
    skip_unless_root!("root_bpf_an_unlinked_file_keeps_its_last_name");
    for kind in ["ext4", "xfs", "btrfs"] {
        let disk = Disk::new(kind);
        let path = disk.file("pgsql_tmp1.0");
        let (whole, _) = recorded(&disk, |_| {
            let file = File::create(&path).unwrap();
            file.write_all_at(&vec![1; 1 << 18], 0).unwrap();
            fs::remove_file(&path).unwrap();
            file.sync_all().unwrap();
        });
        assert_eq!(bytes(&whole, &path), 1 << 18, "{kind}");
    }
}

#[test]
fn root_bpf_a_renamed_file_is_the_same_one() {
    skip_unless_root!("root_bpf_a_renamed_file_is_the_same_one");
    let disk = Disk::new("ext4");
    let (old, new) = (disk.file("old"), disk.file("new"));
    let (whole, _) = recorded(&disk, |_| {
        let file = File::create(&old).unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        file.sync_all().unwrap();
        fs::rename(&old, &new).unwrap();
        file.write_all_at(&[2; 4096], 8192).unwrap();
        file.sync_all().unwrap();
    });
    assert_eq!((bytes(&whole, &old), bytes(&whole, &new)), (0, 12288));
    let mut rows: Vec<u32> = writes(&whole, &new).map(|(event, _)| event.file.0).collect();
    rows.dedup();
    assert_eq!(rows.len(), 1, "one row for both names");
}

#[test]
fn root_bpf_a_new_wal_segment_changes_its_class_when_it_is_renamed() {
    skip_unless_root!("root_bpf_a_new_wal_segment_changes_its_class_when_it_is_renamed");
    let disk = Disk::new("ext4");
    for folder in ["pg/global", "pg/pg_wal", "pg/base/5"] {
        fs::create_dir_all(disk.file(folder)).unwrap();
    }
    fs::write(disk.file("pg/PG_VERSION"), "15\n").unwrap();
    run("sync", &["-f", disk.place().to_str().unwrap()]);
    let (fresh, ready) =
        (disk.file("pg/pg_wal/xlogtemp.17"), disk.file("pg/pg_wal/000000010000000000000007"));
    let (whole, _) = recorded(&disk, |disk| {
        let file = File::create(&fresh).unwrap();
        file.write_all_at(&vec![0; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        fs::rename(&fresh, &ready).unwrap();
        file.write_all_at(&vec![1; 1 << 16], 0).unwrap();
        file.sync_all().unwrap();
        let relation = File::create(disk.file("pg/base/5/16384")).unwrap();
        relation.write_all_at(&vec![1; 1 << 15], 0).unwrap();
        relation.sync_all().unwrap();
        fs::write(disk.file("other"), [0; 4096]).unwrap();
        File::open(disk.file("other")).unwrap().sync_all().unwrap();
    });
    let classes = whole.by_class(Op::Write);
    let of = |class| classes.get(class).copied().unwrap_or(0);
    assert_eq!((of("wal-new"), of("wal"), of("relation")), (1 << 20, 1 << 16, 1 << 15));
    assert_eq!(of("outside"), 4096);
    assert_eq!((bytes(&whole, &fresh), bytes(&whole, &ready)), (1 << 20, 1 << 16));
}

#[test]
fn root_bpf_a_reused_inode_number_is_a_new_file() {
    skip_unless_root!("root_bpf_a_reused_inode_number_is_a_new_file");
    let disk = Disk::new("ext4");
    let mut inodes = Vec::new();
    let (whole, _) = recorded(&disk, |disk| {
        for name in ["first", "second"] {
            let path = disk.file(name);
            let file = File::create(&path).unwrap();
            file.write_all_at(&[1; 4096], 0).unwrap();
            file.sync_all().unwrap();
            inodes.push(file.metadata().unwrap().ino());
            drop(file);
            fs::remove_file(&path).unwrap();
        }
    });
    assert_eq!(inodes[0], inodes[1], "ext4 takes the first free one");
    for name in ["first", "second"] {
        assert_eq!(bytes(&whole, &disk.file(name)), 4096, "{name}");
    }
}

#[test]
fn root_bpf_the_same_inode_in_two_subvolumes_is_two_files() {
    skip_unless_root!("root_bpf_the_same_inode_in_two_subvolumes_is_two_files");
    let disk = Disk::new("btrfs");
    for name in ["a", "b"] {
        run("btrfs", &["subvolume", "create", disk.file(name).to_str().unwrap()]);
    }
    let (a, b) = (disk.file("a/f"), disk.file("b/f"));
    let (whole, _) = recorded(&disk, |_| {
        let (one, two) = (File::create(&a).unwrap(), File::create(&b).unwrap());
        assert_eq!(one.metadata().unwrap().ino(), two.metadata().unwrap().ino());
        one.write_all_at(&[1; 4096], 0).unwrap();
        two.write_all_at(&[2; 8192], 0).unwrap();
        one.sync_all().unwrap();
        two.sync_all().unwrap();
    });
    assert_eq!((bytes(&whole, &a), bytes(&whole, &b)), (4096, 8192));
}

#[test]
fn root_bpf_a_block_within_a_large_folio_has_its_file() {
    skip_unless_root!("root_bpf_a_block_within_a_large_folio_has_its_file");
    for kind in ["ext4", "xfs", "btrfs"] {
        let disk = Disk::new(kind);
        let path = disk.file("large");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all_at(&vec![1; 4 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let (whole, _) = recorded(&disk, |_| {
            // pages that are mostly not the first of their folio
            for at in 0..64 {
                file.write_all_at(&[2; 4096], at * 65536 + 4096 * (1 + at % 15)).unwrap();
            }
            file.sync_all().unwrap();
        });
        let classes = whole.by_class(Op::Write);
        assert_eq!(classes.get("unknown"), None, "{kind}");
        // btrfs writes no more than the blocks either; each is there at least
        assert!(bytes(&whole, &path) >= 64 * 4096, "{kind}: {}", bytes(&whole, &path));
    }
}

#[test]
fn root_bpf_discards_appear() {
    skip_unless_root!("root_bpf_discards_appear");
    let disk = Disk::with("ext4", 320 * MIB, &[], "discard");
    let path = disk.file("gone");
    let before = disk.device.discarded();
    let (whole, summary) = recorded(&disk, |disk| {
        let file = File::create(&path).unwrap();
        file.write_all_at(&vec![1; 16 << 20], 0).unwrap();
        file.sync_all().unwrap();
        drop(file);
        fs::remove_file(&path).unwrap();
        run("sync", &["-f", disk.place().to_str().unwrap()]);
        // ext4 gives the blocks back some time after the commit
        for attempt in 0.. {
            if disk.device.discarded() >= before + (16 << 20) {
                break;
            }
            assert!(attempt < 1000, "{} bytes discarded", disk.device.discarded() - before);
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut written: Vec<(u64, u64)> =
        writes(&whole, &path).map(|(event, _)| (event.offset, event.end())).collect();
    written.sort_unstable();
    let discarded: u64 = whole.by_class(Op::Discard).values().sum();
    assert!(discarded >= 16 << 20, "{discarded}");
    // one written range may be given back in parts
    let mut given: Vec<(u64, u64)> = Vec::new();
    let mut discards: Vec<(u64, u64)> = whole
        .events
        .iter()
        .filter(|(event, _)| event.op == Op::Discard)
        .map(|(event, _)| (event.offset, event.end()))
        .collect();
    discards.sort_unstable();
    for (from, to) in discards {
        match given.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => given.push((from, to)),
        }
    }
    let covered = |from, to| given.iter().any(|given| given.0 <= from && given.1 >= to);
    assert!(written.iter().all(|(from, to)| covered(*from, *to)));
    assert!(summary.meta.counts.flushes > 0);
    let (whole, _) = {
        fs::remove_dir_all(disk.trace("trace")).unwrap();
        recorded(&disk, |disk| {
            run("fstrim", &[disk.place().to_str().unwrap()]);
        })
    };
    assert!(whole.by_class(Op::Discard).values().sum::<u64>() > 200 << 20);
}

/// A mapping of a file, unmapped at the end.
struct Mapped {
    at: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    fn shared(file: &File, length: usize) -> Mapped {
        use std::os::fd::AsRawFd;
        // SAFETY: a fresh mapping at an address that the kernel chooses.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        Mapped { at, length }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for reading, for as long as `self` is, and nobody writes to the file.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping that `shared` made, whose slices have ended with `self`.
        unsafe { libc::munmap(self.at, self.length) };
    }
}

#[test]
fn root_bpf_a_buffer_that_is_a_page_of_another_file_names_nobody() {
    skip_unless_root!("root_bpf_a_buffer_that_is_a_page_of_another_file_names_nobody");
    let disk = Disk::new("ext4");
    let raw = crate::disk::Loop::new(64 * MIB);
    let other = disk.file("other");
    fs::write(&other, vec![7; 1 << 20]).unwrap();
    let other = File::open(&other).unwrap();
    other.sync_all().unwrap();
    let mapped = Mapped::shared(&other, 1 << 20);
    let direct = |path: &Path, create| {
        let mut options = OpenOptions::new();
        options.write(true).create(create).custom_flags(libc::O_DIRECT);
        options.open(path).unwrap()
    };
    // to a file: its own name
    let path = disk.file("direct");
    let (whole, _) = recorded(&disk, |_| {
        direct(&path, true).write_all_at(mapped.bytes(), 0).unwrap();
    });
    assert_eq!(bytes(&whole, &path), 1 << 20);
    assert_eq!(bytes(&whole, &disk.file("other")), 0);
    // to a device: none
    let watch = Watch::start(&Target::of_device(raw.device.as_ref()).unwrap()).unwrap();
    let device = direct(raw.device.as_ref(), false);
    for at in 0..4 {
        device.write_all_at(&mapped.bytes()[..4096], at * 4096).unwrap();
    }
    device.write_all_at(mapped.bytes(), 1 << 20).unwrap();
    let seen = watch.stop().unwrap();
    assert_eq!(seen.events.iter().map(|issue| issue.length).sum::<u64>(), (1 << 20) + 4 * 4096);
    assert!(seen.events.iter().all(|issue| issue.whose.file().is_none()), "{:?}", seen.events);
}

#[test]
fn root_bpf_a_watch_tells_files_and_hints() {
    skip_unless_root!("root_bpf_a_watch_tells_files_and_hints");
    let disk = Disk::new("xfs");
    let watch = Watch::start(&Target::of_path(disk.place()).unwrap()).unwrap();
    let memory = Aligned::new(8192);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_DIRECT)
        .open(disk.file("f"))
        .unwrap();
    shelflife_lifetime::set(&file, Lifetime::Short).unwrap();
    file.write_all_at(memory.bytes(8192), 0).unwrap();
    shelflife_lifetime::set(&file, Lifetime::Extreme).unwrap();
    file.write_all_at(memory.bytes(4096), 8192).unwrap();
    let seen = watch.stop().unwrap();
    let inode = file.metadata().unwrap().ino();
    let sums = seen.sums();
    let of = |hint| {
        let mut found = sums.iter().filter(|(what, _)| {
            what.hint == hint && what.file.is_some_and(|file| file.inode == inode)
        });
        let sum = found.next().map(|(_, sum)| (sum.events, sum.bytes));
        assert!(found.next().is_none());
        sum
    };
    assert_eq!(of(Lifetime::Short), Some((1, 8192)));
    assert_eq!(of(Lifetime::Extreme), Some((1, 4096)));
    assert_eq!(of(Lifetime::Long), None);
    assert_eq!(seen.tally.lost, 0);
}
