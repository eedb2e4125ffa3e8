//! Which pages hold data now, and since when.
//!
//! Invariant: memory follows the pages that are written, 24 bytes each (and a third more in a
//! sample), never the number of writes.

use std::collections::HashMap;

use crate::mix::{Mixed, mixed};

/// Pages of a piece: small, since traces of large drives touch few pages here and there.
const PIECE: u64 = 64;
/// Of a group whose data are gone; numbers of groups are smaller.
const DEAD: u32 = 1 << 31;
/// The group of a page that was never written.
const NOBODY: u32 = u32::MAX;

/// A page of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Page {
    pub device: u16,
    pub number: u64,
}

impl Page {
    /// Pages have less than 55 bits, numbers of pieces hence less than 49; a device has 16.
    fn piece(self) -> u64 {
        u64::from(self.device).rotate_right(16) ^ (self.number / PIECE)
    }

    pub fn hash(self) -> u64 {
        mixed(u64::from(self.device).rotate_right(16) ^ self.number)
    }
}

/// When the data of a page was written, and who counts it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Birth {
    /// Bytes that the host had written to the device before.
    pub clock: u64,
    /// Nanoseconds.
    pub time: u64,
    pub group: u32,
    /// How often the page was written; kept in samples only.
    pub writes: u32,
}

const NONE: Birth = Birth { clock: 0, time: 0, group: NOBODY, writes: 0 };

impl Birth {
    fn held(self) -> Option<Birth> {
        (self.group & DEAD == 0).then_some(self)
    }
}

/// Every page, or a sample of them.
pub(crate) enum Pages {
    All(Pieces),
    Sample { one_in: u64, pages: HashMap<(u16, u64), Birth> },
}

#[derive(Default)]
pub(crate) struct Pieces {
    index: HashMap<u64, u32, Mixed>,
    pieces: Vec<[Birth; PIECE as usize]>,
    /// The piece that was looked up last: most writes go on where one ended.
    last: Option<(u64, u32)>,
}

impl Pieces {
    fn find(&mut self, key: u64) -> Option<u32> {
        match self.last {
            Some((last, at)) if last == key => Some(at),
            _ => {
                let at = *self.index.get(&key)?;
                self.last = Some((key, at));
                Some(at)
            }
        }
    }

    fn piece(&mut self, key: u64) -> &mut [Birth; PIECE as usize] {
        let at = self.find(key).unwrap_or_else(|| {
            let at = self.pieces.len() as u32;
            self.pieces.push([NONE; PIECE as usize]);
            self.index.insert(key, at);
            self.last = Some((key, at));
            at
        });
        &mut self.pieces[at as usize]
    }
}

impl Pages {
    pub fn new(one_in: u32) -> Pages {
        match one_in {
            1 => Pages::All(Pieces::default()),
            _ => Pages::Sample { one_in: one_in.into(), pages: HashMap::new() },
        }
    }

    /// Bytes of memory, nearly.
    pub fn memory(&self) -> u64 {
        match self {
            Pages::All(pieces) => {
                pieces.pieces.len() as u64 * (PIECE * size_of::<Birth>() as u64 + 40)
            }
            Pages::Sample { pages, .. } => pages.capacity() as u64 * 48,
        }
    }

    /// Data are written to `count` pages from `first`; `died` gets what was there, and how many
    /// pages of it in a row. Returns how many of the pages are followed.
    #[inline]
    pub fn write(
        &mut self,
        first: Page,
        count: u64,
        birth: Birth,
        mut died: impl FnMut(Birth, u64),
    ) -> u64 {
        let end = first.number.saturating_add(count);
        match self {
            Pages::All(pieces) => {
                let mut number = first.number;
                while number < end {
                    let piece = pieces.piece(Page { number, ..first }.piece());
                    let stop = end.min((number / PIECE + 1) * PIECE);
                    let within = (number % PIECE) as usize;
                    let length = (stop - number) as usize;
                    let slots = &mut piece[within..within + length];
                    for run in slots.chunk_by(|a, b| a == b) {
                        if let Some(before) = run[0].held() {
                            died(before, run.len() as u64);
                        }
                    }
                    slots.fill(birth);
                    number = stop;
                }
                count
            }
            Pages::Sample { one_in, pages } => {
                let mut followed = 0;
                for number in first.number..end {
                    if !(Page { number, ..first }).hash().is_multiple_of(*one_in) {
                        continue;
                    }
                    followed += 1;
                    let slot = pages.entry((first.device, number)).or_insert(NONE);
                    let writes = slot.writes.saturating_add(1);
                    let before = std::mem::replace(slot, Birth { writes, ..birth });
                    before.held().into_iter().for_each(|before| died(before, 1));
                }
                followed
            }
        }
    }

    /// The data of `count` pages from `first` are gone.
    pub fn discard(&mut self, first: Page, count: u64, mut died: impl FnMut(Birth, u64)) {
        let end = first.number.saturating_add(count);
        let mut take = |slot: &mut Birth| {
            slot.held().into_iter().for_each(|before| died(before, 1));
            slot.group |= DEAD;
        };
        match self {
            Pages::All(pieces) => {
                let keys = first.number / PIECE..end.div_ceil(PIECE);
                let span = keys.end.saturating_sub(keys.start);
                let mut one = |number: u64, piece: &mut [Birth; PIECE as usize]| {
                    for (slot, page) in piece.iter_mut().zip(number * PIECE..) {
                        if (first.number..end).contains(&page) {
                            take(slot);
                        }
                    }
                };
                // a device is often discarded whole, and holds few of the pieces
                if span > pieces.index.len() as u64 {
                    let device = Page { number: 0, ..first }.piece();
                    for (key, at) in &pieces.index {
                        let number = key ^ device;
                        if keys.contains(&number) {
                            one(number, &mut pieces.pieces[*at as usize]);
                        }
                    }
                    return;
                }
                for number in keys {
                    let key = Page { number: number * PIECE, ..first }.piece();
                    if let Some(at) = pieces.find(key) {
                        one(number, &mut pieces.pieces[at as usize]);
                    }
                }
            }
            Pages::Sample { pages, .. } if count > pages.len() as u64 => {
                for ((device, number), slot) in pages {
                    if *device == first.device && (first.number..end).contains(number) {
                        take(slot);
                    }
                }
            }
            Pages::Sample { pages, .. } => {
                for number in first.number..end {
                    pages.get_mut(&(first.device, number)).into_iter().for_each(&mut take);
                }
            }
        }
    }

    /// What is alive, with the device it is on.
    pub fn alive(&self) -> Box<dyn Iterator<Item = (u16, Birth)> + '_> {
        match self {
            Pages::All(pieces) => Box::new(pieces.index.iter().flat_map(|(key, at)| {
                let device = (key >> 48) as u16;
                let piece = pieces.pieces[*at as usize].iter();
                piece.filter_map(move |birth| Some((device, birth.held()?)))
            })),
            Pages::Sample { pages, .. } => Box::new(
                pages.iter().filter_map(|((device, _), birth)| Some((*device, birth.held()?))),
            ),
        }
    }

    /// By whom each page of a sample was written last, and how often; nothing if all are followed.
    pub fn writes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pages = match self {
            Pages::All(_) => None,
            Pages::Sample { pages, .. } => Some(pages),
        };
        let pages = pages.into_iter().flat_map(|pages| pages.values());
        pages.map(|birth| (birth.group & !DEAD, birth.writes))
    }
}
