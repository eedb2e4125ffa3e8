//! Cuts, merges and summaries of small traces with known figures.

use std::path::Path;

use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;
use shelflife_trace::{
    CutOptions, Device, Event, FileClass, FileEntry, FileId, Meta, Op, Row, Trace, TraceWriter,
    cut, cut_meta, merge, merge_meta, summarize,
};

use crate::support::events;

const PAGE: u64 = 4096;

fn small(place: &Path, device: &str, start: Option<i64>, list: &[Event]) -> Trace {
    let mut meta = Meta::new("record", vec![Device::new(device, Some(1 << 40))]);
    meta.start_unix_ns = start;
    meta.mount_options = Some("rw,lowerdir=/home/secret".to_owned());
    meta.policy = Some("/home/secret/policy.toml".to_owned());
    meta.source.inputs = vec!["/home/secret/command".to_owned()];
    let mut writer = TraceWriter::create(place, meta).unwrap();
    let mut heap = FileEntry::new(FileClass::File(Class::Relation)).at("base/5/secret");
    heap.relation = Some("public.secret_table".to_owned());
    heap.database = Some("secret_db".to_owned());
    heap.tablespace = Some("secret_space".to_owned());
    heap.inode = Some(4711);
    let mut fork = heap.clone();
    fork.class = FileClass::File(Class::Fsm);
    let wal = FileEntry::new(FileClass::File(Class::Wal)).at("pg_wal/secret");
    for file in [heap, fork, wal] {
        writer.files_mut().push(file).unwrap();
    }
    for event in list {
        writer.push(event).unwrap();
    }
    writer.finish().unwrap();
    Trace::open(place).unwrap()
}

fn write(time: u64, page: u64, pages: u64, file: u32) -> Event {
    let (offset, length) = (page * PAGE, pages * PAGE);
    Event { time, offset, length, file: FileId(file), ..Event::default() }
}

fn cut_of(trace: &Trace, options: &CutOptions, place: &Path) -> Trace {
    let mut writer = TraceWriter::create_aside(place, cut_meta(trace, options)).unwrap();
    cut(trace, options, &mut writer, &mut |_| true).unwrap();
    writer.finish().unwrap();
    Trace::open(place).unwrap()
}

#[test]
fn a_cut_has_what_begins_in_its_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let list: Vec<Event> = (0..10).map(|n| write(n * 10, n, 2, 1)).collect();
    let trace = small(&folder.path().join("t"), "d", Some(7), &list);
    let options =
        CutOptions { time: Some(20..80), offset: Some(3 * PAGE..7 * PAGE), ..Default::default() };
    let part = cut_of(&trace, &options, &folder.path().join("c"));
    assert_eq!(events(&part), list[3..7]);
    assert_eq!(part.files(), trace.files());
    assert_eq!((part.meta().start_unix_ns, part.meta().source.kind.as_str()), (Some(7), "cut"));
    let none = CutOptions { time: Some(1000..2000), ..Default::default() };
    assert!(events(&cut_of(&trace, &none, &folder.path().join("n"))).is_empty());
}

#[test]
fn an_anonymous_trace_has_classes_but_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let list = [write(0, 0, 1, 1), write(1, 5, 1, 2), write(2, 9, 1, 3)];
    let trace = small(&folder.path().join("t"), "secret-device", None, &list);
    let options = CutOptions { anonymize: true, ..Default::default() };
    let place = folder.path().join("a");
    let part = cut_of(&trace, &options, &place);
    assert_eq!(events(&part), list);
    let classes: Vec<_> = part.files().iter().map(|(_, f)| f.class.name()).collect();
    assert_eq!(classes, ["unknown", "relation", "fsm", "wal"]);
    let rows: Vec<_> = part.files().iter().map(|(_, f)| f.clone()).collect();
    assert_eq!(rows[1].relation, rows[2].relation);
    assert_ne!(rows[1].path, rows[2].path);
    assert_eq!(rows[1].inode, None);
    for file in std::fs::read_dir(&place).unwrap() {
        let mut bytes = std::fs::read(file.unwrap().path()).unwrap();
        bytes.extend(format!("{rows:?}").into_bytes());
        assert!(!bytes.windows(6).any(|w| w == b"secret"));
    }
    assert!(part.meta().source.anonymized);
}

#[test]
fn a_merge_is_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let a =
        small(&folder.path().join("a"), "d", Some(1000), &[write(0, 0, 1, 1), write(20, 1, 1, 3)]);
    let b =
        small(&folder.path().join("b"), "d", Some(1010), &[write(0, 2, 1, 1), write(5, 3, 1, 0)]);
    let c = small(&folder.path().join("c"), "e", Some(1000), &[write(10, 4, 1, 2)]);
    let traces = [a, b, c];
    let place = folder.path().join("m");
    let mut writer = TraceWriter::create_aside(&place, merge_meta(&traces).unwrap()).unwrap();
    merge(&traces, &mut writer, &mut |_| true).unwrap();
    writer.finish().unwrap();
    let merged = Trace::open(&place).unwrap();
    let rows: Vec<_> =
        events(&merged).iter().map(|e| (e.time, e.offset / PAGE, e.device)).collect();
    assert_eq!(rows, [(0, 0, 0), (10, 2, 0), (10, 4, 1), (15, 3, 0), (20, 1, 0)]);
    // the same files are the same
    assert_eq!(merged.files(), traces[0].files());
    assert_eq!(merged.meta().start_unix_ns, Some(1000));
    let d = small(&folder.path().join("x"), "d", None, &[]);
    let error = merge_meta(&[traces[0].clone(), d]).unwrap_err().to_string();
    assert!(error.contains("no common time"), "{error}");
    assert!(merge_meta(&traces[..1]).is_err());
}

#[test]
fn a_summary_counts_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut list = vec![
        write(0, 10, 2, 3),
        write(1, 12, 2, 3), // sequential
        write(2, 100, 1, 1),
        write(3, 14, 2, 3),  // sequential
        write(4, 100, 1, 1), // overwrite
        write(9, 200, 4, 2),
    ];
    list[0].hint = Lifetime::Short;
    list.push(Event { op: Op::Discard, ..write(10, 0, 50, 0) });
    // not page-aligned: touches two pages, of which 201 was written
    list.push(Event { offset: 201 * PAGE + 512, length: PAGE, ..write(11, 0, 0, 2) });
    let trace = small(&folder.path().join("t"), "d", None, &list);
    let summary = summarize(&trace, &mut |_| true).unwrap();
    let key = |row: &Row| (row.writes, row.bytes / PAGE, row.page_writes, row.distinct_pages);
    assert_eq!(key(&summary.total), (7, 13, 14, 11));
    assert!((summary.total.overwrites - 3.0 / 14.0).abs() < 1e-9);
    assert!((summary.total.sequential - 2.0 / 7.0).abs() < 1e-9);
    assert_eq!(
        (summary.total.discarded_bytes, summary.span_ns, summary.exact),
        (50 * PAGE, 11, true)
    );
    let by = |rows: &[Row]| -> Vec<(String, (u64, u64, u64, u64))> {
        rows.iter().map(|row| (row.name.clone(), key(row))).collect()
    };
    let expected = [
        ("wal", (3, 6, 6, 6)),
        ("fsm", (2, 5, 6, 4)),
        ("relation", (2, 2, 2, 1)),
        ("unknown", (0, 0, 0, 0)),
    ];
    assert_eq!(by(&summary.classes), expected.map(|(n, k)| (n.to_owned(), k)));
    // all forks of a relation are one line
    assert_eq!(
        by(&summary.relations),
        [("secret_db.public.secret_table".to_owned(), (4, 7, 8, 5))]
    );
    assert_eq!(summary.hints[1].name, "short");
    assert_eq!(key(&summary.hints[1]), (1, 2, 2, 2));
    assert!(summary.processes.is_empty() && summary.devices.is_empty());
}
