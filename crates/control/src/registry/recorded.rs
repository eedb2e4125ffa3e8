//! What a recorder says of a run, in the run's own folder.
//!
//! Invariant: only who may change the run's record may write it; it goes with the record, and a
//! reader sees all of it or nothing.

use std::fs;
use std::io::ErrorKind;

use super::driver::{read_figures, replace};
use super::{Error, Run, io_error};

const RECORDED: &str = "recorded.json";

impl Run {
    /// What a recorder wrote last of this run; `None` if none did. That recorder may be gone.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn recorded(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = self.dir.join(RECORDED);
        read_figures(&path).map_err(|e| io_error("cannot read the recorder's figures", &path, e))
    }

    /// Replaces what a recorder says of this run.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write_recorded(&self, json: &[u8]) -> Result<(), Error> {
        // two recorders do not write into one file
        let aside = format!(".recorded-{}", std::process::id());
        replace(&self.dir, RECORDED, &aside, json)
            .map_err(|e| io_error("cannot write the recorder's figures", &self.dir, e))
    }

    /// Takes away what a recorder said of this run. Twice is no error.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn remove_recorded(&self) -> Result<(), Error> {
        let path = self.dir.join(RECORDED);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(io_error("cannot remove the recorder's figures", &path, e))
            }
            _ => Ok(()),
        }
    }
}
