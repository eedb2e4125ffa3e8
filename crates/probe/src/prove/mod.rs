//! The live proof: probe files are written with every hint, and what was issued, sent and counted is
//! looked at.
//!
//! Invariants: the probe files have no name, so that nothing is left even if the process is killed;
//! at most `MOST_BYTES` are written; *proven* and *disproven* are said of what was seen only, never
//! of what was predicted.

mod block;
mod commands;
mod counters;
mod files;
mod proof;
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shelflife_lifetime::Lifetime;

use crate::answer::Answer;
use crate::doctor::Doctor;
use crate::error::Error;
use crate::host::Host;
use crate::leaf::Leaf;
use crate::signal::Mode;

use block::Blocks;
use commands::Tracer;
use counters::Counters;
use files::Files;

pub use proof::{Moved, Observed, ObservedLifetime, Proof, ProofReport, Ruling, Tagged};

/// Bytes of one piece: more than 16 blocks of 4 KiB, for f2fs puts what is written back in less into
/// its hot log whatever the hint (`fs/f2fs/data.c`, `min_hot_blocks`).
const PIECE: usize = 128 << 10;
/// Pieces of each file, written in turns with those of the others, so that files of one log come to
/// lie between each other.
const PIECES: usize = 2;
/// What is written at most: six lifetimes, two ways.
pub const MOST_BYTES: u64 = (PIECE * PIECES * 6 * 2) as u64;
/// No new piece is begun after this.
const LONGEST: Duration = Duration::from_secs(9);

/// What was seen of one lifetime in one way of writing; the sum of its pieces.
#[derive(Clone, Debug, Default)]
struct Sight {
    /// What drivers sent, by tag.
    commands: Vec<Tagged>,
    /// What counters moved.
    moved: Vec<Moved>,
    /// When its pieces were written, by CLOCK_MONOTONIC in nanoseconds.
    windows: Vec<(u64, u64)>,
    /// Device and inode of the file.
    file: (u64, u64),
    /// First and last byte of its extents on the device below the file system.
    place: Option<(u64, u64)>,
    /// Bytes written.
    bytes: u64,
    /// Why nothing was written.
    failed: Option<String>,
}

/// Writes probe files beside `path` and looks at what becomes of them. Ends early, with nothing left, once
/// `stop` is true.
///
/// # Errors
///
/// Those of [`Doctor::path`]; [`Error::RawDevice`], [`Error::Full`];
/// [`Error::NothingToSee`] without any right to look; [`Error::Interrupted`].
pub fn prove(path: &Path, stop: &AtomicBool) -> Result<Proof, Error> {
    let host = Host::live();
    let place = host.calls().locate(path).map_err(Error::path(path))?;
    if place.block.is_some() {
        return Err(Error::RawDevice { path: path.to_owned() });
    }
    let folder = folder_beside(&place.path, place.folder);
    let report = Doctor::new(host).path(&folder)?;
    let Some(predicted) = report.answers.into_iter().next() else {
        return Err(Error::NothingToSee { why: "doctor has no answer".to_owned() });
    };
    let host = Host::live();
    let mut notes = Vec::new();
    let blocks = Blocks::start(&predicted.drives).map_err(|why| notes.push(why)).ok();
    let tracer = Tracer::start(&host, &predicted.drives).map_err(|why| notes.push(why)).ok();
    let mut counters = Counters::new(&host, &predicted, &folder);
    if blocks.is_none() && tracer.is_none() && !counters.any() {
        if !rustix::process::geteuid().is_root() {
            notes.push("root sees all of it".to_owned());
        }
        return Err(Error::NothingToSee { why: notes.join("; ") });
    }
    let files = Files::make(&folder, predicted.is_journalled())?;
    let before = counters.totals();
    let mut sights: Vec<(Mode, [Sight; 6])> = Vec::new();
    let begun = Instant::now();
    for mode in [Mode::Buffered, Mode::Direct] {
        let mut all: [Sight; 6] = std::array::from_fn(|_| Sight::default());
        let opened = files.open(mode);
        for piece in 0..PIECES {
            for (lifetime, sight) in Lifetime::ALL.into_iter().zip(&mut all) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let file = match &opened {
                    Ok(opened) => &opened[lifetime as usize],
                    Err(why) => {
                        sight.failed = Some(why.clone());
                        continue;
                    }
                };
                if begun.elapsed() > LONGEST {
                    sight.failed = Some("there was no time left".to_owned());
                    continue;
                }
                counters.begin();
                let from = files::now();
                let written = file.put(piece, lifetime);
                // What is still on its way down a stack is written by then.
                sight.windows.push((from, files::now()));
                match written {
                    Ok(bytes) => sight.bytes += bytes,
                    Err(why) => sight.failed = Some(why),
                }
                counters::add(&mut sight.moved, counters.end());
                sight.file = file.key;
                sight.place = file.place();
            }
        }
        sights.push((mode, all));
    }
    let after = counters.totals();
    let commands = tracer.as_ref().map(Tracer::read).unwrap_or_default();
    for sight in sights.iter_mut().flat_map(|(_, all)| all) {
        // Times in the trace are cut to microseconds.
        let within =
            |time: u64| sight.windows.iter().any(|(from, to)| time + 1000 > *from && time <= *to);
        let own = commands.iter().filter(|(time, _)| within(*time)).map(|(_, one)| *one);
        proof::add(&mut sight.commands, own);
    }
    drop(files);
    let zones = counters.zones();
    let seen = blocks.and_then(|blocks| match blocks.stop() {
        Ok(seen) => Some(seen),
        Err(why) => {
            notes.push(why);
            None
        }
    });
    Ok(proof::conclude(proof::Evidence {
        kernel: report.kernel,
        folder,
        predicted,
        sights,
        seen,
        traced: tracer.is_some(),
        totals: before.zip(after),
        zones,
        notes,
    }))
}

/// The folder itself, or the one that the file lies in; of a server's data folder the one above, if that is
/// the same file system.
fn folder_beside(path: &Path, is_folder: bool) -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let folder = if is_folder { path } else { path.parent().unwrap_or(path) };
    let device = |path: &Path| std::fs::metadata(path).map(|meta| meta.dev()).ok();
    let above = folder.parent().filter(|_| folder.join("PG_VERSION").exists());
    match above.filter(|above| device(above) == device(folder)) {
        Some(above) => above.to_owned(),
        None => folder.to_owned(),
    }
}

/// Names of the drives that an answer reaches.
fn names(drives: &[Leaf]) -> Vec<&str> {
    drives.iter().map(|leaf| leaf.drive.device.as_str()).collect()
}

impl Answer {
    /// Whether ext4 writes data to its journal first, as its step says.
    fn is_journalled(&self) -> bool {
        self.steps.iter().any(|step| step.depth == 1 && step.why.starts_with("data=journal"))
    }

    fn is_used_by(&self, kind: &str) -> bool {
        self.steps
            .iter()
            .any(|step| step.layer == "file system" && step.name == kind && step.depth == 1)
    }
}
