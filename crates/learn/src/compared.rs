//! What the simulations that were judged come to: savings against no hints, and their errors.
//!
//! Invariant: the first arm is no hints, and every ratio is to it, under the same firmware and the same writes.

use crate::drives::Variant;
use crate::outcome::{Aim, Arm};
use crate::runner::Found;
use crate::scores::{half_interval, score, spread};

/// All arms on all firmwares.
pub(crate) struct Compared<'a> {
    pub variants: &'a [Variant],
    pub aim: &'a Aim,
    /// Positions of the variants that the aim is about.
    pub aimed: &'a [usize],
    /// By arm and variant; `None` where it cannot be.
    pub found: Vec<Vec<Option<Found>>>,
}

impl Compared<'_> {
    /// An arm's ratio to no hints, and that of each pass.
    fn ratios(&self, arm: usize, at: usize) -> Option<(f64, Vec<f64>)> {
        let (own, off) = (self.found[arm][at].as_ref()?, self.found[0][at].as_ref()?);
        Some((own.waf / off.waf, own.ratios(off)))
    }

    /// By the aim: share that an arm saves.
    pub fn saving(&self, arm: usize) -> Option<f64> {
        let ratio = |at: &usize| self.ratios(arm, *at).map(|(ratio, _)| ratio);
        let ratios: Vec<f64> = self.aimed.iter().map(ratio).collect::<Option<_>>()?;
        Some(1.0 - score(self.aim, &ratios))
    }

    /// Half of the 95 % interval of that saving.
    pub fn error(&self, arm: usize) -> Option<f64> {
        let ratios = self.aimed.iter().map(|at| self.ratios(arm, *at));
        spread(self.aim, ratios.collect::<Option<_>>()?)
    }

    /// An arm as it is told.
    pub fn arm(&self, arm: usize, name: String) -> Arm {
        let found = &self.found[arm];
        let error = |at| half_interval(&self.ratios(arm, at)?.1);
        let victims = |(variant, found): (&Variant, &Option<Found>)| {
            found.as_ref().filter(|_| variant.firmware.own).map(|found| found.victims)
        };
        Arm {
            name,
            wafs: found.iter().map(|found| found.as_ref().map(|found| found.waf)).collect(),
            errors: (0..found.len()).map(error).collect(),
            saving: self.saving(arm),
            error: self.error(arm),
            victims: self.variants.iter().zip(found).map(victims).collect(),
        }
    }
}
