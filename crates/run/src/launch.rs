//! Becoming a command under the hook.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use shelflife_control::{Kind, Liveness, NewRun, RUN_VARIABLE, Registry, Run};
use shelflife_layout::Table;

use crate::inspect::has_started_a_server;
use crate::{Error, Hook, data_folders, hidden_from_others};

/// What is to be started.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Program and arguments; not empty.
    pub command: &'a [OsString],
    /// The run's name; `None` takes the lowest free number.
    pub name: Option<&'a str>,
    /// The policy and its name.
    pub policy: (&'a Table, &'a str),
    /// Count only.
    pub dry_run: bool,
}

/// A run that is registered and about to start.
#[derive(Debug)]
pub struct Prepared {
    /// The run.
    pub run: Run,
    /// A folder or file that hides the hook from other users, where there is one: a server that
    /// runs as another user will not be hinted.
    pub hidden: Option<PathBuf>,
    command: Command,
}

/// The variables that put a program under the hook: `LD_PRELOAD` (before what `preload` holds
/// already) and the run's folder.
pub fn environment(hook: &Hook, run: &Run, preload: Option<&OsStr>) -> [(OsString, OsString); 2] {
    let mut value = hook.path().as_os_str().to_owned();
    if let Some(others) = preload.filter(|v| !v.is_empty()) {
        value.push(":");
        value.push(others);
    }
    [("LD_PRELOAD".into(), value), (RUN_VARIABLE.into(), run.dir().as_os_str().to_owned())]
}

/// Removes the runs of which nothing is left: no process has their page mapped, the process that
/// they became is gone, and no server that they started runs without the hook (`status` is to say
/// why it does). Their names are given back. Runs of other users are left alone.
///
/// # Errors
///
/// [`Error::Control`] if the runs cannot be listed.
pub fn collect(registry: &Registry) -> Result<Vec<String>, Error> {
    let mut collected = Vec::new();
    for run in registry.runs()?.into_iter().flatten() {
        let over = match run.liveness() {
            Liveness::Attached(_) | Liveness::Launcher => false,
            Liveness::Dead => run.kind() == Kind::Watch || !has_started_a_server(&run),
            Liveness::PageGone => true,
        };
        if over && run.remove().is_ok() {
            collected.push(run.name().to_owned());
        }
    }
    Ok(collected)
}

impl Launch<'_> {
    /// Registers the run and makes the command ready.
    ///
    /// # Errors
    ///
    /// [`Error::Control`].
    pub fn prepare(&self, registry: &Registry, hook: &Hook) -> Result<Prepared, Error> {
        let roots = data_folders(self.command, std::env::var_os("PGDATA").as_deref());
        // As root the server will be another user's: the data folder says whose.
        let owner = if rustix::process::geteuid().is_root() {
            roots.first().and_then(|r| r.metadata().ok()).map(|m| m.uid()).filter(|uid| *uid != 0)
        } else {
            Some(rustix::process::geteuid().as_raw())
        };
        let run = registry.register(&NewRun {
            name: self.name,
            command: self.command,
            hook: hook.path(),
            roots: &roots,
            owner,
            policy: Some(self.policy),
            dry_run: self.dry_run,
        })?;
        let mut command = Command::new(self.command.first().map_or(OsStr::new(""), |c| c));
        command.args(self.command.iter().skip(1));
        command.envs(environment(hook, &run, std::env::var_os("LD_PRELOAD").as_deref()));
        let hidden = rustix::process::geteuid()
            .is_root()
            .then(|| hidden_from_others(hook.path()).or_else(|| hidden_from_others(run.dir())))
            .flatten();
        Ok(Prepared { run, hidden, command })
    }
}

impl Prepared {
    /// Becomes the command. Returns only if that failed; the run is unregistered then.
    pub fn exec(mut self) -> Error {
        let source = self.command.exec();
        let command = self.command.get_program().to_string_lossy().into_owned();
        match self.run.remove() {
            Ok(()) => Error::Exec { command, source },
            Err(error) => error.into(),
        }
    }
}
