//! What is written is read, event for event, whatever it is.

use proptest::prelude::*;
use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;
use shelflife_trace::{
    Batch, Device, Error, Event, ExportFormat, FileClass, FileEntry, FileId, Flags, ImportOptions,
    Meta, Note, Op, ProcessId, Trace, TraceWriter, export,
};

use crate::support::{events, import_bytes};

fn any_event() -> impl Strategy<Value = Event> {
    let range = prop_oneof![0u64..1 << 40, Just(0), (1u64 << 62)..(1 << 62) + 9];
    (
        any::<u32>(),
        range,
        1u64..u64::from(u32::MAX),
        0u8..3,
        0u64..6,
        any::<u8>(),
        0u8..8,
        0u16..3,
        0u16..4,
        0u32..4,
    )
        .prop_map(|(time, offset, length, op, hint, stream, flags, device, process, file)| {
            Event {
                time: u64::from(time),
                offset,
                length,
                op: Op::from_number(op).unwrap(),
                hint: Lifetime::from_raw(hint).unwrap(),
                stream,
                flags: Flags::from_bits(flags).unwrap(),
                device,
                process: ProcessId(process),
                file: FileId(file),
            }
        })
}

fn meta() -> Meta {
    Meta::new("record", ["a", "b", "c"].map(|name| Device::new(name, None)).into())
}

fn files() -> [FileEntry; 3] {
    let mut full = FileEntry::new(FileClass::File(Class::Index)).at("base/5/16384.1");
    full.database = Some("bench".to_owned());
    full.relation = Some("public.pgbench_accounts_pkey".to_owned());
    full.kind = Some("index".to_owned());
    full.fork = Some("main".to_owned());
    full.tablespace = Some("pg_default".to_owned());
    full.inode = Some(u64::MAX);
    full.generation = Some(u32::MAX);
    [full, FileEntry::new(FileClass::FsJournal), FileEntry::new(FileClass::Uncommitted).at("grün")]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_event_returns(
        written in proptest::collection::vec(any_event(), 0..300),
        closes in proptest::collection::vec(0usize..300, 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t");
        let mut writer = TraceWriter::create(&place, meta()).unwrap();
        for file in files() {
            writer.files_mut().push(file).unwrap();
        }
        for name in ["postgres", "jbd2/vda1-8", "ü"] {
            writer.process(name.as_bytes()).unwrap();
        }
        for (at, event) in written.iter().enumerate() {
            writer.push(event).unwrap();
            if closes.contains(&at) {
                writer.close_segment().unwrap();
            }
        }
        writer.counts_mut().flushes = 7;
        let meta = writer.finish().unwrap();
        let trace = Trace::open(&place).unwrap();
        prop_assert_eq!(trace.meta(), &meta);
        prop_assert_eq!(trace.notes(), &[] as &[Note]);
        prop_assert_eq!(meta.counts.events, written.len() as u64);
        prop_assert_eq!(trace.files().iter().skip(1).map(|(_, f)| f.clone()).collect::<Vec<_>>(), files());
        // numbers of processes are the reader's own: names must agree
        let mut reader = trace.events();
        let read: Vec<Event> = reader.by_ref().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), written.len());
        for (read, written) in read.iter().zip(&written) {
            let names = [None, Some("postgres"), Some("jbd2/vda1-8"), Some("ü")];
            prop_assert_eq!(reader.process(read.process), names[usize::from(written.process.0)]);
            let same = Event { process: written.process, ..*read };
            prop_assert_eq!(&same, written);
        }
        // batches give the same, with and without names
        let mut bare = trace.events().without_processes();
        let (mut batch, mut at) = (Batch::default(), 0);
        while bare.read(&mut batch).unwrap() {
            for event in batch.iter() {
                let same = Event { process: read[at].process, ..event };
                prop_assert_eq!(same, read[at]);
                prop_assert_eq!(event.process, ProcessId::UNKNOWN);
                at += 1;
            }
        }
        prop_assert_eq!(at, read.len());
        let check = shelflife_trace::check(&trace, &mut |_| true).unwrap();
        let sectors = written.iter().any(|e| (e.offset | e.length) % 512 != 0);
        prop_assert_eq!(check.findings.len(), usize::from(sectors), "{:?}", check);
    }
}

#[test]
fn events_across_row_groups_and_segments_return() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let mut writer = TraceWriter::create(&place, meta()).unwrap();
    let count = shelflife_trace::SEGMENT_EVENTS + 1000;
    let event = |n: u64| Event { time: n, offset: n * 512, length: 512, ..Event::default() };
    for n in 0..count {
        writer.push(&event(n)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().segments, 2);
    let trace = Trace::open(&place).unwrap();
    let mut n = 0;
    for read in trace.events() {
        assert_eq!(read.unwrap(), event(n));
        n += 1;
    }
    assert_eq!(n, count);
}

#[test]
fn what_has_no_place_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let mut writer = TraceWriter::create(&place, meta()).unwrap();
    let good = Event { length: 512, ..Event::default() };
    for (bad, said) in [
        (Event { length: 0, ..good }, "zero length"),
        (Event { length: 1 << 32, ..good }, "write of 4294967296 bytes"),
        (Event { time: 1 << 63, ..good }, "time"),
        (Event { offset: i64::MAX as u64, ..good }, "beyond 63 bits"),
        (Event { offset: u64::MAX, ..good }, "beyond 63 bits"),
        (Event { device: 3, ..good }, "no device 3"),
        (Event { file: FileId(1), ..good }, "no file 1"),
    ] {
        let error = writer.push(&bad).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    writer.push(&Event { op: Op::Discard, length: 1 << 40, ..good }).unwrap();
    writer.finish().unwrap();
    assert_eq!(events(&Trace::open(&place).unwrap()).len(), 1);
    assert!(matches!(TraceWriter::create(&place, meta()), Err(Error::Exists { .. })));
    assert!(matches!(TraceWriter::create_aside(&place, meta()), Err(Error::Exists { .. })));
}

#[test]
fn csv_returns_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    for start in [None, Some(1_700_000_000_000_000_000)] {
        let mut meta = Meta::new("record", vec![Device::new("a, \"b\"", None)]);
        meta.start_unix_ns = start;
        let mut writer = TraceWriter::create(&place, meta).unwrap();
        let class = FileClass::File(Class::Wal);
        writer.files_mut().push(FileEntry::new(class).at("pg_wal/a,\"b\" #c")).unwrap();
        writer.process(b"kworker/0:1, x").unwrap();
        let first = Event { offset: 512, length: 512, ..Event::default() };
        let second = Event {
            time: 5,
            hint: Lifetime::Short,
            stream: 9,
            flags: Flags::META.with(Flags::FUA),
            process: ProcessId(1),
            file: FileId(1),
            ..first
        };
        let third = Event { time: 5, op: Op::WriteZeroes, length: 1 << 20, ..first };
        for event in [first, second, third] {
            writer.push(&event).unwrap();
        }
        writer.finish().unwrap();
        let trace = Trace::open(&place).unwrap();
        let mut csv = Vec::new();
        let report = export(&trace, ExportFormat::Csv, &mut csv, "out", &mut |_| true).unwrap();
        assert_eq!((report.lines, report.left_out), (3, 0));
        let (_again, again, _) = import_bytes(&csv, &ImportOptions::default()).unwrap();
        assert_eq!(events(&again), events(&trace));
        assert_eq!(again.meta().start_unix_ns, start);
        assert_eq!(again.meta().devices, trace.meta().devices);
        assert_eq!(again.files(), trace.files());

        let mut csv = Vec::new();
        let report = export(&trace, ExportFormat::Alibaba, &mut csv, "out", &mut |_| true).unwrap();
        assert_eq!((report.lines, report.left_out), (2, 1));
        let microseconds = start.unwrap_or(0) / 1000;
        let expected = format!("0,W,512,512,{microseconds}\n").repeat(2);
        assert_eq!(String::from_utf8(csv).unwrap(), expected);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
