//! What the recorder saw in the rounds: bytes by class and hint, lifetimes, places.

use shelflife_report::html::{Axis, Bar, BarGroup, Bars, Figure, Section, Series, Unit};
use shelflife_report::in_full;
use shelflife_trace::{Trace, Volume};
use shelflife_trial::{ArmFigures, Outcome, Results};

use crate::{lives, places};

/// A class with a smaller share of the bytes has no bars of its own.
const SMALL: f64 = 0.005;

/// Bytes of each class for a transaction, by arm; `None` if nothing was recorded.
pub(super) fn written(outcome: &Outcome, arms: &[Series]) -> Option<Section> {
    let volumes = || outcome.arms.iter().flat_map(|arm| &arm.blocks);
    let mut classes: Vec<(&str, u64)> = Vec::new();
    for volume in volumes().filter(|volume| volume.class != "outside") {
        match classes.iter_mut().find(|(class, _)| *class == volume.class) {
            Some((_, bytes)) => *bytes += volume.bytes,
            None => classes.push((&volume.class, volume.bytes)),
        }
    }
    classes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let sum: u64 = classes.iter().map(|(_, bytes)| bytes).sum();
    classes.retain(|(_, bytes)| *bytes > 0 && *bytes as f64 >= sum as f64 * SMALL);
    if classes.is_empty() {
        return None;
    }
    let group = |(class, _): &(&str, u64)| BarGroup {
        label: (*class).to_owned(),
        bars: outcome.arms.iter().zip(arms).map(|(arm, series)| bar(arm, series, class)).collect(),
    };
    let bars = Bars {
        x: Axis::new("written for a transaction", Unit::Bytes),
        reference: None,
        groups: classes.iter().map(group).collect(),
    };
    let figure = Figure::new("Bytes for a transaction, by class of file", bars)
        .reading("Behind each bar stands the hint with which most of it left for the driver.");
    let text = "What was issued to the server's devices from the load's beginning until everything \
                was on the storage, in all rounds of an arm. That a request has a hint does not mean \
                that the drive hears it: see shelflife doctor.";
    Some(Section::new("What was written, with which hint").text(text).figure(figure))
}

fn bar(arm: &ArmFigures, series: &Series, class: &str) -> Bar {
    let of_class = || arm.blocks.iter().filter(|volume| volume.class == class);
    let sum: u64 = of_class().map(|volume| volume.bytes).sum();
    let most = of_class().max_by_key(|volume| volume.bytes);
    Bar {
        series: series.clone(),
        value: sum as f64 / arm.transactions.max(1) as f64,
        bounds: None,
        remark: most.filter(|_| sum > 0).map_or_else(String::new, |most| hint(most, sum)),
    }
}

/// The hint, with its share if it is not that of nearly all.
fn hint(most: &Volume, sum: u64) -> String {
    match most.bytes as f64 / sum as f64 {
        share if share >= 0.995 => most.hint.clone(),
        share => format!("{} {:.0} %", most.hint, share * 100.0),
    }
}

/// Lifetimes and places of the last recorded round of the base.
pub(super) fn traced(results: &Results) -> Vec<Section> {
    let rounds = results.counted();
    let recorded = rounds
        .iter()
        .rev()
        .filter(|round| round.arm == 0)
        .find_map(|round| Some((round, round.measured.as_ref()?.recorded.as_ref()?)));
    let Some((round, recorded)) = recorded else { return Vec::new() };
    let of = format!("round {} ({})", round.position + 1, round.label);
    let failed = |error: &dyn std::error::Error| {
        vec![Section::new("How long data live").text(format!(
            "The trace of {of}, {}, cannot be read any more: {}",
            recorded.trace.display(),
            in_full(error)
        ))]
    };
    let trace = match Trace::open(&recorded.trace) {
        Ok(trace) => trace,
        Err(error) => return failed(&error),
    };
    let lives = match lives::of(&trace) {
        Ok(lives) => lives,
        Err(error) => return failed(&error),
    };
    let series = lives::series(&lives);
    let mut sections = vec![lives::section(&lives, &of, &series)];
    match places::figure(&trace, &series) {
        Ok(figure) => sections.extend(figure.map(|figure| {
            let text = format!("All writes of {of}, on the device that was written most.");
            Section::new("Where it was written").text(text).figure(figure)
        })),
        Err(error) => return failed(&error),
    }
    sections
}
