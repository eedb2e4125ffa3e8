//! Switching a run: the page first, then what is there already.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use shelflife_control::{Kind, Liveness, Page, Run};
use shelflife_layout::{Layout, Table};
use shelflife_sweep::{Tally, Territory, Wish, sweep};

use crate::Error;
use crate::inspect::attached_processes;
use crate::watching::watching;

/// What to switch to.
#[derive(Clone, Copy, Debug)]
pub enum To<'a> {
    /// No hints; those on files are cleared.
    Off,
    /// The policy that the page holds.
    On,
    /// Another policy, and its name.
    Policy(&'a Table, &'a str),
}

/// A sweep over one data folder.
#[derive(Clone, Debug, Serialize)]
pub struct Swept {
    /// The data folder.
    pub folder: PathBuf,
    /// What was done there.
    pub tally: Tally,
}

/// A switch that was made.
#[derive(Clone, Debug, Serialize)]
pub struct Switched {
    /// The page's generation now.
    pub generation: u64,
    /// Whether hints are given now.
    pub on: bool,
    /// Whether they are counted only, and files left as they are.
    pub dry_run: bool,
    /// The folders that were swept.
    pub swept: Vec<Swept>,
    /// Whether the run was switched again before this sweep had ended; then it was given up, and
    /// the later switch sweeps.
    pub superseded: bool,
    /// Whether the sweep is left to a daemon that reads catalogs: it alone knows what relations get.
    pub left_to_daemon: bool,
}

/// Switches `run` and sweeps its data folders. `progress` is asked now and then, and ends the
/// sweep early with `false`; the switch itself is made then all the same.
///
/// Under `layout = "paths"` there is no folder to sweep: only files opened from now on follow.
///
/// # Errors
///
/// [`Error::Control`], [`Error::Sweep`].
pub fn switch(
    run: &Run,
    to: To<'_>,
    progress: impl FnMut(&Path, &Tally) -> bool,
) -> Result<Switched, Error> {
    let state = {
        let control = run.control()?;
        let dry_run = control.page().state().is_dry_run();
        match to {
            To::Off => control.switch(false),
            To::On => control.switch(true),
            To::Policy(table, name) => control.publish(table, name, dry_run),
        }
    };
    let left_to_daemon = state.is_on() && !state.is_dry_run() && has_daemon_with_catalogs(run);
    let swept = if left_to_daemon { Vec::new() } else { sweep_run(run, progress)? };
    let superseded = run.page()?.state() != state;
    Ok(Switched {
        generation: state.generation(),
        on: state.is_on(),
        dry_run: state.is_on() && state.is_dry_run(),
        swept,
        superseded,
        left_to_daemon,
    })
}

/// Its figures outlive a daemon that was killed.
fn has_daemon_with_catalogs(run: &Run) -> bool {
    watching(run).ok().flatten().is_some_and(|daemon| daemon.reads_catalogs())
        && matches!(run.liveness(), Liveness::Attached(_))
}

/// Sweeps the data folders of `run` to what its page says now, one sweep of a run at a time. It ends
/// early, unsettled, when the run is switched meanwhile: who switched it waits to sweep.
///
/// # Errors
///
/// [`Error::Control`], [`Error::Sweep`].
pub fn sweep_run(
    run: &Run,
    mut progress: impl FnMut(&Path, &Tally) -> bool,
) -> Result<Vec<Swept>, Error> {
    let _turn = run.sweep_turn()?;
    let page = run.page()?;
    let state = page.state();
    // A table of our own: the page may be switched again while this goes on.
    let table = Table::default();
    table.copy_from(page.table(state));
    if state.is_on() && (state.is_dry_run() || table.layout() != Some(Layout::Postgres)) {
        return Ok(Vec::new());
    }
    let wish = if state.is_on() { Wish::Policy(&table) } else { Wish::Clear };
    let mut swept = Vec::new();
    for folder in data_folders_of(run, &page) {
        let territory = Territory::data_folder(&folder)?;
        let tally = sweep(&territory, wish, |t| page.state() == state && progress(&folder, t))?;
        swept.push(Swept { folder, tally });
    }
    Ok(swept)
}

/// The data folders of a run: those that were known beforehand and exist, and those in which its
/// servers work: processes of that name, as the hook has it, since a server's children may work
/// anywhere.
pub fn data_folders_of(run: &Run, page: &Page) -> Vec<PathBuf> {
    let mut folders = BTreeSet::new();
    for root in page.roots() {
        use std::os::unix::ffi::OsStrExt;
        let mut buffer = [0; shelflife_control::MAX_PATH];
        let path = std::ffi::OsStr::from_bytes(root.read(&mut buffer));
        folders.insert(PathBuf::from(path));
    }
    if run.kind() == Kind::Watch {
        // a page has room for four; what a daemon watches is what its record says
        folders.extend(run.summary().roots.iter().cloned());
        return folders.into_iter().filter(|f| f.join("PG_VERSION").is_file()).collect();
    }
    let owners: Vec<u32> = folders.iter().filter_map(|folder| owner(folder)).collect();
    for pid in attached_processes(run).into_iter().filter(|pid| is_server(*pid)) {
        let Ok(folder) = std::fs::read_link(format!("/proc/{pid}/cwd")) else { continue };
        let process = owner(Path::new(&format!("/proc/{pid}")));
        // Anyone may attach the page of root's run, and so ask root to sweep a folder.
        if process.is_some_and(|uid| owners.is_empty() || owners.contains(&uid))
            && owner(&folder) == process
        {
            folders.insert(folder);
        }
    }
    folders.into_iter().filter(|f| f.join("PG_VERSION").is_file()).collect()
}

fn is_server(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    matches!(name.trim_end(), "postgres" | "postmaster")
}

fn owner(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|at| at.uid())
}

impl Switched {
    /// Whether every sweep found nothing left to change.
    pub fn settled(&self) -> bool {
        self.swept.iter().all(|s| s.tally.settled)
    }
}
