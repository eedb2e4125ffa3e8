//! A page with every kind of picture, whose names are hostile.

use shelflife_report::html::{
    Axis, Bar, BarGroup, Bars, Cell, Curve, Curves, Estimate, Figure, Heat, HeatCell, HeatRow,
    Histogram, Intervals, Page, Raster, RoundPoint, Rounds, Section, Series, Source, Table, Unit,
};

/// A relation may be called so.
pub const HOSTILE: &str =
    "\"'><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)>";

/// Kinds of pictures.
pub const FIGURES: usize = 7;

fn series() -> Vec<Series> {
    let names = ["off", "temp-vs-rest", "wal-first", HOSTILE];
    names.iter().enumerate().map(|(colour, name)| Series::new(*name, colour)).collect()
}

/// A number that looks random, 0 to 1.
fn noise(seed: usize) -> f64 {
    let mixed = (seed as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) as f64 / u64::MAX as f64
}

fn rounds() -> Rounds {
    let block = |block: usize| {
        let round = |arm: usize| RoundPoint {
            series: (arm + block) % 4,
            x: 130.0 * (block * 4 + arm) as f64,
            y: 2300.0 + 80.0 * noise(block * 4 + arm) - 9.0 * block as f64 + 30.0 * noise(block),
        };
        (0..4).map(round).collect()
    };
    Rounds {
        x: Axis::new("time in rounds", Unit::Seconds),
        y: Axis::new("transactions per second", Unit::named("tps")),
        series: series(),
        blocks: (0..8).map(block).collect(),
    }
}

fn intervals() -> Intervals {
    let rows = series().into_iter().skip(1).enumerate().map(|(at, series)| Estimate {
        series,
        value: at as f64 - 0.4,
        bounds: Some((at as f64 - 2.1, at as f64 + 1.3)),
        remark: "8 blocks".into(),
    });
    Intervals {
        x: Axis::new("change against off", Unit::Change),
        sides: Some(("slower".into(), "faster".into())),
        rows: rows.collect(),
    }
}

fn curves() -> Curves {
    let curve = |(at, series): (usize, Series)| Curve {
        series,
        points: (1..60)
            .map(|n| {
                (f64::from(n).powi(3) * 2e4 * (at + 1) as f64, 0.97f64.powi(n * (4 - at as i32)))
            })
            .collect(),
        until: Some(9e9),
    };
    Curves {
        x: Axis::new("lifetime in bytes that the host writes", Unit::Bytes).log(),
        y: Axis::new("still alive", Unit::Share),
        y_range: Some((0.0, 1.0)),
        steps_from: Some(1.0),
        curves: series().into_iter().enumerate().map(curve).collect(),
    }
}

fn bars() -> Bars {
    let bar = |(at, series): (usize, Series)| Bar {
        series,
        value: 2.8 - 0.2 * at as f64,
        bounds: Some((2.7 - 0.2 * at as f64, 2.9 - 0.2 * at as f64)),
        remark: if at == 2 { "short".into() } else { String::new() },
    };
    let group = |label: &str| BarGroup {
        label: label.into(),
        bars: series().into_iter().enumerate().map(bar).collect(),
    };
    Bars {
        x: Axis::new("write amplification", Unit::Plain),
        reference: Some((1.0, "no copies".into())),
        groups: vec![group("greedy, as full as the file system was (92 %)"), group(HOSTILE)],
    }
}

fn raster() -> Raster {
    let (seconds, bytes) = (600.0, 4e9);
    let mut raster = Raster::new(
        (Axis::new("time", Unit::Seconds), seconds),
        (Axis::new("place on the device", Unit::Bytes), bytes),
        ("written", Unit::Bytes),
        series(),
    );
    for n in 0..40_000 {
        let time = seconds * n as f64 / 40_000.0;
        let place = match n % 3 {
            0 => 1e8 + 4e8 * (time / 120.0).fract(),
            _ => 1e9 + 2.4e9 * noise(n) * noise(n + 7),
        };
        raster.add(1 + n % 3 % 2, time, (place, 8192.0), 8192.0);
    }
    raster
}

fn histogram() -> Histogram {
    let counts =
        |at: usize| (0..20).map(move |bin| (40_usize).saturating_sub(bin * (at + 1)) as u64);
    let series = series().into_iter().enumerate().map(|(at, s)| (s, counts(at).collect()));
    Histogram::of_shares("valid pages in the victim", "victims", series.collect())
}

fn heat() -> Heat {
    let cell = |row: usize, column: usize| {
        let value = 26.0 * noise(row * 9 + column) - 8.0;
        let reason = format!("WAL dies young: {HOSTILE}");
        (row + column != 5).then_some(HeatCell {
            value,
            bounds: Some((value - 2.0, value + 2.0)),
            reason,
        })
    };
    let row = |(at, name): (usize, &str)| HeatRow {
        name: name.into(),
        cells: (0..6).map(|column| cell(at, column)).collect(),
    };
    let names = ["tpcb", "spill", "timeseries", HOSTILE];
    Heat {
        rows_are: "scenario".into(),
        columns_are: "policy and drive".into(),
        value_is: "saving".into(),
        unit: Unit::Change,
        full: 20.0,
        columns: (1..=6).map(|n| format!("wal-first, drive {n}")).collect(),
        rows: names.into_iter().enumerate().map(row).collect(),
    }
}

pub fn page() -> Page {
    let mut table = Table::new().column("arm", Unit::Plain).column("WAL/tx", Unit::Bytes);
    table.row([Cell::from(HOSTILE), 5321.0.into()]).row([Cell::from("=1+1"), None::<f64>.into()]);
    let pictures = Section::new("Pictures")
        .source(Source::Simulated)
        .text("One of each kind.")
        .list([HOSTILE, "another"])
        .table("Arms", table)
        .figure(Figure::new("Rounds", rounds()).reading("Rounds of a block are joined."))
        .figure(Figure::new("Intervals", intervals()))
        .figure(Figure::new("Lifetimes", curves()))
        .figure(Figure::new("Write amplification", bars()))
        .figure(Figure::new(HOSTILE, raster()))
        .figure(Figure::new("Victims", histogram()))
        .figure(Figure::new("Best and worst", heat()));
    Page::new(
        "Do hints change anything?",
        "wal-first is between 0.4 % slower and 3.1 % faster than off; no verdict",
        Source::Measured,
    )
    .fact("server", HOSTILE)
    .fact("kernel", "6.18")
    .section(pictures)
    .made_by("shelflife 0.1.0")
}
