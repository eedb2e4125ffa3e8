//! What can go wrong before the daemon watches. Afterwards it counts and goes on.

use std::io;
use std::path::PathBuf;

/// Why a folder cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not there, not readable.
    #[error("{}: {what}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// It is something else.
    #[error("{}: not a folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A policy for PostgreSQL needs a data folder.
    #[error(
        "{}: not a PostgreSQL data folder (it has no PG_VERSION); name the data folder, or use a \
         policy with layout = \"paths\"",
        path.display()
    )]
    NotADataFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Two daemons would undo each other's hints.
    #[error(
        "{}: another daemon watches it already ({}); `shelflife status` shows it, and \
         `shelflife switch POLICY` gives it another policy",
        path.display(),
        by.map_or("unknown process".to_owned(), |pid| format!("process {pid}"))
    )]
    Watched {
        /// The folder.
        path: PathBuf,
        /// The process that holds the folder's lock.
        by: Option<u32>,
    },
    /// One daemon has one user's rights.
    #[error(
        "{} belongs to user {}, {} to user {}; start one daemon for each owner",
        first.0.display(), first.1, second.0.display(), second.1
    )]
    TwoOwners {
        /// A folder and its owner.
        first: (PathBuf, u32),
        /// A folder of another owner.
        second: (PathBuf, u32),
    },
    /// The kernel takes hints from the owner only.
    #[error(
        "{}: it belongs to user {owner} and this process to user {me}; start the daemon as that \
         user, or as root",
        path.display()
    )]
    NotOwner {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        me: u32,
    },
    /// Neither kind of notification is to be had.
    #[error(
        "this kernel or sandbox gives no notification of opened files (fanotify: Linux 5.13, or \
         CAP_SYS_ADMIN); start the server under `shelflife run` instead"
    )]
    NoNotification(#[source] io::Error),
    /// Marks on file systems were asked for.
    #[error("{}: its file system cannot be watched as a whole (CAP_SYS_ADMIN)", path.display())]
    NoFileSystemMark {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Root's rights could not be given up.
    #[error("cannot become user {uid}")]
    Privileges {
        /// The user.
        uid: u32,
        /// Why.
        source: io::Error,
    },
    /// The configuration is none.
    #[error("{}: {}", path.display(), error.to_string().trim_end())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        error: Box<toml::de::Error>,
    },
    /// The socket for Prometheus could not be had.
    #[error("{at}: cannot serve metrics there")]
    Metrics {
        /// Path or address.
        at: String,
        /// Why not.
        source: io::Error,
    },
    /// No folder was named.
    #[error(
        "no folder to watch; name a data folder, or put `folders = […]` into the configuration"
    )]
    NoFolders,
    /// Nothing but PostgreSQL has catalogs.
    #[error("policy {policy} is for layout paths, where there are no relations; leave them out")]
    NoRelations {
        /// Name of the policy.
        policy: String,
    },
    /// The owner of the folders cannot ask a server.
    #[error("relations cannot be looked up")]
    Relations(#[source] shelflife_postgres::Error),
    /// Threads, pipes, signals.
    #[error("cannot {what}")]
    System {
        /// What was being done.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A policy could not be had.
    #[error(transparent)]
    Policy(#[from] shelflife_run::PolicyError),
    /// The registry of runs.
    #[error(transparent)]
    Control(#[from] shelflife_control::Error),
    /// Other runs could not be looked at.
    #[error(transparent)]
    Run(#[from] shelflife_run::Error),
}

impl Error {
    /// Whether more rights, or another kernel, would help.
    pub fn is_refusal(&self) -> bool {
        match self {
            Error::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Error::NotOwner { .. }
            | Error::NoNotification(_)
            | Error::NoFileSystemMark { .. }
            | Error::Privileges { .. } => true,
            Error::Control(error) => error.is_denied(),
            _ => false,
        }
    }
}
