//! Traces from traces: a part of one, one without names, several as one.
//!
//! Invariants: an event is kept whole or not at all, with its time; a file table of a cut has all
//! files of the old one under the same numbers, so that figures of both can be compared.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use crate::error::Error;
use crate::event::{Batch, Event, FileId, ProcessId};
use crate::files::{FileEntry, FileTable};
use crate::meta::{Device, Meta};
use crate::trace::{Events, Trace};
use crate::writer::TraceWriter;

/// What of a trace is kept.
#[derive(Clone, Debug, Default)]
pub struct CutOptions {
    /// Nanoseconds since time 0, the end not included.
    pub time: Option<Range<u64>>,
    /// Bytes of the device: events that begin in this range, the end not included.
    pub offset: Option<Range<u64>>,
    /// Only this device, by its number.
    pub device: Option<u16>,
    /// Replace paths, names of relations, databases and tablespaces, devices and inputs; classes,
    /// kinds, forks and names of processes stay.
    pub anonymize: bool,
}

/// The description that a cut of `trace` begins with.
pub fn cut_meta(trace: &Trace, options: &CutOptions) -> Meta {
    let mut meta = Meta::new("cut", trace.meta().devices.clone());
    let old = trace.meta();
    meta.start_unix_ns = old.start_unix_ns;
    meta.page_size = old.page_size;
    meta.kernel.clone_from(&old.kernel);
    meta.file_system.clone_from(&old.file_system);
    meta.usage = old.usage;
    meta.source.format.clone_from(&old.source.format);
    meta.source.anonymized = old.source.anonymized || options.anonymize;
    meta.counts.lost = old.counts.lost;
    if options.anonymize {
        // mount options and policies name folders
        for (number, device) in meta.devices.iter_mut().enumerate() {
            device.name = format!("device-{number}");
        }
    } else {
        meta.mount_options.clone_from(&old.mount_options);
        meta.policy.clone_from(&old.policy);
        meta.source.inputs = vec![trace.folder().display().to_string()];
    }
    meta
}

/// Writes what `options` keep of `trace` to `writer`, made with [`cut_meta`]. `progress` is told how
/// many events there were so far; when it answers `false`, this ends with an error.
///
/// # Errors
///
/// Reading or writing failed.
pub fn cut(
    trace: &Trace,
    options: &CutOptions,
    writer: &mut TraceWriter,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Error> {
    let mut anonymous = Anonymous::default();
    for (_, entry) in trace.files().iter().skip(1) {
        let entry = if options.anonymize { anonymous.entry(entry) } else { entry.clone() };
        writer.files_mut().push(entry)?;
    }
    let mut events = trace.events();
    let (mut batch, mut seen) = (Batch::default(), 0);
    let mut processes = Renamed::default();
    let within = |range: &Option<Range<u64>>, value| {
        range.as_ref().is_none_or(|range| range.contains(&value))
    };
    while events.read(&mut batch)? {
        for mut event in batch.iter() {
            let kept = within(&options.time, event.time)
                && within(&options.offset, event.offset)
                && options.device.is_none_or(|device| device == event.device);
            if kept {
                event.process = processes.number(event.process, &events, writer)?;
                writer.push(&event)?;
            }
        }
        seen += batch.len() as u64;
        if !progress(seen) {
            return Err(Error::Stopped);
        }
    }
    Ok(())
}

/// Numbers of processes in the new trace by those in the old one.
#[derive(Default)]
struct Renamed(Vec<Option<ProcessId>>);

impl Renamed {
    #[inline]
    fn number(
        &mut self,
        old: ProcessId,
        events: &Events,
        writer: &mut TraceWriter,
    ) -> Result<ProcessId, Error> {
        let at = usize::from(old.0);
        if let Some(Some(new)) = self.0.get(at) {
            return Ok(*new);
        }
        let new = match events.process(old) {
            Some(name) => writer.process(name.as_bytes())?,
            None => ProcessId::UNKNOWN,
        };
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(new);
        Ok(new)
    }
}

/// The same name always becomes the same other name.
#[derive(Default)]
struct Anonymous {
    databases: HashMap<String, usize>,
    relations: HashMap<(Option<String>, String), usize>,
    tablespaces: HashMap<String, usize>,
    paths: usize,
}

impl Anonymous {
    fn entry(&mut self, entry: &FileEntry) -> FileEntry {
        let mut new = FileEntry::new(entry.class);
        if entry.path.is_some() {
            self.paths += 1;
            new.path = Some(format!("file-{}", self.paths));
        }
        if let Some(name) = &entry.database {
            let next = self.databases.len() + 1;
            let number = self.databases.entry(name.clone()).or_insert(next);
            new.database = Some(format!("database-{number}"));
        }
        if let Some(name) = &entry.relation {
            let next = self.relations.len() + 1;
            let key = (entry.database.clone(), name.clone());
            let number = self.relations.entry(key).or_insert(next);
            new.relation = Some(format!("relation-{number}"));
        }
        if let Some(name) = &entry.tablespace {
            let next = self.tablespaces.len() + 1;
            let number = self.tablespaces.entry(name.clone()).or_insert(next);
            new.tablespace = Some(format!("tablespace-{number}"));
        }
        new.kind.clone_from(&entry.kind);
        new.fork.clone_from(&entry.fork);
        new
    }
}

/// The description that a merge of `traces` begins with: devices of the same name and size are one.
///
/// # Errors
///
/// Fewer than two traces, some with a known start and some without, or other page sizes.
pub fn merge_meta(traces: &[Trace]) -> Result<Meta, Error> {
    let [first, rest @ ..] = traces else {
        return Err(Error::Options("nothing to merge: give at least two traces".to_owned()));
    };
    if rest.is_empty() {
        return Err(Error::Options("nothing to merge: give at least two traces".to_owned()));
    }
    let known = traces.iter().filter(|t| t.meta().start_unix_ns.is_some()).count();
    if known != 0 && known != traces.len() {
        let which = traces.iter().find(|t| t.meta().start_unix_ns.is_none());
        let which = which.map(|t| t.folder().display().to_string()).unwrap_or_default();
        return Err(Error::Options(format!(
            "{which} does not know when it began, other traces do: they have no common time"
        )));
    }
    let mut devices: Vec<Device> = Vec::new();
    for trace in traces {
        for device in &trace.meta().devices {
            if !devices.contains(device) {
                devices.push(device.clone());
            }
        }
        if trace.meta().page_size != first.meta().page_size {
            return Err(Error::Options("the traces have other page sizes".to_owned()));
        }
    }
    if devices.len() > crate::meta::MAX_DEVICES {
        return Err(Error::TooMany {
            what: "devices",
            limit: crate::meta::MAX_DEVICES,
            advice: "merge fewer traces",
        });
    }
    let same = |field: fn(&Meta) -> &Option<String>| {
        let value = field(first.meta());
        rest.iter().all(|t| field(t.meta()) == value).then(|| value.clone()).flatten()
    };
    let mut meta = Meta::new("merge", devices);
    meta.start_unix_ns = traces.iter().filter_map(|t| t.meta().start_unix_ns).min();
    meta.page_size = first.meta().page_size;
    meta.kernel = same(|m| &m.kernel);
    meta.file_system = same(|m| &m.file_system);
    meta.mount_options = same(|m| &m.mount_options);
    meta.policy = same(|m| &m.policy);
    meta.source.inputs = traces.iter().map(|t| t.folder().display().to_string()).collect();
    meta.source.anonymized = traces.iter().any(|t| t.meta().source.anonymized);
    for trace in traces {
        let (sum, own) = (&mut meta.counts, &trace.meta().counts);
        sum.flushes += own.flushes;
        sum.reads += own.reads;
        sum.lost += own.lost;
    }
    Ok(meta)
}

/// One trace of a merge.
struct Part {
    events: Events,
    batch: Batch,
    at: usize,
    /// Nanoseconds that its time 0 is later than that of the merge.
    later: u64,
    devices: Vec<u16>,
    files: Vec<FileId>,
    processes: Renamed,
}

impl Part {
    /// The next event, in the time, devices and files of the merge.
    fn next(&mut self, writer: &mut TraceWriter) -> Result<Option<Event>, Error> {
        if self.at >= self.batch.len() {
            self.at = 0;
            if !self.events.read(&mut self.batch)? {
                return Ok(None);
            }
        }
        let Some(mut event) = self.batch.get(self.at) else { return Ok(None) };
        self.at += 1;
        event.time = event.time.saturating_add(self.later);
        // a reader gives no device or file that is in no table
        event.device = self.devices.get(usize::from(event.device)).copied().unwrap_or_default();
        event.file = self.files.get(event.file.0 as usize).copied().unwrap_or_default();
        event.process = self.processes.number(event.process, &self.events, writer)?;
        Ok(Some(event))
    }
}

/// Writes all events of `traces` in the order of their times to `writer`, made with [`merge_meta`].
/// `progress` as for [`cut`].
///
/// # Errors
///
/// Reading or writing failed.
pub fn merge(
    traces: &[Trace],
    writer: &mut TraceWriter,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Error> {
    let start = writer.meta().start_unix_ns;
    let mut known: HashMap<FileEntry, FileId> = HashMap::new();
    let mut parts = Vec::new();
    for trace in traces {
        let later = match (trace.meta().start_unix_ns, start) {
            (Some(own), Some(start)) => own.abs_diff(start),
            _ => 0,
        };
        let number = |device| writer.meta().devices.iter().position(|d| d == device);
        let devices = trace.meta().devices.iter().map(|d| number(d).unwrap_or(0) as u16).collect();
        let files = add_files(trace.files(), writer, &mut known)?;
        parts.push(Part {
            events: trace.events(),
            batch: Batch::default(),
            at: 0,
            later,
            devices,
            files,
            processes: Renamed::default(),
        });
    }
    let mut heads: Vec<Option<Event>> = Vec::new();
    let mut heap = BinaryHeap::new();
    for (number, part) in parts.iter_mut().enumerate() {
        let head = part.next(writer)?;
        heap.extend(head.map(|event| Reverse((event.time, number))));
        heads.push(head);
    }
    let mut seen = 0u64;
    while let Some(Reverse((_, number))) = heap.pop() {
        let Some(event) = heads[number].take() else { continue };
        writer.push(&event)?;
        let head = parts[number].next(writer)?;
        heap.extend(head.map(|event| Reverse((event.time, number))));
        heads[number] = head;
        seen += 1;
        if seen.is_multiple_of(1 << 16) && !progress(seen) {
            return Err(Error::Stopped);
        }
    }
    Ok(())
}

/// Adds the files of a trace; a file with the same identity in another trace is the same.
fn add_files(
    table: &FileTable,
    writer: &mut TraceWriter,
    known: &mut HashMap<FileEntry, FileId>,
) -> Result<Vec<FileId>, Error> {
    let mut numbers = vec![FileId::UNKNOWN];
    for (_, entry) in table.iter().skip(1) {
        let id = match known.get(entry) {
            Some(id) => *id,
            None => {
                let id = writer.files_mut().push(entry.clone())?;
                known.insert(entry.clone(), id);
                id
            }
        };
        numbers.push(id);
    }
    Ok(numbers)
}
