//! `import`: a trace of a recording in another format.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use serde_json::json;
use shelflife_report::{bytes, count, plain};
use shelflife_trace::{Format, ImportOptions, ImportReport, Input, Meta, TraceWriter, import};

use crate::args::ImportArgs;
use crate::done::{Done, Failure};
use crate::progress::EventProgress;
use crate::verbs::trace::failure;

pub fn run(args: &ImportArgs) -> Result<Done, Failure> {
    if args.time_unit.is_some() && args.format.is_some_and(|format| format != Format::Mqsim) {
        return Err(anyhow::anyhow!("--time-unit is for mqsim; other formats have one unit").into());
    }
    let options = ImportOptions {
        format: args.format,
        skip_bad: args.skip_bad,
        shift: args.shift,
        device_bytes: args.size,
        volume: args.volume.clone(),
        time_unit: args.time_unit,
    };
    let mut inputs = Vec::new();
    for path in &args.files {
        inputs.push(Input { name: path.display().to_string(), reader: open(path)? });
    }
    let mut meta = Meta::new("import", Vec::new());
    meta.source.inputs = inputs.iter().map(|input| input.name.clone()).collect();
    let mut writer = TraceWriter::create_aside(&args.output, meta).map_err(failure)?;
    let mut progress = EventProgress::new("lines", None)?;
    let report = import(inputs, &mut writer, &options, &mut |lines| progress.show(lines));
    let report = report.map_err(failure)?;
    let meta = writer.finish().map_err(failure)?;
    drop(progress);
    if args.json {
        return Done::json(&json!({"trace": args.output, "import": report, "meta": meta}));
    }
    Ok(in_words(args, &report, &meta))
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(file))
}

fn in_words(args: &ImportArgs, report: &ImportReport, meta: &Meta) -> Done {
    let counts = &meta.counts;
    let mut text = format!(
        "{}: {} events, {} written, from {}\n",
        args.output.display(),
        count(report.events),
        bytes(counts.written_bytes),
        report.format
    );
    let mut passed = Vec::new();
    for (number, what) in [
        (report.reads, "reads"),
        (report.flushes, "flushes"),
        (report.other, "other lines or requests"),
        (report.other_volumes, "requests of other volumes"),
    ] {
        if number > 0 {
            passed.push(format!("{} {what}", count(number)));
        }
    }
    if !passed.is_empty() {
        text += &format!("  not events: {}\n", passed.join(", "));
    }
    if report.unaligned > 0 {
        text += &format!(
            "  {} events do not begin and end at pages of {} bytes; each page touched counts \
             (--shift N realigns a partition)\n",
            count(report.unaligned),
            meta.page_size
        );
    }
    if meta.devices.len() > 1 {
        text += &format!(
            "  {} devices, each with offsets of its own (--volume NAME takes one)\n",
            count(meta.devices.len() as u64)
        );
    }
    let mut notes = String::new();
    if !report.bad_lines.is_empty() {
        let kinds =
            report.bad_lines.iter().map(|(kind, lines)| format!("{} {kind}", count(*lines)));
        let total: u64 = report.bad_lines.values().sum();
        text += &format!(
            "  {} bad lines skipped: {}\n",
            count(total),
            kinds.collect::<Vec<_>>().join(", ")
        );
        for line in &report.first_bad {
            notes += &format!("shelflife: {}\n", plain(line));
        }
    }
    Done { text, notes, code: 0 }
}
