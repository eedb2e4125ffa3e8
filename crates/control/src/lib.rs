//! What the hook inside a server and the command line outside share.
//!
//! Two System V shared memory segments a run: the *page* (switch, policy, roots), which servers
//! attach read-only, and the *counters*, which they add to. A segment has no descriptor and no
//! name in a file system: it cannot be truncated, no hole can be punched through a read-only
//! attachment, a full tmpfs does not touch it, and removing it leaves it mapped until the last
//! process detaches. So nothing that anyone does to it can turn into a signal in a server.
//! `docs/design/control-page.md` weighs the alternatives.
//!
//! Invariant: every field is an atomic and every bit pattern is a valid value, so that a reader
//! needs no trust in the writer; what a reader takes as a number it checks.
//!
//! Without the feature `std` only what the hook needs is left: no allocation, no files.

#![cfg_attr(not(feature = "std"), no_std)]
#![warn(missing_docs)]

mod page;
mod segment;

pub use page::{
    COLUMN_NO_RULE, COLUMNS, Counters, Dir, MAX_PATH, Page, PageError, RunLine, State, VERSION,
};
pub use segment::{Access, AttachError, Segment, SegmentId, Shared};

#[cfg(feature = "std")]
mod create;
#[cfg(feature = "std")]
mod registry;
#[cfg(feature = "std")]
pub use create::{Create, create};
#[cfg(feature = "std")]
pub use registry::{
    Driver, Error, Handle, Kind, Liveness, NewRun, Registry, Run, Summary, SweepTurn, start_time,
};

/// The environment variable that names a run's folder to the hook.
pub const RUN_VARIABLE: &str = "SHELFLIFE_RUN";
