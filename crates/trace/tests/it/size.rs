//! An event of a pgbench run costs at most 8 bytes on disk.

use shelflife_trace::Trace;

use crate::stream::{pgbench_like, writer};

#[test]
fn an_event_of_pgbench_costs_at_most_eight_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t");
    let mut writer = writer(&place);
    let count = 200_000;
    for event in pgbench_like(count) {
        writer.push(&event).unwrap();
    }
    writer.finish().unwrap();
    let bytes = Trace::open(&place).unwrap().bytes_on_disk().unwrap();
    let each = bytes as f64 / count as f64;
    println!("{each:.2} bytes an event");
    assert!(each <= 8.0, "{each}");
}
