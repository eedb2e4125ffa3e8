//! Any bytes in every format: an event or a named error, and what is written keeps the promises of
//! an import. The first byte chooses the format (or that it is told) and whether bad lines are
//! skipped.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use shelflife_trace::{Format, ImportOptions, Input, Meta, TraceWriter, import};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let options = ImportOptions {
        format: Format::ALL.get(usize::from(choice & 15)).copied(),
        skip_bad: choice & 16 != 0,
        shift: if choice & 32 != 0 { -32_256 } else { 0 },
        device_bytes: (choice & 64 != 0).then_some(1 << 40),
        ..ImportOptions::default()
    };
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let place = folder.join(format!("shelflife-fuzz-{}", std::process::id()));
    let mut writer = TraceWriter::create_aside(&place, Meta::new("import", Vec::new())).unwrap();
    let input = Input { name: "fuzz".to_owned(), reader: Box::new(bytes) };
    // dropped, the writer leaves nothing
    let Ok(report) = import([input], &mut writer, &options, &mut |_| true) else { return };
    let counts = writer.counts();
    assert_eq!(report.events, counts.events);
    assert_eq!(counts.backwards, 0);
    assert!(report.bad_lines.is_empty() || options.skip_bad);
});
