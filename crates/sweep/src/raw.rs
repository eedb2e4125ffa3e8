//! The raw call on files that a person names: `shelflife hint`.
//!
//! Invariant: an error belongs to its path and ends nothing else; below a folder only regular
//! files are touched and no link is followed.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use shelflife_lifetime::Lifetime;

/// What to do with each file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// Read the hint.
    Get,
    /// Set it.
    Set(Lifetime),
}

/// Why a file has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// Not there, not readable.
    #[error("cannot open it")]
    Open(#[source] io::Error),
    /// A folder, and its files were not asked for.
    #[error("it is a folder; -r takes the files below it")]
    Folder,
    /// The call failed.
    #[error(transparent)]
    Hint(#[from] shelflife_lifetime::Error),
}

impl RawError {
    /// Whether more rights, or another kernel, would help.
    pub fn is_refusal(&self) -> bool {
        match self {
            RawError::Open(error) => error.kind() == io::ErrorKind::PermissionDenied,
            RawError::Folder => false,
            RawError::Hint(_) => true,
        }
    }
}

/// One file and its hint afterwards.
#[derive(Debug)]
pub struct Answer {
    /// The file.
    pub path: PathBuf,
    /// The hint that it carries now.
    pub hint: Result<Lifetime, RawError>,
}

/// Does `action` to `path`; with `recursive`, to all regular files below it if it is a folder.
pub fn raw(action: Action, path: &Path, recursive: bool, mut answer: impl FnMut(Answer)) {
    let is_folder = path.metadata().is_ok_and(|m| m.is_dir());
    if !is_folder {
        return answer(Answer { path: path.to_owned(), hint: one(action, path, OFlags::empty()) });
    }
    if !recursive {
        return answer(Answer { path: path.to_owned(), hint: Err(RawError::Folder) });
    }
    for entry in walkdir::WalkDir::new(path).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_file() => {
                // it may have become a link since the folder was read
                let hint = one(action, entry.path(), OFlags::NOFOLLOW);
                answer(Answer { path: entry.into_path(), hint });
            }
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(path).to_owned();
                let error = error.into_io_error().unwrap_or_else(|| io::Error::other("a loop"));
                answer(Answer { path, hint: Err(RawError::Open(error)) });
            }
        }
    }
}

fn one(action: Action, path: &Path, more: OFlags) -> Result<Lifetime, RawError> {
    // A pipe or a terminal must not make it wait, or become its own.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(RawError::Open)?;
    if let Action::Set(lifetime) = action {
        shelflife_lifetime::set(&file, lifetime)?;
    }
    Ok(shelflife_lifetime::get(&file)?)
}
