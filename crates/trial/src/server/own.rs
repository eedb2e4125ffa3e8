//! The trial's own cluster, under the hook from its first start.
//!
//! Invariant: everything lies in the trial's folder: the cluster, the state of its run, and, where
//! the server's user could not read it otherwise, a copy of the hook.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use shelflife_control::{NewRun, Registry, Run};
use shelflife_postgres::{Cancel, Cluster, ClusterOptions, DataFolder, Programs};
use shelflife_run::{Hook, environment, hidden_from_others};

use super::DATABASE;
use crate::error::{Error, Result};
use crate::filesystem::{self, Mounted};
use crate::spec::Spec;

use super::settings;

/// The cluster's folder in the trial's.
pub(crate) const CLUSTER: &str = "cluster";
const STATE: &str = "state";
const HOOK: &str = "hook";

pub(crate) struct Own {
    // Field order is drop order: the server ends before its run goes, then its file system.
    cluster: Cluster,
    run: RunGuard,
    mounted: Option<Mounted>,
}

/// A run that goes with this value, and its state folder if that is empty then.
struct RunGuard {
    run: Run,
    folders: Vec<PathBuf>,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let _ = self.run.remove();
        for folder in &self.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// What a cluster is made from.
pub(crate) struct Build<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) programs: Programs,
    pub(crate) user: Option<&'a str>,
    pub(crate) hook: &'a Hook,
    pub(crate) keep: bool,
    pub(crate) cancel: &'a Cancel,
}

impl Own {
    /// Makes a new cluster and starts it. That of epochs comes to their device later.
    pub(crate) fn create(build: &Build<'_>, spec: &Spec) -> Result<Own> {
        let wanted = spec.filesystem.as_ref().filter(|wanted| wanted.device.is_none());
        let mounted = wanted.map(|wanted| Mounted::make(wanted, build.dir));
        Own::start(build, spec, mounted.transpose()?, Cluster::create)
    }

    /// Starts the cluster that was copied to `mounted`.
    pub(crate) fn copied(build: &Build<'_>, spec: &Spec, mounted: Mounted) -> Result<Own> {
        Own::start(build, spec, Some(mounted), Cluster::open)
    }

    /// Goes on with the cluster that an earlier trial left in the same folder.
    pub(crate) fn open(build: &Build<'_>, spec: &Spec) -> Result<Own> {
        end_leftover(build.dir, build.cancel)?;
        let mounted = spec.filesystem.as_ref().map(|wanted| Mounted::again(wanted, build.dir));
        Own::start(build, spec, mounted.transpose()?, Cluster::open)
    }

    fn start(
        build: &Build<'_>,
        spec: &Spec,
        mounted: Option<Mounted>,
        make: fn(ClusterOptions) -> shelflife_postgres::Result<Cluster>,
    ) -> Result<Own> {
        let folder = filesystem::home(build.dir).join(CLUSTER);
        let mut options = ClusterOptions::new(build.programs.clone(), &folder);
        options.user = build.user.map(str::to_owned);
        options.settings = settings::pinned(spec, build.programs.version().major);
        options.keep = build.keep;
        options.cancel = build.cancel.clone();
        let mut cluster = make(options)?;
        let hook = readable_hook(build.dir, build.hook, cluster.user().uid())?;
        let registry = Registry::at(build.dir.join(STATE))?;
        shelflife_run::collect(&registry)?;
        let run = registry.register(&NewRun {
            name: None,
            command: &[build.programs.postgres().into()],
            hook: hook.path(),
            roots: &[cluster.data().path().to_owned()],
            owner: Some(cluster.data().uid()),
            policy: None,
            dry_run: false,
        })?;
        let run = RunGuard { run, folders: vec![build.dir.join(STATE), build.dir.join(HOOK)] };
        cluster.set_server_env(environment(&hook, &run.run, None).into());
        let mut own = Own { cluster, run, mounted };
        own.cluster.start()?;
        Ok(own)
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run.run
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// The file system that was made for it.
    pub(crate) fn mounted(&self) -> Option<&Mounted> {
        self.mounted.as_ref()
    }

    /// Whether cluster and file system stay, the one stopped, the other unmounted.
    pub(crate) fn keep(&mut self, keep: bool) {
        self.cluster.keep(keep);
        if let Some(mounted) = &mut self.mounted {
            mounted.keep(keep);
        }
    }

    pub(crate) fn make_database(&mut self, cancel: &Cancel) -> Result<()> {
        cancel.check()?;
        let mut session = self.cluster.connect("postgres")?;
        session.batch(&format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
        session.batch(&format!("CREATE DATABASE {DATABASE}"))?;
        Ok(())
    }

    pub(crate) fn close(self) -> Result<()> {
        let Own { cluster, run, mounted } = self;
        let closed = cluster.close();
        drop(run);
        drop(mounted);
        Ok(closed?)
    }
}

/// The hook, or a copy of it in the trial's folder if the server's user cannot read it.
fn readable_hook(dir: &Path, hook: &Hook, user: u32) -> Result<Hook> {
    if user == rustix::process::geteuid().as_raw() || hidden_from_others(hook.path()).is_none() {
        return Ok(hook.clone());
    }
    let folder = dir.join(HOOK);
    let to = folder.join(hook.path().file_name().unwrap_or_default());
    let failed = || Error::io("cannot copy the hook to", &to);
    fs::create_dir_all(&folder).map_err(failed())?;
    fs::copy(hook.path(), &to).map_err(failed())?;
    for (path, mode) in [(&folder, 0o755), (&to, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed())?;
    }
    Ok(Hook::at(&to)?)
}

/// The data folder of the cluster in a trial's folder.
pub(crate) fn data(dir: &Path) -> PathBuf {
    filesystem::home(dir).join(CLUSTER).join("data")
}

/// Ends the server of a trial that was killed: its processes outlive it.
pub(crate) fn end_leftover(dir: &Path, cancel: &Cancel) -> Result<()> {
    const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);
    let Ok(data) = DataFolder::open(&data(dir)) else { return Ok(()) };
    let begun = std::time::Instant::now();
    let mut asked = false;
    loop {
        let left = data.all_processes()?;
        if left.is_empty() {
            return Ok(());
        }
        if let Some(postmaster) = data.postmaster()?.filter(|_| !asked)
            && let Some(pid) = rustix::process::Pid::from_raw(postmaster.pid)
        {
            // As `pg_ctl stop -m fast`.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
            asked = true;
        }
        if begun.elapsed() > LIMIT {
            let pids = left.iter().map(|process| process.pid).collect();
            let path = data.path().to_owned();
            return Err(shelflife_postgres::Error::Orphans { path, pids }.into());
        }
        cancel.sleep(std::time::Duration::from_millis(50))?;
    }
}

/// Removes what a trial that was killed left beside its results.
pub(crate) fn remove_leftover(dir: &Path, cancel: &Cancel) -> Result<()> {
    end_leftover(dir, cancel)?;
    filesystem::remove(dir)?;
    let registry = Registry::at(dir.join(STATE))?;
    shelflife_run::collect(&registry)?;
    for name in [CLUSTER, STATE, HOOK, crate::trial::SCRIPTS] {
        let path = dir.join(name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("cannot remove", path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
