//! Far-out rounds and blocks: named, never dropped.
//!
//! The modified z-score of B. Iglewicz and D. C. Hoaglin, "How to Detect and
//! Handle Outliers" (ASQC Quality Press, 1993): `0.6745 (x − median) / MAD`,
//! labelled beyond 3.5, with MAD the median absolute deviation from the median.
//!
//! Invariant: what is labelled here is still in every estimate.

use serde::{Deserialize, Serialize};

use super::fit::ROUNDING;
use super::summary::median;

/// Scores beyond this, either side, are labelled.
pub const MODIFIED_Z_LIMIT: f64 = 3.5;

/// A far-out round: its logarithm, after its arm's median and the drift of the
/// run are taken out, against all other rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlierRound {
    /// Block, from 0.
    pub block: usize,
    /// Arm, from 0.
    pub arm: usize,
    /// Place in the run, from 0.
    pub position: u32,
    /// The measured value.
    pub value: f64,
    /// Modified z-score.
    pub score: f64,
}

/// A far-out block of one comparison: its log ratio, after the order is taken
/// out, against the other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlierBlock {
    /// Block, from 0.
    pub block: usize,
    /// The block's change against the base, in percent, as measured.
    pub percent: f64,
    /// Modified z-score.
    pub score: f64,
}

/// The modified z-score of every value.
///
/// If more than half of the values are equal the MAD is zero; then the mean
/// absolute deviation takes its place (`(x − median) / (1.253314 × mean)`, the
/// same scale for normal data). If all are equal every score is 0.
#[must_use]
pub fn modified_z_scores(values: &[f64]) -> Vec<f64> {
    let Some(middle) = median(values) else { return Vec::new() };
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let median_deviation = median(&deviations).unwrap_or(0.0);
    let mean_deviation = deviations.iter().sum::<f64>() / values.len() as f64;
    let scale = if median_deviation > ROUNDING {
        median_deviation / 0.6745
    } else if mean_deviation > ROUNDING {
        mean_deviation * 1.253_314
    } else {
        return vec![0.0; values.len()];
    };
    values.iter().map(|value| (value - middle) / scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: median 2.45, MAD 0.15, so 8.2 scores 0.6745 × 5.75 / 0.15. The
    /// ordinary z-scores (mean 3.47, SD 2.52) stay below 2: the two outliers
    /// hide each other, the case that the median is for.
    #[test]
    fn two_outliers_do_not_hide_each_other() {
        let scores = modified_z_scores(&[2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]);
        assert!((scores[8] - 25.8558).abs() < 1e-3, "{}", scores[8]);
        assert!((scores[9] - 26.3055).abs() < 1e-3, "{}", scores[9]);
        assert!(scores[..8].iter().all(|score| score.abs() < MODIFIED_Z_LIMIT));
    }

    /// Rosner, "Percentage points for a generalized ESD many-outlier procedure",
    /// Technometrics 25 (1983), 54 values, printed in the NIST/SEMATECH
    /// e-Handbook of Statistical Methods, 1.3.5.17.3, where the three largest
    /// are the outliers.
    #[test]
    fn rosners_data_have_three_candidates_on_top() {
        let values = [
            -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56,
            1.58, 1.65, 1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10,
            2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37, 2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92,
            2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42, 6.01,
        ];
        let scores = modified_z_scores(&values);
        let beyond: Vec<f64> = values
            .iter()
            .zip(&scores)
            .filter(|(_, score)| score.abs() > MODIFIED_Z_LIMIT)
            .map(|(value, _)| *value)
            .collect();
        assert_eq!(beyond, [5.34, 5.42, 6.01]);
    }

    #[test]
    fn equal_values_score_zero_and_one_stranger_is_seen() {
        assert!(modified_z_scores(&[]).is_empty());
        assert_eq!(modified_z_scores(&[4.0; 5]), [0.0; 5]);
        let scores = modified_z_scores(&[1., 1., 1., 1., 1., 1., 1., 9.]);
        assert_eq!(scores[0], 0.0);
        assert!((scores[7] - 8.0 / 1.253_314).abs() < 1e-9);
        assert!(scores[7] > MODIFIED_Z_LIMIT);
    }
}
