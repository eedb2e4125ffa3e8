//! What would a drive make of this? Every policy on every drive, over a trace or a synthetic
//! workload.
//!
//! ```
//! use shelflife_simulate::{Request, Rules, Size, Synthetic, Target, simulate};
//! use shelflife_ssd::Hints;
//!
//! let workload = Synthetic {
//!     text: "uniform".into(), pages: 1 << 14, overwrites: 8, seed: 1, hints: vec![Hints::Off],
//! };
//! let request = Request {
//!     targets: vec![Target::Rules(Rules::over_provisioning(0.28))],
//!     size: Size::Own,
//!     memory_bytes: None,
//! };
//! let report = simulate(&workload.into(), &request, &|_| ())?;
//! assert!((report.rows[0].outcome.waf - 2.4).abs() < 0.1);
//! # Ok::<(), shelflife_simulate::Error>(())
//! ```
//!
//! The simulator itself is `shelflife-ssd`; here a policy meets a trace's files ([`Hinting`]), a
//! drive is scaled to what is written ([`Target`]), and all combinations run side by side.
//!
//! Invariants: prints nothing; the same request gives the same report, with any number of threads;
//! what is wrong with a request is said before the first simulation begins, as far as it can be
//! known then.

#![forbid(unsafe_code)]

mod error;
mod hinting;
mod replay;
mod report;
mod run;
mod size;
mod target;
mod touched;

pub use error::Error;
pub use hinting::Hinting;
pub use report::{ClassShare, Report, Row};
pub use run::{Progress, Recorded, Request, Source, Synthetic, simulate};
pub use size::{Pages, Size, Sized};
pub use target::{Rules, Target};
pub use touched::{Touched, span};
