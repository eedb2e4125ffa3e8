//! Scores of hints against no hints, on some writes.
//!
//! Invariant: 1 is no hints, less is better; what a drive has no room for is infinitely bad.

use shelflife_lifetime::Lifetime;
use shelflife_ssd::Placing;

use crate::Error;
use crate::drives::{Variant, space};
use crate::outcome::Aim;
use crate::passes::{Hints, Part, Passes, plan};
use crate::runner::{Runner, Stage, half_interval, one};

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

/// Half of the 95 % interval of what several firmwares' ratios to no hints come to, over passes: where one
/// firmware decides, its own. Each firmware has its ratio, and that of each pass.
pub(crate) fn spread(aim: &Aim, firmwares: Vec<(f64, Vec<f64>)>) -> f64 {
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
    half_interval(&passes).unwrap_or(0.0)
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
