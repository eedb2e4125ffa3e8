//! From records to events: the checks that all formats share.
//!
//! Invariant: an event that is written begins and ends at sectors, has a length, lies within the
//! stated end, and is not earlier than the one before.

use std::collections::HashMap;

use crate::class::FileClass;
use crate::error::Error;
use crate::event::{Event, FileId, Op, ProcessId};
use crate::files::FileEntry;
use crate::import::field::{Bad, Kind, Parsed, Record};
use crate::import::{Format, ImportOptions, ImportReport};
use crate::meta::Device;
use crate::segment::{MAX, MAX_WRITE};
use crate::writer::TraceWriter;

/// How often progress is told, in lines.
const TICK: u64 = 1 << 16;
/// How many bad lines are kept in words.
const KEPT: usize = 5;
/// Seconds from 1601 to 1970, the epoch of Windows' FILETIME.
const FILETIME_TO_UNIX_NS: i128 = 11_644_473_600 * 1_000_000_000;

pub(crate) struct Sink<'w, 'p> {
    writer: &'w mut TraceWriter,
    pub(crate) options: &'w ImportOptions,
    progress: &'p mut dyn FnMut(u64) -> bool,
    pub(crate) report: ImportReport,
    pub(crate) file: String,
    pub(crate) line: u64,
    /// Lines of all files.
    seen: u64,
    /// Whether a blkparse text has completions only.
    pub(crate) completions: bool,
    /// Whether records are no text.
    binary: bool,
    epoch: Epoch,
    /// Time of the first record, in the format's time.
    first: Option<u64>,
    last: u64,
    devices: HashMap<Vec<u8>, u16>,
    last_device: (Vec<u8>, Option<u16>),
    processes: HashMap<Vec<u8>, ProcessId>,
    files: HashMap<(FileClass, Vec<u8>), FileId>,
    unaligned_before: u64,
    /// A failure of the writer, which must not be taken for a bad line.
    failure: Option<Error>,
}

/// What the format's time 0 is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Epoch {
    /// Nobody knows; the first record is the trace's time 0.
    Unknown,
    /// 1970.
    Unix,
    /// 1601, Windows' FILETIME.
    Filetime,
    /// The trace's own time 0: times stay as they are.
    Own,
}

impl<'w, 'p> Sink<'w, 'p> {
    pub(crate) fn new(
        writer: &'w mut TraceWriter,
        options: &'w ImportOptions,
        progress: &'p mut dyn FnMut(u64) -> bool,
    ) -> Sink<'w, 'p> {
        let unaligned_before = writer.counts().unaligned;
        Sink {
            writer,
            options,
            progress,
            report: ImportReport::default(),
            file: String::new(),
            line: 0,
            seen: 0,
            completions: false,
            binary: false,
            epoch: Epoch::Unknown,
            first: None,
            last: 0,
            devices: HashMap::new(),
            last_device: (Vec::new(), None),
            processes: HashMap::new(),
            files: HashMap::new(),
            unaligned_before,
            failure: None,
        }
    }

    /// What follows is of this format, and begins with `head`.
    pub(crate) fn set_format(&mut self, format: Format, head: &[u8]) {
        self.epoch = match format {
            Format::Msr => Epoch::Filetime,
            Format::Alibaba | Format::Tencent => Epoch::Unix,
            Format::Csv => crate::import::generic::epoch(head),
            _ => Epoch::Unknown,
        };
        self.binary = format.is_binary();
        self.completions =
            format == Format::Blkparse && crate::import::blkparse::only_completions(head);
    }

    /// Once a line: progress.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<(), Error> {
        self.seen += 1;
        if self.seen.is_multiple_of(TICK) && !(self.progress)(self.seen) {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// A failure of the writer in [`Sink::accept`].
    #[inline]
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        match self.failure.take() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// A line, or a record of a binary format, that is bad: an error, or one more of its kind.
    #[cold]
    pub(crate) fn bad(&mut self, bad: Bad, line: &[u8]) -> Result<(), Error> {
        self.settle()?;
        let skipped = self.options.skip_bad && !matches!(bad, Bad::Header(_));
        if skipped {
            match self.report.bad_lines.get_mut(bad.kind()) {
                Some(lines) => *lines += 1,
                None => drop(self.report.bad_lines.insert(bad.kind().to_owned(), 1)),
            }
            if self.report.first_bad.len() >= KEPT {
                return Ok(());
            }
        }
        let error = Error::Line {
            file: self.file.clone(),
            line: self.line,
            reason: bad.to_string(),
            found: if self.binary { hex(line) } else { shown(line) },
        };
        if !skipped {
            return Err(error);
        }
        self.report.first_bad.push(error.to_string());
        Ok(())
    }

    /// Takes what a line said.
    #[inline]
    pub(crate) fn accept(&mut self, parsed: Parsed<'_>) -> Result<(), Bad> {
        match parsed {
            Parsed::Nothing => Ok(()),
            Parsed::Other => {
                self.report.other += 1;
                Ok(())
            }
            Parsed::Record(record) => self.record(&record),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, record: &Record<'_>) -> Result<(), Bad> {
        if let Some(volume) = &self.options.volume
            && record.device != volume.as_bytes()
            && device_name(record.device, self.epoch) != *volume
        {
            self.report.other_volumes += 1;
            return Ok(());
        }
        let first = match self.first {
            Some(first) => first,
            None => self.set_first(record.time)?,
        };
        let op = match record.kind {
            // A read is no event: what matters of it is only that it was there.
            Kind::Read => {
                self.report.reads += 1;
                return Ok(());
            }
            Kind::Flush => {
                self.report.flushes += 1;
                return Ok(());
            }
            Kind::Do(op) => op,
        };
        if record.length == 0 {
            return Err(Bad::ZeroLength);
        }
        if record.length > MAX_WRITE && op == Op::Write {
            return Err(Bad::TooMuch(record.length));
        }
        let offset = record.offset;
        if !record.length.is_multiple_of(512) {
            return Err(Bad::Unaligned("length", record.length));
        }
        let offset = match self.options.shift {
            0 => offset,
            shift => offset.checked_add_signed(shift).ok_or(Bad::BeforeStart)?,
        };
        if !offset.is_multiple_of(512) {
            return Err(Bad::Unaligned("offset", offset));
        }
        let end = offset.checked_add(record.length).filter(|end| *end <= MAX);
        let end = end.ok_or(Bad::Overflow("the end of the range"))?;
        if let Some(device) = self.options.device_bytes
            && end > device
        {
            return Err(Bad::PastEnd { end, device });
        }
        if record.time < self.last || record.time < first {
            return Err(Bad::Backwards { before: self.last.max(first), now: record.time });
        }
        let time = record.time - first;
        if time > MAX {
            return Err(Bad::Overflow("time"));
        }
        let mut event = Event {
            time,
            offset,
            length: record.length,
            op,
            hint: record.hint,
            stream: record.stream,
            flags: record.flags,
            ..Event::default()
        };
        if let Err(error) = self.names(record, &mut event).and_then(|()| self.writer.push(&event)) {
            self.failure = Some(error);
            return Ok(());
        }
        self.last = record.time;
        self.report.events += 1;
        Ok(())
    }

    fn set_first(&mut self, time: u64) -> Result<u64, Bad> {
        let (first, start) = match self.epoch {
            Epoch::Unknown => (time, None),
            Epoch::Own => (0, None),
            Epoch::Unix => (time, Some(i128::from(time))),
            Epoch::Filetime => (time, Some(i128::from(time) - FILETIME_TO_UNIX_NS)),
        };
        if let Some(start) = start {
            let start = i64::try_from(start).map_err(|_| Bad::Overflow("time"))?;
            self.writer.meta_mut().start_unix_ns = Some(start);
        }
        self.first = Some(first);
        self.last = first;
        Ok(first)
    }

    #[inline]
    fn names(&mut self, record: &Record<'_>, event: &mut Event) -> Result<(), Error> {
        event.device = match self.last_device.1 {
            // glibc's comparison of no bytes at all takes 100 ns here: the pointer of an empty slice
            // is no address, and a masked load from there, though legal, is slow
            Some(number)
                if self.last_device.0.len() == record.device.len()
                    && (record.device.is_empty() || self.last_device.0 == record.device) =>
            {
                number
            }
            _ => self.device(record.device)?,
        };
        if !record.process.is_empty() {
            event.process = match self.processes.get(record.process) {
                Some(number) => *number,
                None => {
                    let number = self.writer.process(record.process)?;
                    self.processes.insert(record.process.to_vec(), number);
                    number
                }
            };
        }
        if let Some((class, path)) = record.file {
            event.file = self.file_of(class, path)?;
        }
        Ok(())
    }

    #[cold]
    fn device(&mut self, name: &[u8]) -> Result<u16, Error> {
        let number = match self.devices.get(name) {
            Some(number) => *number,
            None => {
                let device = Device::new(device_name(name, self.epoch), self.options.device_bytes);
                let number = self.writer.add_device(device)?;
                self.devices.insert(name.to_vec(), number);
                number
            }
        };
        self.last_device = (name.to_vec(), Some(number));
        Ok(number)
    }

    fn file_of(&mut self, class: FileClass, path: &[u8]) -> Result<FileId, Error> {
        if class == FileClass::Unknown && path.is_empty() {
            return Ok(FileId::UNKNOWN);
        }
        let key = (class, path.to_vec());
        if let Some(id) = self.files.get(&key) {
            return Ok(*id);
        }
        let mut entry = FileEntry::new(class);
        if !path.is_empty() {
            entry.path = Some(String::from_utf8_lossy(path).into_owned());
        }
        let id = self.writer.files_mut().push(entry)?;
        self.files.insert(key, id);
        Ok(id)
    }

    pub(crate) fn finish(mut self) -> Result<ImportReport, Error> {
        self.settle()?;
        if self.report.events == 0 && self.report.other_volumes > 0 {
            let volume = self.options.volume.clone().unwrap_or_default();
            return Err(Error::Options(format!("no write of volume `{volume}` in the input")));
        }
        let report = &mut self.report;
        let counts = self.writer.counts_mut();
        counts.reads += report.reads;
        counts.flushes += report.flushes;
        for (kind, lines) in &report.bad_lines {
            *counts.bad_lines.entry(kind.clone()).or_default() += lines;
        }
        report.unaligned = counts.unaligned - self.unaligned_before;
        self.writer.meta_mut().source.format = Some(report.format.to_owned());
        Ok(self.report)
    }
}

/// A line for a message: shortened, and without control characters.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(160)]);
    let mut shown = String::new();
    for c in text.chars().take(120) {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

fn hex(record: &[u8]) -> String {
    record.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn device_name(name: &[u8], epoch: Epoch) -> String {
    let shown = String::from_utf8_lossy(name);
    match epoch {
        _ if name.is_empty() => "disk".to_owned(),
        // MSR names a disk by two fields, which the names of its files join by `_`
        Epoch::Filetime => shown.replace(',', "_"),
        _ => shown.into_owned(),
    }
}

/// Shorthand for formats that have nothing but the basics.
pub(crate) fn basic(time: u64, offset: u64, length: u64, write: bool, device: &[u8]) -> Parsed<'_> {
    let kind = if write { Kind::Do(Op::Write) } else { Kind::Read };
    Parsed::Record(Record { time, offset, length, kind, device, ..Record::default() })
}
