//! Which pages a trace touches, and a place for each on a drive that has no more than these.
//!
//! Invariant: pages keep their order when they are moved together, and neighbours that are both
//! touched stay neighbours, so that a range of a write remains one range.

use std::collections::{HashMap, HashSet};

use shelflife_lifetime::Lifetime;
use shelflife_ssd::Kind;
use shelflife_trace::{Batch, Event, Op, Trace};

use crate::Error;

/// Pages of a piece: small, since traces of large drives touch few pages here and there.
const PIECE: u64 = 512;
const WORDS: usize = (PIECE / 64) as usize;

/// The pages of an event, first and one past the last, and what is done to them: a write grows to whole
/// pages, a discard shrinks.
pub fn span(event: &Event, page_bytes: u32) -> (u64, u64, Kind) {
    let size = u64::from(page_bytes.max(1));
    let whole = (event.offset.div_ceil(size), event.end() / size);
    match event.op {
        Op::Write => {
            let (first, pages) = event.pages(size);
            (first, first + pages, Kind::Write)
        }
        Op::Discard => (whole.0, whole.1, Kind::Trim),
        Op::WriteZeroes => (whole.0, whole.1, Kind::WriteZeroes),
    }
}

/// What a trace writes, counted in pages of one size.
#[derive(Debug, Default)]
pub struct Touched {
    /// Events, of whatever kind.
    pub events: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Page writes.
    pub written: u64,
    /// Different pages written.
    pub pages: u64,
    /// Of these, not discarded when the trace ends.
    pub alive: u64,
    /// One past the last page written.
    pub end: u64,
    /// Whether any write carries a hint.
    pub hinted: bool,
    /// By number of piece, in order: how many touched pages lie before, and its bits.
    pieces: Vec<(u64, u64, [u64; WORDS])>,
}

/// Bits of the pages of a piece.
#[derive(Clone, Copy, Default)]
struct Piece {
    touched: [u64; WORDS],
    alive: [u64; WORDS],
}

impl Piece {
    /// Of page `page` of a device: its word, and its bit there.
    fn at(page: u64) -> (usize, u64) {
        ((page % PIECE / 64) as usize, 1 << (page % 64))
    }

    /// Pages from `first` to before `end`, as far as they lie in piece `number`, are dead.
    fn forget(&mut self, number: u64, first: u64, end: u64) {
        let start = number * PIECE;
        for page in first.max(start)..end.min(start + PIECE) {
            let (word, bit) = Piece::at(page);
            self.alive[word] &= !bit;
        }
    }
}

fn count(bits: &[u64; WORDS]) -> u64 {
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

impl Touched {
    /// Reads all of `trace` in pages of `page_bytes`; `seen` is told how many events there were so
    /// far, and whether to go on is its answer.
    ///
    /// # Errors
    ///
    /// [`Error::NoWrites`], [`Error::Devices`], [`Error::TooManyPages`], [`Error::Trace`] if the trace
    /// cannot be read or `seen` said no ([`shelflife_trace::Error::Stopped`]).
    pub fn read(
        trace: &Trace,
        page_bytes: u32,
        seen: &dyn Fn(u64) -> bool,
    ) -> Result<Touched, Error> {
        let mut touched = Touched { page_bytes, ..Touched::default() };
        let (mut pieces, mut devices) = (HashMap::<u64, Piece>::new(), HashSet::new());
        let mut events = trace.events().without_processes();
        let mut batch = Batch::default();
        while events.read(&mut batch)? {
            for event in batch.iter() {
                devices.insert(event.device);
                let (first, end, kind) = span(&event, page_bytes);
                match kind {
                    Kind::Write => touched.add(&event, (first, end), &mut pieces)?,
                    _ => forget((first, end), &mut pieces),
                }
            }
            touched.events += batch.len() as u64;
            if !seen(touched.events) {
                return Err(shelflife_trace::Error::Stopped.into());
            }
        }
        if devices.len() > 1 {
            return Err(Error::Devices { devices: devices.len() });
        }
        if touched.written == 0 {
            return Err(Error::NoWrites);
        }
        touched.alive = pieces.values().map(|piece| count(&piece.alive)).sum();
        let bits = pieces.into_iter().map(|(number, piece)| (number, 0, piece.touched));
        touched.pieces = bits.collect();
        touched.pieces.sort_unstable_by_key(|piece| piece.0);
        let mut before = 0;
        for piece in &mut touched.pieces {
            piece.1 = before;
            before += count(&piece.2);
        }
        Ok(touched)
    }

    fn add(
        &mut self,
        event: &Event,
        (first, end): (u64, u64),
        pieces: &mut HashMap<u64, Piece>,
    ) -> Result<(), Error> {
        self.written += end - first;
        self.end = self.end.max(end);
        self.hinted |= event.hint != Lifetime::NotSet;
        let mut page = first;
        while page < end {
            let stop = end.min((page / PIECE + 1) * PIECE);
            let piece = pieces.entry(page / PIECE).or_default();
            for page in page..stop {
                let (word, bit) = Piece::at(page);
                self.pages += u64::from(piece.touched[word] & bit == 0);
                piece.touched[word] |= bit;
                piece.alive[word] |= bit;
            }
            page = stop;
        }
        if self.pages >= u64::from(u32::MAX) {
            return Err(Error::TooManyPages { pages: self.pages, page_bytes: self.page_bytes });
        }
        Ok(())
    }

    /// How many touched pages lie before `page`: where it is when they are moved together.
    pub fn rank(&self, page: u64) -> u64 {
        let at = self.pieces.partition_point(|piece| piece.0 < page / PIECE);
        match self.pieces.get(at) {
            None => self.pages,
            Some((number, before, _)) if *number > page / PIECE => *before,
            Some((_, before, bits)) => {
                let word = (page % PIECE / 64) as usize;
                let whole: u32 = bits[..word].iter().map(|word| word.count_ones()).sum();
                let part = bits[word] & ((1 << (page % 64)) - 1);
                before + u64::from(whole + part.count_ones())
            }
        }
    }
}

/// The pages of a discard are dead.
fn forget((first, end): (u64, u64), pieces: &mut HashMap<u64, Piece>) {
    if first >= end {
        return;
    }
    let numbers = first / PIECE..=(end - 1) / PIECE;
    if numbers.end() - numbers.start() >= pieces.len() as u64 {
        // a whole device may be discarded: no more work than there are pieces
        pieces.iter_mut().for_each(|(number, piece)| piece.forget(*number, first, end));
        return;
    }
    for number in numbers {
        if let Some(piece) = pieces.get_mut(&number) {
            piece.forget(number, first, end);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use shelflife_trace::{Device, Meta, TraceWriter};

    use super::*;

    pub(crate) fn trace(folder: &std::path::Path, events: &[Event]) -> Trace {
        let devices = vec![Device::new("a", None), Device::new("b", None)];
        let place = folder.join("t");
        let mut writer = TraceWriter::create(&place, Meta::new("import", devices)).unwrap();
        events.iter().for_each(|event| writer.push(event).unwrap());
        writer.finish().unwrap();
        Trace::open(&place).unwrap()
    }

    fn write(page: u64, pages: u64) -> Event {
        Event { offset: page * 4096, length: pages * 4096, ..Event::default() }
    }

    #[test]
    fn touched_pages_are_moved_together_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let events = [write(1 << 40, 1), write(510, 4), write(511, 1), write(3, 1)];
        let touched = Touched::read(&trace(folder.path(), &events), 4096, &|_| true).unwrap();
        assert_eq!((touched.written, touched.pages, touched.end), (7, 6, (1 << 40) + 1));
        let ranks = [0, 3, 4, 510, 511, 512, 513, 514, 1 << 40, u64::MAX];
        assert_eq!(ranks.map(|page| touched.rank(page)), [0, 0, 1, 1, 2, 3, 4, 5, 5, 6]);
        assert!(!touched.hinted);
        assert_eq!(touched.alive, 6);
    }

    #[test]
    fn whole_pages_that_are_discarded_are_dead() {
        let folder = tempfile::tempdir().unwrap();
        let discard =
            |offset, length| Event { op: Op::Discard, offset, length, ..Event::default() };
        let alive = |name: &str, discards: &[Event]| {
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let events = [&[write(510, 4), write(1 << 40, 1)], discards].concat();
            let touched = Touched::read(&trace(&folder, &events), 4096, &|_| true).unwrap();
            (touched.pages, touched.alive)
        };
        assert_eq!(alive("part", &[discard(510 * 4096 + 1, 2 * 4096)]), (5, 4));
        assert_eq!(alive("all", &[discard(0, 1 << 60)]), (5, 0));
        assert_eq!(alive("again", &[discard(0, 1 << 60), write(511, 1)]), (5, 1));
        assert_eq!(alive("none", &[discard(0, 4096), discard(511 * 4096, 100)]), (5, 5));
    }

    #[test]
    fn several_devices_and_no_writes_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, events: &[Event]| {
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            Touched::read(&trace(&folder, events), 4096, &|_| true).unwrap_err()
        };
        let two = [write(0, 1), Event { device: 1, ..write(0, 1) }];
        assert!(matches!(read("two", &two), Error::Devices { devices: 2 }));
        let none = [Event { op: Op::Discard, ..write(0, 1) }];
        assert!(matches!(read("none", &none), Error::NoWrites));
    }
}
