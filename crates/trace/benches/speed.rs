//! Events per second of processor time: `cargo bench -p shelflife-trace`.
//!
//! Time is the process's own (CLOCK_PROCESS_CPUTIME_ID), so that other work on the machine counts
//! little; the least of five runs. Inputs lie in memory, traces in the folder for temporary files.

#[path = "../tests/it/stream.rs"]
mod stream;

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use shelflife_trace::{
    Batch, Event, ExportFormat, Format, ImportOptions, Input, Meta, Trace, TraceWriter, export,
    import, summarize,
};
use stream::{pgbench_like, writer};

const EVENTS: usize = 1_000_000;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // first, before the inputs of the others fill the heap
    if wanted("memory") {
        flat(folder.path());
    }
    let events = pgbench_like(EVENTS);
    let place = folder.path().join("pgbench");
    measure("write", EVENTS, || {
        let _ = std::fs::remove_dir_all(&place);
        let mut writer = writer(&place);
        for event in &events {
            writer.push(event).expect("an event");
        }
        writer.finish().expect("a trace");
    });
    if !place.exists() {
        writer(&place).finish().expect("a trace");
    }
    let trace = Trace::open(&place).expect("a trace");
    let bytes = trace.bytes_on_disk().expect("a size");
    println!("{:28} {:.2} bytes an event", "size", bytes as f64 / EVENTS as f64);
    measure("read, batches, no processes", EVENTS, || {
        let mut reader = trace.events().without_processes();
        let (mut batch, mut sum) = (Batch::default(), 0);
        while reader.read(&mut batch).expect("a batch") {
            sum += batch.offset().iter().sum::<u64>();
        }
        black_box(sum);
    });
    measure("read, batches", EVENTS, || {
        let (mut reader, mut batch) = (trace.events(), Batch::default());
        while reader.read(&mut batch).expect("a batch") {
            black_box(batch.len());
        }
    });
    measure("read, iterator", EVENTS, || {
        let sum: u64 = trace.events().map(|event| event.expect("an event").offset).sum();
        black_box(sum);
    });
    measure("summary", EVENTS, || {
        black_box(summarize(&trace, &mut |_| true).expect("a summary"));
    });
    measure("export alibaba", EVENTS, || {
        let mut out = Vec::new();
        export(&trace, ExportFormat::Alibaba, &mut out, "out", &mut |_| true).expect("an export");
        black_box(out.len());
    });
    drop(trace);
    for (name, format, bytes) in inputs(&events) {
        measure(&format!("import {name}"), EVENTS, || run(folder.path(), format, &bytes));
    }
}

fn run(folder: &Path, format: Format, bytes: &[u8]) {
    let place = folder.join("imported");
    let mut writer =
        TraceWriter::create_aside(&place, Meta::new("import", Vec::new())).expect("a trace");
    let options = ImportOptions { format: Some(format), ..ImportOptions::default() };
    let input = Input { name: "in".to_owned(), reader: Box::new(bytes) };
    let report = import([input], &mut writer, &options, &mut |_| true).expect("an import");
    assert_eq!(report.events as usize, EVENTS);
    writer.finish().expect("a trace");
    std::fs::remove_dir_all(place).expect("removed");
}

fn inputs(events: &[Event]) -> Vec<(&'static str, Format, Vec<u8>)> {
    let mut vscsi = Vec::with_capacity(events.len() * 32);
    let (mut alibaba, mut msr, mut blkparse) = (String::new(), String::new(), String::new());
    for (number, event) in events.iter().enumerate() {
        let (block, micros) = (event.offset / 512, event.time / 1000);
        vscsi1(number as u64, event, &mut vscsi);
        let Event { offset, length, .. } = event;
        let _ = writeln!(alibaba, "419,W,{offset},{length},{}", 1_577_808_000_000_000 + micros);
        let filetime = 128_166_372_003_061_629 + event.time / 100;
        let _ = writeln!(msr, "{filetime},hm,0,Write,{offset},{length},1341");
        let (seconds, ns) = (event.time / 1_000_000_000, event.time % 1_000_000_000);
        let _ = writeln!(
            blkparse,
            "  8,0    1 {number:8} {seconds:5}.{ns:09}  4711  D  WS {block} + {} [postgres]",
            length / 512
        );
    }
    vec![
        ("vscsi1 (binary)", Format::Vscsi1, vscsi),
        ("alibaba", Format::Alibaba, alibaba.into_bytes()),
        ("msr", Format::Msr, msr.into_bytes()),
        ("blkparse", Format::Blkparse, blkparse.into_bytes()),
    ]
}

/// Memory of an import: how far its peak is above what was there before, for inputs of which the
/// second is eight times the first.
fn flat(folder: &Path) {
    for records in [1_000_000, 8_000_000] {
        let place = folder.join("long");
        // from here on the peak is counted anew
        std::fs::write("/proc/self/clear_refs", "5").expect("a process");
        let before = peak();
        let mut writer =
            TraceWriter::create_aside(&place, Meta::new("import", Vec::new())).expect("a trace");
        let options = ImportOptions { format: Some(Format::Vscsi1), ..ImportOptions::default() };
        let reader = Box::new(Records { next: 0, end: records, held: Vec::new() });
        let input = Input { name: "in".to_owned(), reader };
        import([input], &mut writer, &options, &mut |_| true).expect("an import");
        drop(writer);
        println!("{:28} {records} records take {} kB", "memory", peak() - before);
    }
}

/// Records of vscsi version 1 out of nothing.
struct Records {
    next: u64,
    end: u64,
    held: Vec<u8>,
}

impl std::io::Read for Records {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.held.is_empty() && self.next < self.end {
            let offset = (self.next * 2_654_435_761) % (1 << 22) * 4096;
            let event =
                Event { time: self.next * 50_000, offset, length: 4096, ..Event::default() };
            vscsi1(self.next, &event, &mut self.held);
            self.next += 1;
        }
        let many = out.len().min(self.held.len());
        out[..many].copy_from_slice(&self.held[..many]);
        self.held.drain(..many);
        Ok(many)
    }
}

fn vscsi1(number: u64, event: &Event, out: &mut Vec<u8>) {
    out.extend((number as u32).to_le_bytes());
    out.extend((event.length as u32).to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(0x2au16.to_le_bytes());
    out.extend(0x100u16.to_le_bytes());
    out.extend((event.offset / 512).to_le_bytes());
    out.extend((event.time / 1000).to_le_bytes());
}

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("kB")
}

fn measure(name: &str, events: usize, mut work: impl FnMut()) {
    // `cargo bench -p shelflife-trace -- import` takes those whose name has it
    if !wanted(name) {
        return;
    }
    let least = (0..5)
        .map(|_| {
            let begun = cpu();
            work();
            cpu() - begun
        })
        .fold(f64::INFINITY, f64::min);
    let (ns, millions) = (least * 1e9 / events as f64, events as f64 / least / 1e6);
    println!("{name:28} {ns:6.1} ns an event, {millions:6.2} M events per CPU second");
}

fn wanted(name: &str) -> bool {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    wanted.is_none_or(|wanted| name.contains(&wanted))
}

fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
