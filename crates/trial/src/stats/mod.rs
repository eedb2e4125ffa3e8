//! The statistics of a paired trial: who runs when, and what the rounds say.
//!
//! [`Plan`] fixes the order of all rounds before the first one starts;
//! [`analyse`] turns the measured rounds ([`Data`]) into an [`Analysis`]. The
//! method and the simulation that tests it are in `docs/design/statistics.md`.
//!
//! Invariants:
//!
//! * Pure and deterministic: no clock, no I/O, one named generator (PCG-64,
//!   XSL-RR), read only through its raw output, so that a seed keeps its
//!   meaning when a dependency changes.
//! * Every number in a result is finite. What cannot be computed is `None`
//!   and the verdict says why.
//! * The verdict is decided by rules that were fixed before the data: the
//!   permutation p-value (after Holm) *and* the interval must agree.
//!
//! ```
//! use shelflife_trial::stats::{Data, Metric, Plan, Round, Verdict, analyse};
//!
//! let plan = Plan::new(2, 8, 42)?;
//! let mut blocks = vec![vec![None; 2]; 8];
//! for slot in plan.slots() {
//!     // A server that is 4 % faster in arm 1 and slows down all the time.
//!     let wobble = [0.2, -0.3, 0.1, 0.4, -0.2, -0.1, 0.3, -0.4][slot.block] * slot.arm as f64;
//!     let tps = 1000.0 + 40.0 * slot.arm as f64 - f64::from(slot.position) + wobble;
//!     blocks[slot.block][slot.arm] = Some(Round { position: slot.position, value: tps });
//! }
//! let result = analyse(&Data {
//!     arms: vec!["off".into(), "temp-vs-rest".into()],
//!     blocks,
//!     metric: Metric::Throughput,
//!     reported: None,
//!     quick: false,
//!     seed: 42,
//! })?;
//! assert_eq!(result.comparisons[0].verdict, Verdict::Difference);
//! assert!(result.comparisons[0].sentence.contains("faster"));
//! # Ok::<(), shelflife_trial::stats::StatsError>(())
//! ```

mod analysis;
mod data;
mod drift;
mod error;
mod fit;
mod outlier;
mod permutation;
mod plan;
mod power;
mod random;
mod student;
mod summary;
mod verdict;

pub use analysis::{Analysis, Comparison, Estimate, analyse};
pub use data::{Data, MAX_ROUNDS, Metric, Reported, Round};
pub use drift::Drift;
pub use error::StatsError;
pub use fit::{Fit, Interval, ORDER_FROM_BLOCKS, OrderEffect, Pair, fit_pairs};
pub use outlier::{MODIFIED_Z_LIMIT, OutlierBlock, OutlierRound, modified_z_scores};
pub use permutation::{EXACT_UP_TO, MONTE_CARLO_FLIPS, PValue, holm, sign_flip, smallest_p};
pub use plan::{Plan, Slot};
pub use power::{PLANNED_EFFECT_PERCENT, Power, TARGET_POWER, fewest_blocks, plan_power};
pub use student::{NoncentralT, t_cdf, t_quantile};
pub use summary::{ArmSummary, median};
pub use verdict::{LEVEL, Verdict};

/// A log ratio as a change in percent: `100 (exp(x) − 1)`, at most `f64::MAX`.
///
/// −100 is the smallest value; a NaN cannot come out of a finite argument.
#[must_use]
pub fn percent(log_ratio: f64) -> f64 {
    (log_ratio.exp_m1() * 100.0).min(f64::MAX)
}
