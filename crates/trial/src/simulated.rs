//! What a drive would make of the recorded rounds: the simulator's write amplification of each arm.
//!
//! Invariants: a model, and called one (`source`). Arms are compared on the same blocks only: the write
//! amplification of a block is that of its `off` round, under each arm's policy, and that of each arm's own round
//! with the hints that it really had. No two rounds write the same, so that what hints save is told against the
//! very same round without them.

use std::path::Path;

use serde::Serialize;
use shelflife_report::bytes;
use shelflife_simulate::{Hinting, Recorded, Request, Row, Size, Target, simulate};
use shelflife_trace::{Meta, Trace};

use crate::error::Result;
use crate::outcome::{Kept, rounds_of};
use crate::record::Results;

/// The drive: hints arrive there as streams, and it is small enough to be scaled to a trial.
const DRIVE: &str = "ufs-5-groups";
/// How full a drive is that hints are for, in percent.
const FULL: f64 = 90.0;
/// Blocks that are simulated, the last ones.
const BLOCKS: usize = 4;
/// A file system this many times larger than what a round writes is not simulated in its size.
const MOST_TIMES: u64 = 16;

/// Write amplification by arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// Always `simulated`.
    pub source: &'static str,
    /// The drive's profile, scaled.
    pub drive: String,
    /// How full it was taken to be, in percent: as the recorded file system was, and 90.
    pub full_percent: Vec<f64>,
    /// Blocks that were simulated.
    pub blocks: usize,
    /// By arm, in their order.
    pub arms: Vec<SimulatedArm>,
    /// What must be known beside the figures.
    pub notes: Vec<String>,
}

/// One arm's write amplification, for each of [`Simulated::full_percent`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedArm {
    /// The arm's label.
    pub label: String,
    /// Of what was recorded without hints, under this arm's policy.
    pub predicted: Vec<Waf>,
    /// Of its own rounds, with the hints that they had.
    pub recorded: Vec<Waf>,
    /// Units that the drive collected in all blocks of `predicted`, by their share of valid pages, in twentieths
    /// from 0.
    pub victims: Vec<[u64; 20]>,
}

/// Write amplification over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waf {
    /// Flash pages written per page of the host.
    pub waf: Bounds,
    /// The share of it that hints save, against the same rounds without hints: 0 to 1, negative where they cost.
    pub saved: Bounds,
}

impl Waf {
    /// From each block's write amplification, with hints and without.
    fn of(blocks: &[(f64, f64)]) -> Option<Waf> {
        let bounds =
            |of: fn(&(f64, f64)) -> f64| Bounds::of(&blocks.iter().map(of).collect::<Vec<f64>>());
        Some(Waf {
            waf: bounds(|(with, _)| *with)?,
            saved: bounds(|(with, without)| 1.0 - with / without)?,
        })
    }
}

/// A figure over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// The mean.
    pub mean: f64,
    /// The least of any block.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Bounds {
    fn of(values: &[f64]) -> Option<Bounds> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        Some(Bounds { mean, least, most })
    }
}

/// Simulates the last recorded blocks on all processors; `None` if none was recorded whole, its traces are
/// gone, or no arm is without hints. `go_on` is asked between simulations. No simulation takes more than
/// `memory_bytes`, if that is given.
///
/// # Errors
///
/// A trace cannot be read, or cannot be simulated; [`crate::Error::Postgres`] (interrupted) if `go_on` said no.
pub fn simulated(
    results: &Results,
    memory_bytes: Option<u64>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Simulated>> {
    let spec = &results.header.spec;
    let Some(off) = spec.arms.iter().position(|arm| arm.policy.is_none()) else { return Ok(None) };
    let Kept { kept, .. } = rounds_of(results);
    let trace = |block: usize, arm: usize| {
        let round = kept.values().find(|round| (round.block, round.arm) == (block, arm))?;
        let path = &round.measured.as_ref()?.recorded.as_ref()?.trace;
        path.is_dir().then_some(path.as_path())
    };
    let arms = 0..spec.arms.len();
    let whole = (0..spec.blocks).filter_map(|block| {
        arms.clone().map(|arm| trace(block, arm)).collect::<Option<Vec<&Path>>>()
    });
    let whole: Vec<Vec<&Path>> = whole.collect();
    let last = &whole[whole.len().saturating_sub(BLOCKS)..];
    let Some(first) = last.first() else { return Ok(None) };
    let trace = Trace::open(first[off])?;
    let (sizes, short) = (sizes(trace.meta()), short(trace.meta()));
    let policies = spec.arms.iter().map(|arm| {
        let policy = arm.parsed()?;
        Ok(policy.map_or(Hinting::Off, |policy| Hinting::Policy(Box::new(policy))))
    });
    let policies: Vec<Hinting> = policies.collect::<Result<_>>()?;
    let drive = Target::named(DRIVE)?;
    let mut rows = |path: &Path, hintings: Vec<Hinting>, size: Size| {
        if !go_on() {
            return Err(shelflife_postgres::Error::Interrupted.into());
        }
        let request = Request { targets: vec![drive.clone()], size, memory_bytes };
        rows(path, hintings, &request)
    };
    // by size and arm
    let none = vec![vec![Vec::new(); spec.arms.len()]; sizes.len()];
    let (mut predicted, mut recorded) = (none.clone(), none);
    let mut victims = vec![vec![[0_u64; 20]; sizes.len()]; spec.arms.len()];
    for block in last {
        for (at, (_, size)) in sizes.iter().enumerate() {
            let under = rows(block[off], policies.clone(), *size)?;
            let unhinted = under[off].outcome.waf;
            for (arm, row) in under.into_iter().enumerate() {
                let waf = row.outcome.waf;
                predicted[at][arm].push((waf, unhinted));
                let bins = victims[arm][at].iter_mut().zip(row.outcome.victims_by_valid_ratio);
                bins.for_each(|(bin, count)| *bin += count);
                recorded[at][arm].push(match &policies[arm] {
                    Hinting::Off if arm == off => (waf, waf),
                    Hinting::Off => {
                        let waf = rows(block[arm], vec![Hinting::Off], *size)?[0].outcome.waf;
                        (waf, waf)
                    }
                    _ => {
                        let both = vec![Hinting::Recorded, Hinting::Off];
                        let both = rows(block[arm], both, *size)?;
                        (both[0].outcome.waf, both[1].outcome.waf)
                    }
                });
            }
        }
    }
    let bounds = |of: &[Vec<Vec<(f64, f64)>>], arm: usize| {
        of.iter().filter_map(|by_arm| Waf::of(&by_arm[arm])).collect()
    };
    let arms = spec.arms.iter().zip(victims).enumerate().map(|(arm, (of, victims))| SimulatedArm {
        label: of.label.clone(),
        predicted: bounds(&predicted, arm),
        recorded: bounds(&recorded, arm),
        victims,
    });
    let mut notes: Vec<String> = short.into_iter().collect();
    if whole.len() > last.len() {
        notes.push(format!(
            "simulated: the last {} of {} recorded blocks",
            last.len(),
            whole.len()
        ));
    }
    Ok(Some(Simulated {
        source: "simulated",
        drive: drive.name(),
        full_percent: sizes.iter().map(|(percent, _)| *percent).collect(),
        blocks: last.len(),
        arms: arms.collect(),
        notes,
    }))
}

/// As full as the file system was, and as a drive is that hints are for. A file system that is much larger
/// than what was written is taken to have its share of data in what was.
fn sizes(meta: &Meta) -> Vec<(f64, Size)> {
    let mut sizes = Vec::new();
    if let Some(usage) = meta.usage {
        let percent = usage.used_bytes as f64 * 100.0 / usage.bytes.max(1) as f64;
        let large = usage.bytes > meta.counts.written_bytes.saturating_mul(MOST_TIMES);
        let size = if large { Size::Fit(percent.clamp(1.0, 100.0)) } else { Size::Recorded };
        sizes.push((percent, size));
    }
    if sizes.iter().all(|(percent, _)| (percent - FULL).abs() > 2.0) {
        sizes.push((FULL, Size::Fit(FULL)));
    }
    sizes
}

/// A round that writes less than its file system holds is repeated, and then dies in the order in which it was
/// written.
fn short(meta: &Meta) -> Option<String> {
    let (written, usage) = (meta.counts.written_bytes, meta.usage?);
    (written < usage.bytes).then(|| {
        format!(
            "simulated: a round writes {} of a file system of {}: repeated, its writes die in order, and write \
             amplification looks lower than it is; longer rounds (--seconds) or a smaller --size show more",
            bytes(written),
            bytes(usage.bytes)
        )
    })
}

/// What the drive does under each of `hintings`, in their order.
fn rows(path: &Path, mut hintings: Vec<Hinting>, request: &Request) -> Result<Vec<Row>> {
    let trace = Trace::open(path)?;
    for hinting in &mut hintings {
        // nothing that the policy names was written
        if let Err(shelflife_simulate::Error::MatchesNothing { .. }) =
            hinting.by_file(trace.files())
        {
            *hinting = Hinting::Off;
        }
    }
    let run = |trace, hintings| {
        let recorded = Recorded { trace, hintings, repeat: true };
        simulate(&recorded.into(), request, &|_| ())
    };
    let many = hintings.len();
    let report = match run(trace, hintings) {
        // the round's policy named nothing that was written
        Err(shelflife_simulate::Error::NoHints) => {
            run(Trace::open(path)?, vec![Hinting::Off; many])?
        }
        report => report?,
    };
    Ok(report.rows)
}

#[cfg(test)]
mod tests {
    use shelflife_layout::Class;
    use shelflife_lifetime::Lifetime;
    use shelflife_trace::{Device, FileEntry, TraceWriter, Usage};

    use super::*;
    use crate::record::fixtures::{header, round};
    use crate::record::{FILE, Record, Recorded as RecordedRound, Writer};

    /// A log of 2,000 pages that goes round beside 20,000 pages written at random.
    fn trace(path: &Path, hinted: bool) {
        let mut meta = Meta::new("record", vec![Device::new("a", None)]);
        meta.usage = Some(Usage { bytes: 24_000 * 4096, used_bytes: 22_000 * 4096 });
        let mut writer = TraceWriter::create(path, meta).unwrap();
        let file = |class: Class, name: &str| {
            let mut file = FileEntry::new(class.into());
            file.path = Some(name.into());
            file
        };
        let log =
            writer.files_mut().push(file(Class::Wal, "pg_wal/000000010000000000000001")).unwrap();
        let heap = writer.files_mut().push(file(Class::Relation, "base/5/16384")).unwrap();
        let mut random = 1_u64;
        for at in 0..80_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (page, file, hint) = match at % 2 {
                0 => (at / 2 % 2000, log, if hinted { Lifetime::Short } else { Lifetime::NotSet }),
                _ => (2000 + (random >> 33) % 20_000, heap, Lifetime::NotSet),
            };
            let event = shelflife_trace::Event {
                time: at,
                offset: page * 4096,
                length: 4096,
                file,
                hint,
                ..Default::default()
            };
            writer.push(&event).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn a_round_that_writes_less_than_there_is_room_is_named() {
        let mut meta = Meta::new("record", vec![Device::new("a", None)]);
        meta.counts.written_bytes = 639_000_000;
        assert_eq!(short(&meta), None);
        meta.usage = Some(Usage { bytes: 1_200_000_000, used_bytes: 1_000_000_000 });
        assert!(short(&meta).unwrap().contains("639 MB of a file system of 1.2 GB"));
        meta.counts.written_bytes = 1_200_000_000;
        assert_eq!(short(&meta), None);
    }

    #[test]
    fn hints_of_the_rounds_and_of_the_policy_agree() {
        let folder = tempfile::tempdir().unwrap();
        let head = header(&["off", "wal-first"], 2);
        let path = folder.path().join(FILE);
        let mut writer = Writer::create(&path, head.clone()).unwrap();
        for position in 0..4 {
            let mut round = round(&head, position, 1.0);
            let place = folder.path().join(format!("trace-{position}"));
            trace(&place, round.arm == 1);
            let recorded = RecordedRound {
                trace: place,
                events: 1,
                written_bytes: 1,
                discards: 0,
                lost: 0,
                attributed: None,
                uncommitted_files: 0,
                blocks: Vec::new(),
            };
            round.measured.as_mut().unwrap().recorded = Some(recorded);
            writer.write(&Record::Round(Box::new(round))).unwrap();
        }
        let results = Results::read(&path).unwrap();
        let found = simulated(&results, None, &mut || true).unwrap().unwrap();
        assert_eq!((found.blocks, found.full_percent.len()), (2, 1));
        let [off, hinted] = &found.arms[..] else { panic!("{found:?}") };
        assert!(found.notes.is_empty(), "{found:?}");
        assert_eq!(off.predicted, off.recorded);
        assert_eq!(hinted.predicted, hinted.recorded);
        assert!(hinted.recorded[0].waf.mean < off.recorded[0].waf.mean * 0.97, "{found:?}");
        assert_eq!(off.recorded[0].saved.most, 0.0);
        assert!(hinted.recorded[0].saved.least > 0.03, "{found:?}");
        // what is copied less was valid less
        let valid = |arm: &SimulatedArm| {
            let bins = arm.victims[0].iter().enumerate();
            let sum: f64 = bins.map(|(bin, units)| bin as f64 * *units as f64).sum();
            sum / arm.victims[0].iter().sum::<u64>() as f64
        };
        assert!(valid(hinted) < valid(off), "{found:?}");
        assert!(simulated(&results, None, &mut || false).unwrap_err().is_interrupted());
        std::fs::remove_dir_all(folder.path().join("trace-0")).unwrap();
        assert_eq!(simulated(&results, None, &mut || true).unwrap().unwrap().blocks, 1);
        std::fs::remove_dir_all(folder.path().join("trace-3")).unwrap();
        assert_eq!(simulated(&results, None, &mut || true).unwrap(), None);
    }
}
