//! A hash for addresses.
//!
//! Invariant: the same everywhere and always, so that samples are.

use std::hash::{BuildHasherDefault, Hasher};

/// For maps by address. No defence against collisions: whoever makes a trace of such addresses
/// waits for the answer.
#[derive(Default)]
pub(crate) struct Mix(u64);

pub(crate) type Mixed = BuildHasherDefault<Mix>;

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit depends on every bit.
pub(crate) fn mixed(value: u64) -> u64 {
    let mut hash = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
