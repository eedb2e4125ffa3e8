//! How long data lives.
//!
//! ```
//! use shelflife_learn::{LifetimeOptions, lifetimes};
//! use shelflife_trace::{Device, Event, Meta, Trace, TraceWriter};
//!
//! // two pages, written in turn
//! let folder = tempfile::tempdir()?;
//! let place = folder.path().join("t");
//! let meta = Meta::new("record", vec![Device::new("/dev/vdb", None)]);
//! let mut writer = TraceWriter::create(&place, meta)?;
//! for n in 0..10 {
//!     writer.push(&Event { offset: n % 2 * 4096, length: 4096, ..Event::default() })?;
//! }
//! writer.finish()?;
//!
//! let found = lifetimes(&Trace::open(&place)?, &LifetimeOptions::default(), &mut |_| true)?;
//! assert_eq!((found.total.died, found.total.alive), (8, 2));
//! assert_eq!(found.total.host_bytes.median, Some(2 * 4096 + 32));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/lifetimes.md` says what a lifetime is, and what of it is exact. [`learn()`] seeks the policy
//! that suits a trace, and judges it on a part that it has not seen (`docs/learn.md`).
//!
//! Invariants of the crate: I/O only through a trace that the caller opened; memory follows the
//! pages of the drive, not the length of the trace; the same trace gives the same answer.

#![forbid(unsafe_code)]

mod compared;
mod drives;
mod error;
mod histogram;
mod judge;
mod learn;
mod lifetimes;
mod mix;
mod outcome;
mod passes;
mod recording;
mod runner;
mod scores;
mod search;
mod survival;
mod text;
mod units;

pub use drives::Firmware;
pub use error::Error;
pub use histogram::{BINS, bin, middle};
pub use learn::{LearnRequest, learn};
pub use lifetimes::{By, LifetimeOptions, Lifetimes, Row, Spread, lifetimes};
pub use outcome::{Aim, Arm, Learned, LearnedRule, UnitShare};
pub use runner::{LearnProgress, Stage};
pub use shelflife_policy::Applier;
pub use shelflife_simulate::Size;
pub use survival::{Point, Survival};
pub use text::policy_name;
