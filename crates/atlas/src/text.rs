//! An atlas for a terminal: the answer, then for each drive what hints bring and what else would, then
//! the reasons.
//!
//! Invariant: the first line is the answer, and everything stands below the word *simulated*.

use std::fmt::Write;

use shelflife_report::{Table, bytes, duration, figure, plain};
use shelflife_ssd::Isolation;

use crate::run::{Atlas, Entry};
use crate::table::{Cell, Kind, Row, distinct, extremes};

/// The atlas in words.
pub fn in_words(atlas: &Atlas) -> String {
    let mut text = format!("{}: {}\n", atlas.source, atlas.answer);
    for drive in distinct(atlas.rows.iter().map(|row| row.drive.as_str())) {
        let rows: Vec<&Row> = atlas.rows.iter().filter(|row| row.drive == drive).collect();
        text += &of_drive(&rows);
    }
    if !atlas.rows.is_empty() {
        text += &format!("\nwhy\n{}\n", reasons(atlas));
    }
    text += &recordings(&atlas.entries);
    for failed in &atlas.failed {
        let _ = writeln!(text, "failed: {}", plain(&failed.to_string()));
    }
    text
}

/// Best and worst case.
pub(crate) fn answer(rows: &[Row]) -> String {
    let Some([best, worst]) = extremes(rows) else {
        return "nothing was judged".to_owned();
    };
    let case = |(row, cell): (&Row, &Cell)| {
        format!(
            "{} for {} on {}, write amplification {} → {}, {}",
            cell.policy,
            plain(&row.scenario),
            plain(&row.drive),
            waf(row.waf),
            waf(cell.waf),
            change(cell)
        )
    };
    format!("best case: {}; worst case: {}", case(best), case(worst))
}

/// `saves 15.7 % (11 … 16.2 %)`
fn change(cell: &Cell) -> String {
    let verb = if cell.saving < 0.0 { "costs" } else { "saves" };
    format!(
        "{verb} {} % ({})",
        figure(cell.saving.abs() * 100.0),
        bounds(cell.low * 100.0, cell.high * 100.0)
    )
}

fn bounds(low: f64, high: f64) -> String {
    format!("{} … {} %", signed(low), signed(high))
}

fn signed(value: f64) -> String {
    figure(value).replace('-', "−")
}

fn waf(waf: f64) -> String {
    format!("{waf:.2}")
}

/// What is done, in the order of the first row that has it.
fn columns<'a>(rows: &[&'a Row], is_one: impl Fn(Kind) -> bool) -> Vec<&'a str> {
    let cells = rows.iter().flat_map(|row| &row.cells).filter(|cell| is_one(cell.kind));
    distinct(cells.map(|cell| cell.policy.as_str()))
}

fn of_drive(rows: &[&Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let isolation = match first.rules.isolation {
        Isolation::Initial => "initial",
        Isolation::Persistent => "persistent",
    };
    let mut text = format!(
        "\n{}, transport {}, victim {}, {isolation} isolation; in brackets the least and the most \
         that is saved under any victim rule and isolation\n",
        plain(&first.drive),
        first.transport,
        first.rules.victim.name(),
    );
    text += &format!("{}\n", grid(rows, |kind| kind == Kind::Policy, true));
    text +=
        &format!("\ninstead of hints, and bounds\n{}\n", grid(rows, |k| k != Kind::Policy, false));
    text
}

fn grid(rows: &[&Row], is_one: impl Fn(Kind) -> bool, with_wear: bool) -> Table {
    let names = columns(rows, is_one);
    let mut heads = vec!["scenario", "no hints"];
    heads.extend(&names);
    if with_wear {
        heads.extend(["of possible", "drive writes a day", "years without hints", "at best"]);
    }
    let last = heads.len();
    let mut table = Table::new(heads).right(1..last);
    for row in rows {
        let mut cells = vec![row.scenario.clone(), waf(row.waf)];
        for name in &names {
            cells.push(row.cell(name).map_or("-".to_owned(), |cell| {
                if !cell.is_written {
                    return "none written".to_owned();
                }
                format!(
                    "{}  {} % ({})",
                    waf(cell.waf),
                    signed(cell.saving * 100.0),
                    bounds(cell.low * 100.0, cell.high * 100.0)
                )
            }));
        }
        if with_wear {
            let years = |years: Option<f64>| years.map_or("-".to_owned(), figure);
            let policies = row.cells.iter().filter(|cell| cell.kind == Kind::Policy);
            let best = policies.filter_map(|cell| cell.years).chain(row.years).reduce(f64::max);
            let share = |share: f64| format!("{} %", signed((share * 100.0).round()));
            cells.extend([
                row.of_possible.map_or("-".to_owned(), share),
                figure(row.drive_writes_per_day),
                years(row.years),
                years(best),
            ]);
        }
        table.row(cells);
    }
    table
}

fn reasons(atlas: &Atlas) -> String {
    let mut text = String::new();
    for row in &atlas.rows {
        let _ = writeln!(text, "{} on {}", plain(&row.scenario), plain(&row.drive));
        for cell in &row.cells {
            let _ = writeln!(text, "  {}: {}", cell.policy, plain(&cell.reason));
        }
        for note in &row.notes {
            let _ = writeln!(text, "  note: {}", plain(note));
        }
    }
    text.pop();
    text
}

fn recordings(entries: &[Entry]) -> String {
    let mut heads = vec!["recording", "drive", "cold", "written", "in", "drive writes"];
    let mut classes: Vec<(&str, u64)> = Vec::new();
    for class in entries.iter().flat_map(|entry| &entry.recorded.classes) {
        match classes.iter_mut().find(|(name, _)| *name == class.name) {
            Some((_, bytes)) => *bytes += class.bytes,
            None => classes.push((&class.name, class.bytes)),
        }
    }
    classes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    // what is large somewhere
    classes.retain(|(name, _)| {
        let share = |entry: &Entry| entry.recorded.class(name).map_or(0.0, |class| class.share);
        entries.iter().any(|entry| share(entry) >= 0.01)
    });
    heads.extend(classes.iter().map(|(name, _)| *name));
    let last = heads.len();
    let mut table = Table::new(heads).right(1..last);
    let mut notes = String::new();
    for entry in entries {
        let (recorded, captured) = (&entry.recorded, &entry.recorded.captured);
        let mut cells = vec![
            captured.scenario.clone(),
            bytes(captured.bytes),
            bytes(captured.cold_bytes),
            bytes(captured.written_bytes),
            duration(std::time::Duration::from_secs(captured.seconds.max(0.0) as u64)),
            figure(captured.written_bytes as f64 / recorded.drive_bytes() as f64),
        ];
        cells.extend(classes.iter().map(|(name, _)| {
            let class = recorded.class(name);
            class.map_or("-".to_owned(), |class| format!("{} %", figure(class.share * 100.0)))
        }));
        table.row(cells);
        for note in entry.notes() {
            let _ = writeln!(notes, "{}: {}", plain(&captured.scenario), plain(&note));
        }
    }
    if table.is_empty() {
        return String::new();
    }
    format!("\nwhat was recorded\n{table}\n{notes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::tests::{judged, recorded};
    use crate::run::Failed;

    #[test]
    fn the_answer_comes_first_and_reasons_last() {
        let failed = vec![Failed {
            scenario: "queue".to_owned(),
            drive: None,
            why: "no room\u{1b}[2J".to_owned(),
        }];
        let entries = vec![Entry { recorded: recorded(), judged: vec![judged()] }];
        let text = in_words(&Atlas::of(entries, failed));
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "simulated: best case: learned for tpcb on fdp-8-initial, write amplification 2.50 → 1.90, \
             saves 24 % (0 … 24 %); worst case: temp-vs-rest for tpcb on fdp-8-initial, write \
             amplification 2.50 → 2.50, saves 0 % (0 … 0 %)"
        );
        assert!(text.contains("2.00  20 % (−10 … 20 %)"), "{text}");
        assert!(text.contains("\nwhy\ntpcb on fdp-8-initial\n  temp-vs-rest: 0.01 % of"), "{text}");
        assert!(text.contains("what was recorded"), "{text}");
        assert!(text.contains("failed: queue: no room\\u{1b}[2J"), "{text}");
        let none = Atlas::of(Vec::new(), Vec::new());
        assert_eq!(in_words(&none), "simulated: nothing was judged\n");
    }
}
