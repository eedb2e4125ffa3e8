//! From a recording and a judgement to figures: one row for a scenario on a drive, one cell for each
//! thing that can be done.
//!
//! Invariant: pure. Savings are shares of the write amplification without hints under the same
//! firmware; bounds are the least and the most over all victim rules and isolations.

use serde::Serialize;
use shelflife_ssd::STEADY_TOLERANCE;

use crate::judged::{DEALT, Judged, LEARNED, OFF, Rules};
use crate::reason::{Case, reason};
use crate::recorded::Recorded;

const SECONDS_A_DAY: f64 = 86_400.0;
const DAYS_A_YEAR: f64 = 365.25;

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Hints by a policy.
    Policy,
    /// Something else in their place.
    Instead,
    /// Hints by somebody who knows the future.
    Bound,
}

/// One thing that is done, in one scenario on one drive. Simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Its name, as the judgement has it.
    pub policy: String,
    /// What it is.
    pub kind: Kind,
    /// False for a learned policy that was not written; its figures are those of no hints.
    pub is_written: bool,
    /// Write amplification, by the profile's own rules.
    pub waf: f64,
    /// Share (0 to 1) of write amplification that it saves by these rules; below 0 it costs.
    pub saving: f64,
    /// The least over all rules.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// A saving up to this share is none: what the simulator is held to, or half of the 95 % interval over the
    /// passes that were judged, whichever is more; of the learned policy beyond what its hints save when they are
    /// dealt at random.
    pub noise: f64,
    /// Years until the drive's rating is used up, if all goes on at the recorded rate.
    pub years: Option<f64>,
    /// Why, in a sentence made of figures.
    pub reason: String,
}

/// A scenario on a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The scenario.
    pub scenario: String,
    /// The drive.
    pub drive: String,
    /// Lifetime → stream.
    pub transport: &'static str,
    /// The profile's own rules.
    pub rules: Rules,
    /// Write amplification without hints, by these.
    pub waf: f64,
    /// The least over all rules.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// What the host writes in a day at the recorded rate, in capacities of the drive in its own size.
    pub drive_writes_per_day: f64,
    /// Years until the drive's rating is used up at that rate without hints; `None` if the profile has no
    /// rating.
    pub years: Option<f64>,
    /// How much of what hints per file can save the learned policy saves, by the own rules: 1 is all;
    /// `None` where that is less than a twentieth.
    pub of_possible: Option<f64>,
    /// What can be done.
    pub cells: Vec<Cell>,
    /// What must be said beside the figures.
    pub notes: Vec<String>,
}

/// The arms that are shown, with what they are; others are there for the judgement only.
fn kind(arm: &str) -> Option<Kind> {
    match arm {
        OFF => None,
        "WAL on a drive of its own" | "7 % more over-provisioning" => Some(Kind::Instead),
        arm if arm.starts_with("clairvoyant") => Some(Kind::Bound),
        arm if arm.contains(", ") => None,
        _ => Some(Kind::Policy),
    }
}

impl Row {
    /// The row of a scenario on a drive; `None` if the profile's own rules were not judged.
    pub(crate) fn new(recorded: &Recorded, judged: &Judged) -> Option<Row> {
        let own = judged.own()?;
        let off = judged.wafs(OFF)?;
        let waf = *off.get(own)?.as_ref()?;
        let captured = &recorded.captured;
        let a_day = captured.written_bytes as f64 / captured.seconds.max(1e-3) * SECONDS_A_DAY;
        let years = judged.drive.rated_bytes.map(|rated| rated as f64 / a_day / DAYS_A_YEAR);
        let mut cells = Vec::new();
        for arm in &judged.arms {
            let Some(kind) = kind(&arm.name) else { continue };
            let savings: Vec<f64> =
                arm.wafs.iter().zip(off).filter_map(|(a, b)| Some(1.0 - (*a)? / (*b)?)).collect();
            // where it cannot be, under the rules that count, there is no cell
            let Some(with) = arm.wafs.get(own).copied().flatten() else { continue };
            let is_learned = arm.name == LEARNED;
            let nothing = is_learned && judged.policy.is_none();
            let with = if nothing { waf } else { with };
            let bound = |pick: fn(f64, f64) -> f64| match nothing {
                true => 0.0,
                false => savings.iter().copied().reduce(pick).unwrap_or(0.0),
            };
            let saving = 1.0 - with / waf;
            let error = arm.errors.get(own).copied().flatten().unwrap_or(0.0);
            let dealt = judged.wafs(DEALT).and_then(|wafs| *wafs.get(own)?);
            let blind =
                dealt.filter(|_| is_learned).map_or(0.0, |dealt| (1.0 - dealt / waf).max(0.0));
            let noise = blind + error.max(STEADY_TOLERANCE);
            let case = Case { recorded, judged, arm: &arm.name, kind, waf, saving, noise };
            cells.push(Cell {
                policy: arm.name.clone(),
                kind,
                is_written: !nothing,
                waf: with,
                saving,
                low: bound(f64::min),
                high: bound(f64::max),
                noise,
                years: years.map(|years| years * waf / with),
                reason: reason(&case),
            });
        }
        let all = || off.iter().copied().flatten();
        Some(Row {
            scenario: captured.scenario.clone(),
            drive: judged.drive.name.clone(),
            transport: judged.transport.name(),
            rules: judged.firmwares[own],
            waf,
            low: all().reduce(f64::min).unwrap_or(waf),
            high: all().reduce(f64::max).unwrap_or(waf),
            drive_writes_per_day: a_day / judged.drive.logical_bytes.max(1) as f64,
            years,
            // where none was written, nothing is saved
            of_possible: judged
                .share_of_clairvoyant
                .get(own)
                .copied()
                .flatten()
                .map(|share| if judged.policy.is_some() { share } else { 0.0 }),
            cells,
            notes: judged.notes.clone(),
        })
    }

    /// The cell of this name.
    pub fn cell(&self, policy: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.policy == policy)
    }
}

/// Each name once, in the order in which they come.
pub(crate) fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The policy's cell that saves most, and the one that saves least.
pub(crate) fn extremes(rows: &[Row]) -> Option<[(&Row, &Cell); 2]> {
    let cells = || {
        let all = rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
        all.filter(|(_, cell)| cell.kind == Kind::Policy && cell.is_written)
    };
    // of equals the first
    let best = cells().reduce(|a, b| if b.1.saving > a.1.saving { b } else { a })?;
    let worst = cells().reduce(|a, b| if b.1.saving < a.1.saving { b } else { a })?;
    Some([best, worst])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::tests::{judged, recorded};

    #[test]
    fn figures_are_those_of_the_own_rules_and_bounds_those_of_all() {
        let row = Row::new(&recorded(), &judged()).unwrap();
        assert_eq!((row.waf, row.low, row.high), (2.5, 2.0, 2.5));
        let cell = row.cell("wal-first").unwrap();
        assert_eq!((cell.waf, cell.kind), (2.0, Kind::Policy));
        assert!((cell.saving - 0.2).abs() < 1e-12 && (cell.low + 0.1).abs() < 1e-12);
        assert!((cell.high - 0.2).abs() < 1e-12);
        let names: Vec<&str> = row.cells.iter().map(|cell| cell.policy.as_str()).collect();
        assert_eq!(
            names,
            [
                "temp-vs-rest",
                "wal-first",
                "WAL on a drive of its own",
                "clairvoyant by file",
                "learned"
            ]
        );
        // 10 GB in 100 s on a drive of 7.68 TB, rated for 14,016 TB
        assert!((row.drive_writes_per_day - 1.1247).abs() < 1e-3, "{}", row.drive_writes_per_day);
        let years = row.years.unwrap();
        assert!((years - 4.4413).abs() < 1e-3, "{years}");
        assert!((cell.years.unwrap() - years * 1.25).abs() < 1e-9);
    }

    #[test]
    fn a_policy_that_was_not_written_changes_nothing() {
        let mut judged = judged();
        let row = Row::new(&recorded(), &judged).unwrap();
        assert!(row.cell("learned").unwrap().saving > 0.0);
        judged.policy = None;
        judged.drive.rated_bytes = None;
        let row = Row::new(&recorded(), &judged).unwrap();
        let learned = row.cell("learned").unwrap();
        assert_eq!((learned.waf, learned.saving, learned.low, learned.high), (2.5, 0.0, 0.0, 0.0));
        assert_eq!((row.years, learned.years), (None, None));
        assert!(!learned.is_written && row.cell("wal-first").unwrap().is_written);
        let rows = [row.clone()];
        let named = extremes(&rows).unwrap().map(|(_, cell)| cell.policy.as_str());
        assert!(!named.contains(&"learned"), "{named:?}");
        assert_eq!(row.of_possible, Some(0.0));
    }

    #[test]
    fn noise_is_the_own_error_and_of_the_learned_also_what_chance_saves() {
        let mut judged = judged();
        let noise = |judged: &Judged, arm: &str| {
            Row::new(&recorded(), judged).unwrap().cell(arm).unwrap().noise
        };
        assert_eq!(noise(&judged, "wal-first"), 0.01);
        assert_eq!(noise(&judged, "learned"), 0.01);
        for arm in &mut judged.arms {
            arm.errors = match arm.name.as_str() {
                "wal-first" => vec![Some(0.001), Some(0.9)],
                "learned" => vec![Some(0.03), None],
                _ => Vec::new(),
            };
            if arm.name == DEALT {
                arm.wafs[0] = Some(2.25);
            }
        }
        assert_eq!(noise(&judged, "wal-first"), STEADY_TOLERANCE);
        assert!((noise(&judged, "learned") - 0.13).abs() < 1e-12);
        // a judgement that does not tell the errors
        assert_eq!(noise(&judged, "clairvoyant by file"), STEADY_TOLERANCE);
    }

    #[test]
    fn only_policies_are_best_and_worst() {
        let rows = [Row::new(&recorded(), &judged()).unwrap()];
        let [best, worst] = extremes(&rows).unwrap();
        assert_eq!((best.1.policy.as_str(), worst.1.policy.as_str()), ("learned", "temp-vs-rest"));
        assert!(extremes(&[]).is_none());
    }
}
