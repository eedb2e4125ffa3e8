//! The trend of the whole run: reported beside the effects, which it does not
//! enter (they compare rounds of one block).
//!
//! Each block's mean, every round less its arm's mean, is regressed on the
//! block's mean position. Rounds near in time resemble each other, so the
//! interval is somewhat too narrow; the design document has the measured
//! coverage. It informs about the machine, nothing is decided by it.
//!
//! Invariant: `None` rather than an interval that the data cannot give.

use serde::{Deserialize, Serialize};

use super::data::Data;
use super::fit::{Interval, ROUNDING};
use super::percent;
use super::student::t_quantile;
use super::verdict::LEVEL;

/// The fewest blocks with rounds for which a trend is given.
const FEWEST_BLOCKS: usize = 4;

/// The linear trend of the metric over the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Change from one round to the next, in percent.
    pub percent_per_round: f64,
    /// Change from the first to the last measured round, in percent.
    pub percent_over_run: f64,
    /// 95 % interval of the change over the run.
    pub interval_over_run: Interval,
    /// Slope in logarithms per round, and the mean position it turns about.
    #[serde(skip)]
    pub(super) line: (f64, f64),
}

/// The trend, or `None` below four blocks with rounds or without spread.
pub(super) fn drift(data: &Data) -> Option<Drift> {
    let mut per_arm = vec![(0.0, 0.0); data.arms.len()];
    let mut last = 0;
    let mut first = u32::MAX;
    for (_, arm, round) in data.measured() {
        per_arm[arm].0 += round.value.ln();
        per_arm[arm].1 += 1.0;
        first = first.min(round.position);
        last = last.max(round.position);
    }
    let mut blocks = vec![(0.0, 0.0, 0.0); data.blocks.len()];
    for (block, arm, round) in data.measured() {
        let (sum, count) = per_arm[arm];
        let entry = &mut blocks[block];
        *entry = (
            entry.0 + f64::from(round.position),
            entry.1 + round.value.ln() - sum / count,
            entry.2 + 1.0,
        );
    }
    let points: Vec<(f64, f64)> = blocks
        .iter()
        .filter(|(_, _, count)| *count > 0.0)
        .map(|(position, level, count)| (position / count, level / count))
        .collect();
    if points.len() < FEWEST_BLOCKS {
        return None;
    }

    let n = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let sum_xx: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let sum_xy: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    // Positions are distinct, but block means of positions may coincide.
    if sum_xx <= 0.0 {
        return None;
    }
    let slope = sum_xy / sum_xx;
    let rest: f64 = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    let sd = (rest / (n - 2.0)).sqrt();
    let length = f64::from(last - first);
    if sd <= ROUNDING && (slope * length).abs() <= ROUNDING {
        return None;
    }
    let half = t_quantile(0.5 + LEVEL / 2.0, n - 2.0) * sd / sum_xx.sqrt();
    Some(Drift {
        percent_per_round: percent(slope),
        percent_over_run: percent(slope * length),
        interval_over_run: Interval::around(slope * length, half * length),
        line: (slope, mean_x),
    })
}
