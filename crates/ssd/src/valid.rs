//! Valid pages per reclaim unit, and the emptiest closed one.
//!
//! Invariant: `low[g]` is never above the smallest key of group `g`, and equal to it whenever a
//! closed RU is in the group; so the emptiest closed RU is found by looking at one key per group and
//! then at one group. A closed RU's key is its count of valid pages; an open one's is that plus
//! [`OPEN`]; a free one's is [`FREE`]. While open, an RU counts pages not yet written as valid, so
//! that closing changes nothing but the mark.
//!
//! Counts of closed RUs only fall, which is why a running minimum is exact; it costs one compare
//! per overwrite. A bucket queue (what was tried: `docs/design/simulator.md`) costs six dependent
//! accesses per overwrite to save some of this scan.

/// Mark of an open RU, above every count.
pub(crate) const OPEN: u32 = 1 << 30;
/// Key of a free RU.
pub(crate) const FREE: u32 = u32::MAX;

const GROUP_BITS: u32 = 6;
const GROUP: usize = 1 << GROUP_BITS;

/// Keys of all RUs.
#[derive(Clone, Debug)]
pub(crate) struct Valid {
    keys: Vec<u32>,
    low: Vec<u32>,
}

impl Valid {
    pub fn new(rus: u32) -> Valid {
        let n = rus as usize;
        Valid { keys: vec![FREE; n], low: vec![FREE; n.div_ceil(GROUP)] }
    }

    /// One page of the RU is dead. Returns `false` if there is no such RU (the page was not on
    /// flash).
    #[inline(always)]
    pub fn kill(&mut self, ru: usize) -> bool {
        let Some(key) = self.keys.get_mut(ru) else { return false };
        *key -= 1;
        let key = *key;
        // The group exists whenever the key does; `get_mut` avoids a second panic path.
        if let Some(low) = self.low.get_mut(ru >> GROUP_BITS) {
            *low = key.min(*low);
        }
        true
    }

    pub fn open(&mut self, ru: u32, pages: u32) {
        self.keys[ru as usize] = OPEN + pages;
    }

    pub fn close(&mut self, ru: u32) {
        let key = &mut self.keys[ru as usize];
        *key -= OPEN;
        let low = &mut self.low[ru as usize >> GROUP_BITS];
        *low = (*low).min(*key);
    }

    pub fn free(&mut self, ru: u32) {
        self.keys[ru as usize] = FREE;
        let group = ru as usize >> GROUP_BITS;
        let end = self.keys.len().min((group + 1) << GROUP_BITS);
        self.low[group] = smallest(&self.keys[group << GROUP_BITS..end]);
    }

    /// Valid pages of an RU that is not free.
    pub fn count(&self, ru: u32) -> u32 {
        self.keys[ru as usize] & (OPEN - 1)
    }

    /// Keys by RU: below [`OPEN`] for closed RUs.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// The closed RU with the fewest valid pages, the lowest-numbered among equals, with its count.
    pub fn emptiest(&self) -> Option<(u32, u32)> {
        let least = smallest(&self.low);
        if least >= OPEN {
            return None;
        }
        let group = self.low.iter().position(|&low| low == least)?;
        let start = group << GROUP_BITS;
        let end = self.keys.len().min(start + GROUP);
        let at = self.keys[start..end].iter().position(|&key| key == least)?;
        Some(((start + at) as u32, least))
    }
}

fn smallest(keys: &[u32]) -> u32 {
    keys.iter().fold(FREE, |least, &key| least.min(key))
}
