//! The p-value of one comparison by flipping signs, and Holm's adjustment.
//!
//! If the policy changes nothing, exchanging the two rounds of a block changes
//! nothing either: the block's difference was as likely to come out with the
//! other sign. What order does to a difference is not exchangeable, so it is
//! taken out first, signs of the remainder are flipped, and the full regression
//! is fitted again to every flipped set (Freedman & Lane 1983; Winkler et al.,
//! "Permutation inference for the general linear model", NeuroImage 92, 2014).
//! The statistic is |t|, used through the bounded, monotone share of the
//! variance that the effect explains, which is defined where t divides by zero.
//! Without order this is Fisher's randomisation test of paired data.
//!
//! Invariant: the p-value is at least 2/2ⁿ for n pairs, and is never zero.

use rand_pcg::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::fit::{ORDER_FROM_BLOCKS, Pair};
use super::random::{Purpose, generator};

/// All sign patterns are tried up to this many pairs.
pub const EXACT_UP_TO: usize = 16;

/// Random sign patterns above that; the standard error of a p-value of 0.05 is
/// then 0.0015.
pub const MONTE_CARLO_FLIPS: u32 = 19_999;

/// Two statistics closer than this (relatively) count as equal, so that ties of
/// the data are ties in spite of rounding.
const TIE: f64 = 1e-9;

/// A two-sided p-value and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PValue {
    /// The p-value of this comparison alone.
    pub value: f64,
    /// After Holm's adjustment over all comparisons of the trial.
    pub holm: f64,
    /// Whether all sign patterns were tried.
    pub exact: bool,
}

/// The sign-flip p-value of the hypothesis of no effect; `None` without pairs.
///
/// Exact up to [`EXACT_UP_TO`] pairs. Above that from [`MONTE_CARLO_FLIPS`]
/// random patterns of `seed` and `arm`, counting the observed one (Phipson &
/// Smyth 2010). [`PValue::holm`] is the same value until [`holm`] is applied.
#[must_use]
pub fn sign_flip(pairs: &[Pair], seed: u64, arm: usize) -> Option<PValue> {
    if pairs.is_empty() {
        return None;
    }
    let test = FlipTest::new(pairs);
    let mut flips = vec![0; pairs.len().div_ceil(64)];
    let observed = test.explained(&flips) * (1.0 - TIE);
    let n = pairs.len();
    let exact = n <= EXACT_UP_TO;
    let value = if exact {
        // A pattern and its opposite give the same |t|: the last sign stays.
        let patterns = 1_u64 << (n - 1);
        let as_far = (0..patterns).filter(|&flips| test.explained(&[flips]) >= observed);
        as_far.count() as f64 / patterns as f64
    } else {
        let mut random = generator(seed, Purpose::Flips(arm));
        let mut as_far = 0_u32;
        for _ in 0..MONTE_CARLO_FLIPS {
            flips.fill_with(|| random.next_u64());
            as_far += u32::from(test.explained(&flips) >= observed);
        }
        f64::from(as_far + 1) / f64::from(MONTE_CARLO_FLIPS + 1)
    };
    Some(PValue { value, holm: value, exact })
}

/// The smallest p-value that `n` pairs can give: 2/2ⁿ, at most 1.
#[must_use]
pub fn smallest_p(n: usize) -> f64 {
    let exponent = i32::try_from(n).unwrap_or(i32::MAX);
    (2.0 * 0.5_f64.powi(exponent)).min(1.0)
}

/// Holm's step-down adjustment (S. Holm, "A simple sequentially rejective
/// multiple test procedure", Scandinavian Journal of Statistics 6, 1979): the
/// i-th smallest of m p-values (i from 0) times m − i, made monotone, at most 1.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..p.len()).collect();
    by_size.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in by_size.iter().enumerate() {
        largest = largest.max(((p.len() - rank) as f64 * p[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

/// The two sums of every pattern, tabulated for eight pairs at a time.
///
/// With r the differences less their order and f the flips, all that the refit
/// needs is A = Σ f r (1 − c x) and B = Σ f r x, where c = Σx / Σx²; Σ r² does
/// not change.
struct FlipTest {
    tables: Vec<[(f64, f64); 256]>,
    square: f64,
    sum_xx: f64,
    effective_n: f64,
}

impl FlipTest {
    fn new(pairs: &[Pair]) -> Self {
        let n = pairs.len() as f64;
        let sum = |of: &dyn Fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>();
        let (sum_x, sum_xx) = (sum(&|pair| pair.order), sum(&|pair| pair.order * pair.order));
        let varies = pairs.iter().any(|pair| pair.order != pairs[0].order);
        let ordered = pairs.len() >= ORDER_FROM_BLOCKS && varies;

        let (ratio, slope, sum_xx) = if ordered {
            (sum_x / sum_xx, sum(&|pair| pair.order * pair.log_ratio) / sum_xx, sum_xx)
        } else {
            (0.0, 0.0, 0.0)
        };
        let terms: Vec<(f64, f64)> = pairs
            .iter()
            .map(|pair| {
                let rest = pair.log_ratio - slope * pair.order;
                let along = if ordered { rest * pair.order } else { 0.0 };
                (rest - ratio * along, along)
            })
            .collect();
        let square = sum(&|pair| (pair.log_ratio - slope * pair.order).powi(2));
        let tables = terms
            .chunks(8)
            .map(|chunk| {
                let mut table = [(0.0, 0.0); 256];
                for (pattern, entry) in table.iter_mut().enumerate() {
                    for (bit, &(a, b)) in chunk.iter().enumerate() {
                        let sign = if pattern >> bit & 1 == 1 { -1.0 } else { 1.0 };
                        entry.0 += sign * a;
                        entry.1 += sign * b;
                    }
                }
                table
            })
            .collect();
        Self { tables, square, sum_xx, effective_n: n - ratio * sum_x }
    }

    /// The share, from 0 to 1, of the variance (order taken out) that the effect
    /// explains under a pattern (one bit a pair): t² / (t² + df).
    fn explained(&self, flips: &[u64]) -> f64 {
        let (mut a, mut b) = (0.0, 0.0);
        for (tables, &word) in self.tables.chunks(8).zip(flips) {
            let mut rest = word;
            for table in tables {
                let (of_a, of_b) = table[(rest & 0xff) as usize];
                a += of_a;
                b += of_b;
                rest >>= 8;
            }
        }
        let of_order = if self.sum_xx > 0.0 { b * b / self.sum_xx } else { 0.0 };
        let rest = self.square - of_order;
        // All of it lies along the order (or all is zero): nothing is left for
        // the effect to explain.
        if rest <= 1e-14 * self.square {
            return 0.0;
        }
        a * a / (self.effective_n * rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fit::fit_pairs;

    fn pairs(differences: &[f64], order: &[f64]) -> Vec<Pair> {
        let both = differences.iter().zip(order).enumerate();
        both.map(|(block, (&log_ratio, &order))| Pair { block, log_ratio, order }).collect()
    }

    /// Fisher, "The Design of Experiments" (1935), §21: of the 32,768 ways to
    /// sign the 15 differences of Darwin's maize, 863 give a sum of 314 or more
    /// (one tail); both tails: 1,726.
    #[test]
    fn darwins_maize_gives_fishers_count() {
        let differences =
            [49., -67., 8., 16., 6., 23., 28., 41., 14., 29., 56., 24., 75., 60., -48.];
        let p = sign_flip(&pairs(&differences, &[0.0; 15]), 0, 1).unwrap();
        assert!(p.exact);
        assert_eq!(p.value, 1726.0 / 32_768.0);
    }

    /// With nothing but one sign the two extreme patterns are the only ones as
    /// far out: 2/2⁵ cannot reach 0.05, 2/2⁶ can.
    #[test]
    fn five_blocks_cannot_reach_five_percent_and_six_can() {
        let differences = [0.11, 0.12, 0.13, 0.14, 0.15, 0.16];
        let order = [1., -1., 1., -1., 1., -1.];
        let five = sign_flip(&pairs(&differences[..5], &order[..5]), 0, 1).unwrap();
        assert_eq!((five.value, smallest_p(5)), (0.0625, 0.0625));
        let six = sign_flip(&pairs(&differences, &order), 0, 1).unwrap();
        assert_eq!((six.value, smallest_p(6)), (0.031_25, 0.031_25));
        assert_eq!((smallest_p(0), smallest_p(1), smallest_p(usize::MAX)), (1.0, 1.0, 0.0));
    }

    /// The tabulated statistic against a regression fitted anew to every
    /// flipped set of differences.
    #[test]
    fn the_table_agrees_with_refitting() {
        let differences = [0.03, -0.01, 0.05, 0.02, -0.04, 0.06, 0.01, 0.02, -0.02];
        let order = [1., -2., 1., 2., -1., -1., 2., -2., 1.];
        let pairs = pairs(&differences, &order);
        let t_square = |pairs: &[Pair]| {
            let fit = fit_pairs(pairs).unwrap();
            (fit.estimate / fit.standard_error().unwrap()).powi(2)
        };
        let sum_xx: f64 = order.iter().map(|x| x * x).sum();
        let slope = pairs.iter().map(|pair| pair.order * pair.log_ratio).sum::<f64>() / sum_xx;
        let observed = t_square(&pairs);
        let as_far = (0..512_u32).filter(|flips| {
            let mut flipped = pairs.clone();
            for (bit, pair) in flipped.iter_mut().enumerate() {
                let rest = pair.log_ratio - slope * pair.order;
                let sign = if flips >> bit & 1 == 1 { -1.0 } else { 1.0 };
                pair.log_ratio = slope * pair.order + sign * rest;
            }
            t_square(&flipped) >= observed * (1.0 - 1e-9)
        });
        let expected = as_far.count() as f64 / 512.0;
        assert!(expected > 0.01 && expected < 0.99);
        assert_eq!(sign_flip(&pairs, 0, 1).unwrap().value, expected);
    }

    /// A Monte Carlo p-value lies by the exact one (t and sign flips agree to a
    /// few thousandths on normal scores), and repeats with its seed.
    #[test]
    fn monte_carlo_is_seeded_and_right() {
        let differences: Vec<f64> = (0..24).map(|i| f64::from(i * 7 % 24) - 9.5).collect();
        let pairs = pairs(&differences, &[0.0; 24]);
        let p = sign_flip(&pairs, 5, 1).unwrap();
        assert!(!p.exact);
        assert_eq!(p, sign_flip(&pairs, 5, 1).unwrap());
        assert_ne!(p, sign_flip(&pairs, 6, 1).unwrap());
        // The sum is 48, its variance under flips Σd² = 1246, the lattice step 2.
        let fit = fit_pairs(&pairs).unwrap();
        let t = fit.estimate / fit.standard_error().unwrap();
        let by_t = 2.0 * super::super::t_cdf(-t.abs(), 23.0);
        assert!((p.value - by_t).abs() < 0.02, "{} {by_t}", p.value);
    }

    #[test]
    fn degenerate_differences_have_a_p_value() {
        assert_eq!(sign_flip(&[], 0, 1), None);
        let order = [1., -1., 1., -1., 1., -1., 1., -1.];
        let p = |d: &[f64]| sign_flip(&pairs(d, &order[..d.len()]), 0, 1).unwrap().value;
        assert_eq!(p(&[0.4]), 1.0);
        assert_eq!(p(&[0.0; 8]), 1.0);
        assert_eq!(p(&[0.3; 8]), 2.0 / 256.0);
        // All of the difference is order: no effect is left.
        assert_eq!(p(&order), 1.0);
    }

    /// Holm's procedure on four hypotheses with p = 0.01, 0.04, 0.03, 0.005: the
    /// fourth and the first are rejected at 0.05, the others not. Adjusted
    /// values as R's `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")` defines them.
    #[test]
    fn holm_adjusts_the_textbook_example() {
        let near = |found: &[f64], expected: &[f64]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        };
        near(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        // stdlib.js, `padjust( [ 0.319, 0.201, 0.4, 0.374, 0.113 ], 'holm' )`.
        near(&holm(&[0.319, 0.201, 0.4, 0.374, 0.113]), &[0.957, 0.804, 0.957, 0.957, 0.565]);
        assert_eq!(holm(&[0.2]), [0.2]);
        assert!(holm(&[]).is_empty());
    }
}
