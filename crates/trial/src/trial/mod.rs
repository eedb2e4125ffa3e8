//! The trial itself: from an empty folder to results, or from torn results to whole ones.
//!
//! Invariant: whatever happens, what stays is the results (if there is a round in them) and, if it
//! is wanted, the stopped cluster; no process, no run, no database of ours on a foreign server.

mod course;
mod dir;

use std::path::{Path, PathBuf};
use std::time::Duration;

use shelflife_control::Registry;
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Dsn, Programs};
use shelflife_report::bytes;
use shelflife_run::Hook;

use crate::epoch;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::filesystem::Wanted;
use crate::machine::{Machine, free_space};
use crate::observer::{Observer, Phase, Progress};
use crate::outcome::{self, Outcome};
use crate::probe::Probe;
use crate::record::{self, FORMAT, Header, Record, Results, ServerFacts, VERSION, What, Writer};
use crate::recording::Recording;
use crate::server::{Own, Running, Server, own};
use crate::spec::Spec;
use crate::stats::Plan;

pub(crate) use course::Trial;
pub(crate) use dir::Dir;

/// Scripts of the load, in the trial's folder.
pub(crate) const SCRIPTS: &str = "scripts";

/// On which server.
#[derive(Clone, Debug)]
pub enum Place {
    /// A cluster of the trial's own, made for it in its folder.
    Own {
        /// The hook to preload.
        hook: Hook,
        /// Who runs the server, if this process is root; else `postgres` or `nobody`.
        user: Option<String>,
    },
    /// A server that runs under the hook already.
    Running {
        /// Its address, of a superuser.
        dsn: Box<Dsn>,
        /// A database that the trial makes and drops.
        database: String,
        /// Where its run is registered.
        registry: Registry,
    },
}

/// Where and how a trial runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trial's folder: new or empty, or for [`resume`] that of the earlier part.
    pub dir: PathBuf,
    /// The server.
    pub place: Place,
    /// Where PostgreSQL's programs are, if not at a usual place.
    pub bindir: Option<PathBuf>,
    /// Whether the own cluster stays, stopped.
    pub keep: bool,
    /// Whether the rounds' block writes are recorded.
    pub record: Option<Recording>,
    /// Ends the trial early.
    pub cancel: Cancel,
}

/// Runs a trial.
///
/// # Errors
///
/// [`Error`]. Results with at least one round stay and can be resumed.
pub fn run(spec: &Spec, options: &Options, observer: &mut dyn Observer) -> Result<Outcome> {
    spec.check()?;
    if spec.device().is_some() {
        return epoch::run(spec, options, observer);
    }
    if matches!(options.place, Place::Running { .. }) && !spec.settings.is_empty() {
        return Err(Error::Spec(
            "--set changes settings of the trial's own cluster; those of a running server stay as \
             they are"
                .to_owned(),
        ));
    }
    if spec.filesystem.is_some() {
        Wanted::check_permitted()?;
    }
    let programs = Programs::find(&Search::new(options.bindir.clone()))?;
    let dir = Dir::make(&options.dir)?;
    let cancel = &options.cancel;
    let (machine, estimate) = look(spec, &dir, options, &mut *observer)?;
    let mut server = match &options.place {
        Place::Running { .. } => Some(open_running(options, programs.clone(), false)?),
        Place::Own { .. } => None,
    };
    let target = server.as_ref().map_or(&*dir.path, |server| server.data().path()).to_owned();
    let machine = Machine::read(Path::new("/proc"), &target).unwrap_or(machine);
    let free = free_space(&target)?;
    let room = estimate.room_bytes;
    match &spec.filesystem {
        Some(wanted) if wanted.size < room => {
            return Err(Error::Spec(format!(
                "--size {}: the cluster needs {} of room; take a larger one, or a smaller --scale",
                bytes(wanted.size),
                bytes(room)
            )));
        }
        None if free < room => {
            return Err(Error::LowSpace { path: target, free, needed: room });
        }
        _ => {}
    }
    if !observer.confirm(&estimate, &machine.storage, free) {
        cancel.check()?;
        return Err(Error::Declined { bytes: estimate.total_bytes() });
    }
    let server = match server.take() {
        Some(server) => server,
        None => Server::Own(Own::create(&build(options, &dir.path, programs)?, spec)?.into()),
    };
    let machine = Machine::read(Path::new("/proc"), server.data().path()).unwrap_or(machine);
    let mut trial = Trial::new(spec, options, &dir, server, observer)?;
    trial.server.check_hook()?;
    let remarks = trial.prepare_recording(None)?;
    let facts = trial.server.facts(cancel)?;
    let mut header = header(spec, machine, facts, estimate);
    header.recorded = trial.traces.is_some();
    trial.observer.begins(&header);
    let mut writer = Writer::create(&dir.results(), header)?;
    for text in remarks {
        trial.warn(&mut writer, text)?;
    }
    let done = trial.begin(&mut writer, 0);
    trial.finish(writer, done)?;
    dir.keep();
    outcome::read(&options.dir)
}

/// A look at the machine, and what the trial will write to it.
pub(crate) fn look(
    spec: &Spec,
    dir: &Dir,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<(Machine, Estimate)> {
    observer.progress(&Progress {
        phase: Phase::Starting,
        share: None,
        round: None,
        rounds: spec.rounds(),
        left: None,
    });
    let machine = Machine::read(Path::new("/proc"), &dir.path)?;
    let look = Duration::from_millis(300);
    let sync = Probe::measure(&dir.path, look, &options.cancel)?;
    let estimate = Estimate::of(spec, Duration::from_micros(sync.p50_us), machine.cores);
    Ok((machine, estimate))
}

/// Goes on with the trial in `options.dir`; what it does stands in its results.
///
/// # Errors
///
/// [`Error::Complete`], [`Error::Changed`], those of [`Results::read`] and [`run`].
pub fn resume(options: &Options, observer: &mut dyn Observer) -> Result<Outcome> {
    let dir = Dir::existing(&options.dir)?;
    let (mut writer, results) = Writer::resume(&dir.results())?;
    let spec = &results.header.spec;
    if spec.device().is_some() {
        return epoch::resume(&dir, writer, &results, options, observer);
    }
    let state = State::of(&results);
    if state.next_block >= spec.blocks {
        return Err(Error::Complete { path: dir.results() });
    }
    let programs = Programs::find(&Search::new(options.bindir.clone()))?;
    let was = &results.header.server;
    let own = matches!(options.place, Place::Own { .. });
    if own != was.own {
        let which = |own| if own { "its own cluster" } else { "a running server" };
        return Err(Error::Changed { was: which(was.own).into(), now: which(own).into() });
    }
    let recorded = results.header.recorded;
    let wanted = options.record.as_ref().is_some_and(|record| recorded || !record.optional);
    if recorded != wanted {
        let which = |recorded| if recorded { "recorded rounds" } else { "rounds not recorded" };
        return Err(Error::Changed { was: which(recorded).into(), now: which(wanted).into() });
    }
    let cancel = &options.cancel;
    let (server, rebuilt) = match &options.place {
        Place::Running { .. } => (open_running(options, programs, true)?, true),
        Place::Own { .. } => {
            same_version(was, programs.version().major)?;
            reopen(options, &dir.path, programs, spec, state.aged)?
        }
    };
    let mut trial = Trial::new(spec, options, &dir, server, observer)?;
    trial.server.check_hook()?;
    let remarks = trial.prepare_recording(Some(recorded))?;
    let now = trial.server.facts(cancel)?;
    same_version(was, now.major)?;
    trial.observer.begins(&results.header);
    if now.version != was.version || now.settings != was.settings {
        trial.warn(&mut writer, changed(was, &now))?;
    }
    for text in remarks {
        trial.warn(&mut writer, text)?;
    }
    let machine = Machine::read(Path::new("/proc"), trial.server.data().path())?;
    if machine != results.header.machine {
        trial.warn(&mut writer, "the machine, its kernel or storage is not what it was".into())?;
    }
    let (block, dropped) = (state.next_block, state.broken);
    writer.event(What::Resumed { block, dropped, rebuilt })?;
    let done = match rebuilt {
        true => trial.begin(&mut writer, block),
        false => trial.go_on(&mut writer, block, state.filled),
    };
    trial.finish(writer, done)?;
    dir.keep();
    outcome::read(&options.dir)
}

/// Where a trial stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The first block that lacks a round.
    pub(crate) next_block: usize,
    /// Rounds of that block that are there.
    pub(crate) broken: usize,
    /// Whether the database was loaded and aged.
    pub(crate) aged: bool,
    /// Whether the cold data were added.
    pub(crate) filled: bool,
}

impl State {
    pub(crate) fn of(results: &Results) -> State {
        let arms = results.header.spec.arms.len();
        let rounds = outcome::rounds_of(results).kept;
        let of = |block: usize| rounds.values().filter(|round| round.block == block).count();
        let next_block = (0..results.header.spec.blocks)
            .find(|block| of(*block) < arms)
            .unwrap_or(results.header.spec.blocks);
        let happened = |is: fn(&What) -> bool| {
            let events = results.records.iter();
            events.clone().any(|record| matches!(record, Record::Event(event) if is(&event.what)))
        };
        let aged = happened(|what| matches!(what, What::Aged { .. }));
        let filled = happened(|what| matches!(what, What::Filled { .. }));
        State { next_block, broken: of(next_block), aged, filled }
    }
}

pub(crate) fn same_version(was: &ServerFacts, major: u16) -> Result<()> {
    if was.major == major {
        return Ok(());
    }
    let named = |major: u16| format!("PostgreSQL {major}");
    Err(Error::Changed { was: named(was.major), now: named(major) })
}

fn changed(was: &ServerFacts, now: &ServerFacts) -> String {
    if was.version != now.version {
        return format!("the server was {}, now it is {}", was.version, now.version);
    }
    let other = now.settings.iter().filter(|setting| !was.settings.contains(setting));
    let names: Vec<&str> = other.map(|setting| setting.name.as_str()).collect();
    format!("settings have changed since the trial began: {}", names.join(", "))
}

pub(crate) fn header(
    spec: &Spec,
    machine: Machine,
    server: ServerFacts,
    estimate: Estimate,
) -> Header {
    Header {
        format: FORMAT.to_owned(),
        version: if spec.device().is_some() { VERSION } else { 1 },
        shelflife: env!("CARGO_PKG_VERSION").to_owned(),
        started: record::now(),
        spec: spec.clone(),
        // `spec.check` has made this plan once.
        orders: Plan::new(spec.arms.len(), spec.blocks, spec.seed)
            .map(|plan| plan.orders().to_vec())
            .unwrap_or_default(),
        machine,
        server,
        estimate,
        recorded: false,
        device: None,
    }
}

fn open_running(options: &Options, programs: Programs, again: bool) -> Result<Server> {
    let Place::Running { dsn, database, registry } = &options.place else {
        return Err(Error::Spec("no running server was named".to_owned()));
    };
    let running = Running::open(dsn, database, again, registry, programs, &options.cancel)?;
    Ok(Server::Running(running.into()))
}

pub(crate) fn build<'a>(
    options: &'a Options,
    dir: &'a Path,
    programs: Programs,
) -> Result<own::Build<'a>> {
    let Place::Own { hook, user } = &options.place else {
        return Err(Error::Spec("this trial has no cluster of its own".to_owned()));
    };
    Ok(own::Build {
        dir,
        programs,
        user: user.as_deref(),
        hook,
        keep: options.keep,
        cancel: &options.cancel,
    })
}

/// The cluster that was left, or a new one; and whether it is new.
fn reopen(
    options: &Options,
    dir: &Path,
    programs: Programs,
    spec: &Spec,
    aged: bool,
) -> Result<(Server, bool)> {
    let build = build(options, dir, programs)?;
    if aged && (own::data(dir).exists() || spec.filesystem.is_some()) {
        match Own::open(&build, spec) {
            Ok(own) => return Ok((Server::Own(own.into()), false)),
            Err(error) if error.is_interrupted() => return Err(error),
            // Whatever is wrong with it: it was thrown away once, and is made anew.
            Err(_) => {}
        }
    }
    own::remove_leftover(dir, &options.cancel)?;
    Ok((Server::Own(Own::create(&build, spec)?.into()), true))
}
