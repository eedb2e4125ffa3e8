//! Why there is no atlas.
//!
//! Invariant: every variant says what to do.

use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Ctrl-C. What was finished stays, and the same command goes on with the rest.
    #[error("interrupted; the same command goes on where it was")]
    Interrupted,
    /// A scenario cannot be recorded.
    #[error(transparent)]
    Trial(#[from] shelflife_trial::Error),
    /// A trace cannot be judged.
    #[error(transparent)]
    Learn(#[from] shelflife_learn::Error),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] shelflife_trace::Error),
    /// A policy that was just written or is shipped is none: a defect.
    #[error("a policy is not valid, please report this")]
    Policy(#[from] shelflife_policy::Error),
    /// Something that was asked for makes no sense.
    #[error("{0}")]
    Request(String),
    /// The folder's recording is not what is asked for now.
    #[error(
        "{} was recorded with {was}, now {now} is asked for: choose another folder, or remove this one",
        folder.display()
    )]
    Changed {
        /// The scenario's folder.
        folder: PathBuf,
        /// What is there.
        was: String,
        /// What is wanted.
        now: String,
    },
    /// Another process makes this atlas.
    #[error("{}: another shelflife is working on this atlas; wait for it", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A file of the folder is not one of an atlas.
    #[error("{}: {why}; remove it, and it will be made again", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file operation.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried: "cannot write".
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The thread that learns is gone: a defect.
    #[error("learning ended without an answer, please report this")]
    Gone,
}

impl Error {
    /// Whether the caller's own wish to stop was the cause.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Error::Interrupted => true,
            Error::Trial(error) => error.is_interrupted(),
            Error::Learn(shelflife_learn::Error::Trace(error)) | Error::Trace(error) => {
                matches!(error, shelflife_trace::Error::Stopped)
            }
            _ => false,
        }
    }

    /// Whether the next scenario would fail alike.
    pub(crate) fn is_everywhere(&self) -> bool {
        use shelflife_postgres::Error as Server;
        match self {
            Error::Trial(
                shelflife_trial::Error::Filesystem { .. }
                | shelflife_trial::Error::Postgres(
                    Server::ProgramsNotFound { .. }
                    | Server::ProgramMissing { .. }
                    | Server::NotRoot { .. }
                    | Server::RootUser
                    | Server::UnknownUser { .. }
                    | Server::UnsupportedVersion { .. },
                ),
            ) => true,
            Error::Trial(shelflife_trial::Error::Record(error)) => error.is_denied(),
            _ => false,
        }
    }

    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { what, path, source }
    }
}
