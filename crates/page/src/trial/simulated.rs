//! What a drive would make of the recorded rounds.

use shelflife_report::figure;
use shelflife_report::html::{
    Axis, Bar, BarGroup, Bars, Figure, Histogram, Section, Series, Source, Unit,
};
use shelflife_trial::{Bounds, Simulated, SimulatedArm, Waf};

/// Write amplification by arm, for each share of live data.
pub(super) fn section(simulated: &Simulated, arms: &[Series]) -> Section {
    let bars = |of: fn(&Waf) -> &Bounds| -> Vec<BarGroup> {
        let group = |at: usize, rounds: fn(&SimulatedArm) -> &Vec<Waf>, label: String| {
            let bar = |(arm, series): (&SimulatedArm, &Series)| {
                let bounds = rounds(arm).get(at).map(of);
                Bar {
                    series: series.clone(),
                    value: bounds.map_or(f64::NAN, |bounds| bounds.mean),
                    bounds: bounds.map(|bounds| (bounds.least, bounds.most)),
                    remark: String::new(),
                }
            };
            BarGroup { label, bars: simulated.arms.iter().zip(arms).map(bar).collect() }
        };
        let of_size = |(at, percent): (usize, &f64)| {
            let full = figure(*percent);
            let predicted =
                format!("{full} % full, writes recorded without hints, under each policy");
            let own = format!("{full} % full, each policy's own rounds, with their hints");
            [group(at, |arm| &arm.predicted, predicted), group(at, |arm| &arm.recorded, own)]
        };
        simulated.full_percent.iter().enumerate().flat_map(of_size).collect()
    };
    let wafs = Bars {
        x: Axis::new("write amplification", Unit::Plain),
        reference: Some((1.0, "no copies".to_owned())),
        groups: bars(|rounds| &rounds.waf),
    };
    let saved = Bars {
        x: Axis::new("saved by hints", Unit::Share),
        reference: Some((0.0, "nothing".to_owned())),
        groups: bars(|rounds| &rounds.saved),
    };
    let reading = format!(
        "Flash pages written per page that the host writes. Mean of {}, with the least and the most \
         of any.",
        if simulated.blocks == 1 {
            "one block".into()
        } else {
            format!("{} blocks", simulated.blocks)
        }
    );
    let section = Section::new("What a drive that hears hints would make of it")
        .source(Source::Simulated)
        .text(format!(
            "A model of a drive ({}), scaled to the trial; no drive was measured. If the two groups of a \
             size differ by much, what a policy does depends on the round, or the rounds are too short.",
            simulated.drive
        ))
        .figure(Figure::new("Write amplification", wafs).reading(reading))
        .figure(Figure::new("What hints save of it", saved).reading(
            "Against the very same rounds without their hints: no two rounds write the same. Where both groups of a \
             size agree, what was predicted of a policy is what it does.",
        ));
    let sizes = simulated.full_percent.iter().enumerate();
    sizes
        .fold(section, |section, (at, percent)| {
            section.figure(victims(simulated, arms, at, *percent))
        })
        .list(simulated.notes.clone())
}

/// How much the drive had to save of what it collected, as full as this.
fn victims(simulated: &Simulated, arms: &[Series], at: usize, percent: f64) -> Figure {
    let counts = |(arm, series): (&SimulatedArm, &Series)| {
        Some((series.clone(), arm.victims.get(at)?.to_vec()))
    };
    let found = simulated.arms.iter().zip(arms).filter_map(counts).collect();
    let title = format!("Victims' valid ratio, {} % full", figure(percent));
    Figure::new(title, Histogram::of_shares("valid pages of a victim", "victims", found)).reading(
        "A victim is a unit that the drive collects to erase it: what is valid in it has to be copied. \
         Of the writes recorded without hints, under each policy; further left is better.",
    )
}
