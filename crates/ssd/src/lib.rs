//! A drive simulator: given a workload, a policy's lifetimes and a drive, what is the write
//! amplification?
//!
//! ```
//! use shelflife_ssd::{Config, Geometry, Plan, Space, Synthetic, simulate};
//!
//! // 64 Ki pages, ρ = 28 %, reclaim units of 64 pages; random writes, counted when aged.
//! let drive = Geometry::unhinted(1 << 16, 64, Space::OverProvisioning(0.28));
//! let mut writes = Synthetic::uniform(1 << 16, 1);
//! let outcome = simulate(&Config::unhinted(drive), &Plan::overwrites(6, 1 << 16), &mut writes)?;
//! assert!((outcome.waf - 2.42).abs() < 0.05);
//! # Ok::<(), shelflife_ssd::Error>(())
//! ```
//!
//! A page-mapped flash translation layer, exact to the page, held against the closed forms of the
//! literature (module [`analytic`]) and against a slow model that is obviously right
//! (`tests/model.rs`). Its model of a drive, what bounds its speed and what was tried are in
//! `docs/design/simulator.md`.
//!
//! Invariants of the crate: I/O only through the [`Workload`] the caller gives; the same
//! configuration, plan and workload give the same outcome, with any number of threads; no input
//! makes it panic or hang.

#![deny(unsafe_code)]

pub mod analytic;
#[doc(hidden)]
pub mod bare_loop;
mod buffer;
mod clairvoyant;
mod config;
mod drive;
mod error;
mod ftl;
mod gc;
mod geometry;
mod mem;
#[cfg(test)]
mod model;
mod outcome;
mod plan;
mod simulator;
pub mod steady;
mod sweep;
mod transport;
mod valid;
mod victim;
mod workload;

pub use clairvoyant::{Deaths, FileStreams, Placing};
pub use config::Config;
pub use drive::{Drive, Fit};

pub use error::Error;
pub use geometry::{Frontier, Geometry, Isolation, MAX_RU_PAGES, MAX_STREAMS, Sizes, Space};
pub use outcome::{Outcome, Placement, Share, Window};
pub use plan::{Age, Plan, Precondition, simulate, simulate_placed};
pub use simulator::{PRECONDITION_CLASS, STEADY_TOLERANCE, Simulator};
pub use sweep::sweep;
pub use transport::Transport;
pub use victim::Victim;
pub use workload::{BATCH, Hints, Kind, Op, Repeat, Slice, Synthetic, Workload};
