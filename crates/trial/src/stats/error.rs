//! What can be wrong with a plan or with the rounds that are handed in.

use super::data::MAX_ROUNDS;

/// Why a plan or an analysis is refused.
///
/// Blocks and arms count from 0, as in [`super::Data::blocks`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// Fewer than two arms: nothing to compare.
    #[error("a trial compares at least two arms, got {arms}: name the base arm and another one")]
    TooFewArms {
        /// Arms given.
        arms: usize,
    },
    /// No block at all.
    #[error("a trial has at least one block, got none: plan one or more blocks")]
    NoBlocks,
    /// More than [`MAX_ROUNDS`] rounds.
    #[error("{arms} arms in {blocks} blocks are more than {MAX_ROUNDS} rounds: plan fewer")]
    TooManyRounds {
        /// Arms given.
        arms: usize,
        /// Blocks given.
        blocks: usize,
    },
    /// A block whose length is not the number of arms.
    #[error("block {block} holds {found} rounds for {arms} arms: mark a missing round as missing")]
    Ragged {
        /// The block.
        block: usize,
        /// Entries in it.
        found: usize,
        /// Entries it should have.
        arms: usize,
    },
    /// A value without a logarithm: zero, negative, infinite or not a number.
    #[error(
        "block {block}, arm {arm}: {value} has no logarithm: \
         a primary metric is positive and finite, mark a failed round as missing"
    )]
    NotPositive {
        /// The block.
        block: usize,
        /// The arm.
        arm: usize,
        /// The value.
        value: f64,
    },
    /// Two rounds claim the same position in the run.
    #[error("block {block}, arm {arm}: position {position} is taken by another round")]
    PositionTaken {
        /// The block of the second claimant.
        block: usize,
        /// The arm of the second claimant.
        arm: usize,
        /// The position.
        position: u32,
    },
}
