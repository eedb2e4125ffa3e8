//! The first step: a scenario recorded, and how long its data live.
//!
//! Invariant: `recording.json` is written when trace and lifetimes are whole, never before.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shelflife_learn::{By, LifetimeOptions, lifetimes};
use shelflife_trace::Trace;
use shelflife_trial::filesystem::Kind;
use shelflife_trial::{CapturePlace, Captured, capture};

use crate::Error;
use crate::folder::{FORMAT, Folder, VERSION, forget, make, read_json, write_json};
use crate::request::Request;

/// In a scenario's folder.
const FACTS: &str = "recording.json";
const TRACE: &str = "trace";

/// What a recording was to be.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Wanted {
    /// The file system.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// How full, 0 to 0.98.
    pub fill: f64,
    /// How many times its size is written.
    pub writes: f64,
}

impl Wanted {
    fn of(request: &Request) -> Wanted {
        let Request { kind, size, fill, writes, .. } = *request;
        Wanted { kind, size, fill, writes }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "--fs {} --size {}MiB --fill {:.0}% --writes {}",
            self.kind.name(),
            self.size >> 20,
            self.fill * 100.0,
            self.writes
        )
    }
}

/// A scenario, recorded.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Recorded {
    /// `shelflife-atlas`
    pub format: String,
    /// Of the format.
    pub version: u32,
    /// What was asked for.
    pub wanted: Wanted,
    /// What was recorded.
    pub captured: Captured,
    /// How long its data live, by class of file; most bytes first.
    pub classes: Vec<ClassLife>,
}

/// How long the data of a class live.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ClassLife {
    /// The class.
    pub name: String,
    /// Bytes written.
    pub bytes: u64,
    /// Of all bytes, 0 to 1.
    pub share: f64,
    /// A tenth of its data is dead after the host has written so many bytes; `None` if more than the
    /// rest was alive at the end.
    pub p10: Option<u64>,
    /// The same for half.
    pub median: Option<u64>,
    /// The same for nine tenths.
    pub p90: Option<u64>,
    /// Share that was alive at the end, 0 to 1.
    pub share_alive: f64,
    /// The longest that was seen, of dead or living data, in bytes.
    pub longest: u64,
    /// Share alive (0 to 1) after so many bytes.
    pub curve: Vec<(u64, f64)>,
}

impl Recorded {
    /// Bytes of the drive that it was: the recorded file system.
    pub fn drive_bytes(&self) -> u64 {
        self.captured.bytes.max(1)
    }

    /// The class of this name.
    pub fn class(&self, name: &str) -> Option<&ClassLife> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// Share of the bytes (0 to 1) that are WAL, in files that were there before and in new ones.
    pub fn wal_share(&self) -> f64 {
        ["wal", "wal-new"].iter().filter_map(|name| self.class(name)).map(|wal| wal.share).sum()
    }
}

/// The recording in a scenario's folder, if it is there whole.
pub(crate) fn existing(folder: &Path, request: &Request) -> Result<Option<Recorded>, Error> {
    let Some(recorded) = read_json::<Recorded>(&facts(folder))? else { return Ok(None) };
    let now = Wanted::of(request);
    if recorded.wanted != now {
        return Err(Error::Changed {
            folder: folder.to_owned(),
            was: recorded.wanted.to_string(),
            now: now.to_string(),
        });
    }
    Ok(Some(recorded))
}

/// What says that a scenario's recording is whole.
pub(crate) fn facts(folder: &Path) -> PathBuf {
    folder.join(FACTS)
}

/// The trace in a scenario's folder.
pub(crate) fn trace(folder: &Path) -> PathBuf {
    folder.join(TRACE)
}

/// Records a scenario; `step` is told what is done and how much of it.
pub(crate) fn record(
    folder: &Folder,
    scenario: &str,
    request: &Request,
    step: &mut dyn FnMut(&'static str, Option<f64>),
) -> Result<Recorded, Error> {
    let own = folder.scenario(scenario);
    make(&own)?;
    let place = trace(&own);
    // without its facts it is what an interruption left
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("cannot remove", place)(error));
        }
        _ => {}
    }
    // and a judgement is one of another recording
    forget(&own)?;
    let wanted = request.capture(scenario);
    let work = folder.work(request.size)?;
    let at = CapturePlace {
        work: work.path.clone(),
        trace: place.clone(),
        hook: request.hook.clone(),
        user: request.user.clone(),
        bindir: request.bindir.clone(),
        cancel: request.cancel.clone(),
    };
    let captured = capture(&wanted, &at, step)?;
    drop(work);
    step("following lifetimes", None);
    let classes = classes(&Trace::open(&place)?, request)?;
    let recorded = Recorded {
        format: FORMAT.to_owned(),
        version: VERSION,
        wanted: Wanted::of(request),
        captured,
        classes,
    };
    write_json(&facts(&own), &recorded)
}

/// How long the data of each class live.
pub(crate) fn classes(trace: &Trace, request: &Request) -> Result<Vec<ClassLife>, Error> {
    let options = LifetimeOptions {
        by: By::Class,
        memory_bytes: request.memory_bytes,
        ..LifetimeOptions::default()
    };
    let found = lifetimes(trace, &options, &mut |_| !request.cancel.is_raised())?;
    let all = found.total.bytes.max(1) as f64;
    let class = |row: &shelflife_learn::Row| ClassLife {
        name: row.name.clone(),
        bytes: row.bytes,
        share: row.bytes as f64 / all,
        p10: row.host_bytes.p10,
        median: row.host_bytes.median,
        p90: row.host_bytes.p90,
        share_alive: row.share_alive,
        longest: row.host_bytes.longest,
        curve: row.host_bytes.curve.iter().map(|point| (point.at, point.alive)).collect(),
    };
    Ok(found.rows.iter().filter(|row| row.bytes > 0).map(class).collect())
}
