//! A trace in memory, in the drive's pages, for many simulations at once.
//!
//! Invariants: pages that the trace writes are moved together and keep their order, so that a range
//! remains one range, cut only where a run ends; 16 bytes an operation. A write grows to whole pages, a
//! discard shrinks.

use shelflife_simulate::{Pages, Touched, span};
use shelflife_ssd::Kind;
use shelflife_trace::{Batch, Trace};

use crate::Error;
use crate::mix::mixed;

/// The most pages of one operation.
const MOST: u32 = (1 << 30) - 1;

/// One operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Packed {
    pub page: u32,
    /// The kind in the upper two bits.
    pages: u32,
    /// Row of the file table.
    pub file: u32,
    /// The run that it lies in.
    pub run: u32,
}

impl Packed {
    /// In the first run.
    pub fn new(kind: Kind, page: u32, pages: u32, file: u32) -> Packed {
        Packed { page, pages: pages.min(MOST) | (kind as u32) << 30, file, run: 0 }
    }

    #[inline]
    pub fn kind(self) -> Kind {
        match self.pages >> 30 {
            0 => Kind::Write,
            1 => Kind::Trim,
            _ => Kind::WriteZeroes,
        }
    }

    #[inline]
    pub fn pages(self) -> u32 {
        self.pages & MOST
    }

    /// Page writes.
    pub fn written(self) -> u64 {
        if self.kind() == Kind::Write { self.pages().into() } else { 0 }
    }
}

/// Neighbouring pages that one file holds when the trace begins, as far as it tells: the first to write
/// them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Run {
    pub first: u32,
    /// [`u32::MAX`] for none.
    pub file: u32,
}

/// All operations of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recording {
    /// None reaches beyond its run.
    pub ops: Vec<Packed>,
    /// Different pages written; the operations use pages below this.
    pub pages: u32,
    /// All pages, in order.
    pub runs: Vec<Run>,
}

/// Page writes of operations.
pub(crate) fn written(ops: &[Packed]) -> u64 {
    ops.iter().map(|op| op.written()).sum()
}

impl Recording {
    /// Reads all of `trace`, twice; `seen` is told how many events there were so far, and whether
    /// to go on is its answer.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`], and those of [`Touched::read`].
    pub fn read(
        trace: &Trace,
        page_bytes: u32,
        memory_bytes: Option<u64>,
        seen: &dyn Fn(u64) -> bool,
    ) -> Result<Recording, Error> {
        let touched = Touched::read(trace, page_bytes, seen)?;
        let events = touched.events;
        let bytes = events.saturating_mul(size_of::<Packed>() as u64);
        if let Some(limit) = memory_bytes
            && bytes > limit
        {
            return Err(Error::TooLong { events, needs_mib: bytes >> 20, limit_mib: limit >> 20 });
        }
        let mut ops = Vec::with_capacity(events as usize);
        let (mut batch, mut number) = (Batch::default(), events);
        let mut again = trace.events().without_processes();
        while again.read(&mut batch)? {
            for event in batch.iter() {
                let (first, end, kind) = span(&event, page_bytes);
                // fewer than 2^32
                let (mut at, end) = (touched.rank(first) as u32, touched.rank(end) as u32);
                while at < end {
                    let pages = (end - at).min(MOST);
                    ops.push(Packed::new(kind, at, pages, event.file.0));
                    at += pages;
                }
            }
            number += batch.len() as u64;
            if !seen(number) {
                return Err(shelflife_trace::Error::Stopped.into());
            }
        }
        Ok(Recording::new(ops, touched.pages as u32))
    }

    /// Operations on pages below `pages`, cut at the ends of runs.
    pub fn new(mut ops: Vec<Packed>, pages: u32) -> Recording {
        let mut holders = vec![u32::MAX; pages as usize];
        for op in ops.iter().filter(|op| op.kind() == Kind::Write) {
            let range = op.page as usize..op.page as usize + op.pages() as usize;
            let held = holders.get_mut(range).into_iter().flatten();
            held.filter(|file| **file == u32::MAX).for_each(|file| *file = op.file);
        }
        let mut runs = Vec::new();
        let mut first = 0;
        for held in holders.chunk_by(|a, b| a == b) {
            // chunks are not empty, and pages have 32 bits
            runs.push(Run { first, file: held[0] });
            first += held.len() as u32;
        }
        // most lie within one
        let mut beyond = Vec::new();
        for (at, op) in ops.iter_mut().enumerate() {
            // the first run begins at page 0
            let run = runs.partition_point(|run| run.first <= op.page).saturating_sub(1);
            op.run = run as u32;
            let end = runs.get(run + 1).map_or(pages, |run| run.first);
            if op.page + op.pages() > end {
                beyond.push(at);
            }
        }
        if !beyond.is_empty() {
            ops = cut(&ops, &beyond, &runs, pages);
        }
        Recording { ops, pages, runs }
    }

    /// How many pages it writes, and how many of them it leaves alive.
    pub fn touched(&self) -> Pages {
        let mut alive = vec![false; self.pages as usize];
        for op in &self.ops {
            let range = op.page as usize..op.page as usize + op.pages() as usize;
            if let Some(pages) = alive.get_mut(range) {
                pages.fill(op.kind() == Kind::Write);
            }
        }
        let alive = alive.into_iter().filter(|alive| *alive).count() as u64;
        Pages { written: self.pages.into(), alive }
    }

    /// The operations of a part of this, on one page in `one_in`, chosen by a hash, and all that is done to
    /// it. A drive of as many times fewer pages and smaller units has nearly the same write amplification
    /// (`docs/learn.md`).
    pub fn sample(&self, part: &[Packed], one_in: u32, seed: u64) -> Recording {
        let mut ranks = Vec::with_capacity(self.pages as usize + 1);
        let mut kept = 0_u32;
        for page in 0..u64::from(self.pages) {
            ranks.push(kept);
            let chosen = mixed(page ^ seed.rotate_left(32)).is_multiple_of(one_in.max(1).into());
            kept += u32::from(chosen);
        }
        let rank = |page: u32| ranks.get(page as usize).copied().unwrap_or(kept);
        let sampled = part.iter().filter_map(|op| {
            let (first, end) = (rank(op.page), rank(op.page.saturating_add(op.pages())));
            let pages = end.checked_sub(first).filter(|pages| *pages > 0)?;
            Some(Packed { run: op.run, ..Packed::new(op.kind(), first, pages, op.file) })
        });
        let ops = sampled.collect();
        let runs = self.runs.iter().map(|run| Run { first: rank(run.first), ..*run }).collect();
        Recording { ops, pages: kept, runs }
    }

    /// Where the first part ends: so that it has `share` (0 to 1) of the page writes.
    pub fn split(&self, share: f64) -> usize {
        let wanted = (written(&self.ops) as f64 * share) as u64;
        let mut before = 0;
        let first = self.ops.iter().position(|op| {
            before += op.written();
            before > wanted
        });
        first.unwrap_or(self.ops.len())
    }
}

/// The operations, of which those at `beyond` reach beyond their run, in pieces that do not.
fn cut(ops: &[Packed], beyond: &[usize], runs: &[Run], pages: u32) -> Vec<Packed> {
    let mut pieces = Vec::with_capacity(ops.len() + beyond.len());
    let mut done = 0;
    for at in beyond {
        pieces.extend_from_slice(&ops[done..*at]);
        done = at + 1;
        let op = ops[*at];
        let (mut page, mut run, end) = (op.page, op.run, op.page + op.pages());
        while page < end {
            let stop = runs.get(run as usize + 1).map_or(pages, |run| run.first).min(end);
            // the last run ends where all pages do
            if stop > page {
                let piece = Packed::new(op.kind(), page, stop - page, op.file);
                pieces.push(Packed { run, ..piece });
            }
            (page, run) = (stop.max(page), run + 1);
            if run as usize >= runs.len() {
                break;
            }
        }
    }
    pieces.extend_from_slice(&ops[done..]);
    pieces
}

#[cfg(test)]
mod tests {
    use shelflife_trace::{Device, Event, FileId, Meta, Op, TraceWriter};

    use super::*;

    fn read(events: &[Event]) -> Result<Recording, Error> {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t");
        let devices = vec![Device::new("a", None), Device::new("b", None)];
        let mut writer = TraceWriter::create(&place, Meta::new("record", devices)).unwrap();
        events.iter().for_each(|event| writer.push(event).unwrap());
        writer.finish().unwrap();
        Recording::read(&Trace::open(&place).unwrap(), 4096, None, &|_| true)
    }

    fn event(page: u64, pages: u64) -> Event {
        Event { offset: page * 4096, length: pages * 4096, ..Event::default() }
    }

    #[test]
    fn pages_are_moved_together_and_ranges_kept() {
        let odd = Event { offset: 511 * 4096 + 1, length: 4096, ..Event::default() };
        let all = Event { op: Op::Discard, offset: 1, length: 1 << 60, ..Event::default() };
        let events = [event(1 << 40, 2), event(3, 1), odd, event(600, 1), all];
        let recording = read(&events).unwrap();
        assert_eq!(recording.pages, 6);
        let ops: Vec<_> = recording.ops.iter().map(|op| (op.page, op.pages(), op.kind())).collect();
        let (write, trim) = (Kind::Write, Kind::Trim);
        let expected = [(4, 2, write), (0, 1, write), (1, 2, write), (3, 1, write), (0, 6, trim)];
        assert_eq!(ops, expected);
        assert_eq!((written(&recording.ops), recording.split(0.5)), (6, 2));
        assert_eq!(recording.touched(), Pages { written: 6, alive: 0 });
        assert_eq!(recording.sample(&recording.ops, 1, 0), recording);
    }

    #[test]
    fn a_sample_keeps_all_that_is_done_to_a_page() {
        let events: Vec<Event> = (0..3000).map(|n| event(n * 7 % 1000, 3)).collect();
        let recording = read(&events).unwrap();
        let sample = recording.sample(&recording.ops, 4, 1);
        assert!((200..300).contains(&sample.pages), "{}", sample.pages);
        let mut writes = vec![0; sample.pages as usize];
        for op in &sample.ops {
            (op.page..op.page + op.pages()).for_each(|page| writes[page as usize] += 1);
        }
        // but for the edges each page is written nine times
        assert!(writes.iter().filter(|n| **n == 9).count() + 4 > writes.len(), "{writes:?}");
    }

    #[test]
    fn who_holds_a_page_is_known_from_the_first_write() {
        let by = |page, pages, file| Event { file: FileId(file), ..event(page, pages) };
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t");
        let meta = Meta::new("record", vec![Device::new("a", None)]);
        let mut writer = TraceWriter::create(&place, meta).unwrap();
        for _ in 0..3 {
            writer.files_mut().push(shelflife_trace::FileEntry::default()).unwrap();
        }
        let events = [by(0, 2, 1), by(1, 1, 2), by(1, 2, 3), by(3, 1, 1), by(3, 1, 2)];
        events.iter().for_each(|event| writer.push(event).unwrap());
        writer.finish().unwrap();
        let trace = Trace::open(&place).unwrap();
        let recording = Recording::read(&trace, 4096, None, &|_| true).unwrap();
        let runs: Vec<_> = recording.runs.iter().map(|run| (run.first, run.file)).collect();
        assert_eq!(runs, [(0, 1), (2, 3), (3, 1)]);
        let ops: Vec<_> = recording.ops.iter().map(|op| (op.page, op.pages(), op.run)).collect();
        // the third is cut where the run of file 1 ends
        assert_eq!(ops, [(0, 2, 0), (1, 1, 0), (1, 1, 0), (2, 1, 1), (3, 1, 2), (3, 1, 2)]);
    }

    #[test]
    fn what_cannot_be_decoded_is_said() {
        let other = Event { device: 1, file: FileId(0), ..event(0, 1) };
        assert!(matches!(
            read(&[event(0, 1), other]),
            Err(Error::Simulate(shelflife_simulate::Error::Devices { .. }))
        ));
        let discard = Event { op: Op::Discard, ..event(0, 1) };
        let none = read(&[discard]);
        assert!(matches!(none, Err(Error::Simulate(shelflife_simulate::Error::NoWrites))));
    }
}
