//! An answer for people.
//!
//! Invariant: the first line is the verdict; names from devices and mounts cannot steer a terminal.

use std::fmt::Write;

use shelflife_report::{Table, bytes, plain};

use crate::answer::{Answer, Verdict};
use crate::block::Drive;
use crate::doctor::Report;
use crate::leaf::Arrival;

/// Characters of a line.
const WIDTH: u16 = 110;

impl Report {
    /// The report as text, ending in a line break.
    pub fn text(&self) -> String {
        let mut out = String::new();
        match self.answers.as_slice() {
            [] => {}
            [one] => one_answer(&mut out, one, true),
            all => several(&mut out, all),
        }
        if !self.devices.is_empty() {
            if out.is_empty() {
                let hear = self.devices.iter().filter(|d| takes(&d.hears)).count();
                let _ = writeln!(
                    out,
                    "{} of {} block devices can take hints; `shelflife doctor PATH` tells whether \
                     those of a file get there.",
                    hear,
                    self.devices.len()
                );
            }
            out.push('\n');
            self.device_table(&mut out);
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {}", plain(note));
        }
        out
    }

    fn device_table(&self, out: &mut String) {
        let heads = ["device", "model", "transport", "size", "holds", "hears hints"];
        let mut table = Table::new(heads).right([3]).width(WIDTH);
        for one in &self.devices {
            let Drive { device, model, transport, size, cloud, .. } = &one.drive;
            table.row([
                device.clone(),
                cloud.map_or_else(|| model.clone(), str::to_owned),
                transport.clone(),
                size.map_or_else(String::new, bytes),
                one.holds.join(", "),
                one.hears.clone(),
            ]);
        }
        let _ = writeln!(out, "{table}");
    }
}

fn takes(hears: &str) -> bool {
    hears.starts_with("FDP") || hears.starts_with("streams")
}

/// The places of a server, or of several.
fn several(out: &mut String, all: &[Answer]) {
    let reached = all.iter().filter(|answer| answer.verdict == Verdict::Delivered).count();
    let _ = match reached {
        0 => writeln!(out, "Hints reach the drive from none of the {} folders.", all.len()),
        n if n == all.len() => writeln!(out, "Hints reach the drive from all {n} folders."),
        n => writeln!(out, "Hints reach the drive from {n} of {} folders.", all.len()),
    };
    out.push('\n');
    let mut table = Table::new(["folder", "path", "verdict"]);
    for answer in all {
        table.row([
            answer.what.clone().unwrap_or_default(),
            answer.path.display().to_string(),
            answer.verdict.to_string(),
        ]);
    }
    let _ = writeln!(out, "{table}");
    let mut shown: Vec<&Answer> = Vec::new();
    for answer in all {
        let what = answer.what.as_deref().unwrap_or("");
        let same = shown.iter().find(|other| other.steps == answer.steps);
        if let Some(same) = same {
            let path = plain(same.path.to_str().unwrap_or("")).into_owned();
            let _ = writeln!(out, "\n{what}: the same way as {path}");
            continue;
        }
        out.push('\n');
        one_answer(out, answer, false);
        shown.push(answer);
    }
}

fn one_answer(out: &mut String, answer: &Answer, root: bool) {
    let _ = writeln!(out, "{}", plain(&answer.sentence));
    if answer.verdict != Verdict::Delivered && answer.direct == Verdict::Delivered {
        out.push_str("Direct I/O (O_DIRECT) would deliver them.\n");
    }
    list(out, "What would help", &answer.changes);
    list(out, "Missing to know", &answer.missing);
    out.push('\n');
    let mut table = Table::new(["layer", "", "hint", "why", "evidence"]).width(WIDTH);
    for step in &answer.steps {
        let indent = "  ".repeat(step.depth.saturating_sub(1));
        table.row([
            format!("{indent}{}", step.layer),
            step.name.clone(),
            step.effect.name().to_owned(),
            step.why.clone(),
            step.evidence.clone(),
        ]);
    }
    let _ = writeln!(out, "{table}");
    lifetimes(out, answer);
    counters(out, answer);
    if root && !answer.root_would_add.is_empty() {
        let _ = writeln!(out, "\nAs root: {}.", answer.root_would_add.join("; "));
    }
}

fn list(out: &mut String, head: &str, items: &[String]) {
    match items {
        [] => {}
        [one] => {
            let _ = writeln!(out, "{head}: {}.", plain(one));
        }
        all => {
            let _ = writeln!(out, "{head}, all of it:");
            for item in all {
                let _ = writeln!(out, "  - {}", plain(item));
            }
        }
    }
}

/// What the six lifetimes become; nothing if that makes no difference.
fn lifetimes(out: &mut String, answer: &Answer) {
    let all = || answer.lifetimes.iter();
    let lost = |verdict| matches!(verdict, Verdict::NotDelivered | Verdict::FileSystemOnly);
    if lost(answer.buffered) && lost(answer.direct) && all().all(|one| one.log.is_none()) {
        return;
    }
    let logs = all().any(|one| one.log.is_some());
    let mut heads = vec!["lifetime"];
    heads.extend(logs.then_some("log"));
    heads.extend(["through the page cache, at the drive", "with O_DIRECT"]);
    let mut table = Table::new(heads);
    for one in all() {
        let mut row = vec![one.lifetime.to_owned()];
        row.extend(logs.then(|| one.log.unwrap_or("").to_owned()));
        row.extend([arrival(&one.buffered), arrival(&one.direct)]);
        table.row(row);
    }
    let _ = writeln!(out, "\n{table}");
}

fn arrival(one: &Arrival) -> String {
    let number = |n: Option<u16>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let mut text = format!("hint {}", number(one.hint.map(u16::from)));
    if one.stream != Some(0) {
        let _ = write!(text, ", stream {}", number(one.stream));
    }
    if let Some(group) = one.group {
        let _ = write!(text, " → group {group}");
    }
    match (one.handle, one.placement) {
        (Some(handle), Some(id)) => {
            let _ = write!(text, " → handle {handle} (identifier {id})");
        }
        (Some(handle), None) => {
            let _ = write!(text, " → handle {handle} (by default)");
        }
        _ => {}
    }
    text
}

/// What FDP drives count.
fn counters(out: &mut String, answer: &Answer) {
    for drive in &answer.drives {
        let Some(fdp) = drive.fdp.as_ref().filter(|fdp| fdp.on == Some(true)) else { continue };
        let device = &drive.drive.device;
        let isolation = fdp.isolation.map_or("", |isolation| match isolation {
            crate::nvme::Isolation::Initially => ", initially isolated",
            crate::nvme::Isolation::Persistently => ", persistently isolated",
            crate::nvme::Isolation::Reserved => "",
        });
        let _ = writeln!(
            out,
            "\n{device}: endurance group {}, configuration {}, {} handles, reclaim unit {}{isolation}",
            fdp.endurance_group,
            fdp.configuration.unwrap_or(0),
            fdp.handles.unwrap_or(0),
            bytes(fdp.reclaim_unit.unwrap_or(0)),
        );
        if let Some(all) = fdp.statistics {
            let clamp = |n: u128| bytes(u64::try_from(n).unwrap_or(u64::MAX));
            let _ = writeln!(
                out,
                "{device}: hosts wrote {}, the media took {}",
                clamp(all.host_written),
                clamp(all.media_written)
            );
        }
        if let Some(n @ 1..) = fdp.invalid_placements {
            let _ = writeln!(out, "{device}: events of invalid placement identifiers: {n}");
        }
    }
}
