//! The recorder in a guest: what it says was written, against what the drivers' tracepoints saw.
//!
//! Invariant: bytes must be equal, per file and hint, to what the guest wrote; nothing is "nearly".

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::lab::Lab;
use crate::observe::{self, HINTS, Tag};
use crate::qemu;
use crate::stacks::{self, Medium};
use crate::{Common, KernelOption, guest};

/// What the guest writes to each file.
const FILE_BYTES: u64 = 2 << 20;

/// A stack on which the recorder is tried.
struct Tried {
    stack: &'static str,
    /// Whether the requests at the drive still belong to the file: not below what copies the data
    /// into pages of its own.
    named: bool,
    /// How many drives get each byte.
    copies: u64,
}

const TRIED: [Tried; 9] = [
    Tried { stack: "scsi-ext4", named: true, copies: 1 },
    Tried { stack: "scsi-xfs", named: true, copies: 1 },
    Tried { stack: "scsi-ext4-part", named: true, copies: 1 },
    Tried { stack: "scsi-ext4-lvm", named: true, copies: 1 },
    Tried { stack: "scsi-ext4-raid1", named: true, copies: 2 },
    Tried { stack: "scsi-ext4-luks", named: false, copies: 1 },
    Tried { stack: "fdp-f2fs", named: true, copies: 1 },
    Tried { stack: "fdp-ext4-lvm", named: true, copies: 1 },
    Tried { stack: "nvme-ext4", named: true, copies: 1 },
];

/// Records on device mapper, md, SCSI and NVMe; true if bytes, files, hints and streams are right.
pub fn record(common: &Common, options: &KernelOption) -> Result<bool> {
    let lab = Lab::open(common, false)?;
    let (kernel, _) = lab.kernel(&options.kernel)?;
    let seat = lab.seat(1)?;
    let mut archive = guest::begin(&seat.initramfs(), &lab, &kernel, guest::RECORD)?;
    let rows: String = TRIED
        .iter()
        .filter_map(|tried| stacks::by_name(tried.stack))
        .map(|s| {
            format!("{} {} {} {} {}\n", s.name, s.medium.word(), s.layer, s.filesystem, s.options)
        })
        .collect();
    archive.file(Path::new("lab/stacks"), 0o644, rows.as_bytes())?;
    archive.finish()?;
    let (lines, _) = qemu::all_words(&lab, &seat, &kernel)?;
    let mut good = true;
    for tried in &TRIED {
        match check(tried, observe::section(&lines, tried.stack)) {
            Ok(said) => println!("Linux {}, {}: {said}", kernel.release, tried.stack),
            Err(why) => {
                good = false;
                println!("Linux {}, {}: WRONG: {why}", kernel.release, tried.stack);
            }
        }
    }
    if !good {
        println!("{}", seat.last_words());
    }
    Ok(good)
}

/// Bytes by path, hint and stream.
type Recorded<'a> = BTreeMap<(&'a str, &'a str, u16), u64>;

fn recorded(lines: &[String]) -> Recorded<'_> {
    fn row(line: &str) -> Option<((&str, &str, u16), u64)> {
        let mut words = line.strip_prefix("recorded ")?.split(' ');
        let (path, hint) = (words.next()?, words.next()?);
        Some(((path, hint, words.next()?.parse().ok()?), words.next()?.parse().ok()?))
    }
    lines.iter().filter_map(|line| row(line)).collect()
}

fn check(tried: &Tried, lines: &[String]) -> Result<String, String> {
    if let Some(why) = lines.iter().find_map(|l| l.strip_prefix("failed ")) {
        return Err(why.to_owned());
    }
    if !lines.iter().any(|l| l == "lost 0") {
        return Err("the recorder did not say that it lost nothing".into());
    }
    let recorded = recorded(lines);
    let seen = observe::one(lines).sectors;
    // the tracepoint's tags against the recorder's hints and streams: all data, to the byte
    let scsi = stacks::by_name(tried.stack).is_some_and(|s| s.medium == Medium::Scsi);
    let mut by_tag: BTreeMap<Tag, u64> = BTreeMap::new();
    for ((_, hint, stream), bytes) in &recorded {
        let tag = if scsi { group(hint) } else { stream.checked_sub(1) };
        *by_tag.entry(tag).or_default() += bytes;
    }
    for (tag, sectors) in &seen {
        let ours = by_tag.get(tag).copied().unwrap_or_default();
        // what has no tag: metadata may be written before or after one of the two begins
        let right = if tag.is_some() { ours == sectors * 512 } else { ours > 0 };
        if !right {
            let tag = crate::agree::tag(*tag);
            return Err(format!("tag {tag}: recorded {ours} bytes, sent {}", sectors * 512));
        }
    }
    if let Some(extra) = by_tag.keys().find(|tag| !seen.contains_key(*tag)) {
        return Err(format!("recorded tag {}, which nobody sent", crate::agree::tag(*extra)));
    }
    let total: u64 = recorded.values().sum();
    let data = HINTS.len() as u64 * FILE_BYTES * tried.copies;
    if !tried.named {
        // the bytes are all there, without their files
        return if total >= data {
            Ok(format!("{} KiB recorded, as expected without files", total / 1024))
        } else {
            Err(format!("only {total} bytes were recorded"))
        };
    }
    for hint in HINTS {
        let name = format!("/buffered-{hint}");
        let bytes: u64 =
            recorded.iter().filter(|((path, ..), _)| path.ends_with(&name)).map(|(_, n)| n).sum();
        if bytes != FILE_BYTES * tried.copies {
            return Err(format!("{bytes} bytes of {name}, written {}", FILE_BYTES * tried.copies));
        }
    }
    Ok(format!("{} KiB in {} files, each byte with its file and tag", data / 1024, HINTS.len()))
}

/// The group number that a hint is sent as, by its name.
fn group(hint: &str) -> Tag {
    let names = ["not-set", "none", "short", "medium", "long", "extreme"];
    let number = names.iter().position(|name| *name == hint)?;
    u16::try_from(number).ok().filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Vec<String> {
        let mut text = String::from("lost 0\nrecorded - not-set 0 8192\n");
        text += "write scsi 00 4112\n";
        for (hint, group) in HINTS.iter().zip([0, 2, 3, 4, 5]) {
            text += &format!("recorded /mnt/file/buffered-{hint} {hint} 0 {FILE_BYTES}\n");
            if group > 0 {
                text += &format!("write scsi {group:02x} 4096\n");
            }
        }
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_byte_has_its_file_and_tag() {
        let tried = &TRIED[0];
        check(tried, &good()).unwrap();
        for gone in 0..good().len() {
            let mut less = good();
            let line = less.remove(gone);
            // metadata without a file is nobody's promise
            let fine = line.starts_with("recorded - ");
            assert_eq!(check(tried, &less).is_ok(), fine, "{line}");
        }
        let mut wrong = good();
        wrong.push("recorded /mnt/file/buffered-short extreme 0 4096".into());
        assert!(check(tried, &wrong).is_err());
    }
}
