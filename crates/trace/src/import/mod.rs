//! Other people's formats → a trace.
//!
//! Invariants: memory does not grow with the length of the input; nothing is clamped: a line that
//! does not say what it must is an error with file and line, or skipped and counted by what is wrong
//! when the caller asked for that.

mod alibaba;
mod blkparse;
mod detect;
mod field;
mod fio;
mod generic;
mod lines;
mod mqsim;
mod msr;
mod sink;
mod tencent;
mod vscsi;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};
use std::str::FromStr;

use serde::Serialize;

use crate::error::Error;
use crate::writer::TraceWriter;
use lines::Lines;
use sink::Sink;

pub use field::TimeUnit;

/// A format that is imported. What is read of each is in `docs/import.md`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Format {
    /// MSR Cambridge (SNIA IOTTA 388), CSV.
    Msr,
    /// Alibaba block traces of 2020, CSV.
    Alibaba,
    /// Tencent CBS of 2018 (SNIA IOTTA 27917), CSV.
    Tencent,
    /// Text of `blkparse` in its default form.
    Blkparse,
    /// VMware's vscsiStats, version 1: 32-byte records.
    Vscsi1,
    /// Version 2: 40-byte records.
    Vscsi2,
    /// fio's I/O log, version 2.
    Fio,
    /// ASCII of DiskSim and MQSim.
    Mqsim,
    /// CSV with a header line that names the columns.
    Csv,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 9] = [
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Blkparse,
        Format::Vscsi1,
        Format::Vscsi2,
        Format::Fio,
        Format::Mqsim,
        Format::Csv,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Blkparse => "blkparse",
            Format::Vscsi1 => "vscsi1",
            Format::Vscsi2 => "vscsi2",
            Format::Fio => "fio",
            Format::Mqsim => "mqsim",
            Format::Csv => "csv",
        }
    }

    /// All names, for messages.
    pub fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }

    const fn is_binary(self) -> bool {
        matches!(self, Format::Vscsi1 | Format::Vscsi2)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("not a format; expected {}", Format::names()))
    }
}

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format; `None`: told from the first 64 KiB.
    pub format: Option<Format>,
    /// Skip and count bad lines.
    pub skip_bad: bool,
    /// Bytes added to every offset, to realign a partition.
    pub shift: i64,
    /// The size of the device: nothing may end beyond it.
    pub device_bytes: Option<u64>,
    /// Only this device or volume.
    pub volume: Option<String>,
    /// The unit of MQSim's arrival times (default: nanoseconds, milliseconds with a decimal point).
    pub time_unit: Option<TimeUnit>,
}

/// A file to import.
pub struct Input<'a> {
    /// As it is called in messages.
    pub name: String,
    /// Its bytes, perhaps compressed by gzip or zstd.
    pub reader: Box<dyn Read + 'a>,
}

/// What an import did.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The format.
    pub format: &'static str,
    /// Events written to the trace.
    pub events: u64,
    /// Reads passed over.
    pub reads: u64,
    /// Flushes counted.
    pub flushes: u64,
    /// Lines that are no requests, or requests that are neither reads nor writes.
    pub other: u64,
    /// Events of other volumes than the one that was asked for.
    pub other_volumes: u64,
    /// Events that do not begin and end at pages.
    pub unaligned: u64,
    /// Bad lines skipped, by what was wrong.
    pub bad_lines: BTreeMap<String, u64>,
    /// The first of them, as an error would have named them.
    pub first_bad: Vec<String>,
}

/// Bytes that are looked at to tell the format, and read at once.
const SNIFF: usize = 64 << 10;

/// Imports `inputs`, one after the other, into `writer`. `progress` is told now and then how many
/// lines or records there were so far; when it answers `false`, the import ends with an error.
///
/// # Errors
///
/// An unknown format, a bad line (unless they are skipped), or reading or writing failed.
pub fn import<'a>(
    inputs: impl IntoIterator<Item = Input<'a>>,
    writer: &mut TraceWriter,
    options: &ImportOptions,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<ImportReport, Error> {
    let mut sink = Sink::new(writer, options, progress);
    let mut format = options.format;
    for input in inputs {
        let name = input.name;
        sink.file = name.clone();
        let failed = |source| Error::Stream { action: "read", file: name.clone(), source };
        let mut reader = decompressed(input.reader).map_err(failed)?;
        let mut head = Vec::new();
        reader.by_ref().take(SNIFF as u64).read_to_end(&mut head).map_err(failed)?;
        let whole = head.len() < SNIFF;
        let this = match format {
            Some(format) => format,
            None => detect::detect(&head, whole, &name)?,
        };
        // the files of one import are parts of one trace
        format = Some(this);
        sink.report.format = this.name();
        sink.set_format(this, &head);
        let reader = std::io::Cursor::new(head).chain(reader);
        if this.is_binary() {
            vscsi::read(reader, this, &mut sink)?;
        } else {
            text(Lines::new(reader), this, &mut sink)?;
        }
    }
    sink.finish()
}

fn decompressed<'a>(reader: Box<dyn Read + 'a>) -> std::io::Result<Box<dyn Read + 'a>> {
    let mut reader = BufReader::with_capacity(1 << 17, reader);
    let mut magic = Vec::new();
    reader.by_ref().take(4).read_to_end(&mut magic)?;
    let whole = std::io::Cursor::new(magic.clone()).chain(reader);
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        // the library's window is at most 128 MiB, whatever a frame asks for
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::stream::read::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}

fn text(mut lines: Lines<impl Read>, format: Format, sink: &mut Sink<'_, '_>) -> Result<(), Error> {
    let mut parser = Parser::new(format, sink);
    while let Some((number, line)) = lines.next().map_err(|source| Error::Stream {
        action: "read",
        file: sink.file.clone(),
        source,
    })? {
        sink.line = number;
        sink.tick()?;
        let Some(line) = line else {
            sink.bad(field::Bad::TooLong, b"")?;
            continue;
        };
        let parsed = parser.parse(line);
        match parsed.and_then(|record| sink.accept(record)) {
            Ok(()) => {}
            Err(bad) => {
                let fatal = matches!(bad, field::Bad::Header(_));
                sink.bad(bad, line)?;
                if fatal {
                    break;
                }
            }
        }
        sink.settle()?;
    }
    Ok(())
}

/// The state of a text format between lines.
pub(crate) enum Parser {
    Msr,
    Alibaba,
    Tencent,
    Blkparse(blkparse::State),
    Fio(fio::State),
    Mqsim(Option<TimeUnit>),
    Csv(generic::State),
}

impl Parser {
    fn new(format: Format, sink: &Sink<'_, '_>) -> Parser {
        match format {
            Format::Msr => Parser::Msr,
            Format::Alibaba => Parser::Alibaba,
            Format::Tencent => Parser::Tencent,
            Format::Blkparse => Parser::Blkparse(blkparse::State::new(sink.completions)),
            Format::Fio => Parser::Fio(fio::State::default()),
            Format::Mqsim => Parser::Mqsim(sink.options.time_unit),
            Format::Csv | Format::Vscsi1 | Format::Vscsi2 => Parser::Csv(generic::State::default()),
        }
    }

    #[inline]
    pub(crate) fn parse<'l>(&'l mut self, line: &'l [u8]) -> Result<field::Parsed<'l>, field::Bad> {
        match self {
            Parser::Msr => msr::parse(line),
            Parser::Alibaba => alibaba::parse(line),
            Parser::Tencent => tencent::parse(line),
            Parser::Blkparse(state) => state.parse(line),
            Parser::Fio(state) => state.parse(line),
            Parser::Mqsim(unit) => mqsim::parse(line, *unit),
            Parser::Csv(state) => state.parse(line),
        }
    }
}
