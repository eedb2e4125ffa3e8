//! Which closed reclaim unit (RU) is collected next: one trait, one file per rule.
//!
//! Invariant: a rule sees only what a drive's firmware could know (valid counts, when an RU was
//! closed, which frontier filled it), never a page's future. It is asked only when at least one
//! closed RU has a dead page, and names a closed RU.

mod cost_benefit;
mod fifo;
mod greedy;
mod quota;

#[cfg(test)]
pub(crate) use quota::shares;
use serde::{Deserialize, Serialize};

use crate::ftl::Open;
use crate::geometry::Layout;
use crate::valid::{OPEN, Valid};

/// The rules there are.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The RU with the fewest valid pages.
    Greedy,
    /// The RU with the largest (1 − u)·age/(1 + u), u its valid ratio (Rosenblum and Ousterhout,
    /// SOSP '91).
    CostBenefit,
    /// The RU that was closed first.
    Fifo,
    /// The emptiest RU of the stream that holds most spare above its share.
    Quota,
}

impl Victim {
    /// All rules.
    pub const ALL: [Victim; 4] = [Victim::Greedy, Victim::CostBenefit, Victim::Fifo, Victim::Quota];

    /// The name used in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Victim::Greedy => "greedy",
            Victim::CostBenefit => "cost-benefit",
            Victim::Fifo => "fifo",
            Victim::Quota => "quota",
        }
    }

    pub(crate) fn rule(self) -> Box<dyn VictimRule> {
        match self {
            Victim::Greedy => Box::new(greedy::Greedy),
            Victim::CostBenefit => Box::new(cost_benefit::CostBenefit),
            Victim::Fifo => Box::new(fifo::Fifo::default()),
            Victim::Quota => Box::new(quota::Quota::default()),
        }
    }
}

/// Chooses victims.
pub(crate) trait VictimRule: Send {
    /// The next RU to collect; it is collected at once.
    fn pick(&mut self, view: &View<'_>) -> Option<u32>;

    /// RU `ru` of pool `pool` was closed just now.
    fn closed(&mut self, ru: u32, pool: u8) {
        let _ = (ru, pool);
    }
}

/// Pages that went in and out of a pool since the simulator was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// Written by the host.
    pub host: u64,
    /// Relocated into the pool.
    pub moved_in: u64,
    /// Relocated out of it (perhaps into itself).
    pub moved_out: u64,
    /// RUs of the pool erased.
    pub erased: u64,
}

/// What a rule may look at.
pub(crate) struct View<'a> {
    pub layout: &'a Layout,
    pub valid: &'a Valid,
    /// Pool of every RU that is not free: the stream, or the relocated data of all streams.
    pub pool: &'a [u8],
    /// Host pages written to flash before the RU was closed; meaningless unless closed.
    pub closed_at: &'a [u64],
    /// Host pages written to flash so far.
    pub now: u64,
    /// By pool.
    pub flows: &'a [Flow],
    pub frontiers: &'a [Open],
}

impl View<'_> {
    /// All closed RUs with their valid counts, by number.
    pub fn closed(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let keys = self.valid.keys().iter().zip(0..);
        keys.filter(|&(&key, _)| key < OPEN).map(|(&key, ru)| (ru, key))
    }
}
