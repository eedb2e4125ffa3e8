//! Scores of hints against no hints, on some writes.
//!
//! Invariant: 1 is no hints, less is better; what a drive has no room for is infinitely bad.

use shelflife_lifetime::Lifetime;
use shelflife_ssd::Placing;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Error;
use crate::drives::{Variant, space};
use crate::outcome::Aim;
use crate::passes::{Hints, Part, Passes, plan};
use crate::runner::{Runner, Stage, one};

/// How often a drive is written over in the search before counting begins, and while it goes on: what is
/// collected in turns comes in waves, of which a few must be counted.
const AGE: u64 = 2;
const COUNT: u64 = 3;

/// What several firmwares' ratios to no hints come to.
pub(crate) fn score(aim: &Aim, ratios: &[f64]) -> f64 {
    match aim {
        Aim::Worst => ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        _ => ratios.iter().sum::<f64>() / ratios.len().max(1) as f64,
    }
}

/// A loss up to this is none, where a policy is to be good on average.
const HARMLESS: f64 = 0.005;

/// The score of the search: on average good, and bad nowhere. What is worse than no hints on one
/// firmware costs that in full, as if it were all.
fn guarded(aim: &Aim, ratios: &[f64]) -> f64 {
    let loss = score(&Aim::Worst, ratios) - 1.0 - HARMLESS;
    match aim {
        Aim::Mean => score(aim, ratios) + loss.max(0.0),
        _ => score(aim, ratios),
    }
}

/// Half of the 95 % interval of the mean of these; `None` of fewer than two.
pub(crate) fn half_interval(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    Some(t * (variance / n).sqrt()).filter(|half| half.is_finite())
}

/// Half of the 95 % interval of what several firmwares' ratios to no hints come to, over passes: where one
/// firmware decides, its own. Each firmware has its ratio, and that of each pass.
pub(crate) fn spread(aim: &Aim, firmwares: Vec<(f64, Vec<f64>)>) -> Option<f64> {
    let passes: Vec<f64> = match aim {
        Aim::Worst => {
            let worst = firmwares.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
            worst.map(|(_, ratios)| ratios).unwrap_or_default()
        }
        _ => {
            let many = firmwares.iter().map(|(_, ratios)| ratios.len()).min().unwrap_or(0);
            let of = firmwares.len() as f64;
            let mean = |at: usize| firmwares.iter().map(|(_, ratios)| ratios[at]).sum::<f64>() / of;
            (0..many).map(mean).collect()
        }
    };
    half_interval(&passes)
}

/// Scores of groupings on some writes.
pub(crate) struct Scores<'a> {
    pub runner: &'a Runner<'a>,
    pub part: &'a Part<'a>,
    pub variants: &'a [Variant],
    pub aim: &'a Aim,
}

impl Scores<'_> {
    fn one(&self, variant: &Variant, hints: Option<&[Lifetime]>) -> Result<f64, Error> {
        let config = match hints {
            Some(hints) => variant.hinted(variant.used(hints.iter().copied())),
            None => Some(variant.unhinted()),
        };
        // too many open units for the drive's spare
        let Some(config) = config else { return Ok(f64::INFINITY) };
        let plan = plan(self.part, variant.fill, space(&config), AGE, COUNT);
        let hints = Hints::ByFile(hints.unwrap_or_default());
        let passes = Passes::new(self.part, variant.fill, hints);
        Ok(one(&config, &plan, self.part, passes, Placing::Hints)?.waf)
    }

    /// Write amplification without hints, by variant.
    pub fn off(&self, stage: Stage) -> Result<Vec<f64>, Error> {
        let variants = self.variants;
        let of = variants.len();
        let found = self.runner.run(stage, of, of, |at| self.one(&variants[at], None));
        found.into_iter().collect()
    }

    /// The score of each list of hints by file: 1 is that of no hints.
    pub fn of(
        &self,
        hints: &[Vec<Lifetime>],
        off: &[f64],
        stage: Stage,
    ) -> Result<Vec<f64>, Error> {
        let many = self.variants.len();
        let jobs = hints.len() * many;
        let found = self.runner.run(stage, jobs, jobs, |at| {
            self.one(&self.variants[at % many], Some(&hints[at / many]))
        });
        let found: Vec<f64> = found.into_iter().collect::<Result<_, _>>()?;
        let one = |wafs: &[f64]| {
            let ratios: Vec<f64> = wafs.iter().zip(off).map(|(waf, off)| waf / off).collect();
            guarded(self.aim, &ratios)
        };
        Ok(found.chunks(many.max(1)).map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_what_is_aimed_at() {
        // t of 2 degrees of freedom is 4.3027
        let two = |worst: [f64; 3]| vec![(0.9, vec![0.9; 3]), (1.0, worst.to_vec())];
        let half = |values: [f64; 3]| 4.302_65 * half_of(values) / 3_f64.sqrt();
        let worst = spread(&Aim::Worst, two([0.98, 1.0, 1.02])).unwrap();
        assert!((worst - half([0.98, 1.0, 1.02])).abs() < 1e-5, "{worst}");
        let mean = spread(&Aim::Mean, two([0.98, 1.0, 1.02])).unwrap();
        assert!((mean - worst / 2.0).abs() < 1e-5, "{mean}");
        assert_eq!(spread(&Aim::Mean, vec![(1.0, vec![1.0])]), None);
        assert_eq!(spread(&Aim::Worst, Vec::new()), None);
    }

    /// The standard deviation of three values about the middle one.
    fn half_of(values: [f64; 3]) -> f64 {
        let mean = values[1];
        (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 2.0).sqrt()
    }

    #[test]
    fn a_loss_on_one_firmware_counts_in_full() {
        let good = guarded(&Aim::Mean, &[0.9, 1.004]);
        assert!((good - 0.952).abs() < 1e-9, "{good}");
        let bad = guarded(&Aim::Mean, &[0.9, 1.055]);
        assert!((bad - (0.9775 + 0.05)).abs() < 1e-9, "{bad}");
        assert_eq!(guarded(&Aim::Worst, &[0.9, 1.055]), 1.055);
    }
}
