//! A recording as a workload of the simulator: the drive is filled, then the recording goes round.
//!
//! Invariants: endless, and the same whenever it is made from the same parts. What fills a page has the
//! hint of the file that holds it, as if it had always been written under the same policy: otherwise
//! any hint at all, right or wrong, would keep what is written again apart from what is not. From the second
//! pass on each run of pages is turned by an offset of its own, another in each pass: else a page that is written
//! once in a pass would live exactly one pass, all would die in order, and random updates would look
//! like a log. Ranges remain ranges, and pages stay with their files.

use shelflife_lifetime::Lifetime;
use shelflife_ssd::{Age, BATCH, Kind, Op, Plan, Precondition, Window, Workload};

use crate::mix::mixed;
use crate::recording::{Packed, Recording, Run, written};

/// Windows of the measured part; of a pass, if only the end of it counts.
const WINDOWS: u64 = 20;

/// Where hints come from.
#[derive(Clone, Copy)]
pub(crate) enum Hints<'a> {
    /// From each operation's file.
    ByFile(&'a [Lifetime]),
    /// From nowhere: dealt at random, lifetimes by the upper bound of their share (of 2^32).
    Dealt { bounds: &'a [(u64, Lifetime)], seed: u64 },
}

/// Operations, and what fills their pages before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub ops: &'a [Packed],
    runs: &'a [Run],
    /// The operations' pages are below this.
    pages: u32,
    /// Page writes of a pass.
    pub written: u64,
    /// Of these, not counted: those of the first part, if the second is judged.
    aged: u64,
}

impl<'a> Part<'a> {
    /// All of a recording.
    pub fn all(recording: &'a Recording) -> Part<'a> {
        Part::first(recording, recording.ops.len())
    }

    /// Its first `split` operations, on all of its pages.
    pub fn first(recording: &'a Recording, split: usize) -> Part<'a> {
        let ops = recording.ops.get(..split).unwrap_or(&recording.ops);
        let Recording { pages, ref runs, .. } = *recording;
        Part { ops, runs, pages, written: written(ops), aged: 0 }
    }

    /// Only what comes after the first `aged` page writes is counted, once.
    #[must_use]
    pub fn judged(self, aged: u64) -> Part<'a> {
        Part { aged, ..self }
    }
}

impl Part<'_> {
    /// Of a part that is judged: what was written in the end of each pass, which is what counts. A pass has
    /// [`WINDOWS`] windows, and counting begins with the first end.
    pub fn counted(&self, windows: &[Window]) -> Vec<Window> {
        let share = (self.written - self.aged) as f64 / self.written.max(1) as f64;
        let each = ((share * WINDOWS as f64).round() as usize).clamp(1, WINDOWS as usize);
        let sum = |windows: &[Window]| Window {
            host_pages: windows.iter().map(|window| window.host_pages).sum(),
            flash_pages: windows.iter().map(|window| window.flash_pages).sum(),
        };
        let ends = windows.chunks(WINDOWS as usize).map(|pass| &pass[..each.min(pass.len())]);
        // the last one may lack what is no whole window
        ends.filter(|end| 2 * end.len() > each || windows.len() < each).map(sum).collect()
    }

    /// Whether only its end counts.
    pub fn is_judged(&self) -> bool {
        self.aged > 0
    }
}

/// The workload.
pub(crate) struct Passes<'a> {
    part: Part<'a>,
    /// The run that is filled next.
    filling: usize,
    filled: u32,
    fill: u32,
    at: usize,
    pass: u64,
    /// By how many pages each run is turned in this pass.
    turned: Vec<u32>,
    hints: Hints<'a>,
    dealt: u64,
}

impl<'a> Passes<'a> {
    /// `fill` pages are filled first; those that the part does not write, without hint.
    pub fn new(part: &Part<'a>, fill: u32, hints: Hints<'a>) -> Passes<'a> {
        let turned = vec![0; part.runs.len()];
        Passes { part: *part, filling: 0, filled: 0, fill, at: 0, pass: 0, turned, hints, dealt: 0 }
    }

    /// The first page of a run, and how many it has.
    fn run(&self, run: usize) -> Option<(u32, u32)> {
        let first = self.part.runs.get(run)?.first;
        let end = self.part.runs.get(run + 1).map_or(self.part.pages, |next| next.first);
        Some((first, end - first))
    }

    fn turn(&mut self) {
        self.pass += 1;
        for run in 0..self.turned.len() {
            let pages = self.run(run).map_or(0, |(_, pages)| pages);
            let card = mixed((self.pass << 32) ^ run as u64);
            // less than `pages`
            self.turned[run] = card.checked_rem(pages.into()).unwrap_or(0) as u32;
        }
    }

    fn op(&mut self, op: Packed) -> Op {
        let (kind, file) = (op.kind(), op.file);
        let hinted = kind == Kind::Write && file != u32::MAX;
        let lifetime = if hinted { self.lifetime(op) } else { Lifetime::NotSet };
        Op { kind, file, lifetime: lifetime as u8, ..Op::write(op.page, op.pages()) }
    }

    /// Puts an operation where its run has been turned to: one range, or two.
    fn put(&mut self, op: Packed, out: &mut Vec<Op>) {
        let turned = self.turned.get(op.run as usize).copied().unwrap_or(0);
        let Some((first, pages)) = self.run(op.run as usize).filter(|_| turned > 0) else {
            out.push(self.op(op));
            return;
        };
        let before = pages - turned;
        let at = op.page - first;
        let here = if at < before { op.pages().min(before - at) } else { op.pages() };
        let begin = if at < before { op.page + turned } else { first + at - before };
        out.push(self.op(Packed::new(op.kind(), begin, here, op.file)));
        if here < op.pages() {
            let rest = Packed::new(op.kind(), first, op.pages() - here, op.file);
            out.push(self.op(rest));
        }
    }

    fn lifetime(&mut self, op: Packed) -> Lifetime {
        match self.hints {
            Hints::ByFile(lifetimes) => {
                lifetimes.get(op.file as usize).copied().unwrap_or_default()
            }
            Hints::Dealt { bounds, seed } => {
                self.dealt += 1;
                let card = mixed(self.dealt ^ seed.rotate_left(40)) >> 32;
                let found = bounds.iter().find(|(bound, _)| card < *bound);
                found.map_or(Lifetime::NotSet, |(_, lifetime)| *lifetime)
            }
        }
    }
}

impl Workload for Passes<'_> {
    fn read(&mut self, out: &mut Vec<Op>) -> Result<(), shelflife_ssd::Error> {
        while let Some((first, pages)) = self.run(self.filling) {
            let file = self.part.runs[self.filling].file;
            let each = match self.hints {
                Hints::ByFile(_) => pages,
                // pages are dealt one by one
                Hints::Dealt { .. } => 1,
            };
            self.filling += 1;
            // a sample has none of some runs
            if pages == 0 {
                continue;
            }
            self.filled = first + pages;
            for page in (first..self.filled).step_by(each.max(1) as usize) {
                out.push(self.op(Packed::new(Kind::Write, page, each, file)));
            }
            return Ok(());
        }
        if self.filled < self.fill {
            let pages = (self.fill - self.filled).min(1 << 20);
            out.push(self.op(Packed::new(Kind::Write, self.filled, pages, u32::MAX)));
            self.filled += pages;
            return Ok(());
        }
        let ops = self.part.ops;
        if ops.is_empty() {
            return Ok(());
        }
        for _ in 0..BATCH {
            self.put(ops[self.at], out);
            self.at += 1;
            if self.at == ops.len() {
                self.at = 0;
                self.turn();
            }
        }
        Ok(())
    }
}

/// The course of a simulation of a part on a drive with `space` pages of closed units: whole passes,
/// at least one and `age` times that much, before counting begins. Counted are whole passes of at
/// least `count` times that much; of a part that is judged, the ends of `count` passes ([`Part::counted`]).
pub(crate) fn plan(part: &Part<'_>, fill: u32, space: u64, age: u64, count: u64) -> Plan {
    let pass = part.written.max(1);
    let passes = |times: u64| times.saturating_mul(space).div_ceil(pass).max(1);
    let (counted, window_pages) = match part.aged {
        0 => {
            let counted = passes(count).saturating_mul(pass);
            (counted, counted / WINDOWS)
        }
        aged => {
            let end = pass.saturating_sub(aged).max(1);
            (
                count.max(1).saturating_sub(1).saturating_mul(pass).saturating_add(end),
                pass / WINDOWS,
            )
        }
    };
    let aged = passes(age).saturating_mul(pass).saturating_add(part.aged);
    Plan {
        precondition: Precondition::None,
        age: Age::Pages(u64::from(fill).saturating_add(aged)),
        count: Some(counted),
        window_pages: window_pages.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(passes: &mut Passes<'_>, times: usize) -> Vec<Op> {
        let mut all = Vec::new();
        for _ in 0..times {
            let mut out = Vec::new();
            passes.read(&mut out).unwrap();
            all.extend(out);
        }
        all
    }

    #[test]
    fn it_fills_and_then_goes_round() {
        let ops = vec![Packed::new(Kind::Write, 3, 2, 1), Packed::new(Kind::Trim, 0, 7, 2)];
        let recording = Recording::new(ops, 7);
        let hints = [Lifetime::NotSet, Lifetime::Short];
        let nobody = u32::MAX;
        let part = Part::all(&recording);
        let mut passes = Passes::new(&part, 10, Hints::ByFile(&hints));
        let all = read(&mut passes, 5);
        let short = |op: &Op| (op.page, op.pages, op.lifetime, op.file);
        let fill: Vec<_> = all[..4].iter().map(short).collect();
        assert_eq!(fill, [(0, 3, 0, nobody), (3, 2, 2, 1), (5, 2, 0, nobody), (7, 3, 0, nobody)]);
        assert_eq!(short(&all[4]), (3, 2, 2, 1));
        let trims: Vec<_> = all[5..8].iter().map(|op| (op.kind, op.page, op.pages)).collect();
        assert_eq!(trims, [(Kind::Trim, 0, 3), (Kind::Trim, 3, 2), (Kind::Trim, 5, 2)]);
        let course = plan(&part, 10, 21, 2, 1);
        assert_eq!((course.age, course.count), (Age::Pages(10 + 42), Some(22)));
        // two operations, of which the second is judged
        let ops = vec![Packed::new(Kind::Write, 3, 2, 1), Packed::new(Kind::Write, 0, 3, 1)];
        let recording = Recording::new(ops, 5);
        let course = plan(&Part::all(&recording).judged(2), 10, 21, 2, 1);
        assert_eq!((course.age, course.count), (Age::Pages(10 + 45 + 2), Some(3)));
        let course = plan(&Part::all(&recording).judged(2), 10, 21, 2, 3);
        assert_eq!(course.count, Some(13));
    }

    #[test]
    fn of_what_is_judged_only_the_ends_count() {
        let recording = Recording::new(vec![Packed::new(Kind::Write, 0, 100, 1)], 100);
        let part = Part::all(&recording).judged(60);
        // three ends of 8 windows, between them beginnings of 12 that cost ten times as much
        let window =
            |at: u64| Window { host_pages: 5, flash_pages: if at % 20 < 8 { 10 } else { 100 } };
        let windows: Vec<Window> = (0..48).map(window).collect();
        let ends = part.counted(&windows);
        assert_eq!(ends, vec![Window { host_pages: 40, flash_pages: 80 }; 3]);
        assert_eq!(part.counted(&windows[..47]).len(), 3);
        assert_eq!(part.counted(&windows[..3]).len(), 1);
    }

    #[test]
    fn runs_are_turned_from_pass_to_pass() {
        // file 1 holds pages 0 to 9, file 2 holds 10 to 15; each pass writes each page once
        let one = |page: u32, pages: u32| {
            Packed::new(Kind::Write, page, pages, if page < 10 { 1 } else { 2 })
        };
        let recording = Recording::new(vec![one(0, 4), one(10, 6), one(4, 6)], 16);
        let part = Part::all(&recording);
        let mut passes = Passes::new(&part, 16, Hints::ByFile(&[]));
        assert_eq!(read(&mut passes, 2).len(), 2);
        let mut orders = Vec::new();
        let mut left = read(&mut passes, 3).into_iter();
        for pass in 0..4 {
            let mut order = Vec::new();
            while order.len() < 16 {
                let op = left.next().unwrap();
                assert!((op.page + op.pages <= 10) == (op.file == 1), "{op:?} in pass {pass}");
                order.extend(op.page..op.page + op.pages);
            }
            let mut all = order.clone();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..16), "pass {pass}");
            // one after the other, but for one turn
            let steps = order[..4].windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
            assert!(steps >= 2, "{order:?}");
            orders.push(order);
        }
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 2, "{orders:?}");
    }

    #[test]
    fn a_sample_without_some_runs_is_filled_too() {
        let ops = (0..64).map(|page| Packed::new(Kind::Write, page, 1, page % 2)).collect();
        let whole = Recording::new(ops, 64);
        let sample = whole.sample(&whole.ops, 8, 1);
        assert!(sample.pages > 0 && (sample.pages as usize) < sample.runs.len() / 2);
        let part = Part::all(&sample);
        let mut passes = Passes::new(&part, sample.pages + 1, Hints::ByFile(&[]));
        let fill: u32 =
            read(&mut passes, sample.pages as usize + 1).iter().map(|op| op.pages).sum();
        assert_eq!(fill, sample.pages + 1);
        assert_eq!(read(&mut passes, 1).len(), BATCH);
    }

    #[test]
    fn hints_are_dealt_in_their_shares() {
        let recording = Recording::new(vec![Packed::new(Kind::Write, 0, 9, 0)], 9);
        let bounds = [(1 << 30, Lifetime::Short), (3 << 30, Lifetime::Long)];
        let part = Part::all(&recording);
        let mut passes = Passes::new(&part, 0, Hints::Dealt { bounds: &bounds, seed: 1 });
        assert_eq!(read(&mut passes, 1).len(), 9);
        let all = read(&mut passes, 100);
        let share = |lifetime: Lifetime| {
            all.iter().filter(|op| op.lifetime == lifetime as u8).count() as f64 / all.len() as f64
        };
        assert!((share(Lifetime::Short) - 0.25).abs() < 0.01);
        assert!((share(Lifetime::Long) - 0.5).abs() < 0.01);
    }
}
