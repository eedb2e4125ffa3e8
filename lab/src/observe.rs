//! What a guest saw the drive being told: its lines read, and judged.
//!
//! Invariant: nothing that doctor or prove said enters here; this is what both are held against.

use std::collections::BTreeMap;

/// Sectors of 512 bytes that one probe writes in a mode, as the guest's script has it.
fn probe_sectors(mode: &str) -> u64 {
    if mode == SMALL { 8 * 16_384 / 512 } else { 2_097_152 / 512 }
}

/// The mode in which a file is written and synced 16 KiB at a time.
pub const SMALL: &str = "small";

/// The tag that the drive saw on a write: a SCSI group number or an NVMe placement identifier.
/// Nothing is group 0, or a write without the data placement directive.
pub type Tag = Option<u16>;

/// The hints in the order of the probes; `not-set` is what the others are held against.
pub const HINTS: [&str; 5] = ["not-set", "short", "medium", "long", "extreme"];

/// One write with one hint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    /// Sectors written per tag, by the driver's tracepoint.
    pub sectors: BTreeMap<Tag, u64>,
    /// Write commands per group, by the device.
    pub groups: BTreeMap<u16, u64>,
    /// Handles whose reclaim unit moved, by the device.
    pub handles: Vec<u16>,
    /// What went wrong.
    pub trouble: Option<String>,
}

/// All probes of one stack: by mode (`buffered`, `direct`), then hint.
pub type Probes = BTreeMap<String, BTreeMap<String, Probe>>;

/// What became of the hints in one mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The drive could tell at least two lifetimes apart, or one from data without a hint.
    Delivered {
        /// What the drive saw, in the order of [`HINTS`].
        tags: Vec<Tag>,
        /// A copy of the data was also written without its tag (a journal's).
        partly: bool,
    },
    /// Every write looked the same.
    NotDelivered,
    /// The evidence is missing or contradicts itself.
    Unclear {
        /// In what way.
        why: String,
    },
}

/// Reads the lines `probe`, `write`, `group`, `handle`, `refused`, `unwritten` of one stack.
pub fn parse(lines: &[String]) -> Probes {
    let mut probes = Probes::new();
    let mut now: Option<&mut Probe> = None;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &mut now) {
            (["probe", mode, hint], _) => {
                let of_mode = probes.entry((*mode).to_owned()).or_default();
                now = Some(of_mode.entry((*hint).to_owned()).or_default());
            }
            (["write", bus, tag, sectors], Some(probe)) => {
                let read = parse_tag(bus, tag).zip(sectors.parse::<u64>().ok());
                match read {
                    Some((tag, sectors)) => *probe.sectors.entry(tag).or_default() += sectors,
                    None => probe.trouble = Some(format!("the lab can't read \"{line}\"")),
                }
            }
            (["group", number, count], Some(probe)) => {
                if let (Ok(number), Ok(count)) = (number.parse(), count.parse()) {
                    probe.groups.insert(number, count);
                }
            }
            (["handle", number, _, _], Some(probe)) => probe.handles.extend(number.parse::<u16>()),
            (["refused", ..], Some(probe)) => probe.trouble = Some("the call was refused".into()),
            (["unwritten", rest @ ..], Some(probe)) => probe.trouble = Some(rest.join(" ")),
            _ => {}
        }
    }
    probes
}

/// What a guest said from `begin NAME` to `end NAME`; nothing if it did not get there.
pub fn section<'l>(lines: &'l [String], name: &str) -> &'l [String] {
    let at = |word: &str| lines.iter().position(|line| *line == format!("{word} {name}"));
    at("begin").zip(at("end")).and_then(|(begun, ended)| lines.get(begun..ended)).unwrap_or(&[])
}

/// What lines without a probe of their own say of whatever was written.
pub fn one(lines: &[String]) -> Probe {
    let probe = ["probe any any".to_owned()];
    let lines: Vec<String> = probe.iter().chain(lines).cloned().collect();
    let mut probes = parse(&lines);
    let probe = probes.remove("any").and_then(|mut of| of.remove("any"));
    probe.unwrap_or_default()
}

/// `scsi 05` is group 5; `nvme 0x20:65536` is placement identifier 1 (bits 23:20 of the command's
/// double word 12 are 2, data placement; bits 31:16 of the next hold the identifier).
fn parse_tag(bus: &str, tag: &str) -> Option<Tag> {
    match bus {
        "scsi" => {
            let group = u16::from_str_radix(tag, 16).ok()? & 0x3f;
            Some((group > 0).then_some(group))
        }
        "nvme" => {
            let (control, management) = tag.split_once(':')?;
            let control = u16::from_str_radix(control.strip_prefix("0x")?, 16).ok()?;
            let identifier = (management.parse::<u32>().ok()? >> 16) as u16;
            Some((control >> 4 & 0xf == 2).then_some(identifier))
        }
        "virtio" => Some(None),
        _ => None,
    }
}

/// Judges the probes of `mode`.
pub fn judge(mode: &str, probes: &BTreeMap<String, Probe>) -> Seen {
    let unclear = |why: String| Seen::Unclear { why };
    let Some(baseline) = probes.get(HINTS[0]) else { return unclear("no probe".into()) };
    let base = main_tag(baseline);
    let mut tags = Vec::new();
    let mut partly = false;
    for hint in HINTS {
        let Some(probe) = probes.get(hint) else { return unclear(format!("no probe {hint}")) };
        if let Some(trouble) = &probe.trouble {
            return unclear(format!("{hint}: {trouble}"));
        }
        // where data may be compressed to a half, and written in several pieces
        let enough = probe_sectors(mode) / 4;
        let written: u64 = probe.sectors.values().sum();
        if written < enough {
            return unclear(format!("{hint}: only {written} sectors were seen on their way"));
        }
        let other =
            probe.sectors.iter().find(|(tag, sectors)| **tag != base && **sectors >= enough);
        let tag = other.map_or(base, |(tag, _)| *tag);
        partly |= other.is_some() && probe.sectors.get(&base).is_some_and(|s| *s >= enough);
        if let Some(why) = contradiction(probe, tag) {
            return unclear(format!("{hint}: {why}"));
        }
        tags.push(tag);
    }
    if tags.iter().all(|tag| *tag == tags[0]) {
        return Seen::NotDelivered;
    }
    Seen::Delivered { tags, partly }
}

/// Whether the file system kept hints apart by itself: lines `log HINT FIRST LAST` (blocks of small
/// files that were written in turns), or `zone HINT` (a zone that says which hint it is for).
pub fn logs(lines: &[String]) -> bool {
    let mut spans: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut zones = false;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["log", hint, first, last] => {
                if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
                    spans.insert(hint, (first, last));
                }
            }
            ["zone", hint] => zones |= HINTS[1..].contains(hint),
            _ => {}
        }
    }
    let Some(base) = spans.get(HINTS[0]) else { return zones };
    // what was written in turns to one log lies between each other
    zones
        || HINTS[1..]
            .iter()
            .filter_map(|hint| spans.get(hint))
            .any(|s| s.1 < base.0 || s.0 > base.1)
}

/// The tag under which the most was written.
fn main_tag(probe: &Probe) -> Tag {
    probe.sectors.iter().max_by_key(|(_, sectors)| **sectors).and_then(|(tag, _)| *tag)
}

/// The device's own count must not deny what the tracepoint saw.
fn contradiction(probe: &Probe, tag: Tag) -> Option<String> {
    let tag = tag?;
    if !probe.groups.is_empty() && !probe.groups.contains_key(&tag) {
        return Some(format!("the driver sent group {tag}, the device counted none"));
    }
    // where the device has no groups it has handles, and at least one moved
    if probe.groups.is_empty() && !probe.handles.is_empty() && !probe.handles.contains(&tag) {
        return Some(format!("the driver named handle {tag}, the device used another"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn mode(writes: [&str; 5]) -> BTreeMap<String, Probe> {
        let text: Vec<String> = HINTS
            .iter()
            .zip(writes)
            .map(|(hint, writes)| format!("probe buffered {hint}\n{}", writes.replace(';', "\n")))
            .collect();
        parse(&lines(&text.join("\n"))).remove("buffered").unwrap()
    }

    #[test]
    fn scsi_groups() {
        let seen = judge(
            "buffered",
            &mode([
                "write scsi 00 4200;group 0 9",
                "write scsi 00 80;write scsi 02 4096;group 0 1;group 2 8",
                "write scsi 00 80;write scsi 03 4096;group 3 8",
                "write scsi 04 4096;group 4 8",
                "write scsi 05 4096;group 5 8",
            ]),
        );
        let tags = vec![None, Some(2), Some(3), Some(4), Some(5)];
        assert_eq!(seen, Seen::Delivered { tags, partly: false });
    }

    #[test]
    fn placement_identifiers() {
        // f2fs: the short hint has the first, no hint the second; nodes are not tagged
        let seen = judge(
            "buffered",
            &mode([
                "write nvme 0x20:65536 4096;write nvme 0x0:0 64;handle 1 9 1",
                "write nvme 0x20:0 4096;write nvme 0x0:0 64;handle 0 9 1",
                "write nvme 0x20:65536 4096;handle 1 9 1",
                "write nvme 0x20:65536 4096;handle 1 9 1",
                "write nvme 0x20:131072 4096;handle 2 9 1",
            ]),
        );
        let tags = vec![Some(1), Some(0), Some(1), Some(1), Some(2)];
        assert_eq!(seen, Seen::Delivered { tags, partly: false });
        // ctrl 0x4000 is "force unit access", no directive
        let plain = "write nvme 0x4000:65536 4096";
        assert_eq!(judge("buffered", &mode([plain; 5])), Seen::NotDelivered);
    }

    #[test]
    fn a_journal_writes_a_copy_without_its_tag() {
        let hinted = "write scsi 00 4400;write scsi 05 4096";
        let Seen::Delivered { partly, .. } =
            judge("buffered", &mode(["write scsi 00 8400", hinted, hinted, hinted, hinted]))
        else {
            panic!("the checkpoint's copy is tagged");
        };
        assert!(partly);
    }

    #[test]
    fn separate_logs_are_seen_by_place() {
        let turns = "log not-set 100 140\nlog medium 110 150\nlog short 900 940";
        assert!(logs(&lines(turns)));
        assert!(!logs(&lines("log not-set 100 140\nlog medium 110 150\nlog short 105 145")));
        assert!(!logs(&lines("log short 100 140")));
        assert!(logs(&lines("zone short")));
        assert!(!logs(&lines("zone none")));
    }

    #[test]
    fn missing_or_contradicting_evidence_is_no_verdict() {
        let good = "write scsi 00 4096;group 0 8";
        for bad in [
            "",
            "write scsi 00 12",
            "write scsi xx 4096",
            "unwritten dd: no space",
            "refused buffered short",
            "write scsi 02 4096;group 0 8",
            "write nvme 0x20:65536 4096;handle 3 9 1",
        ] {
            let seen = judge("buffered", &mode([good, bad, good, good, good]));
            assert!(matches!(seen, Seen::Unclear { .. }), "{bad}: {seen:?}");
        }
    }
}
