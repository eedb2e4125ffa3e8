//! Traces of block writes: which bytes of a device were written when, with which hint, for which
//! file.
//!
//! ```
//! use shelflife_trace::{Device, Event, Meta, Trace, TraceWriter};
//!
//! let folder = tempfile::tempdir()?;
//! let place = folder.path().join("t");
//! let meta = Meta::new("record", vec![Device::new("/dev/vdb", Some(1 << 30))]);
//! let mut writer = TraceWriter::create(&place, meta)?;
//! writer.push(&Event { time: 5, offset: 8192, length: 4096, ..Event::default() })?;
//! writer.finish()?;
//!
//! let trace = Trace::open(&place)?;
//! let events: Vec<Event> = trace.events().collect::<Result<_, _>>()?;
//! assert_eq!(events[0].offset, 8192);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A trace is a folder of Parquet files and a `meta.json`; `docs/trace-format.md` is its contract.
//! [`import()`] makes one of other people's formats (`docs/import.md`).
//!
//! Invariants of the crate: no byte of a trace or of an imported file makes it panic or take memory
//! in proportion to a number that the file states; nothing is clamped in silence; memory does not
//! grow with the length of a trace.

#![forbid(unsafe_code)]

mod check;
mod class;
mod columns;
mod cut;
mod error;
mod event;
mod export;
mod files;
mod guard;
mod import;
mod meta;
mod pages;
mod segment;
mod summary;
mod trace;
mod volume;
mod writer;

pub use check::{Check, check};
pub use class::{FileClass, UnknownFileClass};
pub use cut::{CutOptions, cut, cut_meta, merge, merge_meta};
pub use error::Error;
pub use event::{Batch, Event, FileId, Flags, Op, ProcessId, UnknownFlag};
pub use export::{ExportFormat, ExportReport, export};
pub use files::{FileEntry, FileTable};
pub use import::{Format, ImportOptions, ImportReport, Input, TimeUnit, import};
pub use meta::{Counts, Device, Meta, Source, Usage, VERSION};
pub use summary::{PAGES_BYTES, Row, Summary, summarize};
pub use trace::{Events, Note, Trace, read_bytes};
pub use volume::{Volume, volumes};
pub use writer::{SEGMENT_EVENTS, TraceWriter};
