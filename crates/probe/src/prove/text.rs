//! The proof for people.
//!
//! Invariant: the first line is the outcome, of several paths how many are proven.

use std::fmt::Write;

use shelflife_report::{Table, bytes, plain};

use super::{Observed, Proof, ProofReport, Ruling};
use crate::signal::Mode;

impl Proof {
    /// The proof as text, ending in a line break.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.answers.len() > 1 {
            several(&mut out, &self.answers);
        }
        for report in &self.answers {
            if !out.is_empty() {
                out.push('\n');
            }
            one(&mut out, report);
        }
        out
    }
}

/// All paths at a glance.
fn several(out: &mut String, all: &[ProofReport]) {
    let proven = all.iter().filter(|report| report.ruling == Ruling::Proven).count();
    let _ = match proven {
        0 => writeln!(out, "Proven for none of the {} paths.", all.len()),
        n if n == all.len() => writeln!(out, "Proven for all {n} paths."),
        n => writeln!(out, "Proven for {n} of {} paths.", all.len()),
    };
    out.push('\n');
    let heads =
        ["path", "outcome", "through the page cache", "with O_DIRECT", "as doctor predicts"];
    let mut table = Table::new(heads);
    for report in all {
        let agrees = match report.agrees {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        table.row([
            report.path.display().to_string(),
            report.ruling.name().to_owned(),
            report.buffered.to_string(),
            report.direct.to_string(),
            agrees.to_owned(),
        ]);
    }
    let _ = writeln!(out, "{table}");
}

fn one(out: &mut String, report: &ProofReport) {
    let _ = writeln!(out, "{}", plain(&report.sentence));
    let _ = writeln!(
        out,
        "Seen: {} through the page cache, {} with O_DIRECT{}",
        report.buffered,
        report.direct,
        match report.agrees {
            Some(true) => ", as doctor predicts.".to_owned(),
            Some(false) => format!(
                "; but doctor predicts {} and {}: please report it.",
                report.predicted.buffered, report.predicted.direct
            ),
            None => ".".to_owned(),
        }
    );
    for mode in [Mode::Buffered, Mode::Direct] {
        let title = match mode {
            Mode::Buffered => "through the page cache",
            Mode::Direct => "with O_DIRECT",
        };
        let heads = [title, "block layer issued", "driver sent", "devices counted"];
        let mut table = Table::new(heads).width(110);
        for one in &report.lifetimes {
            let seen = of(one, mode);
            let all = [issued(seen), sent(seen), counted(seen)];
            let [issued, sent, counted] = all.map(|parts| parts.join("\n"));
            table.row([one.lifetime.to_owned(), issued, sent, counted]);
        }
        let _ = writeln!(out, "\n{table}");
        let failed = report.lifetimes.iter().find_map(|one| of(one, mode).failed.as_ref());
        if let Some(failed) = failed {
            let _ = writeln!(out, "{title}: {}", plain(failed));
        }
    }
    if let Some((before, after)) = report.totals {
        let by = |from: u128, to: u128| {
            bytes(u64::try_from(to.saturating_sub(from)).unwrap_or(u64::MAX))
        };
        let _ = writeln!(
            out,
            "\nFDP statistics moved by {} written by hosts, {} by the media.",
            by(before.host_written, after.host_written),
            by(before.media_written, after.media_written)
        );
    }
    if !report.zones.is_empty() {
        let _ = writeln!(out, "\nXFS has zones open for: {}.", report.zones.join(", "));
    }
    if !report.notes.is_empty() {
        out.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {}", plain(note));
    }
}

fn of(one: &super::ObservedLifetime, mode: Mode) -> &Observed {
    match mode {
        Mode::Buffered => &one.buffered,
        Mode::Direct => &one.direct,
    }
}

fn issued(seen: &Observed) -> Vec<String> {
    let show = |one: &super::proof::Requests| {
        let stream = match one.stream {
            0 => String::new(),
            stream => format!(", stream {stream}"),
        };
        format!("hint {}{stream}: {}", one.hint, bytes(one.bytes))
    };
    seen.block.iter().map(show).collect()
}

fn sent(seen: &Observed) -> Vec<String> {
    let show = |one: &super::Tagged| {
        let tag = match (one.group, one.placement) {
            (Some(group), _) => format!("group {group}"),
            (None, Some(placement)) => format!("identifier {placement}"),
            (None, None) => "no identifier".to_owned(),
        };
        format!("{tag}: {}", bytes(one.bytes))
    };
    seen.commands.iter().map(show).collect()
}

fn counted(seen: &Observed) -> Vec<String> {
    seen.counted
        .iter()
        .map(|one| {
            let unit = if one.what == "handle" { "blocks" } else { "commands" };
            format!("{} {} {}: {} {unit}", one.device, one.what, one.number, one.by)
        })
        .collect()
}
