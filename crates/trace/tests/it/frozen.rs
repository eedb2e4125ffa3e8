//! The frozen trace of version 1, which must keep reading.

use shelflife_lifetime::Lifetime;
use shelflife_trace::{Event, FileId, Flags, Op, Trace, check};

use crate::support::sample;

#[test]
fn a_trace_of_version_1_is_read() {
    let trace = Trace::open(&sample("trace-v1")).unwrap();
    assert!(trace.notes().is_empty());
    let meta = trace.meta();
    assert_eq!((meta.version, meta.segments, meta.page_size), (1, 2, 4096));
    assert_eq!((meta.counts.flushes, meta.counts.lost, meta.counts.events), (3, 0, 4));
    assert_eq!(meta.start_unix_ns, Some(1_790_000_000_000_000_000));
    assert_eq!(meta.kernel.as_deref(), Some("6.18.5"));
    assert_eq!(meta.devices[0].bytes, Some(1 << 30));
    let files: Vec<(String, Option<String>)> = trace
        .files()
        .iter()
        .map(|(_, f)| (f.class.to_string(), f.relation.clone().or_else(|| f.path.clone())))
        .collect();
    let expected = [
        ("unknown", None),
        ("wal", Some("pg_wal/000000010000000000000001")),
        ("relation", Some("public.pgbench_accounts")),
        ("fs-journal", None),
    ];
    assert_eq!(files, expected.map(|(c, p)| (c.to_owned(), p.map(str::to_owned))));
    let mut reader = trace.events();
    let events: Vec<Event> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    let names: Vec<_> = events.iter().map(|e| reader.process(e.process)).collect();
    assert_eq!(names, [Some("postgres"), Some("kworker/u4:1"), Some("jbd2/vdb-8"), None]);
    let bare: Vec<Event> =
        events.iter().map(|e| Event { process: Default::default(), ..*e }).collect();
    assert_eq!(bare, written());
    assert!(check(&trace, &mut |_| true).unwrap().findings.is_empty());
}

fn written() -> [Event; 4] {
    let event = |time, offset, length, file| Event {
        time,
        offset,
        length,
        file: FileId(file),
        ..Event::default()
    };
    [
        Event {
            hint: Lifetime::Short,
            stream: 1,
            flags: Flags::SYNC.with(Flags::FUA),
            ..event(0, 1 << 20, 16_384, 1)
        },
        Event { hint: Lifetime::Extreme, ..event(1_234_567, 512 << 20, 8192, 2) },
        Event { flags: Flags::SYNC.with(Flags::META), ..event(1_300_000, 4096, 4096, 3) },
        Event { op: Op::Discard, ..event(2_000_000_000, 512 << 20, 1 << 24, 0) },
    ]
}

/// Made the sample once: `cargo test -p shelflife-trace --test it -- --ignored make_the_frozen`.
/// Never to be run again over version 1.
#[test]
#[ignore = "writes the sample"]
fn make_the_frozen_trace() {
    use shelflife_trace::{Device, FileClass, FileEntry, Meta, TraceWriter};
    let mut meta = Meta::new("record", vec![Device::new("/dev/vdb", Some(1 << 30))]);
    meta.start_unix_ns = Some(1_790_000_000_000_000_000);
    meta.kernel = Some("6.18.5".to_owned());
    meta.file_system = Some("ext4".to_owned());
    meta.mount_options = Some("rw,relatime".to_owned());
    meta.policy = Some("wal-first".to_owned());
    let mut writer = TraceWriter::create(&sample("trace-v1"), meta).unwrap();
    let mut wal = FileEntry::new(FileClass::File("wal".parse().unwrap()));
    wal = wal.at("pg_wal/000000010000000000000001");
    wal.inode = Some(131_073);
    wal.generation = Some(3_405_691_582);
    let mut heap = FileEntry::new(FileClass::File("relation".parse().unwrap())).at("base/5/16384");
    heap.relation = Some("public.pgbench_accounts".to_owned());
    heap.database = Some("bench".to_owned());
    heap.kind = Some("heap".to_owned());
    heap.fork = Some("main".to_owned());
    heap.tablespace = Some("pg_default".to_owned());
    for file in [wal, heap, FileEntry::new(FileClass::FsJournal)] {
        writer.files_mut().push(file).unwrap();
    }
    let names = ["postgres", "kworker/u4:1", "jbd2/vdb-8"];
    let names = names.map(|name| writer.process(name.as_bytes()).unwrap());
    for (at, event) in written().into_iter().enumerate() {
        let process = names.get(at).copied().unwrap_or_default();
        writer.push(&Event { process, ..event }).unwrap();
        if at == 1 {
            writer.close_segment().unwrap();
        }
    }
    writer.counts_mut().flushes = 3;
    writer.finish().unwrap();
}
