//! Reading a trace.
//!
//! Invariant: memory is bounded by the file table and one row group, whatever the trace's length. A
//! trace whose writer was killed is read up to what it closed, and says so ([`Note`]); a segment
//! that is missing from a finished trace is an error.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::event::{Batch, Event, ProcessId};
use crate::files::{FILES_NAME, FileTable};
use crate::meta::Meta;
use crate::segment::{Processes, SegmentReader, Tables};
use crate::writer::segment_name;

/// What one should know of a trace that can be read.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// The writer did not come to its end (or is still writing).
    Unfinished {
        /// Segments that it closed.
        segments: u32,
    },
    /// A segment was never closed; its events are lost.
    Open(PathBuf),
    /// The last segment of an unfinished trace is cut off.
    Torn {
        /// The segment.
        path: PathBuf,
        /// Why it is not read.
        reason: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Unfinished { segments } => {
                write!(f, "its writer did not finish: the {segments} closed segments are read")
            }
            Note::Open(path) => {
                write!(f, "{} was never closed, its events are lost", path.display())
            }
            Note::Torn { path, reason } => {
                write!(f, "{} is passed over: {reason}", path.display())
            }
        }
    }
}

/// A trace on disk.
#[derive(Clone, Debug)]
pub struct Trace {
    folder: PathBuf,
    meta: Meta,
    files: FileTable,
    segments: Vec<PathBuf>,
    notes: Vec<Note>,
}

impl Trace {
    /// Opens the trace in `folder`.
    ///
    /// # Errors
    ///
    /// No trace, a later version, a missing segment or file table, or the system cannot read.
    pub fn open(folder: &Path) -> Result<Trace, Error> {
        let meta = Meta::read(folder)?;
        let mut notes = Vec::new();
        let (mut segments, open) = list(folder)?;
        if !meta.complete {
            drop_torn(&mut segments, &mut notes);
            notes.insert(0, Note::Unfinished { segments: segments.len() as u32 });
        } else if segments.len() != meta.segments as usize {
            return Err(Error::Gap {
                path: folder.join(segment_name(segments.len().min(meta.segments as usize) as u32)),
                reason: format!(
                    "meta.json counts {} segments, {} are there",
                    meta.segments,
                    segments.len()
                ),
            });
        }
        notes.extend(open.into_iter().map(Note::Open));
        let files = match FileTable::read(folder) {
            // killed before the first segment was closed
            Err(Error::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound
                    && !meta.complete
                    && segments.is_empty() =>
            {
                FileTable::new()
            }
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Gap {
                    path: folder.join(FILES_NAME),
                    reason: "a trace has a file table".to_owned(),
                });
            }
            read => read?,
        };
        Ok(Trace { folder: folder.to_owned(), meta, files, segments, notes })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What `meta.json` says.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The file table.
    pub fn files(&self) -> &FileTable {
        &self.files
    }

    /// What one should know of this trace.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The segments that are read, in order.
    pub fn segments(&self) -> &[PathBuf] {
        &self.segments
    }

    /// Bytes of all its files on disk.
    ///
    /// # Errors
    ///
    /// The system cannot say.
    pub fn bytes_on_disk(&self) -> Result<u64, Error> {
        let own = [crate::meta::META, FILES_NAME].map(|name| self.folder.join(name));
        let mut bytes = 0;
        for path in self.segments.iter().chain(&own) {
            match fs::metadata(path) {
                Ok(meta) => bytes += meta.len(),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && !self.meta.complete => {}
                Err(e) => return Err(Error::io("read", path)(e)),
            }
        }
        Ok(bytes)
    }

    /// All events, from the beginning.
    pub fn events(&self) -> Events {
        Events {
            tables: Tables { devices: self.meta.devices.len(), files: self.files.len() },
            segments: self.segments.iter().cloned().collect(),
            segment: None,
            processes: Processes::default(),
            with_processes: true,
            batch: Batch::default(),
            at: 0,
            failed: false,
        }
    }
}

/// Closed segments by number, and those left open.
fn list(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let (mut numbers, mut open) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let name = entry.map_err(Error::io("read", folder))?.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("events-")) else {
            continue;
        };
        if rest.ends_with(".parquet.part") {
            open.push(folder.join(&name));
        } else if let Some(number) = rest.strip_suffix(".parquet") {
            let number: Option<u32> = number.parse().ok();
            let canonical = number.is_some_and(|n| name.to_str() == Some(&segment_name(n)));
            match number {
                Some(number) if canonical => numbers.push(number),
                _ => {
                    return Err(Error::NotATrace {
                        path: folder.join(&name),
                        reason: "segments are called events-0000.parquet, events-0001.parquet, …"
                            .to_owned(),
                    });
                }
            }
        }
    }
    numbers.sort_unstable();
    open.sort();
    for (expected, found) in (0..).zip(&numbers) {
        if *found != expected {
            return Err(Error::Gap {
                path: folder.join(segment_name(expected)),
                reason: format!("{} is there", segment_name(*found)),
            });
        }
    }
    Ok((numbers.into_iter().map(|n| folder.join(segment_name(n))).collect(), open))
}

/// After a crash of the machine the last segments may have a name but not their end.
fn drop_torn(segments: &mut Vec<PathBuf>, notes: &mut Vec<Note>) {
    let Some(path) = segments.last() else { return };
    let tables = Tables { devices: 0, files: 0 };
    let torn = match SegmentReader::open(path, tables) {
        Err(error @ (Error::NotATrace { .. } | Error::Parquet { .. } | Error::TooLarge { .. })) => {
            error
        }
        _ => return,
    };
    notes.push(Note::Torn { path: path.clone(), reason: torn.to_string() });
    segments.pop();
}

/// The events of a trace: an iterator, or columnar batches by [`Events::read`]. Holds nothing of
/// the [`Trace`].
pub struct Events {
    tables: Tables,
    segments: VecDeque<PathBuf>,
    segment: Option<SegmentReader<fs::File>>,
    processes: Processes,
    with_processes: bool,
    /// For the iterator.
    batch: Batch,
    at: usize,
    failed: bool,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("segments left", &self.segments).finish_non_exhaustive()
    }
}

impl Events {
    /// Leaves the names of processes out, which cost as much time as all other columns together;
    /// every event then has [`ProcessId::UNKNOWN`]. To be said before anything is read.
    #[must_use]
    pub fn without_processes(mut self) -> Events {
        self.with_processes = false;
        self
    }

    /// The name of a process that an event of this reader has; `None` for unknown ones.
    pub fn process(&self, number: ProcessId) -> Option<&str> {
        self.processes.name(number)
    }

    /// Replaces the contents of `batch` by the next events, some thousands; `false` at the end.
    /// Not to be mixed with the iterator.
    ///
    /// # Errors
    ///
    /// A segment is damaged, holds a value that no writer writes, or cannot be read.
    pub fn read(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        batch.clear();
        loop {
            if let Some(segment) = &mut self.segment {
                match segment.read(batch, &mut self.processes) {
                    Ok(true) => return Ok(true),
                    Ok(false) => self.segment = None,
                    Err(error) => {
                        // half a batch is not for anyone
                        batch.clear();
                        self.segment = None;
                        self.segments.clear();
                        return Err(error);
                    }
                }
            }
            let Some(path) = self.segments.pop_front() else { return Ok(false) };
            let mut segment = SegmentReader::open(&path, self.tables)?;
            if !self.with_processes {
                segment.skip_processes();
            }
            self.segment = Some(segment);
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Result<Event, Error>> {
        if self.failed {
            return None;
        }
        loop {
            if let Some(event) = self.batch.get(self.at) {
                self.at += 1;
                return Some(Ok(event));
            }
            let mut batch = std::mem::take(&mut self.batch);
            let read = self.read(&mut batch);
            self.batch = batch;
            self.at = 0;
            match read {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Reads a segment and a file table from bytes, wherever they come from: for fuzzing.
///
/// # Errors
///
/// As [`Trace::open`] and [`Events::read`].
pub fn read_bytes(meta: &[u8], files: Vec<u8>, segment: Vec<u8>) -> Result<u64, Error> {
    use bytes::Bytes;
    let meta = Meta::parse(meta, Path::new("meta.json"))?;
    let files = FileTable::read_from(Bytes::from(files), Path::new(FILES_NAME))?;
    let tables = Tables { devices: meta.devices.len(), files: files.len() };
    let path = Path::new("events-0000.parquet");
    let mut reader = SegmentReader::new(Bytes::from(segment), path, tables)?;
    let (mut batch, mut processes, mut events) = (Batch::default(), Processes::default(), 0);
    while reader.read(&mut batch, &mut processes)? {
        events += batch.len() as u64;
        batch.clear();
    }
    Ok(events)
}
