//! Programs under the hook: starting them, looking at them, switching them.
//!
//! Invariant: nothing here touches a byte of a server's files or sends it a signal. A run is
//! started by becoming the command (`exec`), so that its signals and its exit status are its own.

#![warn(missing_docs)]

mod command;
mod conflicts;
mod hook;
mod inspect;
mod launch;
mod policies;
mod recording;
mod switch;
mod watching;

pub use command::data_folders;
pub use conflicts::{Conflict, conflicts};
pub use hook::{Hook, hidden_from_others};
pub use inspect::{Carries, Counted, Process, RunStatus, ServerStatus, hook_share, status};
pub use launch::{Launch, Prepared, collect, environment};
pub use policies::{PolicyError, load_policy, policy_text};
pub use recording::{RecordedClass, RecordedFolder, Recording, publish, recording};
pub use switch::{Swept, Switched, To, data_folders_of, sweep_run, switch};
pub use watching::{Cataloged, Hinted, Refused, WatchedFolder, Watching, watching};

use std::path::PathBuf;

/// Why a program could not be started, looked at or switched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The hook is not where it should be.
    #[error(
        "the hook libshelflife_preload.so was not found ({tried}); `make hook` builds it, and \
         $SHELFLIFE_HOOK names it elsewhere"
    )]
    NoHook {
        /// The places looked at.
        tried: String,
    },
    /// The dynamic loader splits LD_PRELOAD at these.
    #[error(
        "{}: LD_PRELOAD cannot hold a path with a space or colon; copy the hook elsewhere and set \
         $SHELFLIFE_HOOK",
        .0.display()
    )]
    HookPath(PathBuf),
    /// The command could not be started.
    #[error("cannot run {command}")]
    Exec {
        /// The program.
        command: String,
        /// The error.
        source: std::io::Error,
    },
    /// The registry of runs, or a control page.
    #[error(transparent)]
    Control(#[from] shelflife_control::Error),
    /// What a daemon or a recorder wrote is not readable as such.
    #[error("run {run}: its {of}'s figures are none; was it another version?")]
    Figures {
        /// The run.
        run: String,
        /// Whose they are.
        of: &'static str,
        /// What is wrong with them.
        source: serde_json::Error,
    },
    /// A folder could not be swept.
    #[error(transparent)]
    Sweep(#[from] shelflife_sweep::Error),
}
