//! Recording into a trace.
//!
//! Invariants: what a closed segment holds can be read whatever happens afterwards; the trace never
//! takes more than [`Options::max_bytes`]; the recorder's own writing is not in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use shelflife_control::Registry;
use shelflife_trace::{Device, Error as TraceError, Event, Meta, ProcessId, TraceWriter, Usage};

use crate::device::{System, Target};
use crate::engine::{Engine, Next, Setup, Sink, Tally};
use crate::error::Error;
use crate::files::{Files, Row};
use crate::late::Late;
use crate::naming::Naming;
use crate::raw::{Comm, Issue, Name};

/// What to record into.
#[non_exhaustive]
pub struct Options {
    /// The trace, a folder that does not exist yet.
    pub output: PathBuf,
    /// What to record.
    pub target: Target,
    /// A segment is closed after this time, or after [`shelflife_trace::SEGMENT_EVENTS`]. A kill
    /// loses at most the open one.
    pub segment_every: Duration,
    /// The most bytes that the trace may take; then the recording ends.
    pub max_bytes: Option<u64>,
    /// Bytes of the ring between kernel and recorder: a power of two, at least a page. It must
    /// hold what comes while the recorder does not get to run: 64 bytes an event.
    pub ring_bytes: u32,
    /// How often the ring is emptied.
    pub drain_every: Duration,
    /// Data folders that cannot be found from the paths of their files: those whose tablespaces or
    /// WAL lie elsewhere.
    pub data_folders: Vec<PathBuf>,
    /// Somebody who knows more of files than their paths say.
    pub naming: Option<Box<dyn Naming>>,
    /// The runs of which is told, while it is recorded, how much leaves without its hint; `None` for
    /// none. What is told `shelflife_run::recording` reads.
    pub runs: Option<Registry>,
    /// The policy that hints come from, for `meta.json`.
    pub policy: Option<String>,
    /// The command that is recorded, for `meta.json`.
    pub command: Vec<String>,
    /// Whether the recorder's thread gives up its capabilities once the program is attached.
    pub drop_capabilities: bool,
}

impl Options {
    /// The usual: segments of five seconds, a ring of 32 MiB looked at every 20 ms.
    pub fn new(output: impl Into<PathBuf>, target: Target) -> Options {
        let usual = Setup::new(target);
        Options {
            output: output.into(),
            target: usual.target,
            segment_every: Duration::from_secs(5),
            max_bytes: None,
            ring_bytes: usual.ring_bytes,
            drain_every: usual.drain_every,
            data_folders: Vec::new(),
            naming: None,
            runs: None,
            policy: None,
            command: Vec::new(),
            drop_capabilities: usual.drop_capabilities,
        }
    }
}

/// What may be wrong with a recording that went well.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// The trace lies on a recorded device: its data are left out, but the journal and metadata
    /// that they cause are in it.
    TraceOnTarget {
        /// The device.
        device: String,
    },
    /// The kernel hides the addresses of its functions: direct writes have no file.
    AddressesHidden,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::TraceOnTarget { device } => write!(
                f,
                "the trace lies on {device}, which is recorded: its data are left out, but the \
                 journal and metadata that they cause are not; choose another device"
            ),
            Warning::AddressesHidden => f.write_str(
                "the kernel hides the addresses of its functions, so direct writes have no file: \
                 grant CAP_SYSLOG",
            ),
        }
    }
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Ended {
    /// It was stopped.
    Stopped,
    /// The trace had the size that it may have.
    MaxBytes,
}

/// What a recording came to.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The trace's `meta.json`; in its counts are events, bytes, flushes and lost events.
    pub meta: Meta,
    /// What the kernel's side counted.
    pub tally: Tally,
    /// Bytes of writes that are a file's, the journal's or metadata.
    pub attributed_bytes: u64,
    /// Files in the table, but the unknown one.
    pub files: u64,
    /// Events of the trace's own files, which are not in it.
    pub own_events: u64,
    /// Bytes of the trace.
    pub trace_bytes: u64,
    /// From start to end.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// What to know about it.
    pub warnings: Vec<Warning>,
}

impl Summary {
    /// The share of written bytes that is attributed, from 0 to 1; `None` if nothing was written.
    pub fn attributed(&self) -> Option<f64> {
        let written = self.meta.counts.written_bytes;
        (written > 0).then(|| self.attributed_bytes as f64 / written as f64)
    }
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// Events in the trace.
    pub events: u64,
    /// Bytes of its writes.
    pub written_bytes: u64,
    /// Events lost.
    pub lost: u64,
}

/// Written by the recorder's thread, read by whoever asks.
#[derive(Debug, Default)]
struct Shown {
    events: AtomicU64,
    written_bytes: AtomicU64,
    lost: AtomicU64,
}

/// A recording under way. Dropped without [`Recorder::stop`], it ends, and the trace is finished.
pub struct Recorder {
    engine: Option<Engine<TraceSink>>,
    started: Instant,
    warnings: Vec<Warning>,
    shown: Arc<Shown>,
}

impl Recorder {
    /// Starts to record; when it returns, every request that is issued from now on is seen.
    ///
    /// # Errors
    ///
    /// The trace's folder exists or cannot be made; rights are missing; the kernel cannot do it.
    pub fn start(options: Options) -> Result<Recorder, Error> {
        let setup = Setup {
            ring_bytes: options.ring_bytes,
            drain_every: options.drain_every,
            drop_capabilities: options.drop_capabilities,
            ..Setup::new(options.target.clone())
        };
        let folder = options.output.clone();
        let sink = TraceSink::create(options, setup.system.clone())?;
        let shown = Arc::clone(&sink.shown);
        let mut warnings: Vec<Warning> = sink.on_target.clone().into_iter().collect();
        let engine = match Engine::start(setup, sink) {
            Ok(engine) => engine,
            Err(error) => {
                // an empty trace is no use; whatever else came to lie there stays
                let _ = std::fs::remove_file(folder.join("meta.json"));
                let _ = std::fs::remove_dir(&folder);
                return Err(error);
            }
        };
        if !engine.loaded.addresses {
            warnings.push(Warning::AddressesHidden);
        }
        Ok(Recorder { engine: Some(engine), started: Instant::now(), warnings, shown })
    }

    /// What to know about the recording from its start on.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress {
            events: self.shown.events.load(Relaxed),
            written_bytes: self.shown.written_bytes.load(Relaxed),
            lost: self.shown.lost.load(Relaxed),
        }
    }

    /// Whether it ended by itself: an error, or the trace has the size that it may have.
    /// [`Recorder::stop`] says which.
    pub fn is_finished(&self) -> bool {
        self.engine.as_ref().is_none_or(Engine::is_finished)
    }

    /// Ends the recording. What was issued before is in the trace; what is dirty in the page cache
    /// was not issued.
    ///
    /// # Errors
    ///
    /// The trace could not be written, for instance as the disk is full; what was closed before
    /// can be read.
    pub fn stop(mut self) -> Result<Summary, Error> {
        let engine = self.engine.take().ok_or(Error::Panicked)?;
        let (sink, tally) = engine.stop()?;
        let seconds = self.started.elapsed().as_secs_f64();
        sink.finish(tally?, seconds, std::mem::take(&mut self.warnings))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take()
            && let Ok((sink, Ok(tally))) = engine.stop()
        {
            // nobody is there to be told
            let _ = sink.finish(tally, 0.0, Vec::new());
        }
    }
}

/// The most bytes that an event takes in a segment: all columns plain, and then some.
const EVENT_BYTES: u64 = 64;
/// Room for the footer of a segment, and for `meta.json`.
const FOOTER_BYTES: u64 = 16 << 10;

/// Turns issues into events of a trace.
struct TraceSink {
    writer: TraceWriter,
    /// Where the recorded file system is mounted.
    point: Option<PathBuf>,
    files: Files,
    late: Option<Late>,
    /// CLOCK_MONOTONIC at the trace's time 0, in nanoseconds.
    start: u64,
    last_process: (Comm, ProcessId),
    segment_every: Duration,
    segment_begun: Instant,
    /// Events since the last segment was closed.
    open_events: u64,
    /// Bytes of names since then.
    open_names: u64,
    max_bytes: Option<u64>,
    /// Bytes of the trace when a segment was last closed, and of the file table once more.
    closed_bytes: u64,
    own_events: u64,
    on_target: Option<Warning>,
    ended: Ended,
    folder: PathBuf,
    shown: Arc<Shown>,
}

impl TraceSink {
    fn create(options: Options, system: System) -> Result<TraceSink, Error> {
        let target = &options.target;
        let devices = target
            .leaves
            .iter()
            .map(|leaf| Device::new(format!("/dev/{}", leaf.name), leaf.bytes))
            .collect();
        let mut meta = Meta::new("record", devices);
        meta.kernel = Some(rustix::system::uname().release().to_string_lossy().into_owned());
        meta.file_system = target.mount.as_ref().map(|mount| mount.file_system.clone());
        meta.mount_options = target.mount.as_ref().map(|mount| mount.options.join(","));
        let point = target.mount.as_ref().map(|mount| mount.point.clone());
        meta.usage = usage(point.as_deref());
        meta.policy = options.policy;
        meta.source.inputs = options.command;
        let (start, unix) = now();
        meta.start_unix_ns = Some(unix);
        let writer = TraceWriter::create(&options.output, meta)?;
        let folder =
            std::fs::canonicalize(&options.output).map_err(Error::io("find", &options.output))?;
        let near = match &target.mount {
            Some(mount) if !target.asked.starts_with(&mount.point) => mount.point.clone(),
            _ => target.asked.clone(),
        };
        let on_target = on_target(&system, &folder, target);
        let files = Files::new(system, &near, &options.data_folders, &folder, options.naming);
        Ok(TraceSink {
            writer,
            point,
            files,
            late: options.runs.map(Late::new),
            start,
            last_process: (Comm::default(), ProcessId::UNKNOWN),
            segment_every: options.segment_every,
            segment_begun: Instant::now(),
            open_events: 0,
            open_names: 0,
            max_bytes: options.max_bytes,
            closed_bytes: 0,
            own_events: 0,
            on_target,
            ended: Ended::Stopped,
            folder,
            shown: Arc::default(),
        })
    }

    fn process(&mut self, comm: Comm) -> ProcessId {
        if self.last_process.0 != comm {
            // more names than there are numbers: the rest is unknown
            let id = self.writer.process(comm.bytes()).unwrap_or(ProcessId::UNKNOWN);
            self.last_process = (comm, id);
        }
        self.last_process.1
    }

    fn close_segment(&mut self) -> Result<(), TraceError> {
        self.files.settle(self.writer.files_mut(), false);
        self.writer.close_segment()?;
        self.segment_begun = Instant::now();
        self.open_events = 0;
        self.open_names = 0;
        if self.max_bytes.is_some() {
            // the file table is written anew beside the old one
            let files = std::fs::metadata(self.folder.join("files.parquet"));
            self.closed_bytes = size(&self.folder) + files.map_or(0, |files| files.len());
        }
        Ok(())
    }

    /// The most that the trace can take if it is closed now.
    fn at_most(&self) -> u64 {
        self.closed_bytes + self.open_events * EVENT_BYTES + self.open_names + FOOTER_BYTES
    }

    fn finish(
        mut self,
        tally: Tally,
        seconds: f64,
        warnings: Vec<Warning>,
    ) -> Result<Summary, Error> {
        self.files.settle(self.writer.files_mut(), true);
        let meta = self.writer.meta_mut();
        let now = usage(self.point.as_deref());
        meta.usage = [meta.usage, now].into_iter().flatten().max_by_key(|usage| usage.used_bytes);
        let counts = self.writer.counts_mut();
        counts.lost = tally.lost;
        counts.flushes = tally.flushes;
        let attributed_bytes = self.files.attributed(self.writer.files());
        let files = self.writer.files().len() as u64 - 1;
        let meta = self.writer.finish()?;
        Ok(Summary {
            meta,
            tally,
            attributed_bytes,
            files,
            own_events: self.own_events,
            trace_bytes: size(&self.folder),
            seconds,
            ended: self.ended,
            warnings,
        })
    }
}

impl Sink for TraceSink {
    fn name(&mut self, name: Name) -> Result<(), Error> {
        self.open_names += 64 + name.path.as_os_str().len() as u64;
        Ok(self.files.name(&name, self.writer.files_mut())?)
    }

    fn issue(&mut self, issue: &Issue) -> Result<(), Error> {
        let file = match self.files.row(issue, self.writer.files_mut())? {
            Row::File(file) => file,
            Row::Own => {
                self.own_events += 1;
                return Ok(());
            }
        };
        let event = Event {
            // one issued between the reading of the clock and now
            time: issue.time.saturating_sub(self.start),
            offset: issue.offset,
            length: issue.length,
            op: issue.op,
            hint: issue.hint,
            stream: issue.stream,
            flags: issue.flags,
            device: issue.device,
            process: self.process(issue.process),
            file,
        };
        self.open_events += 1;
        Ok(self.writer.push(&event)?)
    }

    fn tick(&mut self, tally: &Tally) -> Result<Next, Error> {
        let counts = self.writer.counts();
        self.shown.events.store(counts.events, Relaxed);
        self.shown.written_bytes.store(counts.written_bytes, Relaxed);
        self.shown.lost.store(tally.lost, Relaxed);
        if let Some(late) = &mut self.late {
            late.tick(self.writer.files(), self.files.written());
        }
        let full = self.max_bytes.is_some_and(|max| self.at_most() > max);
        if full || (self.segment_begun.elapsed() >= self.segment_every && self.open_events > 0) {
            let counts = self.writer.counts_mut();
            counts.lost = tally.lost;
            counts.flushes = tally.flushes;
            self.close_segment()?;
        }
        // what was estimated is known now; if a thousand more events have no room, it is the end
        if full && self.max_bytes.is_some_and(|max| self.at_most() + 1000 * EVENT_BYTES > max) {
            self.ended = Ended::MaxBytes;
            return Ok(Next::Stop);
        }
        Ok(Next::Go)
    }
}

/// CLOCK_MONOTONIC and CLOCK_REALTIME, in nanoseconds.
fn now() -> (u64, i64) {
    let monotonic = clock_gettime(ClockId::Monotonic);
    let real = clock_gettime(ClockId::Realtime);
    let start = monotonic.tv_sec.unsigned_abs() * 1_000_000_000 + monotonic.tv_nsec.unsigned_abs();
    (start, real.tv_sec.saturating_mul(1_000_000_000).saturating_add(real.tv_nsec))
}

/// Whether the trace's own device is among those recorded.
fn on_target(system: &System, folder: &Path, target: &Target) -> Option<Warning> {
    let own = system.of_path(folder).ok()?;
    let both = own.leaves.iter().find(|leaf| target.leaves.contains(leaf))?;
    Some(Warning::TraceOnTarget { device: both.name.clone() })
}

fn usage(point: Option<&Path>) -> Option<Usage> {
    let found = rustix::fs::statvfs(point?).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    (used > 0).then(|| Usage { bytes: bytes(found.f_blocks), used_bytes: bytes(used) })
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}
