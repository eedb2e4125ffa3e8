//! Does a write lifetime hint that is set here reach the flash?
//!
//! `fcntl(F_SET_RW_HINT)` succeeds on nearly every system on which the hint goes nowhere. A
//! [`Doctor`] walks from a path to the drive, layer by layer, and says what each one does to it:
//!
//! ```no_run
//! use std::path::Path;
//! use shelflife_probe::{Doctor, Host, Verdict};
//!
//! let report = Doctor::new(Host::live()).path(Path::new("/var/lib/postgresql"))?;
//! for answer in &report.answers {
//!     println!("{}", answer.sentence);
//!     assert_ne!(answer.verdict, Verdict::Delivered);
//! }
//! # Ok::<(), shelflife_probe::Error>(())
//! ```
//!
//! It is a prediction, from the rules in [`rules`] and from what the machine shows. [`prove::prove`] writes
//! probe files and looks.
//!
//! Invariants: a doctor writes nothing, to a file or to a drive, and without root the same question
//! gets an answer, if a poorer one; a proof leaves nothing behind.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod block;
mod bytes;
mod cloud;
pub mod dm;
mod doctor;
mod error;
mod fdp;
mod fs;
mod host;
mod kernel;
mod layers;
mod leaf;
#[allow(unsafe_code)]
mod live;
mod mountstats;
pub mod nvme;
pub mod prove;
pub mod rules;
pub mod scsi;
mod signal;
mod step;
mod text;
mod walk;

pub use answer::{Answer, LifetimeAnswer, Verdict};
pub use block::{Drive, Listed};
pub use bytes::Malformed;
pub use doctor::{Doctor, Report};
pub use error::Error;
pub use fdp::Fdp;
pub use host::{Calls, HintFailure, Host, Located, NvmeCommand, ScsiCommand};
pub use kernel::Kernel;
pub use leaf::{Arrival, Leaf};
pub use step::{Effect, Step};

use std::path::Path;

/// The verdict for a path in one line, for a program that is about to write there; asks no drive.
/// `None` if the path does not exist or may not be reached.
pub fn headline(path: &Path) -> Option<String> {
    let report = Doctor::new(Host::live()).without_drives().path(path).ok()?;
    report.answers.first().map(Answer::headline)
}
