//! What an analysis is given: the rounds, checked once, then in logarithms.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::error::StatsError;

/// The largest number of rounds (arms × blocks) of a plan or an analysis.
pub const MAX_ROUNDS: usize = 1_000_000;

/// What the primary metric is, so that a sentence can say "slower" for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Work per time (transactions per second): more is faster.
    Throughput,
    /// Time per work (latency): more is slower.
    Time,
    /// An amount (bytes per transaction): more is higher, neither good nor bad.
    Amount,
}

/// An effect that others report for the same comparison, to be set against the
/// result: both ends in percent, positive, `low_percent ≤ high_percent`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// The smallest reported effect, in percent.
    pub low_percent: f64,
    /// The largest reported effect, in percent.
    pub high_percent: f64,
}

/// One measured round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Place of the round in the whole run, counted from 0 in order of time.
    pub position: u32,
    /// The primary metric, in its own unit; positive and finite.
    pub value: f64,
}

/// The measured rounds of a trial and what was fixed about them beforehand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Name of each arm; arm 0 is the base that the others are compared with.
    /// An arm with the base's name makes an A/A comparison.
    pub arms: Vec<String>,
    /// `blocks[block][arm]`; `None` for a round that is missing. A block that was
    /// broken off and started again is two of them: rounds are compared within
    /// one stretch of time only.
    pub blocks: Vec<Vec<Option<Round>>>,
    /// What the values are.
    pub metric: Metric,
    /// What others report, if the sentence should say whether it would show.
    pub reported: Option<Reported>,
    /// A quick look: intervals are given, never a verdict.
    pub quick: bool,
    /// Seed of the Monte Carlo p-values.
    pub seed: u64,
}

impl Data {
    /// Checks the shape and every value.
    ///
    /// # Errors
    ///
    /// [`StatsError`] names the first thing that is wrong.
    pub fn check(&self) -> Result<(), StatsError> {
        check_size(self.arms.len(), self.blocks.len())?;
        let mut taken = HashSet::new();
        for (block, rounds) in self.blocks.iter().enumerate() {
            if rounds.len() != self.arms.len() {
                let (found, arms) = (rounds.len(), self.arms.len());
                return Err(StatsError::Ragged { block, found, arms });
            }
            for (arm, round) in rounds.iter().enumerate() {
                let Some(Round { position, value }) = *round else { continue };
                if !(value.is_finite() && value > 0.0) {
                    return Err(StatsError::NotPositive { block, arm, value });
                }
                if !taken.insert(position) {
                    return Err(StatsError::PositionTaken { block, arm, position });
                }
            }
        }
        Ok(())
    }

    /// All measured rounds as (block, arm, round).
    pub(super) fn measured(&self) -> impl Iterator<Item = (usize, usize, Round)> + '_ {
        self.blocks.iter().enumerate().flat_map(|(block, rounds)| {
            rounds.iter().enumerate().filter_map(move |(arm, round)| Some((block, arm, (*round)?)))
        })
    }
}

/// Checks that `arms` arms in `blocks` blocks make a trial of a sane size.
pub(super) fn check_size(arms: usize, blocks: usize) -> Result<(), StatsError> {
    if arms < 2 {
        return Err(StatsError::TooFewArms { arms });
    }
    if blocks == 0 {
        return Err(StatsError::NoBlocks);
    }
    match arms.checked_mul(blocks) {
        Some(rounds) if rounds <= MAX_ROUNDS => Ok(()),
        _ => Err(StatsError::TooManyRounds { arms, blocks }),
    }
}
