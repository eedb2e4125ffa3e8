//! The recorder in the rounds of a trial: one trace each, in all of them or in none.
//!
//! Invariant: a trace holds exactly what was issued from the load's beginning until everything was
//! on the storage, under one policy, which its `meta.json` names.

use std::fs;
use std::path::{Path, PathBuf};

use shelflife_layout::Class;
use shelflife_record::pg::{Pg, PgReport, Servers};
use shelflife_record::{Options, Recorder, Target, Watch};
use shelflife_sweep::Territory;
use shelflife_trace::{FileClass, FileEntry, Trace, volumes};

use crate::arm::Arm;
use crate::error::{Error, Result};
use crate::record::Recorded;
use crate::server::Server;
use crate::stats::Slot;

/// That the rounds are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The traces' folder: new or empty, or for [`crate::resume`] that of the earlier part.
    pub dir: PathBuf,
    /// Whether the trial goes on without, and says so, where this machine cannot record.
    pub optional: bool,
}

/// Where and what is recorded in each round.
pub(crate) struct Traces {
    dir: PathBuf,
    target: Target,
}

/// A round's recording under way.
pub(crate) struct Running {
    recorder: Recorder,
    names: std::sync::mpsc::Receiver<PgReport>,
    trace: PathBuf,
    territory: Territory,
}

impl Traces {
    /// Makes sure that recording works here, before anything is loaded.
    pub(crate) fn prepare(dir: &Path, server: &Server, again: bool) -> Result<Traces> {
        let target = can_record(server)?;
        fs::create_dir_all(dir).map_err(Error::io("cannot make", dir))?;
        let dir = dir.canonicalize().map_err(Error::io("cannot follow", dir))?;
        let mut entries = fs::read_dir(&dir).map_err(Error::io("cannot list", &dir))?;
        if !again && entries.next().is_some() {
            return Err(Error::Spec(format!(
                "{}: not empty; the traces need a new or an empty folder",
                dir.display()
            )));
        }
        Ok(Traces { dir, target })
    }

    /// What should be known of these traces beforehand.
    pub(crate) fn warning(&self) -> Option<String> {
        let own = Target::of_path(&self.dir).ok()?;
        let both = own.leaves.iter().find(|leaf| self.target.leaves.contains(leaf))?;
        Some(format!(
            "the traces are written to {}, which is recorded, in every round: their data are left \
             out, but they share the drive with the server",
            both.name
        ))
    }

    /// Starts to record a round.
    pub(crate) fn start(&self, server: &Server, slot: Slot, arm: &Arm) -> Result<Running> {
        let trace = free_name(&self.dir, slot, &arm.label);
        Running::start(server, self.target.clone(), trace, arm.policy.as_ref().map(|_| &*arm.name))
    }
}

impl Running {
    /// Starts to record `target` into `trace`, under this policy.
    pub(crate) fn start(
        server: &Server,
        target: Target,
        trace: PathBuf,
        policy: Option<&str>,
    ) -> Result<Running> {
        let data = server.data().path().to_owned();
        let territory = Territory::data_folder(&data)?;
        let pg = Pg::start(Servers::Known { dsn: server.dsn().into(), data_folder: data.clone() })?;
        let (naming, names) = pg.into_naming();
        let mut options = Options::new(&trace, target);
        options.data_folders = vec![data];
        options.naming = Some(naming);
        options.policy = policy.map(str::to_owned);
        Ok(Running { recorder: Recorder::start(options)?, names, trace, territory })
    }

    /// Bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.recorder.progress().written_bytes
    }

    /// Ends it; what was issued before is in the trace.
    pub(crate) fn stop(self) -> Result<Recorded> {
        let summary = self.recorder.stop()?;
        let report = self.names.recv().unwrap_or_default();
        // Other servers may write to the same device.
        let class_of = |file: &FileEntry| match (file.class, &file.path) {
            (FileClass::File(_), Some(path))
                if self.territory.inside(path.as_bytes()).is_none() =>
            {
                Class::Outside.into()
            }
            (class, _) => class,
        };
        let blocks = volumes(&Trace::open(&self.trace)?, class_of)?;
        Ok(Recorded {
            trace: self.trace,
            events: summary.meta.counts.events,
            written_bytes: summary.meta.counts.written_bytes,
            discards: summary.meta.counts.discards,
            lost: summary.tally.lost,
            attributed: summary.attributed(),
            uncommitted_files: report.servers.iter().map(|server| server.uncommitted).sum(),
            blocks,
        })
    }
}

/// What is to be recorded of a server, after a look whether it can be.
pub(crate) fn can_record(server: &Server) -> Result<Target> {
    let target = target(server)?;
    Watch::start(&target)?.stop()?;
    Ok(target)
}

/// The devices of all folders in which the server writes.
fn target(server: &Server) -> Result<Target> {
    let mut all: Option<Target> = None;
    for place in server.places()? {
        let target = Target::of_path(&place)?;
        match &mut all {
            None => all = Some(target),
            Some(all) => {
                let more = target.leaves.into_iter().filter(|leaf| !all.leaves.contains(leaf));
                let more: Vec<_> = more.collect();
                all.leaves.extend(more);
            }
        }
    }
    all.ok_or_else(|| Error::Spec("the server has no folder".to_owned()))
}

/// `round-007-wal-first`; after a resumption the same round may have been recorded before.
fn free_name(dir: &Path, slot: Slot, label: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._#-".contains(c) { c } else { '_' };
    let label: String = label.chars().map(plain).collect();
    let name = format!("round-{:03}-{label}", slot.position + 1);
    let numbered = (2u32..).map(|number| dir.join(format!("{name}.{number}")));
    let mut names = std::iter::once(dir.join(&name)).chain(numbered);
    names.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| dir.join(&name))
}
