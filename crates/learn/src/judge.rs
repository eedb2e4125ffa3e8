//! The comparison on data that nothing was learned from.
//!
//! Invariant: every arm meets the same writes, on every firmware: the trace goes round, and what is
//! counted is its end.

use shelflife_lifetime::Lifetime;
use shelflife_ssd::{Config, Deaths, FileStreams, Kind, Placing, Plan};

use crate::Error;
use crate::drives::{Variant, space};
use crate::passes::{Hints, Part, Passes, plan};
use crate::recording::{Packed, Recording, written};
use crate::runner::{Found, Runner, Stage, one};

/// How often a drive is written over, in whole passes, before the first that is judged.
const AGE: u64 = 2;
/// So many passes are judged: each is another course of the same writes, and what differs between them is noise.
const PASSES: u64 = 3;

/// What is compared.
#[derive(Clone, Debug)]
pub(crate) enum Contender<'a> {
    /// No hints.
    Off,
    /// Hints by file.
    Hints(Vec<Lifetime>),
    /// Hints in these shares, dealt at random: by how much can a hint that knows nothing seem good?
    Dealt(Vec<(u64, Lifetime)>),
    /// Each file on the stream of its median lifetime.
    ByFile,
    /// Each page on the stream of its remaining lifetime.
    ByDeath,
    /// No hints, WAL on a drive of its own.
    Apart(&'a Apart),
    /// No hints, more flash.
    Larger,
}

/// Data of the second part.
pub(crate) struct Judged<'a> {
    pub part: &'a Part<'a>,
    pub seed: u64,
    pub variants: &'a [Variant],
}

impl Judged<'_> {
    fn plan(&self, config: &Config, fill: u32, passes: u64) -> Plan {
        plan(self.part, fill, space(config), AGE, passes)
    }

    /// Page writes of a simulation of one pass that is judged, at most.
    pub fn longest(&self) -> u64 {
        let pages = self.variants.iter().map(|variant| {
            let plan = self.plan(&variant.unhinted(), variant.fill, 1);
            let shelflife_ssd::Age::Pages(age) = plan.age else { return 0 };
            age + plan.count.unwrap_or(0)
        });
        pages.max().unwrap_or(0)
    }

    /// All contenders on all firmwares, by contender.
    pub fn run(
        &self,
        contenders: &[Contender<'_>],
        runner: &Runner<'_>,
        of: usize,
    ) -> Result<Vec<Vec<Option<Found>>>, Error> {
        let firmwares = self.variants.len();
        let found = runner.run(Stage::Judging, of, contenders.len() * firmwares, |at| {
            self.one(&contenders[at / firmwares], &self.variants[at % firmwares])
        });
        let mut found = found.into_iter();
        let mut by_contender = Vec::new();
        for _ in contenders {
            by_contender.push(found.by_ref().take(firmwares).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(by_contender)
    }

    fn one(&self, contender: &Contender<'_>, variant: &Variant) -> Result<Option<Found>, Error> {
        let none: &[Lifetime] = &[];
        let passes = |hints| Passes::new(self.part, variant.fill, hints);
        let unhinted = || passes(Hints::ByFile(none));
        let run = |config: &Config, workload, placing| {
            // its deaths take memory, and what nobody can build needs no noise
            let passes = if matches!(contender, Contender::ByDeath) { 1 } else { PASSES };
            let plan = self.plan(config, variant.fill, passes);
            one(config, &plan, self.part, workload, placing).map(Some)
        };
        let geometry = &variant.config.geometry;
        let pages = Some(self.longest());
        let hinted = |used| variant.hinted(used);
        match contender {
            Contender::Off => run(&variant.unhinted(), unhinted(), Placing::Hints),
            Contender::Hints(hints) => match hinted(variant.used(hints.iter().copied())) {
                Some(config) => run(&config, passes(Hints::ByFile(hints)), Placing::Hints),
                None => Ok(None),
            },
            Contender::Dealt(bounds) => {
                let dealt = bounds.iter().map(|(_, lifetime)| *lifetime);
                let hints = Hints::Dealt { bounds, seed: self.seed };
                match hinted(variant.used(dealt)) {
                    Some(config) => run(&config, passes(hints), Placing::Hints),
                    None => Ok(None),
                }
            }
            Contender::ByFile => {
                // one pass is like another
                let once = Some(u64::from(variant.fill) + 2 * self.part.written);
                let (logical, streams) = (geometry.logical_pages, geometry.streams);
                let files = FileStreams::scan(&mut unhinted(), logical, once, streams)?;
                match hinted(streams) {
                    Some(config) => run(&config, unhinted(), Placing::Files(files)),
                    None => Ok(None),
                }
            }
            Contender::ByDeath => {
                let Some(config) = hinted(geometry.streams) else { return Ok(None) };
                let deaths = Deaths::scan(&mut unhinted(), geometry.logical_pages, pages)?;
                run(&config, unhinted(), Placing::Deaths(deaths))
            }
            Contender::Larger => run(&variant.larger(), unhinted(), Placing::Hints),
            Contender::Apart(apart) => Ok(apart.simulate(variant)),
        }
    }
}

/// The writes of a trace on two drives: those of the log, and the others.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    log: Recording,
    rest: Recording,
    /// Page writes of the first part on each.
    splits: [u64; 2],
    /// Pages that only the log writes.
    moved: u32,
}

impl Apart {
    /// `None` if there is no log, or nothing else. A page that changes hands is dead on the drive
    /// that it leaves: the file that it was of is gone.
    pub fn new(
        ops: &[Packed],
        split: usize,
        pages: u32,
        is_log: impl Fn(u32) -> bool,
    ) -> Option<Apart> {
        let (mut by_log, mut by_rest) = (vec![false; pages as usize], vec![false; pages as usize]);
        let of_op = |op: &Packed| op.page as usize..(op.page + op.pages()) as usize;
        for op in ops.iter().filter(|op| op.kind() == Kind::Write) {
            let side = if is_log(op.file) { &mut by_log } else { &mut by_rest };
            side.get_mut(of_op(op))?.fill(true);
        }
        // what nobody writes in this part stays where it is
        let on_rest: Vec<bool> =
            by_log.iter().zip(&by_rest).map(|(log, rest)| *rest || !log).collect();
        let ranks = |there: &[bool]| {
            let mut rank = 0_u32;
            let mut ranks: Vec<u32> = Vec::with_capacity(there.len() + 1);
            for there in there {
                ranks.push(rank);
                rank += u32::from(*there);
            }
            ranks.push(rank);
            ranks
        };
        let (log_ranks, rest_ranks) = (ranks(&by_log), ranks(&on_rest));
        let mut held_by_log = vec![false; pages as usize];
        let (mut log, mut rest) = (Vec::new(), Vec::new());
        let mut splits = [0; 2];
        let range = |ranks: &[u32], at: std::ops::Range<usize>| (ranks[at.start], ranks[at.end]);
        for (at, op) in ops.iter().enumerate() {
            if at == split {
                splits = [log.len(), rest.len()];
            }
            let pages = of_op(op);
            let put = |out: &mut Vec<Packed>, ranks: &[u32], at, kind| {
                let (first, end) = range(ranks, at);
                if first < end {
                    out.push(Packed::new(kind, first, end - first, op.file));
                }
            };
            if op.kind() != Kind::Write {
                put(&mut log, &log_ranks, pages.clone(), op.kind());
                put(&mut rest, &rest_ranks, pages, op.kind());
                continue;
            }
            let to_log = is_log(op.file);
            for page in pages.clone() {
                if held_by_log[page] != to_log {
                    let (out, ranks, there) = match to_log {
                        true => (&mut rest, &rest_ranks, &on_rest),
                        false => (&mut log, &log_ranks, &by_log),
                    };
                    if there[page] {
                        put(out, ranks, page..page + 1, Kind::Trim);
                    }
                    held_by_log[page] = to_log;
                }
            }
            match to_log {
                true => put(&mut log, &log_ranks, pages, Kind::Write),
                false => put(&mut rest, &rest_ranks, pages, Kind::Write),
            }
        }
        let (log_pages, rest_pages) = (*log_ranks.last()?, *rest_ranks.last()?);
        let any = written(&log[splits[0]..]) > 0 && written(&rest[splits[1]..]) > 0;
        let splits = [(&log, splits[0]), (&rest, splits[1])].map(|(ops, at)| written(&ops[..at]));
        let (log, rest) = (Recording::new(log, log_pages), Recording::new(rest, rest_pages));
        any.then_some(Apart { log, rest, splits, moved: pages - rest_pages })
    }

    /// Both drives together; `None` if one of them is too small to be one.
    fn simulate(&self, variant: &Variant) -> Option<Found> {
        let sizes = variant.unhinted().geometry.sizes().ok()?;
        let (rest, fill) = variant.without(self.moved);
        let log = variant.apart(self.log.pages, &sizes);
        let run = |recording: &Recording, aged: u64, config: &Config, fill: u32| {
            let part = Part::all(recording).judged(aged);
            let plan = plan(&part, fill, space(config), AGE, PASSES);
            let passes = Passes::new(&part, fill, Hints::ByFile(&[]));
            one(config, &plan, &part, passes, Placing::Hints).ok()
        };
        let log_found = run(&self.log, self.splits[0], &log, self.log.pages)?;
        let rest_found = run(&self.rest, self.splits[1], &rest, fill)?;
        let share = |recording: &Recording, aged| (written(&recording.ops) - aged) as f64;
        let log_share = share(&self.log, self.splits[0]);
        let rest_share = share(&self.rest, self.splits[1]);
        Some(log_found.beside(&rest_found, log_share / (log_share + rest_share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_changes_hands_dies_on_the_drive_it_leaves() {
        let write = |page, pages, file| Packed::new(Kind::Write, page, pages, file);
        let trim = |page, pages, file| Packed::new(Kind::Trim, page, pages, file);
        // the log has pages 0 to 2, of which page 2 is once a table's; page 4 is written by nobody
        let ops = [write(0, 3, 1), write(2, 2, 2), write(2, 1, 1), trim(0, 5, 0)];
        let apart = Apart::new(&ops, 1, 5, |file| file == 1).unwrap();
        let (log, rest) = (&apart.log, &apart.rest);
        assert_eq!((log.pages, apart.moved, apart.splits), (3, 2, [3, 0]));
        let whole = |ops: &[Packed], pages| Recording::new(ops.to_vec(), pages);
        assert_eq!(*log, whole(&[write(0, 3, 1), trim(2, 1, 2), write(2, 1, 1), trim(0, 3, 0)], 3));
        let kept = [trim(0, 1, 1), write(0, 2, 2), trim(0, 1, 1), trim(0, 3, 0)];
        assert_eq!(*rest, whole(&kept, rest.pages));
        assert!(Apart::new(&ops, 1, 5, |_| false).is_none());
    }
}
