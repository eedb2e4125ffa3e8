//! Writing a trace: a folder with segments, the file table and `meta.json`.
//!
//! Invariants: a segment is written under another name and renamed when it is whole, so that a
//! killed writer loses at most the open one; before a segment gets its name, the file table on disk
//! has every file that it refers to. Nothing is clamped: what has no place in the format is an
//! error.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::event::{Batch, Event, FileId, Op, ProcessId};
use crate::files::FileTable;
use crate::meta::{Counts, Device, MAX_DEVICES, Meta, aside};
use crate::segment::{MAX, MAX_WRITE, Processes, ROW_GROUP, SegmentWriter};

/// Events of a segment: about 6 MB on disk. A recorder closes segments earlier, by time.
pub const SEGMENT_EVENTS: u64 = 1 << 20;

/// The name of segment `number`.
pub(crate) fn segment_name(number: u32) -> String {
    format!("events-{number:04}.parquet")
}

/// Writes a trace.
pub struct TraceWriter {
    folder: PathBuf,
    /// Where the folder goes at the end, if it is written aside.
    destination: Option<PathBuf>,
    meta: Meta,
    files: FileTable,
    files_on_disk: Option<FileTable>,
    processes: Processes,
    batch: Batch,
    open: Option<(PathBuf, SegmentWriter<BufWriter<File>>)>,
    in_segment: u64,
    counts: Counts,
    last_time: u64,
    finished: bool,
}

impl TraceWriter {
    /// Starts a trace in `folder`, which must not exist. What was closed can be read at any time,
    /// also after a kill: for recorders.
    ///
    /// # Errors
    ///
    /// The folder exists or cannot be made.
    pub fn create(folder: &Path, meta: Meta) -> Result<TraceWriter, Error> {
        TraceWriter::start(folder.to_owned(), None, meta)
    }

    /// The same, under the name `folder.part` until [`TraceWriter::finish`]; dropped before, it
    /// leaves nothing behind: for whatever makes a trace from what exists anyway.
    ///
    /// # Errors
    ///
    /// As [`TraceWriter::create`].
    pub fn create_aside(folder: &Path, meta: Meta) -> Result<TraceWriter, Error> {
        let folder: PathBuf = folder.components().collect();
        if folder.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: folder });
        }
        TraceWriter::start(aside(&folder), Some(folder), meta)
    }

    fn start(
        folder: PathBuf,
        destination: Option<PathBuf>,
        meta: Meta,
    ) -> Result<TraceWriter, Error> {
        match fs::create_dir(&folder) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists { path: folder });
            }
            Err(e) => return Err(Error::io("make the folder", &folder)(e)),
        }
        let counts = meta.counts.clone();
        let writer = TraceWriter {
            folder,
            destination,
            meta,
            files: FileTable::new(),
            files_on_disk: None,
            processes: Processes::default(),
            batch: Batch::with_capacity(ROW_GROUP),
            open: None,
            in_segment: 0,
            counts,
            last_time: 0,
            finished: false,
        };
        writer.meta.write(&writer.folder)?;
        Ok(writer)
    }

    /// What will stand in `meta.json`, but the counts.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The same to change it: devices are added here.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    /// Adds a device; its number.
    ///
    /// # Errors
    ///
    /// There are 65,536 already.
    pub fn add_device(&mut self, device: Device) -> Result<u16, Error> {
        let number = u16::try_from(self.meta.devices.len()).map_err(|_| Error::TooMany {
            what: "devices",
            limit: MAX_DEVICES,
            advice: "choose one volume",
        })?;
        self.meta.devices.push(device);
        Ok(number)
    }

    /// The counts, to add what has no row: flushes, reads, lost events.
    pub fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// What was counted so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The file table. Entries may be changed until the end: names often come later than writes.
    pub fn files(&self) -> &FileTable {
        &self.files
    }

    /// The same to add and change files.
    pub fn files_mut(&mut self) -> &mut FileTable {
        &mut self.files
    }

    /// The number of a process's name, for [`Event::process`].
    ///
    /// # Errors
    ///
    /// There are 65,535 names already.
    pub fn process(&mut self, name: &[u8]) -> Result<ProcessId, Error> {
        self.processes.number(name)
    }

    /// Adds an event, and closes the segment if it is full.
    ///
    /// # Errors
    ///
    /// No length, a write of more than 4 GiB − 1, a time or an end from 2⁶³, a device or file that is in no table; or the system
    /// cannot write.
    #[inline]
    pub fn push(&mut self, event: &Event) -> Result<(), Error> {
        let fits = event.length > 0
            && (event.length <= MAX_WRITE || event.op != Op::Write)
            && event.time <= MAX
            && event.offset.checked_add(event.length).is_some_and(|end| end <= MAX)
            && usize::from(event.device) < self.meta.devices.len()
            && (event.file.0 as usize) < self.files.len();
        if !fits {
            return Err(self.misfit(event));
        }
        self.count(event);
        self.batch.push(event);
        if self.batch.len() >= ROW_GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, event: &Event) {
        let counts = &mut self.counts;
        counts.events += 1;
        match event.op {
            Op::Write => {
                counts.writes += 1;
                counts.written_bytes = counts.written_bytes.saturating_add(event.length);
            }
            Op::Discard => counts.discards += 1,
            Op::WriteZeroes => counts.write_zeroes += 1,
        }
        let page = u64::from(self.meta.page_size).wrapping_sub(1);
        counts.unaligned += u64::from((event.offset | event.length) & page != 0);
        if event.time < self.last_time {
            counts.backwards += 1;
            counts.backwards_most_ns = counts.backwards_most_ns.max(self.last_time - event.time);
        }
        self.last_time = event.time;
    }

    #[cold]
    fn misfit(&self, event: &Event) -> Error {
        let reason = if event.length == 0 {
            "zero length".to_owned()
        } else if event.length > MAX_WRITE && event.op == Op::Write {
            format!("a write of {} bytes, at most {MAX_WRITE} have a place", event.length)
        } else if event.time > MAX {
            format!("time {} ns does not fit into 63 bits", event.time)
        } else if event.offset.checked_add(event.length).is_none_or(|end| end > MAX) {
            format!("{} bytes at {} end beyond 63 bits", event.length, event.offset)
        } else if usize::from(event.device) >= self.meta.devices.len() {
            format!("there is no device {}", event.device)
        } else {
            let FileId(file) = event.file;
            format!("there is no file {file}")
        };
        Error::Event { number: self.counts.events, reason }
    }

    fn write_group(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if self.open.is_none() {
            let path = aside(&self.folder.join(segment_name(self.meta.segments)));
            let file = File::create(&path).map_err(Error::io("write", &path))?;
            let segment = SegmentWriter::new(BufWriter::with_capacity(1 << 18, file), &path)?;
            self.open = Some((path, segment));
        }
        if let Some((_, segment)) = &mut self.open {
            segment.write(&self.batch, &self.processes)?;
        }
        self.in_segment += self.batch.len() as u64;
        self.batch.clear();
        if self.in_segment >= SEGMENT_EVENTS {
            self.close_segment()?;
        }
        Ok(())
    }

    /// Closes the open segment, if it has events: from here on a kill cannot take them.
    ///
    /// # Errors
    ///
    /// The system cannot write.
    pub fn close_segment(&mut self) -> Result<(), Error> {
        if !self.batch.is_empty() {
            let full = self.in_segment + self.batch.len() as u64 >= SEGMENT_EVENTS;
            self.write_group()?;
            if full {
                return Ok(());
            }
        }
        let Some((aside, segment)) = self.open.take() else { return Ok(()) };
        let out = segment.finish()?;
        out.into_inner().map_err(|e| Error::io("write", &aside)(e.into_error()))?;
        self.write_files()?;
        let path = self.folder.join(segment_name(self.meta.segments));
        fs::rename(&aside, &path).map_err(Error::io("write", &path))?;
        self.in_segment = 0;
        self.meta.segments += 1;
        self.meta.counts = self.counts.clone();
        self.meta.write(&self.folder)
    }

    fn write_files(&mut self) -> Result<(), Error> {
        if self.files_on_disk.as_ref() != Some(&self.files) {
            self.files.write(&self.folder)?;
            self.files_on_disk = Some(self.files.clone());
        }
        Ok(())
    }

    /// Closes everything, on stable storage, and gives back what `meta.json` says.
    ///
    /// # Errors
    ///
    /// The system cannot write, or the destination came into being meanwhile.
    pub fn finish(mut self) -> Result<Meta, Error> {
        self.close_segment()?;
        self.write_files()?;
        self.meta.counts = self.counts.clone();
        self.meta.complete = true;
        for number in 0..self.meta.segments {
            sync(&self.folder.join(segment_name(number)))?;
        }
        sync(&self.folder.join(crate::files::FILES_NAME))?;
        self.meta.write(&self.folder)?;
        sync(&self.folder.join(crate::meta::META))?;
        sync(&self.folder)?;
        if let Some(destination) = &self.destination {
            if destination.symlink_metadata().is_ok() {
                return Err(Error::Exists { path: destination.clone() });
            }
            fs::rename(&self.folder, destination).map_err(Error::io("write", destination))?;
        }
        self.finished = true;
        Ok(self.meta.clone())
    }
}

fn sync(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::io("write", path))
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if self.destination.is_some() && !self.finished {
            // the folder is this writer's own; what cannot be removed says so at the next try
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
