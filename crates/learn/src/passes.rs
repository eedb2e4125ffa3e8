//! A recording as a workload of the simulator: the drive is filled, then the recording goes round.
//!
//! Invariants: endless, and the same whenever it is made from the same parts. What fills a page has the
//! hint of the file that holds it, as if it had always been written under the same policy: otherwise
//! any hint at all, right or wrong, would keep what is written again apart from what is not.

use shelflife_lifetime::Lifetime;
use shelflife_ssd::{Age, BATCH, Kind, Op, Plan, Precondition, Workload};

use crate::mix::mixed;
use crate::recording::{Packed, written};

/// Windows of the measured part.
const WINDOWS: u64 = 16;

/// Where hints come from.
#[derive(Clone, Copy)]
pub(crate) enum Hints<'a> {
    /// From each operation's file.
    ByFile(&'a [Lifetime]),
    /// From nowhere: dealt at random, lifetimes by the upper bound of their share (of 2^32).
    Dealt { bounds: &'a [(u64, Lifetime)], seed: u64 },
}

/// Operations, and what fills their pages before.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    pub ops: &'a [Packed],
    first: Vec<Packed>,
    /// Page writes of a pass.
    pub written: u64,
    /// Of these, not counted: those of the first part, if the second is judged.
    aged: u64,
}

impl<'a> Part<'a> {
    /// Operations, and the file that holds each page before ([`u32::MAX`] for none).
    pub fn new(ops: &'a [Packed], holders: &[u32]) -> Part<'a> {
        let mut first = Vec::new();
        let mut page = 0;
        for held in holders.chunk_by(|a, b| a == b) {
            // chunks are not empty, and pages have 32 bits
            first.push(Packed::new(Kind::Write, page, held.len() as u32, held[0]));
            page += held.len() as u32;
        }
        Part { ops, first, written: written(ops), aged: 0 }
    }

    /// Only what comes after the first `split` operations is counted, once.
    #[must_use]
    pub fn judged(self, split: usize) -> Part<'a> {
        let first = self.ops.get(..split).unwrap_or(self.ops);
        Part { aged: written(first), ..self }
    }
}

/// The workload.
pub(crate) struct Passes<'a> {
    first: std::slice::Iter<'a, Packed>,
    filled: u32,
    fill: u32,
    ops: &'a [Packed],
    at: usize,
    hints: Hints<'a>,
    dealt: u64,
}

impl<'a> Passes<'a> {
    /// `fill` pages are filled first; those that the part does not write, without hint.
    pub fn new(part: &'a Part<'a>, fill: u32, hints: Hints<'a>) -> Passes<'a> {
        let (first, ops) = (part.first.iter(), part.ops);
        Passes { first, filled: 0, fill, ops, at: 0, hints, dealt: 0 }
    }

    fn op(&mut self, op: Packed) -> Op {
        let (kind, file) = (op.kind(), op.file);
        let hinted = kind == Kind::Write && file != u32::MAX;
        let lifetime = if hinted { self.lifetime(op) } else { Lifetime::NotSet };
        Op { kind, file, lifetime: lifetime as u8, ..Op::write(op.page, op.pages()) }
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
        if let Some(held) = self.first.next() {
            let each = match self.hints {
                Hints::ByFile(_) => held.pages(),
                // pages are dealt one by one
                Hints::Dealt { .. } => 1,
            };
            self.filled = held.page + held.pages();
            for page in (held.page..self.filled).step_by(each.max(1) as usize) {
                out.push(self.op(Packed::new(Kind::Write, page, each, held.file)));
            }
            return Ok(());
        }
        if self.filled < self.fill {
            let pages = (self.fill - self.filled).min(1 << 20);
            out.push(self.op(Packed::new(Kind::Write, self.filled, pages, u32::MAX)));
            self.filled += pages;
            return Ok(());
        }
        if self.ops.is_empty() {
            return Ok(());
        }
        for _ in 0..BATCH {
            let op = self.op(self.ops[self.at]);
            self.at = if self.at + 1 == self.ops.len() { 0 } else { self.at + 1 };
            out.push(op);
        }
        Ok(())
    }
}

/// The course of a simulation of a part on a drive with `space` pages of closed units: whole passes,
/// at least one and `age` times that much, before counting begins. Counted are whole passes of at
/// least `count` times that much; of a part that is judged, its end.
pub(crate) fn plan(part: &Part<'_>, fill: u32, space: u64, age: u64, count: u64) -> Plan {
    let pass = part.written.max(1);
    let passes = |times: u64| times.saturating_mul(space).div_ceil(pass).max(1);
    let counted = match part.aged {
        0 => passes(count).saturating_mul(pass),
        aged => pass.saturating_sub(aged).max(1),
    };
    let aged = passes(age).saturating_mul(pass).saturating_add(part.aged);
    Plan {
        precondition: Precondition::None,
        age: Age::Pages(u64::from(fill).saturating_add(aged)),
        count: Some(counted),
        window_pages: (counted / WINDOWS).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fills_and_then_goes_round() {
        let ops = [Packed::new(Kind::Write, 3, 2, 1), Packed::new(Kind::Trim, 0, 5, 2)];
        let hints = [Lifetime::NotSet, Lifetime::Short];
        let nobody = u32::MAX;
        let part = Part::new(&ops, &[nobody, nobody, nobody, 1, 1, nobody, nobody]);
        let mut passes = Passes::new(&part, 10, Hints::ByFile(&hints));
        let mut all = Vec::new();
        for _ in 0..5 {
            let mut out = Vec::new();
            passes.read(&mut out).unwrap();
            all.extend(out);
        }
        let short = |op: &Op| (op.page, op.pages, op.lifetime, op.file);
        let fill: Vec<_> = all[..4].iter().map(short).collect();
        assert_eq!(fill, [(0, 3, 0, nobody), (3, 2, 2, 1), (5, 2, 0, nobody), (7, 3, 0, nobody)]);
        assert_eq!(short(&all[4]), (3, 2, 2, 1));
        assert_eq!((all[5].kind, all[6]), (Kind::Trim, all[4]));
        let course = plan(&part, 10, 21, 2, 1);
        assert_eq!((course.age, course.count), (Age::Pages(10 + 42), Some(22)));
        // two operations, of which the second is judged
        let ops = [ops[0], Packed::new(Kind::Write, 0, 3, 1)];
        let course = plan(&Part::new(&ops, &[]).judged(1), 10, 21, 2, 1);
        assert_eq!((course.age, course.count), (Age::Pages(10 + 45 + 2), Some(3)));
    }

    #[test]
    fn hints_are_dealt_in_their_shares() {
        let ops = [Packed::new(Kind::Write, 0, 1, 0)];
        let bounds = [(1 << 30, Lifetime::Short), (3 << 30, Lifetime::Long)];
        let part = Part::new(&ops, &[0; 9]);
        let mut passes = Passes::new(&part, 0, Hints::Dealt { bounds: &bounds, seed: 1 });
        let mut all = Vec::new();
        for at in 0..100 {
            let mut out = Vec::new();
            passes.read(&mut out).unwrap();
            assert_eq!(out.len(), if at == 0 { 9 } else { BATCH });
            all.extend(out);
        }
        let share = |lifetime: Lifetime| {
            all.iter().filter(|op| op.lifetime == lifetime as u8).count() as f64 / all.len() as f64
        };
        assert!((share(Lifetime::Short) - 0.25).abs() < 0.01);
        assert!((share(Lifetime::Long) - 0.5).abs() < 0.01);
    }
}
