//! Which pages a trace touches, and a place for each on a drive that has no more than these.
//!
//! Invariant: pages keep their order when they are moved together, and neighbours that are both
//! touched stay neighbours, so that a range of a write remains one range.

use std::collections::{HashMap, HashSet};

use shelflife_lifetime::Lifetime;
use shelflife_trace::{Batch, Event, Op, Trace};

use crate::Error;

/// Pages of a piece: small, since traces of large drives touch few pages here and there.
const PIECE: u64 = 512;
const WORDS: usize = (PIECE / 64) as usize;

/// What a trace writes, counted in pages of one size.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Page writes.
    pub written: u64,
    /// Different pages written.
    pub pages: u64,
    /// One past the last page written.
    pub end: u64,
    /// Whether any write carries a hint.
    pub hinted: bool,
    /// By number of piece, in order: how many touched pages lie before, and its bits.
    pieces: Vec<(u64, u64, [u64; WORDS])>,
}

impl Touched {
    /// Reads all of `trace`; `seen` is told how many events there were so far.
    ///
    /// # Errors
    ///
    /// No writes, several devices, too many pages, or the trace cannot be read.
    pub fn read(trace: &Trace, page_bytes: u32, seen: &dyn Fn(u64)) -> Result<Touched, Error> {
        let mut touched = Touched { page_bytes, ..Touched::default() };
        let (mut pieces, mut devices) = (HashMap::new(), HashSet::new());
        let mut events = trace.events().without_processes();
        let (mut batch, mut number) = (Batch::default(), 0);
        while events.read(&mut batch)? {
            for event in batch.iter() {
                devices.insert(event.device);
                if event.op == Op::Write {
                    touched.add(&event, &mut pieces)?;
                }
            }
            number += batch.len() as u64;
            seen(number);
        }
        if devices.len() > 1 {
            return Err(Error::Devices { devices: devices.len() });
        }
        if touched.written == 0 {
            return Err(Error::NoWrites);
        }
        touched.pieces = pieces.into_iter().map(|(number, bits)| (number, 0, bits)).collect();
        touched.pieces.sort_unstable_by_key(|piece| piece.0);
        let mut before = 0;
        for piece in &mut touched.pieces {
            piece.1 = before;
            before += piece.2.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        Ok(touched)
    }

    fn add(&mut self, event: &Event, pieces: &mut HashMap<u64, [u64; WORDS]>) -> Result<(), Error> {
        let (first, pages) = event.pages(u64::from(self.page_bytes));
        let end = first + pages;
        self.written += pages;
        self.end = self.end.max(end);
        self.hinted |= event.hint != Lifetime::NotSet;
        let mut page = first;
        while page < end {
            let stop = end.min((page / PIECE + 1) * PIECE);
            let piece = pieces.entry(page / PIECE).or_insert([0; WORDS]);
            for page in page..stop {
                let word = &mut piece[(page % PIECE / 64) as usize];
                let bit = 1 << (page % 64);
                self.pages += u64::from(*word & bit == 0);
                *word |= bit;
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
        let touched = Touched::read(&trace(folder.path(), &events), 4096, &|_| ()).unwrap();
        assert_eq!((touched.written, touched.pages, touched.end), (7, 6, (1 << 40) + 1));
        let ranks = [0, 3, 4, 510, 511, 512, 513, 514, 1 << 40, u64::MAX];
        assert_eq!(ranks.map(|page| touched.rank(page)), [0, 0, 1, 1, 2, 3, 4, 5, 5, 6]);
        assert!(!touched.hinted);
    }

    #[test]
    fn several_devices_and_no_writes_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, events: &[Event]| {
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            Touched::read(&trace(&folder, events), 4096, &|_| ()).unwrap_err()
        };
        let two = [write(0, 1), Event { device: 1, ..write(0, 1) }];
        assert!(matches!(read("two", &two), Error::Devices { devices: 2 }));
        let none = [Event { op: Op::Discard, ..write(0, 1) }];
        assert!(matches!(read("none", &none), Error::NoWrites));
    }
}
