//! From options to a daemon that runs.
//!
//! Invariant: everything that needs root's rights happens in [`Daemon::start`], in one thread, and
//! ends with giving them up; whatever ends the daemon, also `kill -9`, leaves nothing that a server
//! could notice and nothing that the next start does not put right.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use shelflife_control::{NewRun, Registry, Run, State};
use shelflife_layout::Layout;
use shelflife_postgres::ServerUser;
use shelflife_run::{Conflict, WatchedFolder, Watching, load_policy};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Error;
use crate::fanotify::Group;
use crate::folder::Folder;
use crate::hub::{Hub, Job};
use crate::metrics::Listener;
use crate::relations::{Relations, Rules};
use crate::root::Root;
use crate::walk::work;
use crate::{privilege, reader, relations};

/// How opens are seen.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Marks on file systems if this process may (CAP_SYS_ADMIN) and has no mounts of its own, else
    /// marks on folders.
    #[default]
    Auto,
    /// Marks on every folder: no rights but the owner's.
    Folders,
    /// Marks on whole file systems, whose events carry a descriptor of the file.
    FileSystem,
}

impl Mode {
    /// The name that `status` has for it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::Folders => "folders",
            Mode::FileSystem => "filesystem",
        }
    }
}

/// Under which name the catalogs of servers are read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Role {
    /// That of the files' owner: of the user that the servers run as.
    Owner,
    /// This one.
    Named(String),
}

impl From<String> for Role {
    /// An empty name stands for the owner's.
    fn from(name: String) -> Role {
        if name.is_empty() { Role::Owner } else { Role::Named(name) }
    }
}

/// What is to be watched, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folders.
    pub folders: Vec<PathBuf>,
    /// A shipped policy or the path of a policy file.
    pub policy: String,
    /// The run's name; `None` takes the lowest free number.
    pub name: Option<String>,
    /// How opens are seen.
    pub mode: Mode,
    /// Where figures for Prometheus are to be had: the path of a Unix socket, or an address of this
    /// machine; `None` for nowhere.
    pub metrics: Option<String>,
    /// Whether the catalogs of the servers are read, so that a policy may tell relations apart; `None`
    /// goes by paths alone.
    pub relations: Option<Role>,
    /// Count only, hint nothing.
    pub dry_run: bool,
}

/// What a daemon says while it works.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// The first sweep has ended: files, hints, time.
    Swept(String),
    /// Something that a person should know of.
    Note(String),
    /// All folders that are there have been swept; said once.
    Ready,
    /// It is alive; said about once a second.
    Alive,
}

/// A daemon that has given up its rights and is about to work.
#[derive(Debug)]
pub struct Daemon {
    hub: Arc<Hub>,
    run: Run,
    jobs: Receiver<Job>,
    registry: Registry,
    listener: Option<Listener>,
    options: Options,
    mode: Mode,
    begun: Instant,
    relations_reader: Arc<OnceLock<Thread>>,
}

/// The niceness of the thread that answers events; only root may have it.
const URGENT: i32 = -10;

impl Daemon {
    /// Finds the folders, registers the run, sets up notification, and gives up all rights but those
    /// of the files' owner.
    ///
    /// Call it before any other thread is started.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn start(options: Options, registry: &Registry) -> Result<Daemon, Error> {
        let policy = load_policy(&options.policy)?;
        let postgres = policy.layout() == Layout::Postgres;
        if options.relations.is_some() && !postgres {
            return Err(Error::NoRelations { policy: policy.name().to_owned() });
        }
        let rules = Arc::new(Rules::of(&policy));
        let relations_reader = Arc::default();
        let catalogs =
            Catalogs { role: options.relations.as_ref(), rules: &rules, reader: &relations_reader };
        let watched = open_all(&options.folders, postgres, &catalogs)?;
        let Some(first) = watched.first() else { return Err(Error::NoFolders) };
        let (owner, group) = (first.owner(), first.group());
        let (files, mode) = mark_file_systems(options.mode, &watched)?;
        let names = Group::names().map_err(Error::NoNotification)?;
        let listener = options.metrics.as_deref().map(Listener::bind).transpose()?;
        shelflife_run::collect(registry)?;
        let command: Vec<OsString> = std::env::args_os().collect();
        let roots: Vec<PathBuf> = watched.iter().map(|f| f.base().to_owned()).collect();
        let run = registry.register_daemon(&NewRun {
            name: options.name.as_deref(),
            command: &command,
            hook: Path::new(""),
            roots: &roots,
            owner: Some(owner),
            policy: Some((&policy.compile(), policy.name())),
            dry_run: options.dry_run,
        })?;
        // A hint that comes after the write is lost, and an answer takes microseconds: where it may,
        // the daemon goes before what waits for a processor; the sweeping thread goes last.
        let _ = rustix::process::setpriority_process(None, URGENT);
        let prepared = run.drive().map_err(Error::from).and_then(|driver| {
            privilege::become_owner(owner, group)
                .map_err(|source| Error::Privileges { uid: owner, source })?;
            Ok(driver)
        });
        let driver = prepared.inspect_err(|_| {
            let _ = run.remove();
        })?;
        let (sender, jobs) = channel();
        let hub = Arc::new(Hub {
            driver,
            names,
            files,
            places: crate::folders::Folders::default(),
            watched,
            jobs: sender,
            stop: Arc::default(),
            rules: RwLock::new(rules),
            alive: AtomicU64::new(0),
            me: std::process::id().cast_signed(),
        });
        let registry = registry.clone();
        let begun = Instant::now();
        Ok(Daemon { hub, run, jobs, registry, listener, options, mode, begun, relations_reader })
    }

    /// How opens are seen: [`Mode::Folders`] or [`Mode::FileSystem`].
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The run under which `status` and `switch` know this daemon.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Watches until SIGTERM or SIGINT. SIGHUP reads the policy again.
    ///
    /// # Errors
    ///
    /// [`Error::System`].
    pub fn watch(self, say: &mut dyn FnMut(&Said)) -> Result<(), Error> {
        let system = |what| move |source| Error::System { what, source };
        let (signals, wake_on_signal) = UnixStream::pair().map_err(system("make a pipe"))?;
        let (woken, wake) = UnixStream::pair().map_err(system("make a pipe"))?;
        let hung_up = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(AtomicBool::new(false));
        for (signal, flag) in [(SIGHUP, &hung_up), (SIGTERM, &ended), (SIGINT, &ended)] {
            signal_hook::flag::register(signal, Arc::clone(flag))
                .map_err(system("take a signal"))?;
            let pipe = wake_on_signal.try_clone().map_err(system("make a pipe"))?;
            signal_hook::low_level::pipe::register(signal, pipe)
                .map_err(system("take a signal"))?;
        }
        signals.set_nonblocking(true).map_err(system("make a pipe"))?;
        let Daemon { hub, run, jobs, registry, listener, options, mode, begun, relations_reader } =
            self;
        if let Some(listener) = listener {
            listener.serve(&hub, mode, &registry).map_err(system("start a thread"))?;
        }
        let sweeper = start_sweeper(&hub, jobs).map_err(system("start a thread"))?;
        hub.watched.iter().for_each(|folder| hub.ask_to_sweep(folder));
        let reader = {
            let hub = Arc::clone(&hub);
            std::thread::Builder::new()
                .name("events".to_owned())
                .spawn(move || reader::read(&hub, &woken, begun))
                .map_err(system("start a thread"))?
        };
        let relations = match options.relations {
            Some(_) => {
                let hub = Arc::clone(&hub);
                let reading = std::thread::Builder::new()
                    .name("relations".to_owned())
                    .spawn(move || relations::read(&hub))
                    .map_err(system("start a thread"))?;
                let _ = relations_reader.set(reading.thread().clone());
                Some(reading)
            }
            None => {
                if hub.rules().need_catalogs() {
                    say(&Said::Note(WITHOUT_RELATIONS.to_owned()));
                }
                None
            }
        };
        let mut ticker = Ticker {
            hub: &hub,
            registry: &registry,
            mode,
            written: Vec::new(),
            conflicts: Vec::new(),
            ready: false,
            ticks: 0,
            state: hub.driver.page().state(),
            unread: Vec::new(),
        };
        while !ended.load(Relaxed) && !reader.is_finished() {
            if hung_up.swap(false, Relaxed) {
                say(&Said::Note(reread(&hub, &options.policy)));
            }
            ticker.tick(begun, say);
            wait(&signals);
        }
        hub.stop.store(true, Relaxed);
        drop(wake);
        // The sweeping thread waits for jobs; one that is stale ends it.
        if let Some(folder) = hub.watched.first() {
            hub.ask(Job::Renew(Arc::clone(folder)));
        }
        let result = reader.join().unwrap_or_else(|_| Err(std::io::Error::other("it panicked")));
        let _ = sweeper.join();
        if let Some(relations) = relations {
            relations.thread().unpark();
            let _ = relations.join();
        }
        // The record of root's run stays, empty of memory: the next verb collects it.
        let _ = run.remove();
        result.map_err(system("read events"))
    }
}

/// What a policy that needs catalogs goes without.
const WITHOUT_RELATIONS: &str = "the policy tells relations apart; without --relations an index, a TOAST table and an \
     unlogged table are a relation like any other, and rules for one relation are passed over";

/// How catalogs are read, if at all.
struct Catalogs<'a> {
    role: Option<&'a Role>,
    rules: &'a Arc<Rules>,
    reader: &'a Arc<OnceLock<Thread>>,
}

impl Catalogs<'_> {
    /// Has the files of `folder` told apart by catalogs, if that is wanted.
    fn give_to(&self, folder: Folder) -> Result<Folder, Error> {
        let role = match self.role {
            None => return Ok(folder),
            Some(Role::Named(role)) => role.clone(),
            Some(Role::Owner) => {
                let owner = ServerUser::of(folder.owner()).map_err(Error::Relations)?;
                owner.name().to_owned()
            }
        };
        let (rules, reader) = (Arc::clone(self.rules), Arc::clone(self.reader));
        Ok(folder.with_relations(Relations::new(role, rules, reader)))
    }
}

fn open_all(
    paths: &[PathBuf],
    postgres: bool,
    catalogs: &Catalogs<'_>,
) -> Result<Vec<Arc<Folder>>, Error> {
    let mut watched: Vec<Arc<Folder>> = Vec::new();
    for path in paths {
        // The same folder twice is one folder.
        let canonical = std::fs::canonicalize(path).ok();
        if watched.iter().any(|known| Some(known.base()) == canonical.as_deref()) {
            continue;
        }
        let folder = Folder::open(path, postgres)?;
        folder.renew_roots()?;
        if let Some(first) = watched.first().filter(|first| first.owner() != folder.owner()) {
            return Err(Error::TwoOwners {
                first: (first.base().to_owned(), first.owner()),
                second: (folder.base().to_owned(), folder.owner()),
            });
        }
        watched.push(Arc::new(catalogs.give_to(folder)?));
    }
    Ok(watched)
}

type FileSystems = Option<(Group, Vec<(u32, u32)>)>;

/// Marks the file systems of all roots, if that is wanted and allowed.
fn mark_file_systems(wanted: Mode, watched: &[Arc<Folder>]) -> Result<(FileSystems, Mode), Error> {
    if wanted == Mode::Folders || (wanted == Mode::Auto && !shares_mounts()) {
        return Ok((None, Mode::Folders));
    }
    let roots: Vec<Arc<Root>> = watched.iter().flat_map(|folder| folder.roots().to_vec()).collect();
    let first = || roots.first().map_or_else(PathBuf::new, |root| root.path().to_owned());
    let marked = Group::files().map_err(|source| (first(), source)).and_then(|group| {
        let mut devices = Vec::new();
        for root in &roots {
            group.mark_file_system(root.fd()).map_err(|source| (root.path().to_owned(), source))?;
            devices.push(root.facts().device);
        }
        Ok((group, devices))
    });
    match marked {
        Ok(files) => Ok((Some(files), Mode::FileSystem)),
        Err(_) if wanted == Mode::Auto => Ok((None, Mode::Folders)),
        Err((path, source)) => Err(Error::NoFileSystemMark { path, source }),
    }
}

/// Whether this process sees the mounts that all see. A service with a file system view of its own
/// does not: the descriptors of events would lie on other mounts than its roots, and none would count.
fn shares_mounts() -> bool {
    let own = std::fs::read_link("/proc/self/ns/mnt").ok();
    own.is_some() && own == std::fs::read_link("/proc/1/ns/mnt").ok()
}

fn start_sweeper(hub: &Arc<Hub>, jobs: Receiver<Job>) -> std::io::Result<JoinHandle<()>> {
    let hub = Arc::clone(hub);
    std::thread::Builder::new().name("sweep".to_owned()).spawn(move || {
        // The server goes first. Refused is no harm.
        let _ = rustix::process::setpriority_process(None, 10);
        for job in &jobs {
            if hub.ends() {
                return;
            }
            work(&hub, job);
        }
    })
}

/// Waits a second, or until a signal.
fn wait(signals: &UnixStream) {
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&second));
    let mut bytes = [0; 64];
    let mut signals = signals;
    let _ = signals.read(&mut bytes);
}

/// Reads the policy again; what came of it, in words.
fn reread(hub: &Hub, name: &str) -> String {
    let published = load_policy(name).map_err(Error::from).and_then(|policy| {
        hub.driver.publish(&policy.compile(), policy.name())?;
        *hub.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Rules::of(&policy));
        Ok(policy)
    });
    match published {
        Ok(policy) => {
            for folder in &hub.watched {
                match folder.relations() {
                    // The next tick sees the switch, and sweeps as after any other.
                    Some(relations) => relations.read_anew(),
                    None => hub.ask_to_sweep(folder),
                }
            }
            format!("policy {} was read again; sweeping", policy.name())
        }
        Err(error) => {
            let mut text = format!("the policy stays as it was: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                text += &format!(": {error}");
                cause = error.source();
            }
            text
        }
    }
}

/// What is done about once a second.
struct Ticker<'h> {
    hub: &'h Hub,
    registry: &'h Registry,
    mode: Mode,
    written: Vec<u8>,
    conflicts: Vec<Conflict>,
    ready: bool,
    ticks: u64,
    /// Of the page, at the last tick.
    state: State,
    /// What could not be read of catalogs, of each folder.
    unread: Vec<Option<String>>,
}

/// Roots are looked at again once in so many ticks.
const RENEW_EVERY: u64 = 10;
/// A reading thread that has not shown itself for so long hangs.
const HANGS: Duration = Duration::from_secs(20);

impl Ticker<'_> {
    fn tick(&mut self, begun: Instant, say: &mut dyn FnMut(&Said)) {
        self.ticks += 1;
        let figures = figures(self.hub, self.mode);
        if !self.ready && figures.folders.iter().all(|f| f.swept || !f.present) {
            self.ready = true;
            say(&Said::Ready);
            for f in &figures.folders {
                say(&Said::Swept(format!(
                    "{}: {} files in {} folders swept in {} ms, {} hints set",
                    f.folder.display(),
                    f.files,
                    f.folders,
                    f.sweep_ms,
                    f.by_sweeps
                )));
            }
        }
        self.look_at_relations(&figures, say);
        match serde_json::to_vec(&figures) {
            Ok(json) if json != self.written => {
                if let Err(error) = self.hub.driver.write_figures(&json) {
                    // said once: the figures stay as they are
                    if !self.written.is_empty() || self.ticks == 1 {
                        say(&Said::Note(error.to_string()));
                    }
                }
                self.written = json;
            }
            _ => {}
        }
        if self.ticks % RENEW_EVERY == 1 {
            self.look_for_conflicts(say);
        }
        for folder in &self.hub.watched {
            // While it is pinned, no event says that it was removed.
            let gone = folder.roots().first().is_none_or(|base| base.is_gone());
            if gone || self.ticks.is_multiple_of(RENEW_EVERY) {
                self.hub.ask(Job::Renew(Arc::clone(folder)));
            }
        }
        let alive = Duration::from_secs(self.hub.alive.load(Relaxed));
        if begun.elapsed().saturating_sub(alive) < HANGS {
            say(&Said::Alive);
        }
    }
}

impl Ticker<'_> {
    /// Sweeps after a switch where catalogs tell files apart, which only this daemon can; and says what
    /// cannot be read of them, when that changes.
    fn look_at_relations(&mut self, figures: &Watching, say: &mut dyn FnMut(&Said)) {
        let state = self.hub.driver.page().state();
        if std::mem::replace(&mut self.state, state) != state {
            let told_apart = self.hub.watched.iter().filter(|folder| folder.relations().is_some());
            told_apart.for_each(|folder| self.hub.ask_to_sweep(folder));
        }
        let failures =
            figures.folders.iter().map(|folder| folder.relations.as_ref()?.failure.clone());
        let unread: Vec<Option<String>> = failures.collect();
        for (at, why) in unread.iter().enumerate() {
            let known = self.unread.get(at).and_then(Option::as_ref);
            if let Some(why) = why.as_ref().filter(|why| known != Some(*why)) {
                say(&Said::Note(format!("catalogs not read: {why}")));
            }
        }
        self.unread = unread;
    }

    /// Says which other runs undo this one's work, when that changes.
    fn look_for_conflicts(&mut self, say: &mut dyn FnMut(&Said)) {
        let found = shelflife_run::conflicts(self.registry).unwrap_or_default();
        for conflict in found.iter().filter(|c| !self.conflicts.contains(c)) {
            say(&Said::Note(conflict.to_string()));
        }
        self.conflicts = found;
    }
}

/// What the daemon says of itself.
pub(crate) fn figures(hub: &Hub, mode: Mode) -> Watching {
    let of = |folder: &Arc<Folder>| {
        let figures = &folder.figures;
        let roots = folder.roots();
        WatchedFolder {
            folder: folder.base().to_owned(),
            mode: mode.name().to_owned(),
            present: !roots.is_empty(),
            swept: figures.sweeps.load(Relaxed) > 0,
            roots: roots.iter().map(|root| root.path().to_owned()).collect(),
            files: figures.files.load(Relaxed),
            open_files: figures.open_files.load(Relaxed),
            folders: figures.folders.load(Relaxed),
            unwatched: figures.unwatched.load(Relaxed),
            hints: figures.hints(),
            by_sweeps: figures.swept.load(Relaxed),
            again: figures.again.load(Relaxed),
            cleared: figures.cleared.load(Relaxed),
            overflows: figures.overflows.load(Relaxed),
            sweeps: figures.sweeps.load(Relaxed),
            sweep_ms: figures.sweep_ms.load(Relaxed),
            foreign: figures.foreign.load(Relaxed),
            elsewhere: figures.elsewhere.load(Relaxed),
            refused: figures.refused(),
            relations: folder.relations().map(Relations::figures),
        }
    };
    Watching { folders: hub.watched.iter().map(of).collect() }
}
