//! A trace → other people's formats.
//!
//! Invariant: what a format has no words for is counted and reported, never left out in silence.

use std::fmt;
use std::io::{BufWriter, Write};
use std::str::FromStr;

use serde::Serialize;

use crate::class::FileClass;
use crate::error::Error;
use crate::event::{Event, FileId, Flags, Op};
use crate::trace::Trace;

/// A format that is exported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExportFormat {
    /// Alibaba 2020: device, `W`, offset, length, microseconds. Has no discards, hints or files.
    Alibaba,
    /// CSV with a header that names the columns: everything but inode numbers and the catalog's
    /// names.
    Csv,
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<ExportFormat, String> {
        match text {
            "alibaba" => Ok(ExportFormat::Alibaba),
            "csv" => Ok(ExportFormat::Csv),
            _ => Err("not a format; expected alibaba or csv".to_owned()),
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ExportFormat::Alibaba => "alibaba",
            ExportFormat::Csv => "csv",
        })
    }
}

/// What an export did.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// Lines written.
    pub lines: u64,
    /// Events that the format has no words for.
    pub left_out: u64,
}

/// Writes the events of `trace` to `out`, which is called `name` in messages. `progress` is told
/// how many events there were so far; when it answers `false`, the export ends with an error.
///
/// # Errors
///
/// The trace cannot be read, `out` refuses, or a time does not fit the format.
pub fn export(
    trace: &Trace,
    format: ExportFormat,
    out: impl Write,
    name: &str,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<ExportReport, Error> {
    let failed = |source| Error::Stream { action: "write", file: name.to_owned(), source };
    let mut out = BufWriter::with_capacity(1 << 18, out);
    let mut report = ExportReport::default();
    let start = trace.meta().start_unix_ns;
    let files = match format {
        ExportFormat::Csv => quoted_files(trace),
        ExportFormat::Alibaba => Vec::new(),
    };
    if format == ExportFormat::Csv {
        let time = if start.is_some() { "unix_ns" } else { "time_ns" };
        writeln!(out, "{time},op,offset,length,hint,stream,flags,device,process,class,path")
            .map_err(failed)?;
    }
    let mut events = trace.events();
    if format == ExportFormat::Alibaba {
        events = events.without_processes();
    }
    let devices: Vec<String> =
        trace.meta().devices.iter().map(|device| quoted(&device.name)).collect();
    let mut batch = crate::event::Batch::default();
    let mut seen = 0;
    while events.read(&mut batch)? {
        for event in batch.iter() {
            let time = i128::from(event.time) + i128::from(start.unwrap_or(0));
            let time = u64::try_from(time).map_err(|_| Error::Event {
                number: seen,
                reason: "its time is before 1970".to_owned(),
            })?;
            seen += 1;
            match format {
                ExportFormat::Alibaba if event.op != Op::Write => report.left_out += 1,
                ExportFormat::Alibaba => {
                    let Event { device, offset, length, .. } = event;
                    writeln!(out, "{device},W,{offset},{length},{}", time / 1000)
                        .map_err(failed)?;
                    report.lines += 1;
                }
                ExportFormat::Csv => {
                    let device = devices.get(usize::from(event.device));
                    let FileId(file) = event.file;
                    writeln!(
                        out,
                        "{time},{},{},{},{},{},{},{},{},{}",
                        event.op,
                        event.offset,
                        event.length,
                        event.hint,
                        event.stream,
                        if event.flags == Flags::NONE {
                            String::new()
                        } else {
                            event.flags.to_string()
                        },
                        device.map_or("", String::as_str),
                        quoted(events.process(event.process).unwrap_or("")),
                        files.get(file as usize).map_or(",", String::as_str),
                    )
                    .map_err(failed)?;
                    report.lines += 1;
                }
            }
        }
        if !progress(seen) {
            return Err(Error::Stopped);
        }
    }
    out.flush().map_err(failed)?;
    Ok(report)
}

/// Class and path of each file, as they stand in a line.
fn quoted_files(trace: &Trace) -> Vec<String> {
    let pair = |(_, file): (_, &crate::files::FileEntry)| {
        let class = if file.class == FileClass::Unknown { "" } else { file.class.name() };
        format!("{class},{}", quoted(file.path.as_deref().unwrap_or("")))
    };
    trace.files().iter().map(pair).collect()
}

/// A field as RFC 4180 has it. A line break, which our importer does not take, becomes a space.
fn quoted(text: &str) -> String {
    let plain = |c: char| !matches!(c, '"' | ',' | '\n' | '\r' | '#') && !c.is_whitespace();
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " "))
}
