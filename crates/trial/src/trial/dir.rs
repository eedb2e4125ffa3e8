//! The trial's folder.
//!
//! Invariant: what is dropped before [`Dir::keep`] leaves nothing, unless a round is in the results.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::record::{FILE, Record, Results};

/// The trial's folder. Dropped before [`Dir::keep`], it goes, unless results with a round are in it.
pub(crate) struct Dir {
    pub(crate) path: PathBuf,
    made: bool,
    keep: Cell<bool>,
}

impl Dir {
    pub(crate) fn make(path: &Path) -> Result<Dir> {
        use std::os::unix::fs::DirBuilderExt;
        // The server's user must get through.
        let made = match fs::DirBuilder::new().mode(0o755).create(path) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let mut entries = fs::read_dir(path).map_err(Error::io("cannot list", path))?;
                if entries.next().is_some() {
                    let resumable = path.join(FILE).exists();
                    return Err(Error::NotEmpty { path: path.to_owned(), resumable });
                }
                false
            }
            Err(error) => return Err(Error::io("cannot make", path)(error)),
        };
        let keep = Cell::new(false);
        let absolute = path.canonicalize().map_err(Error::io("cannot follow", path))?;
        Ok(Dir { path: absolute, made, keep })
    }

    pub(crate) fn existing(path: &Path) -> Result<Dir> {
        let path = path.canonicalize().map_err(Error::io("cannot follow", path))?;
        Ok(Dir { path, made: false, keep: Cell::new(true) })
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.path.join(FILE)
    }

    /// Whether there are results with a round.
    pub(crate) fn has_round(&self) -> bool {
        let rounds = |results: &Results| {
            results.records.iter().any(|record| matches!(record, Record::Round(_)))
        };
        Results::read(&self.results()).is_ok_and(|results| rounds(&results))
    }

    pub(crate) fn keep(&self) {
        self.keep.set(true);
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        if self.keep.get() {
            return;
        }
        if !self.has_round() {
            let _ = fs::remove_file(self.results());
        }
        if self.made {
            // Only if it is empty: a kept cluster stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}
