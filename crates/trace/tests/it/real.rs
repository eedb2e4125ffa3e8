//! A real trace: two hours of a virtual machine, recorded by CloudPhysics.

use std::path::{Path, PathBuf};

use shelflife_trace::{ImportOptions, Input, Meta, Trace, TraceWriter, import, summarize};

use crate::support::skip;

fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("SHELFLIFE_DATA").map_or(beside, PathBuf::from);
    Some(folder.join("cloudPhysicsIO.vscsi")).filter(|path| path.is_file())
}

#[test]
fn figures_of_the_real_trace_are_the_known_ones() {
    const NAME: &str = "figures_of_the_real_trace_are_the_known_ones";
    let Some(path) = data() else {
        return skip(NAME, "cloudPhysicsIO.vscsi is not in SHELFLIFE_DATA");
    };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let mut writer = TraceWriter::create_aside(&place, Meta::new("import", Vec::new())).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let input = Input { name: path.display().to_string(), reader: Box::new(file) };
    let report = import([input], &mut writer, &ImportOptions::default(), &mut |_| true).unwrap();
    let meta = writer.finish().unwrap();
    assert_eq!(report.format, "vscsi1");
    assert_eq!((report.events, report.events + report.reads), (66_898, 113_872));
    let trace = Trace::open(&place).unwrap();
    let summary = summarize(&trace, &mut |_| true).unwrap();
    assert_eq!(meta.counts.written_bytes, summary.total.bytes);
    assert_eq!((summary.total.bytes as f64 / 1e7).round(), 241.0);
    assert_eq!((summary.total.page_writes, summary.total.distinct_pages), (656_169, 208_696));
    assert!(summary.exact);
    println!("{:?}, {} bytes on disk", summary.total, trace.bytes_on_disk().unwrap());
}
