//! The parts of the lab with a server in the guest: where its writes arrive, and what a power cut
//! leaves of them.
//!
//! Invariant: what must hold is written here, beside what the guest saw; a line that is missing is a
//! failure.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::agree::{self, Verdict};
use crate::kernel::Kernel;
use crate::lab::Lab;
use crate::observe::{self, Tag};
use crate::qemu::{self, Disks, End, Seat};
use crate::{Common, KernelOption, PowerOptions, guest};

/// Runs PostgreSQL on f2fs and on ext4 on a namespace with FDP; true if WAL and relations came to
/// different handles on f2fs, to the same on ext4, and doctor had said so.
pub fn postgres(common: &Common, options: &KernelOption) -> Result<bool> {
    let lab = Lab::open(common, true)?;
    let (kernel, _) = lab.kernel(&options.kernel)?;
    let seat = lab.seat(1)?;
    let mut archive = guest::begin(&seat.initramfs(), &lab, &kernel, guest::POSTGRES)?;
    guest::add_server(&mut archive, &lab)?;
    archive.finish()?;
    let (lines, end) = qemu::all_words(&lab, &seat, &kernel)?;
    if end == End::Hung || lines.is_empty() {
        bail!("the guest hung; it had said:\n{}\n{}", lines.join("\n"), seat.last_words());
    }
    let mut good = true;
    for (filesystem, apart) in [("f2fs", true), ("ext4", false)] {
        match placed(observe::section(&lines, filesystem)) {
            Ok(placed) => {
                let right = placed.is(apart);
                good &= right;
                let verdict = if right { "as it should be" } else { "WRONG" };
                println!("Linux {}, {filesystem}: {placed}: {verdict}", kernel.release);
            }
            Err(why) => {
                good = false;
                println!("Linux {}, {filesystem}: FAILED: {why}", kernel.release);
            }
        }
    }
    Ok(good)
}

/// Where a server's writes arrived.
#[derive(Debug, PartialEq, Eq)]
struct Placed {
    wal: Where,
    relations: Where,
    predicted: Verdict,
}

/// Where a phase was written.
#[derive(Debug, PartialEq, Eq)]
struct Where {
    /// Sectors by tag.
    sectors: BTreeMap<Tag, u64>,
    /// Handles that moved, by the device's own count.
    handles: Vec<u16>,
}

impl Where {
    /// The handle that most of it went to, if that is more than half.
    fn mostly(&self) -> Option<Tag> {
        let all: u64 = self.sectors.values().sum();
        self.sectors.iter().find(|(_, sectors)| **sectors * 2 > all).map(|(tag, _)| *tag)
    }
}

impl Placed {
    /// Whether WAL and relations are apart, or neither is tagged, and doctor had said so.
    fn is(&self, apart: bool) -> bool {
        let (Some(wal), Some(relations)) = (self.wal.mostly(), self.relations.mostly()) else {
            return false;
        };
        let (Some(wal), Some(relations)) = (wal, relations) else {
            return !apart && wal == relations && self.predicted == Verdict::NotDelivered;
        };
        apart
            && wal != relations
            && self.predicted == Verdict::Delivered
            && self.wal.handles.contains(&wal)
            && self.relations.handles.contains(&relations)
    }
}

impl std::fmt::Display for Placed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = |place: &Where| {
            let all: Vec<String> = place
                .sectors
                .iter()
                .map(|(tag, sectors)| {
                    let to = tag.map_or("no handle".to_owned(), |tag| format!("handle {tag}"));
                    format!("{} KiB to {to}", sectors / 2)
                })
                .collect();
            all.join(", ")
        };
        write!(
            out,
            "commits: {}; checkpoint: {}; doctor had said {}",
            place(&self.wal),
            place(&self.relations),
            self.predicted.title()
        )
    }
}

fn placed(lines: &[String]) -> Result<Placed, String> {
    if let Some(why) = lines.iter().find_map(|l| l.strip_prefix("failed ")) {
        return Err(why.to_owned());
    }
    let phase = |name: &str| {
        let from = lines.iter().position(|l| *l == format!("phase {name}"));
        let from = from.ok_or_else(|| format!("no phase {name}"))? + 1;
        let rest = &lines[from..];
        let to = rest.iter().position(|l| l.starts_with("phase ")).unwrap_or(rest.len());
        let probe = observe::one(&rest[..to]);
        if probe.sectors.is_empty() {
            return Err(format!("{name}: no write"));
        }
        Ok::<Where, String>(Where { sectors: probe.sectors, handles: probe.handles })
    };
    let said: Vec<String> =
        lines.iter().filter_map(|l| l.strip_prefix("said ").map(str::to_owned)).collect();
    let (wal, relations) = (phase("wal")?, phase("checkpoint")?);
    let bytes = lines.iter().find_map(|l| l.strip_prefix("bytes ")?.parse::<u64>().ok());
    let bytes = bytes.ok_or("the server did not say how much WAL it wrote")?;
    let sectors: u64 = wal.sectors.values().sum();
    if sectors * 512 < bytes {
        return Err(format!("{bytes} bytes of WAL, but {sectors} sectors on their way"));
    }
    // without the hook, that nothing arrives would be no finding
    carrying(lines)?;
    Ok(Placed { wal, relations, predicted: agree::predicted(&said, "buffered")? })
}

/// Cuts the power of a server under load, `cuts` times on f2fs and on ext4; true if every time
/// everything that was acknowledged was there and no page or index was broken.
pub fn power(common: &Common, options: &PowerOptions) -> Result<bool> {
    let lab = Lab::open(common, true)?;
    let (kernel, _) = lab.kernel(&options.kernel.kernel)?;
    let one = |n: usize, filesystem| cut(&lab, &lab.seat(n)?, &kernel, filesystem, options.cuts);
    if qemu::at_a_time() < 2 {
        return Ok(one(1, "f2fs")? & one(1, "ext4")?);
    }
    std::thread::scope(|scope| {
        let f2fs = scope.spawn(|| one(1, "f2fs"));
        let ext4 = one(2, "ext4");
        let f2fs = f2fs.join().unwrap_or_else(|_| bail!("a guest's runner ended in a panic"));
        Ok(f2fs? & ext4?)
    })
}

/// Cuts the power of a server on `filesystem`, `cuts` times.
fn cut(lab: &Lab, seat: &Seat, kernel: &Kernel, filesystem: &str, cuts: u32) -> Result<bool> {
    let mut committed = 0;
    for cut in 0..=cuts {
        let turn = if cut == 0 { "first" } else { "next" };
        let mut archive = guest::begin(&seat.initramfs(), lab, kernel, guest::POWER)?;
        guest::add_server(&mut archive, lab)?;
        let row = format!("{filesystem} {turn}\n");
        archive.file(Path::new("lab/power"), 0o644, row.as_bytes())?;
        archive.finish()?;
        let disks = if cut == 0 { Disks::Fresh } else { Disks::Kept };
        let mut lines: Vec<String> = Vec::new();
        let mut left = None;
        qemu::boot(lab, seat, kernel, disks, qemu::LONGEST, |line| {
            lines.push(line.to_owned());
            if line == "load" {
                // so many more acknowledged commits, different each time, and a moment
                left = Some(3 + (cut * 7) % 11);
            }
            if let Some(left) = left.as_mut().filter(|_| line.starts_with("committed ")) {
                *left -= 1;
                if *left == 0 {
                    std::thread::sleep(Duration::from_millis(u64::from(cut * 37 % 200)));
                    return Ok(false);
                }
            }
            // the last boot only checks
            let over = cut == cuts && line == "amcheck clean";
            Ok(!over && line != "done" && !line.starts_with("failed "))
        })?;
        match checked(&lines, cut, committed, cut == cuts) {
            Ok(said) => println!("{filesystem}, cut {cut} of {cuts}: {said}"),
            Err(why) => {
                println!("{filesystem}, cut {cut}: FAILED: {why}\n{}", seat.last_words());
                return Ok(false);
            }
        }
        committed = last_committed(&lines).unwrap_or(committed);
    }
    Ok(true)
}

fn last_committed(lines: &[String]) -> Option<u64> {
    lines.iter().rev().find_map(|l| l.strip_prefix("committed ")?.parse().ok())
}

/// What a boot said of the cut before it, where `committed` was the last to be acknowledged.
fn checked(lines: &[String], cut: u32, committed: u64, last: bool) -> Result<String, String> {
    let word = |name: &str| {
        let found = lines.iter().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        found.ok_or_else(|| format!("the guest did not say \"{name}\""))
    };
    if let Ok(why) = word("failed") {
        return Err(why.to_owned());
    }
    if word("cache")? != "write through" {
        return Err("the drive's cache is on".into());
    }
    if let Ok(why) = word("recorder") {
        return Err(format!("the recorder did not run: {why}"));
    }
    let mut said = Vec::new();
    if cut > 0 {
        let found: u64 = word("recovered")?.parse().map_err(|e| format!("recovered: {e}"))?;
        if found < committed {
            return Err(format!("commit {committed} was acknowledged, the last there is {found}"));
        }
        if word("checksums")? != "0" {
            return Err(format!("{} pages with a bad checksum", word("checksums")?));
        }
        word("amcheck")?;
        said.push(format!(
            "all {committed} acknowledged commits are there, checksums and indexes are right"
        ));
    }
    if !last {
        let now = last_committed(lines).ok_or("no commit was acknowledged")?;
        let hook = carrying(lines)?;
        said.push(format!("power cut after commit {now}, {hook} processes under the hook"));
    }
    Ok(said.join("; "))
}

/// How many of the server's processes carry the hook.
fn carrying(lines: &[String]) -> Result<u64, String> {
    #[derive(serde::Deserialize)]
    struct Run {
        servers: Vec<Server>,
    }
    #[derive(serde::Deserialize)]
    struct Server {
        children_with_hook: u64,
    }
    // EXIT-CODE MILLISECONDS JSON; 0 says that the postmaster carries it
    let status = lines.iter().find_map(|l| l.strip_prefix("said status ")).unwrap_or_default();
    let mut words = status.splitn(3, ' ');
    let (code, json) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
    let runs: Vec<Run> =
        serde_json::from_str(json).map_err(|e| format!("status can't be read: {e}: {status}"))?;
    let with: u64 = runs.iter().flat_map(|r| &r.servers).map(|s| s.children_with_hook).sum();
    if code != "0" || with == 0 {
        return Err(format!("the server does not carry the hook: {status}"));
    }
    Ok(with + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str =
        r#"said status 0 9 [{"servers":[{"children_with_hook":7,"postmaster":null}]}]"#;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn run(doctor: &str, wal: &str, relations: &str) -> Vec<String> {
        lines(&format!(
            "begin f2fs\nsaid doctor 0 1 {{\"answers\":[{{\"buffered\":\"{doctor}\",\"direct\":\"{doctor}\",\
             \"lifetimes\":[]}}]}}\nphase wal\nwrite nvme 0x0:0 60\nwrite nvme {wal} 4000\nhandle 0 9 1\nbytes 1800000\n\
             phase checkpoint\nwrite nvme 0x0:0 90\nwrite nvme {relations} 9000\nhandle 0 9 8\nhandle 1 9 1\n{STATUS}"
        ))
    }

    #[test]
    fn where_wal_and_relations_went() {
        let apart = placed(&run("delivered", "0x20:0", "0x20:65536")).unwrap();
        assert!(apart.is(true) && !apart.is(false));
        let mostly = (apart.wal.mostly(), apart.relations.mostly());
        assert_eq!(mostly, (Some(Some(0)), Some(Some(1))));
        // the device must have moved that handle, too
        let denied = run("delivered", "0x20:0", "0x20:131072");
        assert!(!placed(&denied).unwrap().is(true));
        let together = placed(&run("delivered", "0x20:65536", "0x20:65536")).unwrap();
        assert!(!together.is(true));
        let nowhere = placed(&run("not-delivered", "0x0:0", "0x0:0")).unwrap();
        assert!(nowhere.is(false) && !nowhere.is(true));
        // doctor must have said so
        assert!(!placed(&run("delivered", "0x0:0", "0x0:0")).unwrap().is(false));
        assert!(placed(&lines("begin f2fs\nfailed start: no")).is_err());
        let all = run("delivered", "0x20:0", "0x20:65536");
        assert!(placed(&all[..4]).is_err());
        let unhooked = all.len() - 1;
        assert!(placed(&all[..unhooked]).unwrap_err().contains("status"));
    }

    #[test]
    fn what_a_power_cut_may_not_leave() {
        let boot = |recovered: u64, bad: u64| {
            lines(&format!(
                "cache write through\nrecovered {recovered}\nchecksums {bad}\namcheck clean\n{STATUS}\n\
                 load\ncommitted 41\ncommitted 42"
            ))
        };
        assert!(checked(&boot(40, 0), 1, 40, false).is_ok());
        // a commit may have been written and its acknowledgement lost
        assert!(checked(&boot(41, 0), 1, 40, false).is_ok());
        assert!(checked(&boot(39, 0), 1, 40, false).is_err());
        assert!(checked(&boot(40, 1), 1, 40, false).is_err());
        for missing in 0..8 {
            let mut less = boot(40, 0);
            let gone = less.remove(missing);
            let fine = ["load", "committed 41", "committed 42"].contains(&gone.as_str());
            assert_eq!(checked(&less, 1, 40, false).is_ok(), fine, "{gone}");
        }
    }
}
