//! The registry of runs: one folder a run, in the state folder.
//!
//! `NAME/page` is the line that the hook reads, `NAME/run.json` what people want to know,
//! `NAME/lock` the lock of whoever writes the page, `NAME/sweep` the lock of whoever sweeps.
//! Invariant: a run's folder appears whole (it is written aside and renamed) and holds nothing that
//! a server waits for.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use shelflife_layout::Table;

use crate::create::{Create, attached, create, give, remove};
use crate::page::{Counters, Page, RunLine, State};
use crate::segment::{Access, AttachError, Segment, SegmentId};

/// Why a run could not be made, found or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No place for state is known.
    #[error(
        "no folder for the state of runs: neither $SHELFLIFE_STATE nor $XDG_RUNTIME_DIR is set; \
         set SHELFLIFE_STATE to a folder of your own"
    )]
    NoStateFolder,
    /// Another user could plant runs there.
    #[error("{}: the state folder belongs to user {uid}; it must belong to you or to root", path.display())]
    ForeignStateFolder {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// A file operation failed.
    #[error("{}: {what}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Shared memory could not be made.
    #[error("cannot create the run's shared memory (see kernel.shmmni, kernel.shmall)")]
    Segment(#[source] io::Error),
    /// A run of that name is there.
    #[error(
        "a run named {0} is there already; choose another --name, or look at `shelflife status`"
    )]
    NameTaken(String),
    /// Not a name.
    #[error(
        "{0:?} is no name for a run: use 1 to 32 letters, digits, `-`, `_` or `.`, not first a `.`"
    )]
    BadName(String),
    /// There is no such run.
    #[error("there is no run named {0}; `shelflife status` lists them")]
    NoSuchRun(String),
    /// The run's files are not readable as such.
    #[error("{}: not the record of a run: {what}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The page cannot be attached or used.
    #[error("run {name}: the control page cannot be used: {source}")]
    Page {
        /// The run.
        name: String,
        /// Why not.
        source: AttachError,
    },
}

impl Error {
    /// Whether more rights would help.
    pub fn is_denied(&self) -> bool {
        match self {
            Error::Page { source, .. } => *source == AttachError::Denied,
            Error::Io { source, .. } => source.kind() == ErrorKind::PermissionDenied,
            _ => false,
        }
    }
}

/// Who gives the hints of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The hook inside the server's processes.
    #[default]
    Hook,
    /// A daemon outside of them.
    Watch,
}

/// What is to be known of a run beside its page.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Summary {
    /// Version of this record.
    pub version: u32,
    /// Who gives the hints; records of before there were daemons do not say it.
    #[serde(default)]
    pub kind: Kind,
    /// The process that `run` became, or the daemon.
    pub pid: u32,
    /// Its start time (`/proc/PID/stat` field 22, clock ticks since boot).
    pub pid_start: u64,
    /// Seconds since 1970.
    pub started: u64,
    /// The command and its arguments; bytes that are no UTF-8 are replaced.
    pub command: Vec<String>,
    /// The hook that was preloaded.
    pub hook: PathBuf,
    /// The data folders that were known beforehand; of a daemon, all of them.
    pub roots: Vec<PathBuf>,
}

/// A run to be registered.
#[derive(Debug)]
pub struct NewRun<'a> {
    /// Its name; `None` takes the lowest free number.
    pub name: Option<&'a str>,
    /// Command and arguments.
    pub command: &'a [OsString],
    /// The hook that will be preloaded.
    pub hook: &'a Path,
    /// Canonical data folders, as far as known.
    pub roots: &'a [PathBuf],
    /// The user whose server it is, where known.
    pub owner: Option<u32>,
    /// The policy and its name; `None` starts switched off with an empty policy.
    pub policy: Option<(&'a Table, &'a str)>,
    /// Count only.
    pub dry_run: bool,
}

/// Whether a run still has processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Liveness {
    /// So many processes have its page attached.
    Attached(u64),
    /// None has, but the process that `run` became is there: it is starting, or it is not under
    /// the hook.
    Launcher,
    /// Neither.
    Dead,
    /// The segment is gone.
    PageGone,
}

/// The state folder.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// The state folder by the rules: `$SHELFLIFE_STATE`, else `/run/shelflife` for root, else
    /// `$XDG_RUNTIME_DIR/shelflife`.
    ///
    /// # Errors
    ///
    /// [`Error::NoStateFolder`], [`Error::ForeignStateFolder`].
    pub fn from_environment() -> Result<Registry, Error> {
        let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let dir = if let Some(dir) = set("SHELFLIFE_STATE") {
            dir
        } else if rustix::process::geteuid().is_root() {
            PathBuf::from("/run/shelflife")
        } else {
            set("XDG_RUNTIME_DIR").ok_or(Error::NoStateFolder)?.join("shelflife")
        };
        Registry::at(dir)
    }

    /// The state folder `dir`, which need not exist yet.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignStateFolder`], [`Error::Io`].
    pub fn at(dir: impl Into<PathBuf>) -> Result<Registry, Error> {
        let dir = std::path::absolute(dir.into()).map_err(|source| Error::Io {
            what: "no absolute path of the state folder",
            path: PathBuf::new(),
            source,
        })?;
        match fs::metadata(&dir) {
            Ok(found) => {
                let me = rustix::process::geteuid().as_raw();
                if found.uid() != me && found.uid() != 0 {
                    return Err(Error::ForeignStateFolder { path: dir, uid: found.uid() });
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(io_error("cannot look at it", &dir, source)),
        }
        Ok(Registry { dir })
    }

    /// The folder itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All runs, by name; records that cannot be read come as errors.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the state folder cannot be read; that it is missing is no error.
    pub fn runs(&self) -> Result<Vec<Result<Run, Error>>, Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(io_error("cannot list the runs", &self.dir, source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| io_error("cannot list the runs", &self.dir, e))?;
            let name = entry.file_name();
            if let Some(name) = name.to_str().filter(|n| check_name(n).is_ok()) {
                names.push(name.to_owned());
            }
        }
        names.sort_by_key(|n| (n.parse::<u64>().unwrap_or(u64::MAX), n.clone()));
        Ok(names.iter().map(|name| self.run(name)).collect())
    }

    /// The run named `name`.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`], [`Error::NoSuchRun`], [`Error::BadRecord`], [`Error::Io`].
    pub fn run(&self, name: &str) -> Result<Run, Error> {
        check_name(name)?;
        let dir = self.dir.join(name);
        let read = |file: &str| {
            let path = dir.join(file);
            match read_limited(&path) {
                Ok(bytes) => Ok((path, bytes)),
                Err(e) if e.kind() == ErrorKind::NotFound && !dir.exists() => {
                    Err(Error::NoSuchRun(name.to_owned()))
                }
                Err(source) => Err(io_error("cannot read the run's record", &path, source)),
            }
        };
        let (path, line) = read("page")?;
        let line = RunLine::parse(&line).ok_or_else(|| Error::BadRecord {
            path,
            what: "expected `shelflife-run 1 PAGE COUNTERS COOKIE`".to_owned(),
        })?;
        let (path, json) = read("run.json")?;
        let summary: Summary = serde_json::from_slice(&json)
            .map_err(|e| Error::BadRecord { path, what: e.to_string() })?;
        Ok(Run { name: name.to_owned(), dir, line, summary })
    }

    /// Makes the segments and the record of a new run.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`], [`Error::NameTaken`], [`Error::Segment`], [`Error::Io`].
    pub fn register(&self, new: &NewRun<'_>) -> Result<Run, Error> {
        self.register_as(Kind::Hook, new)
    }

    /// Registers the calling process as a daemon that gives the hints itself. The hook of `new` is
    /// kept as it is given and loaded by nobody.
    ///
    /// # Errors
    ///
    /// As [`Registry::register`].
    pub fn register_daemon(&self, new: &NewRun<'_>) -> Result<Run, Error> {
        self.register_as(Kind::Watch, new)
    }

    fn register_as(&self, kind: Kind, new: &NewRun<'_>) -> Result<Run, Error> {
        if let Some(name) = new.name {
            check_name(name)?;
        }
        if !self.dir.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(&self.dir)
                .and_then(|()| set_mode(&self.dir, 0o755))
                .map_err(|e| io_error("cannot create the state folder", &self.dir, e))?;
        }
        let roots: Vec<&[u8]> = new.roots.iter().map(|r| r.as_os_str().as_bytes()).collect();
        let (line, page, _counters) =
            create(Create { roots: &roots, owner: new.owner }).map_err(Error::Segment)?;
        if let Some((table, name)) = new.policy {
            page.publish(table, name, new.dry_run);
        }
        let given = match new.owner {
            // It gives up root's rights and is to take its memory with it when it ends.
            Some(owner) if kind == Kind::Watch => {
                give(SegmentId(line.page), owner).map_err(Error::Segment)
            }
            _ => Ok(()),
        };
        let written = given.and_then(|()| self.write_record(kind, new, line));
        if written.is_err() {
            remove(SegmentId(line.page), std::process::id());
            remove(SegmentId(line.counters), std::process::id());
        }
        written
    }

    fn write_record(&self, kind: Kind, new: &NewRun<'_>, line: RunLine) -> Result<Run, Error> {
        let pid = std::process::id();
        let summary = Summary {
            version: 1,
            kind,
            pid,
            pid_start: start_time(pid).unwrap_or(0),
            started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            command: new.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            hook: new.hook.to_owned(),
            roots: new.roots.to_vec(),
        };
        let aside = self.dir.join(format!(".new-{pid}-{:016x}", line.cookie));
        let write = |name: &str, bytes: &[u8], mode: u32| {
            let path = aside.join(name);
            let mut options = File::options();
            // not wider for a moment than it is to be
            let file = options.write(true).create_new(true).mode(mode).open(&path);
            file.and_then(|mut file| file.write_all(bytes))
                .and_then(|()| set_mode(&path, mode))
                .map_err(|e| io_error("cannot write the run's record", &path, e))
        };
        DirBuilder::new()
            .mode(0o755)
            .create(&aside)
            .and_then(|()| set_mode(&aside, 0o755))
            .map_err(|e| io_error("cannot create the run's folder", &aside, e))?;
        let result = (|| {
            let json = serde_json::to_vec_pretty(&summary)
                .map_err(|e| Error::BadRecord { path: aside.clone(), what: e.to_string() })?;
            write("page", line.to_string().as_bytes(), 0o644)?;
            write("run.json", &json, 0o644)?;
            // Whoever can open it can take the lock, and keep it.
            write("lock", b"", 0o600)?;
            write("sweep", b"", 0o600)?;
            if kind == Kind::Watch {
                driver::make_figures(&aside, new.owner)?;
            }
            self.rename_into_place(&aside, new.name)
        })();
        if result.is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
        let name = result?;
        Ok(Run { dir: self.dir.join(&name), name, line, summary })
    }

    fn rename_into_place(&self, aside: &Path, name: Option<&str>) -> Result<String, Error> {
        let numbers = (1..).map(|n: u32| n.to_string());
        let names: Box<dyn Iterator<Item = String>> = match name {
            Some(name) => Box::new(std::iter::once(name.to_owned())),
            None => Box::new(numbers.take(10_000)),
        };
        let mut last = String::new();
        for name in names {
            // rename replaces an empty folder only, and a run's folder is never empty
            match fs::rename(aside, self.dir.join(&name)) {
                Ok(()) => return Ok(name),
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::DirectoryNotEmpty
                            | ErrorKind::AlreadyExists
                            | ErrorKind::NotADirectory
                    ) => {}
                Err(e) => return Err(io_error("cannot register the run", aside, e)),
            }
            last = name;
        }
        Err(Error::NameTaken(last))
    }
}

/// A registered run.
#[derive(Clone, Debug)]
pub struct Run {
    name: String,
    dir: PathBuf,
    line: RunLine,
    summary: Summary,
}

impl Run {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder: the value of [`crate::RUN_VARIABLE`] for the hook.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its record.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The number of the page's segment, which is the inode of its mapping in `/proc/PID/maps`.
    pub fn page_segment(&self) -> SegmentId {
        SegmentId(self.line.page)
    }

    /// Whether anything of it is left.
    pub fn liveness(&self) -> Liveness {
        let launcher = || {
            let started = start_time(self.summary.pid);
            started.is_some() && started == Some(self.summary.pid_start)
        };
        match attached(SegmentId(self.line.page), self.summary.pid) {
            None => Liveness::PageGone,
            Some(0) if launcher() => Liveness::Launcher,
            Some(0) => Liveness::Dead,
            Some(n) => Liveness::Attached(n),
        }
    }

    /// Attaches page and counters to look at them.
    ///
    /// # Errors
    ///
    /// [`Error::Page`].
    pub fn look(&self) -> Result<(Segment<Page>, Segment<Counters>), Error> {
        Ok((self.page()?, self.counters()?))
    }

    /// Attaches the page alone, to look at it.
    ///
    /// # Errors
    ///
    /// [`Error::Page`].
    pub fn page(&self) -> Result<Segment<Page>, Error> {
        self.attach_page(Access::ReadOnly)
    }

    fn attach_page(&self, access: Access) -> Result<Segment<Page>, Error> {
        let page = Segment::<Page>::attach(SegmentId(self.line.page), access);
        page.and_then(|page| {
            page.validate(self.line.cookie).map_err(AttachError::Page).map(|()| page)
        })
        .map_err(|source| Error::Page { name: self.name.clone(), source })
    }

    fn counters(&self) -> Result<Segment<Counters>, Error> {
        let segment = Segment::<Counters>::attach(SegmentId(self.line.counters), Access::ReadOnly);
        segment
            .and_then(|c| c.validate(self.line.cookie).map_err(AttachError::Page).map(|()| c))
            .map_err(|source| Error::Page { name: self.name.clone(), source })
    }

    /// Takes the run's lock and attaches the page for writing.
    ///
    /// # Errors
    ///
    /// [`Error::Page`]; [`Error::Io`] for the lock.
    pub fn control(&self) -> Result<Handle, Error> {
        let lock = self.lock("lock")?;
        Ok(Handle { page: self.attach_page(Access::ReadWrite)?, _lock: lock })
    }

    /// Waits for the right to sweep what the run's processes have opened: two sweeps at once would
    /// undo each other's work. It is given back when the result is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn sweep_turn(&self) -> Result<SweepTurn, Error> {
        Ok(SweepTurn { _lock: self.lock("sweep")? })
    }

    fn lock(&self, name: &str) -> Result<File, Error> {
        let path = self.dir.join(name);
        let lock =
            File::open(&path).map_err(|e| io_error("cannot open the run's lock", &path, e))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)
            .map_err(|e| io_error("cannot take the run's lock", &path, e.into()))?;
        Ok(lock)
    }

    /// Removes segments and record. Processes that have the page attached keep it as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the record cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        remove(SegmentId(self.line.page), self.summary.pid);
        remove(SegmentId(self.line.counters), self.summary.pid);
        fs::remove_dir_all(&self.dir)
            .map_err(|e| io_error("cannot remove the run's record", &self.dir, e))
    }
}

/// The right to sweep.
#[derive(Debug)]
pub struct SweepTurn {
    _lock: File,
}

/// The right to change a run's page; holds the run's lock.
#[derive(Debug)]
pub struct Handle {
    page: Segment<Page>,
    _lock: File,
}

impl Handle {
    /// Publishes a policy and switches hints on.
    pub fn publish(&self, table: &Table, name: &str, dry_run: bool) -> State {
        self.page.publish(table, name, dry_run);
        self.page.state()
    }

    /// Switches hints on or off and keeps the policy.
    pub fn switch(&self, on: bool) -> State {
        self.page.switch(on);
        self.page.state()
    }

    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let good = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    let bytes = name.as_bytes();
    if (1..=32).contains(&bytes.len()) && bytes.iter().all(good) && bytes[0] != b'.' {
        Ok(())
    } else {
        Err(Error::BadName(name.to_owned()))
    }
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { what, path: path.to_owned(), source }
}

/// Permissions whatever the umask: the hook reads the page file as the server's user.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// A record is a kilobyte or two; what is longer is none.
fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    File::open(path)?.take(1 << 20).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Start time of a process, clock ticks since boot; `None` if there is none such.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, also ") "; the last parenthesis ends it.
    let after = stat.iter().rposition(|&b| b == b')')?;
    let fields = OsString::from_vec(stat.get(after + 2..)?.to_vec());
    fields.to_str()?.split(' ').nth(19)?.parse().ok()
}

mod driver;
mod recorded;
pub use driver::Driver;

#[cfg(test)]
mod tests;
