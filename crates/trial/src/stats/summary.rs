//! One row of the results table per arm.
//!
//! Invariant: sums are taken in units of the largest value, so that no finite
//! metric overflows.

use serde::{Deserialize, Serialize};

/// What the rounds of one arm look like on their own, in the metric's unit.
///
/// For reading only: arms are compared block by block, never by these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Arm, from 0.
    pub arm: usize,
    /// Its name.
    pub name: String,
    /// Rounds measured.
    pub rounds: usize,
    /// Rounds missing.
    pub missing: usize,
    /// Median; `None` without rounds.
    pub median: Option<f64>,
    /// Arithmetic mean; `None` without rounds.
    pub mean: Option<f64>,
    /// Geometric mean, the one that fits log ratios; `None` without rounds.
    pub geometric_mean: Option<f64>,
    /// Standard deviation (n − 1); `None` below two rounds.
    pub sd: Option<f64>,
}

/// Summarises the values of one arm; all are positive and finite.
pub(super) fn summarise(arm: usize, name: &str, values: &[f64], missing: usize) -> ArmSummary {
    let rounds = values.len();
    let largest = values.iter().copied().fold(0.0, f64::max);
    let count = rounds as f64;
    // Rounding can carry a mean past the largest value, at worst past f64::MAX.
    let capped = |value: f64| value.min(largest);
    let mean = values.iter().map(|value| value / largest).sum::<f64>() / count;
    let square: f64 = values.iter().map(|value| (value / largest - mean).powi(2)).sum();
    let log_mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
    ArmSummary {
        arm,
        name: name.to_owned(),
        rounds,
        missing,
        median: median(values),
        mean: (rounds > 0).then(|| capped(mean * largest)),
        geometric_mean: (rounds > 0).then(|| capped(log_mean.exp())),
        sd: (rounds > 1).then(|| capped((square / (count - 1.0)).sqrt() * largest)),
    }
}

/// The median: the middle value, or the mean of the middle two. `None` for none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    // Halves first: the sum of two large values may overflow.
    Some(lower / 2.0 + upper / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Michelson's first series of 1879 (speed of light, km/s − 299,000; Stigler,
    /// "Do robust estimators work with real data?", Annals of Statistics 5, 1977;
    /// R's `morley`, experiment 1): mean 909, standard deviation 104.93, median 940.
    #[test]
    fn michelsons_first_series_has_its_figures() {
        let values = [
            850., 740., 900., 1070., 930., 850., 950., 980., 980., 880., 1000., 980., 930., 650.,
            760., 810., 1000., 1000., 960., 960.,
        ];
        let summary = summarise(0, "first", &values, 3);
        assert_eq!((summary.rounds, summary.missing), (20, 3));
        assert_eq!(summary.median, Some(940.0));
        assert!((summary.mean.unwrap() - 909.0).abs() < 1e-9);
        assert!((summary.sd.unwrap() - 104.926).abs() < 1e-3);
        assert!(summary.geometric_mean.unwrap() < 909.0);
    }

    #[test]
    fn extremes_stay_finite() {
        let empty = summarise(1, "none", &[], 8);
        assert_eq!(
            (empty.median, empty.mean, empty.geometric_mean, empty.sd),
            (None, None, None, None)
        );
        let one = summarise(1, "one", &[5.0], 0);
        assert_eq!((one.mean, one.median, one.sd), (Some(5.0), Some(5.0), None));
        for value in [f64::MAX, f64::MIN_POSITIVE, 5e-324] {
            let summary = summarise(0, "far", &[value, value, value], 0);
            assert!(
                summary.mean.unwrap().is_finite() && summary.geometric_mean.unwrap().is_finite()
            );
            assert_eq!(summary.sd, Some(0.0));
        }
        let far = summarise(0, "far", &[f64::MAX, 5e-324], 0);
        assert!(far.sd.unwrap().is_finite() && far.median.unwrap().is_finite());
    }
}
