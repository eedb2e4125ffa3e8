//! Cost-benefit: the largest (1 − u)·age / (1 + u), u the valid ratio (Rosenblum and Ousterhout, "The
//! design and implementation of a log-structured file system", SOSP '91, §3.6).
//!
//! Invariant: age is counted in host pages written to flash since the RU was closed. No tables are
//! kept: every closed RU is looked at, which is what the rule costs a simulation.

use super::{VictimRule, View};

pub(super) struct CostBenefit;

impl VictimRule for CostBenefit {
    fn pick(&mut self, view: &View<'_>) -> Option<u32> {
        let mut best = None;
        // Worth a fraction each: compared crosswise, since a division per RU would cost most.
        let (mut most, mut per) = (0.0_f64, 1.0_f64);
        for (ru, valid) in view.closed() {
            let size = view.layout.ru_pages;
            let age = view.now - view.closed_at[ru as usize] + 1;
            let gain = f64::from(size - valid) * age as f64;
            let cost = f64::from(size + valid);
            if gain * per > most * cost {
                (most, per) = (gain, cost);
                best = Some(ru);
            }
        }
        best
    }
}
