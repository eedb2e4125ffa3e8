//! Two that give hints to the same files.
//!
//! Invariant: only runs that are alive are held against each other, and only where one of them is a
//! daemon: a server carries one hook.

use std::path::PathBuf;

use serde::Serialize;
use shelflife_control::{Kind, Liveness, Registry, Run};

use crate::Error;
use crate::switch::data_folders_of;

/// Two runs that do not agree on a data folder.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Conflict {
    /// The data folder.
    pub folder: PathBuf,
    /// The two runs, by name.
    pub runs: [String; 2],
    /// What they do not agree on.
    pub what: String,
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [one, other] = &self.runs;
        write!(f, "{}: runs {one} and {other}: {}", self.folder.display(), self.what)
    }
}

/// What a run does to files.
struct Side {
    run: Run,
    folders: Vec<PathBuf>,
    /// Policy and checksum of its table, if it is on.
    does: Option<(String, u64)>,
}

/// All conflicts among the runs of `registry`.
///
/// # Errors
///
/// [`Error::Control`] if the runs cannot be listed.
pub fn conflicts(registry: &Registry) -> Result<Vec<Conflict>, Error> {
    let alive = |run: &Run| matches!(run.liveness(), Liveness::Attached(_) | Liveness::Launcher);
    let runs = registry.runs()?.into_iter().flatten().filter(alive);
    let sides: Vec<Side> = runs.filter_map(side).collect();
    let mut found = Vec::new();
    for (at, one) in sides.iter().enumerate() {
        for other in sides.iter().skip(at + 1) {
            let Some(what) = disagreement(one, other) else { continue };
            let names = [one.run.name().to_owned(), other.run.name().to_owned()];
            let shared = one.folders.iter().filter(|folder| other.folders.contains(folder));
            found.extend(shared.map(|folder| Conflict {
                folder: folder.clone(),
                runs: names.clone(),
                what: what.clone(),
            }));
        }
    }
    Ok(found)
}

fn side(run: Run) -> Option<Side> {
    let page = run.page().ok()?;
    let state = page.state();
    let mut name = [0; 64];
    let policy = page.policy_name(state, &mut name).unwrap_or(b"?");
    let policy = String::from_utf8_lossy(policy).into_owned();
    let acts = state.is_on() && !state.is_dry_run();
    let does = acts.then(|| (policy, page.table(state).checksum()));
    Some(Side { folders: data_folders_of(&run, &page), does, run })
}

fn disagreement(one: &Side, other: &Side) -> Option<String> {
    match (one.run.kind(), other.run.kind()) {
        (Kind::Hook, Kind::Hook) => return None,
        (Kind::Watch, Kind::Watch) => return Some("two daemons watch it; stop one".to_owned()),
        _ => {}
    }
    let says = |side: &Side| match &side.does {
        Some((policy, _)) => format!("{} is on with {policy}", side.run.name()),
        None => format!("{} is off", side.run.name()),
    };
    let same = match (&one.does, &other.does) {
        (Some((_, one)), Some((_, other))) => one == other,
        (one, other) => one.is_some() == other.is_some(),
    };
    (!same).then(|| {
        format!(
            "the hook and the daemon undo each other's hints: {}, {}; switch both alike, or end one",
            says(one),
            says(other)
        )
    })
}
