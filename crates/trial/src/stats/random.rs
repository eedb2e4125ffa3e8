//! The one generator of this module, and the two draws that are made from it.
//!
//! Only raw 64-bit outputs of PCG-64 are used: the derived draws of a general
//! library may change between its versions, and a plan that is resumed after
//! an upgrade must still be the same plan.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// What random numbers are for; each purpose has its own sequence.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// The order of rounds.
    Plan,
    /// The sign flips of the comparison of this arm.
    Flips(usize),
}

/// A generator for one purpose under one seed.
pub(super) fn generator(seed: u64, purpose: Purpose) -> Pcg64 {
    let purpose = match purpose {
        Purpose::Plan => 0,
        Purpose::Flips(arm) => 1 + arm as u64,
    };
    // Two PCG sequences from near states or near increments resemble each
    // other, so seed and purpose are mixed into the state by SplitMix64
    // (Steele, Lea & Flood 2014), and the increment is always the same.
    let high = split_mix(split_mix(seed) ^ purpose);
    let low = split_mix(high);
    Pcg64::new(u128::from(high) << 64 | u128::from(low), 0)
}

fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A uniform integer below `bound` (> 0), without bias (Lemire 2019).
pub(super) fn below(generator: &mut Pcg64, bound: u64) -> u64 {
    let threshold = bound.wrapping_neg() % bound;
    loop {
        let wide = u128::from(generator.next_u64()) * u128::from(bound);
        // Truncation keeps the low half, which is what the method compares.
        if wide as u64 >= threshold {
            return (wide >> 64) as u64;
        }
    }
}

/// Fisher–Yates.
pub(super) fn shuffle<T>(generator: &mut Pcg64, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        let other = below(generator, last as u64 + 1) as usize;
        items.swap(last, other);
    }
}
