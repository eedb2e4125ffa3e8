//! Events per second of processor time: `make bench-lifetimes`.
//!
//! Time is the process's own (CLOCK_PROCESS_CPUTIME_ID), so that other work on the machine counts
//! little; the least of five runs. `of reading` is the time against that of reading the trace alone.

#[path = "../../trace/tests/it/stream.rs"]
mod stream;

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use shelflife_learn::{By, LifetimeOptions, lifetimes};
use shelflife_trace::{Batch, Trace};
use stream::{pgbench_like, writer};

const EVENTS: usize = 4_000_000;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("pgbench");
    let mut writer = writer(&place);
    for event in pgbench_like(EVENTS) {
        writer.push(&event).expect("an event");
    }
    writer.finish().expect("a trace");
    let trace = Trace::open(&place).expect("a trace");
    let reading = least(|| {
        let mut reader = trace.events().without_processes();
        let mut batch = Batch::default();
        while reader.read(&mut batch).expect("a batch") {
            black_box(batch.len());
        }
    });
    said("reading alone", reading, reading);
    for by in [By::Class, By::File, By::Process] {
        for one_in in [1, 64] {
            let options = LifetimeOptions { by, one_in, memory_bytes: None };
            let took = least(|| {
                black_box(lifetimes(&trace, &options, &mut |_| true).expect("lifetimes"));
            });
            said(&format!("by {by:?}, sample 1/{one_in}"), took, reading);
        }
    }
}

fn said(name: &str, took: f64, reading: f64) {
    let (millions, ratio) = (EVENTS as f64 / took / 1e6, took / reading);
    println!("{name:24} {millions:6.2} M events per CPU second, {ratio:.2} of reading");
}

fn least(mut work: impl FnMut()) -> f64 {
    let one = |_| {
        let begun = cpu();
        work();
        cpu() - begun
    };
    (0..5).map(one).fold(f64::INFINITY, f64::min)
}

fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
