//! What a daemon says of itself.
//!
//! Invariant: the text comes from a user's process and is judged as such: what is no figures is an
//! error, not a panic, and no number is acted on.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shelflife_control::Run;

use crate::Error;

/// Hints that were given to files of a class.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Hinted {
    /// What the files are.
    pub class: String,
    /// The lifetime.
    pub lifetime: String,
    /// How many calls.
    pub hints: u64,
}

/// Calls that the kernel refused.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Refused {
    /// Why.
    pub errno: i32,
    /// How often.
    pub times: u64,
}

/// What a daemon knows of a server's relations.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Cataloged {
    /// The role under which the catalogs are read.
    pub role: String,
    /// Relations that are known.
    pub known: u64,
    /// Relations whose files were seen and that no catalog has yet.
    pub unknown: u64,
    /// How often catalogs were read.
    pub readings: u64,
    /// What the last reading could not read, and why.
    pub failure: Option<String>,
}

/// A folder that a daemon watches.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct WatchedFolder {
    /// The folder.
    pub folder: PathBuf,
    /// `folders` (marks on every folder, no rights needed) or `filesystem` (marks on file systems).
    pub mode: String,
    /// Whether it is there.
    pub present: bool,
    /// Whether the first sweep has ended.
    pub swept: bool,
    /// Its roots: the folder itself, the WAL folder, tablespaces.
    pub roots: Vec<PathBuf>,
    /// Files, as of the last sweep.
    pub files: u64,
    /// Files behind open descriptors of the server, as of the last sweep.
    pub open_files: u64,
    /// Folders that are watched.
    pub folders: u64,
    /// Folders that could not be marked.
    pub unwatched: u64,
    /// Hints given, by class and lifetime.
    pub hints: Vec<Hinted>,
    /// Of these: given by a sweep.
    pub by_sweeps: u64,
    /// Of these: given at an open to a file that was there before and had lost its hint.
    pub again: u64,
    /// Hints set back to `not-set`.
    pub cleared: u64,
    /// How often the event queue was full; each time everything is swept anew.
    pub overflows: u64,
    /// Sweeps that have ended.
    pub sweeps: u64,
    /// How long the last sweep took, milliseconds.
    pub sweep_ms: u64,
    /// Files and folders of other owners, left alone (each look counts).
    pub foreign: u64,
    /// Files and folders behind links or other mounts, left alone (each look counts).
    pub elsewhere: u64,
    /// What the kernel refused, by errno.
    pub refused: Vec<Refused>,
    /// What is known of relations, where catalogs are read.
    #[serde(default)]
    pub relations: Option<Cataloged>,
}

/// What a daemon says of itself.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Watching {
    /// The folders.
    pub folders: Vec<WatchedFolder>,
}

impl Watching {
    /// Whether catalogs are read: then the daemon alone knows what relations get.
    pub fn reads_catalogs(&self) -> bool {
        self.folders.iter().any(|folder| folder.relations.is_some())
    }
}

/// The figures that the daemon of `run` wrote last; `None` if the run is no daemon's or it has
/// written none yet.
///
/// # Errors
///
/// [`Error::Control`] if they cannot be read, [`Error::Figures`] if they are none.
pub fn watching(run: &Run) -> Result<Option<Watching>, Error> {
    let Some(json) = run.figures()? else { return Ok(None) };
    match serde_json::from_slice(&json) {
        Ok(figures) => Ok(Some(figures)),
        Err(source) => Err(Error::Figures { run: run.name().to_owned(), of: "daemon", source }),
    }
}
