//! The order of all rounds, fixed by arms, blocks and a seed.
//!
//! Orders are rows of Williams squares (E. J. Williams, "Experimental designs
//! balanced for the estimation of residual effects of treatments", Australian
//! Journal of Scientific Research A 2, 1949): in a whole square every arm
//! stands at every position equally often and follows every other arm within
//! a block equally often. The rows of all squares are then shuffled over the
//! *whole* run, not group by group: in ABBA groups neighbouring blocks always
//! have opposite orders, and autocorrelation between rounds then makes their
//! differences correlate, which costs up to a point of the interval's coverage.
//!
//! Invariant: the same arms, blocks and seed give the same plan, for ever
//! (a frozen plan is a test), so that an interrupted trial can go on.

use serde::{Deserialize, Serialize};

use super::data::check_size;
use super::error::StatsError;
use super::random::{Purpose, generator, shuffle};

/// One round of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Place in the run, from 0.
    pub position: u32,
    /// Block, from 0.
    pub block: usize,
    /// Arm, from 0.
    pub arm: usize,
}

/// The order of all rounds of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    seed: u64,
    orders: Vec<Vec<usize>>,
}

impl Plan {
    /// Draws the plan of `blocks` blocks in which each of `arms` arms runs once.
    ///
    /// Over the whole plan the number of times that an arm stands at a position
    /// differs by at most one between any two arms and positions. For two arms
    /// both orders occur equally often (one more of either if `blocks` is odd).
    ///
    /// # Errors
    ///
    /// Fewer than two arms, no block, or more than [`super::MAX_ROUNDS`] rounds.
    pub fn new(arms: usize, blocks: usize, seed: u64) -> Result<Self, StatsError> {
        check_size(arms, blocks)?;
        let mut random = generator(seed, Purpose::Plan);
        let mut orders = Vec::with_capacity(blocks);
        while orders.len() < blocks {
            let mut names: Vec<usize> = (0..arms).collect();
            shuffle(&mut random, &mut names);
            for mirrored in williams_squares(arms) {
                let mut shifts: Vec<usize> = (0..arms).collect();
                shuffle(&mut random, &mut shifts);
                for shift in shifts.into_iter().take(blocks - orders.len()) {
                    let row = williams_row(arms, shift, *mirrored);
                    orders.push(row.map(|symbol| names[symbol]).collect());
                }
            }
        }
        shuffle(&mut random, &mut orders);
        Ok(Self { seed, orders })
    }

    /// The seed that the plan was drawn with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// For each block the arms in the order in which they run.
    #[must_use]
    pub fn orders(&self) -> &[Vec<usize>] {
        &self.orders
    }

    /// All rounds in the order in which they run.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let rounds = self.orders.iter().enumerate();
        let rounds = rounds.flat_map(|(block, order)| order.iter().map(move |&arm| (block, arm)));
        rounds.zip(0..).map(|((block, arm), position)| Slot { position, block, arm })
    }
}

/// The Latin squares of a Williams design: one for an even number of arms, two
/// (the second mirrored) for an odd one.
fn williams_squares(arms: usize) -> &'static [bool] {
    if arms.is_multiple_of(2) { &[false] } else { &[false, true] }
}

/// A row: 0, 1, n−1, 2, n−2, … (whose neighbouring differences are all distinct
/// modulo n) plus the shift.
fn williams_row(arms: usize, shift: usize, mirrored: bool) -> impl Iterator<Item = usize> {
    (0..arms).map(move |column| {
        let i = if mirrored { arms - 1 - column } else { column };
        let symbol = if i % 2 == 1 { i / 2 + 1 } else { arms - i / 2 };
        (symbol + shift) % arms
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(plan: &Plan, arms: usize) -> Vec<Vec<usize>> {
        let mut counts = vec![vec![0; arms]; arms];
        for order in plan.orders() {
            for (position, &arm) in order.iter().enumerate() {
                counts[arm][position] += 1;
            }
        }
        counts
    }

    #[test]
    fn every_arm_runs_once_in_every_block_and_positions_are_balanced() {
        for arms in 2..8 {
            for blocks in 1..30 {
                for seed in 0..5 {
                    let plan = Plan::new(arms, blocks, seed).unwrap();
                    assert_eq!(plan.orders().len(), blocks);
                    for order in plan.orders() {
                        let mut sorted = order.clone();
                        sorted.sort_unstable();
                        assert_eq!(sorted, (0..arms).collect::<Vec<_>>());
                    }
                    let flat = counts(&plan, arms).concat();
                    let spread = flat.iter().max().unwrap() - flat.iter().min().unwrap();
                    assert!(spread <= 1, "{arms} arms, {blocks} blocks: {flat:?}");
                }
            }
        }
    }

    #[test]
    fn whole_squares_balance_who_follows_whom() {
        for arms in 2..8 {
            let rows = arms * williams_squares(arms).len();
            let plan = Plan::new(arms, 2 * rows, 7).unwrap();
            let mut follows = vec![vec![0; arms]; arms];
            for order in plan.orders() {
                for pair in order.windows(2) {
                    follows[pair[0]][pair[1]] += 1;
                }
            }
            let expected = 2 * rows / arms;
            for (before, row) in follows.iter().enumerate() {
                for (after, &count) in row.iter().enumerate() {
                    assert_eq!(count, if before == after { 0 } else { expected }, "{arms} arms");
                }
            }
        }
    }

    #[test]
    fn a_plan_is_frozen() {
        let order = |arms, blocks, seed| Plan::new(arms, blocks, seed).unwrap().orders;
        let two: Vec<usize> = order(2, 8, 1).iter().map(|order| order[0]).collect();
        assert_eq!(two, FROZEN_TWO);
        assert_eq!(order(3, 4, 2026), FROZEN_THREE);
    }

    const FROZEN_TWO: [usize; 8] = [1, 1, 1, 0, 0, 1, 0, 0];
    const FROZEN_THREE: [[usize; 3]; 4] = [[1, 0, 2], [0, 1, 2], [2, 1, 0], [0, 2, 1]];

    #[test]
    fn seeds_differ_and_slots_number_the_rounds() {
        let plan = Plan::new(3, 12, 1).unwrap();
        assert_ne!(plan.orders(), Plan::new(3, 12, 2).unwrap().orders());
        let slots: Vec<Slot> = plan.slots().collect();
        assert_eq!(slots.len(), 36);
        assert!(slots.iter().zip(0..).all(|(slot, at)| slot.position == at));
        assert_eq!(slots[4].arm, plan.orders()[1][1]);
    }

    #[test]
    fn impossible_plans_are_refused() {
        assert_eq!(Plan::new(1, 8, 0), Err(StatsError::TooFewArms { arms: 1 }));
        assert_eq!(Plan::new(2, 0, 0), Err(StatsError::NoBlocks));
        let (arms, blocks) = (2, usize::MAX);
        assert_eq!(Plan::new(arms, blocks, 0), Err(StatsError::TooManyRounds { arms, blocks }));
    }
}
