//! `docs/support-matrix.md`, from the results.
//!
//! Invariant: a cell says only what its result says; a stack without a result shows as not run.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::agree::{self, MODES, Verdict};
use crate::observe::Tag;
use crate::stacks::{self, Medium, STACKS, Stack};
use crate::store::Outcome;

/// A kernel's column.
pub struct Column {
    /// `uname -r`.
    pub release: String,
    /// Packages and versions.
    pub packages: Vec<String>,
    /// Results by stack.
    pub results: BTreeMap<String, Outcome>,
}

/// How many cells agree, disagree, and were skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// All answers fit.
    pub agree: usize,
    /// Some do not, or there are none.
    pub disagree: usize,
    /// Cannot be on this kernel, or was not run.
    pub skipped: usize,
    /// Of those that agree or disagree: prove answered.
    pub proved: usize,
}

/// One cell.
pub enum Cell {
    /// Its two modes.
    Judged([agree::Mode; 2]),
    /// It could not be built, which it must be.
    Failed(String),
    /// Why there is nothing.
    Skipped(String),
}

/// Judges `outcome`.
pub fn cell(outcome: Option<&Outcome>) -> Cell {
    match outcome {
        None => Cell::Skipped("not run".into()),
        Some(Outcome { failed: Some(why), .. }) => Cell::Failed(why.clone()),
        Some(Outcome { skipped: Some(why), .. }) => Cell::Skipped(why.clone()),
        Some(outcome) => {
            let lines = outcome.lines();
            let prove = !stacks::is_raw(&outcome.stack);
            Cell::Judged(MODES.map(|name| agree::mode(&lines, name, prove)))
        }
    }
}

impl Cell {
    /// Counts it.
    pub fn count(&self, tally: &mut Tally) {
        if matches!(self, Cell::Judged(modes) if modes.iter().all(|m| m.shown.is_some())) {
            tally.proved += 1;
        }
        match self {
            Cell::Skipped(_) => tally.skipped += 1,
            Cell::Judged(modes) if modes.iter().all(|m| m.trouble.is_none()) => tally.agree += 1,
            Cell::Judged(_) | Cell::Failed(_) => tally.disagree += 1,
        }
    }

    /// One line for the terminal.
    pub fn line(&self) -> String {
        match self {
            Cell::Failed(why) => format!("FAILED: {why}"),
            Cell::Skipped(why) => format!("skipped: {why}"),
            Cell::Judged(modes) => MODES
                .iter()
                .zip(modes)
                .map(|(name, mode)| {
                    let seen = mode.seen.title();
                    match &mode.trouble {
                        None if mode.shown.is_some() => {
                            format!("{name} {seen}, as doctor said and prove showed")
                        }
                        None => format!("{name} {seen}, as doctor said"),
                        Some(why) => format!("{name} {seen}: DISAGREES: {why}"),
                    }
                })
                .collect::<Vec<_>>()
                .join("; "),
        }
    }
}

/// The whole document.
pub fn document(columns: &[Column], date: &str, emulator: &str) -> (String, Tally) {
    let mut tally = Tally::default();
    let mut body = String::new();
    for medium in [Medium::Scsi, Medium::Fdp, Medium::Nvme, Medium::Virtio] {
        let _ = write!(body, "\n## {}\n\n| stack | |", medium.title());
        for column in columns {
            let _ = write!(body, " {} |", short(&column.release));
        }
        let _ = write!(body, "\n| --- | --- |{}\n", " --- |".repeat(columns.len()));
        for stack in STACKS.iter().filter(|s| s.medium == medium) {
            rows(&mut body, stack, columns, &mut tally);
        }
    }
    let mut text = HEAD.replace("DATE", date).replace("EMULATOR", emulator);
    for column in columns {
        let _ = writeln!(text, "| {} | {} |", column.release, column.packages.join(", "));
    }
    let Tally { agree, disagree, skipped, proved } = tally;
    let _ = writeln!(
        text,
        "\n{agree} cells agree, {disagree} disagree, {skipped} skipped. Prove answered in {proved} \
         of them."
    );
    (text + &body, tally)
}

const HEAD: &str = "\
# What carries a write hint to the drive

Made by `make lab` on DATE: each stack was built on stock kernels in EMULATOR, files and devices were
written with each hint, buffered and with O_DIRECT, and the drive's side was watched without
shelflife's help (tracepoints of the SCSI and NVMe drivers; the counters of `scsi_debug` and of the
FDP handles). *doctor* is what `shelflife doctor` said beforehand, *prove* what `shelflife prove` saw
(files only), *drive* what was seen; ✓ says that all are the same, lifetime by lifetime, and ✗ is
followed by what differs.

A drive's cell names what it saw for short, medium, long and extreme, as group number (SCSI) or
placement identifier (NVMe), and for data without a hint after the bar; `-` is a write without one.
*file system only*: the file system sorts by the hint, the drive does not hear it. *16 KiB a time*: on
f2fs, what is synced with at most 16 dirty pages goes to the hot log whatever its hint. How to read it for
your own machine: [delivery.md](delivery.md); how it is made: [the lab](../lab/README.md).

| kernel | packages |
| --- | --- |
";

fn rows(body: &mut String, stack: &Stack, columns: &[Column], tally: &mut Tally) {
    let cells: Vec<Cell> =
        columns.iter().map(|column| cell(column.results.get(stack.name))).collect();
    for cell in &cells {
        cell.count(tally);
    }
    for (n, name) in MODES.iter().enumerate() {
        let first = if n == 0 {
            format!("{} <a id=\"{1}\"></a>`{1}`", stack.title(), stack.name)
        } else {
            String::new()
        };
        let _ = write!(body, "| {first} | {name} |");
        for cell in &cells {
            let _ = write!(body, " {} |", half(cell, n));
        }
        body.push('\n');
    }
    if stack.filesystem == "f2fs" {
        body.push_str("| | 16 KiB a time |");
        for column in columns {
            let lines = column.results.get(stack.name).map(Outcome::lines).unwrap_or_default();
            let _ = match agree::small(&lines) {
                Some(tags) if tags.is_empty() => write!(body, " drive: all the same |"),
                Some(tags) => write!(body, " drive: told apart, {} |", places(&tags)),
                None => write!(body, " |"),
            };
        }
        body.push('\n');
    }
}

/// What the drive saw for short, medium, long and extreme, and without a hint.
fn places(tags: &[Tag]) -> String {
    let name = |tag: &Tag| tag.map_or("-".to_owned(), |tag| tag.to_string());
    let (plain, hinted) = tags.split_first().map_or((None, tags), |(p, h)| (Some(p), h));
    let hinted: Vec<String> = hinted.iter().map(name).collect();
    format!("{} \\| {}", hinted.join(" "), plain.map(name).unwrap_or_default())
}

/// One mode of a cell.
fn half(cell: &Cell, n: usize) -> String {
    let modes = match cell {
        Cell::Judged(modes) => modes,
        Cell::Skipped(why) if n == 0 => return format!("skipped: {}", why.replace('|', "/")),
        Cell::Failed(why) if n == 0 => return format!("failed: {} ✗", why.replace('|', "/")),
        Cell::Skipped(_) | Cell::Failed(_) => return String::new(),
    };
    let mode = &modes[n];
    let mut seen = mode.seen.title().to_owned();
    if mode.seen == Verdict::Delivered {
        let _ = write!(seen, " {}", places(&mode.tags));
    }
    if mode.partly {
        seen += " (a copy without)";
    }
    let said = |verdict: Option<Verdict>| verdict.map_or("no answer", Verdict::title);
    match (&mode.trouble, mode.shown) {
        (None, Some(_)) => format!("doctor, prove, drive: {seen} ✓"),
        (None, None) => format!("doctor, drive: {seen} ✓"),
        (Some(why), shown) => {
            let (doctor, prove) = (said(mode.predicted), said(shown));
            let why = why.replace('|', "/");
            format!("doctor: {doctor}; prove: {prove}; drive: {seen} ✗ {why}")
        }
    }
}

/// `6.12.118+deb13-amd64` → `6.12.118`.
pub fn short(release: &str) -> &str {
    let end = release.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(release.len());
    &release[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Part;

    #[test]
    fn what_was_not_run_is_skipped_and_disagreement_shows() {
        let outcome = Outcome {
            release: "7.3.4-amd64".into(),
            stack: "scsi-ext4".into(),
            at: 0,
            seconds: 0,
            failed: None,
            skipped: None,
            seen: Part { build: String::new(), lines: vec!["probe buffered not-set".into()] },
            said: Part::default(),
        };
        let results = BTreeMap::from([("scsi-ext4".to_owned(), outcome)]);
        let column = Column { release: "7.3.4-amd64".into(), packages: vec!["p".into()], results };
        let (text, tally) = document(&[column], "1 May", "QEMU");
        assert_eq!(tally, Tally { agree: 0, disagree: 1, skipped: STACKS.len() - 1, proved: 0 });
        assert!(text.contains("drive: unknown ✗"), "{text}");
        assert!(text.contains("skipped: not run"));
    }
}
