//! What the results say: the analysis, figures for each arm, and what must be said beside them.
//!
//! Invariant: nothing is left out silently. Rounds of a block that was broken off, failed rounds,
//! transient ones, checkpoints that differ: each is a note, and the answer is one honest sentence.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use shelflife_trace::Volume;

use crate::error::Result;
use crate::notes::notes_of;
use crate::record::{Event, Header, Measured, Record, Results, Round, What};
use crate::spec::{Preset, Primary};
use crate::stats::{self, Analysis, Data, Metric, Reported, Verdict, analyse, median};

/// What users report for the original idea on the mailing list: the reason for `reported` in the
/// analysis. Both in percent.
const REPORTED: Reported = Reported { low_percent: 5.0, high_percent: 8.0 };

/// What an answer from a drive's own counters begins with, and no other does.
const ON_THE_DRIVE: &str = "measured on the drive, write amplification";

/// The answer of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The answer in one sentence.
    pub answer: String,
    /// Whether all planned rounds were run.
    pub complete: bool,
    /// Rounds measured, of those planned.
    pub measured: usize,
    /// Rounds planned.
    pub planned: usize,
    /// What is compared.
    pub primary: Primary,
    /// The statistics; `None` before the first whole block.
    pub analysis: Option<Analysis>,
    /// Figures of each arm, in order.
    pub arms: Vec<ArmFigures>,
    /// What must be known beside the answer.
    pub notes: Vec<String>,
}

/// Medians over an arm's rounds; `None` where nothing was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArmFigures {
    /// The arm's label.
    pub label: String,
    /// Rounds measured.
    pub rounds: usize,
    /// Transactions per second.
    pub tps: Option<f64>,
    /// Write amplification by the drive's own counters, if the rounds are epochs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waf: Option<f64>,
    /// Mean latency in ms.
    pub latency_ms: Option<f64>,
    /// 95th percentile of the latency in ms.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the latency in ms.
    pub p99_ms: Option<f64>,
    /// WAL bytes per transaction.
    pub wal_per_transaction: Option<f64>,
    /// Full-page images per transaction.
    pub images_per_transaction: Option<f64>,
    /// Temporary files' bytes per transaction.
    pub temp_per_transaction: Option<f64>,
    /// Share of updates that were heap-only, 0 to 1.
    pub hot_share: Option<f64>,
    /// Dead rows at the end of a round.
    pub dead_rows: Option<f64>,
    /// Checkpoints begun during the load.
    pub checkpoints: Option<f64>,
    /// Size of the database at the end of a round, in bytes.
    pub database_bytes: Option<f64>,
    /// Transactions of all rounds together.
    pub transactions: u64,
    /// What was written to the devices in all rounds together, by class of file and hint, the most
    /// first; empty if that was not recorded.
    pub blocks: Vec<Volume>,
}

/// Reads results and says what they say.
///
/// # Errors
///
/// Those of [`Results::read`].
pub fn read(path: &Path) -> Result<Outcome> {
    Results::read(path)?.outcome()
}

/// The rounds that count, by position, and those that do not.
pub(crate) struct Kept<'r> {
    pub(crate) kept: BTreeMap<u32, &'r Round>,
    /// Blocks that were broken off and begun again, with the number of their rounds.
    pub(crate) dropped: Vec<(usize, usize)>,
}

pub(crate) fn rounds_of(results: &Results) -> Kept<'_> {
    let mut kept: BTreeMap<u32, &Round> = BTreeMap::new();
    let mut dropped = Vec::new();
    for record in &results.records {
        match record {
            Record::Round(round) => {
                kept.insert(round.position, round);
            }
            // An epoch begins on a trimmed device: it needs no neighbour in time.
            Record::Event(Event { what: What::Resumed { block, .. }, .. })
                if results.header.device.is_none() =>
            {
                let before = kept.len();
                kept.retain(|_, round| round.block < *block);
                if kept.len() < before {
                    dropped.push((*block, before - kept.len()));
                }
            }
            _ => {}
        }
    }
    Kept { kept, dropped }
}

impl Results {
    /// The rounds that count, in the order of the plan. Those of a block that was broken off and begun
    /// again are not among them.
    pub fn counted(&self) -> Vec<&Round> {
        rounds_of(self).kept.into_values().collect()
    }

    /// The answer of these results, whole or not.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Stats`] if the rounds cannot be analysed.
    pub fn outcome(&self) -> Result<Outcome> {
        let spec = &self.header.spec;
        let Kept { kept, dropped } = rounds_of(self);
        let planned = spec.rounds();
        let measured = kept.values().filter(|round| round.measured.is_some()).count();
        let complete = kept.len() == planned;
        // Blocks that were not begun are not missing, they are not there yet.
        let blocks = kept.values().map(|round| round.block + 1).max().unwrap_or(0);
        let analysis = match blocks {
            0 => None,
            _ => Some(analyse(&data(&self.header, &kept, blocks, complete))?),
        };
        let figures = |arm: usize| figures(&self.header, &kept, arm);
        let mut notes = Vec::new();
        if self.torn {
            notes.push("the last line of the results was torn and is left out".to_owned());
        }
        notes.extend(dropped.iter().map(|(block, rounds)| {
            format!(
                "block {} was broken off and begun again: {rounds} of its rounds are in the results \
                 and not in the analysis",
                block + 1
            )
        }));
        notes.extend(notes_of(self, &kept, analysis.as_ref()));
        let answer = answer(self, analysis.as_ref(), complete, kept.len());
        let answer = match self.header.device {
            Some(_) => format!("{ON_THE_DRIVE}: {answer}"),
            None => answer,
        };
        let arms = (0..spec.arms.len()).map(figures).collect();
        let primary = spec.primary;
        Ok(Outcome { answer, complete, measured, planned, primary, analysis, arms, notes })
    }
}

fn data(header: &Header, kept: &BTreeMap<u32, &Round>, blocks: usize, complete: bool) -> Data {
    let spec = &header.spec;
    let mut rounds = vec![vec![None; spec.arms.len()]; blocks];
    for round in kept.values() {
        let cell = rounds.get_mut(round.block).and_then(|block| block.get_mut(round.arm));
        if let (Some(cell), Some(measured)) = (cell, &round.measured) {
            *cell = Some(stats::Round { position: round.position, value: measured.value });
        }
    }
    let idea = spec.arms.iter().skip(1).any(|arm| arm.name.starts_with("temp-vs-rest"));
    Data {
        arms: spec.arms.iter().map(|arm| arm.name.clone()).collect(),
        blocks: rounds,
        metric: spec.primary.metric(),
        reported: (idea && header.device.is_none()).then_some(REPORTED),
        // Who stops early could stop when the figures please: no verdict then.
        quick: spec.preset == Preset::Quick || !complete,
        seed: spec.seed,
    }
}

fn answer(results: &Results, analysis: Option<&Analysis>, complete: bool, done: usize) -> String {
    let spec = &results.header.spec;
    let Some(analysis) = analysis else {
        return format!("no answer: none of {} rounds is done", spec.rounds());
    };
    let early = format!("incomplete ({done} of {} rounds), no verdict", spec.rounds());
    if !analysis.comparisons.iter().all(|c| c.verdict == Verdict::Quick) {
        let said: Vec<&str> = analysis.comparisons.iter().map(|c| c.sentence.as_str()).collect();
        let said = said.join("; ");
        return if complete { said } else { format!("{early}: {said}") };
    }
    let base = spec.arms.first().map_or("", |arm| &arm.label);
    let beginning = if complete { "quick look, no verdict" } else { &early };
    let parts = analysis.comparisons.iter().filter_map(|c| {
        let label = spec.arms.get(c.arm).map_or(c.name.as_str(), |arm| &arm.label);
        let interval = c.estimate?.interval?;
        let side = |percent| side(analysis.metric, percent);
        Some(format!(
            "{label} is between {} and {}",
            side(interval.low_percent),
            side(interval.high_percent)
        ))
    });
    let level = 100.0 * stats::LEVEL;
    format!(
        "{beginning}: against {base}, {} ({level:.0} % intervals from {} blocks)",
        parts.collect::<Vec<_>>().join(", "),
        analysis.blocks
    )
}

/// "3.9 % slower".
fn side(metric: Metric, percent: f64) -> String {
    let (more, less) = match metric {
        Metric::Throughput => ("faster", "slower"),
        Metric::Time => ("slower", "faster"),
        Metric::Amount => ("higher", "lower"),
    };
    if percent > 1000.0 {
        return format!("over ten times {more}");
    }
    let word = if percent < 0.0 { less } else { more };
    format!("{:.1} % {word}", percent.abs())
}

fn figures(header: &Header, kept: &BTreeMap<u32, &Round>, arm: usize) -> ArmFigures {
    let rounds: Vec<&Measured> = kept
        .values()
        .filter(|round| round.arm == arm)
        .filter_map(|round| round.measured.as_deref())
        .collect();
    let over = |value: &dyn Fn(&Measured) -> Option<f64>| {
        let values: Vec<f64> = rounds.iter().filter_map(|round| value(round)).collect();
        median(&values)
    };
    let each = |value: &dyn Fn(&Measured) -> Option<u64>| {
        over(&|m| {
            let transactions = m.pgbench.transactions;
            Some(value(m)? as f64 / transactions as f64).filter(|_| transactions > 0)
        })
    };
    let ms = |us: u64| us as f64 / 1000.0;
    ArmFigures {
        label: header.spec.arms.get(arm).map_or_else(String::new, |arm| arm.label.clone()),
        rounds: rounds.len(),
        tps: over(&|m| Some(m.pgbench.tps)),
        waf: over(&|m| m.epoch.map(|epoch| epoch.last_half.waf())),
        latency_ms: over(&|m| m.pgbench.latency_average_ms),
        p95_ms: over(&|m| m.latency.map(|l| ms(l.p95_us))),
        p99_ms: over(&|m| m.latency.map(|l| ms(l.p99_us))),
        wal_per_transaction: each(&|m| m.load.wal_bytes),
        images_per_transaction: each(&|m| m.load.wal_full_page_images),
        temp_per_transaction: each(&|m| m.load.temp_bytes),
        hot_share: over(&|m| m.load.hot_share()),
        dead_rows: over(&|m| Some(m.after.dead_rows as f64)),
        checkpoints: over(&|m| m.checkpoints.map(|c| c as f64)),
        database_bytes: over(&|m| Some(m.after.database_bytes as f64)),
        transactions: rounds.iter().map(|m| m.pgbench.transactions).sum(),
        blocks: blocks(&rounds),
    }
}

/// Sums over rounds, the most bytes first.
fn blocks(rounds: &[&Measured]) -> Vec<Volume> {
    let mut sums: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for volume in rounds.iter().filter_map(|m| m.recorded.as_ref()).flat_map(|r| &r.blocks) {
        let sum = sums.entry((&volume.class, &volume.hint)).or_default();
        *sum = (sum.0 + volume.writes, sum.1 + volume.bytes);
    }
    let mut blocks: Vec<Volume> = sums
        .into_iter()
        .map(|((class, hint), (writes, bytes))| Volume {
            class: class.to_owned(),
            hint: hint.to_owned(),
            writes,
            bytes,
        })
        .collect();
    blocks.sort_by_key(|volume| std::cmp::Reverse(volume.bytes));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixtures::{header, round};
    use crate::record::{FILE, Writer};

    /// Results whose arms have these values; noise that differs from block to block.
    fn results(policies: &[&str], blocks: usize, effect: f64) -> (tempfile::TempDir, Vec<Round>) {
        let head = header(policies, blocks);
        let rounds = (0..head.spec.rounds() as u32).map(|position| {
            let mut round = round(&head, position, 1.0);
            let noise = [0.3, -0.2, 0.1, -0.4, 0.25, -0.05, 0.15, -0.15][round.block % 8];
            let arm = round.arm as f64;
            let value = 1000.0 + 10.0 * round.block as f64 + arm * (effect * 10.0 + 2.0 * noise);
            round.measured.as_mut().unwrap().value = value;
            round
        });
        (tempfile::tempdir().unwrap(), rounds.collect())
    }

    fn write(dir: &Path, head: &Header, records: &[Record]) -> Results {
        let path = dir.join(FILE);
        let _ = std::fs::remove_file(&path);
        let mut writer = Writer::create(&path, head.clone()).unwrap();
        records.iter().for_each(|record| writer.write(record).unwrap());
        Results::read(&path).unwrap()
    }

    fn record(round: &Round) -> Record {
        Record::Round(Box::new(round.clone()))
    }

    fn event(what: What) -> Record {
        Record::Event(Event { at: 1, what })
    }

    #[test]
    fn a_whole_trial_ends_in_its_verdict() {
        let policies = ["off", "temp-vs-rest"];
        let (dir, rounds) = results(&policies, 8, 3.0);
        let head = header(&policies, 8);
        let records: Vec<Record> = rounds.iter().map(record).collect();
        let outcome = write(dir.path(), &head, &records).outcome().unwrap();
        assert!(outcome.complete && outcome.measured == 16);
        assert!(outcome.answer.starts_with("temp-vs-rest is 2."), "{}", outcome.answer);
        assert!(outcome.answer.contains("faster (95 % interval"), "{}", outcome.answer);
        assert!(outcome.notes.iter().any(|n| n.starts_with("no temporary file")));
        assert_eq!(outcome.arms[1].rounds, 8);
    }

    #[test]
    fn no_difference_is_set_against_what_is_reported() {
        let policies = ["off", "temp-vs-rest"];
        let (dir, rounds) = results(&policies, 8, 0.0);
        let records: Vec<Record> = rounds.iter().map(record).collect();
        let outcome = write(dir.path(), &header(&policies, 8), &records).outcome().unwrap();
        assert!(outcome.answer.contains("no difference larger than ±"), "{}", outcome.answer);
        assert!(outcome.answer.contains("5–8 % reported elsewhere"), "{}", outcome.answer);
    }

    #[test]
    fn who_stops_early_gets_no_verdict() {
        let policies = ["off", "wal-first", "off"];
        let (dir, rounds) = results(&policies, 8, 5.0);
        let head = header(&policies, 8);
        let records: Vec<Record> = rounds.iter().take(22).map(record).collect();
        let outcome = write(dir.path(), &head, &records).outcome().unwrap();
        assert!(!outcome.complete);
        let begins =
            "incomplete (22 of 24 rounds), no verdict: against off#1, wal-first is between";
        assert!(outcome.answer.starts_with(begins), "{}", outcome.answer);
        assert!(outcome.answer.contains("off#2 is between"), "{}", outcome.answer);
        let none = write(dir.path(), &head, &[]).outcome().unwrap();
        assert_eq!(none.answer, "no answer: none of 24 rounds is done");
    }

    #[test]
    fn a_broken_block_is_dropped_and_said_so() {
        let policies = ["off", "off"];
        let (dir, rounds) = results(&policies, 6, 0.0);
        let head = header(&policies, 6);
        let mut records: Vec<Record> = rounds.iter().take(3).map(record).collect();
        records.push(event(What::Ended { why: "interrupted".into() }));
        let state = crate::trial::State::of(&write(dir.path(), &head, &records));
        assert_eq!((state.next_block, state.broken, state.aged), (1, 1, false));
        records.push(event(What::Resumed { block: 1, dropped: 1, rebuilt: true }));
        let mut again = rounds[2].clone();
        again.measured.as_mut().unwrap().value = 5000.0;
        records.push(record(&again));
        let half = write(dir.path(), &head, &records);
        let kept = rounds_of(&half);
        assert_eq!(kept.kept.len(), 3);
        assert_eq!(kept.kept[&2].measured.as_ref().unwrap().value, 5000.0);
        let notes = half.outcome().unwrap().notes;
        assert!(notes[0].starts_with("block 2 was broken off and begun again: 1 of"), "{notes:?}");
        records.extend(rounds[3..].iter().map(record));
        let whole = write(dir.path(), &head, &records);
        assert_eq!(crate::trial::State::of(&whole).next_block, 6);
        assert!(whole.outcome().unwrap().complete);
    }

    #[test]
    fn what_limits_the_rounds_is_noted() {
        let policies = ["off", "off"];
        let (dir, mut rounds) = results(&policies, 6, 0.0);
        rounds[0].transient = true;
        let of = |round: &mut Round| round.measured.take().unwrap();
        let mut measured = of(&mut rounds[1]);
        measured.checkpoints = Some(6);
        measured.whole_checkpoints = 5;
        measured.machine.steal = Some(0.2);
        rounds[1].measured = Some(measured);
        of(&mut rounds[4]);
        rounds[4].failed = Some("client 0 aborted".into());
        let mut measured = of(&mut rounds[5]);
        measured.whole_checkpoints = 1;
        rounds[5].measured = Some(measured);
        let records: Vec<Record> = rounds.iter().map(record).collect();
        let results = write(dir.path(), &header(&policies, 6), &records);
        let notes = results.outcome().unwrap().notes.join("\n");
        for part in [
            "1 of 12 rounds are transient",
            "1 of 11 rounds do not span two whole checkpoints",
            "block 1: checkpoints differ by more than one: off#",
            "the round failed: client 0 aborted",
            "20 % of the processors' time was stolen",
        ] {
            assert!(notes.contains(part), "{part} in\n{notes}");
        }
    }

    /// Epochs in which the drive counted so much for each arm.
    fn epochs(head: &mut Header, waf: impl Fn(&Round) -> (f64, f64)) -> Vec<Record> {
        let device = Some("/dev/nvme9n1".into());
        head.version = crate::record::VERSION;
        head.spec.primary = Primary::Waf;
        head.spec.filesystem = Some(crate::filesystem::Wanted {
            kind: crate::filesystem::Kind::F2fs,
            device,
            size: 1 << 40,
            fill: None,
            dirty: None,
            mount_options: "discard".into(),
        });
        head.device = Some(crate::record::DeviceFacts {
            name: "nvme9n1".into(),
            model: "a drive".into(),
            serial: "1".into(),
            size: 1 << 40,
            counters: crate::record::CounterSource::FdpStatistics,
            reclaim_unit: None,
        });
        let rounds = (0..head.spec.rounds() as u32).map(|position| {
            let mut round = round(head, position, 1.0);
            let (first, last) = waf(&round);
            let written = |waf: f64| crate::record::Written {
                host_bytes: 1 << 40,
                media_bytes: (waf * (1_u64 << 40) as f64) as u64,
                issued_bytes: 1 << 40,
            };
            let measured = round.measured.as_mut().unwrap();
            measured.value = last;
            measured.epoch = Some(crate::record::Epoch {
                cold_bytes: 0,
                precondition: written(1.0),
                first_half: written(first),
                last_half: written(last),
            });
            record(&round)
        });
        rounds.collect()
    }

    #[test]
    fn epochs_are_measured_on_the_drive_and_rounds_are_not() {
        let policies = ["off", "temp-vs-rest"];
        let (dir, rounds) = results(&policies, 8, 3.0);
        let mut head = header(&policies, 8);
        let records: Vec<Record> = rounds.iter().map(record).collect();
        let outcome = write(dir.path(), &head, &records).outcome().unwrap();
        assert!(!outcome.answer.contains("drive") && !outcome.answer.contains("amplification"));
        assert!(outcome.arms.iter().all(|arm| arm.waf.is_none()));

        let waf = |round: &Round| {
            let waf = 2.0 - 0.2 * round.arm as f64 + 0.01 * (round.block % 3 + round.arm) as f64;
            (if round.position == 5 { 1.5 } else { waf }, waf)
        };
        let records = epochs(&mut head, waf);
        let outcome = write(dir.path(), &head, &records).outcome().unwrap();
        let begins =
            "measured on the drive, write amplification: temp-vs-rest is 9.5 % lower (95 %";
        assert!(outcome.answer.starts_with(begins), "{}", outcome.answer);
        assert!((outcome.arms[0].waf.unwrap() - 2.01).abs() < 1e-3, "{:?}", outcome.arms[0]);
        let unsteady = outcome.notes.iter().filter(|note| note.contains("not steady yet"));
        let unsteady: Vec<_> = unsteady.collect();
        assert!(unsteady.len() == 1 && unsteady[0].starts_with("block 3, "), "{unsteady:?}");
    }

    #[test]
    fn epochs_of_a_block_that_was_broken_off_all_count() {
        let mut head = header(&["off", "off"], 6);
        let mut records = epochs(&mut head, |round| (1.5, 1.5 + 0.01 * f64::from(round.position)));
        records.insert(3, event(What::Ended { why: "interrupted".into() }));
        records.insert(4, event(What::Resumed { block: 1, dropped: 0, rebuilt: false }));
        let dir = tempfile::tempdir().unwrap();
        let results = write(dir.path(), &head, &records);
        assert_eq!(results.counted().len(), 12);
        let outcome = results.outcome().unwrap();
        assert!(outcome.complete && outcome.notes.iter().all(|note| !note.contains("broken off")));
    }
}
