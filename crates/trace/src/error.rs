//! Everything that can go wrong with a trace, an import or an export.
//!
//! Invariant: every variant names the file (and the line, row or column where there is one) and
//! says what was expected; nothing in this crate panics on input.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;

/// Why a trace could not be read, written or imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was to be done: `read`, `write`, …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no trace here.
    #[error("{} is not a trace: {reason}", path.display())]
    NotATrace {
        /// The folder or file.
        path: PathBuf,
        /// What is missing or foreign.
        reason: String,
    },
    /// Written by a later program.
    #[error(
        "{} has version {found} of the trace format, and this program reads up to {known}: use the \
         shelflife that wrote it, or a newer one",
        path.display()
    )]
    TooNew {
        /// The file that says so.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version that is read.
        known: u32,
    },
    /// `meta.json` does not say what it must.
    #[error("{}: {reason}", path.display())]
    Meta {
        /// `meta.json` of the trace.
        path: PathBuf,
        /// What is wrong, with line and column where known.
        reason: String,
    },
    /// The Parquet library cannot read or write it.
    #[error("{} is damaged or no Parquet file", path.display())]
    Parquet {
        /// The Parquet file.
        path: PathBuf,
        /// What the library says.
        source: ParquetError,
    },
    /// A Parquet file, but not ours.
    #[error(
        "{} is no part of a trace: column `{column}` must be {expected}, found {found}",
        path.display()
    )]
    Schema {
        /// The Parquet file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// Its type in this version.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A value that no writer writes.
    #[error(
        "{}: row {row}, column `{column}`: {found} {reason}",
        path.display()
    )]
    Value {
        /// The Parquet file.
        path: PathBuf,
        /// The row, from 0.
        row: u64,
        /// The column.
        column: &'static str,
        /// The value.
        found: String,
        /// What it must be.
        reason: &'static str,
    },
    /// A size that would not fit into memory or is absurd.
    #[error("{}: {what} is {found}, at most {limit} is read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Which size.
        what: &'static str,
        /// What the file says.
        found: u64,
        /// The most that is read.
        limit: u64,
    },
    /// A segment is not there.
    #[error(
        "{} is missing: {reason}; copy the whole folder again",
        path.display()
    )]
    Gap {
        /// The segment.
        path: PathBuf,
        /// How one knows.
        reason: String,
    },
    /// The place for a new trace is taken.
    #[error("{} exists already: choose another name or remove it", path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// An event that has no place in a trace.
    #[error("event {number} of the trace: {reason}")]
    Event {
        /// Which event, from 0.
        number: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// More different names than numbers for them.
    #[error("more than {limit} different {what}: {advice}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many can be named.
        limit: usize,
        /// What to do.
        advice: &'static str,
    },
    /// A line or record of an imported file.
    #[error("{file}:{line}: {reason}; found `{found}`")]
    Line {
        /// The imported file.
        file: String,
        /// Line, or record of a binary format, from 1.
        line: u64,
        /// What is wrong, and what was expected.
        reason: String,
        /// The line, shortened.
        found: String,
    },
    /// No format fits, or several do.
    #[error("{file}: {reason}; say which it is with --format, one of {}", crate::Format::names())]
    Format {
        /// The imported file.
        file: String,
        /// Why the format cannot be told.
        reason: String,
    },
    /// The caller's `progress` answered `false`.
    #[error("stopped")]
    Stopped,
    /// Options that contradict each other or the input.
    #[error("{0}")]
    Options(String),
    /// An imported file or an exported one: the reader or writer the caller gave failed.
    #[error("cannot {action} {file}")]
    Stream {
        /// `read` or `write`.
        action: &'static str,
        /// As the caller calls it.
        file: String,
        /// What it says.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` of calls of the system.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }

    /// For `map_err` of calls of the Parquet library.
    pub(crate) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> Error {
        let path = path.to_owned();
        move |source| Error::Parquet { path, source }
    }

    /// For those that write: what fails there is the system, not the file.
    pub(crate) fn unwritten(path: &Path) -> impl FnOnce(ParquetError) -> Error {
        let path = path.to_owned();
        move |source| match source {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(source) => Error::Io { action: "write", path, source: *source },
                Err(cause) => Error::Parquet { path, source: ParquetError::External(cause) },
            },
            source => Error::Parquet { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_damaged_file() {
        let full = ParquetError::from(io::Error::from(io::ErrorKind::StorageFull));
        let told = Error::unwritten(Path::new("/t/events-0000.parquet"))(full);
        assert_eq!(told.to_string(), "cannot write /t/events-0000.parquet");
        let odd = ParquetError::General("odd".to_owned());
        assert!(matches!(Error::unwritten(Path::new("x"))(odd), Error::Parquet { .. }));
    }
}
