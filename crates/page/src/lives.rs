//! How long the data of a recorded round live, by class of file.

use std::time::Duration;

use shelflife_learn::{By, LifetimeOptions, Lifetimes, Row, Spread, lifetimes};
use shelflife_report::html::{Axis, Cell, Curve, Curves, Figure, Section, Series, Table, Unit};
use shelflife_report::{bytes, duration};
use shelflife_trace::Trace;

/// Colours for classes of files; what has none of its own shares the neutral one.
const CLASS_COLOURS: usize = 7;
/// More memory is not worth a picture.
const MEMORY: u64 = 2 << 30;
/// A class with a smaller share of the bytes has no curve of its own.
const SMALL: f64 = 0.005;

/// What is found.
pub(crate) fn of(trace: &Trace) -> Result<Lifetimes, shelflife_learn::Error> {
    let options = LifetimeOptions { by: By::Class, one_in: 1, memory_bytes: Some(MEMORY) };
    lifetimes(trace, &options, &mut |_| true)
}

/// Classes that have a colour of their own, in every picture of a page: those with most bytes.
pub(crate) fn series(lives: &Lifetimes) -> Vec<Series> {
    let large =
        lives.rows.iter().filter(|row| row.bytes as f64 >= SMALL * lives.total.bytes as f64);
    large.take(CLASS_COLOURS).zip(1..).map(|(row, colour)| Series::new(&row.name, colour)).collect()
}

/// Survival curves and their quantiles.
pub(crate) fn section(lives: &Lifetimes, of: &str, series: &[Series]) -> Section {
    let lived = |series: &Series| lives.rows.iter().find(|row| row.name == series.name);
    let curves = series.iter().filter_map(|series| {
        let spread = &lived(series)?.host_bytes;
        Some(Curve {
            series: series.clone(),
            points: spread.curve.iter().map(|point| (point.at as f64, point.alive)).collect(),
            until: Some(spread.longest as f64),
        })
    });
    let curves = Curves {
        x: Axis::new("written by the host meanwhile", Unit::Bytes).log(),
        y: Axis::new("still alive", Unit::Share),
        y_range: Some((0.0, 1.0)),
        steps_from: Some(1.0),
        curves: curves.collect(),
    };
    let dies = match lives.unit {
        "page" => "A page dies when it is written again or discarded.",
        _ => {
            "An address dies when it is written again or discarded; this file system writes new \
              content elsewhere."
        }
    };
    Section::new("How long data live")
        .text(format!(
            "{dies} Curves are of {of}; what was alive at the end of it has lived at least so long \
             (Kaplan and Meier)."
        ))
        .figure(Figure::new("Share still alive, by class of file", curves).reading(
            "A steep fall is data that die together: they belong into the same erase unit. A curve \
             that stays up is data that should not share one with them.",
        ))
        .table("Lifetimes by class", table(lives))
        .list(lives.notes.clone())
}

fn table(lives: &Lifetimes) -> Table {
    let mut table = Table::new()
        .column("class", Unit::Plain)
        .column("written", Unit::Bytes)
        .column("alive at the end", Unit::Share)
        .column("p10", Unit::Plain)
        .column("median", Unit::Plain)
        .column("p90", Unit::Plain)
        .column("median time", Unit::Plain);
    for row in lives.rows.iter().chain(Some(&lives.total)) {
        let Row { host_bytes, time_ns, .. } = row;
        let host = |of| lifetime(of, host_bytes, bytes);
        let time = |ns| duration(Duration::from_nanos(ns));
        table.row([
            Cell::from(row.name.as_str()),
            row.bytes.into(),
            row.share_alive.into(),
            host(host_bytes.p10).into(),
            host(host_bytes.median).into(),
            host(host_bytes.p90).into(),
            lifetime(time_ns.median, time_ns, time).into(),
        ]);
    }
    table
}

/// A lifetime, or more than the longest that was seen.
fn lifetime(of: Option<u64>, spread: &Spread, unit: fn(u64) -> String) -> String {
    of.map_or_else(|| format!("> {}", unit(spread.longest)), unit)
}
