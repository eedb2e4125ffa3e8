//! What was seen, and what it means.
//!
//! Invariant: *proven* wants write commands (or handles of the drive) that differ by lifetime;
//! *disproven* wants all of them seen and alike. Whatever is missing or contradicts makes *unknown*.

use std::path::PathBuf;

use serde::Serialize;
use shelflife_lifetime::Lifetime;

use super::block::Issues;
use super::{PIECE, PIECES, Place, Sight, Written, block};
use crate::answer::{Answer, Verdict};
use crate::kernel::Kernel;
use crate::leaf::{Arrival, Leaf};
use crate::nvme::Statistics;
use crate::signal::Mode;

/// The outcome, the best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// Hints reach the drive: seen.
    Proven,
    /// They do not: seen.
    Disproven,
    /// It could not be seen.
    Unknown,
}

impl Ruling {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Ruling::Proven => "proven",
            Ruling::Disproven => "disproven",
            Ruling::Unknown => "unknown",
        }
    }
}

/// Write commands with the same tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Tagged {
    /// SCSI: GROUP NUMBER.
    pub group: Option<u8>,
    /// NVMe: placement identifier, if the command has one.
    pub placement: Option<u16>,
    /// Bytes that they write.
    pub bytes: u64,
}

impl Tagged {
    fn has_tag_of(&self, other: &Tagged) -> bool {
        (self.group, self.placement) == (other.group, other.placement)
    }

    fn is_tagged(&self) -> bool {
        self.group.is_some_and(|group| group > 0) || self.placement.is_some()
    }
}

/// A counter of a device that moved.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Moved {
    /// Which device.
    pub device: String,
    /// `handle` (blocks written into its reclaim unit) or `group` (write commands).
    pub what: &'static str,
    /// Which one.
    pub number: u16,
    /// By how much.
    pub by: u64,
}

/// Requests of one hint and stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Requests {
    /// `bi_write_hint`.
    pub hint: u8,
    /// `bi_write_stream`.
    pub stream: u16,
    /// Bytes.
    pub bytes: u64,
}

/// What was seen of a lifetime in one way of writing.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Observed {
    /// Hint of its data's requests; null if the block layer was not watched.
    pub hint: Option<u8>,
    /// Write stream of them.
    pub stream: Option<u16>,
    /// SCSI: group of its data's commands.
    pub group: Option<u8>,
    /// NVMe: placement identifier of them; null if they have none.
    pub placement: Option<u16>,
    /// Whether it is known how the data was sent.
    pub known: bool,
    /// Whether a copy was sent without the tag, as a journal's.
    pub partly: bool,
    /// Bytes written by the probe.
    pub bytes: u64,
    /// All that the block layer issued for the file.
    pub block: Vec<Requests>,
    /// All write commands to the drives meanwhile, also other programs'.
    pub commands: Vec<Tagged>,
    /// What the devices counted meanwhile.
    pub counted: Vec<Moved>,
    /// Why it was not written, or not all.
    pub failed: Option<String>,
}

/// What was seen of a lifetime.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ObservedLifetime {
    /// `not-set` to `extreme`.
    pub lifetime: &'static str,
    /// 0 to 5.
    pub value: u8,
    /// Through the page cache.
    pub buffered: Observed,
    /// With `O_DIRECT`.
    pub direct: Observed,
}

/// What `shelflife prove --json` prints; `docs/doctor.md` describes it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Proof {
    /// The version of this form: 1.
    pub format: u32,
    /// The kernel.
    pub kernel: Kernel,
    /// The worst outcome of the answers.
    pub ruling: Ruling,
    /// One for each path, in the order of the question; in the form of doctor's.
    pub answers: Vec<ProofReport>,
}

/// The outcome for one path.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ProofReport {
    /// The folder in which the probe files were.
    pub path: PathBuf,
    /// The outcome, for writes through the page cache.
    pub ruling: Ruling,
    /// The outcome in a sentence.
    pub sentence: String,
    /// What was seen of writes through the page cache.
    pub buffered: Verdict,
    /// What was seen of `O_DIRECT`.
    pub direct: Verdict,
    /// What doctor predicted.
    pub predicted: Answer,
    /// Whether that is what was seen, as far as something was.
    pub agrees: Option<bool>,
    /// Whether the block layer was watched, by BPF.
    pub watched: bool,
    /// Whether commands were traced.
    pub traced: bool,
    /// FDP statistics before and after, in bytes.
    pub totals: Option<(Statistics, Statistics)>,
    /// Hints of the zones that XFS has open.
    pub zones: Vec<String>,
    /// What was seen, lifetime by lifetime.
    pub lifetimes: Vec<ObservedLifetime>,
    /// What could not be looked at, and what contradicts.
    pub notes: Vec<String>,
}

/// Sums commands by tag.
pub(super) fn sum(commands: impl Iterator<Item = Tagged>) -> Vec<Tagged> {
    let mut sums: Vec<Tagged> = Vec::new();
    for one in commands {
        match sums.iter_mut().find(|sum| sum.has_tag_of(&one)) {
            Some(sum) => sum.bytes = sum.bytes.saturating_add(one.bytes),
            None => sums.push(one),
        }
    }
    sums
}

impl Proof {
    /// What these answers make together; without any it is unknown.
    pub fn of(kernel: Kernel, answers: Vec<ProofReport>) -> Proof {
        let ruling = answers.iter().map(|one| one.ruling).max().unwrap_or(Ruling::Unknown);
        Proof { format: 1, kernel, ruling, answers }
    }
}

/// What was seen of a place comes to; `seen` is nothing if the block layer was not watched.
pub(super) fn conclude(
    place: Place,
    written: Written,
    seen: Option<Issues<'_>>,
    traced: bool,
) -> ProofReport {
    let Place { folder, predicted, mut notes, .. } = place;
    let Written { sights, totals, zones } = written;
    if let Some(lost) = seen.as_ref().map(Issues::lost).filter(|lost| *lost > 0) {
        notes.push(format!("block layer: {lost} events were lost"));
    }
    let mut observed: [(Observed, Observed); 6] = Default::default();
    let mut verdicts = [Verdict::Unknown; 2];
    for (mode, all) in &sights {
        let mut tags = Vec::new();
        for (sight, into) in all.iter().zip(&mut observed) {
            let one = observe(sight, seen.as_ref(), traced, &predicted.drives, &mut notes);
            tags.push(one.clone());
            match mode {
                Mode::Buffered => into.0 = one,
                Mode::Direct => into.1 = one,
            }
        }
        let sorted = if in_logs(&predicted, all) { Some(true) } else { in_zones(&zones) };
        let verdict = verdict(&tags, &predicted.drives, sorted);
        if verdict == Verdict::Unknown && sorted.is_none() {
            notes.push(
                "zones: XFS opened none for a hint; it may have had none to spare".to_owned(),
            );
        }
        verdicts[usize::from(*mode == Mode::Direct)] = verdict;
    }
    notes.sort_unstable();
    notes.dedup();
    let lifetimes: Vec<ObservedLifetime> = Lifetime::ALL
        .into_iter()
        .zip(observed)
        .map(|(lifetime, (buffered, direct))| ObservedLifetime {
            lifetime: lifetime.name(),
            value: lifetime as u8,
            buffered,
            direct,
        })
        .collect();
    let [buffered, direct] = verdicts;
    let ruling = match buffered {
        Verdict::Delivered => Ruling::Proven,
        Verdict::NotDelivered | Verdict::FileSystemOnly => Ruling::Disproven,
        Verdict::Unknown => Ruling::Unknown,
    };
    let agrees = agreement(&predicted, &lifetimes, verdicts);
    let mut report = ProofReport {
        path: folder,
        ruling,
        sentence: String::new(),
        buffered,
        direct,
        predicted,
        agrees,
        watched: seen.is_some(),
        traced,
        totals,
        zones,
        lifetimes,
        notes,
    };
    report.sentence = report.in_a_sentence();
    report
}

fn observe(
    sight: &Sight,
    seen: Option<&Issues<'_>>,
    traced: bool,
    drives: &[Leaf],
    notes: &mut Vec<String>,
) -> Observed {
    let (block, by_file) = seen.map_or((Vec::new(), true), |seen| block::issued(seen, sight));
    if !by_file && !block.is_empty() {
        notes.push("block layer: some writes are counted by their time, not by file".to_owned());
    }
    let mut observed = Observed {
        bytes: sight.bytes,
        block,
        commands: sum(sight.commands.iter().flatten().copied()),
        counted: sight.moved.clone(),
        failed: sight.failed.clone(),
        ..Observed::default()
    };
    if sight.bytes < (PIECE * PIECES) as u64 {
        return observed;
    }
    let half = sight.bytes / 2;
    // The data's own requests: what has a hint and is half of the data or more, else the most.
    let own =
        observed.block.iter().find(|one| (one.hint, one.stream) != (0, 0) && one.bytes >= half);
    if let Some(own) = own.or(observed.block.first()).copied() {
        (observed.hint, observed.stream) = (Some(own.hint), Some(own.stream));
    }
    if traced {
        sent(&mut observed, &sight.commands, notes);
    } else if has_no_field(drives) || (observed.hint, observed.stream) == (Some(0), Some(0)) {
        // What was not there at the block layer, or has no field in the commands, was not sent.
        observed.known = true;
        observed.stream = observed.stream.or(Some(0));
    }
    check_handles(&mut observed, drives, notes);
    observed
}

/// How the data was sent, by the commands of each piece.
fn sent(observed: &mut Observed, pieces: &[Vec<Tagged>], notes: &mut Vec<String>) {
    let (tagged, untagged): (Vec<Tagged>, Vec<Tagged>) =
        observed.commands.iter().partition(|one| one.is_tagged());
    // f2fs marks its own blocks, too, and those of a checkpoint may be half as much as the data; its
    // cleaner may move megabytes at a time, which seldom comes while both pieces are written.
    let all = observed.bytes / 10 * 9;
    let own: Vec<&Tagged> = tagged
        .iter()
        .filter(|one| {
            let carries =
                |sent: &Tagged| sent.has_tag_of(one) && sent.bytes >= PIECE as u64 / 10 * 9;
            one.bytes >= all && pieces.iter().all(|piece| piece.iter().any(carries))
        })
        .collect();
    let plain: u64 = untagged.iter().map(|one| one.bytes).sum();
    let marked: u64 = tagged.iter().map(|one| one.bytes).sum();
    let is_scsi = observed.commands.iter().any(|one| one.group.is_some());
    match own.as_slice() {
        [own] => {
            observed.known = true;
            (observed.group, observed.placement) = (own.group, own.placement);
            observed.partly = plain >= observed.bytes;
        }
        // What a file system compresses is less than what was written.
        [] if plain >= all || (plain > 0 && marked < all / 10) => {
            observed.known = true;
            observed.group = is_scsi.then_some(0);
            observed.stream = observed.stream.or(Some(0));
        }
        [] => notes.push("commands: too few were seen for what was written".to_owned()),
        _ => notes.push("commands: others wrote with hints meanwhile; try again".to_owned()),
    }
}

/// A placement identifier that was sent must have moved its handle.
fn check_handles(observed: &mut Observed, drives: &[Leaf], notes: &mut Vec<String>) {
    let Some(placement) = observed.placement else { return };
    let counts = observed.counted.iter().any(|one| one.what == "handle");
    let handle = drives.iter().find_map(|leaf| {
        let all = &leaf.fdp.as_ref()?.placements;
        all.iter().find(|one| one.placement == placement).map(|one| one.handle)
    });
    let moved = |handle| observed.counted.iter().any(|m| m.what == "handle" && m.number == handle);
    if let Some(handle) = handle.filter(|_| counts)
        && !moved(handle)
    {
        notes.push(format!("handle {handle} did not move for identifier {placement}"));
        observed.known = false;
    }
}

/// Whether the drivers of all drives have no field for a hint, as virtio-blk.
fn has_no_field(drives: &[Leaf]) -> bool {
    let driver = |leaf: &Leaf| leaf.drive.transport.clone();
    !drives.is_empty() && drives.iter().all(|leaf| crate::block::has_no_field(&driver(leaf)))
}

/// `sorted` says whether the file system itself keeps lifetimes apart; nothing if that is not known.
fn verdict(all: &[Observed], drives: &[Leaf], sorted: Option<bool>) -> Verdict {
    let Some((base, rest)) = all.split_first() else { return Verdict::Unknown };
    if !all.iter().all(|one| one.known) {
        return Verdict::Unknown;
    }
    // What has no identifier goes where the first one leads.
    let first = drives.iter().find_map(|leaf| leaf.fdp.as_ref()?.placements.first());
    let first = first.map(|one| one.placement);
    let tag = |one: &Observed| (one.group, one.placement.or(first));
    if rest.iter().any(|one| tag(one) != tag(base)) {
        return Verdict::Delivered;
    }
    match sorted {
        Some(true) => Verdict::FileSystemOnly,
        Some(false) => Verdict::NotDelivered,
        None => Verdict::Unknown,
    }
}

/// Whether XFS has a zone open for a hint. Without any zone it does not sort; if it has some and none
/// for a hint, that is not known: with none to spare it puts everything into those that are open.
fn in_zones(zones: &[String]) -> Option<bool> {
    let hints = [Lifetime::Short, Lifetime::Medium, Lifetime::Long, Lifetime::Extreme];
    let hinted = zones.iter().any(|zone| hints.iter().any(|hint| zone == hint.name()));
    if hinted || zones.is_empty() { Some(hinted) } else { None }
}

/// Whether f2fs put short or extreme elsewhere than files without a hint, and medium between those.
fn in_logs(predicted: &Answer, sights: &[Sight; 6]) -> bool {
    let place = |lifetime: Lifetime| sights[lifetime as usize].place;
    let Some(base) = place(Lifetime::NotSet).filter(|_| predicted.is_used_by("f2fs")) else {
        return false;
    };
    let meets = |other: (u64, u64)| other.0 < base.1 && base.0 < other.1;
    let apart = [Lifetime::Short, Lifetime::Extreme].map(|l| place(l).is_some_and(|p| !meets(p)));
    apart.contains(&true) && place(Lifetime::Medium).is_some_and(meets)
}

fn agreement(
    predicted: &Answer,
    seen: &[ObservedLifetime],
    verdicts: [Verdict; 2],
) -> Option<bool> {
    let said = [predicted.buffered, predicted.direct];
    let mut any = false;
    for ((said, saw), mode) in said.into_iter().zip(verdicts).zip([Mode::Buffered, Mode::Direct]) {
        if saw == Verdict::Unknown {
            continue;
        }
        any = true;
        let tags = predicted.lifetimes.iter().zip(seen).all(|(said, saw)| match mode {
            Mode::Buffered => same_tag(&said.buffered, &saw.buffered),
            Mode::Direct => same_tag(&said.direct, &saw.direct),
        });
        if said != saw || !tags {
            return Some(false);
        }
    }
    any.then_some(true)
}

fn same_tag(said: &Arrival, saw: &Observed) -> bool {
    let group = said.group.is_none() || saw.group.is_none() || said.group == saw.group;
    group
        && (said.placement == saw.placement
            || said.stream.is_none_or(|stream| stream > 0 && said.placement.is_none()))
}

impl ProofReport {
    fn in_a_sentence(&self) -> String {
        let path = self.path.display();
        let drives: Vec<&str> = super::names(&self.predicted.drives);
        let drives = if drives.is_empty() { "a drive".to_owned() } else { drives.join(", ") };
        match self.ruling {
            Ruling::Proven => {
                let sent: Vec<String> = self
                    .lifetimes
                    .iter()
                    .filter_map(|one| Some(format!("{} as {}", one.lifetime, one.buffered.sent()?)))
                    .collect();
                format!("Proven: hints on {path} reach {drives}: {}.", sent.join(", "))
            }
            Ruling::Disproven if self.buffered == Verdict::FileSystemOnly => format!(
                "Disproven: hints on {path} do not reach {drives}; the file system sorts by them."
            ),
            Ruling::Disproven => {
                let hinted = self.lifetimes.iter().any(|one| one.buffered.hint.unwrap_or(0) > 0);
                let at = match (self.watched, hinted) {
                    (true, true) if has_no_field(&self.predicted.drives) => {
                        "the block layer issues them, and the driver has no field for them"
                    }
                    (true, true) => {
                        "the block layer issues them, and the driver sends writes of all lifetimes \
                         alike"
                    }
                    (true, false) => "the block layer issues writes without a hint",
                    (false, _) => "writes of all lifetimes are sent alike",
                };
                format!("Disproven: hints on {path} do not reach {drives}: {at}.")
            }
            Ruling::Unknown => {
                format!("Unknown: what becomes of hints on {path} could not be seen.")
            }
        }
    }
}

impl Observed {
    /// `group 2`, `identifier 1`, `none`; nothing if it is not known.
    pub(super) fn sent(&self) -> Option<String> {
        self.known.then(|| match (self.group, self.placement) {
            (Some(group @ 1..), _) => format!("group {group}"),
            (_, Some(placement)) => format!("identifier {placement}"),
            _ => "untagged".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
