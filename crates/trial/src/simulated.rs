//! What a drive would make of the recorded rounds: the simulator's write amplification of each arm.
//!
//! Invariants: a model, and called one (`source`). Arms are compared on the same blocks only: the write
//! amplification of a block is that of its `off` round, under each arm's policy, and that of each arm's own round
//! with the hints that it really had.

use std::path::Path;

use serde::Serialize;
use shelflife_simulate::{Hinting, Recorded, Request, Size, Target, simulate};
use shelflife_trace::{Trace, Usage};

use crate::error::{Error, Result};
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
    pub predicted: Vec<Bounds>,
    /// Of its own rounds, with the hints that they had.
    pub recorded: Vec<Bounds>,
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

/// Simulates the last recorded blocks; `None` if none was recorded whole, its traces are gone, or no arm
/// is without hints. `go_on` is asked between simulations.
///
/// # Errors
///
/// A trace cannot be read, or cannot be simulated; [`Error::Postgres`] (interrupted) if `go_on` said no.
pub fn simulated(results: &Results, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Simulated>> {
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
    let mut whole: Vec<Vec<&Path>> = whole.collect();
    let many = whole.len();
    whole.drain(..many.saturating_sub(BLOCKS));
    if whole.is_empty() {
        return Ok(None);
    }
    let drive = Target::named(DRIVE)?;
    let mut full_percent = Vec::new();
    let mut found = vec![[Vec::new(), Vec::new()]; spec.arms.len()];
    for block in &whole {
        let usage = Trace::open(block[off])?.meta().usage;
        let written = Trace::open(block[off])?.meta().counts.written_bytes;
        let sizes = sizes(usage, written);
        full_percent = sizes.iter().map(|(percent, _)| *percent).collect();
        for (arm, spec) in spec.arms.iter().enumerate() {
            let policy = spec.parsed()?;
            let policy = policy.map_or(Hinting::Off, |policy| Hinting::Policy(Box::new(policy)));
            let own = spec.policy.as_ref().map_or(Hinting::Off, |_| Hinting::Recorded);
            for (at, (path, hinting)) in
                [(block[off], policy), (block[arm], own)].into_iter().enumerate()
            {
                let mut wafs = Vec::new();
                for (_, size) in &sizes {
                    if !go_on() {
                        return Err(shelflife_postgres::Error::Interrupted.into());
                    }
                    wafs.push(waf(path, hinting.clone(), &drive, *size)?);
                }
                found[arm][at].push(wafs);
            }
        }
    }
    let bounds = |blocks: &[Vec<Option<f64>>]| -> Vec<Bounds> {
        let of = |at: usize| {
            Bounds::of(&blocks.iter().filter_map(|wafs| *wafs.get(at)?).collect::<Vec<_>>())
        };
        (0..full_percent.len()).filter_map(of).collect()
    };
    let arms = spec.arms.iter().zip(&found).map(|(arm, [predicted, recorded])| SimulatedArm {
        label: arm.label.clone(),
        predicted: bounds(predicted),
        recorded: bounds(recorded),
    });
    let arms = arms.collect();
    let mut notes = Vec::new();
    if many > whole.len() {
        notes.push(format!("simulated: the last {} of {many} recorded blocks", whole.len()));
    }
    Ok(Some(Simulated {
        source: "simulated",
        drive: drive.name(),
        full_percent,
        blocks: whole.len(),
        arms,
        notes,
    }))
}

/// As full as the file system was, and as a drive is that hints are for. A file system that is much larger
/// than what was written is taken to have its share of data in what was.
fn sizes(usage: Option<Usage>, written: u64) -> Vec<(f64, Size)> {
    let mut sizes = Vec::new();
    if let Some(usage) = usage {
        let percent = usage.used_bytes as f64 * 100.0 / usage.bytes.max(1) as f64;
        let large = usage.bytes > written.saturating_mul(MOST_TIMES);
        let size = if large { Size::Fit(percent.clamp(1.0, 100.0)) } else { Size::Recorded };
        sizes.push((percent, size));
    }
    if sizes.iter().all(|(percent, _)| (percent - FULL).abs() > 2.0) {
        sizes.push((FULL, Size::Fit(FULL)));
    }
    sizes
}

fn waf(path: &Path, hinting: Hinting, drive: &Target, size: Size) -> Result<Option<f64>> {
    let request = Request { targets: vec![drive.clone()], size, memory_bytes: None };
    let run = |hinting| {
        let recorded =
            Recorded { trace: Trace::open(path)?, hintings: vec![hinting], repeat: true };
        let report = simulate(&recorded.into(), &request, &|_| ())?;
        Ok::<_, Error>(report.rows.first().map(|row| row.outcome.waf))
    };
    match run(hinting) {
        // nothing that the policy names was written, or hints do not come so far
        Err(Error::Simulate(
            shelflife_simulate::Error::NoHints | shelflife_simulate::Error::MatchesNothing { .. },
        )) => run(Hinting::Off),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use shelflife_layout::Class;
    use shelflife_lifetime::Lifetime;
    use shelflife_trace::{Device, FileEntry, Meta, TraceWriter};

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
        let found = simulated(&results, &mut || true).unwrap().unwrap();
        assert_eq!((found.blocks, found.full_percent.len()), (2, 1));
        let [off, hinted] = &found.arms[..] else { panic!("{found:?}") };
        assert_eq!(off.predicted, off.recorded);
        assert_eq!(hinted.predicted, hinted.recorded);
        assert!(hinted.recorded[0].mean < off.recorded[0].mean * 0.97, "{found:?}");
        assert!(simulated(&results, &mut || false).unwrap_err().is_interrupted());
        std::fs::remove_dir_all(folder.path().join("trace-0")).unwrap();
        assert_eq!(simulated(&results, &mut || true).unwrap().unwrap().blocks, 1);
        std::fs::remove_dir_all(folder.path().join("trace-3")).unwrap();
        assert_eq!(simulated(&results, &mut || true).unwrap(), None);
    }
}
