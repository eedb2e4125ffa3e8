//! What the tests share.

use std::io::Write;
use std::path::{Path, PathBuf};

use shelflife_trace::{
    Error, Event, ImportOptions, ImportReport, Input, Meta, Trace, TraceWriter, import,
};

/// A file of the project's samples.
pub fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// Imports bytes into a new trace.
pub fn import_bytes(
    bytes: &[u8],
    options: &ImportOptions,
) -> Result<(tempfile::TempDir, Trace, ImportReport), Error> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let mut writer = TraceWriter::create_aside(&place, Meta::new("import", Vec::new()))?;
    let input = Input { name: "in".to_owned(), reader: Box::new(bytes) };
    let report = import([input], &mut writer, options, &mut |_| true)?;
    writer.finish()?;
    let trace = Trace::open(&place)?;
    Ok((folder, trace, report))
}

/// All events of a trace.
pub fn events(trace: &Trace) -> Vec<Event> {
    trace.events().collect::<Result<_, _>>().unwrap()
}

/// Says that a test could not do its work.
pub fn skip(name: &str, reason: &str) {
    // `eprintln!` would be captured
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
}
