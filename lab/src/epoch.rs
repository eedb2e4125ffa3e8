//! A trial whose rounds are epochs on a whole namespace: that the way from the empty drive to the answer is
//! right. What the answer is says nothing: the emulated drive collects no garbage.
//!
//! Invariant: what must hold is written here, beside what the guest saw; a line that is missing is a
//! failure.

use std::fs;
use std::io::IsTerminal;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::lab::Lab;
use crate::qemu::{self, Disks, End, SMALL};
use crate::{Common, KernelOption, guest, observe};

/// How far the emulated drive's write amplification may be from 1: whenever a reclaim unit is full, QEMU
/// counts what the last write had left of it as written to the media once more (`hw/nvme/ctrl.c`,
/// `nvme_do_write_fdp` and `nvme_update_ruh`).
const EMULATED: f64 = 0.1;

/// Runs a trial of two epochs on f2fs; true if what must be refused was, the trial went on after a break,
/// and left nothing.
pub fn epoch(common: &Common, options: &KernelOption) -> Result<bool> {
    let lab = Lab::open(common, true)?;
    let (kernel, _) = lab.kernel(&options.kernel)?;
    let seat = lab.seat(1)?;
    let mut archive = guest::begin(&seat.initramfs(), &lab, &kernel, guest::EPOCH)?;
    guest::add_server(&mut archive, &lab)?;
    archive.finish()?;
    let mut lines = Vec::new();
    let end = qemu::boot(&lab, &seat, &kernel, Disks::Fresh, qemu::LONGEST, |line| {
        if let Some(sectors) = line.strip_prefix("alive ").and_then(|rest| rest.split(' ').nth(1)) {
            tell(sectors);
        }
        lines.push(line.to_owned());
        Ok(line != "done")
    })?;
    if end == End::Hung || lines.is_empty() {
        bail!("the guest hung; it had said:\n{}\n{}", lines.join("\n"), seat.last_words());
    }
    let lines = observe::section(&lines, "epoch");
    let results = lab.folder.join("epoch.jsonl");
    fs::write(&results, of_results(lines).map(|line| format!("{line}\n")).collect::<String>())?;
    let said = checked(lines);
    match &said {
        Ok(said) => println!("Linux {}: {said}; {}", kernel.release, results.display()),
        Err(why) => {
            println!("Linux {}: FAILED: {why}\n{}", kernel.release, lines.join("\n"));
            println!("{}", seat.last_words());
        }
    }
    Ok(said.is_ok())
}

/// How much was written: after a break, epochs begin anew.
fn tell(sectors: &str) {
    let least = 6.0 * SMALL as f64 / 512.0;
    if let Some(sectors) = sectors.parse::<f64>().ok().filter(|_| std::io::stderr().is_terminal()) {
        eprint!("{:.0} % of what two epochs write at least\r", 100.0 * sectors / least);
    }
}

/// Of a line of the results, what is looked at here.
#[derive(Deserialize)]
struct Line {
    record: String,
    version: Option<u32>,
    device: Option<Device>,
    event: Option<String>,
    label: Option<String>,
    measured: Option<Measured>,
}

#[derive(Deserialize)]
struct Device {
    size: u64,
    counters: String,
}

#[derive(Deserialize)]
struct Measured {
    value: f64,
    epoch: Epoch,
}

#[derive(Deserialize)]
struct Epoch {
    cold_bytes: u64,
    precondition: Written,
    first_half: Written,
    last_half: Written,
}

#[derive(Deserialize)]
struct Written {
    host_bytes: u64,
}

/// The lines of the trial's results.
fn of_results(lines: &[String]) -> impl Iterator<Item = &str> {
    lines.iter().filter_map(|line| line.strip_prefix("result "))
}

/// What the guest said, in a sentence.
fn checked(lines: &[String]) -> Result<String, String> {
    // EXIT-CODE MILLISECONDS WORDS
    let said = |name: &str, code: &str| -> Result<&str, String> {
        let line = lines.iter().find_map(|l| l.strip_prefix("said ")?.strip_prefix(name));
        let line = line.ok_or_else(|| format!("no word of \"{name}\""))?;
        let error = format!("said {name}-error ");
        let error = lines.iter().find_map(|l| l.strip_prefix(error.as_str()));
        match line.trim_start().split_once(' ') {
            Some((found, rest)) if found == code => Ok(error.unwrap_or(rest)),
            _ => Err(format!("{name} did not end with {code}: {line} {}", error.unwrap_or(""))),
        }
    };
    let has = |text: &str, part: &str| match text.contains(part) {
        true => Ok(()),
        false => Err(format!("no \"{part}\" in: {text}")),
    };
    has(said("taken", "2")?, "it holds something (ext4 \"data\")")?;
    has(said("unheard", "3")?, "do not reach")?;
    said("broken", "130")?;
    said("resumed", "0")?;
    let resumed = lines.iter().find(|l| l.starts_with("said resumed 0 "));
    has(resumed.map_or("", |line| line), "\"measured on the drive, write amplification: ")?;
    let left: Vec<_> = lines.iter().filter(|l| l.starts_with("left ")).collect();
    if left != ["left 0 0", "left 0 0"] {
        return Err(format!("mounts or signatures are left: {left:?}"));
    }
    let moved = observe::one(lines).handles;
    if moved.len() < 2 {
        return Err(format!("handles that moved: {moved:?}"));
    }
    let results: Vec<Line> = of_results(lines)
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}")))
        .collect::<Result<_, _>>()?;
    let header = results.first().ok_or("no results")?;
    let device = match (header.version, &header.device) {
        (Some(2), Some(device)) if device.counters == "fdp-statistics" => device,
        _ => return Err("no device with FDP statistics in the results' head".into()),
    };
    if device.size != SMALL {
        return Err(format!("the device has {} bytes", device.size));
    }
    for event in ["aged", "ended", "resumed", "finished"] {
        if !results.iter().any(|line| line.event.as_deref() == Some(event)) {
            return Err(format!("no event {event}"));
        }
    }
    let mut epochs: Vec<(&str, f64)> = Vec::new();
    for line in results.iter().filter(|line| line.record == "round") {
        let label = line.label.as_deref().unwrap_or("?");
        let Measured { value, epoch } =
            line.measured.as_ref().ok_or_else(|| format!("the epoch of {label} failed"))?;
        let stages = [&epoch.precondition, &epoch.first_half, &epoch.last_half];
        if stages.iter().any(|written| written.host_bytes < device.size) || epoch.cold_bytes == 0 {
            return Err(format!("the epoch of {label} was not written in full"));
        }
        if !(1.0..1.0 + EMULATED).contains(value) {
            return Err(format!("{label}: {value} of a drive that collects no garbage"));
        }
        epochs.push((label, *value));
    }
    epochs.sort_by_key(|(label, _)| *label);
    let [("off", off), ("wal-first", wal_first)] = epochs[..] else {
        return Err(format!("epochs of {epochs:?}"));
    };
    Ok(format!(
        "two epochs on {} MiB, a break in the second: refused what is taken or does not hear, resumed, left \
         nothing; handles {moved:?} moved; counted off {off:.4}, wal-first {wal_first:.4}: as it should be",
        device.size >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(value: f64) -> Vec<String> {
        let written =
            format!("{{\"host_bytes\":{SMALL},\"media_bytes\":{SMALL},\"issued_bytes\":{SMALL}}}");
        let epoch = format!(
            "\"cold_bytes\":9,\"precondition\":{written},\"first_half\":{written},\"last_half\":{written}"
        );
        let round = |label: &str| {
            format!(
                "result {{\"record\":\"round\",\"label\":\"{label}\",\"measured\":{{\"value\":{value},\
                 \"epoch\":{{{epoch}}}}}}}\n"
            )
        };
        let event = |name: &str| format!("result {{\"record\":\"event\",\"event\":\"{name}\"}}\n");
        let text = format!(
            "begin epoch\nsaid taken 2 9 \nsaid taken-error shelflife: /dev/x: it holds something (ext4 \
             \"data\"), and\nsaid unheard 3 9 \nsaid unheard-error shelflife: Hints do not reach x\n\
             said broken 130 9 \nsaid resumed 0 9 {{\"answer\":\"measured on the drive, write \
             amplification: wal-first\nleft 0 0\nhandle 0 9 1\nhandle 1 9 2\nleft 0 0\n\
             result {{\"record\":\"header\",\"version\":2,\"device\":{{\"size\":{SMALL},\
             \"counters\":\"fdp-statistics\"}}}}\n{}{}{}{}{}{}",
            event("aged"),
            round("wal-first"),
            event("ended"),
            event("resumed"),
            round("off"),
            event("finished"),
        );
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_word_of_the_guest_is_needed() {
        let said = checked(&guest(1.0)).unwrap();
        assert!(said.contains("counted off 1.0000, wal-first 1.0000"), "{said}");
        for missing in 1..guest(1.0).len() {
            let mut less = guest(1.0);
            let gone = less.remove(missing);
            assert!(checked(&less).is_err(), "{gone}");
        }
        assert!(checked(&guest(1.2)).unwrap_err().contains("collects no garbage"));
        assert!(checked(&guest(0.9)).is_err());
    }
}
