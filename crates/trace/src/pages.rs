//! Sets of pages: exact while they are small enough together, estimated beyond.
//!
//! Invariant: all sets of a summary together take at most the budget; a set that is estimated says
//! so. The estimate is HyperLogLog (Flajolet et al. 2007) with 2¹² registers: a standard error of
//! 1.6 %.

use std::collections::HashMap;

/// Pages of one block of an exact set.
const BLOCK: u64 = 4096;
/// Bytes that a block takes, with its place in the map.
const BLOCK_BYTES: usize = 512 + 48;
/// Registers of an estimate.
const REGISTERS: usize = 1 << 12;

/// A set of pages, by device and number.
#[derive(Clone, Debug)]
pub(crate) enum Pages {
    /// Every page, in blocks.
    Exact(HashMap<u64, Box<[u64; 64]>>),
    /// Greatest ranks of hashes.
    Estimated(Box<[u8; REGISTERS]>),
}

impl Default for Pages {
    fn default() -> Pages {
        Pages::Exact(HashMap::new())
    }
}

impl Pages {
    /// Adds `count` pages from `first`; how many bytes of memory it took.
    pub(crate) fn add(&mut self, device: u16, first: u64, count: u64) -> usize {
        match self {
            Pages::Exact(blocks) => {
                let mut new = 0;
                // numbers of pages have at most 63 - 9 bits, the device takes the rest
                let key = |page: u64| (u64::from(device) << 48) ^ (page / BLOCK);
                let (mut page, end) = (first, first.saturating_add(count));
                while page < end {
                    let block = blocks.entry(key(page)).or_insert_with(|| {
                        new += BLOCK_BYTES;
                        Box::new([0; 64])
                    });
                    let last = end.min((page / BLOCK + 1) * BLOCK);
                    while page < last {
                        let bit = page % BLOCK;
                        let (word, within) = ((bit / 64) as usize, bit % 64);
                        let many = (last - page).min(64 - within);
                        let mask = if many == 64 { u64::MAX } else { ((1 << many) - 1) << within };
                        block[word] |= mask;
                        page += many;
                    }
                }
                new
            }
            Pages::Estimated(registers) => {
                for page in first..first.saturating_add(count) {
                    see(registers, device, page);
                }
                0
            }
        }
    }

    /// Gives up the exact set.
    pub(crate) fn estimate(&mut self) {
        let Pages::Exact(blocks) = self else { return };
        let mut registers = Box::new([0; REGISTERS]);
        for (key, block) in blocks.iter() {
            // the exact set's key stands for the device as well
            for (word, bits) in block.iter().enumerate() {
                let mut bits = *bits;
                while bits != 0 {
                    let bit = word as u64 * 64 + u64::from(bits.trailing_zeros());
                    let (device, block) = ((key >> 48) as u16, key & ((1 << 48) - 1));
                    see(&mut registers, device, block * BLOCK + bit);
                    bits &= bits - 1;
                }
            }
        }
        *self = Pages::Estimated(registers);
    }

    /// How many pages.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Pages::Exact(blocks) => {
                blocks.values().flat_map(|b| b.iter()).map(|w| u64::from(w.count_ones())).sum()
            }
            Pages::Estimated(registers) => {
                let size = REGISTERS as f64;
                let sum: f64 = registers.iter().map(|rank| (-f64::from(*rank)).exp2()).sum();
                let raw = 0.7213 / (1.0 + 1.079 / size) * size * size / sum;
                let empty = registers.iter().filter(|rank| **rank == 0).count();
                if raw <= 2.5 * size && empty > 0 {
                    return (size * (size / empty as f64).ln()).round() as u64;
                }
                raw.round() as u64
            }
        }
    }
}

fn see(registers: &mut [u8; REGISTERS], device: u16, page: u64) {
    // the finaliser of SplitMix64
    let mut hash = (u64::from(device) << 48) ^ page;
    hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let register = (hash % REGISTERS as u64) as usize;
    let rank = ((hash / REGISTERS as u64) | (1 << 52)).trailing_zeros() + 1;
    registers[register] = registers[register].max(rank as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        #[test]
        fn exact_sets_agree_with_a_plain_one(
            ranges in proptest::collection::vec((0u16..2, 0u64..20_000, 0u64..9_000), 0..8),
        ) {
            let (mut pages, mut plain) = (Pages::default(), std::collections::HashSet::new());
            for (device, first, count) in ranges {
                pages.add(device, first, count);
                plain.extend((first..first + count).map(|page| (device, page)));
            }
            prop_assert_eq!(pages.len(), plain.len() as u64);
        }
    }

    #[test]
    fn estimates_are_near() {
        for count in [0u64, 10, 1_000, 20_000, 300_000] {
            let mut pages = Pages::default();
            pages.add(1, 77, count / 2);
            pages.estimate();
            pages.add(1, 77 + count / 2, count - count / 2);
            let error = (pages.len() as f64 - count as f64).abs() / count.max(1) as f64;
            assert!(error < 0.06, "{count}: {}", pages.len());
        }
    }
}
