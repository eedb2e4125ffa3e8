//! What the walk means: the verdict, in a sentence, and what would help.
//!
//! Invariant: *delivered* is said only if lifetimes are known to go to different places of every
//! drive that is reached; in doubt the verdict is *unknown*.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use shelflife_lifetime::Lifetime;

use crate::fs::Use;
use crate::leaf::{Arrival, Leaf, Slot};
use crate::signal::Mode;
use crate::step::{Effect, Step};
use crate::walk::Walk;

/// Whether hints reach the flash.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The drive keeps lifetimes apart.
    Delivered,
    /// The file system sorts by them, the drive does not hear them.
    FileSystemOnly,
    /// They are lost on the way.
    NotDelivered,
    /// Something is missing to know.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Verdict::Delivered => "delivered",
            Verdict::FileSystemOnly => "file system only",
            Verdict::NotDelivered => "not delivered",
            Verdict::Unknown => "unknown",
        })
    }
}

/// What becomes of one lifetime.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LifetimeAnswer {
    /// `not-set` to `extreme`.
    pub lifetime: &'static str,
    /// 0 to 5.
    pub value: u8,
    /// The log of f2fs that takes it: `hot`, `warm`, `cold`.
    pub log: Option<&'static str>,
    /// Written through the page cache. With several drives: what is the same for all.
    pub buffered: Arrival,
    /// Written with `O_DIRECT`.
    pub direct: Arrival,
}

/// The answer for one path.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Answer {
    /// What it is of a server: `data folder`, `WAL folder`, `tablespace 16400`.
    pub what: Option<String>,
    /// The path, links followed.
    pub path: PathBuf,
    /// The verdict: for a raw device that with `O_DIRECT`, else that of the page cache.
    pub verdict: Verdict,
    /// The verdict for writes through the page cache.
    pub buffered: Verdict,
    /// The verdict for `O_DIRECT`.
    pub direct: Verdict,
    /// The verdict in a sentence.
    pub sentence: String,
    /// Index in `steps` of the first layer in the way.
    pub first: Option<usize>,
    /// What would help, all of it together.
    pub changes: Vec<String>,
    /// What is missing to know.
    pub missing: Vec<String>,
    /// What would be told to root.
    pub root_would_add: Vec<&'static str>,
    /// The layers, from the kernel down.
    pub steps: Vec<Step>,
    /// The drives that are reached.
    pub drives: Vec<Leaf>,
    /// The six lifetimes, in the kernel's order.
    pub lifetimes: Vec<LifetimeAnswer>,
    /// Lifetimes that the drive cannot tell from each other, each group by names; one group if it
    /// tells none.
    pub shares: Vec<Vec<&'static str>>,
}

impl Answer {
    pub(crate) fn of(path: PathBuf, walk: Walk) -> Answer {
        let buffered = verdict(&walk, Mode::Buffered);
        let direct = verdict(&walk, Mode::Direct);
        let mode = if walk.raw { Mode::Direct } else { Mode::Buffered };
        let verdict = if walk.raw { direct } else { buffered };
        let blocks = |step: &Step| match step.effect {
            Effect::Drops | Effect::Replaces => true,
            Effect::DirectOnly => !walk.raw,
            _ => false,
        };
        let first = match verdict {
            Verdict::Delivered => None,
            Verdict::Unknown => {
                walk.steps.iter().position(|step| step.effect == Effect::Unknown || blocks(step))
            }
            _ => walk.steps.iter().position(blocks),
        };
        let mut changes: Vec<String> = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        for step in &walk.steps {
            let all = [(&step.change, &mut changes), (&step.missing, &mut missing)];
            for (text, list) in all {
                if let Some(text) = text.as_ref().filter(|text| !list.contains(text)) {
                    list.push(text.clone());
                }
            }
        }
        if verdict == Verdict::Delivered {
            changes.clear();
        }
        let lifetimes = lifetimes(&walk);
        let shares = shares(&walk.leaves, mode);
        let mut answer = Answer {
            what: None,
            path,
            verdict,
            buffered,
            direct,
            sentence: String::new(),
            first,
            changes,
            missing,
            root_would_add: walk.root,
            steps: walk.steps,
            drives: walk.leaves,
            lifetimes,
            shares,
        };
        answer.sentence = answer.in_a_sentence(walk.uses, walk.raw);
        answer
    }

    fn in_a_sentence(&self, uses: Option<Use>, raw: bool) -> String {
        let path = self.path.display();
        let drives = self.drive_names();
        let why = self.first.and_then(|at| self.steps.get(at)).map(reason).unwrap_or_default();
        match self.verdict {
            Verdict::Delivered => {
                let with = if raw && self.buffered != Verdict::Delivered {
                    " when they are written with O_DIRECT"
                } else {
                    ""
                };
                let classes: Vec<String> = self.shares.iter().map(|names| class(names)).collect();
                format!(
                    "Hints on {path} reach {drives}{with}, which keeps apart: {}.",
                    classes.join(" | ")
                )
            }
            Verdict::FileSystemOnly => {
                let place = match uses {
                    Some(Use::Zones) => "choose the zone within XFS",
                    _ => "choose the log within f2fs (hot, warm, cold)",
                };
                format!("Hints on {path} {place}, but do not reach {drives}: {why}.")
            }
            Verdict::NotDelivered => format!("Hints on {path} do not reach {drives}: {why}."),
            Verdict::Unknown => {
                format!("Whether hints on {path} reach {drives} is not known: {why}.")
            }
        }
    }

    /// `sda (Google PersistentDisk)`, or the names of several, or `a drive`.
    fn drive_names(&self) -> String {
        match self.drives.as_slice() {
            [] => "a drive".to_owned(),
            [one] => {
                let model = one.drive.cloud.unwrap_or(&one.drive.model);
                let name = &one.drive.device;
                if model.is_empty() { name.clone() } else { format!("{name} ({model})") }
            }
            [all @ .., last] => {
                let names: Vec<&str> = all.iter().map(|l| l.drive.device.as_str()).collect();
                format!("{} and {}", names.join(", "), last.drive.device)
            }
        }
    }

    /// One line for the start of another program: `hints do not reach this drive …`.
    pub fn headline(&self) -> String {
        let by = self.first.and_then(|at| self.steps.get(at)).map(reason).unwrap_or_default();
        match self.verdict {
            Verdict::Delivered => format!("hints reach {}", self.drive_names()),
            Verdict::FileSystemOnly => {
                format!(
                    "hints sort files within the file system but do not reach this drive ({by})"
                )
            }
            Verdict::NotDelivered => {
                format!("hints do not reach this drive ({by}): expect no device effect")
            }
            Verdict::Unknown => format!("whether hints reach this drive is not known ({by})"),
        }
    }
}

/// `dm-crypt encrypts …`.
fn reason(step: &Step) -> String {
    match step.layer.as_str() {
        "drive" => step.why.clone(),
        "kernel" => format!("the kernel {}", step.why),
        "file system" => format!("{}: {}", step.name, step.why),
        "loop" => format!("loop device: {}", step.why),
        layer => format!("{layer}: {}", step.why),
    }
}

/// Names of one class; that of files without a hint is the rest.
fn class(names: &[&'static str]) -> String {
    match names {
        names if names.contains(&Lifetime::NotSet.name()) => "everything else".to_owned(),
        names => names.join(", "),
    }
}

/// Whether the drive tells a lifetime from files without a hint; `None` if not known.
fn tells(arrivals: &[Arrival; 6]) -> Option<bool> {
    let [base, rest @ ..] = arrivals;
    let known = |slot: Slot| slot != Slot::Unknown;
    if known(base.slot) && rest.iter().any(|one| known(one.slot) && one.slot != base.slot) {
        return Some(true);
    }
    arrivals.iter().all(|one| known(one.slot)).then_some(false)
}

fn verdict(walk: &Walk, mode: Mode) -> Verdict {
    let told: Vec<Option<bool>> =
        walk.leaves.iter().map(|leaf| tells(leaf.arrivals.of(mode))).collect();
    let lost = if told.is_empty() {
        // Nothing reached: either it ends on the way, or the way could not be seen.
        walk.steps.iter().any(|step| step.effect == Effect::Drops)
    } else {
        told.contains(&Some(false))
    };
    match () {
        () if lost && walk.uses.is_some() => Verdict::FileSystemOnly,
        () if lost => Verdict::NotDelivered,
        () if !told.is_empty() && told.iter().all(|one| *one == Some(true)) => Verdict::Delivered,
        () => Verdict::Unknown,
    }
}

fn lifetimes(walk: &Walk) -> Vec<LifetimeAnswer> {
    let merged = |mode: Mode, n: usize| {
        let mut all = walk.leaves.iter().map(|leaf| leaf.arrivals.of(mode)[n]);
        let first = all.next().unwrap_or_default();
        all.fold(first, |a, b| Arrival {
            hint: a.hint.filter(|_| a.hint == b.hint),
            stream: a.stream.filter(|_| a.stream == b.stream),
            group: a.group.filter(|_| a.group == b.group),
            placement: a.placement.filter(|_| a.placement == b.placement),
            handle: a.handle.filter(|_| a.handle == b.handle),
            slot: if a.slot == b.slot { a.slot } else { Slot::Unknown },
        })
    };
    let log = |n: usize| match walk.uses {
        Some(Use::Logs(logs)) => Some(logs[n]),
        _ => None,
    };
    Lifetime::ALL
        .into_iter()
        .map(|lifetime| LifetimeAnswer {
            lifetime: lifetime.name(),
            value: lifetime as u8,
            log: log(lifetime as usize),
            buffered: merged(Mode::Buffered, lifetime as usize),
            direct: merged(Mode::Direct, lifetime as usize),
        })
        .collect()
}

/// Lifetimes by the place that all drives give them.
fn shares(leaves: &[Leaf], mode: Mode) -> Vec<Vec<&'static str>> {
    let mut classes: Vec<(Vec<Slot>, Vec<&'static str>)> = Vec::new();
    let order = [2usize, 3, 4, 5, 1, 0];
    for n in order {
        let place: Vec<Slot> = leaves.iter().map(|leaf| leaf.arrivals.of(mode)[n].slot).collect();
        let name = Lifetime::ALL[n].name();
        match classes.iter_mut().find(|(other, _)| *other == place) {
            Some((_, names)) => names.push(name),
            None => classes.push((place, vec![name])),
        }
    }
    // The class of files without a hint last.
    classes.sort_by_key(|(_, names)| names.contains(&Lifetime::NotSet.name()));
    classes.into_iter().map(|(_, names)| names).collect()
}
