//! What a trial could have found, and how long the next one must be.
//!
//! The residual spread is itself an estimate from few blocks; put into the
//! textbook formula as if it were the truth, it promises 80 % and keeps less.
//! For a spread s on ν degrees of freedom, n further blocks and the critical
//! value t, the chance (over s *and* the next trial) that an effect δ is found
//! is very nearly the probability that a noncentral t variable with ν degrees
//! of freedom and noncentrality t stays below √n δ / s (S. A. Julious, R. J. Owen,
//! "Sample size calculations for clinical studies allowing for uncertainty
//! about the variance", Pharmaceutical Statistics 5, 2006); setting it to 0.8
//! gives both figures below. With ν → ∞ it is the textbook formula.
//!
//! That holds for normal differences. A spread from heavy tails is less sure
//! than its degrees of freedom say: with an excess kurtosis κ its variance is
//! that of ν / (1 + κ/2) of them (G. E. P. Box, "Non-normality and tests on
//! variances", Biometrika 40, 1953). Eight blocks cannot estimate κ, so it is
//! set to 2: between block differences of Laplace rounds (1.5) and of rounds
//! from Student's t with five degrees of freedom (3).
//!
//! Invariant: both figures come from one formula: if the smallest effect of n
//! blocks is exactly the planned effect, n blocks are what is proposed for it.

use serde::{Deserialize, Serialize};

use super::fit::{Fit, ORDER_FROM_BLOCKS};
use super::percent;
use super::permutation::smallest_p;
use super::student::{NoncentralT, t_quantile};
use super::verdict::LEVEL;

/// The chance of finding an effect that is planned for.
pub const TARGET_POWER: f64 = 0.8;

/// The effect for which a number of blocks is proposed, in percent.
pub const PLANNED_EFFECT_PERCENT: f64 = 3.0;

/// The excess kurtosis of block differences that planning allows for.
const EXCESS_KURTOSIS: f64 = 2.0;

/// From about this many blocks on no number is proposed.
const MOST_BLOCKS: u64 = 1_000_000;

/// What the measured spread allows to find with [`TARGET_POWER`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// The smallest effect, in percent, that as many blocks as these find;
    /// `None` if so few blocks find nothing however large.
    pub smallest_effect_percent: Option<f64>,
    /// The effect that [`Power::blocks_needed`] is for, in percent.
    pub planned_effect_percent: f64,
    /// Blocks that find the planned effect, if as large a share of them is
    /// missing as now; `None` for about a million or more.
    pub blocks_needed: Option<u64>,
}

/// The fewest blocks with which one of `comparisons` comparisons can reach
/// p = 0.05 after Holm: 6 for one, 7 for two or three.
#[must_use]
pub fn fewest_blocks(comparisons: usize) -> usize {
    let alpha = alpha(comparisons);
    // 2/2ⁿ falls below every positive double at last.
    (1..).find(|&n| smallest_p(n) <= alpha).unwrap_or(usize::MAX)
}

/// Power from the fit of one of `comparisons` comparisons, to which `missing`
/// blocks could not contribute; `None` without a residual spread.
///
/// Several comparisons are planned at 0.05 / `comparisons`, the first and
/// hardest step of Holm's procedure.
#[must_use]
pub fn plan_power(fit: &Fit, missing: usize, comparisons: usize) -> Option<Power> {
    let sd = fit.residual_sd?;
    let spread = NoncentralT::new(fit.df as f64 / (1.0 + EXCESS_KURTOSIS / 2.0));
    let alpha = alpha(comparisons);
    let critical = |df: f64| t_quantile(1.0 - alpha / 2.0, df);
    let fewest = fewest_blocks(comparisons);

    let smallest_effect_percent = (fit.n >= fewest).then(|| {
        let factor = spread.quantile(TARGET_POWER, critical(fit.df as f64));
        percent(factor * sd * fit.leverage.sqrt())
    });

    let effect = (PLANNED_EFFECT_PERCENT / 100.0).ln_1p();
    let enough = |blocks: u64| {
        let df = blocks as f64 - if blocks >= ORDER_FROM_BLOCKS as u64 { 2.0 } else { 1.0 };
        let reach = (blocks as f64).sqrt() * effect / sd;
        spread.cdf(reach, critical(df)) >= TARGET_POWER
    };
    let fewest = fewest as u64;
    let (mut few, mut many) = (fewest - 1, fewest);
    while !enough(many) && many < MOST_BLOCKS {
        few = many;
        many *= 2;
    }
    let blocks_needed = (many < MOST_BLOCKS).then(|| {
        while many - few > 1 {
            let middle = few + (many - few) / 2;
            if enough(middle) {
                many = middle;
            } else {
                few = middle;
            }
        }
        let share = (fit.n + missing) as f64 / fit.n as f64;
        (many as f64 * share).ceil() as u64
    });
    Some(Power {
        smallest_effect_percent,
        planned_effect_percent: PLANNED_EFFECT_PERCENT,
        blocks_needed,
    })
}

fn alpha(comparisons: usize) -> f64 {
    (1.0 - LEVEL) / comparisons.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(n: usize, df: usize, sd: f64) -> Fit {
        let (estimate, order, leverage) = (0.0, None, 1.0 / n as f64);
        Fit { n, estimate, order, df, residual_sd: Some(sd), leverage }
    }

    #[test]
    fn six_blocks_are_the_fewest_for_one_comparison() {
        let fewest: Vec<usize> = (0..6).map(fewest_blocks).collect();
        assert_eq!(fewest, [6, 6, 7, 7, 8, 8]);
    }

    /// With the spread all but known (10⁶ degrees of freedom) the formula is the
    /// textbook one: Dalgaard, "Introductory Statistics with R", 8.3, needs
    /// 19.96892 pairs for 85 % power on n − 1 degrees of freedom; the normal
    /// approximation (1.96 + 0.8416)² (σ/δ)² needs one or two blocks less than t.
    #[test]
    fn a_known_spread_gives_the_textbook_number() {
        let effect = 1.03_f64.ln();
        for ratio in [1.0, 2.0, 3.0] {
            let blocks =
                plan_power(&fit(8, 1_000_000, ratio * effect), 0, 1).unwrap().blocks_needed;
            let normal = 7.848_9 * ratio * ratio;
            let blocks = blocks.unwrap() as f64;
            assert!(blocks >= normal && blocks <= normal + 3.6, "{blocks} {normal}");
        }
    }

    /// An uncertain spread costs: 8 blocks (6 degrees of freedom, counted as 3)
    /// ask for 15.3 instead of 7.85 (σ/δ)² blocks. scipy: at 32 blocks
    /// `nct.ppf(0.8, 3, t.ppf(0.975, 30))**2 * (0.0424 / log(1.03))**2` is 31.469,
    /// at 31 it is 31.544.
    #[test]
    fn an_uncertain_spread_asks_for_more_blocks() {
        assert_eq!(plan_power(&fit(8, 6, 0.0424), 0, 1).unwrap().blocks_needed, Some(32));
        // Two of ten blocks lost: a quarter more.
        assert_eq!(plan_power(&fit(8, 6, 0.0424), 2, 1).unwrap().blocks_needed, Some(40));
    }

    #[test]
    fn smallest_effect_and_number_of_blocks_are_one_formula() {
        for n in [8_usize, 15, 40] {
            let power = plan_power(&fit(n, n - 2, 0.03), 0, 1).unwrap();
            let smallest = (power.smallest_effect_percent.unwrap() / 100.0).ln_1p();
            // The spread at which the smallest effect is exactly 3 %.
            let sd = 0.03 * 1.03_f64.ln() / smallest;
            for (scale, expected) in [(0.9999, n), (1.0001, n + 1)] {
                let power = plan_power(&fit(n, n - 2, sd * scale), 0, 1).unwrap();
                assert_eq!(power.blocks_needed, Some(expected as u64));
            }
        }
    }

    #[test]
    fn extremes_are_bounded() {
        let few = plan_power(&fit(5, 4, 0.03), 0, 1).unwrap();
        assert_eq!(few.smallest_effect_percent, None);
        assert!(few.blocks_needed.is_some());
        assert_eq!(plan_power(&fit(8, 6, 1e-9), 0, 1).unwrap().blocks_needed, Some(6));
        assert_eq!(plan_power(&fit(8, 6, 700.0), 0, 1).unwrap().blocks_needed, None);
        let wide = plan_power(&fit(8, 6, 700.0), 0, 1).unwrap().smallest_effect_percent;
        assert!(wide.unwrap().is_finite());
        let none = Fit { residual_sd: None, ..fit(8, 6, 1.0) };
        assert_eq!(plan_power(&none, 0, 1), None);
    }
}
