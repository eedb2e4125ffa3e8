//! Why a trial cannot be planned, run, resumed or read.

use std::path::PathBuf;

use shelflife_report::bytes as amount;
use shelflife_run::PolicyError;

use crate::stats::StatsError;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// PostgreSQL, its programs or its files.
    #[error(transparent)]
    Postgres(#[from] shelflife_postgres::Error),
    /// The hook.
    #[error(transparent)]
    Run(#[from] shelflife_run::Error),
    /// The registry of runs.
    #[error(transparent)]
    Control(#[from] shelflife_control::Error),
    /// A sweep.
    #[error(transparent)]
    Sweep(#[from] shelflife_sweep::Error),
    /// The recorder.
    #[error("the rounds cannot be recorded")]
    Record(#[from] shelflife_record::Error),
    /// Names of relations for the recorder.
    #[error("the rounds cannot be recorded")]
    Names(#[from] shelflife_record::pg::PgError),
    /// A round's trace.
    #[error("a round's trace cannot be read")]
    Trace(#[from] shelflife_trace::Error),
    /// The simulation of the rounds.
    #[error("the rounds cannot be simulated")]
    Simulate(#[from] shelflife_simulate::Error),
    /// A plan, or rounds that are none.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// An arm's policy.
    #[error("arm {arm}")]
    Policy {
        /// The arm as it was named.
        arm: String,
        /// What is wrong with it.
        source: Box<PolicyError>,
    },
    /// A policy that has nothing to say about a server.
    #[error("arm {arm}: a trial needs a policy with layout = \"postgres\", this one has \"paths\"")]
    Layout {
        /// The arm.
        arm: String,
    },
    /// Something that was asked for does not make a trial.
    #[error("{0}")]
    Spec(String),
    /// A file system for the trial cannot be made.
    #[error("{what}{}{told}", if told.is_empty() { "" } else { ": " })]
    Filesystem {
        /// What was tried.
        what: String,
        /// What the command said; empty if none was run.
        told: String,
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
    /// The trial's folder holds something.
    #[error(
        "{}: not empty; a trial needs a new or an empty folder{}", path.display(),
        if *resumable { " (it holds an earlier trial: --resume goes on with it)" } else { "" }
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// Whether there are results in it.
        resumable: bool,
    },
    /// Another process writes the results.
    #[error("{}: another trial is writing these results; wait for it", path.display())]
    InUse {
        /// The results.
        path: PathBuf,
    },
    /// The file holds no results, or a line of it makes no sense.
    #[error("{}:{line}: {why}", path.display())]
    NotResults {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Results of another version of the format.
    #[error(
        "{}: results of format version {found}, this shelflife knows up to {}; use the one that wrote it",
        path.display(), crate::record::VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// All rounds are measured already.
    #[error("{}: this trial is complete, there is nothing to resume", path.display())]
    Complete {
        /// The results.
        path: PathBuf,
    },
    /// What resumes is not what began.
    #[error(
        "this trial was begun with {was}, now there is {now}: rounds of both cannot be compared"
    )]
    Changed {
        /// At its beginning.
        was: String,
        /// Now.
        now: String,
    },
    /// Not enough room.
    #[error(
        "{} has {} free and {} are needed: choose another --dir, a smaller --scale or fewer --seconds",
        path.display(), amount(*free), amount(*needed)
    )]
    LowSpace {
        /// The folder.
        path: PathBuf,
        /// What is free there, in bytes.
        free: u64,
        /// What is needed, in bytes.
        needed: u64,
    },
    /// The user was asked and did not want it.
    #[error("not begun: {} would be written (--yes goes on without asking)", amount(*bytes))]
    Declined {
        /// The estimate, in bytes.
        bytes: u64,
    },
    /// A server without the hook.
    #[error(
        "{}: no hints can be switched on this server: {cause}; start it under `shelflife run`",
        folder.display()
    )]
    NotUnderHook {
        /// Its data folder.
        folder: PathBuf,
        /// Why not.
        cause: String,
    },
    /// A server that a trial must not load.
    #[error("this server is not for a trial: {0}")]
    Unfit(String),
    /// The kernel or the file system refuses hints.
    #[error(
        "{}: hints cannot be set on this file system ({errors}); nothing would be compared",
        folder.display()
    )]
    HintsRefused {
        /// The data folder.
        folder: PathBuf,
        /// What the kernel said and how often.
        errors: String,
    },
    /// A device that holds something, or is in use, or is none.
    #[error("{}: {why}", path.display())]
    NotFree {
        /// The device.
        path: PathBuf,
        /// What it holds, and what to do.
        why: String,
    },
    /// A device on which no epoch can be measured.
    #[error("{}: nothing can be measured on this drive: {why}", path.display())]
    NoMeasure {
        /// The device.
        path: PathBuf,
        /// What is missing, and what to do.
        why: String,
    },
    /// Whether hints reach the drive could not be asked.
    #[error(transparent)]
    Probe(#[from] shelflife_probe::Error),
    /// Too many rounds in a row failed.
    #[error("{count} rounds in a row failed, the last one so: {last}")]
    RoundsFail {
        /// How many.
        count: usize,
        /// The last failure.
        last: String,
    },
}

impl Error {
    /// Whether the caller's own wish to stop was the cause.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Error::Postgres(error) if error.is_interrupted())
    }

    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { what, path, source }
    }
}
