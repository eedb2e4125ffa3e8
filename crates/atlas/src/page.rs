//! An atlas as a page: the grid of savings, bars with bounds, and how long data live.
//!
//! Invariant: pure; what it shows are the figures of the [`Atlas`], no others.

use shelflife_report::html::{
    self, Axis, Bar, BarGroup, Bars, Curve, Curves, Figure, Heat, HeatCell, HeatRow, Histogram,
    Page, Section, Series, Source, Table, Unit,
};

use crate::judged::{LEARNED, OFF};
use crate::recorded::ClassLife;
use crate::run::{Atlas, Entry};
use crate::table::{Kind, Row, distinct, extremes};

/// Classes with a smaller share of the bytes have no curve.
const SMALL: f64 = 0.01;
/// The least saving that has the full shade.
const FULL: f64 = 0.1;
/// The same class has the same colour in every picture.
const CLASSES: [&str; 8] =
    ["fs-journal", "wal", "relation", "index", "temp", "unlogged", "fs-metadata", "outside"];

/// The page of an atlas.
pub fn page(atlas: &Atlas) -> Page {
    let mut page =
        Page::new("Where lifetime hints help, and where not", &atlas.answer, Source::Simulated)
            .section(savings(atlas))
            .section(amplification(atlas));
    if let Some(section) = victims(atlas) {
        page = page.section(section);
    }
    page = page.section(lifetimes(atlas)).section(recordings(atlas));
    let failed = Section::new("What failed").list(atlas.failed.iter().map(ToString::to_string));
    if !failed.is_empty() {
        page = page.section(failed);
    }
    if let Some(entry) = atlas.entries.first() {
        let (captured, wanted) = (&entry.recorded.captured, &entry.recorded.wanted);
        let machine = &captured.machine;
        page = page
            .fact("recorded on", format!("kernel {}, {} processors", machine.kernel, machine.cores))
            .fact("server", format!("PostgreSQL {}, {} clients", captured.server, captured.clients))
            .fact("file system", wanted.to_string())
            .fact("bounds", "the least and the most over all victim rules and isolations");
    }
    page.made_by(concat!("shelflife ", env!("CARGO_PKG_VERSION"), " atlas"))
}

fn drives(atlas: &Atlas) -> Vec<&str> {
    distinct(atlas.rows.iter().map(|row| row.drive.as_str()))
}

/// What is compared on a drive; a name has the colour of its place, after no hints.
fn names<'a>(atlas: &'a Atlas, drive: &str) -> Vec<&'a str> {
    let rows = atlas.rows.iter().filter(|row| row.drive == drive);
    distinct(rows.flat_map(|row| &row.cells).map(|cell| cell.policy.as_str()))
}

fn savings(atlas: &Atlas) -> Section {
    let policies = distinct(
        atlas
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .filter(|cell| cell.kind == Kind::Policy)
            .map(|cell| cell.policy.as_str()),
    );
    let drives = drives(atlas);
    let columns =
        || policies.iter().flat_map(|policy| drives.iter().map(move |drive| (policy, drive)));
    let rows = atlas.entries.iter().map(|entry| {
        let scenario = &entry.recorded.captured.scenario;
        let cell = |(policy, drive): (&&str, &&str)| {
            let row =
                atlas.rows.iter().find(|row| row.scenario == *scenario && row.drive == **drive)?;
            let cell = row.cell(policy)?;
            Some(HeatCell {
                value: cell.saving,
                bounds: Some((cell.low, cell.high)),
                reason: cell.reason.clone(),
            })
        };
        HeatRow { name: scenario.clone(), cells: columns().map(cell).collect() }
    });
    let largest = atlas.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.saving.abs());
    let heat = Heat {
        rows_are: "scenario".to_owned(),
        columns_are: "policy and drive".to_owned(),
        value_is: "saving".to_owned(),
        unit: Unit::Share,
        full: largest.fold(FULL, f64::max),
        columns: columns().map(|(policy, drive)| format!("{policy}, {drive}")).collect(),
        rows: rows.collect(),
    };
    Section::new("What hints save").figure(Figure::new("Saving of write amplification", heat).reading(
        "By each drive's own rules, against no hints; below zero hints cost. A cell is shaded only if no \
         other victim rule or isolation turns its sign.",
    ))
}

fn amplification(atlas: &Atlas) -> Section {
    let mut section = Section::new("Write amplification");
    for drive in drives(atlas) {
        let rows: Vec<&Row> = atlas.rows.iter().filter(|row| row.drive == drive).collect();
        let names = names(atlas, drive);
        let group = |row: &&Row| {
            let off = Bar {
                series: Series::new("no hints", 0),
                value: row.waf,
                bounds: Some((row.low, row.high)),
                ..Bar::default()
            };
            let with = names.iter().enumerate().filter_map(|(at, name)| {
                let cell = row.cell(name)?;
                // a saving's bounds, on what the own rules have without hints
                let bounds = (row.waf * (1.0 - cell.high), row.waf * (1.0 - cell.low));
                Some(Bar {
                    series: Series::new(*name, at + 1),
                    value: cell.waf,
                    bounds: Some(bounds),
                    ..Bar::default()
                })
            });
            BarGroup {
                label: row.scenario.clone(),
                bars: std::iter::once(off).chain(with).collect(),
            }
        };
        let bars = Bars {
            x: Axis::new("write amplification", Unit::Plain),
            reference: Some((1.0, "no copies".to_owned())),
            groups: rows.iter().map(group).collect(),
        };
        let figure = Figure::new(format!("On {drive}"), bars).reading(
            "Bars by the drive's own rules. Of no hints the bounds are write amplification under other \
             rules; of all else the saving under other rules, taken off the first bar.",
        );
        section = section.figure(figure);
    }
    section
}

/// What drives had to save of what they collected, in the best and in the worst case; `None` if judgements do not
/// tell it.
fn victims(atlas: &Atlas) -> Option<Section> {
    let [best, worst] = extremes(&atlas.rows)?;
    let cases = match std::ptr::eq(best.0, worst.0) {
        true => vec![("the best and the worst case", best.0)],
        false => vec![("the best case", best.0), ("the worst case", worst.0)],
    };
    let cases = cases.into_iter();
    let figures: Vec<Figure> =
        cases.filter_map(|(case, row)| collected(atlas, case, row)).collect();
    let section = Section::new("What was valid where drives collect").text(
        "A drive collects a unit to erase it, the victim: what is valid in it has to be copied, and that is all of \
         write amplification beyond 1. By the drive's own rules; further left is better.",
    );
    (!figures.is_empty()).then(|| figures.into_iter().fold(section, Section::figure))
}

/// The victims of a row, without hints and under each policy.
fn collected(atlas: &Atlas, case: &str, row: &Row) -> Option<Figure> {
    let of_row = |entry: &&Entry| entry.recorded.captured.scenario == row.scenario;
    let entry = atlas.entries.iter().find(of_row)?;
    let judged = entry.judged.iter().find(|judged| judged.drive.name == row.drive)?;
    let is_policy = |name: &str| {
        let kind = row.cell(name).map(|cell| cell.kind);
        // what was not written changes nothing
        kind == Some(Kind::Policy) && (name != LEARNED || judged.policy.is_some())
    };
    let names = names(atlas, &row.drive).into_iter().enumerate();
    let policies = names.filter(|(_, name)| is_policy(name)).map(|(at, name)| (at + 1, name, name));
    let series =
        std::iter::once((0, "no hints", OFF)).chain(policies).filter_map(|(colour, name, arm)| {
            Some((Series::new(name, colour), judged.arm(arm)?.victims?.to_vec()))
        });
    let series: Vec<(Series, Vec<u64>)> = series.collect();
    let title = format!("Victims' valid ratio in {case}: {} on {}", row.scenario, row.drive);
    let histogram = Histogram::of_shares("valid pages of a victim", "victims", series);
    (!histogram.series.is_empty()).then(|| Figure::new(title, histogram))
}

fn lifetimes(atlas: &Atlas) -> Section {
    let mut section = Section::new("How long data live").source(Source::Measured);
    for entry in &atlas.entries {
        let unit = entry.recorded.drive_bytes() as f64;
        let large = entry.recorded.classes.iter().filter(|class| class.share >= SMALL);
        let curve = |class: &ClassLife| Curve {
            series: Series::new(class.name.as_str(), colour(&class.name)),
            points: class.curve.iter().map(|(at, alive)| (*at as f64 / unit, *alive)).collect(),
            until: Some(class.longest as f64 / unit),
        };
        let curves = Curves {
            x: Axis::new("written by the host meanwhile", Unit::named("drive writes")).log(),
            y: Axis::new("still alive", Unit::Share),
            y_range: Some((0.0, 1.0)),
            steps_from: Some(1.0),
            curves: large.map(curve).collect(),
        };
        let shows = &entry.recorded.captured.shows;
        let title = &entry.recorded.captured.scenario;
        section = section.figure(Figure::new(title.as_str(), curves).reading(format!(
            "{shows}. Where curves lie together, nothing is gained by keeping the classes apart, unless \
             one falls at once."
        )));
    }
    section
}

fn colour(class: &str) -> usize {
    CLASSES.iter().position(|name| *name == class).unwrap_or(CLASSES.len() - 1)
}

fn recordings(atlas: &Atlas) -> Section {
    let mut table = Table::new()
        .column("scenario", Unit::Plain)
        .column("drive", Unit::Bytes)
        .column("cold data", Unit::Bytes)
        .column("written", Unit::Bytes)
        .column("in", Unit::Seconds)
        .column("of it WAL", Unit::Share)
        .column("enough", Unit::Plain);
    let mut notes = Vec::new();
    for entry in &atlas.entries {
        let captured = &entry.recorded.captured;
        table.row([
            html::Cell::from(captured.scenario.as_str()),
            captured.bytes.into(),
            captured.cold_bytes.into(),
            captured.written_bytes.into(),
            captured.seconds.into(),
            entry.recorded.wal_share().into(),
            if captured.enough { "yes" } else { "no" }.into(),
        ]);
        notes
            .extend(entry.notes().into_iter().map(|note| format!("{}: {note}", captured.scenario)));
    }
    Section::new("What was recorded")
        .source(Source::Measured)
        .table("recordings", table)
        .list(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judged::Judged;
    use crate::reason::tests::{judged, recorded};

    #[test]
    fn every_figure_is_in_the_page_and_names_are_escaped() {
        let mut recorded = recorded();
        recorded.captured.scenario = "<script>".to_owned();
        let entries = vec![Entry { recorded, judged: vec![judged()] }];
        let atlas = Atlas::of(entries, Vec::new());
        let html = page(&atlas).to_string();
        assert!(html.contains("simulated") && html.contains("&lt;script&gt;"));
        assert!(!html.contains("<script"), "{html}");
        let victims = "in the best and the worst case: &lt;script&gt; on fdp-8-initial";
        for text in ["What hints save", "On fdp-8-initial", "0.01 % of the bytes (temp)", victims] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("What failed"));
    }

    #[test]
    fn of_the_learned_only_what_was_written_is_told() {
        let series = |judged| {
            let atlas =
                Atlas::of(vec![Entry { recorded: recorded(), judged: vec![judged] }], Vec::new());
            let figure = collected(&atlas, "the best case", &atlas.rows[0])?;
            Some(figure.table().csv().lines().count())
        };
        // a head, and twenty lines for each
        assert_eq!(series(judged()), Some(81));
        assert_eq!(series(Judged { policy: None, ..judged() }), Some(61));
        let mut old = judged();
        old.arms.iter_mut().for_each(|arm| arm.victims = None);
        assert_eq!(series(old), None);
    }
}
