//! Bad lines: each is named by file, line and what was expected; skipped ones are counted by kind.

use shelflife_trace::{Error, Format, ImportOptions};

use crate::support::{events, import_bytes, sample};

fn named(format: Format) -> ImportOptions {
    ImportOptions { format: Some(format), ..ImportOptions::default() }
}

#[test]
fn every_kind_of_bad_line_has_its_words_and_its_count() {
    let good = "0,W,4096,4096,1000\n";
    for (line, said, kind) in [
        ("0,W,4096,4096", "expected device_id,opcode", "malformed"),
        ("0,X,4096,4096,2000", "`R` or `W`", "malformed"),
        ("0,W,4k,4096,2000", "offset in bytes in field 3", "malformed"),
        ("0,W,-4096,4096,2000", "offset in bytes in field 3", "malformed"),
        ("0,W,99999999999999999999,4096,2000", "63 bits", "overflow"),
        ("0,W,9223372036854775296,4096,2000", "63 bits", "overflow"),
        ("0,W,18446744073709551104,4096,2000", "63 bits", "overflow"),
        ("0,W,0,4294967296,2000", "4 GiB", "overflow"),
        ("0,W,0,4096,18446744073709551615", "63 bits", "overflow"),
        ("0,W,4096,0,2000", "zero length", "zero length"),
        ("0,W,100,4096,2000", "no multiple of 512", "not 512-aligned"),
        ("0,W,4096,100,2000", "no multiple of 512", "not 512-aligned"),
        ("0,W,4096,4096,999", "backwards by 1000 ns", "time going backwards"),
        ("0,W,1048576,4096,2000", "past the device's 1048576 bytes", "past the device's end"),
        ("0,W,1044480,8192,2000", "past the device's 1048576 bytes", "past the device's end"),
    ] {
        let text = format!("{good}{line}\n{good}");
        let mut options = named(Format::Alibaba);
        options.device_bytes = Some(1 << 20);
        if kind == "overflow" {
            options.device_bytes = None;
        }
        let error = import_bytes(text.as_bytes(), &options).unwrap_err();
        assert!(matches!(error, Error::Line { line: 2, .. }), "{line}: {error}");
        let error = error.to_string();
        assert!(error.starts_with("in:2: ") && error.contains(said), "{line}: {error}");
        options.skip_bad = true;
        let (_folder, trace, report) = import_bytes(text.as_bytes(), &options).unwrap();
        assert_eq!(report.bad_lines.get(kind), Some(&1), "{line}: {report:?}");
        assert_eq!(report.first_bad, [error]);
        assert_eq!(trace.meta().counts.bad_lines, report.bad_lines);
        assert_eq!(events(&trace).len(), 2);
    }
}

#[test]
fn every_format_names_a_line_it_cannot_read() {
    for (name, format, more) in [
        ("msr.csv", Format::Msr, "128166372026382245,hm,1,Writ,512,24576,1341\n"),
        ("msr.csv", Format::Msr, "128166372026382245,hm,1,Write,512,24576\n"),
        ("msr.csv", Format::Msr, "328166372026382245,hm,1,Write,512,24576,1\n"),
        ("tencent.csv", Format::Tencent, "1538323201,34095048,16,2,1064\n"),
        ("tencent.csv", Format::Tencent, "1538323201,36028797018963968,16,1,1064\n"),
        ("mqsim.trace", Format::Mqsim, "50000900 1 8192 24\n"),
        ("mqsim.trace", Format::Mqsim, "50000900 1 8192 24 0 0\n"),
        ("fio.log", Format::Fio, "/dev/vdb write 0\n"),
        ("fio.log", Format::Fio, "/dev/vdb frobnicate 0 512\n"),
        ("fio.log", Format::Fio, "/dev/vdb wait 18446744073709551615\n"),
        ("generic.csv", Format::Csv, "1,2\n"),
        ("generic.csv", Format::Csv, "9000,write,0,512,eternal,0,,vdb,,,\n"),
        ("generic.csv", Format::Csv, "9000,write,0,512,,256,,vdb,,,\n"),
        ("generic.csv", Format::Csv, "9000,write,0,512,,0,,vdb,,no-class,\n"),
        ("generic.csv", Format::Csv, "9000,write,0,512,,0,,vdb,\"x,,\n"),
    ] {
        let mut text = std::fs::read(sample(name)).unwrap();
        let lines = text.iter().filter(|b| **b == b'\n').count() as u64;
        text.extend_from_slice(more.as_bytes());
        match import_bytes(&text, &named(format)).unwrap_err() {
            Error::Line { line, .. } => assert_eq!(line, lines + 1, "{more}"),
            other => panic!("{more}: {other}"),
        }
    }
    // before the summary of blkparse
    let mut text = b"nonsense\n".to_vec();
    text.extend(std::fs::read(sample("blkparse.txt")).unwrap());
    let error = import_bytes(&text, &named(Format::Blkparse)).unwrap_err();
    assert!(matches!(error, Error::Line { line: 1, .. }), "{error}");
}

#[test]
fn a_binary_file_that_is_cut_off_is_named_by_its_record() {
    for (name, size) in [("vscsi1.bin", 32), ("vscsi2.bin", 40)] {
        let bytes = std::fs::read(sample(name)).unwrap();
        let cut = &bytes[..bytes.len() - size + 5];
        let error = import_bytes(cut, &ImportOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Line { line: 5, .. }), "{error}");
        let options = ImportOptions { skip_bad: true, ..ImportOptions::default() };
        let (_folder, _, report) = import_bytes(cut, &options).unwrap();
        assert_eq!(report.bad_lines.get("cut off"), Some(&1));
    }
}

#[test]
fn what_cannot_be_told_is_asked_for() {
    for (text, said) in [
        (&b""[..], "it is empty"),
        (b"hello\nworld\n", "no format fits"),
        (b"1,2,3,1,5\n", "no format fits"), // five numbers, but no year of Tencent's
        (b"fio version 3 iolog\n", "version 2"),
        (b"PAR1xxxxxxxxx", "Parquet"),
    ] {
        let error = import_bytes(text, &ImportOptions::default()).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("--format"), "{error}");
    }
}

#[test]
fn a_header_with_an_unknown_column_is_refused_even_when_lines_are_skipped() {
    let options = ImportOptions { skip_bad: true, ..named(Format::Csv) };
    let error = import_bytes(b"offset,length,size\n0,512,1\n", &options).unwrap_err().to_string();
    assert!(error.contains("`size`") && error.contains("time_ns"), "{error}");
}

#[test]
fn a_shift_realigns_a_partition() {
    // a partition that begins at sector 63
    let text = "0,W,32256,4096,1000\n0,W,36352,8192,1001\n";
    let mut options = named(Format::Alibaba);
    let (_folder, trace, report) = import_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!((report.unaligned, trace.meta().counts.unaligned), (2, 2));
    options.shift = -32_256;
    let (_folder, trace, report) = import_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!(report.unaligned, 0);
    assert_eq!(events(&trace).iter().map(|e| e.offset).collect::<Vec<_>>(), [0, 4096]);
    options.shift = -32_768;
    let error = import_bytes(text.as_bytes(), &options).unwrap_err().to_string();
    assert!(error.contains("before the device's first byte"), "{error}");
    options.shift = 100;
    let error = import_bytes(text.as_bytes(), &options).unwrap_err().to_string();
    assert!(error.contains("no multiple of 512"), "{error}");
}

#[test]
fn control_characters_of_a_bad_line_do_not_reach_the_terminal() {
    let error =
        import_bytes(b"\x1b[2J,W,0,512,1\n", &named(Format::Alibaba)).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}') && error.contains(r"\u{1b}[2J"), "{error}");
}

#[test]
fn an_import_that_fails_or_is_stopped_leaves_nothing() {
    use shelflife_trace::{Input, Meta, TraceWriter, import};
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let good = "0,W,4096,4096,1000\n".repeat(100_000);
    for (text, stop) in [("nonsense\n".to_owned(), false), (good, true)] {
        let mut writer =
            TraceWriter::create_aside(&place, Meta::new("import", Vec::new())).unwrap();
        let input = Input { name: "in".to_owned(), reader: Box::new(text.as_bytes()) };
        let options = named(Format::Alibaba);
        assert!(import([input], &mut writer, &options, &mut |_| !stop).is_err());
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
