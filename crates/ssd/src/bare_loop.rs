//! The yardstick of `benches/speed.rs`: the map accesses of a simulation and nothing else; and the
//! crate's prefetch and allocation for `benches/variants.rs`, which tries other inner loops.
//!
//! Invariant: per host page it makes one random number, and 1 + WAF read-modify-writes at random
//! places of a map as large as the simulator's, prefetched in the same way. It lives in the crate
//! because it must use the very prefetch that the simulator uses.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::mem;

const BATCH: usize = 1024;
const AHEAD: usize = 32;

/// The prefetch of the simulator, for the benches.
#[inline(always)]
pub fn prefetch(map: &[u32], index: usize) {
    mem::prefetch(map, index);
}

/// A map on huge pages, for the benches.
pub fn huge_map(len: usize, value: u32) -> Vec<u32> {
    mem::map(len, value).unwrap_or_default()
}

/// A map, and places to go to for a victim's pages.
pub struct Map {
    entries: Vec<u32>,
    /// What stands for the reverse map: read in order, with random content.
    places: Vec<u32>,
    at: usize,
    rng: Pcg64Mcg,
}

impl Map {
    /// A map of `pages` entries.
    pub fn new(pages: usize) -> Map {
        let mut rng = Pcg64Mcg::seed_from_u64(2);
        let mut places = huge_map(pages.max(BATCH + AHEAD), 0);
        for place in &mut places {
            *place = below(rng.next_u64(), pages);
        }
        Map { entries: huge_map(pages, 0), places, at: 0, rng }
    }

    /// Does the accesses of `host` page writes at amplification `waf`; returns something to use.
    pub fn run(&mut self, host: u64, waf: f64) -> u32 {
        let per_batch = (BATCH as f64 * waf) as usize;
        let mut pages = [0_u32; BATCH];
        let mut sum = 0;
        for _ in 0..host / BATCH as u64 {
            for page in &mut pages {
                *page = below(self.rng.next_u64(), self.entries.len());
            }
            sum ^= touch(&mut self.entries, &pages);
            if self.at + per_batch > self.places.len() {
                self.at = 0;
            }
            let end = self.places.len().min(self.at + per_batch);
            sum ^= touch(&mut self.entries, &self.places[self.at..end]);
            self.at = end;
        }
        sum
    }
}

#[inline(never)]
fn touch(entries: &mut [u32], pages: &[u32]) -> u32 {
    let ahead = &pages[pages.len().min(AHEAD)..];
    let mut sum = 0;
    for (i, &page) in pages.iter().enumerate() {
        if let Some(&page) = ahead.get(i) {
            mem::prefetch(entries, page as usize);
        }
        let entry = &mut entries[page as usize];
        sum ^= *entry;
        *entry = entry.wrapping_add(1);
    }
    sum
}

#[inline(always)]
fn below(bits: u64, bound: usize) -> u32 {
    ((u128::from(bits) * bound as u128) >> 64) as u32
}
