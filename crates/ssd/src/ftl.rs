//! The flash translation layer: maps, write frontiers, and the path of a host write.
//!
//! Invariants:
//! - `l2p[page]` is the address of the page's data (`ru << shift | offset`), or an address of no RU
//!   (unmapped, or in the write buffer);
//! - `p2l` holds, by RU and offset, the page that was written there, dead or alive;
//! - bit `address` of `live` is set while the RU is open or closed and that address is not known to
//!   be dead. An open RU's unwritten addresses count as live, so that an overwrite has the same
//!   work to do wherever its old copy lies;
//! - `closed` RUs are closed, and `written` pages are in RUs that are not erased.
//!
//! Collection is in `gc.rs`. What bounds this loop is written in `docs/design/simulator.md`.

use std::collections::VecDeque;

use crate::Error;
use crate::config::Config;
use crate::geometry::{Frontier, Isolation, Layout};
use crate::mem;
use crate::valid::Valid;
use crate::victim::{Flow, VictimRule};

/// Map entry of a page that was never written, or trimmed.
pub(crate) const UNMAPPED: u32 = u32::MAX;

/// How many writes ahead the map entry is prefetched: the latency of a shared cache or of memory
/// divided by the time of a write, with room; 16 to 64 measured alike.
const AHEAD: usize = 32;

/// Runs shorter than this are written page by page: setting up a segment costs more.
const SHORT_RUN: usize = 12;

/// Consecutive pages of a batch that go to one stream and carry one tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// One past the run's last page in the batch.
    pub end: usize,
    pub stream: u8,
    pub tag: u8,
}

/// An open RU, or none if there is no room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Open {
    /// Address of the next page to write.
    pub next: u32,
    /// One past the RU's last address.
    pub end: u32,
    /// Index of `next` in `p2l`.
    pub index: usize,
    pub ru: u32,
}

impl Open {
    pub fn room(&self) -> usize {
        (self.end - self.next) as usize
    }
}

/// What collections did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    pub erases: u64,
    pub copied: u64,
    /// Σ of victims' valid ratios.
    pub ratio_sum: f64,
    /// Victims by valid ratio, in twentieths.
    pub ratio_bins: [u64; 20],
    /// By tag; empty unless tags are kept.
    pub copied_by_tag: Vec<u64>,
}

pub(crate) struct Ftl {
    pub layout: Layout,
    pub l2p: Vec<u32>,
    pub p2l: Vec<u32>,
    pub live: Vec<u64>,
    pub valid: Valid,
    pub frontiers: Vec<Open>,
    /// Frontier that takes a victim's pages, by the victim's frontier.
    pub relocate_to: Vec<u8>,
    /// Pool by frontier: persistently isolated streams keep host and relocated data in one.
    pub pool_of: Vec<u8>,
    /// Frontier that filled each RU.
    pub filled_by: Vec<u8>,
    /// Pool of each RU.
    pub pool: Vec<u8>,
    pub closed_at: Vec<u64>,
    /// Free RUs, first erased first used.
    pub free: VecDeque<u32>,
    pub closed: u32,
    /// Pages written and not erased.
    pub written: u64,
    /// Host pages written to flash.
    pub host: u64,
    pub flows: Vec<Flow>,
    pub collected: Collected,
    pub rule: Box<dyn VictimRule>,
    pub rule_name: &'static str,
    /// Tag of each physical page, by index; empty until a second tag is seen.
    pub tags: Vec<u8>,
    /// Time of death of each physical page, by index; empty unless placed by it.
    pub deaths: Vec<u32>,
    /// Ascending bounds of remaining lifetime between streams, in host pages.
    pub horizons: Vec<u64>,
    /// Host pages submitted: the clock of `deaths`.
    pub clock: u64,
    pub scratch: Vec<u32>,
    pub scratch_tags: Vec<u8>,
    pub scratch_deaths: Vec<u32>,
}

impl Ftl {
    pub fn new(config: &Config, horizons: Option<Vec<u64>>) -> Result<Ftl, Error> {
        let mut layout = config.geometry.layout()?;
        if horizons.is_some() {
            // One victim may then fill every frontier, each of which needs another RU.
            layout.rus += layout.frontiers;
        }
        let (rus, frontiers) = (layout.rus as usize, layout.frontiers as usize);
        let streams = config.geometry.streams as usize;
        let physical = layout.rus as usize * layout.ru_pages as usize;
        let isolation = config.geometry.isolation;
        let separate = config.geometry.frontier == Frontier::Separate;
        let relocate_to = (0..frontiers).map(|f| match (isolation, separate) {
            (Isolation::Initial, true) => streams,
            (Isolation::Initial, false) => 0,
            (Isolation::Persistent, true) => streams + f % streams,
            (Isolation::Persistent, false) => f,
        });
        let pool_of = (0..frontiers).map(|f| match isolation {
            Isolation::Initial => f,
            Isolation::Persistent => f % streams,
        });
        let pools = match (isolation, separate) {
            (Isolation::Initial, true) => streams + 1,
            _ => streams,
        };
        let addresses = (layout.rus as usize) << layout.shift;
        let no_memory = || Error::Memory { pages: layout.logical_pages };
        Ok(Ftl {
            l2p: mem::map(layout.logical_pages as usize, UNMAPPED).ok_or_else(no_memory)?,
            p2l: mem::map(physical, UNMAPPED).ok_or_else(no_memory)?,
            live: vec![0; addresses / 64],
            valid: Valid::new(layout.rus),
            frontiers: vec![Open::default(); frontiers],
            // A frontier's number fits a byte: at most 2 × 128.
            relocate_to: relocate_to.map(|f| f as u8).collect(),
            pool_of: pool_of.map(|p| p as u8).collect(),
            filled_by: vec![0; rus],
            pool: vec![0; rus],
            closed_at: vec![0; rus],
            free: (0..layout.rus).collect(),
            closed: 0,
            written: 0,
            host: 0,
            flows: vec![Flow::default(); pools],
            collected: Collected::default(),
            rule: config.victim.rule(),
            rule_name: config.victim.name(),
            tags: Vec::new(),
            deaths: if horizons.is_some() { vec![0; physical] } else { Vec::new() },
            horizons: horizons.unwrap_or_default(),
            clock: 0,
            scratch: vec![0; layout.ru_pages as usize + 1],
            scratch_tags: Vec::new(),
            scratch_deaths: Vec::new(),
            layout,
        })
    }

    /// Begins to keep the tag of every page; pages written before have tag 0.
    pub fn keep_tags(&mut self) {
        if self.tags.is_empty() {
            self.tags = vec![0; self.p2l.len()];
            self.scratch_tags = vec![0; self.scratch.len()];
            self.collected.copied_by_tag = vec![0; 256];
            self.collected.copied_by_tag[0] = self.collected.copied;
        }
    }

    /// Bytes of the maps and of what grows with them.
    pub fn memory_bytes(&self) -> u64 {
        let pages = 4 * (self.l2p.len() + self.p2l.len() + self.deaths.len()) + self.tags.len();
        let per_ru =
            2 * self.valid.keys().len() * 4 + self.closed_at.len() * 8 + self.pool.len() * 2;
        (pages + self.live.len() * 8 + per_ru + self.scratch.len() * 4) as u64
    }

    /// Writes a batch of pages, all below `logical_pages`, run by run. `deaths` is empty or has one
    /// entry per page.
    pub fn write(&mut self, batch: &[u32], runs: &[Run], deaths: &[u32]) -> Result<(), Error> {
        let mut at = 0;
        for run in runs {
            let stream = usize::from(run.stream);
            if run.end - at < SHORT_RUN || !deaths.is_empty() {
                while at < run.end {
                    if let Some(&page) = batch.get(at + AHEAD) {
                        mem::prefetch(&self.l2p, page as usize);
                    }
                    if self.room(stream) == 0 {
                        self.make_room(stream)?;
                    }
                    let death = deaths.get(at).copied();
                    self.write_one(stream, batch[at], run.tag, death);
                    at += 1;
                }
            }
            while at < run.end {
                if self.room(stream) == 0 {
                    self.make_room(stream)?;
                }
                let n = self.room(stream).max(1).min(run.end - at);
                self.write_segment(stream, batch, at, n, run.tag);
                at += n;
            }
        }
        Ok(())
    }

    /// Writes `batch[at..at + n]` to a frontier that has room for it. The hot loop.
    #[inline(never)]
    fn write_segment(&mut self, stream: usize, batch: &[u32], at: usize, n: usize, tag: u8) {
        let open = self.frontiers[stream];
        let pages = &batch[at..at + n];
        let ahead = &batch[batch.len().min(at + AHEAD)..];
        self.p2l[open.index..open.index + n].copy_from_slice(pages);
        if !self.tags.is_empty() {
            self.tags[open.index..open.index + n].fill(tag);
        }
        let shift = self.layout.shift;
        let (l2p, valid, live) = (&mut self.l2p[..], &mut self.valid, &mut self.live[..]);
        for (i, (&page, address)) in pages.iter().zip(open.next..).enumerate() {
            if let Some(&page) = ahead.get(i) {
                mem::prefetch(l2p, page as usize);
            }
            let old = std::mem::replace(&mut l2p[page as usize], address);
            kill(valid, live, shift, old);
        }
        self.advance(stream, n);
    }

    fn write_one(&mut self, stream: usize, page: u32, tag: u8, death: Option<u32>) {
        let open = self.frontiers[stream];
        self.p2l[open.index] = page;
        if let Some(slot) = self.tags.get_mut(open.index) {
            *slot = tag;
        }
        if let (Some(slot), Some(death)) = (self.deaths.get_mut(open.index), death) {
            *slot = death;
        }
        let old = std::mem::replace(&mut self.l2p[page as usize], open.next);
        kill(&mut self.valid, &mut self.live, self.layout.shift, old);
        self.advance(stream, 1);
    }

    /// Pages the host may write to a frontier before something has to be done.
    #[inline(always)]
    fn room(&self, stream: usize) -> usize {
        let room = self.frontiers[stream].room();
        if self.layout.frontiers > 1 {
            return room;
        }
        room.min(self.layout.net_pages.saturating_sub(self.written) as usize)
    }

    fn advance(&mut self, stream: usize, n: usize) {
        self.host += n as u64;
        self.flows[usize::from(self.pool_of[stream])].host += n as u64;
        self.moved_on(stream, n);
    }

    /// Takes `n` pages of room off a frontier, and closes its RU when none is left.
    pub fn moved_on(&mut self, frontier: usize, n: usize) {
        let open = &mut self.frontiers[frontier];
        self.written += n as u64;
        open.next += n as u32;
        open.index += n;
        if open.room() == 0 {
            let ru = open.ru;
            self.valid.close(ru);
            self.closed_at[ru as usize] = self.host;
            self.closed += 1;
            self.rule.closed(ru, self.pool[ru as usize]);
        }
    }

    /// Forgets a page: its data are dead and no longer found.
    pub fn unmap(&mut self, page: u32, to: u32) -> u32 {
        let old = std::mem::replace(&mut self.l2p[page as usize], to);
        kill(&mut self.valid, &mut self.live, self.layout.shift, old);
        old
    }

    /// The first address that no RU has: where the write buffer's slots begin.
    pub fn beyond(&self) -> u32 {
        self.layout.rus << self.layout.shift
    }

    /// Opens a free RU as `frontier`.
    pub fn open(&mut self, frontier: usize) {
        // `gc.rs` says why.
        let ru = self.free.pop_front().expect("an RU is free whenever a frontier is opened");
        let size = self.layout.ru_pages;
        let next = ru << self.layout.shift;
        self.valid.open(ru, size);
        let word = (next >> 6) as usize;
        let words = &mut self.live[word..word + (size as usize).div_ceil(64)];
        words.fill(u64::MAX);
        if let (Some(last), true) = (words.last_mut(), !size.is_multiple_of(64)) {
            *last = (1 << (size % 64)) - 1;
        }
        self.filled_by[ru as usize] = frontier as u8;
        self.pool[ru as usize] = self.pool_of[frontier];
        self.frontiers[frontier] =
            Open { next, end: next + size, index: ru as usize * self.layout.ru_pages as usize, ru };
    }
}

/// The data at `address` are dead; nothing happens if no RU has that address.
#[inline(always)]
fn kill(valid: &mut Valid, live: &mut [u64], shift: u32, address: u32) {
    if valid.kill((address >> shift) as usize)
        && let Some(word) = live.get_mut((address >> 6) as usize)
    {
        *word &= !(1 << (address & 63));
    }
}
