//! Names of PostgreSQL's relations for the files of a trace, asked of the servers while it is recorded.
//!
//! Invariant: no question is asked on the recording thread: it hands over paths and takes answers. A number
//! that was visible at any reading keeps its name, whatever rewrite follows; one that was visible at none is
//! of class `uncommitted`, if its database could be read in the end.
//!
//! A file that is being created is written before its transaction commits: it is asked for again until
//! it is visible, more and more rarely, and a last time at the end.

mod names;
mod server;

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use serde::Serialize;
use shelflife_postgres::{Cancel, DataFolder, Dsn, Pace, Session};
use shelflife_trace::{FileEntry, FileId, FileTable};

use crate::naming::{Named, Naming};

use names::Name;
use server::{Server, Way, looks_like_a_relation};

pub use server::ServerReport;

/// With nothing to ask the thread sleeps until the next file; this long is as good as for ever.
const IDLE: Duration = Duration::from_secs(3600);

/// Which servers are asked.
#[derive(Clone, Debug)]
pub enum Servers {
    /// Every server on this machine in whose folders a relation's file is written, by its Unix socket and as
    /// the owner of its data folder. One that starts later is found too.
    Auto,
    /// The one at this address, as the user who records.
    At(Box<Dsn>),
    /// The one at this address with this data folder.
    Known {
        /// Its address.
        dsn: Box<Dsn>,
        /// Its data folder.
        data_folder: PathBuf,
    },
}

/// Why names cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PgError {
    /// The server cannot be reached or read.
    #[error("the PostgreSQL server cannot be asked for names")]
    Server(#[from] shelflife_postgres::Error),
    /// The data folder is not known.
    #[error(
        "the server does not say where its data folder is: let a superuser GRANT pg_read_all_settings \
         TO the role that connects, or use --pg auto"
    )]
    DataFolder(#[source] shelflife_postgres::Error),
    /// The data folder cannot be looked at from here.
    #[error("{}: the server's data folder cannot be looked at: is the server on this machine?", .0.display())]
    Elsewhere(PathBuf),
    /// The system refuses a thread.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

impl PgError {
    /// Whether other rights would help, or recording where the server is: exit code 3.
    pub fn is_denied(&self) -> bool {
        matches!(self, PgError::DataFolder(_) | PgError::Elsewhere(_))
    }
}

/// What was found out in the end.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PgReport {
    /// The servers that were asked.
    pub servers: Vec<ServerReport>,
    /// Files that look like a relation's, of no server that was found.
    pub homeless: u64,
}

enum Ask {
    File(FileId, Box<[u8]>),
    Finish,
}

/// Asks servers for the names of relations.
#[derive(Debug)]
pub struct Pg {
    asks: Sender<Ask>,
    names: Receiver<Name>,
    thread: JoinHandle<PgReport>,
    data_folders: Vec<PathBuf>,
}

impl Pg {
    /// Begins. Called before this process gives up its capabilities: the thread that asks needs those to
    /// become the owner of a data folder ([`Servers::Auto`]).
    ///
    /// # Errors
    ///
    /// A server that was named cannot be reached, or does not say where its data folder is.
    pub fn start(servers: Servers) -> Result<Pg, PgError> {
        let mut known = Vec::new();
        let auto = matches!(servers, Servers::Auto);
        if let Some((dsn, data)) = place(servers)? {
            let path = data.path().to_owned();
            let server = Server::new(data, Way::Given(dsn));
            let mut server = server.ok_or(PgError::Elsewhere(path))?;
            server.read_all()?;
            known.push(server);
        }
        let data_folders = known.iter().map(|server| server.data_folder().to_owned()).collect();
        let (asks, asked) = channel();
        let (answers, names) = channel();
        let mut worker =
            Worker { servers: known, auto, homeless: Vec::new(), search: Pace::default(), answers };
        let thread = std::thread::Builder::new()
            .name("shelflife-pg".to_owned())
            .spawn(move || worker.run(&asked))
            .map_err(PgError::Thread)?;
        Ok(Pg { asks, names, thread, data_folders })
    }

    /// Data folders that are known from the start, for [`crate::Options::data_folders`].
    pub fn data_folders(&self) -> &[PathBuf] {
        &self.data_folders
    }

    /// Here is a file of the trace: its absolute path, as the kernel spells it.
    pub fn see(&self, file: FileId, path: &[u8]) {
        // If the thread is gone, `finish` says so.
        let _ = self.asks.send(Ask::File(file, path.into()));
    }

    /// Puts the names that have arrived into the table; how many.
    pub fn name(&self, files: &mut FileTable) -> usize {
        let mut count = 0;
        while let Ok(name) = self.names.try_recv() {
            put(files, name);
            count += 1;
        }
        count
    }

    /// For [`crate::Options::naming`]. When the recording has ended, the receiver has the report.
    pub fn into_naming(self) -> (Box<dyn Naming>, Receiver<PgReport>) {
        let (report, reported) = channel();
        (Box::new(Namer { pg: Some(self), report }), reported)
    }

    /// Asks a last time and puts all that is known into the table. Takes as long as the servers do.
    pub fn finish(self, files: &mut FileTable) -> PgReport {
        let _ = self.asks.send(Ask::Finish);
        // Ends when the thread drops its end.
        for name in &self.names {
            put(files, name);
        }
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Gives up, in this thread, all capabilities but those to find servers and to become their owners. What is
/// refused stays as it is: the kernel checks each use anyway.
fn keep_little() {
    let keep = CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::SYS_PTRACE;
    if let Ok(now) = capabilities(None) {
        let sets = CapabilitySets {
            effective: now.effective & keep,
            permitted: now.permitted & keep,
            inheritable: now.inheritable,
        };
        let _ = set_capabilities(None, sets);
    }
}

fn put(files: &mut FileTable, name: Name) {
    if let Some(entry) = files.get_mut(name.file) {
        name.put(entry);
    }
}

struct Namer {
    /// `None` after the end.
    pg: Option<Pg>,
    report: Sender<PgReport>,
}

impl Naming for Namer {
    fn name(&mut self, row: FileId, file: &Named<'_>, _: &mut FileEntry) {
        if let Some(pg) = &self.pg {
            pg.see(row, file.path.as_os_str().as_bytes());
        }
    }

    fn settle(&mut self, files: &mut FileTable, last: bool) {
        if !last {
            self.pg.as_ref().map(|pg| pg.name(files));
        } else if let Some(pg) = self.pg.take() {
            // Whoever does not want it has dropped the other end.
            let _ = self.report.send(pg.finish(files));
        }
    }
}

/// Address and data folder of a server that was named.
fn place(servers: Servers) -> Result<Option<(Box<Dsn>, DataFolder)>, PgError> {
    let (dsn, path) = match servers {
        Servers::Auto => return Ok(None),
        Servers::Known { dsn, data_folder } => (dsn, data_folder),
        Servers::At(dsn) => {
            let mut session = Session::connect(&dsn, &Cancel::never())?;
            let path = session.data_folder().map_err(PgError::DataFolder)?;
            (dsn, path)
        }
    };
    let data = DataFolder::open(&path).map_err(|_| PgError::Elsewhere(path))?;
    Ok(Some((dsn, data)))
}

struct Worker {
    servers: Vec<Server>,
    auto: bool,
    /// Files that look like a relation's, of no known server.
    homeless: Vec<(FileId, Box<[u8]>)>,
    search: Pace,
    answers: Sender<Name>,
}

impl Worker {
    fn run(&mut self, asked: &Receiver<Ask>) -> PgReport {
        keep_little();
        loop {
            let now = Instant::now();
            let due = self.due(now);
            let wait = due.map_or(IDLE, |due| due.saturating_duration_since(now));
            match asked.recv_timeout(wait) {
                Ok(Ask::File(file, path)) => self.see(file, path),
                Err(RecvTimeoutError::Timeout) => self.ask(),
                Ok(Ask::Finish) | Err(RecvTimeoutError::Disconnected) => return self.finish(),
            }
        }
    }

    /// When there is something to do next.
    fn due(&self, now: Instant) -> Option<Instant> {
        let search = (!self.homeless.is_empty()).then(|| self.search.due().unwrap_or(now));
        self.servers.iter().filter_map(|server| server.due(now)).chain(search).min()
    }

    fn see(&mut self, file: FileId, path: Box<[u8]>) {
        let name = self.servers.iter_mut().find_map(|server| server.see(file, &path));
        match name {
            Some(name) => self.answer([name]),
            None if looks_like_a_relation(&path) => {
                self.homeless.push((file, path));
                self.search.hurry();
            }
            None => {}
        }
    }

    fn ask(&mut self) {
        let now = Instant::now();
        if !self.homeless.is_empty() && self.search.due().is_none_or(|due| due <= now) {
            self.look_around();
        }
        for at in 0..self.servers.len() {
            if self.servers[at].due(now).is_some_and(|due| due <= now) {
                let names = self.servers[at].read();
                self.answer(names);
            }
        }
    }

    /// Looks for servers, and for new tablespaces of those that are known.
    fn look_around(&mut self) {
        let begun = Instant::now();
        self.servers.iter_mut().for_each(Server::look_again);
        // What cannot be listed now is listed at the next look.
        let running = if self.auto { DataFolder::running() } else { Ok(Vec::new()) };
        for data in running.unwrap_or_default() {
            if !self.servers.iter().any(|server| server.is_at(&data)) {
                self.servers.extend(Server::new(data, Way::Owner));
            }
        }
        for (file, path) in std::mem::take(&mut self.homeless) {
            match self.servers.iter_mut().find_map(|server| server.see(file, &path)) {
                Some(name) => self.answer([name]),
                None => self.homeless.push((file, path)),
            }
        }
        self.search.ended(Instant::now(), begun.elapsed());
    }

    fn finish(&mut self) -> PgReport {
        if !self.homeless.is_empty() {
            self.look_around();
        }
        let mut report = PgReport { homeless: self.homeless.len() as u64, ..PgReport::default() };
        for at in 0..self.servers.len() {
            let (names, server) = self.servers[at].finish();
            self.answer(names);
            report.servers.push(server);
        }
        report
    }

    fn answer(&self, names: impl IntoIterator<Item = Name>) {
        for name in names {
            // Nobody listens any more: the recording was given up.
            let _ = self.answers.send(name);
        }
    }
}
