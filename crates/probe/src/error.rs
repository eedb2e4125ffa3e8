//! Why a path could not be walked.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path does not exist or may not be reached.
    #[error("cannot reach {}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Neither a file nor a folder nor a block device.
    #[error(
        "{} is neither file nor folder nor block device; of an NVMe drive name the namespace \
         (/dev/nvme0n1), not the controller",
        path.display()
    )]
    Special {
        /// The path.
        path: PathBuf,
    },
    /// `prove` writes files.
    #[error("{} is a device: prove writes files, so name a folder on a file system", path.display())]
    RawDevice {
        /// The path.
        path: PathBuf,
    },
    /// There is hardly room.
    #[error("{} is nearly full ({free} bytes free): nothing was written", path.display())]
    Full {
        /// The folder.
        path: PathBuf,
        /// Bytes free.
        free: u64,
    },
    /// No file can be made there.
    #[error("nothing was written, for no file can be made in {}", path.display())]
    NoFile {
        /// The folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Neither block layer nor commands nor counters can be looked at.
    #[error(
        "nothing was written beside {}, for nothing of it could be seen: {why}",
        path.display()
    )]
    NothingToSee {
        /// The folder.
        path: PathBuf,
        /// What each of them says.
        why: String,
    },
    /// The caller's own wish.
    #[error("interrupted; nothing is left")]
    Interrupted,
    /// The folder is no server's.
    #[error(transparent)]
    Server(#[from] shelflife_postgres::Error),
}

impl Error {
    pub(crate) fn path(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Path { path, source }
    }

    /// Whether permission is what is missing.
    pub fn is_denied(&self) -> bool {
        match self {
            Error::Path { source, .. } | Error::NoFile { source, .. } => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            Error::NothingToSee { .. } => true,
            Error::Server(shelflife_postgres::Error::Io { source, .. }) => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}
