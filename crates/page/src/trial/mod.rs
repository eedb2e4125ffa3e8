//! A trial as a page.
//!
//! Invariant: the headline is the outcome's answer, word for word, and all of its notes follow.

mod recorded;
mod simulated;

use shelflife_report::html::{
    Axis, Cell, Estimate, Figure, Intervals, Page, RoundPoint, Rounds, Section, Series, Source,
    Table, Unit,
};
use shelflife_report::{bytes, figure};
use shelflife_trial::record::Header;
use shelflife_trial::stats::Metric;
use shelflife_trial::{Outcome, Primary, Results, Simulated};

/// What a trial's page is made of.
#[derive(Clone, Copy, Debug)]
pub struct TrialPage<'t> {
    /// Its rounds.
    pub results: &'t Results,
    /// What they say.
    pub outcome: &'t Outcome,
    /// What the simulator makes of the recorded rounds, if it was asked.
    pub simulated: Option<&'t Simulated>,
    /// What must be known beside the outcome's own notes: why nothing was simulated.
    pub note: Option<&'t str>,
}

/// The page of a trial. Traces of recorded rounds are read where they are still there.
pub fn trial(of: &TrialPage<'_>) -> Page {
    let TrialPage { results, outcome, simulated, note } = *of;
    let header = &results.header;
    let arms: Vec<Series> = header
        .spec
        .arms
        .iter()
        .enumerate()
        .map(|(colour, arm)| Series::new(&arm.label, colour))
        .collect();
    let labels: Vec<&str> = header.spec.arms.iter().map(|arm| arm.label.as_str()).collect();
    let title = format!("Trial of {} on PostgreSQL {}", labels.join(", "), header.server.version);
    let source = match outcome.primary {
        Primary::Waf => Source::OnTheDrive,
        Primary::Tps | Primary::LatencyMean => Source::Measured,
    };
    let mut page = Page::new(title, &outcome.answer, source)
        .section(compared(outcome, &arms))
        .section(over_time(results, &arms));
    if let Some(section) = recorded::written(outcome, &arms) {
        page = page.section(section);
    }
    if let Some(simulated) = simulated {
        page = page.section(simulated::section(simulated, &arms));
    }
    for section in recorded::traced(results) {
        page = page.section(section);
    }
    let notes = outcome.notes.iter().map(String::as_str).chain(note);
    let notes = notes.map(|note| note.replace('\n', " "));
    let notes = Section::new("What must be known beside this").list(notes);
    if !notes.is_empty() {
        page = page.section(notes);
    }
    for (name, value) in facts(header) {
        page = page.fact(name, value);
    }
    page.made_by(format!(
        "Made by shelflife {} of {}; shelflife trial --read makes it anew.",
        header.shelflife,
        results.path.display()
    ))
}

/// Intervals, and the medians of each arm.
fn compared(outcome: &Outcome, arms: &[Series]) -> Section {
    let section = Section::new("The comparison");
    let Some(analysis) = &outcome.analysis else {
        return section.text("No block is whole yet: nothing can be compared.");
    };
    let base = arms.first().map_or("", |arm| arm.name.as_str());
    let rows = analysis.comparisons.iter().filter_map(|comparison| {
        let estimate = comparison.estimate?;
        let bounds = estimate.interval.map(|i| (i.low_percent, i.high_percent));
        let p = comparison.p.filter(|_| !analysis.quick);
        let p = p.map_or_else(String::new, |p| format!(", p = {}", figure(p.holm)));
        Some(Estimate {
            series: arms.get(comparison.arm)?.clone(),
            value: estimate.percent,
            bounds,
            remark: format!("{} blocks{p}", comparison.blocks),
        })
    });
    let intervals = Intervals {
        x: Axis::new(format!("change of {} against {base}", outcome.primary.name()), Unit::Change),
        sides: sides(analysis.metric),
        rows: rows.collect(),
    };
    let reading = "The mark is the estimate, the line its 95 % interval. An interval that crosses 0 \
                   does not tell the arms apart; its width is what this trial could not have seen.";
    section
        .figure(Figure::new(format!("Against {base}"), intervals).reading(reading))
        .table("Medians over the rounds", medians(outcome))
}

fn sides(metric: Metric) -> Option<(String, String)> {
    let (below, above) = match metric {
        Metric::Throughput => ("slower", "faster"),
        Metric::Time => ("faster", "slower"),
        Metric::Amount => ("less", "more"),
    };
    Some((below.to_owned(), above.to_owned()))
}

fn medians(outcome: &Outcome) -> Table {
    /// Place of the column with it.
    const WAF: usize = 2;
    let heads = [
        ("arm", Unit::Plain),
        ("rounds", Unit::Count),
        ("WAF", Unit::Plain),
        ("tps", Unit::Plain),
        ("mean ms", Unit::Plain),
        ("p95 ms", Unit::Plain),
        ("p99 ms", Unit::Plain),
        ("WAL/tx", Unit::Bytes),
        ("temp/tx", Unit::Bytes),
        ("HOT", Unit::Share),
    ];
    // Only epochs have a write amplification.
    let shown = |at: usize| at != WAF || outcome.primary == Primary::Waf;
    let columns = heads.into_iter().enumerate().filter(|(at, _)| shown(*at));
    let mut table = columns.fold(Table::new(), |table, (_, (head, unit))| table.column(head, unit));
    for arm in &outcome.arms {
        let row = [
            Cell::from(arm.label.as_str()),
            (arm.rounds as u64).into(),
            arm.waf.into(),
            arm.tps.into(),
            arm.latency_ms.into(),
            arm.p95_ms.into(),
            arm.p99_ms.into(),
            arm.wal_per_transaction.into(),
            arm.temp_per_transaction.into(),
            arm.hot_share.into(),
        ];
        let cells = row.into_iter().enumerate().filter(|(at, _)| shown(*at));
        table.row(cells.map(|(_, cell)| cell));
    }
    table
}

/// All rounds that count, those of a block joined.
fn over_time(results: &Results, arms: &[Series]) -> Section {
    let primary = results.header.spec.primary;
    let unit = match primary {
        Primary::Tps => Unit::named("tps"),
        Primary::LatencyMean => Unit::named("ms"),
        Primary::Waf => Unit::Plain,
    };
    let y = match primary {
        Primary::Tps => Axis::new("transactions per second", unit),
        Primary::LatencyMean => Axis::new("mean latency", unit),
        Primary::Waf => Axis::new("write amplification", unit),
    };
    let mut blocks: Vec<Vec<RoundPoint>> = Vec::new();
    let mut spent = 0.0;
    for round in results.counted() {
        let x = spent + round.took_s / 2.0;
        spent += round.took_s;
        let Some(measured) = &round.measured else { continue };
        if blocks.len() <= round.block {
            blocks.resize_with(round.block + 1, Vec::new);
        }
        blocks[round.block].push(RoundPoint { series: round.arm, x, y: measured.value });
    }
    let x = Axis::new("time in rounds", Unit::Seconds);
    let rounds = Rounds { x, y, series: arms.to_vec(), blocks };
    let reading = "Rounds of a block are joined: arms are compared only there. If all marks drift \
                   together, that is the machine. The axis does not begin at 0.";
    Section::new("The rounds").figure(Figure::new("Rounds over time", rounds).reading(reading))
}

/// On what this was measured.
fn facts(header: &Header) -> Vec<(&'static str, String)> {
    let (spec, machine, server) = (&header.spec, &header.machine, &header.server);
    let load = match spec.rate {
        Some(rate) => format!("{} transactions per second wanted", figure(rate)),
        None => "as fast as it can".to_owned(),
    };
    let storage = &machine.storage;
    let settings = server.settings.iter().map(|s| format!("{}={}", s.name, s.value));
    let mut facts = vec![
        ("server", format!("PostgreSQL {}", server.version)),
        ("kernel", machine.kernel.clone()),
        (
            "machine",
            format!(
                "{} processors{}{}",
                machine.cores,
                machine.processor.as_ref().map_or_else(String::new, |name| format!(", {name}")),
                machine.memory.map_or_else(String::new, |size| format!(", {}", bytes(size)))
            ),
        ),
        ("storage", format!("{} ({}, {})", storage.device, storage.file_system, storage.options)),
        (
            "load",
            format!(
                "{}pgbench scale {}, {} clients, {load}",
                spec.scenario.as_ref().map_or_else(String::new, |s| format!("scenario {s}, ")),
                spec.scale,
                spec.clients
            ),
        ),
        (
            "plan",
            match &header.device {
                Some(device) => format!(
                    "{} blocks of epochs on {} ({}, {}), seed {}",
                    spec.blocks,
                    device.name,
                    device.model,
                    bytes(device.size),
                    spec.seed
                ),
                None => {
                    format!(
                        "{} blocks of {} s rounds, seed {}",
                        spec.blocks, spec.seconds, spec.seed
                    )
                }
            },
        ),
        ("settings", settings.collect::<Vec<_>>().join(" ")),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}
