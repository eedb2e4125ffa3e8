//! `trace`: look at a trace, check, cut, merge and summarise it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use shelflife_report::{Table, bytes, count, duration, figure, plain};
use shelflife_trace::{
    CutOptions, Error, Meta, Row, Summary, Trace, TraceWriter, Usage, Volume, check, cut, cut_meta,
    merge, merge_meta, summarize,
};

use crate::args::{CutArgs, HeadArgs, TraceAction, TraceArgs};
use crate::done::{Done, Failure, NO, USE, code_of};
use crate::progress::EventProgress;

/// As a shell has it for a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

pub fn run(args: &TraceArgs) -> Result<Done, Failure> {
    match &args.action {
        TraceAction::Info { trace, json } => info(&open(trace)?, *json),
        TraceAction::Check { trace, json } => verdict(&open(trace)?, *json),
        TraceAction::Head(args) => head(args),
        TraceAction::Cut(args) => part(args),
        TraceAction::Merge { traces, output, json } => merged(traces, output, *json),
        TraceAction::Summary { trace, top, json } => summary(&open(trace)?, *top, *json),
    }
}

/// What a failure of a trace ends with.
pub fn failure(error: Error) -> Failure {
    let stopped = matches!(error, Error::Stopped);
    let error = anyhow::Error::from(error);
    Failure { code: if stopped { INTERRUPTED } else { code_of(&error).max(USE) }, error }
}

fn open(path: &Path) -> Result<Trace, Failure> {
    Trace::open(path).map_err(failure)
}

fn notes(trace: &Trace) -> String {
    trace.notes().iter().map(|note| format!("shelflife: {}\n", plain(&note.to_string()))).collect()
}

fn info(trace: &Trace, as_json: bool) -> Result<Done, Failure> {
    let (meta, disk) = (trace.meta(), trace.bytes_on_disk().map_err(failure)?);
    if as_json {
        let notes: Vec<String> = trace.notes().iter().map(ToString::to_string).collect();
        return Done::json(&json!({
            "trace": trace.folder(), "meta": meta, "files": trace.files().len() - 1,
            "bytes_on_disk": disk, "notes": notes,
        }));
    }
    let counts = &meta.counts;
    let each = match counts.events {
        0 => String::new(),
        events => format!(", {} bytes an event", figure(disk as f64 / events as f64)),
    };
    let mut text = format!(
        "{}: {} events, {} written, {} files ({} on disk{each})\n",
        trace.folder().display(),
        count(counts.events),
        bytes(counts.written_bytes),
        count(trace.files().len() as u64 - 1),
        bytes(disk)
    );
    let mut table = Table::new(["", ""]);
    let mut row = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            table.row([format!("  {name}"), value]);
        }
    };
    row("made by", Some(made_by(meta)));
    row("begun", meta.start_unix_ns.map(|ns| format!("{ns} ns since 1970")));
    row("kernel", meta.kernel.clone());
    row("file system", meta.file_system.clone());
    row("mount options", meta.mount_options.clone());
    row("in use", meta.usage.map(in_use));
    row("policy", meta.policy.clone());
    for (number, device) in meta.devices.iter().enumerate().take(20) {
        let size = device.bytes.map_or(String::new(), |size| format!(", {}", bytes(size)));
        row(&format!("device {number}"), Some(format!("{}{size}", device.name)));
    }
    let more = meta.devices.len().saturating_sub(20) as u64;
    row("", (more > 0).then(|| format!("… and {} more devices", count(more))));
    let some = |number: u64| (number > 0).then(|| count(number));
    row("writes", Some(count(counts.writes)));
    row("discards", some(counts.discards));
    row("write-zeroes", some(counts.write_zeroes));
    row("flushes", some(counts.flushes));
    row("reads passed over", some(counts.reads));
    row("not page-aligned", some(counts.unaligned));
    row("bad lines skipped", some(counts.bad_lines.values().sum()));
    row("steps back in time", some(counts.backwards));
    row("LOST events", some(counts.lost));
    let shown = table.to_string();
    // the heads are empty
    text += &shown.lines().skip(2).map(|line| format!("{line}\n")).collect::<String>();
    Ok(Done { text, notes: notes(trace), code: 0 })
}

fn in_use(usage: Usage) -> String {
    let share = usage.used_bytes as f64 * 100.0 / usage.bytes.max(1) as f64;
    format!("{} of {} ({} %)", bytes(usage.used_bytes), bytes(usage.bytes), figure(share))
}

fn made_by(meta: &Meta) -> String {
    let source = &meta.source;
    let mut text = format!("{} {}", source.program, source.kind);
    if let Some(format) = &source.format {
        text += &format!(" ({format})");
    }
    if !source.inputs.is_empty() {
        text += &format!(" of {}", source.inputs.join(", "));
    }
    if source.anonymized {
        text += ", names replaced";
    }
    text
}

fn verdict(trace: &Trace, as_json: bool) -> Result<Done, Failure> {
    let mut progress = EventProgress::new("events", Some(trace.meta().counts.events))?;
    let found = check(trace, &mut |events| progress.show(events)).map_err(failure)?;
    let code = if found.findings.is_empty() { 0 } else { NO };
    if as_json {
        return Ok(Done::json(&found)?.with_code(code));
    }
    let folder = trace.folder().display();
    let mut text = match found.findings.len() {
        0 => format!("{folder}: right, {} events\n", count(found.events)),
        wrong => format!("{folder}: {wrong} findings, {} events read\n", count(found.events)),
    };
    for finding in &found.findings {
        text += &format!("  {}\n", plain(finding));
    }
    for note in &found.notes {
        text += &format!("  note: {}\n", plain(note));
    }
    Ok(Done::text(text).with_code(code))
}

fn head(args: &HeadArgs) -> Result<Done, Failure> {
    let trace = open(&args.trace)?;
    let mut events = trace.events();
    let mut table =
        Table::new(["time", "op", "offset", "length", "hint", "flags", "process", "file"])
            .right([0, 2, 3]);
    let mut values: Vec<Value> = Vec::new();
    for _ in 0..args.events {
        let Some(event) = events.next() else { break };
        let event = event.map_err(failure)?;
        let process = events.process(event.process);
        let file = trace.files().get(event.file);
        let device = trace.meta().devices.get(usize::from(event.device));
        if args.json {
            values.push(json!({
                "time_ns": event.time, "op": event.op.name(), "offset": event.offset,
                "length": event.length, "hint": event.hint.name(), "stream": event.stream,
                "flags": event.flags.to_string(), "device": device.map(|d| &d.name),
                "process": process, "file": file,
            }));
            continue;
        }
        let name = file.map_or(String::new(), |file| {
            let of = file.relation.as_deref().or(file.path.as_deref()).unwrap_or_default();
            format!("{} {of}", file.class).trim_end().to_owned()
        });
        table.row([
            format!("{:.6} s", Duration::from_nanos(event.time).as_secs_f64()),
            event.op.to_string(),
            count(event.offset),
            count(event.length),
            event.hint.to_string(),
            event.flags.to_string(),
            process.unwrap_or_default().to_owned(),
            name,
        ]);
    }
    if args.json {
        return Done::json(&values);
    }
    let text = if table.is_empty() { "no events\n".to_owned() } else { format!("{table}\n") };
    Ok(Done { text, notes: notes(&trace), code: 0 })
}

fn part(args: &CutArgs) -> Result<Done, Failure> {
    let trace = open(&args.trace)?;
    let devices = trace.meta().devices.len();
    if let Some(device) = args.device
        && usize::from(device) >= devices
    {
        return Err(anyhow::anyhow!("there is no device {device}: the trace has {devices}").into());
    }
    let options = CutOptions {
        time: args.time.clone(),
        offset: args.offset.clone(),
        device: args.device,
        anonymize: args.anonymize,
    };
    let meta = cut_meta(&trace, &options);
    let mut writer = TraceWriter::create_aside(&args.output, meta).map_err(failure)?;
    let mut progress = EventProgress::new("events", Some(trace.meta().counts.events))?;
    cut(&trace, &options, &mut writer, &mut |events| progress.show(events)).map_err(failure)?;
    let meta = writer.finish().map_err(failure)?;
    drop(progress);
    let of = format!(" of {}", count(trace.meta().counts.events));
    made(&args.output, &meta, &of, &notes(&trace), args.json)
}

fn merged(paths: &[std::path::PathBuf], output: &Path, as_json: bool) -> Result<Done, Failure> {
    let traces = paths.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let meta = merge_meta(&traces).map_err(failure)?;
    let mut writer = TraceWriter::create_aside(output, meta).map_err(failure)?;
    let total = traces.iter().map(|trace| trace.meta().counts.events).sum();
    let mut progress = EventProgress::new("events", Some(total))?;
    merge(&traces, &mut writer, &mut |events| progress.show(events)).map_err(failure)?;
    let meta = writer.finish().map_err(failure)?;
    drop(progress);
    let of = format!(" of {} traces", traces.len());
    made(output, &meta, &of, &traces.iter().map(notes).collect::<String>(), as_json)
}

fn made(output: &Path, meta: &Meta, of: &str, notes: &str, as_json: bool) -> Result<Done, Failure> {
    if as_json {
        return Done::json(&json!({"trace": output, "meta": meta}));
    }
    let counts = &meta.counts;
    let text = format!(
        "{}: {} events{of}, {} written\n",
        output.display(),
        count(counts.events),
        bytes(counts.written_bytes)
    );
    Ok(Done { text, notes: notes.to_owned(), code: 0 })
}

fn summary(trace: &Trace, top: usize, as_json: bool) -> Result<Done, Failure> {
    let mut progress = EventProgress::new("events", Some(trace.meta().counts.events))?;
    let summary = summarize(trace, &mut |events| progress.show(events)).map_err(failure)?;
    drop(progress);
    if as_json {
        return Done::json(&summary);
    }
    Ok(Done { text: in_words(trace, &summary, top), notes: notes(trace), code: 0 })
}

fn in_words(trace: &Trace, summary: &Summary, top: usize) -> String {
    let total = &summary.total;
    let mut text = format!(
        "{}: {} written by {} writes in {}\n",
        trace.folder().display(),
        bytes(total.bytes),
        count(total.writes),
        duration(Duration::from_nanos(summary.span_ns))
    );
    if !summary.exact {
        text += "  distinct pages and overwrites are estimates (1.6 %)\n";
    }
    for (name, rows) in [
        ("class", &summary.classes),
        ("relation", &summary.relations),
        ("hint", &summary.hints),
        ("process", &summary.processes),
        ("device", &summary.devices),
    ] {
        if rows.is_empty() {
            continue;
        }
        let mut table = Table::new([
            name,
            "written",
            "share",
            "writes",
            "mean size",
            "sequential",
            "overwrites",
            "pages",
            "distinct",
            "discarded",
        ])
        .right(1..10);
        for row in rows.iter().take(top) {
            table.row(cells(row, total));
        }
        if rows.len() > 1 {
            table.row(cells(total, total));
        }
        text += &format!("\n{table}\n");
        if rows.len() > top {
            text += &format!("… and {} more\n", count((rows.len() - top) as u64));
        }
        if name == "hint" {
            text += &format!("\n{}\n", by_class_and_hint(&summary.class_hints, total.bytes, top));
        }
    }
    text += &format!(
        "\nsequential: writes that begin where one of the 64 before ended; overwrites: page writes \
         that hit a page written before; pages of {} bytes\n",
        summary.page_size
    );
    text
}

/// Which classes carried which hints.
pub fn by_class_and_hint(volumes: &[Volume], total: u64, top: usize) -> Table {
    let mut table =
        Table::new(["class", "hint", "written", "share", "writes", "mean size"]).right(2..6);
    for volume in volumes.iter().take(top) {
        table.row([
            volume.class.clone(),
            volume.hint.clone(),
            bytes(volume.bytes),
            format!("{} %", figure(100.0 * volume.bytes as f64 / total.max(1) as f64)),
            count(volume.writes),
            bytes(volume.bytes / volume.writes.max(1)),
        ]);
    }
    table
}

fn cells(row: &Row, total: &Row) -> [String; 10] {
    let percent = |share: f64| format!("{} %", figure(share * 100.0));
    let share = if total.bytes == 0 { 0.0 } else { row.bytes as f64 / total.bytes as f64 };
    [
        row.name.clone(),
        bytes(row.bytes),
        percent(share),
        count(row.writes),
        bytes(row.mean_bytes.round() as u64),
        percent(row.sequential),
        percent(row.overwrites),
        count(row.page_writes),
        count(row.distinct_pages),
        if row.discarded_bytes == 0 { String::new() } else { bytes(row.discarded_bytes) },
    ]
}
