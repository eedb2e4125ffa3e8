//! Collection: make room, relocate what is valid, erase.
//!
//! Invariants:
//! - a victim is chosen when T pages are closed: with several frontiers when a frontier of the host
//!   needs an RU while N = T/P are closed, until fewer are; with a single one, where it makes no
//!   other difference, at exactly T pages written, whole RUs or not;
//! - relocation keeps the order of pages;
//! - a victim's pages go to one frontier, unless they are placed by their time of death.
//!
//! Why a frontier that is opened always finds a free RU, of ⌈T/P⌉ + F. It is not open itself, so at
//! most F − 1 are. Several frontiers: the host opens when at most N − 1 are closed; during a
//! collection at most N are, or N + 1 if the frontier has just been closed by it, and then the
//! host's, which waits, is not open either. A single one: fewer than T + P pages are written, hence
//! at most ⌈T/P⌉ closed. If no closed RU has a dead page the host goes on (all are in the open RU);
//! closed RUs then hold at most U < T pages, and two are free.

use crate::Error;
use crate::ftl::Ftl;
use crate::mem;
use crate::victim::View;

const AHEAD: usize = 32;

impl Ftl {
    /// Collects until there is space, and gives `frontier` room for a page.
    #[cold]
    #[inline(never)]
    pub fn make_room(&mut self, frontier: usize) -> Result<(), Error> {
        let full = self.layout.ru_pages;
        while self.is_full() && self.valid.emptiest().is_some_and(|(_, valid)| valid < full) {
            self.collect()?;
        }
        if self.frontiers[frontier].room() == 0 {
            self.open(frontier);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        if self.layout.frontiers == 1 {
            self.written >= self.layout.net_pages
        } else {
            u64::from(self.closed) * u64::from(self.layout.ru_pages) >= self.layout.net_pages
        }
    }

    fn collect(&mut self) -> Result<(), Error> {
        let view = View {
            layout: &self.layout,
            valid: &self.valid,
            pool: &self.pool,
            closed_at: &self.closed_at,
            now: self.host,
            flows: &self.flows,
            frontiers: &self.frontiers,
        };
        let picked = self.rule.pick(&view);
        let victim = picked.ok_or(Error::NoVictim { rule: self.rule_name })?;
        let size = self.layout.ru_pages;
        let count = self.gather(victim, size as usize);

        let collected = &mut self.collected;
        collected.erases += 1;
        collected.copied += count as u64;
        let ratio = count as f64 / f64::from(size);
        collected.ratio_sum += ratio;
        collected.ratio_bins[((ratio * 20.0) as usize).min(19)] += 1;
        let from = usize::from(self.pool[victim as usize]);
        self.flows[from].moved_out += count as u64;
        self.flows[from].erased += 1;

        if self.deaths.is_empty() {
            let to = usize::from(self.relocate_to[usize::from(self.filled_by[victim as usize])]);
            self.relocate(to, count);
        } else {
            self.relocate_by_death(count);
        }

        self.valid.free(victim);
        self.closed -= 1;
        self.written -= u64::from(size);
        self.free.push_back(victim);
        Ok(())
    }

    /// Puts the victim's valid pages (and their tags and deaths) into the scratch; returns how
    /// many there are. Without a branch on validity, which would be mispredicted at every change.
    #[inline(never)]
    fn gather(&mut self, victim: u32, size: usize) -> usize {
        let start = victim as usize * self.layout.ru_pages as usize;
        let word = ((victim << self.layout.shift) >> 6) as usize;
        let live = &self.live[word..word + size.div_ceil(64)];
        let count = compact(&self.p2l[start..start + size], live, &mut self.scratch);
        if !self.tags.is_empty() {
            compact(&self.tags[start..start + size], live, &mut self.scratch_tags);
            for &tag in &self.scratch_tags[..count] {
                self.collected.copied_by_tag[usize::from(tag)] += 1;
            }
        }
        if !self.deaths.is_empty() {
            self.scratch_deaths.resize(self.scratch.len(), 0);
            compact(&self.deaths[start..start + size], live, &mut self.scratch_deaths);
        }
        count
    }

    /// Writes the scratch's first `count` pages to frontier `to`, opening RUs as needed.
    #[inline(never)]
    fn relocate(&mut self, to: usize, count: usize) {
        self.flows[usize::from(self.pool_of[to])].moved_in += count as u64;
        let mut done = 0;
        while done < count {
            if self.frontiers[to].room() == 0 {
                self.open(to);
            }
            let open = self.frontiers[to];
            let n = open.room().min(count - done);
            let pages = &self.scratch[done..done + n];
            let ahead = &self.scratch[count.min(done + AHEAD)..count];
            self.p2l[open.index..open.index + n].copy_from_slice(pages);
            if !self.tags.is_empty() {
                self.tags[open.index..open.index + n]
                    .copy_from_slice(&self.scratch_tags[done..done + n]);
            }
            let l2p = &mut self.l2p[..];
            for (i, (&page, address)) in pages.iter().zip(open.next..).enumerate() {
                if let Some(&page) = ahead.get(i) {
                    mem::prefetch(l2p, page as usize);
                }
                l2p[page as usize] = address;
            }
            self.moved_on(to, n);
            done += n;
        }
    }

    fn relocate_by_death(&mut self, count: usize) {
        for i in 0..count {
            let death = self.scratch_deaths[i];
            let to = self.stream_for(death, self.clock);
            self.flows[usize::from(self.pool_of[to])].moved_in += 1;
            if self.frontiers[to].room() == 0 {
                self.open(to);
            }
            let open = self.frontiers[to];
            let page = self.scratch[i];
            self.p2l[open.index] = page;
            self.deaths[open.index] = death;
            if !self.tags.is_empty() {
                self.tags[open.index] = self.scratch_tags[i];
            }
            self.l2p[page as usize] = open.next;
            self.moved_on(to, 1);
        }
    }

    /// The stream for data that die at `death` on the clock of host pages; `u32::MAX` is never.
    pub fn stream_for(&self, death: u32, now: u64) -> usize {
        if death == u32::MAX {
            return self.horizons.len();
        }
        let remaining = u64::from(death).saturating_sub(now);
        self.horizons.partition_point(|&bound| bound <= remaining)
    }
}

/// Moves the entries whose bit is set to the front of `into`, which has room for all and one more;
/// returns how many there are.
#[inline(always)]
fn compact<T: Copy>(from: &[T], live: &[u64], into: &mut [T]) -> usize {
    let mut count = 0;
    for (chunk, &word) in from.chunks(64).zip(live) {
        for (i, &entry) in chunk.iter().enumerate() {
            if let Some(slot) = into.get_mut(count) {
                *slot = entry;
            }
            count += (word >> i & 1) as usize;
        }
    }
    count
}
