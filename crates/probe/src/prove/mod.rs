//! The live proof: probe files are written with every hint, and what was issued, sent and counted is
//! looked at.
//!
//! Invariants: the probe files have no name, so that nothing is left even if the process is killed;
//! at most `MOST_BYTES` are written beside a path; *proven* and *disproven* are said of what was
//! seen only, never of what was predicted.

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
use crate::kernel::Kernel;
use crate::leaf::Leaf;
use crate::nvme::Statistics;
use crate::signal::Mode;

use block::Blocks;
use commands::{Device, Tracer};
use counters::Counters;
use files::Files;

pub use proof::{Moved, Observed, ObservedLifetime, Proof, ProofReport, Requests, Ruling, Tagged};

/// Bytes of one piece: more than 16 blocks of 4 KiB, for f2fs puts what is written back in less into
/// its hot log whatever the hint (`fs/f2fs/data.c`, `min_hot_blocks`).
const PIECE: usize = 128 << 10;
/// Pieces of each file, written in turns with those of the others, so that files of one log come to
/// lie between each other.
const PIECES: usize = 2;
/// What is written at most beside a path: six lifetimes, two ways.
const MOST_BYTES: u64 = (PIECE * PIECES * 6 * 2) as u64;
/// No new piece is begun beside a path after this: an answer is worth that wait on a slow drive.
const LONGEST: Duration = Duration::from_secs(30);

/// What was seen of one lifetime in one way of writing; the sum of its pieces.
#[derive(Clone, Debug, Default)]
struct Sight {
    /// What drivers sent, by tag, while each of its pieces was written.
    commands: Vec<Vec<Tagged>>,
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

/// A path, and what is known before anything is written.
struct Place {
    folder: PathBuf,
    predicted: Answer,
    /// Its drives as the tracepoints name them.
    devices: Vec<Device>,
    notes: Vec<String>,
}

/// What was seen while the probe files of one place were written.
struct Written {
    sights: Vec<(Mode, [Sight; 6])>,
    totals: Option<(Statistics, Statistics)>,
    zones: Vec<String>,
}

/// Writes probe files beside each of `paths`, one after the other, and looks at what becomes of them. The
/// watch over the block layer is begun once for all. Ends early, with nothing left, once `stop` is true.
///
/// # Errors
///
/// Those of [`Doctor::path`]; [`Error::RawDevice`], [`Error::Full`], [`Error::NoFile`];
/// [`Error::NothingToSee`] without any right to look, without a drive below, or without a path. With any
/// of these nothing was written to any of `paths`. [`Error::Interrupted`].
pub fn prove(paths: &[PathBuf], stop: &AtomicBool) -> Result<Proof, Error> {
    let host = Host::live();
    let doctor = Doctor::new(Host::live());
    let mut kernel = None;
    let mut places = Vec::new();
    for path in paths {
        let (of, place) = Place::find(&host, &doctor, path)?;
        kernel = Some(of);
        places.push(place);
    }
    let Some(kernel) = kernel else {
        return Err(Error::NothingToSee { path: PathBuf::new(), why: "no path".to_owned() });
    };
    let drives = places.iter().flat_map(|place| &place.predicted.drives);
    let blocks = Blocks::start(drives);
    let traceable = places.iter().any(|place| !place.devices.is_empty());
    let tracer = if traceable { Tracer::start() } else { Err(commands::NONE.to_owned()) };
    let mut counters = Vec::new();
    let mut files = Vec::new();
    for place in &mut places {
        let counting = Counters::new(&host, &place.predicted, &place.folder);
        place.check(&blocks, &tracer, &counting)?;
        counters.push(counting);
        files.push(Files::make(&place.folder, place.predicted.is_journalled())?);
    }
    let tracer = tracer.ok();
    let mut written = Vec::new();
    for ((place, counters), files) in places.iter().zip(&mut counters).zip(&files) {
        let tracer = tracer.as_ref().filter(|_| !place.devices.is_empty());
        written.push(place.write(files, counters, tracer, stop)?);
    }
    let seen = blocks.ok().map(Blocks::stop);
    let answers = places.into_iter().zip(written).map(|(mut place, written)| {
        let seen = match &seen {
            Some(Ok(seen)) => seen.of(&place.predicted.drives),
            Some(Err(why)) => {
                place.notes.push(why.clone());
                None
            }
            None => None,
        };
        let traced = tracer.is_some() && !place.devices.is_empty();
        proof::conclude(place, written, seen, traced)
    });
    Ok(Proof::of(kernel, answers.collect()))
}

impl Place {
    /// The place beside `path`, and the kernel that doctor found.
    fn find(host: &Host, doctor: &Doctor, path: &Path) -> Result<(Kernel, Place), Error> {
        let found = doctor.locate(path)?;
        if found.block.is_some() {
            return Err(Error::RawDevice { path: path.to_owned() });
        }
        let folder = folder_beside(&found.path, found.folder);
        let report = doctor.path(&folder)?;
        let reaches = |answer: &Answer| !answer.drives.is_empty();
        let Some(predicted) = report.answers.into_iter().next().filter(reaches) else {
            let why = "no drive was found below it; `shelflife doctor PATH` says why";
            return Err(Error::NothingToSee { path: folder, why: why.to_owned() });
        };
        let devices = commands::devices(host, &predicted.drives);
        Ok((report.kernel, Place { folder, predicted, devices, notes: Vec::new() }))
    }

    /// Notes what cannot be looked at; refuses if that is everything.
    fn check(
        &mut self,
        blocks: &Result<Blocks, String>,
        tracer: &Result<Tracer, String>,
        counters: &Counters<'_>,
    ) -> Result<(), Error> {
        let drives = &self.predicted.drives;
        let watched = blocks.as_ref().map_err(String::clone).and_then(|b| b.watches(drives));
        let traced = match tracer {
            Err(why) => Err(why.clone()),
            Ok(_) if self.devices.is_empty() => Err(commands::NONE.to_owned()),
            Ok(_) => Ok(()),
        };
        let blind = watched.is_err() && traced.is_err() && !counters.any();
        self.notes.extend([watched.err(), traced.err()].into_iter().flatten());
        if !blind {
            return Ok(());
        }
        if !rustix::process::geteuid().is_root() {
            self.notes.push("root sees all of it".to_owned());
        }
        Err(Error::NothingToSee { path: self.folder.clone(), why: self.notes.join("; ") })
    }

    /// Writes the probe files; none is left when this returns.
    fn write(
        &self,
        files: &Files,
        counters: &mut Counters<'_>,
        tracer: Option<&Tracer>,
        stop: &AtomicBool,
    ) -> Result<Written, Error> {
        let before = counters.totals();
        let mut sights: Vec<(Mode, [Sight; 6])> = Vec::new();
        let mut zones = Vec::new();
        let begun = Instant::now();
        for mode in [Mode::Buffered, Mode::Direct] {
            let mut all: [Sight; 6] = std::array::from_fn(|_| Sight::default());
            let opened = files.open(mode);
            for piece in 0..PIECES {
                // Hinted ones first: zoned XFS with few zones opens one for whoever comes first, and
                // all others share it.
                for (lifetime, sight) in Lifetime::ALL.into_iter().zip(&mut all).rev() {
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
            // While the files are there: a zone that nothing lives in is opened for others.
            zones.extend(counters.zones());
            sights.push((mode, all));
        }
        zones.sort_unstable();
        zones.dedup();
        let after = counters.totals();
        let commands = tracer.map(|tracer| tracer.take(&self.devices)).unwrap_or_default();
        for sight in sights.iter_mut().flat_map(|(_, all)| all) {
            let of_piece = |(from, to): &(u64, u64)| {
                // Times in the trace are cut to microseconds.
                let within = |time: u64| time + 1000 > *from && time <= *to;
                let own = commands.iter().filter(|(time, _)| within(*time));
                proof::sum(own.map(|(_, one)| *one))
            };
            sight.commands = sight.windows.iter().map(of_piece).collect();
        }
        Ok(Written { sights, totals: before.zip(after), zones })
    }
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
