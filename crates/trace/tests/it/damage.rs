//! Damaged, killed, foreign and hostile traces.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use shelflife_trace::{Device, Error, Event, Meta, Note, Trace, TraceWriter, check};

use crate::support::events;

const EVENTS: u64 = 1000;

/// A trace of three segments.
fn three(folder: &Path) -> PathBuf {
    let place = folder.join("t");
    let mut writer =
        TraceWriter::create(&place, Meta::new("record", vec![Device::new("d", None)])).unwrap();
    for n in 0..3 * EVENTS {
        writer
            .push(&Event { time: n, offset: n * 4096, length: 4096, ..Event::default() })
            .unwrap();
        if (n + 1) % EVENTS == 0 {
            writer.close_segment().unwrap();
        }
    }
    writer.finish().unwrap();
    place
}

#[test]
fn a_killed_writer_loses_the_open_segment_only() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let meta = Meta::new("record", vec![Device::new("d", None)]);
    let mut writer = TraceWriter::create(&place, meta).unwrap();
    let opened = Trace::open(&place).unwrap();
    assert_eq!(opened.notes(), [Note::Unfinished { segments: 0 }]);
    assert!(events(&opened).is_empty());
    for n in 0..2500 {
        writer.push(&Event { time: n, length: 512, ..Event::default() }).unwrap();
        if n == 999 || n == 1999 {
            writer.close_segment().unwrap();
        }
    }
    // what kill -9 leaves: nothing is dropped
    std::mem::forget(writer);
    fs::write(place.join("events-0002.parquet.part"), b"PAR1 and half a row group").unwrap();
    let trace = Trace::open(&place).unwrap();
    assert_eq!(events(&trace).len(), 2000);
    assert_eq!(trace.meta().counts.events, 2000);
    let open = place.join("events-0002.parquet.part");
    assert_eq!(trace.notes(), [Note::Unfinished { segments: 2 }, Note::Open(open)]);
    assert!(check(&trace, &mut |_| true).unwrap().findings.is_empty());
}

#[test]
fn a_torn_last_segment_is_passed_over_if_the_writer_did_not_finish() {
    let folder = tempfile::tempdir().unwrap();
    let place = three(folder.path());
    let last = place.join("events-0002.parquet");
    let whole = fs::read(&last).unwrap();
    for size in [0, 3, 11, whole.len() / 2, whole.len() - 1] {
        fs::write(&last, &whole[..size]).unwrap();
        // a finished trace has no excuse
        let trace = Trace::open(&place).unwrap();
        let error = trace.events().find_map(Result::err).unwrap();
        assert!(error.to_string().contains("events-0002.parquet"), "{error}");
        assert!(!check(&trace, &mut |_| true).unwrap().findings.is_empty());
    }
    let meta = fs::read_to_string(place.join("meta.json")).unwrap();
    fs::write(place.join("meta.json"), meta.replace("\"complete\": true", "\"complete\": false"))
        .unwrap();
    let trace = Trace::open(&place).unwrap();
    assert!(matches!(&trace.notes()[1], Note::Torn { path, .. } if *path == last));
    assert_eq!(events(&trace).len() as u64, 2 * EVENTS);
}

#[test]
fn missing_parts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = three(folder.path());
    for (name, said) in [
        ("events-0002.parquet", "events-0002.parquet is missing: meta.json counts 3 segments, 2"),
        ("events-0001.parquet", "events-0001.parquet is missing: events-0002.parquet is there"),
        ("files.parquet", "files.parquet is missing"),
        ("meta.json", "has no meta.json"),
    ] {
        let kept = folder.path().join("kept");
        fs::rename(place.join(name), &kept).unwrap();
        let error = Trace::open(&place).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        fs::rename(&kept, place.join(name)).unwrap();
    }
    fs::write(place.join("events-1.parquet"), b"").unwrap();
    let error = Trace::open(&place).unwrap_err().to_string();
    assert!(error.contains("events-0000.parquet, events-0001.parquet"), "{error}");
    let nowhere = Trace::open(Path::new("/nowhere")).unwrap_err();
    assert_eq!(nowhere.to_string(), "/nowhere is not a trace: there is no such folder");
}

#[test]
fn the_future_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = three(folder.path());
    let meta = fs::read_to_string(place.join("meta.json")).unwrap();
    fs::write(place.join("meta.json"), meta.replace("\"version\": 1", "\"version\": 2")).unwrap();
    assert!(matches!(Trace::open(&place), Err(Error::TooNew { found: 2, .. })));
    fs::write(place.join("meta.json"), &meta).unwrap();
    // a segment of the future in a trace of today
    let path = place.join("events-0001.parquet");
    let bytes = fs::read(&path).unwrap();
    let key = b"shelflife-trace.version";
    let at = bytes.windows(key.len()).position(|w| w == key).unwrap() + key.len();
    let digit = at + bytes[at..].iter().position(|b| *b == b'1').unwrap();
    let mut future = bytes;
    future[digit] = b'9';
    fs::write(&path, future).unwrap();
    let trace = Trace::open(&place).unwrap();
    let error = trace.events().find_map(Result::err).unwrap();
    assert!(
        matches!(&error, Error::TooNew { found: 9, path, .. } if path.ends_with("events-0001.parquet")),
        "{error}"
    );
}

/// A Parquet file of one row group, written without this crate.
fn foreign(schema: &str, wide: &[i64], narrow: &[i32]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default()))
            .unwrap();
    let mut group = file.next_row_group().unwrap();
    let (mut wide, mut narrow) = (wide.iter(), narrow.iter());
    while let Some(mut column) = group.next_column().unwrap() {
        match column.typed_kind() {
            Kind::Wide => {
                let value = *wide.next().unwrap();
                column.typed::<Int64Type>().write_batch(&[value], None, None).unwrap();
            }
            Kind::Narrow => {
                let value = *narrow.next().unwrap();
                column.typed::<Int32Type>().write_batch(&[value], None, None).unwrap();
            }
            Kind::Text => {
                column.typed::<ByteArrayType>().write_batch(&[], Some(&[0]), None).unwrap();
            }
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    file.into_inner().unwrap()
}

enum Kind {
    Wide,
    Narrow,
    Text,
}

trait TypedKind {
    fn typed_kind(&mut self) -> Kind;
}

impl TypedKind for parquet::file::writer::SerializedColumnWriter<'_> {
    fn typed_kind(&mut self) -> Kind {
        use parquet::column::writer::ColumnWriter;
        match self.untyped() {
            ColumnWriter::Int64ColumnWriter(_) => Kind::Wide,
            ColumnWriter::Int32ColumnWriter(_) => Kind::Narrow,
            _ => Kind::Text,
        }
    }
}

const OURS: &str = "message schema {
    required int64 time; required int64 offset; required int64 length; required int32 op;
    required int32 hint; required int32 stream; required int32 flags; required int32 device;
    required int32 file; optional binary process (UTF8); }";

fn with_segment(place: &Path, bytes: &[u8]) -> Result<usize, Error> {
    fs::write(place.join("events-0001.parquet"), bytes).unwrap();
    let mut count = 0;
    for event in Trace::open(place)?.events() {
        event?;
        count += 1;
    }
    Ok(count)
}

#[test]
fn a_segment_that_another_tool_wrote_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = three(folder.path());
    let bytes = foreign(OURS, &[5, 4096, 4096], &[0, 2, 0, 1, 0, 0]);
    assert_eq!(with_segment(&place, &bytes).unwrap() as u64, 2 * EVENTS + 1);
    // in another order, and with a column of its own
    let order = "message schema { required int32 op; required int64 extra; required int64 offset;
        required int64 time; required int64 length; required int32 hint; required int32 stream;
        required int32 flags; required int32 device; required int32 file;
        optional binary process (UTF8); }";
    let bytes = foreign(order, &[-1, 4096, 5, 4096], &[0, 2, 0, 1, 0, 0]);
    assert_eq!(with_segment(&place, &bytes).unwrap() as u64, 2 * EVENTS + 1);
}

#[test]
fn values_that_no_writer_writes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = three(folder.path());
    let good = ([5, 4096, 4096], [0, 2, 0, 1, 0, 0]);
    let wide: [([i64; 3], &str); 6] = [
        ([-1, 0, 512], "`time`: -1"),
        ([0, -4096, 512], "`offset`: -4096"),
        ([0, 0, -1], "`length`: -1"),
        ([0, 0, 0], "`length`: 0"),
        ([0, i64::MAX, 512], "`length`: 512"),
        ([0, 0, 1 << 40], "`length`: 1099511627776"),
    ];
    for (wide, said) in wide {
        let error = with_segment(&place, &foreign(OURS, &wide, &good.1)).unwrap_err().to_string();
        let place = format!("events-0001.parquet: row 0, column {said}");
        assert!(error.contains(&place), "{error}");
    }
    let narrow: [(usize, i32, &str); 9] = [
        (0, 3, "`op`: 3"),
        (0, -1, "`op`: 4294967295"),
        (1, 6, "`hint`: 6"),
        (2, 256, "`stream`: 256"),
        (3, 8, "`flags`: 8"),
        (4, 1, "`device`: 1"),
        (4, 70_000, "`device`: 70000"),
        (5, 1, "`file`: 1"),
        (5, -1, "`file`: 4294967295"),
    ];
    for (at, value, said) in narrow {
        let mut values = good.1;
        values[at] = value;
        let error = with_segment(&place, &foreign(OURS, &good.0, &values)).unwrap_err().to_string();
        assert!(error.contains(&format!("row 0, column {said}")), "{error}");
    }
}

#[test]
fn foreign_schemas_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = three(folder.path());
    for (schema, wide, narrow, column) in [
        ("message s { required int64 a; }", &[1][..], &[][..], "`time`"),
        ("message s { required int32 time; }", &[], &[1][..], "`time`"),
        (
            "message s { required int64 time; required int64 offset; required int32 length; }",
            &[1, 2],
            &[3],
            "`length`",
        ),
    ] {
        let error = with_segment(&place, &foreign(schema, wide, narrow)).unwrap_err();
        assert!(matches!(error, Error::Schema { .. }), "{error}");
        assert!(error.to_string().contains(column), "{error}");
    }
    fs::copy(place.join("files.parquet"), place.join("events-0001.parquet")).unwrap();
    let error = Trace::open(&place).unwrap().events().find_map(Result::err).unwrap();
    assert!(matches!(error, Error::Schema { column: "time", .. }), "{error}");
    fs::copy(place.join("events-0000.parquet"), place.join("files.parquet")).unwrap();
    let error = Trace::open(&place).unwrap_err();
    assert!(matches!(error, Error::Schema { column: "class", .. }), "{error}");
}

#[test]
fn any_byte_of_a_segment_may_be_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let meta = Meta::new("record", vec![Device::new("d", None)]);
    let mut writer = TraceWriter::create(&place, meta).unwrap();
    writer.process(b"postgres").unwrap();
    for n in 0..40 {
        let process = shelflife_trace::ProcessId((n % 2) as u16);
        writer
            .push(&Event { time: n, offset: n << 12, length: 512, process, ..Event::default() })
            .unwrap();
    }
    writer.finish().unwrap();
    let read = |name| fs::read(place.join(name)).unwrap();
    let (meta, files, segment) =
        (read("meta.json"), read("files.parquet"), read("events-0000.parquet"));
    assert_eq!(shelflife_trace::read_bytes(&meta, files.clone(), segment.clone()).unwrap(), 40);
    for (which, bytes) in [(0, &segment), (1, &files)] {
        for at in 0..bytes.len() {
            for value in [0xff, bytes[at] ^ 1] {
                let mut bad = bytes.clone();
                bad[at] = value;
                let (files, segment) =
                    if which == 0 { (files.clone(), bad) } else { (bad, segment.clone()) };
                // any answer but a panic
                let _ = shelflife_trace::read_bytes(&meta, files, segment);
            }
        }
    }
    for end in 0..segment.len() {
        assert!(
            shelflife_trace::read_bytes(&meta, files.clone(), segment[..end].to_vec()).is_err()
        );
    }
}
