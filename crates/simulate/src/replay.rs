//! A trace as the simulator's workload.
//!
//! Invariant: every page a write touches is written, and only pages that lie wholly in a discarded
//! or zeroed range are trimmed; memory is one batch.

use std::sync::Arc;

use shelflife_lifetime::Lifetime;
use shelflife_ssd::{Kind, PRECONDITION_CLASS, Repeat, Workload};
use shelflife_trace::{Batch, Event, Events, FileTable, Trace};

use crate::touched::{Touched, span};

/// What all events of a replay are looked up in.
pub(crate) struct Lookup {
    /// Ordinal of the class of each file.
    pub classes: Vec<u16>,
    /// Lifetime of each file; as recorded, if there are none.
    pub lifetimes: Option<Vec<Lifetime>>,
    /// Bytes of a page of the drive.
    pub page_bytes: u32,
    /// Pages of the drive; trims beyond are cut off.
    pub logical_pages: u64,
    /// Where pages go, if they are moved together.
    pub moved: Option<Arc<Touched>>,
}

impl Lookup {
    /// Ordinals of the classes of `files`, and their names.
    pub fn classes(files: &FileTable) -> (Vec<u16>, Vec<&'static str>) {
        let mut names: Vec<&'static str> = Vec::new();
        let ordinal = |name: &'static str| {
            let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            // There are fewer than 64 classes.
            at as u16
        };
        let classes = files.iter().map(|(_, file)| file.class.name()).map(ordinal).collect();
        (classes, names)
    }

    fn op(&self, event: &Event) -> shelflife_ssd::Op {
        let (first, end, kind) = span(event, self.page_bytes);
        let place = |page| match &self.moved {
            Some(touched) => touched.rank(page),
            None if kind == Kind::Write => page,
            None => page.min(self.logical_pages),
        };
        let (first, end) = (place(first), place(end));
        let file = event.file.0 as usize;
        let hint = match &self.lifetimes {
            Some(lifetimes) => lifetimes.get(file).copied().unwrap_or_default(),
            None => event.hint,
        };
        shelflife_ssd::Op {
            // That writes end within the drive was checked before, and drives end below 2^32.
            page: first as u32,
            pages: end.saturating_sub(first) as u32,
            file: event.file.0,
            class: self.classes.get(file).copied().unwrap_or_default(),
            kind,
            lifetime: hint as u8,
        }
    }
}

/// Replays a trace once.
pub(crate) struct Replay {
    events: Events,
    batch: Batch,
    at: usize,
    lookup: Arc<Lookup>,
}

impl Replay {
    pub fn new(trace: &Trace, lookup: Arc<Lookup>) -> Replay {
        let events = trace.events().without_processes();
        Replay { events, batch: Batch::default(), at: 0, lookup }
    }
}

impl Workload for Replay {
    fn read(&mut self, ops: &mut Vec<shelflife_ssd::Op>) -> Result<(), shelflife_ssd::Error> {
        if self.at >= self.batch.len() {
            self.at = 0;
            let source = |error| shelflife_ssd::Error::Source(Box::new(error));
            if !self.events.read(&mut self.batch).map_err(source)? {
                self.batch.clear();
                return Ok(());
            }
        }
        let end = self.batch.len().min(self.at + shelflife_ssd::BATCH);
        ops.extend((self.at..end).filter_map(|at| self.batch.get(at)).map(|e| self.lookup.op(&e)));
        self.at = end;
        Ok(())
    }
}

/// The most operations of a trace that is repeated from memory (16 MiB).
const MOST_HELD: usize = 1 << 20;

/// A trace again and again: from memory if it is short, since then opening its files would take
/// longer than all that is simulated.
pub(crate) enum Looped<F> {
    Held { ops: Vec<shelflife_ssd::Op>, at: usize },
    Read(Box<Repeat<F, Replay>>),
}

impl<F: FnMut() -> Result<Replay, shelflife_ssd::Error>> Looped<F> {
    pub fn new(mut replay: F) -> Result<Looped<F>, shelflife_ssd::Error> {
        let (mut once, mut ops) = (replay()?, Vec::new());
        while ops.len() <= MOST_HELD {
            let before = ops.len();
            once.read(&mut ops)?;
            if ops.len() == before {
                return Ok(Looped::Held { ops, at: 0 });
            }
        }
        Ok(Looped::Read(Box::new(Repeat::new(replay)?)))
    }
}

impl<F: FnMut() -> Result<Replay, shelflife_ssd::Error>> Workload for Looped<F> {
    fn read(&mut self, ops: &mut Vec<shelflife_ssd::Op>) -> Result<(), shelflife_ssd::Error> {
        let (held, at) = match self {
            Looped::Read(repeat) => return repeat.read(ops),
            Looped::Held { ops, .. } if ops.is_empty() => return Ok(()),
            Looped::Held { ops, at } => (ops, at),
        };
        let mut left = shelflife_ssd::BATCH;
        while left > 0 {
            let end = held.len().min(*at + left);
            ops.extend_from_slice(&held[*at..end]);
            left -= end - *at;
            *at = if end == held.len() { 0 } else { end };
        }
        Ok(())
    }
}

/// Fills the first pages in order, without hint, before another workload.
pub(crate) struct Filled<W> {
    at: u32,
    pages: u32,
    then: W,
}

impl<W> Filled<W> {
    pub fn new(pages: u32, then: W) -> Filled<W> {
        Filled { at: 0, pages, then }
    }
}

impl<W: Workload> Workload for Filled<W> {
    fn read(&mut self, ops: &mut Vec<shelflife_ssd::Op>) -> Result<(), shelflife_ssd::Error> {
        if self.at == self.pages {
            return self.then.read(ops);
        }
        let pages = (self.pages - self.at).min(1 << 20);
        let fill = shelflife_ssd::Op::write(self.at, pages);
        ops.push(shelflife_ssd::Op { class: PRECONDITION_CLASS, file: u32::MAX, ..fill });
        self.at += pages;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shelflife_trace::{FileId, Op};

    use super::*;

    #[test]
    fn a_repeated_trace_goes_round() {
        let folder = tempfile::tempdir().unwrap();
        let write = |page: u64| Event { offset: page * 4096, length: 4096, ..Event::default() };
        let trace = crate::touched::tests::trace(folder.path(), &[write(0), write(1), write(2)]);
        let lookup = Arc::new(Lookup {
            classes: vec![0],
            lifetimes: None,
            page_bytes: 4096,
            logical_pages: 3,
            moved: None,
        });
        let mut looped = Looped::new(|| Ok(Replay::new(&trace, Arc::clone(&lookup)))).unwrap();
        let mut ops = Vec::new();
        for _ in 0..3 {
            looped.read(&mut ops).unwrap();
        }
        assert_eq!(ops.len(), 3 * shelflife_ssd::BATCH);
        assert!(ops.iter().zip((0..3).cycle()).all(|(op, page)| op.page == page));
    }

    #[test]
    fn writes_grow_to_pages_and_discards_shrink() {
        let lookup = Lookup {
            classes: vec![0, 7],
            lifetimes: Some(vec![Lifetime::NotSet, Lifetime::Short]),
            page_bytes: 4096,
            logical_pages: 100,
            moved: None,
        };
        let event = Event { offset: 4095, length: 4098, file: FileId(1), ..Event::default() };
        let op = lookup.op(&event);
        assert_eq!((op.page, op.pages, op.class, op.lifetime), (0, 3, 7, 2));
        let op = lookup.op(&Event { op: Op::Discard, ..event });
        assert_eq!((op.page, op.pages, op.kind), (1, 1, Kind::Trim));
        let within = Event { op: Op::Discard, length: 10, ..event };
        assert_eq!(lookup.op(&within).pages, 0);
        let all = Event { op: Op::WriteZeroes, offset: 0, length: u64::MAX, ..event };
        assert_eq!((lookup.op(&all).page, lookup.op(&all).pages), (0, 100));
    }
}
