//! Counts of lifetimes in bins that grow with the lifetime.
//!
//! Invariant: values below 256 have a bin each; beyond, 128 bins to the octave, so that the middle of
//! a bin is at most 0.4 % away from any value in it. All totals are exact.

/// How many bins there are.
pub const BINS: usize = 57 * OCTAVE + OCTAVE;
/// Bins of an octave.
const OCTAVE: usize = 128;
/// Bins that are kept as a list before a table is made.
const FEW: usize = 48;

/// The bin of a value: its eight leading bits.
#[inline]
pub fn bin(value: u64) -> u16 {
    let shift = (value | 1).ilog2().saturating_sub(7);
    // at most 56 · 128 + 255
    (shift as usize * OCTAVE) as u16 + (value >> shift) as u16
}

/// The middle of a bin, rounded down.
pub fn middle(bin: u16) -> u64 {
    let bin = u64::from(bin);
    let shift = (bin / OCTAVE as u64).saturating_sub(1);
    let low = (bin - shift * OCTAVE as u64) << shift;
    low + ((1 << shift) >> 1)
}

/// Counts by bin. Small ones are lists, so that many files take little memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    few: Vec<(u16, u64)>,
    octaves: Vec<Option<Box<[u64; OCTAVE]>>>,
}

impl Histogram {
    #[inline]
    pub fn add(&mut self, value: u64, count: u64) {
        self.add_to(bin(value), count);
    }

    #[inline]
    fn add_to(&mut self, bin: u16, count: u64) {
        let at = usize::from(bin);
        match self.octaves.get_mut(at / OCTAVE) {
            Some(Some(octave)) => octave[at % OCTAVE] += count,
            _ => self.add_slowly(bin, count),
        }
    }

    fn add_slowly(&mut self, bin: u16, count: u64) {
        if !self.octaves.is_empty() {
            return self.add_to_table(bin, count);
        }
        match self.few.binary_search_by_key(&bin, |entry| entry.0) {
            Ok(at) => self.few[at].1 += count,
            Err(at) if self.few.len() < FEW => self.few.insert(at, (bin, count)),
            Err(_) => {
                for (bin, count) in std::mem::take(&mut self.few) {
                    self.add_to_table(bin, count);
                }
                self.add_to_table(bin, count);
            }
        }
    }

    fn add_to_table(&mut self, bin: u16, count: u64) {
        let at = usize::from(bin);
        if self.octaves.is_empty() {
            self.octaves.resize(BINS / OCTAVE, None);
        }
        let octave = self.octaves[at / OCTAVE].get_or_insert_with(|| Box::new([0; OCTAVE]));
        octave[at % OCTAVE] += count;
    }

    /// Bins that hold something, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let table = self.octaves.iter().enumerate().flat_map(|(octave, counts)| {
            let counts = counts.iter().flat_map(|counts| counts.iter().enumerate());
            // below BINS
            counts.map(move |(at, count)| ((octave * OCTAVE + at) as u16, *count))
        });
        self.few.iter().copied().chain(table).filter(|(_, count)| *count > 0)
    }

    pub fn merge(&mut self, other: &Histogram) {
        other.iter().for_each(|(bin, count)| self.add_to(bin, count));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_middle_of_a_bin_is_near(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let (bin, middle) = (bin(value), middle(bin(value)));
            prop_assert!(usize::from(bin) < BINS);
            prop_assert!(middle.abs_diff(value) <= value / 256, "{value} {middle}");
            prop_assert_eq!(super::bin(middle), bin);
        }

        #[test]
        fn bins_are_in_order(a: u64, b: u64, shift in 0u32..64) {
            let (a, b) = (a >> shift, b >> shift);
            if a <= b {
                prop_assert!(bin(a) <= bin(b));
            }
        }

        #[test]
        fn counts_agree_with_a_map(values in proptest::collection::vec(0u64..2_000_000, 0..300)) {
            let (mut histogram, mut map) = (Histogram::default(), std::collections::BTreeMap::new());
            for value in values {
                histogram.add(value, 1);
                *map.entry(bin(value)).or_insert(0u64) += 1;
            }
            let mut twice = histogram.clone();
            twice.merge(&histogram);
            prop_assert_eq!(histogram.iter().collect::<Vec<_>>(), map.clone().into_iter().collect::<Vec<_>>());
            let doubled: Vec<_> = map.into_iter().map(|(bin, count)| (bin, 2 * count)).collect();
            prop_assert_eq!(twice.iter().collect::<Vec<_>>(), doubled);
        }
    }

    #[test]
    fn edges() {
        assert_eq!([0, 1, 255, 256, 257, 258].map(bin), [0, 1, 255, 256, 256, 257]);
        assert_eq!((middle(256), middle(255), bin(u64::MAX)), (257, 255, 7423));
    }
}
