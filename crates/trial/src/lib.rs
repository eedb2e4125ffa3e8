//! Paired trials of hint policies on a real server.
//!
//! A trial compares *arms* (policies, the first of them usually `off`) in
//! *blocks*: within a block every arm runs once, in seeded random order, and
//! arms are compared only with the rounds of their own block. [`stats`] is the
//! arithmetic of it (plan, estimate, interval, p-value, power, verdict): pure,
//! without input or output, the same result for the same seed on every machine.
//!
//! A [`Spec`] fixes what a trial does; [`run`] does it on a server, [`resume`] goes on after an
//! interruption, and [`Results::read`] reads what was written, whose [`Results::outcome`] is the
//! answer. Nothing here prints or reads arguments: a caller hears of progress as an [`Observer`].
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`spec`], [`arm`] | what is compared, and how: fixed beforehand |
//! | `capture` | a scenario recorded without hints, for simulations ([`capture()`]) |
//! | [`scenario`] | loads that are known to write much of one class |
//! | [`filesystem`] | a file system of the trial's own |
//! | `epoch` | rounds that are epochs on a whole device, by the drive's own counters |
//! | [`estimate`] | what it will write |
//! | `server`, `round`, `recording`, `trial` | doing it |
//! | [`machine`], [`probe`], `settling` | what the machine did meanwhile |
//! | [`record`], [`outcome`], `notes` | the results on disk, and what they say |
//! | `simulated` | what a drive would make of the recorded rounds ([`simulated()`]) |
//! | [`idea`] | what the original idea aimed at, in each server version |
//! | [`stats`] | the arithmetic |
//!
//! Invariant: nothing measured is ever dropped silently. A round that is
//! missing, far out or late is named in the result, beside the figures that
//! still contain it.

pub mod arm;
mod capture;
mod epoch;
pub mod error;
pub mod estimate;
pub mod filesystem;
pub mod idea;
pub mod machine;
mod notes;
pub mod observer;
pub mod outcome;
pub mod probe;
pub mod record;
mod recording;
mod round;
pub mod scenario;
mod server;
mod settling;
mod simulated;
pub mod spec;
pub mod stats;
mod trial;

pub use capture::{Capture, CapturePlace, CaptureSteps, Captured, capture};
pub use error::{Error, Result};
pub use estimate::Estimate;
pub use observer::{Observer, Phase, Progress};
pub use outcome::{ArmFigures, Outcome};
pub use record::Results;
pub use recording::Recording;
pub use scenario::Scenario;
pub use simulated::{Bounds, Simulated, SimulatedArm, Waf, simulated};
pub use spec::{Preset, Primary, Spec, Wishes};
pub use trial::{Options, Place, resume, run};
