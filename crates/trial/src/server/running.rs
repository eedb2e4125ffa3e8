//! A server that runs already, under a run of the user's.
//!
//! Invariant: nothing of it is changed for good: the load has a database of its own, which is
//! dropped; no setting is touched; the run is switched back to what it was, even by a panic.

use std::path::Path;

use shelflife_control::{Registry, Run};
use shelflife_layout::Table;
use shelflife_postgres::{Cancel, DataFolder, Dsn, Programs, Session};
use shelflife_run::{Carries, To};

use crate::error::{Error, Result};

/// A standby that has yet to replay so much is behind, in bytes.
const MOST_LAG: u64 = 256 << 20;

pub(crate) struct Running {
    // Field order is drop order: the database goes, then the switch is put back.
    database: OwnDatabase,
    restore: Restore,
    data: DataFolder,
    programs: Programs,
}

/// The trial's database; dropped with this value if it was made.
struct OwnDatabase {
    dsn: Dsn,
    name: String,
    made: bool,
}

/// What the run was before, and is again when this is dropped.
struct Restore {
    run: Run,
    table: Table,
    name: String,
    on: bool,
    done: bool,
}

impl Running {
    /// Looks whether a trial may load the server at `dsn`, in a database `name` that does not
    /// exist yet (or, `again`, that an earlier part of this trial left).
    pub(crate) fn open(
        dsn: &Dsn,
        name: &str,
        again: bool,
        registry: &Registry,
        programs: Programs,
        cancel: &Cancel,
    ) -> Result<Running> {
        let mut session = Session::connect(dsn, cancel)?;
        fit(&mut session)?;
        let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name.len() < 64
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !plain {
            return Err(Error::Spec(format!(
                "--own-database {name:?}: a new name of up to 63 of a-z, 0-9 and _, not first a digit"
            )));
        }
        let sql = "SELECT count(*) FROM pg_database WHERE datname = $1";
        let found: i64 = session.one(sql, &[&name])?;
        if found > 0 && !again {
            return Err(Error::Unfit(format!(
                "it has a database {name} already; --own-database names a new one, which the trial \
                 makes and drops"
            )));
        }
        let path = session.data_folder()?;
        let data = DataFolder::open(&path)?;
        let run = find_run(registry, &data)?;
        let restore = Restore::of(run)?;
        let major = session.version().major;
        if programs.version().major < major {
            return Err(Error::Unfit(format!(
                "it is version {major}, pgbench in {} is {}: name newer programs with --pg-bindir",
                programs.bindir().display(),
                programs.version()
            )));
        }
        let database =
            OwnDatabase { dsn: dsn.clone(), name: name.to_owned(), made: again && found > 0 };
        Ok(Running { database, restore, data, programs })
    }

    pub(crate) fn run(&self) -> &Run {
        &self.restore.run
    }

    pub(crate) fn data(&self) -> &DataFolder {
        &self.data
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }

    pub(crate) fn database(&self) -> &str {
        &self.database.name
    }

    pub(crate) fn dsn(&self) -> Dsn {
        self.database.dsn.with_database(&self.database.name)
    }

    /// A session with the database that the user named.
    pub(crate) fn maintenance(&self, cancel: &Cancel) -> Result<Session> {
        Ok(Session::connect(&self.database.dsn, cancel)?)
    }

    pub(crate) fn make_database(&mut self, cancel: &Cancel) -> Result<()> {
        let mut session = self.maintenance(cancel)?;
        if self.database.made {
            session.batch(&self.database.drop_statement())?;
        }
        session.batch(&format!("CREATE DATABASE {}", self.database.name))?;
        self.database.made = true;
        Ok(())
    }

    /// That it is still fit for the next round.
    pub(crate) fn check(&self, cancel: &Cancel) -> Result<()> {
        fit(&mut self.maintenance(cancel)?)
    }

    pub(crate) fn close(mut self, _cancel: &Cancel) -> Result<()> {
        // Cleaning up goes on though the user wants to stop.
        let dropped = self.database.remove();
        let restored = self.restore.put_back();
        dropped.and(restored)
    }
}

fn fit(session: &mut Session) -> Result<()> {
    if session.is_in_recovery()? {
        return Err(Error::Unfit("it is a standby".to_owned()));
    }
    if !session.is_superuser()? {
        return Err(Error::Unfit(
            "a trial needs a superuser (it makes a database and checkpoints): name one in --dsn"
                .to_owned(),
        ));
    }
    let replicas = session.replicas()?;
    match replicas.lag_bytes {
        Some(lag) if lag > MOST_LAG => Err(Error::Unfit(format!(
            "a standby has yet to replay {}: wait until it has caught up",
            shelflife_report::bytes(lag)
        ))),
        _ => Ok(()),
    }
}

/// The run whose hook the server of `data` carries.
fn find_run(registry: &Registry, data: &DataFolder) -> Result<Run> {
    let not = |cause: String| Error::NotUnderHook { folder: data.path().to_owned(), cause };
    let mut cause = format!("no run in {} has it", registry.dir().display());
    for run in registry.runs()?.into_iter().flatten() {
        let Ok(status) = shelflife_run::status(&run) else { continue };
        let server = status.servers.into_iter().find(|server| server.folder == data.path());
        match server.and_then(|server| server.postmaster).map(|process| process.carries) {
            Some(Carries::Yes) if status.dry_run => {
                return Err(not(format!("run {} only counts (--dry-run)", run.name())));
            }
            Some(Carries::Yes) => return Ok(run),
            Some(Carries::No(why) | Carries::Unknown(why)) => cause = why,
            None => {}
        }
    }
    Err(not(cause))
}

impl Restore {
    fn of(run: Run) -> Result<Restore> {
        let (table, name, on) = {
            let (page, _) = run.look()?;
            let state = page.state();
            let table = Table::default();
            table.copy_from(page.table(state));
            let mut buffer = [0; 64];
            let name = page.policy_name(state, &mut buffer).unwrap_or_default();
            (table, String::from_utf8_lossy(name).into_owned(), state.is_on())
        };
        Ok(Restore { run, table, name, on, done: false })
    }

    fn put_back(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(());
        }
        if self.on {
            shelflife_run::switch(&self.run, To::Policy(&self.table, &self.name), |_, _| true)?;
            return Ok(());
        }
        // Its policy stays on the page, for a later `switch on`.
        self.run.control()?.publish(&self.table, &self.name, false);
        shelflife_run::switch(&self.run, To::Off, |_, _| true)?;
        Ok(())
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

impl OwnDatabase {
    fn drop_statement(&self) -> String {
        format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)
    }

    fn remove(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.made, false) {
            return Ok(());
        }
        let mut session = Session::connect(&self.dsn, &Cancel::never())?;
        Ok(session.batch(&self.drop_statement())?)
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Whether `dir` may hold the probe of a foreign server: on the same file system as its data.
pub(crate) fn same_file_system(dir: &Path, data: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| path.metadata().map(|m| m.dev()).ok();
    device(dir).is_some() && device(dir) == device(data)
}
