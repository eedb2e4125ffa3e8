//! Every format: the frozen sample, told by itself and by name, plain and compressed.

use std::io::Write;

use shelflife_lifetime::Lifetime;
use shelflife_trace::{Event, FileClass, Flags, Format, ImportOptions, Op, TimeUnit};

use crate::support::{events, import_bytes, sample};

/// Time, device, offset, length, op of each event.
type Row = (u64, u16, u64, u64, Op);

const SAMPLES: [(&str, Format, &[Row], u64); 10] = [
    (
        "msr.csv",
        Format::Msr,
        &[(0, 0, 7_014_912, 4096, Op::Write), (2_332_061_600, 1, 512, 24_576, Op::Write)],
        1,
    ),
    (
        "alibaba.csv",
        Format::Alibaba,
        &[
            (384_000, 0, 46_137_344, 16_384, Op::Write),
            (2_373_000, 1, 126_703_648_768, 4096, Op::Write),
        ],
        1,
    ),
    (
        "tencent.csv",
        Format::Tencent,
        &[
            (0, 0, 6_160_448 * 512, 4096, Op::Write),
            (1_000_000_000, 1, 34_095_048 * 512, 8192, Op::Write),
        ],
        1,
    ),
    (
        "mqsim.trace",
        Format::Mqsim,
        &[(0, 0, 2040 * 512, 4096, Op::Write), (1_487_900, 1, 8192 * 512, 12_288, Op::Write)],
        1,
    ),
    ("disksim.trace", Format::Mqsim, &[(0, 0, 2040 * 512, 4096, Op::Write)], 1),
    (
        "fio.log",
        Format::Fio,
        &[(0, 0, 0, 8192, Op::Write), (250_000, 0, 1_048_576, 65_536, Op::Discard)],
        1,
    ),
    (
        "blkparse.txt",
        Format::Blkparse,
        &[
            (0, 0, 10_250 * 512, 4096, Op::Write),
            (296_200, 0, 204_800 * 512, 8192, Op::Write),
            (396_200, 0, 409_600 * 512, 1_048_576, Op::Discard),
        ],
        1,
    ),
    (
        "vscsi1.bin",
        Format::Vscsi1,
        &[(0, 0, 512_000, 4096, Op::Write), (242_639_000, 0, 42_932_745 * 512, 512, Op::Write)],
        1,
    ),
    (
        "vscsi2.bin",
        Format::Vscsi2,
        &[(0, 0, 512_000, 4096, Op::Write), (242_639_000, 0, 42_932_745 * 512, 512, Op::Write)],
        1,
    ),
    (
        "generic.csv",
        Format::Csv,
        &[
            (1000, 0, 0, 8192, Op::Write),
            (1500, 0, 4096, 4096, Op::Write),
            (2500, 1, 1_048_576, 65_536, Op::Discard),
        ],
        1,
    ),
];

fn rows(bytes: &[u8], options: &ImportOptions) -> (Vec<Row>, u64, String) {
    let (_folder, trace, report) = import_bytes(bytes, options).unwrap();
    let rows =
        events(&trace).iter().map(|e| (e.time, e.device, e.offset, e.length, e.op)).collect();
    assert_eq!(trace.meta().counts.reads, report.reads);
    (rows, report.reads, report.format.to_owned())
}

#[test]
fn every_sample_is_told_by_its_content_and_read_as_frozen() {
    for (name, format, expected, reads) in SAMPLES {
        let bytes = std::fs::read(sample(name)).unwrap();
        let told = rows(&bytes, &ImportOptions::default());
        assert_eq!(told, (expected.to_vec(), reads, format.name().to_owned()), "{name}");
        let named = ImportOptions { format: Some(format), ..ImportOptions::default() };
        assert_eq!(rows(&bytes, &named), told, "{name}");
    }
}

#[test]
fn gzip_and_zstd_are_seen_through() {
    for (name, format, expected, _) in SAMPLES {
        let bytes = std::fs::read(sample(name)).unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&bytes).unwrap();
        let zst = zstd::stream::encode_all(&bytes[..], 1).unwrap();
        for packed in [gz.finish().unwrap(), zst] {
            let (rows, _, told) = rows(&packed, &ImportOptions::default());
            assert_eq!((rows.as_slice(), told.as_str()), (expected, format.name()), "{name}");
        }
    }
}

#[test]
fn times_of_the_epoch_are_kept() {
    for (name, start) in [
        // FILETIME 128166372003061629
        ("msr.csv", Some(1_172_163_600_306_162_900)),
        ("alibaba.csv", Some(1_577_808_000_000_626_000)),
        ("tencent.csv", Some(1_538_323_200_000_000_000)),
        ("vscsi1.bin", None),
        ("generic.csv", None),
    ] {
        let bytes = std::fs::read(sample(name)).unwrap();
        let (_folder, trace, _) = import_bytes(&bytes, &ImportOptions::default()).unwrap();
        assert_eq!(trace.meta().start_unix_ns, start, "{name}");
    }
}

#[test]
fn blkparse_has_flags_processes_and_flushes() {
    let bytes = std::fs::read(sample("blkparse.txt")).unwrap();
    let (_folder, trace, report) = import_bytes(&bytes, &ImportOptions::default()).unwrap();
    let mut reader = trace.events();
    let events: Vec<Event> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    let names: Vec<_> = events.iter().map(|e| reader.process(e.process).unwrap()).collect();
    assert_eq!(names, ["kworker/1:1H", "jbd2/sda1-8", "fstrim"]);
    assert_eq!(events[0].flags, Flags::SYNC);
    assert_eq!(events[1].flags, Flags::FUA.with(Flags::SYNC).with(Flags::META));
    assert_eq!((report.flushes, trace.meta().counts.flushes), (1, 1));
    assert_eq!(trace.meta().devices[0].name, "8,0");
}

#[test]
fn blkparse_without_issued_requests_is_read_by_completions() {
    let text = std::fs::read_to_string(sample("blkparse.txt")).unwrap();
    let completed: String =
        text.lines().filter(|l| !l.contains(" D ")).map(|l| format!("{l}\n")).collect();
    let (rows, _, _) = rows(completed.as_bytes(), &ImportOptions::default());
    assert_eq!(rows, [(0, 0, 10_250 * 512, 4096, Op::Write)]);
}

#[test]
fn generic_csv_has_everything() {
    let bytes = std::fs::read(sample("generic.csv")).unwrap();
    let (_folder, trace, report) = import_bytes(&bytes, &ImportOptions::default()).unwrap();
    let mut reader = trace.events();
    let events: Vec<Event> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!((report.reads, report.flushes, report.events), (1, 1, 3));
    let file = |at: usize| trace.files().get(events[at].file).unwrap();
    assert_eq!(file(0).class.name(), "wal");
    assert_eq!(file(0).path.as_deref(), Some("pg_wal/000000010000000000000001"));
    assert_eq!(file(1).path.as_deref(), Some("base/5/16384"));
    assert_eq!(file(2).class, FileClass::Unknown);
    assert_eq!(events[0].hint, Lifetime::Short);
    assert_eq!((events[0].stream, events[0].flags), (1, Flags::SYNC.with(Flags::FUA)));
    assert_eq!((events[1].hint, events[2].hint), (Lifetime::NotSet, Lifetime::Extreme));
    assert_eq!(reader.process(events[1].process), Some("kworker/u8:3, flush"));
    assert_eq!(reader.process(events[2].process), None);
    let names: Vec<_> = trace.meta().devices.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["vdb", "vdc"]);
}

#[test]
fn one_volume_of_several() {
    for (name, volume) in [("msr.csv", "hm_1"), ("alibaba.csv", "419"), ("tencent.csv", "1064")] {
        let bytes = std::fs::read(sample(name)).unwrap();
        let options = ImportOptions { volume: Some(volume.to_owned()), ..ImportOptions::default() };
        let (_folder, trace, report) = import_bytes(&bytes, &options).unwrap();
        assert_eq!((report.events, trace.meta().devices.len()), (1, 1), "{name}");
        assert_eq!(trace.meta().devices[0].name, volume);
        let options = ImportOptions { volume: Some("no".to_owned()), ..ImportOptions::default() };
        let said = import_bytes(&bytes, &options).unwrap_err().to_string();
        assert!(said.contains("`no`"), "{said}");
    }
}

#[test]
fn the_unit_of_mqsim_is_the_callers() {
    let bytes = std::fs::read(sample("mqsim.trace")).unwrap();
    for (unit, time) in [
        (TimeUnit::Picoseconds, 1_487),
        (TimeUnit::Nanoseconds, 1_487_900),
        (TimeUnit::Microseconds, 1_487_900_000),
    ] {
        let options = ImportOptions { time_unit: Some(unit), ..ImportOptions::default() };
        assert_eq!(rows(&bytes, &options).0[1].0, time);
    }
}
