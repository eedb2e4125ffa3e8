//! What must be known beside a trial's answer.
//!
//! Invariant: what limits the rounds is said, whatever the answer is.

use std::collections::BTreeMap;

use crate::record::{Event, Record, Results, Round, What};
use crate::stats::{Analysis, Comparison};

/// A lower share of bytes with their file than this is worth a note.
const WELL_ATTRIBUTED: f64 = 0.999;

/// More of the processor's time stolen than this is worth a note.
const MUCH_STEAL: f64 = 0.01;

/// Where the two halves of an epoch differ by more than this, the drive was not steady yet.
const STEADY: f64 = 0.05;

pub(crate) fn notes_of(
    results: &Results,
    kept: &BTreeMap<u32, &Round>,
    analysis: Option<&Analysis>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let warnings = results.records.iter().filter_map(|record| match record {
        Record::Event(Event { what: What::Warning { text }, .. }) => Some(text.clone()),
        _ => None,
    });
    notes.extend(warnings);
    for round in kept.values() {
        if let Some(failed) = &round.failed {
            let (block, label) = (round.block + 1, &round.label);
            notes.push(format!("block {block}, {label}: the round failed: {failed}"));
        }
    }
    let transient = kept.values().filter(|round| round.transient).count();
    if transient > 0 {
        notes.push(format!(
            "{transient} of {} rounds are transient: size or WAL files had not settled",
            kept.len()
        ));
    }
    let measured = || kept.values().filter_map(|round| round.measured.as_deref());
    let short = measured().filter(|m| m.whole_checkpoints < 2).count();
    if short > 0 {
        notes.push(format!(
            "{short} of {} rounds do not span two whole checkpoints: no claim is made about them",
            measured().count()
        ));
    }
    notes.extend(match results.header.device {
        Some(_) => unsteady(kept),
        None => uneven_checkpoints(kept),
    });
    let recorded = || measured().filter_map(|m| m.recorded.as_ref());
    let lost: u64 = recorded().map(|recorded| recorded.lost).sum();
    if lost > 0 {
        notes.push(format!("the recorder lost {lost} writes: bytes by class are too low"));
    }
    let least = recorded().filter_map(|recorded| recorded.attributed).fold(1.0, f64::min);
    if least < WELL_ATTRIBUTED {
        notes.push(format!(
            "in a round only {:.1} % of the bytes written belong to a file that is known",
            least * 100.0
        ));
    }
    let recorded = || measured().filter_map(|m| m.recorded.as_ref());
    if recorded().count() > 0 {
        let reached = |class: &str| {
            recorded().flat_map(|r| &r.blocks).any(|b| b.class == class && b.bytes > 0)
        };
        let missed = results.header.spec.exercises.iter().filter(|class| !reached(class));
        notes.extend(missed.map(|class| {
            format!(
                "not exercised: no byte of {class} reached the device, which the scenario is for"
            )
        }));
    }
    if measured().count() > 0 && measured().all(|m| m.load.temp_bytes == Some(0)) {
        notes.push(
            "no temporary file was written: a rule for them had nothing to do in this load"
                .to_owned(),
        );
    }
    let stolen = measured().filter_map(|m| m.machine.steal).fold(0.0, f64::max);
    if stolen > MUCH_STEAL {
        notes.push(format!(
            "up to {:.0} % of the processors' time was stolen by other guests of this host",
            stolen * 100.0
        ));
    }
    let Some(analysis) = analysis else { return notes };
    if let Some(drift) = analysis.drift
        && !drift.interval_over_run.contains_zero()
    {
        notes.push(format!(
            "the machine drifted by {:.1} % over the trial; arms are compared within blocks",
            drift.percent_over_run
        ));
    }
    for outlier in &analysis.outliers {
        let label = results.header.spec.arms.get(outlier.arm).map_or("", |arm| &arm.label);
        let block = outlier.block + 1;
        notes.push(format!(
            "block {block}, {label}: far out ({:.1}), and in every figure",
            outlier.value
        ));
    }
    notes.extend(analysis.comparisons.iter().filter_map(|c| power_note(results, c)));
    notes
}

/// What this many blocks could have found, and how many a small effect needs.
fn power_note(results: &Results, comparison: &Comparison) -> Option<String> {
    let power = comparison.power?;
    let label = results.header.spec.arms.get(comparison.arm).map(|arm| arm.label.as_str())?;
    let needed = match power.blocks_needed {
        Some(blocks) => format!("3 % needs {blocks} blocks (--rounds {blocks})"),
        None => "3 % cannot be found on this machine".to_owned(),
    };
    let found = match power.smallest_effect_percent {
        Some(percent) => format!(
            "{label}: {} blocks find a difference of {percent:.1} % in four of five trials",
            comparison.blocks
        ),
        None => format!("{label}: {} blocks are too few to find anything", comparison.blocks),
    };
    Some(format!("{found}; {needed}"))
}

/// Epochs in whose last half write amplification was not what it had been in the first.
fn unsteady(kept: &BTreeMap<u32, &Round>) -> Vec<String> {
    let epochs = kept.values().filter_map(|round| Some((round, round.measured.as_ref()?.epoch?)));
    let unsteady = epochs.filter_map(|(round, epoch)| {
        let (first, last) = (epoch.first_half.waf(), epoch.last_half.waf());
        ((last / first).ln().abs() > STEADY).then(|| {
            format!(
                "block {}, {}: not steady yet, write amplification was {first:.3} in the first half and \
                 {last:.3} in the last",
                round.block + 1,
                round.label
            )
        })
    });
    unsteady.collect()
}

/// Blocks whose arms had more than one checkpoint of difference.
fn uneven_checkpoints(kept: &BTreeMap<u32, &Round>) -> Vec<String> {
    let mut blocks: BTreeMap<usize, Vec<(&str, u64)>> = BTreeMap::new();
    for round in kept.values() {
        if let Some(count) = round.measured.as_ref().and_then(|m| m.checkpoints) {
            blocks.entry(round.block).or_default().push((&round.label, count));
        }
    }
    let uneven = blocks.iter().filter_map(|(block, arms)| {
        let (_, least) = arms.iter().min_by_key(|(_, count)| *count)?;
        let (_, most) = arms.iter().max_by_key(|(_, count)| *count)?;
        let counts = arms.iter().map(|(label, count)| format!("{label} {count}"));
        (most - least > 1).then(|| {
            let counts = counts.collect::<Vec<_>>().join(", ");
            format!("block {}: checkpoints differ by more than one: {counts}", block + 1)
        })
    });
    uneven.collect()
}
