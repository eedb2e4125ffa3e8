//! What a recorder says of a run's data folders: what it saw written of what the policy hints, and
//! how much of that left without its hint.
//!
//! Invariant: as with a daemon's figures, what is no figures is an error, not a panic, and no number
//! is acted on. What a recorder wrote that has ended is not shown.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shelflife_control::{Run, start_time};

use crate::Error;

/// Writes of a class that the policy hints.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RecordedClass {
    /// What the files are, by their paths.
    pub class: String,
    /// The lifetime that the policy gave them.
    pub lifetime: String,
    /// Bytes that were issued to the drive.
    pub bytes: u64,
    /// Of these: bytes that carried another hint, or none.
    pub late_bytes: u64,
}

/// Writes to a data folder.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RecordedFolder {
    /// The folder.
    pub folder: PathBuf,
    /// By class and lifetime.
    pub classes: Vec<RecordedClass>,
}

impl RecordedFolder {
    /// Bytes of all its hinted classes, and how many of them left without their hint.
    pub fn bytes(&self) -> (u64, u64) {
        let add = |(all, late): (u64, u64), class: &RecordedClass| {
            (all.saturating_add(class.bytes), late.saturating_add(class.late_bytes))
        };
        self.classes.iter().fold((0, 0), add)
    }
}

/// What a recorder saw so far of a run's data folders.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Recording {
    /// The recorder's process.
    pub pid: u32,
    /// Its start time (`/proc/PID/stat` field 22, clock ticks since boot).
    pub pid_start: u64,
    /// When it began, seconds since 1970.
    pub since: u64,
    /// The folders of which something was recorded.
    pub folders: Vec<RecordedFolder>,
}

impl Recording {
    fn goes_on(&self) -> bool {
        start_time(self.pid) == Some(self.pid_start)
    }
}

/// What the recorder that goes on says of `run`; `None` if there is none, or it has seen nothing yet.
///
/// # Errors
///
/// [`Error::Control`] if it cannot be read, [`Error::Figures`] if it is something else.
pub fn recording(run: &Run) -> Result<Option<Recording>, Error> {
    let Some(json) = run.recorded()? else { return Ok(None) };
    let recording: Recording = serde_json::from_slice(&json).map_err(|source| Error::Figures {
        run: run.name().to_owned(),
        of: "recorder",
        source,
    })?;
    Ok(Some(recording).filter(Recording::goes_on))
}

/// Shows what the calling process recorded of `run` to who asks; whether it did: where another
/// recorder was first, its figures stay until it ends.
///
/// # Errors
///
/// [`Error::Control`] if it cannot be written.
pub fn publish(run: &Run, mine: &Recording) -> Result<bool, Error> {
    // what is no figures is nobody's
    if recording(run).ok().flatten().is_some_and(|theirs| theirs.pid != mine.pid) {
        return Ok(false);
    }
    let json = serde_json::to_vec(mine).map_err(|source| Error::Figures {
        run: run.name().to_owned(),
        of: "recorder",
        source,
    })?;
    run.write_recorded(&json)?;
    Ok(true)
}
