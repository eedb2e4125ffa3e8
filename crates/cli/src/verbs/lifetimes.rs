//! `lifetimes`: how long what was written lived.

use std::fmt::Write;
use std::time::Duration;

use shelflife_learn::{Error, LifetimeOptions, Lifetimes, Row, Spread, lifetimes};
use shelflife_report::{Table, bytes, duration, figure, plain};
use shelflife_trace::Trace;

use crate::args::LifetimesArgs;
use crate::done::{Done, Failure, USE, code_of};
use crate::progress::EventProgress;
use crate::verbs::simulate::memory;
use crate::verbs::trace::failure;

pub fn run(args: &LifetimesArgs) -> Result<Done, Failure> {
    let trace = Trace::open(&args.trace).map_err(failure)?;
    let options =
        LifetimeOptions { by: args.by.into(), one_in: args.sample, memory_bytes: memory() };
    let mut progress = EventProgress::new("events", Some(trace.meta().counts.events))?;
    let found = lifetimes(&trace, &options, &mut |events| progress.show(events));
    drop(progress);
    let found = found.map_err(learn_failure)?;
    if args.json {
        return Done::json(&found);
    }
    if args.csv {
        return Ok(Done::text(csv(&found)));
    }
    Ok(in_words(&found, args.top))
}

/// What a failure of `learn` ends with.
pub fn learn_failure(error: Error) -> Failure {
    match error {
        Error::Trace(error) => failure(error),
        error => {
            let error = anyhow::Error::from(error);
            Failure { code: code_of(&error).max(USE), error }
        }
    }
}

fn csv(found: &Lifetimes) -> String {
    let mut text = "name,clock,lifetime,alive\n".to_owned();
    for row in std::iter::once(&found.total).chain(&found.rows) {
        let name = plain(&row.name).replace('"', "\"\"");
        for (clock, spread) in [("host-bytes", &row.host_bytes), ("ns", &row.time_ns)] {
            for point in &spread.curve {
                let _ = writeln!(text, "\"{name}\",{clock},{},{:.6}", point.at, point.alive);
            }
        }
    }
    text
}

/// A lifetime, or more than the longest that was seen.
fn lifetime(of: Option<u64>, spread: &Spread, unit: fn(u64) -> String) -> String {
    of.map_or_else(|| format!("> {}", unit(spread.longest)), unit)
}

fn time(ns: u64) -> String {
    duration(Duration::from_nanos(ns))
}

fn in_words(found: &Lifetimes, top: usize) -> Done {
    let mut text = format!("{}\n\n", answer(found));
    let by = format!("{:?}", found.by).to_lowercase();
    let mut heads = vec![by.as_str(), "written", "alive", "p10", "median", "p90", "median time"];
    if found.one_in > 1 {
        heads.push("± rank");
    }
    let mut table = Table::new(heads).right(1..8);
    for row in found.rows.iter().take(top).chain((found.rows.len() != 1).then_some(&found.total)) {
        let spread = &row.host_bytes;
        let host = |of| lifetime(of, spread, bytes);
        let mut cells = vec![
            row.name.clone(),
            bytes(row.bytes),
            format!("{} %", figure(row.share_alive * 100.0)),
            host(spread.p10),
            host(spread.median),
            host(spread.p90),
            lifetime(row.time_ns.median, &row.time_ns, time),
        ];
        if let Some(error) = row.rank_error {
            cells.push(format!("{} %", figure(error * 100.0)));
        }
        table.row(cells);
    }
    let _ = writeln!(text, "{table}");
    if let Some(more) = found.rows.len().checked_sub(top + 1) {
        let _ = writeln!(text, "and {} more (--top)", more + 1);
    }
    for note in &found.notes {
        let _ = writeln!(text, "{}", plain(note));
    }
    Done::text(text)
}

/// What dies first and what last, of all that is at least a hundredth of the bytes.
fn answer(found: &Lifetimes) -> String {
    let total = &found.total;
    let median = |row: &Row| lifetime(row.host_bytes.median, &row.host_bytes, bytes);
    let mut text = format!(
        "half of what is written to {} dies within {} of host writes",
        if found.unit == "page" { "a page" } else { "an address" },
        median(total)
    );
    let key = |row: &&Row| row.host_bytes.median.unwrap_or(u64::MAX);
    let large = || found.rows.iter().filter(|row| row.bytes >= total.bytes / 100);
    if let (Some(first), Some(last)) = (large().min_by_key(key), large().max_by_key(key))
        && first.name != last.name
    {
        let _ = write!(
            text,
            ": of {} within {}, of {} {}",
            plain(&first.name),
            median(first),
            plain(&last.name),
            median(last)
        );
    }
    if total.host_bytes.median.is_none() {
        text = text.replacen("dies within >", "lives for more than", 1);
    }
    text
}
