//! What a daemon holds of its own run, so that it can give up root's rights afterwards.
//!
//! Invariant: after [`Run::drive`] nothing is opened by a name that only root may use but the
//! figures, whose folder belongs to the user that the daemon becomes. That user may put anything
//! there: a reader opens no link, no pipe, and reads no more than [`LIMIT`] bytes.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{Error, Kind, Run, io_error, set_mode};
use crate::page::{Counters, Page, State};
use crate::segment::{Access, AttachError, Segment, SegmentId};
use shelflife_layout::Table;

const FOLDER: &str = "watch";
const FIGURES: &str = "figures.json";
/// The longest figures, in bytes.
const LIMIT: u64 = 1 << 20;

/// A daemon's hold on its own run.
#[derive(Debug)]
pub struct Driver {
    page: Segment<Page>,
    counters: Segment<Counters>,
    lock: File,
    folder: PathBuf,
}

/// Makes the folder in which a daemon, as `owner`, keeps its figures.
pub(super) fn make_figures(run: &Path, owner: Option<u32>) -> Result<(), Error> {
    let folder = run.join(FOLDER);
    DirBuilder::new()
        .mode(0o755)
        .create(&folder)
        .and_then(|()| set_mode(&folder, 0o755))
        .and_then(|()| match owner {
            Some(uid) if rustix::process::geteuid().is_root() => {
                std::os::unix::fs::lchown(&folder, Some(uid), None)
            }
            _ => Ok(()),
        })
        .map_err(|e| io_error("cannot create the folder for the daemon's figures", &folder, e))
}

impl Run {
    /// Who gives the hints.
    pub fn kind(&self) -> Kind {
        self.summary.kind
    }

    /// Opens what a daemon needs of its own run.
    ///
    /// # Errors
    ///
    /// [`Error::Page`], [`Error::Io`].
    pub fn drive(&self) -> Result<Driver, Error> {
        let path = self.dir.join("lock");
        let lock =
            File::open(&path).map_err(|e| io_error("cannot open the run's lock", &path, e))?;
        let counters =
            Segment::<Counters>::attach(SegmentId(self.line.counters), Access::ReadWrite);
        let counters = counters
            .and_then(|c| c.validate(self.line.cookie).map_err(AttachError::Page).map(|()| c))
            .map_err(|source| Error::Page { name: self.name.clone(), source })?;
        let page = self.attach_page(Access::ReadWrite)?;
        Ok(Driver { page, counters, lock, folder: self.dir.join(FOLDER) })
    }

    /// The figures that the daemon of this run wrote last; `None` if it wrote none.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn figures(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = self.dir.join(FOLDER).join(FIGURES);
        read_figures(&path).map_err(|e| io_error("cannot read the daemon's figures", &path, e))
    }
}

/// Reads what another user may have put there; `None` if there is nothing.
pub(super) fn read_figures(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match file {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces the file `name` of `folder` by way of `aside`: a reader sees the old one or the new one.
pub(super) fn replace(folder: &Path, name: &str, aside: &str, bytes: &[u8]) -> io::Result<()> {
    let aside = folder.join(aside);
    File::create(&aside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&aside, folder.join(name)))
}

impl Driver {
    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Publishes a policy and switches hints on, under the run's lock.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the lock cannot be taken.
    pub fn publish(&self, table: &Table, name: &str) -> Result<State, Error> {
        let locked = |operation| {
            flock(&self.lock, operation)
                .map_err(|e| io_error("cannot take the run's lock", &self.folder, e.into()))
        };
        locked(FlockOperation::LockExclusive)?;
        let dry_run = self.page.state().is_dry_run();
        self.page.publish(table, name, dry_run);
        let state = self.page.state();
        locked(FlockOperation::Unlock)?;
        Ok(state)
    }

    /// Replaces the figures: a reader sees the old ones or the new ones.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write_figures(&self, json: &[u8]) -> Result<(), Error> {
        replace(&self.folder, FIGURES, ".figures", json)
            .map_err(|e| io_error("cannot write the daemon's figures", &self.folder, e))
    }
}
