//! A ring that is too small, a disk that is full, a device that goes away, another recorder.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use shelflife_record::{Ended, Error, Options, Recorder, Target};
use shelflife_trace::{Error as TraceError, Note, Op, Trace};

use crate::disk::{Disk, Loop, MIB, run, skip_unless_root};
use crate::exact::Aligned;
use crate::reading::Whole;

/// Writes `count` single blocks, each of which is one request of one bio.
fn blocks(device: &Loop, count: u64) {
    let memory = Aligned::new(4096);
    let mut options = OpenOptions::new();
    let file = options.write(true).custom_flags(libc::O_DIRECT).open(&device.device).unwrap();
    for at in 0..count {
        file.write_all_at(memory.bytes(4096), at % 1000 * 4096).unwrap();
    }
}

fn on(device: &Loop, name: &str) -> Options {
    Options::new(
        device.folder.path().join(name),
        Target::of_device(device.device.as_ref()).unwrap(),
    )
}

#[test]
fn root_bpf_what_has_no_room_is_counted_exactly() {
    skip_unless_root!("root_bpf_what_has_no_room_is_counted_exactly");
    let device = Loop::new(16 * MIB);
    let mut options = on(&device, "trace");
    options.ring_bytes = 4096;
    options.drain_every = Duration::from_secs(3600);
    let recorder = Recorder::start(options).unwrap();
    blocks(&device, 500);
    let summary = recorder.stop().unwrap();
    let counts = &summary.meta.counts;
    assert_eq!(counts.writes + counts.lost, 500);
    // 72 bytes each with the ring's own header; the ring is looked at once at the start
    assert!(counts.writes > 0 && counts.writes <= 2 * 4096 / 72 + 2, "{counts:?}");
    assert_eq!(summary.tally.lost, counts.lost);
    assert_eq!(
        Trace::open(&device.folder.path().join("trace")).unwrap().meta().counts.lost,
        counts.lost
    );
}

#[test]
fn root_bpf_a_full_disk_leaves_what_was_closed() {
    skip_unless_root!("root_bpf_a_full_disk_leaves_what_was_closed");
    struct Small(PathBuf);
    impl Drop for Small {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).output();
        }
    }
    let device = Loop::new(16 * MIB);
    let small = Small(device.folder.path().join("small"));
    fs::create_dir(&small.0).unwrap();
    run("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs", small.0.to_str().unwrap()]);
    let mut options = on(&device, "unused");
    options.output = small.0.join("trace");
    options.segment_every = Duration::from_millis(40);
    let recorder = Recorder::start(options).unwrap();
    let mut wrote = 0;
    while !recorder.is_finished() {
        assert!(wrote < 1_000_000, "it does not notice");
        blocks(&device, 200);
        wrote += 200;
    }
    match recorder.stop() {
        Err(Error::Trace(TraceError::Io { source, path, .. })) => {
            assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{}", path.display());
        }
        Err(Error::Trace(TraceError::Parquet { path, .. })) => {
            assert!(path.starts_with(&small.0), "{}", path.display());
        }
        other => panic!("{other:?}"),
    }
    let trace = Trace::open(&small.0.join("trace")).unwrap();
    assert!(!trace.meta().complete);
    let events = trace.events().inspect(|event| assert!(event.is_ok())).count();
    assert!(events > 0 && events < wrote as usize, "{events} of {wrote}");
}

#[test]
fn root_bpf_a_trace_never_takes_more_than_it_may() {
    skip_unless_root!("root_bpf_a_trace_never_takes_more_than_it_may");
    let device = Loop::new(16 * MIB);
    let mut options = on(&device, "trace");
    options.max_bytes = Some(80_000);
    let recorder = Recorder::start(options).unwrap();
    let mut wrote = 0;
    while !recorder.is_finished() {
        assert!(wrote < 1_000_000, "it does not end");
        blocks(&device, 200);
        wrote += 200;
    }
    let summary = recorder.stop().unwrap();
    assert_eq!(summary.ended, Ended::MaxBytes);
    assert!(summary.trace_bytes <= 80_000, "{}", summary.trace_bytes);
    assert!(summary.meta.counts.writes > 500 && summary.meta.complete);
}

#[test]
fn root_bpf_two_recorders_see_the_same() {
    skip_unless_root!("root_bpf_two_recorders_see_the_same");
    let device = Loop::new(16 * MIB);
    let one = Recorder::start(on(&device, "one")).unwrap();
    let two = Recorder::start(on(&device, "two")).unwrap();
    blocks(&device, 300);
    let (one, two) = (one.stop().unwrap(), two.stop().unwrap());
    assert_eq!((one.meta.counts.writes, two.meta.counts.writes), (300, 300));
    let events = |name: &str| {
        let whole = Whole::read(&device.folder.path().join(name));
        whole.events.iter().map(|(event, _)| event.offset).collect::<Vec<_>>()
    };
    assert_eq!(events("one"), events("two"));
}

#[test]
fn root_bpf_a_file_system_goes_away_and_its_device_becomes_another() {
    skip_unless_root!("root_bpf_a_file_system_goes_away_and_its_device_becomes_another");
    let disk = Disk::new("ext4");
    let trace = disk.trace("trace");
    let target = Target::of_path(disk.place()).unwrap();
    let recorder = Recorder::start(Options::new(&trace, target)).unwrap();
    let path = disk.file("f");
    let file = File::create(&path).unwrap();
    file.write_all_at(&[1; 4096], 0).unwrap();
    // its name is not known yet when it is no longer mounted
    run("umount", &["-l", disk.place().to_str().unwrap()]);
    file.write_all_at(&[1; 4096], 4096).unwrap();
    file.sync_all().unwrap();
    drop(file);
    // the file system goes with its last file, and then the device lets go of its image
    let again = disk.device.folder.path().join("again");
    File::create(&again).unwrap().set_len(16 * MIB).unwrap();
    for attempt in 0.. {
        let _ = Command::new("losetup").args(["-d", &disk.device.device]).output();
        let new = Command::new("losetup").arg(&disk.device.device).arg(&again).output().unwrap();
        if new.status.success() {
            break;
        }
        assert!(attempt < 500, "{}", String::from_utf8_lossy(&new.stderr));
        std::thread::sleep(Duration::from_millis(20));
    }
    blocks(&disk.device, 100);
    recorder.stop().unwrap();
    let whole = Whole::read(&trace);
    let sums = whole.by_file();
    assert_eq!(sums.values().sum::<u64>(), 8192, "{sums:?}");
    let (name, _) = sums.keys().next().unwrap();
    assert_eq!(name, path.to_str().unwrap());
    // the other image's writes are not this disk's
    assert_eq!(whole.by_class(Op::Write).get("unknown"), None);
}

#[test]
fn root_bpf_the_recorders_own_writing_is_left_out() {
    skip_unless_root!("root_bpf_the_recorders_own_writing_is_left_out");
    let disk = Disk::new("ext4");
    let trace = disk.file("trace");
    let target = Target::of_path(disk.place()).unwrap();
    let mut options = Options::new(&trace, target);
    options.segment_every = Duration::from_millis(50);
    let recorder = Recorder::start(options).unwrap();
    assert_eq!(recorder.warnings().len(), 1);
    let path = disk.file("f");
    let file = File::create(&path).unwrap();
    for at in 0..100 {
        file.write_all_at(&[1; 4096], at * 4096).unwrap();
        file.sync_all().unwrap();
        run("sync", &["-f", disk.place().to_str().unwrap()]);
    }
    let summary = recorder.stop().unwrap();
    assert!(summary.own_events > 0);
    let sums = Whole::read(&trace).by_file();
    assert_eq!(sums.values().sum::<u64>(), 100 * 4096, "{sums:?}");
}

#[test]
fn root_bpf_an_abandoned_recording_can_be_read() {
    skip_unless_root!("root_bpf_an_abandoned_recording_can_be_read");
    let device = Loop::new(16 * MIB);
    let mut options = on(&device, "trace");
    options.segment_every = Duration::ZERO;
    let recorder = Recorder::start(options).unwrap();
    blocks(&device, 50);
    drop(recorder);
    let trace = Trace::open(&device.folder.path().join("trace")).unwrap();
    assert_eq!((trace.notes(), trace.meta().counts.writes), (&[] as &[Note], 50));
}

#[test]
fn root_bpf_a_taken_name_and_a_bad_ring_are_told() {
    skip_unless_root!("root_bpf_a_taken_name_and_a_bad_ring_are_told");
    let device = Loop::new(16 * MIB);
    fs::create_dir(device.folder.path().join("taken")).unwrap();
    match Recorder::start(on(&device, "taken")).err() {
        Some(Error::Trace(TraceError::Exists { .. })) => {}
        other => panic!("{other:?}"),
    }
    let mut options = on(&device, "trace");
    options.ring_bytes = 0;
    match Recorder::start(options).err() {
        Some(Error::Refused { .. }) => {}
        other => panic!("{other:?}"),
    }
    // nothing is left of it
    assert!(!device.folder.path().join("trace").exists());
}
