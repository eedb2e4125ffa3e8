//! The server of a trial: its own cluster, or one that runs already.
//!
//! Invariant: when a [`Server`] is dropped, at whatever point, what the trial brought is gone: its
//! cluster (unless kept), its run in the registry, its database on a foreign server; and a foreign
//! server's run is switched back to what it was.

pub(crate) mod own;
mod running;
pub(crate) mod settings;

use std::path::{Path, PathBuf};

use shelflife_control::Run;
use shelflife_layout::Table;
use shelflife_postgres::pgbench::{self, Initialise, Length, Load, LoadProgress, Script};
use shelflife_postgres::{Cancel, DataFolder, Dsn, Programs, Session};
use shelflife_run::{Carries, To};
use shelflife_sweep::{OpenFile, Territory};

use crate::arm::Arm;
use crate::error::{Error, Result};
use crate::filesystem::Mounted;
use crate::record::{Hints, Opened, ServerFacts, SettingAt};
use crate::spec::Spec;

pub(crate) use own::Own;
pub(crate) use running::{Running, same_file_system};

/// Name of the database in the trial's own cluster.
pub(crate) const DATABASE: &str = "bench";

/// A look that finds a hint not (yet) right is repeated so often: between a server's `open` and
/// the hook's `fcntl` there is a moment.
const LOOKS: u32 = 5;

/// How many wrong hints a message lists.
const LISTED: usize = 5;

pub(crate) enum Server {
    Own(Box<Own>),
    Running(Box<Running>),
}

impl Server {
    pub(crate) fn run(&self) -> &Run {
        match self {
            Server::Own(own) => own.run(),
            Server::Running(running) => running.run(),
        }
    }

    pub(crate) fn data(&self) -> &DataFolder {
        match self {
            Server::Own(own) => own.cluster().data(),
            Server::Running(running) => running.data(),
        }
    }

    pub(crate) fn programs(&self) -> &Programs {
        match self {
            Server::Own(own) => own.cluster().programs(),
            Server::Running(running) => running.programs(),
        }
    }

    pub(crate) fn dsn(&self) -> Dsn {
        match self {
            Server::Own(own) => own.cluster().dsn(DATABASE),
            Server::Running(running) => running.dsn(),
        }
    }

    /// A session with the database of the load.
    pub(crate) fn session(&mut self, cancel: &Cancel) -> Result<Session> {
        match self {
            Server::Own(own) => Ok(own.cluster_mut().connect(DATABASE)?),
            Server::Running(running) => Ok(Session::connect(&running.dsn(), cancel)?),
        }
    }

    /// `error`, or what the server's log says is behind it.
    pub(crate) fn explain(&mut self, error: Error) -> Error {
        match (self, error) {
            (Server::Own(own), Error::Postgres(error)) => {
                let error = match own.cluster_mut().check_alive() {
                    Err(died @ shelflife_postgres::Error::ServerDied { .. }) => died,
                    _ => error,
                };
                own.cluster().explain(error).into()
            }
            (_, error) => error,
        }
    }

    /// Makes the database anew and fills it; `setup` is the scenario's preparation. Without
    /// `autovacuum` pgbench's own tables are left alone, so that none falls into one arm and not another.
    pub(crate) fn load(
        &mut self,
        spec: &Spec,
        setup: Option<Script>,
        autovacuum: bool,
        cancel: &Cancel,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        match self {
            Server::Own(own) => own.make_database(cancel)?,
            Server::Running(running) => running.make_database(cancel)?,
        }
        let initialise = Initialise { scale: spec.scale, args: Vec::new() };
        pgbench::initialise(self.programs(), &self.dsn(), &initialise, cancel, progress)?;
        if !autovacuum {
            self.session(cancel)?.batch(AUTOVACUUM_OFF)?;
        }
        if let Some(script) = setup {
            // By pgbench rather than in a session of our own: the same dialect as the load's scripts
            // (`:scale`), each statement by itself. A scenario's tables keep their autovacuum.
            let mut load = Load::new(1, Length::Transactions(1));
            load.scripts = vec![script];
            load.args = vec![format!("--define=scale={}", spec.scale).into()];
            pgbench::run(self.programs(), &self.dsn(), &load, cancel, &mut |_| {})?;
        }
        Ok(())
    }

    /// What is recorded of it.
    pub(crate) fn facts(&mut self, cancel: &Cancel) -> Result<ServerFacts> {
        let own = matches!(self, Server::Own(_));
        let mut session = match self {
            Server::Own(own) => own.cluster_mut().connect("postgres")?,
            Server::Running(running) => running.maintenance(cancel)?,
        };
        let settings = session.settings(settings::SHOWN)?;
        let database = match self {
            Server::Own(_) => DATABASE.to_owned(),
            Server::Running(running) => running.database().to_owned(),
        };
        Ok(ServerFacts {
            own,
            version: session.version().to_string(),
            major: session.version().major,
            database,
            data_folder: self.data().path().to_owned(),
            settings: settings
                .into_iter()
                .map(|s| SettingAt { name: s.name, value: s.value, source: s.source })
                .collect(),
        })
    }

    /// That the postmaster carries the hook with this trial's run.
    pub(crate) fn check_hook(&self) -> Result<()> {
        let folder = self.data().path();
        let status = shelflife_run::status(self.run())?;
        let postmaster = status
            .servers
            .into_iter()
            .find(|server| server.folder == folder)
            .and_then(|server| server.postmaster);
        let cause = match postmaster.map(|process| process.carries) {
            Some(Carries::Yes) => return Ok(()),
            Some(Carries::No(cause) | Carries::Unknown(cause)) => cause,
            None => "its server process is not to be found".to_owned(),
        };
        Err(Error::NotUnderHook { folder: folder.to_owned(), cause })
    }

    /// The file system that was made for the trial, if one was.
    pub(crate) fn mounted(&self) -> Option<&Mounted> {
        match self {
            Server::Own(own) => own.mounted(),
            Server::Running(_) => None,
        }
    }

    /// Every folder in which the server writes, each once a file system.
    pub(crate) fn places(&self) -> Result<Vec<PathBuf>> {
        let data = self.data();
        let spaces = data.tablespaces()?.into_iter().map(|space| space.path);
        let all = [data.path().to_owned(), data.wal_folder()?].into_iter().chain(spaces);
        let mut devices = Vec::new();
        let mut places = Vec::new();
        for place in all {
            let stat = rustix::fs::stat(&place)
                .map_err(|errno| Error::io("cannot look at", &place)(errno.into()))?;
            if !devices.contains(&stat.st_dev) {
                devices.push(stat.st_dev);
                places.push(place);
            }
        }
        Ok(places)
    }

    /// Writes everything to the storage that the page cache holds of the server's file systems.
    pub(crate) fn sync(&self) -> Result<()> {
        for place in self.places()? {
            let failed = || Error::io("cannot synchronise", &place);
            let folder = std::fs::File::open(&place).map_err(failed())?;
            rustix::fs::syncfs(&folder).map_err(|errno| failed()(errno.into()))?;
        }
        Ok(())
    }

    /// Switches to an arm and sweeps; every file follows when this returns.
    pub(crate) fn switch(&self, arm: &Arm, table: &Table, cancel: &Cancel) -> Result<Hints> {
        let begun = std::time::Instant::now();
        let to = if arm.policy.is_some() { To::Policy(table, &arm.name) } else { To::Off };
        let switched = shelflife_run::switch(self.run(), to, |_, _| !cancel.is_raised())?;
        cancel.check()?;
        let folder = self.data().path();
        let Some(swept) = switched.swept.iter().find(|swept| swept.folder == folder) else {
            let cause = "its data folder was not swept".to_owned();
            return Err(Error::NotUnderHook { folder: folder.to_owned(), cause });
        };
        if switched.superseded || !switched.settled() {
            let why = "somebody else switches its run meanwhile, or works against the sweep";
            return Err(Error::Unfit(why.to_owned()));
        }
        let refused = &swept.tally.refused;
        if !refused.is_empty() {
            let named = refused.iter().map(|(errno, count)| {
                format!("{} ×{count}", std::io::Error::from_raw_os_error(*errno))
            });
            let errors = named.collect::<Vec<_>>().join(", ");
            return Err(Error::HintsRefused { folder: folder.to_owned(), errors });
        }
        Ok(Hints {
            set: swept.tally.set,
            cleared: swept.tally.cleared,
            sweep_ms: begun.elapsed().as_millis() as u64,
            ..Hints::default()
        })
    }

    /// Files opened for writing so far, by class and lifetime.
    pub(crate) fn opened(&self) -> Result<Vec<Opened>> {
        let status = shelflife_run::status(self.run())?;
        let opens = status.opens.into_iter();
        Ok(opens
            .map(|counted| Opened {
                class: counted.class.to_owned(),
                lifetime: counted.lifetime.map(str::to_owned),
                opens: counted.opens,
            })
            .collect())
    }

    /// Ends what the trial brought, and says what went wrong.
    pub(crate) fn close(self, cancel: &Cancel) -> Result<()> {
        match self {
            Server::Own(own) => own.close(),
            Server::Running(running) => running.close(cancel),
        }
    }

    /// Whether the folder of the own cluster stays.
    pub(crate) fn keep(&mut self, keep: bool) {
        if let Server::Own(own) = self {
            own.keep(keep);
        }
    }
}

/// Reads, through the server's own descriptors, the hint of every file that it holds open for
/// writing. Gives their number, or what is wrong.
pub(crate) fn check_hints(data: &Path, table: &Table) -> Result<u64, String> {
    let territory = Territory::data_folder(data).map_err(|error| error.to_string())?;
    let mut wrong = Vec::new();
    for look in 1..=LOOKS {
        let open = shelflife_sweep::open_for_writing(&territory, table);
        let count = open.len() as u64;
        wrong = open.into_iter().filter(|file| file.found != file.wanted).collect();
        if wrong.is_empty() {
            return Ok(count);
        }
        if look < LOOKS {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    Err(describe(&wrong))
}

fn describe(wrong: &[OpenFile]) -> String {
    let list = wrong.iter().take(LISTED).map(|file| {
        format!(
            "process {} holds {} with hint {}, the policy says {}",
            file.pid,
            shelflife_report::plain(&file.inside.to_string_lossy()),
            file.found,
            file.wanted
        )
    });
    let mut text =
        format!("the hints are not those of the policy: {}", list.collect::<Vec<_>>().join("; "));
    if wrong.len() > LISTED {
        text.push_str(&format!("; and {} more", wrong.len() - LISTED));
    }
    text
}

/// For all tables of the load's database.
const AUTOVACUUM_OFF: &str = "
DO $$ DECLARE t regclass; BEGIN
  FOR t IN SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  LOOP
    EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off, toast.autovacuum_enabled = off)', t);
  END LOOP;
END $$";
