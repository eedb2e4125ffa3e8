//! The estimate of one comparison: paired differences, regressed on order.
//!
//! In block b the compared arm ran `x` positions after the base (before it if
//! negative). The difference of their logarithms is
//!
//! ```text
//! d = δ + β x + error,
//! ```
//!
//! δ the effect, β what one position later in the run is worth (drift, warming
//! up, a probe before the block). δ is estimated at x = 0, where both arms would
//! have run at the same time; its interval is Student's on n − 2 degrees of
//! freedom. The plan balances x, so β costs one degree of freedom and no bias
//! if rounds are missing. Below [`ORDER_FROM_BLOCKS`] blocks that degree costs
//! more than it brings and δ is the plain mean (n − 1 degrees of freedom),
//! which a balanced plan keeps unbiased.
//!
//! Invariant: whether x is used depends on the number of blocks and on the
//! order, never on the measured values.

use serde::{Deserialize, Serialize};

use super::percent;
use super::student::t_quantile;
use super::verdict::LEVEL;

/// From this many complete pairs on the order is a covariate. It is also where
/// a sign-flip test can first reach 0.05.
pub const ORDER_FROM_BLOCKS: usize = 6;

/// A spread of logarithms below this is rounding, not measurement: logarithms
/// of doubles are below 745, and 745 × 2⁻⁵² is 1.7e-13.
pub(super) const ROUNDING: f64 = 1e-12;

/// One block's pair: the base and the compared arm, both measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Block, from 0.
    pub block: usize,
    /// Natural logarithm of compared arm / base.
    pub log_ratio: f64,
    /// Position of the compared arm minus position of the base.
    pub order: f64,
}

/// A 95 % interval for a change in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end, in percent.
    pub low_percent: f64,
    /// Upper end, in percent.
    pub high_percent: f64,
}

impl Interval {
    /// From an estimate and a half width in logarithms.
    pub(super) fn around(estimate: f64, half_width: f64) -> Self {
        Self {
            low_percent: percent(estimate - half_width),
            high_percent: percent(estimate + half_width),
        }
    }

    /// Whether "no change" lies inside.
    #[must_use]
    pub fn contains_zero(&self) -> bool {
        self.low_percent <= 0.0 && self.high_percent >= 0.0
    }

    /// The larger distance of its ends from zero, in percent.
    #[must_use]
    pub fn reach_percent(&self) -> f64 {
        self.low_percent.abs().max(self.high_percent.abs())
    }
}

/// What one position later within a block is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderEffect {
    /// Change per position, in percent.
    pub percent_per_position: f64,
    /// Its 95 % interval, in percent per position.
    pub interval: Interval,
}

/// The least-squares fit of one comparison, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Pairs used.
    pub n: usize,
    /// The effect δ: a log ratio.
    pub estimate: f64,
    /// Coefficient β of the order, and Σ(x − x̄)²; `None` if order is not fitted.
    pub order: Option<(f64, f64)>,
    /// Degrees of freedom of the residuals; may be 0.
    pub df: usize,
    /// Residual standard deviation of one block's log ratio; `None` without
    /// degrees of freedom or when the spread is no more than rounding.
    pub residual_sd: Option<f64>,
    /// Variance of the estimate in units of the residual variance: 1/n for a
    /// balanced plan, more if missing rounds unbalanced it.
    pub leverage: f64,
}

/// Fits δ (and β from [`ORDER_FROM_BLOCKS`] pairs on, if the order varied).
/// `None` without pairs.
#[must_use]
pub fn fit_pairs(pairs: &[Pair]) -> Option<Fit> {
    if pairs.is_empty() {
        return None;
    }
    let n = pairs.len();
    let count = n as f64;
    let mean_d = pairs.iter().map(|pair| pair.log_ratio).sum::<f64>() / count;
    let mean_x = pairs.iter().map(|pair| pair.order).sum::<f64>() / count;
    let sum_xx: f64 = pairs.iter().map(|pair| (pair.order - mean_x).powi(2)).sum();
    let sum_xd: f64 =
        pairs.iter().map(|pair| (pair.order - mean_x) * (pair.log_ratio - mean_d)).sum();
    let order = (n >= ORDER_FROM_BLOCKS && sum_xx > 0.0).then(|| (sum_xd / sum_xx, sum_xx));

    let slope = order.map_or(0.0, |(slope, _)| slope);
    let estimate = mean_d - slope * if order.is_some() { mean_x } else { 0.0 };
    let leverage = 1.0 / count + order.map_or(0.0, |(_, sum_xx)| mean_x * mean_x / sum_xx);
    let df = n - if order.is_some() { 2 } else { 1 };
    let residual_square: f64 =
        pairs.iter().map(|pair| (pair.log_ratio - estimate - slope * pair.order).powi(2)).sum();
    let residual_sd =
        (df > 0).then(|| (residual_square / df as f64).sqrt()).filter(|&sd| sd > ROUNDING);
    Some(Fit { n, estimate, order, df, residual_sd, leverage })
}

impl Fit {
    /// Standard error of the estimate; `None` where the residual spread is.
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        Some(self.residual_sd? * self.leverage.sqrt())
    }

    /// The 95 % interval of the effect.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let quantile = t_quantile(0.5 + LEVEL / 2.0, self.df as f64);
        Some(Interval::around(self.estimate, quantile * self.standard_error()?))
    }

    /// The effect of order with its 95 % interval, where it is fitted.
    #[must_use]
    pub fn order_effect(&self) -> Option<OrderEffect> {
        let (slope, sum_xx) = self.order?;
        let half =
            t_quantile(0.5 + LEVEL / 2.0, self.df as f64) * self.residual_sd? / sum_xx.sqrt();
        Some(OrderEffect {
            percent_per_position: percent(slope),
            interval: Interval::around(slope, half),
        })
    }

    /// What is left of each pair's log ratio when only the order is taken out.
    pub(super) fn without_order(&self, pairs: &[Pair]) -> Vec<f64> {
        let slope = self.order.map_or(0.0, |(slope, _)| slope);
        pairs.iter().map(|pair| pair.log_ratio - slope * pair.order).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(differences: &[f64], order: &[f64]) -> Vec<Pair> {
        let both = differences.iter().zip(order).enumerate();
        both.map(|(block, (&log_ratio, &order))| Pair { block, log_ratio, order }).collect()
    }

    fn half_width(fit: &Fit) -> f64 {
        t_quantile(0.975, fit.df as f64) * fit.standard_error().unwrap()
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
    }

    /// Student 1908 (R's `sleep`): extra hours of sleep under two drugs for ten
    /// patients; paired t = −4.0621, 95 % interval −2.4598858 to −0.7001142.
    #[test]
    fn the_sleep_data_give_their_interval() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let fit = fit_pairs(&pairs(&differences, &[0.0; 10])).unwrap();
        assert_eq!((fit.n, fit.df, fit.order), (10, 9, None));
        near(fit.estimate / fit.standard_error().unwrap(), -4.062_128, 1e-6);
        near(fit.estimate - half_width(&fit), -2.459_885_8, 1e-7);
        near(fit.estimate + half_width(&fit), -0.700_114_2, 1e-7);
    }

    /// Darwin's maize (Fisher, "The Design of Experiments", 1935, §17): heights
    /// of 15 pairs in eighths of an inch; t = 2.148, just beyond 5 %.
    #[test]
    fn darwins_maize_gives_fishers_t() {
        let differences =
            [49., -67., 8., 16., 6., 23., 28., 41., 14., 29., 56., 24., 75., 60., -48.];
        let fit = fit_pairs(&pairs(&differences, &[0.0; 15])).unwrap();
        near(fit.estimate / fit.standard_error().unwrap(), 2.148, 5e-4);
        near(fit.estimate - half_width(&fit), 0.031_193, 1e-6);
    }

    /// Anscombe, "Graphs in statistical analysis", The American Statistician 27
    /// (1973): all four sets have intercept 3.00, slope 0.500, standard error of
    /// the slope 0.118 and of the intercept 1.125 on 9 degrees of freedom.
    #[test]
    fn anscombes_first_set_gives_its_regression() {
        let x = [10., 8., 13., 9., 11., 14., 6., 4., 12., 7., 5.];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let fit = fit_pairs(&pairs(&y, &x)).unwrap();
        let (slope, sum_xx) = fit.order.unwrap();
        assert_eq!(fit.df, 9);
        near(fit.estimate, 3.0001, 5e-5);
        near(fit.standard_error().unwrap(), 1.1247, 5e-5);
        near(slope, 0.5001, 5e-5);
        near(fit.residual_sd.unwrap() / sum_xx.sqrt(), 0.1179, 5e-5);
    }

    #[test]
    fn linear_drift_leaves_no_trace_in_the_effect() {
        let order = [1., 1., -1., 1., -1., -1., 1.];
        let noise = [0.01, -0.02, 0.015, 0.0, 0.005, -0.01, 0.02];
        let drifting: Vec<f64> = noise.iter().zip(order).map(|(d, x)| d - 0.07 * x).collect();
        let calm = fit_pairs(&pairs(&noise, &order)).unwrap();
        let fit = fit_pairs(&pairs(&drifting, &order)).unwrap();
        near(fit.estimate, calm.estimate, 1e-12);
        near(fit.residual_sd.unwrap(), calm.residual_sd.unwrap(), 1e-12);
    }

    #[test]
    fn few_blocks_or_one_order_are_not_adjusted() {
        let few = fit_pairs(&pairs(&[0.1, 0.2, 0.3, 0.1], &[1., -1., 1., -1.])).unwrap();
        assert_eq!((few.df, few.order), (3, None));
        let same = fit_pairs(&pairs(&[0.1, 0.2, 0.3, 0.1, 0.0, 0.2, 0.1], &[1.0; 7])).unwrap();
        assert_eq!((same.df, same.order), (6, None));
        assert_eq!(same.order_effect(), None);
    }

    #[test]
    fn no_spread_gives_no_interval() {
        assert_eq!(fit_pairs(&[]), None);
        let one = fit_pairs(&pairs(&[0.2], &[1.0])).unwrap();
        assert_eq!((one.df, one.interval()), (0, None));
        let same = fit_pairs(&pairs(&[0.3; 8], &[1., -1., 1., -1., 1., -1., 1., -1.])).unwrap();
        assert_eq!((same.residual_sd, same.interval()), (None, None));
        near(same.estimate, 0.3, 1e-15);
    }
}
