//! Records what is written: every write, discard and write-zeroes of a path's devices at the
//! moment it is issued, with hint, write stream and file.
//!
//! ```no_run
//! use shelflife_record::{Options, Recorder, Target};
//!
//! let target = Target::of_path("/srv/pg".as_ref())?;
//! let recorder = Recorder::start(Options::new("/var/tmp/pg.trace", target))?;
//! // … the load …
//! let summary = recorder.stop()?;
//! println!("{} writes, {} lost", summary.meta.counts.writes, summary.tally.lost);
//! # Ok::<(), shelflife_record::Error>(())
//! ```
//!
//! A small BPF program (`src/bpf/record.bpf.c`) on `block_rq_issue` reads each bio of a request;
//! a thread empties its ring into a [`shelflife_trace::TraceWriter`]. [`Watch`] gives the events
//! themselves, for those who want to see what a few writes do. `docs/record.md` says what is
//! needed and what it costs.
//!
//! Invariants of the crate: a file is named only if the kernel's own structures lead to it; every
//! event is in the trace or counted as lost; a hint of 0 is one that was read as 0.

#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "nothing records without it"))]

mod device;
mod engine;
mod error;
mod files;
#[cfg(feature = "bpf")]
mod kernel;
mod late;
mod naming;
#[cfg(feature = "bpf")]
mod object;
pub mod pg;
mod privileges;
mod raw;
mod recorder;
mod session;
#[cfg(feature = "bpf")]
mod symbols;
mod watch;

pub use device::{Disk, Leaf, System, Target};
pub use engine::Tally;
pub use error::Error;
pub use naming::{Named, Naming};
pub use privileges::drop_capabilities;
pub use raw::{Comm, FileKey, Issue, Whose};
pub use recorder::{Ended, Options, Progress, Recorder, Summary, Warning};
pub use session::{Reason, Recorded, Signals, Until, record};
pub use shelflife_mounts::{DevNumber, Mount, Mounts};
pub use watch::{Seen, Sum, Watch, What};
