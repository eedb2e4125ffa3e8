//! What the tests share.

use std::io::Write;
use std::path::Path;

use shelflife_layout::Class;
use shelflife_learn::{LifetimeOptions, Lifetimes, Row, lifetimes};
use shelflife_trace::{Device, Event, FileEntry, FileId, Meta, Trace, TraceWriter};

pub const PAGE: u64 = 4096;

/// A write of one page of a file.
pub fn write(page: u64, file: u32) -> Event {
    Event { offset: page * PAGE, length: PAGE, file: FileId(file), ..Event::default() }
}

/// A trace of these events on two devices; file N is of class N of these.
pub fn trace(folder: &Path, classes: &[Class], events: &[Event]) -> Trace {
    let files = classes.iter().map(|class| FileEntry::new((*class).into()));
    trace_of(folder, files, events, |_| ())
}

/// A trace with these files.
pub fn trace_of(
    folder: &Path,
    files: impl IntoIterator<Item = FileEntry>,
    events: &[Event],
    change: impl FnOnce(&mut Meta),
) -> Trace {
    let place = folder.join("t");
    let devices = vec![Device::new("a", None), Device::new("b", None)];
    let mut meta = Meta::new("record", devices);
    change(&mut meta);
    let mut writer = TraceWriter::create(&place, meta).unwrap();
    for file in files {
        writer.files_mut().push(file).unwrap();
    }
    for name in ["postgres", "kworker"] {
        writer.process(name.as_bytes()).unwrap();
    }
    events.iter().for_each(|event| writer.push(event).unwrap());
    writer.finish().unwrap();
    Trace::open(&place).unwrap()
}

/// The answer to the usual question.
pub fn found(trace: &Trace, options: LifetimeOptions) -> Lifetimes {
    lifetimes(trace, &options, &mut |_| true).unwrap()
}

/// The row of this name.
pub fn row<'a>(lifetimes: &'a Lifetimes, name: &str) -> &'a Row {
    lifetimes.rows.iter().find(|row| row.name == name).unwrap()
}

/// Says that a test could not do its work.
pub fn skip(name: &str, reason: &str) {
    // `eprintln!` would be captured
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
}

/// Whether `value` is within a share of `expected`.
pub fn near(value: Option<u64>, expected: f64, share: f64) -> bool {
    value.is_some_and(|value| (value as f64 / expected - 1.0).abs() <= share)
}
