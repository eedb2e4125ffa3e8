//! Any bytes as one of the three files of a trace: events that keep their contract, or an error.
//! The first byte chooses the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shelflife_trace::read_bytes;

const META: &[u8] = include_bytes!("../../crates/trace/samples/trace-v1/meta.json");
const FILES: &[u8] = include_bytes!("../../crates/trace/samples/trace-v1/files.parquet");
const SEGMENT: &[u8] = include_bytes!("../../crates/trace/samples/trace-v1/events-0000.parquet");

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let _ = match choice % 3 {
        0 => read_bytes(bytes, FILES.to_vec(), SEGMENT.to_vec()),
        1 => read_bytes(META, bytes.to_vec(), SEGMENT.to_vec()),
        _ => read_bytes(META, FILES.to_vec(), bytes.to_vec()),
    };
});
